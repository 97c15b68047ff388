# Measures other products on the work of `ptc-bench python`: rows of trivial scripts, then `name=seconds` of
# calls in flight. Arguments: scripts, calls, milliseconds of a call. A product that is not installed has no
# row.

import asyncio
import sys
import time

RUNS, CALLS, DELAY = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000


def row(name, times):
    times.sort()
    cells = [f"{times[int((len(times) - 1) * part)] * 1e3:.2f} ms" for part in (0, 0.5, 0.95)]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def timed(work):
    work()
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return times


def monty():
    import pydantic_monty

    with pydantic_monty.Monty() as pool:

        def trivial():
            with pool.checkout() as session:
                session.feed_run("1 + 1")

        row(f"pydantic-monty {pydantic_monty.__version__}, a warm pool of processes", timed(trivial))


async def code_mode():
    import fastmcp
    from fastmcp import Client, FastMCP
    from fastmcp.experimental.transforms.code_mode import CodeMode

    server = FastMCP("bench", transforms=[CodeMode(max_tool_calls=None)])

    @server.tool
    async def wait(n: int) -> int:
        await asyncio.sleep(DELAY)
        return n

    name = f"fastmcp {fastmcp.__version__} code mode"
    async with Client(server) as client:
        tools = [tool.name for tool in await client.list_tools()]
        execute = next(name for name in tools if "exec" in name)
        times = []
        for _ in range(RUNS):
            begun = time.perf_counter()
            await client.call_tool(execute, {"code": "return 1 + 1"})
            times.append(time.perf_counter() - begun)
        row(name + ", client in its process", times)
        code = f"import asyncio\nrows = await asyncio.gather(*[call_tool('wait', {{'n': n}}) for n in range({CALLS})])\nreturn len(rows)"
        best = float("inf")
        for _ in range(3):
            begun = time.perf_counter()
            await client.call_tool(execute, {"code": code})
            best = min(best, time.perf_counter() - begun)
        print(f"{name}, asyncio.gather={best}", flush=True)


for measure in (monty, lambda: asyncio.run(code_mode())):
    try:
        measure()
    except ImportError:
        pass
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
