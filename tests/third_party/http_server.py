"""A fastmcp server over HTTP: http_server.py http|stateless-http|sse PORT."""

import sys

from fastmcp import FastMCP

server = FastMCP("fast")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


transport, port = sys.argv[1], int(sys.argv[2])
options = {"stateless_http": True} if transport == "stateless-http" else {}
transport = "http" if transport == "stateless-http" else transport
server.run(transport=transport, host="127.0.0.1", port=port, show_banner=False, **options)
