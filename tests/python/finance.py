# A stdio MCP server for the tests of scripts: what a finance team's server answers.

import json
import sys

REVENUES = {"AMZN": [170.0, 165.3, 158.9, 149.2], "MSFT": [65.6, 62.0, 59.1, 56.5], "GOOG": [96.5, 88.3, 85.0, 80.5]}
TOOLS = [
    {
        "name": "query_financials",
        "description": "Rows of a company's statements",
        "inputSchema": {
            "type": "object",
            "properties": {"ticker": {"type": "string"}, "statement": {"type": "string"}, "period": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["ticker"],
        },
    },
    {"name": "stock_quote", "description": "The price of a share", "inputSchema": {"type": "object", "properties": {"ticker": {"type": "string"}}}},
    {"name": "delete-everything", "description": "Deletes", "inputSchema": {"type": "object"}},
]


def call(name, arguments):
    if arguments.get("ticker") == "GONE":
        sys.exit()
    if arguments.get("ticker") == "DOWN":
        return {"isError": True, "content": [{"type": "text", "text": "connection refused"}]}
    if name == "stock_quote":
        return {"content": [{"type": "text", "text": "12.5"}], "structuredContent": {"ticker": arguments["ticker"], "price": 12.5}}
    if name != "query_financials" or arguments["ticker"] not in REVENUES:
        return {"isError": True, "content": [{"type": "text", "text": "no such ticker"}]}
    rows = [{"revenue": each * 1e9} for each in REVENUES[arguments["ticker"]][: arguments.get("limit", 4)]]
    return {"content": [{"type": "text", "text": json.dumps(rows)}]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params", {})
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "finance", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": TOOLS}
    elif method == "tools/call":
        answer["result"] = call(params["name"], params.get("arguments", {}))
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
