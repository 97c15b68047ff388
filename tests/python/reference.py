# Runs the scripts of a file, a section each, in this interpreter: a JSON list of [name, output].

import ast
import asyncio
import contextlib
import io
import json
import sys

results = []
for section in open(sys.argv[1], encoding="utf-8").read().split("\n# ---- ")[1:]:
    name, code = section.split("\n", 1)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        body = eval(compile(code, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {"__name__": "__main__"})
        if asyncio.iscoroutine(body):
            asyncio.run(body)
    results.append([name, output.getvalue()])
print(json.dumps(results))
