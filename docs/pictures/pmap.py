#!/usr/bin/env python3
"""Makes pmap.png: what `ptc trace show --html` draws of a program with 20 calls at once.

    python3 docs/pictures/pmap.py [PTC] [CHROMIUM]

Needs a Chromium of 2023 or later; without the second argument it is looked for in PATH, and where Playwright
(`npx playwright install chromium`) puts its own.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]

# A server with answers after 40 to 400 ms, independent of each other; one of them fails.
SERVER = r"""
import json, sys, threading, time
lock = threading.Lock()
def say(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n"); sys.stdout.flush()
def call(id, arguments):
    n = arguments["n"]
    time.sleep(0.04 + 0.36 * ((n * 7919 + 13) % 20) / 20)
    if n == 11:
        result = {"isError": True, "content": [{"type": "text", "text": "no such order"}]}
    else:
        rows = [{"order": n * 100 + i, "state": "open" if i % 3 else "closed"} for i in range(60 + 10 * n)]
        result = {"content": [{"type": "text", "text": json.dumps(rows)}]}
    say({"jsonrpc": "2.0", "id": id, "result": result})
for line in sys.stdin:
    message = json.loads(line)
    id, params = message.get("id"), message.get("params", {})
    if message.get("method") == "tools/call":
        threading.Thread(target=call, args=(id, params["arguments"]), daemon=True).start()
    elif message.get("method") == "initialize":
        say({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "orders", "version": "1"}}})
    elif message.get("method") == "tools/list":
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        say({"jsonrpc": "2.0", "id": id, "result": {"tools": [
            {"name": "orders_of", "description": "Orders of a customer", "inputSchema": schema}]}})
    elif id is not None:
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
"""

PROGRAM = """(->> (pmap #(tool/call {:server "orders" :tool "orders_of" :args {:n %}}) (range 20))
     (filter :ok)
     (mapcat :value)
     (map :state)
     frequencies)"""


def chromium():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    cached = sorted(pathlib.Path.home().glob(".cache/ms-playwright/chromium-*/chrome-linux*/chrome"))
    return found or (str(cached[-1]) if cached else sys.exit("no Chromium found: name it as second argument"))


def main():
    ptc = sys.argv[1] if len(sys.argv) > 1 else "target/release/ptc"
    browser = sys.argv[2] if len(sys.argv) > 2 else chromium()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "server.py").write_text(SERVER)
        entry = {"command": sys.executable, "args": [str(folder / "server.py")]}
        (folder / "servers.json").write_text(json.dumps({"mcpServers": {"orders": entry}}))
        (folder / "traces").mkdir()
        call = {"name": "lisp_eval", "arguments": {"program": PROGRAM}}
        asked = [
            {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "picture", "version": "1"}}},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ]
        flags = ["--upstreams-config", folder / "servers.json", "--trace-dir", folder / "traces", "--trace-payloads", "full"]
        server = subprocess.Popen([ptc, "serve", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for message in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
        while json.loads(server.stdout.readline()).get("id") != 2:
            pass
        server.stdin.close()
        server.wait(10)
        page = subprocess.run([ptc, "trace", "show", "--html", folder / "traces"], check=True, capture_output=True)
        (folder / "page.html").write_bytes(page.stdout)
        picture = HERE / "pmap.png"
        subprocess.run([browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=0.85", "--window-size=880,960",
            f"--user-data-dir={folder / 'browser'}", f"--screenshot={picture}", (folder / "page.html").as_uri()],
            check=True, capture_output=True)
        print(f"{picture}: {picture.stat().st_size} bytes")


main()
