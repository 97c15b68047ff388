"""Has an MCP server run Python scripts, with the Python client `mcp` 2.x, and prints its answers as JSON.

usage: script_client.py MODE COMMAND [ARGUMENT ...] < SCRIPTS    (MODE: auto or legacy; SCRIPTS: a JSON list)
"""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters


async def main(mode, command, arguments):
    server = StdioServerParameters(command=command, args=arguments)
    async with Client(server, mode=mode, read_timeout_seconds=120) as client:
        report = {"tools": [tool.name for tool in (await client.list_tools()).tools], "answers": []}
        for code in json.load(sys.stdin):
            result = await client.call_tool("execute_program", {"code": code})
            report["answers"].append({"error": bool(result.is_error), "text": result.content[0].text})
    json.dump(report, sys.stdout)


anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
