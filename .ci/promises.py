#!/usr/bin/env python3
"""Each row of docs/promises.md names tests, and each of them is there.

A test is named `file::name`: the end of the path of its file without `.rs`, and the function, which has a test attribute.
Tests of a package are modules of few binaries (`autotests = false`): a file that no `mod` line names is refused, since its
tests would never run.

usage: python3 .ci/promises.py
"""

import os
import re
import sys

TABLE = os.path.join("docs", "promises.md")
SKIPPED = {"target", ".git", "node_modules"}
PACKAGES = ["compiler", "runtime", "mcp", "tests"]
TEST = re.compile(r"#\[(?:tokio::)?test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)")
NAMED = re.compile(r"`([\w/]+)::(\w+)`")


def tests():
    """Paths without `.rs` and names of all tests."""
    for folder, folders, files in os.walk("."):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in files:
            if name.endswith(".rs"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    for test in TEST.findall(file.read()):
                        yield path[:-3].replace(os.sep, "/"), test


def unreached():
    """Files in the `tests` folder of a package that no module declares."""
    for package in PACKAGES:
        for folder, _, names in os.walk(os.path.join(package, "tests")):
            for name in names:
                stem = name.removesuffix(".rs")
                if name == stem or stem == "main":
                    continue
                above, stem = os.path.split(folder) if stem == "mod" else (folder, stem)
                parents = [os.path.join(above, "main.rs"), os.path.join(above, "mod.rs"), above + ".rs"]
                texts = [open(parent, encoding="utf-8").read() for parent in parents if os.path.exists(parent)]
                if not any(re.search(rf"^(?:pub\S* )?mod {stem};", text, re.M) for text in texts):
                    yield os.path.join(folder, name)


def main():
    by_name = {}
    for path, test in tests():
        by_name.setdefault(test, []).append(path)
    breaches, rows = [f"{path}: no `mod` line names it" for path in unreached()], 0
    with open(TABLE, encoding="utf-8") as table:
        for number, line in enumerate(table, 1):
            cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
            if len(cells) != 3 or cells[0].strip() == "promise" or set(cells[0].strip()) == {"-"}:
                continue
            rows += 1
            named = NAMED.findall(cells[2])
            if not named:
                breaches.append(f"{TABLE}:{number}: no test")
            for file, test in named:
                found = [path for path in by_name.get(test, []) if path.endswith("/" + file)]
                if not found:
                    breaches.append(f"{TABLE}:{number}: there is no test {file}::{test}")
    print(f"{rows} promises")
    for breach in breaches:
        print(breach)
    return 1 if breaches or rows == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
