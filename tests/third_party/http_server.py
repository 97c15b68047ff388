"""A server over HTTP with the tool `add`: http_server.py fastmcp|mcp http|stateless-http|sse PORT.

`mcp` is the SDK of the interpreter, 1.x or 2.x.
"""

import sys

library, transport, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
stateless = {"stateless_http": True} if transport == "stateless-http" else {}
transport = "sse" if transport == "sse" else "streamable-http"
place = {"host": "127.0.0.1", "port": port}


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


if library == "fastmcp":
    from fastmcp import FastMCP

    server = FastMCP("fast")
    run = {"show_banner": False, **place, **stateless}
else:
    try:
        from mcp.server import MCPServer

        server = MCPServer("sdk 2")
        run = {**place, **stateless}
    except ImportError:
        from mcp.server.fastmcp import FastMCP

        server = FastMCP("sdk 1", **place, **stateless)
        run = {}
server.tool()(add)
server.run(transport=transport, **run)
