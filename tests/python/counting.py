# A stdio MCP server for the tests that appends a line to a file for each call before it answers: `read 1`, `write 2`.
#
# A call that FILE.hang names is not answered.
#
# usage: counting.py FILE

import json
import os
import sys

HINTS = {
    "read": {"readOnlyHint": True},
    "write": {},
    "put": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
}
SCHEMA = {"type": "object", "properties": {"k": {"type": ["integer", "string"]}}, "required": ["k"]}
TOOLS = [
    {"name": name, "description": f"Does a {name}.", "inputSchema": SCHEMA, "annotations": hints}
    for name, hints in HINTS.items()
]


def count(name, arguments):
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, f"{name} {arguments['k']}\n".encode())
    os.close(log)
    try:
        with open(sys.argv[1] + ".hang") as hang:
            if hang.read() == f"{name} {arguments['k']}":
                return None
    except FileNotFoundError:
        pass
    return {"content": [{"type": "text", "text": json.dumps(arguments["k"])}]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, answer = request["method"], {"jsonrpc": "2.0", "id": request["id"]}
    if method == "initialize":
        server = {"name": "counting", "version": "1"}
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/list":
        answer["result"] = {"tools": TOOLS}
    elif method == "tools/call":
        answer["result"] = count(request["params"]["name"], request["params"]["arguments"])
        if answer["result"] is None:
            continue
    elif method == "ping":
        answer["result"] = {}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
