"""An MCP server over stdio with the tools and results of a file; it records the calls that reach it."""

import json
import sys

SPEC = json.load(open(sys.argv[1], encoding="utf-8"))


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if method == "tools/list":
        return {"tools": SPEC["tools"]}
    if method == "tools/call":
        with open(SPEC["calls"], "a", encoding="utf-8") as calls:
            calls.write(json.dumps(params) + "\n")
        return SPEC["results"].get(params["name"], {"content": [{"type": "text", "text": "done"}]})
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
