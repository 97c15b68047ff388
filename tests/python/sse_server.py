# An MCP server over HTTP+SSE for the tests of scripts. Says its port on standard output.

import http.server
import json
import queue

# Of each stream of events, by its number.
ANSWERS = []
TOOLS = [
    {"name": "get_resource", "description": "One resource", "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}},
    {"name": "delete_resource", "description": "Deletes a resource", "inputSchema": {"type": "object"}},
]


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "internal", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": json.dumps({"id": params["arguments"].get("id"), "tool": params["name"]})}]}
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        answers = queue.Queue()
        ANSWERS.append(answers)
        self.wfile.write(f"event: endpoint\ndata: /messages?{len(ANSWERS) - 1}\n\n".encode())
        self.wfile.flush()
        while True:
            self.wfile.write(f"event: message\ndata: {json.dumps(answers.get())}\n\n".encode())
            self.wfile.flush()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()
        if "id" in request:
            result = answer(request)
            error = {"error": {"code": -32601, "message": "no such method"}}
            ANSWERS[int(self.path.partition("?")[2])].put({"jsonrpc": "2.0", "id": request["id"], **({"result": result} if result else error)})


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
