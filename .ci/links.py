#!/usr/bin/env python3
"""Checks that what the documents point to exists.

- A path in backticks: a name with a slash that begins with a file or folder of the top, or ends like a file. Paths
  start at the top of the repository; `*` stands for any name.
- A relative link, with its heading.
- A type of Rust in backticks in ARCHITECTURE.md and docs/design, with its method: both stand in some source.

usage: python3 .ci/links.py
"""

import glob
import os
import re
import subprocess
import sys

ENDINGS = (".rs", ".py", ".md", ".toml", ".json", ".sh", ".yml")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# Longer names than 40 characters are data.
TYPE = re.compile(r"(?=.{1,40}$)[A-Z]\w*[a-z]\w*(?:::\w+)*")


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
    if re.search(r"[ $~{}<>]|::|:/", name) or "/" not in name or name.startswith(("/", "-", "../", "target/")):
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


def missing_types(file, lines, words):
    for number, line in enumerate(lines, 1):
        for name in re.findall(r"`([^`]+)`", line):
            if TYPE.fullmatch(name) and not words.issuperset(name.split("::")):
                yield f"{file}:{number}: no source has {name}"


def tracked(pattern):
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern]
    files = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    return [file for file in files if os.path.exists(file)]


def words_of_sources():
    words = set()
    for file in tracked("*.rs"):
        with open(file, encoding="utf8") as text:
            words.update(re.findall(r"\w+", text.read()))
    return words


def main():
    breaches, files, words = [], tracked("*.md"), words_of_sources()
    for file in files:
        with open(file, encoding="utf8") as text:
            lines = without_blocks(text.read())
        breaches += [*missing_paths(file, lines), *broken_links(file, lines)]
        if file == "ARCHITECTURE.md" or file.startswith("docs/design/"):
            breaches += missing_types(file, lines, words)
    print(*breaches, sep="\n", end="\n" if breaches else "")
    print(f"{len(files)} documents, {len(breaches)} dead links")
    return 1 if breaches else 0


sys.exit(main())
