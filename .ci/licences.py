#!/usr/bin/env python3
"""Checks the licence of every dependency against the list in deny.toml, with nothing but cargo and Python."""

import json
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
section = re.search(r"\[licenses\].*?allow = \[(.*?)\]", (root / "deny.toml").read_text(), re.S)
allowed = set(re.findall(r'"([^"]+)"', section.group(1)))


def may_use(expression):
    """An SPDX expression holds when some choice of OR holds in each part of AND."""
    text = expression.replace("/", " OR ")
    words = re.findall(r"\(|\)|[^\s()]+", text)
    python = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word == "WITH":
            skip = True
        elif word in ("(", ")"):
            python.append(word)
        elif word in ("AND", "OR"):
            python.append(word.lower())
        else:
            python.append(str(word in allowed))
    return eval(" ".join(python))


metadata = subprocess.run(
    ["cargo", "metadata", "--format-version", "1", "--locked"], cwd=root, check=True, capture_output=True
)
packages = [package for package in json.loads(metadata.stdout)["packages"] if package["source"]]
refused = [package for package in packages if not may_use(package["license"] or "none")]
for package in refused:
    print(f"{package['name']} {package['version']}: {package['license']} is not allowed by deny.toml")
print(f"{len(packages)} dependencies, {len(refused)} with a licence that is not allowed")
sys.exit(bool(refused))
