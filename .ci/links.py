#!/usr/bin/env python3
"""Checks that what the documents point to exists.

- A path in backticks: a name with a slash that begins with a file or folder of the top, or ends like a file. Paths
  start at the top of the repository; `*` stands for any name.
- A relative link, with its heading.

usage: python3 .ci/links.py
"""

import glob
import os
import re
import subprocess
import sys

ENDINGS = (".rs", ".py", ".md", ".toml", ".json", ".sh", ".yml")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def without_blocks(text):
    """The text without code blocks, line for line."""
    inside, lines = False, []
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        lines.append("" if inside or fence else line)
        inside ^= fence
    return lines


def is_path(name):
    """Whether a name in backticks means a file or folder of this repository."""
    if re.search(r"[ $~{}<>]|::|:/", name) or "/" not in name or name.startswith(("/", "-", "../")):
        return False
    return name.endswith(ENDINGS) or os.path.exists(name.split("/")[0])


def headings(file):
    """The anchors of a document, as GitHub makes them."""
    with open(file, encoding="utf8") as text:
        for line in without_blocks(text.read()):
            if found := re.match(r"#+\s+(.*)", line):
                title = re.sub(r"[^\w\- ]", "", found.group(1).strip().lower())
                yield title.replace(" ", "-")


def missing_paths(file, lines):
    for number, line in enumerate(lines, 1):
        for name in re.findall(r"`([^`]+)`", line):
            if is_path(name) and not glob.glob(name):
                yield f"{file}:{number}: there is no {name}"


def broken_links(file, lines):
    for number, line in enumerate(lines, 1):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(file), path)) if path else file
            if not os.path.exists(path):
                yield f"{file}:{number}: there is no {path}"
            elif anchor and path.endswith(".md") and anchor not in headings(path):
                yield f"{file}:{number}: {path} has no heading #{anchor}"


def main():
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    files = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    breaches = []
    for file in (file for file in files if os.path.exists(file)):
        with open(file, encoding="utf8") as text:
            lines = without_blocks(text.read())
        breaches += [*missing_paths(file, lines), *broken_links(file, lines)]
    print(*breaches, sep="\n", end="\n" if breaches else "")
    print(f"{len(files)} documents, {len(breaches)} dead links")
    return 1 if breaches else 0


sys.exit(main())
