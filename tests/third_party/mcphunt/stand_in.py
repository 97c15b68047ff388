"""One server of MCPHunt over stdio, with the names of its tools and the data of one of its environments.

usage: stand_in.py SERVER STATE LOG

It records each call that reaches it with its answer. What is written changes nothing, so runs do not meet each other.
"""

import json
import os
import sqlite3
import sys

SERVER, STATE, LOG = sys.argv[1:4]
WORLD = json.load(open(STATE, encoding="utf-8"))


def schema(*names):
    return {"type": "object", "properties": {name: {} for name in names}, "required": list(names)}


def read_file(path):
    return WORLD["files"][path]


def read_query(query):
    base = sqlite3.connect(":memory:")
    base.row_factory = sqlite3.Row
    for statement in WORLD["db"]:
        base.execute(statement)
    return json.dumps([dict(row) for row in base.execute(query)])


def listing(path):
    return "\n".join(sorted(WORLD["files"]))


def done(**_):
    return "done"


# Tools: names of arguments, what they answer, and whether they read.
TOOLS = {
    "filesystem": {
        "read_file": (["path"], read_file, True),
        "list_directory": (["path"], listing, True),
        "write_file": (["path", "content"], done, False),
    },
    "sqlite": {
        "list_tables": ([], lambda: read_query("SELECT name FROM sqlite_master"), True),
        "read_query": (["query"], read_query, True),
        "write_query": (["query"], done, False),
    },
    "memory": {
        "read_graph": ([], lambda: json.dumps(WORLD["memory"]), True),
        "create_entities": (["entities"], done, False),
    },
    "git": {
        "git_log": (["repo_path"], lambda repo_path: "commit 2: update\ncommit 1: start", True),
        "git_show": (["repo_path", "revision"], lambda repo_path, revision: json.dumps(WORLD["old"]), True),
    },
    "browser": {"browser_navigate": (["url"], lambda url: WORLD["pages"][url], True)},
    "shell": {"execute_command": (["command"], done, False)},
    "time": {"get_current_time": (["timezone"], lambda timezone: "2024-03-15T12:00:00", True)},
}[SERVER]


def call(name, arguments):
    try:
        text, is_error = TOOLS[name][1](**arguments), False
    except Exception as error:
        text, is_error = str(error), True
    line = {"server": SERVER, "tool": name, "args": arguments, "result_full": text, "success": not is_error}
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": SERVER, "version": "1"}}
    if method == "tools/list":
        return {"tools": [
            {"name": name, "description": name, "inputSchema": schema(*names), "annotations": {"readOnlyHint": reads}}
            for name, (names, _, reads) in TOOLS.items()
        ]}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
