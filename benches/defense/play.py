#!/usr/bin/env python3
"""Plays the cases of mcp-defense-bench live through `ptc serve`, and scores them by its rule.

usage: play.py BENCH [--ptc FILE] [--policy FILE] [--cases]

BENCH is a checkout of https://github.com/Gowthaman90/mcp-defense-bench (Apache-2.0, cases CC-BY-4.0). Each case has an
attack and a benign control. Both are played: servers with the tools and results of the case run under `ptc serve`, and a
program makes the calls. An attack is enforced against if the call does not reach its server, and detected if the log or
an exit code reports it. A benign control that is reported is a false alarm. Cases that have no counterpart in `ptc` score
nothing.
"""

import argparse
import http.client
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).parent
WEIGHT = {"enforce": 1.0, "detect": 0.5, "none": 0.0}
# Lines of the log that report something about a server, its tools or a file.
REPORT = re.compile(r"\bWARN\b|\bERROR\b")
CALL = '(tool/call {:server (get data/call "server") :tool (get data/call "tool") :args (get data/call "args")})'


class Ptc:
    """One folder with servers, and the `ptc` that uses them."""

    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ptc-defense-"))
        self.servers = {}
        self.log = self.folder / "log"
        self.process = None

    def server(self, name, tools, results=None):
        """Configures a server with these tools, which records the calls that reach it."""
        spec = self.folder / f"{len(self.servers)}.json"
        tools = [{"inputSchema": {"type": "object"}, **tool} for tool in tools]
        spec.write_text(json.dumps({"tools": tools, "results": results or {}, "calls": f"{spec}.calls"}))
        self.servers[name] = {"command": sys.executable, "args": [str(HERE / "server.py"), str(spec)]}
        return self.configured()

    def configured(self):
        (self.folder / "config.json").write_text(json.dumps({"mcpServers": self.servers}))
        return self

    def flags(self, *more):
        return ["--upstreams-config", str(self.folder / "config.json"), *more]

    def run(self, *words):
        environment = {"XDG_STATE_HOME": str(self.folder / "state"), "PATH": "/usr/bin:/bin"}
        return subprocess.run([self.options.ptc, *words], capture_output=True, text=True, timeout=120, env=environment)

    def serve(self, *more):
        policy = [] if self.options.policy is None else ["--policy", self.options.policy]
        command = [self.options.ptc, "serve", *self.flags(*policy, *more)]
        environment = {"XDG_STATE_HOME": str(self.folder / "state"), "PATH": "/usr/bin:/bin"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log.open("w"), text=True, env=environment
        )
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}})
        self.send({"method": "notifications/initialized"})
        return self

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.send({"id": 1, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == 1 and "method" not in message:
                return message
        return {}

    def call(self, server, tool, arguments):
        """Makes a call. Gives whether it has reached its server."""
        before = len(self.calls())
        context = {"call": {"server": server, "tool": tool, "args": arguments}}
        self.ask("tools/call", {"name": "lisp_eval", "arguments": {"program": CALL, "context": context}})
        return len(self.calls()) > before

    def calls(self):
        return [line for path in self.folder.glob("*.calls") for line in path.read_text().splitlines()]

    def reports(self):
        return REPORT.search(self.log.read_text()) is not None if self.log.exists() else False

    def waits_for(self, text):
        """Waits until the log has a text, for some seconds."""
        for _ in range(60):
            if text in self.log.read_text():
                return True
            time.sleep(0.1)
        return False

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(60)
        shutil.rmtree(self.folder)


def verdict(is_refused, is_reported=False):
    return {"detect": is_refused or is_reported, "enforce": is_refused}


def tool_call(ptc, case):
    ptc.server("one", [case["tool"]]).serve()
    return verdict(not ptc.call("one", case["call"]["name"], case["call"]["arguments"]))


def action(ptc, case):
    tool, arguments = case["action"]["name"], case["action"]["arguments"]
    ptc.server("one", [{"name": tool}]).serve()
    return verdict(not ptc.call("one", tool, arguments))


def sequence(ptc, case):
    tools, results = {}, {}
    for call in case["calls"]:
        server = call.get("server", "one")
        tools.setdefault(server, []).append({"name": call["name"]})
        results.setdefault(server, {})[call["name"]] = call.get("result") or {"content": [{"type": "text", "text": "x" * 40}]}
    for server, listed in tools.items():
        ptc.server(server, listed, results[server])
    ptc.serve()
    reached = [ptc.call(call.get("server", "one"), call["name"], call["arguments"]) for call in case["calls"]]
    return verdict(not all(reached))


def result(ptc, case):
    ptc.server("one", [case["tool"]], {case["tool"]["name"]: case["result"]}).serve()
    arguments = case.get("call", {}).get("arguments")
    properties = case["tool"].get("inputSchema", {}).get("properties", {})
    reached = ptc.call("one", case["tool"]["name"], arguments or {name: "x" for name in properties})
    return verdict(not reached, ptc.reports())


def definition(ptc, case):
    ptc.server("one", [case["tool"]]).serve()
    properties = case["tool"].get("inputSchema", {}).get("properties", {})
    reached = ptc.call("one", case["tool"]["name"], {name: "x" for name in properties})
    return verdict(not reached, ptc.reports())


def change(ptc, case):
    ptc.server("one", [case["before"]])
    ptc.run("pin", "--all", *ptc.flags())
    (ptc.folder / "0.json").write_text(
        json.dumps({"tools": [case["after"]], "results": {}, "calls": str(ptc.folder / "0.json.calls")})
    )
    ptc.serve("--pin", "enforce")
    properties = case["after"].get("inputSchema", {}).get("properties", {})
    return verdict(not ptc.call("one", case["after"]["name"], {name: "x" for name in properties}))


def registry(ptc, case):
    """The servers after the first one are added while the server runs."""
    first, *added = case["servers"]
    ptc.server(first["server"], first["tools"]).serve("--config-reload", "watch")
    ptc.call(first["server"], first["tools"][0]["name"], {})
    for entry in added:
        ptc.server(entry["server"], entry["tools"])
    if added:
        ptc.waits_for("configuration reloaded")
        for entry in added:
            ptc.call(entry["server"], entry["tools"][0]["name"], {})
    return verdict(False, ptc.reports())


def scenario(ptc, case):
    if "action" in case:
        return action(ptc, case)
    if "request" in case:
        return origin(ptc, case["request"])
    address = re.search(r"https?://[^\s(]+", json.dumps([case.get("endpoint"), case["setup"]])).group(0).rstrip('".')
    ptc.servers["remote"] = {"url": address}
    said = ptc.configured().run("tools", *ptc.flags())
    return verdict(False, "http:// to another machine" in said.stderr + said.stdout)


def origin(ptc, request):
    ptc.server("one", [{"name": "x"}])
    command = [ptc.options.ptc, "serve", *ptc.flags("--http", "127.0.0.1:0")]
    environment = {"XDG_STATE_HOME": str(ptc.folder / "state"), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            for line in process.stderr:
                if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                    break
            port = int(found.group(1))
            headers = {"Origin": request["origin"].replace(":7000", f":{port}"), "Host": f"127.0.0.1:{port}"}
            headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}}
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("POST", "/mcp", json.dumps(body), headers)
            return verdict(connection.getresponse().status == 403)
        finally:
            process.terminate()


def drift(ptc, case):
    """An edit of an entry that is followed: https is `tls = required`."""
    scheme = lambda part: "https" if case[part]["tls"] == "required" else "http"
    ptc.servers["api"] = {"url": f"{scheme('baseline')}://127.0.0.1:9/mcp"}
    ptc.configured().server("one", [{"name": "x"}]).serve("--config-reload", "watch")
    ptc.call("one", "x", {})
    ptc.servers["api"] = {"url": f"{scheme('current')}://127.0.0.1:9/mcp"}
    ptc.server("two", [{"name": "y"}])
    ptc.waits_for("configuration reloaded")
    return verdict(False, "http:// in place of https://" in ptc.log.read_text())


def identity(ptc, case):
    """A reviewed server is replaced by one with the same tools at another address. Each endpoint is a port here."""
    if case["mode"] != "change":
        return verdict(False)
    ports = {}
    try:
        for part in ("before", "after"):
            endpoint = case[part]["endpoint"]
            if endpoint not in ports:
                ports[endpoint] = http_server()
            ptc.servers["one"] = {"url": f"http://127.0.0.1:{ports[endpoint].server_port}/mcp"}
            ptc.configured()
            if part == "before":
                ptc.run("pin", "--all", *ptc.flags())
        ptc.serve("--pin", "enforce")
        answer = ptc.ask("tools/call", {"name": "lisp_eval", "arguments": {"program": "(tool/call 'one/pay {})"}})
        return verdict("paid" not in json.dumps(answer))
    finally:
        for server in ports.values():
            server.shutdown()


class Mcp(http.server.BaseHTTPRequestHandler):
    """A server with one tool."""

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        results = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
            "tools/list": {"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "paid"}]},
        }
        answer = {"jsonrpc": "2.0", "id": message.get("id")}
        if message["method"] in results:
            answer["result"] = results[message["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "unknown"}
        body = json.dumps(answer).encode() if "id" in message else b""
        self.send_response(200 if body else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(405)

    def log_message(self, *_):
        pass


def http_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mcp)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


PLAYS = {
    "tool-call": tool_call,
    "tool-call-sequence": sequence,
    "malicious-tool-result": result,
    "benign-tool-result": result,
    "malicious-tool-definition": definition,
    "benign-tool-definition": definition,
    "definition-change": change,
    "multi-server-registry": registry,
    "scenario": scenario,
    "config-snapshot-diff": drift,
    "server-identity": identity,
}


def play(options, case):
    kind = PLAYS.get(case["type"])
    if kind is None:
        return {"detect": False, "enforce": False}
    ptc = Ptc(options)
    try:
        return kind(ptc, case)
    finally:
        ptc.close()


def level(attack, benign):
    if not attack["detect"] or benign["detect"]:
        return "none"
    return "enforce" if attack["enforce"] else "detect"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("--ptc", default="ptc")
    parser.add_argument("--policy", default=str(HERE / "policy.toml"))
    parser.add_argument("--cases", action="store_true", help="show each case")
    options = parser.parse_args()
    options.ptc = shutil.which(options.ptc)
    if options.ptc is None:
        parser.error("there is no such ptc")
    vectors = [vector["id"] for vector in json.loads((options.bench / "rubric/crosswalk.json").read_text())["vectors"]]
    best, alarms, count = dict.fromkeys(vectors, "none"), 0, 0
    for path in sorted(options.bench.glob("testcases/*/*.json")):
        case = json.loads(path.read_text())
        attack, benign = play(options, case["fixture"]), play(options, case["benignControl"])
        reached, count = level(attack, benign), count + 1
        alarms += benign["detect"]
        best[case["vector"]] = max(best[case["vector"]], reached, key=lambda name: WEIGHT[name])
        if options.cases:
            alarm = ", false alarm" if benign["detect"] else ""
            played = "" if case["fixture"]["type"] in PLAYS else ", not played"
            print(f"{case['id']}: {reached}{alarm}{played}")
    score = sum(WEIGHT[reached] for reached in best.values())
    print(json.dumps({"score": score, "vectors": len(vectors), "cases": count, "false_alarms": alarms}))


if __name__ == "__main__":
    main()
