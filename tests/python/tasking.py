# An MCP server over HTTP for the tests, whose tool `work` is called as a task. It appends a line to a file for each event:
# `call 1`, `get 1`, `cancel 1`, `update …`.
#
# A task is over when the file FILE.done exists. With `ask` it asks a question first. With `ask-first` the call asks before
# there is a task.
#
# A fraction is a number of JSON as well, so the times are fractions. With `numbers` the ids of tasks are numbers, which no
# client can read.
#
# usage: tasking.py FORM FILE [ask|ask-first|numbers]  FORM: requested (2025-11-25), extension (2026-07-28)

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FORM, FILE = sys.argv[1:3]
ASKS = "ask" in sys.argv[3:]
ASKS_FIRST = "ask-first" in sys.argv[3:]
NUMBERED = "numbers" in sys.argv[3:]
EXTENSION = "io.modelcontextprotocol/tasks"
SCHEMA = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}
TOOL = {"name": "work", "description": "Works.", "inputSchema": SCHEMA}
TASKS = {}
FORM_PARAMS = {"mode": "form", "message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}


def note(text):
    log = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, f"{text}\n".encode())
    os.close(log)


class Refused(Exception):
    pass


def state(task):
    if task["status"] == "working" and os.path.exists(FILE + ".done"):
        task["status"] = "completed"
    said = {"taskId": task["id"], "status": task["status"], "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    said |= {"ttl": 60000.0, "pollInterval": 30.0} if FORM == "requested" else {"ttlMs": 60000.5, "pollIntervalMs": 30.5}
    if FORM == "extension":
        if task["status"] == "completed":
            said["result"] = task["result"]
        if task["status"] == "input_required":
            said["inputRequests"] = {"q1": {"method": "elicitation/create", "params": FORM_PARAMS}}
    return said


def call(params):
    if FORM == "requested" and "task" not in params:
        raise Refused("it can only be called as a task")
    capabilities = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {})
    if FORM == "extension" and EXTENSION not in capabilities.get("extensions", {}):
        raise Refused("the client knows no tasks")
    if ASKS_FIRST and "inputResponses" not in params:
        questions = {"q0": {"method": "elicitation/create", "params": FORM_PARAMS}}
        return {"resultType": "input_required", "inputRequests": questions, "requestState": "s"}
    k = params["arguments"]["k"]
    note(f"call {k}")
    if ASKS_FIRST:
        note(json.dumps(params["inputResponses"]))
    result = {"content": [{"type": "text", "text": json.dumps(k)}]}
    if FORM == "extension":
        result["resultType"] = "complete"
    asks = ASKS and "elicitation" in capabilities
    task = {"id": f"task-{k}", "k": k, "status": "input_required" if asks else "working", "result": result}
    TASKS[task["id"]] = task
    if NUMBERED:
        task = task | {"id": k}
    return {"task": state(task)} if FORM == "requested" else {"resultType": "task", **state(task)}


def answer(method, params):
    if method == "initialize" and FORM == "requested":
        return {"protocolVersion": "2025-11-25", "serverInfo": {"name": "tasking", "version": "1"},
                "capabilities": {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}}
    if method == "server/discover" and FORM == "extension":
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {EXTENSION: {}}}}
    if method == "tools/list":
        return {"tools": [TOOL | ({"execution": {"taskSupport": "required"}} if FORM == "requested" else {})]}
    if method == "tools/call":
        return call(params)
    if method.startswith("tasks/"):
        task = TASKS.get(params["taskId"])
        if task is None:
            raise Refused("Task not found")
        note(f"{method.removeprefix('tasks/')} {task['k']}")
        if method == "tasks/cancel":
            task["status"] = "cancelled"
            return state(task) if FORM == "requested" else {}
        if method == "tasks/result":
            return task["result"]
        if method == "tasks/update":
            note(json.dumps(params["inputResponses"]))
            task["status"] = "working"
            return {}
        return state(task)
    if method == "ping":
        return {}
    raise KeyError(method)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in request:
            return self.reply(202, b"")
        body = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            body["result"] = answer(request["method"], request.get("params", {}))
            if FORM == "extension":
                body["result"].setdefault("resultType", "complete")
                if request["method"].startswith("tasks/"):
                    assert self.headers["Mcp-Name"] == request["params"]["taskId"]
        except Refused as refused:
            body["error"] = {"code": -32602, "message": str(refused)}
        except KeyError:
            body["error"] = {"code": -32601, "message": "unknown"}
        self.reply(200, json.dumps(body).encode())

    def do_GET(self):
        self.reply(405, b"")

    def do_DELETE(self):
        self.reply(200, b"")

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
