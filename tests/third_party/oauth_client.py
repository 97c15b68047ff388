"""Logs in at an MCP server with the Python client `mcp` 2.x, which finds the way by itself, and runs a program there.

usage: oauth_client.py URL
"""

import json
import sys
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata


class Memory:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def main(url):
    memory, arrived = Memory(), {}

    async def redirect(address):
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(address)
        arrived.update({name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()})

    async def callback():
        return AuthorizationCodeResult(code=arrived["code"], state=arrived["state"], iss=arrived["iss"])

    metadata = OAuthClientMetadata(client_name="tests", redirect_uris=["http://localhost:3030/callback"])
    provider = OAuthClientProvider(url, metadata, memory, redirect, callback)
    async with httpx2.AsyncClient(auth=provider, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), read_timeout_seconds=120) as client:
            result = await client.call_tool("lisp_eval", {"program": "[(+ 1 2) (map :name (tool/servers))]"})
    text = "".join(block.text for block in result.content if block.type == "text")
    json.dump({"text": text, "scope": memory.tokens.scope}, sys.stdout)


anyio.run(main, sys.argv[1])
