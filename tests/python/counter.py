# A stdio MCP server for the tests that counts its calls, each tool for itself, and has some that never answer.

import json
import sys

SAME = {"readOnlyHint": True, "idempotentHint": True, "title": "Chronometer", "x-owner": "clockwork"}
TOOLS = [
    {"name": "look", "annotations": SAME},
    {"name": "fail", "annotations": SAME},
    {"name": "write"},
    {"name": "hang"},
    {"name": "counts"},
    {"name": "text"},
    {"name": "between", "inputSchema": {"type": "object", "additionalProperties": False, "required": ["from"], "properties": {
        "from": {"type": "string", "description": "The first day"}, "way": {"enum": ["up", "down"], "default": "up"},
        "filter": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}}}},
     "outputSchema": {"type": "object", "properties": {"result": {"type": "string"}}}},
    {"name": "lax", "inputSchema": {"type": "object", "properties": {"ticker": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["ticker"]}},
    {"name": "strict", "inputSchema": {"type": "object", "additionalProperties": False, "properties": {"ticker": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["ticker"]}},
]
calls = {}


def call(name, arguments):
    calls[name] = calls.get(name, 0) + 1
    if name == "counts":
        return {"content": [], "structuredContent": calls}
    if name == "fail":
        return {"isError": True, "content": [{"type": "text", "text": f"failure {calls[name]}"}]}
    if name == "between":
        return {"content": [], "structuredContent": {"result": json.dumps(arguments, sort_keys=True)}}
    if name == "text":
        return {"content": [{"type": "text", "text": arguments["text"] * arguments.get("times", 1)}]}
    return {"content": [{"type": "text", "text": json.dumps({"call": calls[name]})}]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params", {})
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "counter", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"inputSchema": {"type": "object"}, **tool} for tool in TOOLS]}
    elif method == "tools/call":
        if params["name"] == "hang":
            continue
        answer["result"] = call(params["name"], params.get("arguments", {}))
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
