"""Holds a session over many programs with the Python client `mcp` 2.x, and prints what it saw as JSON.

usage: session_client.py COUNT COMMAND [ARGUMENT ...]
"""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters


async def main(count, command, arguments):
    server = StdioServerParameters(command=command, args=arguments)
    async with Client(server, read_timeout_seconds=120) as client:

        async def call(tool, **arguments):
            return await client.call_tool(tool, arguments)

        tools = [tool.name for tool in (await client.list_tools()).tools]
        session = (await call("lisp_session_start", title="held")).structured_content["session_id"]

        async def program(text):
            result = await call("lisp_session_eval", session_id=session, program=text)
            return "".join(block.text for block in result.content if block.type == "text")

        await program("(def total 0) (def seen [])")
        texts = []
        for number in range(count):
            texts.append(
                await program(
                    f'(def last-one (:value (tool/call {{:server "probe" :tool "echo" :args {{:v {number}}}}})))'
                    "(def seen (conj seen last-one)) (def total (+ total last-one))"
                    "(when (= last-one 25) (fail :not-this)) total"
                )
            )
        report = {
            "tools": tools,
            "texts": texts,
            "total": await program("[total (count seen) (last seen)]"),
            "session": (await call("lisp_session_inspect", session_id=session)).structured_content,
            "debug": (await call("lisp_debug", op="stats")).structured_content,
            "recent": (await call("lisp_debug", op="recent", limit=3)).structured_content,
            "closed": (await call("lisp_session_close", session_id=session)).structured_content,
            "after": (await call("lisp_session_eval", session_id=session, program="total")).structured_content,
        }
    json.dump(report, sys.stdout)


anyio.run(main, int(sys.argv[1]), sys.argv[2], sys.argv[3:])
