"""Bytes of the tool lists of ten servers that we did not write: directly, through proxy-dispatch, and as lisp_eval.

    python3 tests/third_party/tool_lists.py --ptc target/release/ptc

Installs what it needs under target (npm, PyPI), then asks each server once. Prints a table.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINNED = ROOT / "target/third_party"
MORE = ROOT / "target/third_party_more"
PACKAGES = ["@upstash/context7-mcp@4.1.1", "@playwright/mcp@0.0.83"]


def install():
    subprocess.run(["bash", ROOT / "tests/third_party/install.sh"], check=True)
    if not (MORE / "node_modules/@playwright/mcp").exists():
        command = ["npm", "install", "--prefix", MORE, "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        subprocess.run(command + PACKAGES, check=True)


def servers(folder):
    node, python = str(PINNED / "node_modules"), str(PINNED / "venv/bin/python")
    official = lambda name, *rest: ["node", f"{node}/@modelcontextprotocol/server-{name}/dist/index.js", *rest]
    subprocess.run(["git", "init", "-q", f"{folder}/repository"], check=True)
    sqlite = "import mcp_server_sqlite; mcp_server_sqlite.main()"
    return {
        "everything": official("everything", "stdio"),
        "filesystem": official("filesystem", folder),
        "memory": official("memory"),
        "sequential-thinking": official("sequential-thinking"),
        "time": [python, "-m", "mcp_server_time", "--local-timezone", "UTC"],
        "git": [python, "-m", "mcp_server_git", "--repository", f"{folder}/repository"],
        "fetch": [python, "-m", "mcp_server_fetch"],
        "sqlite": [str(PINNED / "venv-sqlite/bin/python"), "-c", sqlite, "--db-path", f"{folder}/x.db"],
        "context7": ["node", str(MORE / "node_modules/@upstash/context7-mcp/dist/index.js")],
        "playwright": ["node", str(MORE / "node_modules/@playwright/mcp/cli.js")],
    }


def tools(command):
    """The tools that a server lists, all pages of them, and the bytes of their list."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        def send(message):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()

        def ask(number, method, params):
            send({"id": number, "method": method, "params": params})
            for line in process.stdout:
                message = json.loads(line)
                if message.get("id") == number and "method" not in message:
                    return message["result"]
                if "id" in message and "method" in message:
                    send({"id": message["id"], "result": {}})
            raise SystemExit(f"{command} has ended")

        client = {"name": "tool_lists", "version": "1"}
        ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        send({"method": "notifications/initialized"})
        listed, number, cursor = [], 2, None
        while True:
            page = ask(number, "tools/list", {"cursor": cursor} if cursor else {})
            listed += page["tools"]
            number, cursor = number + 1, page.get("nextCursor")
            if not cursor:
                break
        process.kill()
    text = json.dumps({"tools": listed}, separators=(",", ":"), ensure_ascii=False)
    return listed, len(text.encode())


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--ptc", default="target/release/ptc")
    ptc = str(pathlib.Path(arguments.parse_args().ptc).resolve())
    install()
    with tempfile.TemporaryDirectory() as folder:
        commands = servers(folder)
        print("| server | tools | bytes |\n|---|---|---|")
        count = total = 0
        for name, command in commands.items():
            listed, size = tools(command)
            count, total = count + len(listed), total + size
            print(f"| {name} | {len(listed)} | {size:,} |", flush=True)
        config = pathlib.Path(folder) / "upstreams.json"
        entries = {name: {"command": command[0], "args": command[1:]} for name, command in commands.items()}
        config.write_text(json.dumps({"mcpServers": entries}))
        serve = [ptc, "serve", "--upstreams-config", str(config), "--handshake-timeout", "300s"]
        proxy, lisp = (tools([*serve, "--tools", tool])[1] for tool in ["proxy-dispatch", "lisp_eval"])
    print(f"| all ten | {count} | {total:,} |\n| through proxy-dispatch | 1 | {proxy:,} (1/{total / proxy:.0f}) |")
    print(f"| lisp_eval | 1 | {lisp:,} |")


main()
