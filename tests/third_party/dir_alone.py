"""Whether a line of `dir` alone suffices to call a tool, for every tool of real MCP servers.

    target/third_party/venv/bin/python tests/third_party/dir_alone.py --ptc target/debug/ptc

Installs public servers under target (npm and PyPI, a gigabyte), starts each without an account (with placeholders
where a variable is required), and asks it for its tools. Then the binary gives the lines of all servers, as a program
gets them. Of each line alone a call with the required arguments and two with all arguments are made (`dir_lines.py`), and
jsonschema judges them by the schema of the server. Servers that need neither network nor account get the calls, too
(`--send`): those that they refuse for their arguments are counted. `--bytes` measures tool lists, instructions and
lines.

A server that does not start on this machine is named and left out.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import jsonschema

import dir_lines

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINNED = ROOT / "target/third_party"
MORE = ROOT / "target/third_party_more"
PINS = ROOT / "tests/third_party/eighteen"
PLACEHOLDER = "placeholder-of-the-test"
# Seconds that a server has to start and to list its tools.
PATIENCE = 120

# By name: the npm package, its script, arguments, variables.
NODE = {
    "context7": ("@upstash/context7-mcp@4.1.1", "dist/index.js", [], []),
    "playwright": ("@playwright/mcp@0.0.83", "cli.js", [], []),
    "notion": ("@notionhq/notion-mcp-server@2.5.2", "bin/cli.mjs", [], ["NOTION_TOKEN"]),
    "sentry": ("@sentry/mcp-server@0.39.0", "dist/index.js", ["--access-token", PLACEHOLDER], []),
    "firecrawl": ("firecrawl-mcp@3.22.2", "dist/index.js", [], ["FIRECRAWL_API_KEY"]),
    "tavily": ("tavily-mcp@0.2.22", "build/index.js", [], ["TAVILY_API_KEY"]),
    "exa": ("exa-mcp-server@3.4.1", "dist/stdio.cjs", [], ["EXA_API_KEY"]),
    "brave": ("@modelcontextprotocol/server-brave-search@0.6.2", "dist/index.js", [], ["BRAVE_API_KEY"]),
    "github": ("@modelcontextprotocol/server-github@2025.4.8", "dist/index.js", [], ["GITHUB_PERSONAL_ACCESS_TOKEN"]),
    "gitlab": ("@modelcontextprotocol/server-gitlab@2025.4.25", "dist/index.js", [], ["GITLAB_PERSONAL_ACCESS_TOKEN"]),
    "slack": ("@modelcontextprotocol/server-slack@2025.4.25", "dist/index.js", [], ["SLACK_BOT_TOKEN", "SLACK_TEAM_ID"]),
    "google-maps": ("@modelcontextprotocol/server-google-maps@0.6.2", "dist/index.js", [], ["GOOGLE_MAPS_API_KEY"]),
    "figma": ("figma-developer-mcp@0.13.2", "dist/bin.js", ["--stdio", f"--figma-api-key={PLACEHOLDER}"], []),
    "mongodb": ("mongodb-mcp-server@3.0.4", "dist/index.js", [], []),
    "desktop": ("@wonderwhy-er/desktop-commander@0.2.52", "dist/index.js", [], []),
    "azure": ("@azure/mcp@2.0.5", "index.js", ["server", "start", "--mode", "all"], []),
    "eslint": ("@eslint/mcp@0.3.13", "src/mcp-cli.js", [], []),
    "chart": ("@antv/mcp-server-chart@0.9.10", "build/index.js", [], []),
    "sheets": ("@negokaz/excel-mcp-server@0.12.0", "dist/launcher.js", [], []),
}

# By name: the PyPI package (pinned in tests/third_party/eighteen where a list has its name), its program, arguments.
PYTHON = {
    "calculator": ("mcp-server-calculator", "mcp-server-calculator", []),
    "wikipedia": ("wikipedia-mcp", "wikipedia-mcp", []),
    "search": ("duckduckgo-mcp-server", "duckduckgo-mcp-server", []),
    "excel": ("excel-mcp-server", "excel-mcp-server", ["stdio"]),
    "aws": ("awslabs.aws-documentation-mcp-server==1.2.3", "awslabs.aws-documentation-mcp-server", []),
    "atlassian": ("mcp-atlassian==0.23.1", "mcp-atlassian", []),
}
VARIABLES = {
    "azure": {"AZURE_MCP_COLLECT_TELEMETRY": "false"},
    "atlassian": {
        "JIRA_URL": "https://example.atlassian.net", "JIRA_USERNAME": "ada@example.com", "JIRA_API_TOKEN": PLACEHOLDER,
        "CONFLUENCE_URL": "https://example.atlassian.net/wiki", "CONFLUENCE_USERNAME": "ada@example.com",
        "CONFLUENCE_API_TOKEN": PLACEHOLDER,
    },
    "mongodb": {"MDB_MCP_TELEMETRY": "disabled", "MDB_MCP_CONNECTION_STRING": "mongodb://127.0.0.1:9",
                "MDB_MCP_API_CLIENT_ID": PLACEHOLDER, "MDB_MCP_API_CLIENT_SECRET": PLACEHOLDER},
}

# Servers that answer without a network, and whose calls with made-up arguments change only the folder of this run.
OFFLINE = ["everything", "filesystem", "memory", "sequential-thinking", "time", "git", "sqlite", "calculator", "excel",
           "sheets", "eslint"]
# Words of answers that refuse arguments.
REFUSALS = ["invalid argument", "invalid_type", "invalid_value", "input validation", "validation error", "-32602",
            "unrecognized_keys", "missing required", "field required"]

# A page of `dir` has at most 200 lines.
PROGRAM = """
(let [pages (fn [name] (mapcat #(dir name {:limit 200 :offset %}) [0 200 400]))]
  (into {} (map (fn [server] [(:name server) (pages (:name server))]) (tool/servers))))"""


def install():
    subprocess.run(["bash", ROOT / "tests/third_party/install.sh"], check=True)
    lacks = [package for package, *_ in NODE.values() if not (MORE / "node_modules" / package.rsplit("@", 1)[0]).exists()]
    if lacks:
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        wanted = [package for package, *_ in NODE.values()]
        subprocess.run(["npm", "install", "--prefix", MORE, *options, *wanted], check=True)
    for package, program, _ in PYTHON.values():
        name = package.split("==")[0]
        if not (MORE / name / "bin" / program).exists():
            shutil.rmtree(MORE / name, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", MORE / name], check=True)
            pins = PINS / f"requirements-{name}.txt"
            wanted = ["-r", pins] if pins.exists() else [package]
            pip = [MORE / name / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *wanted], check=True)


def servers(folder):
    """Entries of a configuration file, in the order in which they are measured."""
    node, python = PINNED / "node_modules/@modelcontextprotocol", str(PINNED / "venv/bin/python")
    official = lambda name, *rest: {"command": "node", "args": [f"{node}/server-{name}/dist/index.js", *rest]}
    subprocess.run(["git", "init", "-q", f"{folder}/repository"], check=True)
    sqlite = "import mcp_server_sqlite; mcp_server_sqlite.main()"
    entries = {
        "everything": official("everything", "stdio"),
        "filesystem": official("filesystem", folder),
        "memory": official("memory"),
        "sequential-thinking": official("sequential-thinking"),
        "time": {"command": python, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]},
        "git": {"command": python, "args": ["-m", "mcp_server_git", "--repository", f"{folder}/repository"]},
        "fetch": {"command": python, "args": ["-m", "mcp_server_fetch"]},
        "sqlite": {"command": str(PINNED / "venv-sqlite/bin/python"), "args": ["-c", sqlite, "--db-path", f"{folder}/x.db"]},
    }
    for name, (package, script, arguments, variables) in NODE.items():
        script = str(MORE / "node_modules" / package.rsplit("@", 1)[0] / script)
        entries[name] = {"command": "node", "args": [script, *arguments], "env": dict.fromkeys(variables, PLACEHOLDER)}
    for name, (package, program, arguments) in PYTHON.items():
        entries[name] = {"command": str(MORE / package.split("==")[0] / "bin" / program), "args": arguments}
    for name, entry in entries.items():
        entry.setdefault("env", {}).update(VARIABLES.get(name, {}))
        entry["cwd"] = folder
    entries["memory"]["env"]["MEMORY_FILE_PATH"] = f"{folder}/memory.jsonl"
    return entries


class Server:
    """A server over stdio; the end of the process or of its time ends a wait."""

    def __init__(self, entry):
        environment = {**os.environ, **entry.get("env", {})}
        self.process = subprocess.Popen([entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=environment, cwd=entry.get("cwd"))
        self.number = 0
        client = {"name": "dir_alone", "version": "1"}
        parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self.about = self.ask("initialize", parameters)
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, parameters, seconds=PATIENCE):
        """The result, or the error as a text."""
        self.number += 1
        alarm = threading.Timer(seconds, self.process.kill)
        alarm.start()
        try:
            self.send({"id": self.number, "method": method, "params": parameters})
            for line in self.process.stdout:
                message = json.loads(line) if line.startswith("{") else {}
                if message.get("id") == self.number and "method" not in message:
                    return message["result"] if "result" in message else json.dumps(message["error"])
                if "id" in message and "method" in message:
                    self.send({"id": message["id"], "result": {}})
            raise EOFError(f"the server ended, or took more than {seconds} s")
        finally:
            alarm.cancel()

    def tools(self):
        listed, cursor = [], None
        while True:
            page = self.ask("tools/list", {"cursor": cursor} if cursor else {})
            listed += page["tools"]
            cursor = page.get("nextCursor")
            if not cursor:
                return listed

    def end(self):
        self.process.kill()
        self.process.communicate()


def size(value):
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def ask_all(entries):
    """The tools of each server that starts."""
    known = {}
    for name, entry in entries.items():
        server = None
        try:
            server = Server(entry)
            known[name] = server.tools()
        except (EOFError, OSError, TypeError, ValueError) as error:
            print(f"{name} does not start: {error}", flush=True)
        finally:
            if server:
                server.end()
    return known


def lines_of(ptc, config, environment):
    flags = ["--upstreams-config", config, "--max-catalog-ops", "10000", "--timeout", "600s", "--handshake-timeout", "300s"]
    command = [ptc, "eval", "-", "--output", "json", *flags]
    done = subprocess.run(command, input=PROGRAM, capture_output=True, text=True, env=environment)
    report = json.loads(done.stdout)
    if not report["ok"]:
        raise SystemExit(done.stdout)
    return report["json"]


def judge(name, line, tool):
    """What is wrong with the calls made of a line: a text for each misfit, by style."""
    schema = tool["inputSchema"]
    read = dir_lines.Line(line)
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(
        schema, format_checker=jsonschema.FormatChecker())
    wrong = {}
    for style in (dir_lines.LEAST, dir_lines.FIRST, dir_lines.LAST):
        made = read.value(style)
        errors = [f"{error.json_path} {error.message[:300]}" for error in validator.iter_errors(made)]
        # A schema that allows any others does not refuse a wrong name.
        properties = schema.get("properties", {})
        errors += [f"no argument {key}" for key in made if properties and key not in properties and key != "other"]
        if errors:
            wrong[style] = f"{name} {style}: {errors[:3]}\n    {line}\n    {json.dumps(made, ensure_ascii=False)[:600]}"
    named = read.names()
    missing = [] if named is None else sorted(set(schema.get("properties", {})) - named)
    if missing:
        wrong["names"] = f"{name}: not named: {missing}\n    {line}"
    return wrong


def send(entry, lines, known):
    """Numbers of calls that a server was sent and of calls without a required argument that it refused, as it should;
    then the answers of those that it refused for their arguments."""
    sent, noticed, refused = 0, [0, 0], []
    server = Server(entry)
    required = {tool["name"]: tool["inputSchema"].get("required", []) for tool in known}
    for line in lines:
        read = dir_lines.Line(line)
        calls = [read.value(style) for style in (dir_lines.LEAST, dir_lines.FIRST)]
        if required[read.name]:
            calls.append({name: value for name, value in calls[0].items() if name != required[read.name][0]})
        for at, values in enumerate(calls):
            try:
                answer = json.dumps(server.ask("tools/call", {"name": read.name, "arguments": values}, 20))
            except (EOFError, BrokenPipeError):
                # Some calls wait for a person or for minutes, such as a long operation.
                server.end()
                server = Server(entry)
                continue
            is_error = '"isError": true' in answer or not answer.startswith("{")
            is_refused = is_error and any(word in answer.lower() for word in REFUSALS)
            if at == 2:
                noticed = [noticed[0] + is_refused, noticed[1] + 1]
                continue
            sent += 1
            if is_refused:
                refused.append(f"{line}\n    {json.dumps(values)[:400]}\n    {answer[:500]}")
    server.end()
    return sent, noticed, refused


def listed_bytes(ptc, entries, known, count, folder, environment):
    """Bytes of `tools/list` and of `instructions`, once the servers are known."""
    chosen = {name: entries[name] for name in list(known)[:count]}
    config = pathlib.Path(folder) / f"first{count}.json"
    config.write_text(json.dumps({"mcpServers": chosen}))
    environment = {**environment, "XDG_STATE_HOME": f"{folder}/state{count}"}
    lines_of(ptc, str(config), environment)
    serve = {"command": ptc, "args": ["serve", "--upstreams-config", str(config), "--handshake-timeout", "300s"]}
    server = Server({**serve, "env": environment})
    server.ask("tools/call", {"name": "lisp_eval", "arguments": {"program": "(count (tool/servers))"}})
    instructions, listed = server.about.get("instructions", ""), server.tools()
    server.end()
    tools = sum(len(known[name]) for name in chosen)
    direct = sum(size({"tools": known[name]}) for name in chosen)
    print(f"| {len(chosen)} | {tools} | {direct:,} | {size({'tools': listed}):,} | {len(instructions.encode()):,} |", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ptc", default="target/debug/ptc")
    arguments.add_argument("--send", action="store_true")
    arguments.add_argument("--bytes", action="store_true")
    arguments.add_argument("--only", help="names of servers, with commas")
    given = arguments.parse_args()
    ptc = str(pathlib.Path(given.ptc).resolve())
    install()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_CONFIG_HOME": "/nonexistent"}
        entries = servers(folder)
        if given.only:
            entries = {name: entries[name] for name in given.only.split(",")}
        known = ask_all(entries)
        config = pathlib.Path(folder) / "upstreams.json"
        config.write_text(json.dumps({"mcpServers": {name: entries[name] for name in known}}))
        lines = lines_of(ptc, str(config), environment)
        print("| server | tools | bytes of its list | bytes of dir | least fits | fullest fits |\n|---|---|---|---|---|---|")
        misfits, total = [], [0] * 5
        for name, tools in known.items():
            by_name = {dir_lines.read_name(line)[0]: line for line in lines.get(name, [])}
            wrong = {tool["name"]: judge(f"{name}/{tool['name']}", by_name[tool["name"]], tool)
                     if tool["name"] in by_name else {"least": f"{name}/{tool['name']} is not listed", "first": ""}
                     for tool in tools}
            misfits += [text for each in wrong.values() for text in each.values()]
            least = sum("least" not in each for each in wrong.values())
            fullest = sum(not {"first", "last"} & set(each) for each in wrong.values())
            row = [len(tools), size({"tools": tools}), sum(len(line.encode()) + 1 for line in lines.get(name, [])), least, fullest]
            total = [sum(pair) for pair in zip(total, row)]
            print("| " + " | ".join([name, *(f"{number:,}" for number in row)]) + " |", flush=True)
        print("| " + " | ".join([f"all {len(known)}", *(f"{number:,}" for number in total)]) + " |")
        print("\n".join(["", *misfits]), flush=True)
        if given.send:
            print("| server | calls sent | refused for arguments | calls without a required argument, refused |\n|---|---|---|---|")
            answers = []
            for name in OFFLINE:
                if name in known:
                    sent, noticed, refused = send(entries[name], lines[name], known[name])
                    answers += refused
                    print(f"| {name} | {sent} | {len(refused)} | {noticed[0]} of {noticed[1]} |", flush=True)
            print("\n".join(["", *answers]))
        if given.bytes:
            print("| servers | tools | their lists | tools/list | instructions |\n|---|---|---|---|---|")
            for count in (1, 4, 11, 26):
                listed_bytes(ptc, entries, known, count, folder, environment)


main()
