"""A client of MCP over Streamable HTTP, of the stateless revision 2026-07-28, for the soak."""
import http.client, itertools, json, socket

STATELESS = "2026-07-28"
numbers = itertools.count(1)


class Unexpected(Exception):
    """The server answered something that no client may ever be sent."""


class Door:
    """One client: a token, and a connection that is opened when it is needed."""

    def __init__(self, port, token, timeout=60):
        self.port, self.token, self.timeout = port, token, timeout
        self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def request(self, name, arguments):
        """Headers and body of a call of a tool."""
        meta = {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}
        params = {"name": name, "arguments": arguments, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": next(numbers), "method": "tools/call", "params": params}).encode()
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": STATELESS,
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
        }
        return headers, body

    def post(self, headers, body):
        """Status and body of the answer."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        try:
            self.connection.request("POST", "/mcp", body, headers)
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except BaseException:
            self.close()
            raise

    def call(self, name, arguments):
        """Result of a call of a tool; an HTTP answer that is not 200 is no result."""
        status, body = self.post(*self.request(name, arguments))
        if status != 200:
            raise Unexpected(f"HTTP {status}: {body[:200]!r}")
        text = body.decode()
        if not text.startswith("{"):
            # A stream of events: the answer is the last message.
            text = [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]
        message = json.loads(text)
        if "result" not in message:
            raise Unexpected(f"an error of the protocol: {text[:200]}")
        return message["result"]

    def text(self, name, arguments):
        """Text of the result, and whether it is an error."""
        result = self.call(name, arguments)
        return result["content"][0]["text"], bool(result.get("isError"))

    def program(self, program, **more):
        return self.text("lisp_eval", {"program": program, **more})

    def raw(self):
        """A bare socket to the server."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=self.timeout)

    def bytes(self, name, arguments):
        """The whole request of a call, as it goes over a bare socket."""
        headers, body = self.request(name, arguments)
        headers |= {"Host": f"127.0.0.1:{self.port}", "Content-Length": str(len(body))}
        head = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
        return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode(), body
