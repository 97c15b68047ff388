"""Calls lisp_eval over HTTP as an agent of LangChain does, and prints what came of it as JSON.

usage: langchain_client.py URL PROGRAM
"""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(url, program):
    client = MultiServerMCPClient({"ptc": {"transport": "streamable_http", "url": url}})
    [tool] = await client.get_tools()
    content = await tool.ainvoke({"program": program})
    text = content if isinstance(content, str) else "".join(block["text"] for block in content)
    json.dump({"tools": [tool.name], "text": text}, sys.stdout)


asyncio.run(main(*sys.argv[1:]))
