#!/usr/bin/env python3
"""A small MCP server over stdio for the soak: it echoes, and fails, floods, stalls or crashes when a call asks for it."""
import json, os, sys, threading, time

ENUM = [f"e{number}" for number in range(20000)]
TOOLS = {
    "echo": {},
    "enum": {"v": {"type": "array", "items": {"enum": ENUM}}},
    "wide": {"v": {"allOf": [{"type": "object", "properties": {f"k{n}": {"type": "string"}}} for n in range(3000)]}},
    "text": {},
    "items": {},
    "deep": {},
    "fail": {},
    "slow": {},
    "garbage": {},
    "crash": {},
}
lock = threading.Lock()


def send(message):
    line = message if isinstance(message, str) else json.dumps(message, separators=(",", ":"))
    with lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def text(*texts):
    return {"content": [{"type": "text", "text": each} for each in texts]}


def call(request, name, arguments):
    """Answers one call of a tool."""
    size = int(arguments.get("n", 1))
    if name == "crash":
        os._exit(9)
    if name == "garbage":
        send("{" * size)
    if name == "slow":
        time.sleep(min(size, 10_000) / 1000)
    result = {
        "echo": lambda: text(json.dumps(arguments, sort_keys=True)),
        "text": lambda: text("x" * size),
        "items": lambda: text(*["i"] * size),
        "deep": lambda: text("[" * size + "]" * size),
        "fail": lambda: {"isError": True, **text("failed as asked")},
    }.get(name, lambda: text("ok"))()
    send({"jsonrpc": "2.0", "id": request, "result": result})


def main():
    # Attackers' upstreams stand for other machines: they do not take processor time from the server that is measured.
    os.nice(int(os.environ.get("SOAK_NICE", "0")))
    tools = [
        {"name": name, "inputSchema": {"type": "object", "properties": properties}} for name, properties in TOOLS.items()
    ]
    for line in sys.stdin:
        message = json.loads(line)
        request, params = message.get("id"), message.get("params") or {}
        if message.get("method") == "tools/call":
            arguments = (request, params["name"], params.get("arguments") or {})
            if params["name"] == "echo":
                # Answered here, as servers with an event loop do: the kernel may let a new thread wait for its next tick, and
                # the normal client's latencies should be those of the server that is measured.
                call(*arguments)
            else:
                threading.Thread(target=call, args=arguments, daemon=True).start()
        elif message.get("method") == "initialize":
            info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "soak", "version": "1"}}
            send({"jsonrpc": "2.0", "id": request, "result": info})
        elif message.get("method") == "tools/list":
            send({"jsonrpc": "2.0", "id": request, "result": {"tools": tools}})
        elif message.get("method") == "ping":
            send({"jsonrpc": "2.0", "id": request, "result": {}})
        elif request is not None and "method" in message:
            send({"jsonrpc": "2.0", "id": request, "error": {"code": -32601, "message": "unknown method"}})


if __name__ == "__main__":
    main()
