"""Drives an MCP server with the client of fastmcp, and prints what it saw as JSON.

usage: fastmcp_client.py MODE COMMAND|URL [ARGUMENT ...]    (MODE: auto opens with server/discover, legacy with initialize)
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main(mode, command, arguments):
    report = {"progress": [], "log": []}

    async def progress(done, total, message):
        report["progress"].append([done, total, message])

    async def log(message):
        report["log"].append([message.level, message.logger])

    def seen(result):
        return {
            "error": result.is_error,
            "text": "".join(block.text for block in result.content if block.type == "text"),
            "structured": result.structured_content,
        }

    is_remote = command.startswith("http")
    transport = StreamableHttpTransport(command) if is_remote else StdioTransport(command=command, args=arguments)
    async with Client(transport, mode=mode, progress_handler=progress, log_handler=log, timeout=120) as client:
        report["tools"] = [tool.name for tool in await client.list_tools()]

        async def program(text, **more):
            call = {"program": text, **more}
            return seen(await client.call_tool("lisp_eval", call, raise_on_error=False))

        report["value"] = await program("(reduce + (range 101))")
        report["failed"] = await program("(+ 1 undefined-name)")
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        report["schema"] = await program("{:n 3}", output_schema=schema)
        if "--upstreams-config" in arguments:
            report["upstream"] = await program(
                '(reduce + (pmap (fn [n] (:value (tool/call {:server "probe" :tool "echo" :args {:v n}}))) (range 10)))'
            )
    json.dump(report, sys.stdout)


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
