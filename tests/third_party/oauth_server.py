#!/usr/bin/env python3
"""A server of FastMCP with its own OAuth: registration, codes with PKCE, rotated refresh tokens. Its person agrees at
once. Prints its address; access tokens live as many seconds as the argument says."""

import socket
import sys

import fastmcp.server.auth.providers.in_memory as provider
from fastmcp import FastMCP
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions

provider.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = int(sys.argv[1])
with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
address = f"http://127.0.0.1:{port}"
auth = provider.InMemoryOAuthProvider(
    base_url=address,
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["read"], default_scopes=["read"]),
    revocation_options=RevocationOptions(enabled=True),
    required_scopes=["read"],
)
server = FastMCP("hosted", auth=auth)


@server.tool
def add(a: int, b: int) -> int:
    return a + b


print(f"{address}/mcp", flush=True)
server.run(transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="error")
