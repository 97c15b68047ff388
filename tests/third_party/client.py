"""Drives an MCP server with the Python client `mcp` 2.x, and prints what it saw as JSON.

usage: client.py MODE COMMAND|URL [ARGUMENT ...]    (MODE: auto opens with server/discover, legacy with initialize)

The variable FOLLOWED may have a program that it runs with progress.
"""

import json
import os
import sys

import anyio
from mcp import Client, StdioServerParameters


def seen(result):
    return {
        "error": bool(result.is_error),
        "text": "".join(block.text for block in result.content if block.type == "text"),
        "structured": result.structured_content,
    }


async def main(mode, command, arguments):
    report = {}
    is_remote = command.startswith("http")
    server = command if is_remote else StdioServerParameters(command=command, args=arguments)
    async with Client(server, mode=mode, read_timeout_seconds=120) as client:
        report["protocol"] = client.protocol_version
        report["server"] = client.server_info.name
        report["instructions"] = client.instructions
        tools = (await client.list_tools()).tools
        report["tools"] = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]

        async def program(text, **more):
            return seen(await client.call_tool("lisp_eval", {"program": text, **more}))

        report["value"] = await program("(reduce + (range 101))")
        report["context"] = await program("(map :name data/rows)", context={"rows": [{"name": "é"}, {"name": "b"}]})
        report["failed"] = await program("(+ 1 undefined-name)")
        report["schema"] = await program(
            "{:n 3}",
            output_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        )
        report["parallel"] = [None] * 50

        async def one(number):
            report["parallel"][number] = (await program(f"(* {number} {number})"))["text"]

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(one, number)

        # A caller that gives up; the server goes on.
        with anyio.move_on_after(0.2):
            await program("(loop [] (recur))")
        report["after_cancel"] = await program("(str \"still \" \"here\")")
        if "--upstreams-config" in arguments:
            report["upstream"] = await program(
                '(reduce + (pmap (fn [n] (:value (tool/call {:server "probe" :tool "echo" :args {:v n}}))) (range 10)))'
            )
        if followed := os.environ.get("FOLLOWED"):
            report["progress"] = []

            async def step(done, total, message):
                report["progress"].append([done, message])

            result = await client.call_tool("lisp_eval", {"program": followed}, progress_callback=step)
            # Later steps would be missing.
            report["progress"] = list(report["progress"])
            report["followed"] = seen(result)
    json.dump(report, sys.stdout)


anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
