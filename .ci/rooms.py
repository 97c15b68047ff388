#!/usr/bin/env python3
"""Checks how the crates are divided, and prints it.

A *room* is a top-level module of a crate. What is checked:

- imports between the rooms of a crate run one way: no circles,
- imports between crates run one way (CRATES, from top to bottom),
- a folder holds few source files, a file is one idea,
- docs/design/rooms.md shows the picture that is printed.

The print shows the rooms of each crate in layers: a room imports only rooms below it. A line names the
rooms that a room imports, without those that it also reaches through another one.

Paths are read from the text (`crate::`, `super::`, names that lib.rs re-exports); tests are left out.

usage: python3 .ci/rooms.py [CRATE ...]
"""

import collections
import os
import re
import subprocess
import sys

# From top to bottom: a crate uses only crates behind it.
CRATES = [
    "benches",
    "mcp",
    "server",
    "python",
    "runtime",
    "agent",
    "engine",
    "upstream",
    "calls",
    "base",
    "compiler",
    "vm",
    "regex",
]
# Crates that are not in a folder of their name at the top.
FOLDERS = {
    "server": "mcp/server",
    "python": "runtime/python",
    "agent": "runtime/agent",
    "engine": "runtime/engine",
    "upstream": "runtime/upstream",
    "calls": "runtime/calls",
    "base": "runtime/base",
    "regex": "vm/regex",
}
PICTURE = os.path.join("docs", "design", "rooms.md")
MOST_FILES = 15
MOST_LINES = 600
ROOTS = {"lib", "main"}


def without_comments(text):
    """The text without comments and without what stands in string and character literals."""
    token = re.compile(
        r"""//[^\n]*|/\*.*?\*/|r(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\\n])'""", re.S
    )
    return token.sub(lambda found: '""' if found.group(0)[0] in "r\"" else " ", text)


def closing(text, start):
    """Where the brace at `start` ends."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def without_tests(text):
    """The text without items under `#[cfg(test)]`, and the names of test modules in files of their own."""
    modules = []
    mark = re.compile(r"#\[cfg\((?:all\()?(?:test|any\(test)[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
    while found := mark.search(text):
        rest = found.end()
        if module := re.match(r"(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", text[rest:]):
            modules.append(module.group(1))
        end = re.compile(r"[;{]").search(text, rest)
        if not end:
            return text[: found.start()], modules
        stop = end.end() if end.group() == ";" else closing(text, end.start())
        text = text[: found.start()] + text[stop:]
    return text, modules


def parts_of(group):
    """The parts of `a, b::{c, d}, e`."""
    depth, part = 0, ""
    for char in group + ",":
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            if part.strip():
                yield part.strip()
            part = ""
        else:
            part += char


def expanded(tree):
    """The single paths of a `use` tree."""
    if found := re.match(r"(?s)([\w:\s]*?)\{(.*)\}\s*$", tree):
        for part in parts_of(found.group(2)):
            yield from (found.group(1).strip() + path for path in expanded(part))
    else:
        yield re.sub(r"\s+as\s+\w+$", "", tree.strip())


def paths_in(text):
    for found in re.finditer(r"(?s)\buse\s+([^;]*);", text):
        yield from expanded(found.group(1))
    yield from re.findall(r"(?:crate|super)(?:::\w+)+", re.sub(r"(?s)\buse\s+[^;]*;", "", text))


class Crate:
    def __init__(self, name, files):
        self.name, self.root = name, f"{FOLDERS.get(name, name)}/src/"
        self.files = [file for file in files if file.startswith(self.root)]
        self.texts, tests = {}, []
        for file in self.files:
            with open(file, encoding="utf8") as source:
                text = source.read()
            self.texts[file], modules = without_tests(without_comments(text))
            tests += [self.module(file) + [module] for module in modules]
        is_test = lambda file: any(self.module(file)[: len(test)] == test for test in tests)
        self.sources = [file for file in self.files if not is_test(file)]
        self.rooms = sorted({self.module(file)[0] for file in self.sources if self.module(file)})
        self.exports = self.find_exports()
        self.arrows = collections.defaultdict(lambda: collections.defaultdict(set))
        for file in self.sources:
            self.find_imports(file)

    def module(self, file):
        """The path of the module that a file holds; empty for the root."""
        parts = file[len(self.root) :].removesuffix(".rs").split("/")
        if parts[-1] == "mod":
            parts.pop()
        return [] if parts in [[root] for root in ROOTS] else parts

    def find_exports(self):
        """The rooms of what the root re-exports."""
        exports = {}
        for root in ROOTS:
            for path in paths_in(self.texts.get(f"{self.root}{root}.rs", "")):
                parts = path.removeprefix("crate::").removeprefix("self::").split("::")
                if len(parts) > 1 and parts[0] in self.rooms:
                    exports.setdefault(parts[-1], parts[0])
        return exports

    def find_imports(self, file):
        here = self.module(file)
        if not here:
            return
        for path in paths_in(self.texts[file]):
            parts = path.split("::")
            if parts[0] == "crate":
                target = parts[1:]
            elif parts[0] == "super":
                ups = next(at for at, part in enumerate(parts + [""]) if part != "super")
                # A path that leaves only a module inside the file stays in the room as well.
                target = here[: max(len(here) - ups, 0)] + parts[ups:]
            else:
                continue
            room = target[0] if target and target[0] in self.rooms else self.exports.get((target or [""])[0])
            if room and room != here[0]:
                self.arrows[here[0]][room].add(file)

    def circles(self):
        """Rooms that reach one another."""
        reach = {room: self.reachable(room) for room in self.rooms}
        found = {frozenset(other for other in reach[room] if room in reach[other]) for room in self.rooms}
        return sorted(sorted(circle) for circle in found if circle)

    def reachable(self, room):
        seen, todo = set(), list(self.arrows[room])
        while todo:
            if (next_room := todo.pop()) not in seen:
                seen.add(next_room)
                todo += self.arrows[next_room]
        return seen

    def layers(self):
        """The layer of each room, 0 at the bottom; rooms of a circle stand together."""
        together = {room: tuple(circle) for circle in self.circles() for room in circle}
        layer = {}

        def of(room):
            group = together.get(room, (room,))
            if group not in layer:
                below = {below for member in group for below in self.arrows[member]} - set(group)
                layer[group] = max((of(room) + 1 for room in below), default=0)
            return layer[group]

        return {room: of(room) for room in self.rooms}

    def picture(self):
        layers = self.layers()
        width = max((len(room) for room in self.rooms), default=0)
        for layer in sorted(set(layers.values()), reverse=True):
            for room in self.rooms:
                if layers[room] == layer:
                    imports = set(self.arrows[room])
                    indirect = {far for near in imports for far in self.reachable(near) if near not in self.reachable(far)}
                    direct = " ".join(sorted(imports - indirect))
                    yield f"{layer:4}  {room:{width}}  {direct}".rstrip()

    def breaches(self):
        for circle in self.circles():
            yield f"{self.name}: circle of {len(circle)}: {' '.join(circle)}"
            arrows = [(len(self.arrows[a][b]), a, b) for a in circle for b in self.arrows[a] if b in circle]
            for count, a, b in sorted(arrows)[:8]:
                files = "file" if count == 1 else "files"
                yield f"    {a} -> {b} in {count} {files}, as {min(self.arrows[a][b])}"
        for folder, count in collections.Counter(map(os.path.dirname, self.files)).items():
            if count > MOST_FILES:
                yield f"{self.name}: {count} files in {folder}, more than {MOST_FILES}"

    def upward(self):
        for above in CRATES[: CRATES.index(self.name)]:
            name = re.compile(rf"\bptc_{above}::")
            yield from (f"{file} uses the crate {above}" for file in self.sources if name.search(self.texts[file]))


def main():
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.rs"]
    files = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    files = sorted({file for file in files if os.path.exists(file)})
    with open(PICTURE, encoding="utf8") as text:
        shown = text.read()
    breaches = []
    for name in sys.argv[1:] or CRATES:
        crate = Crate(name, files)
        print(f"{name}: {len(crate.rooms)} rooms, {len(crate.files)} files")
        picture = list(crate.picture())
        print(*picture, sep="\n", end="\n" if crate.rooms else "")
        if picture and "\n".join([name, *picture, ""]) not in shown:
            breaches.append(f"{PICTURE} shows another picture of {name} than this")
        breaches += [*crate.breaches(), *crate.upward()]
    for file in files:
        with open(file, encoding="utf8") as source:
            lines = sum(1 for _ in source)
        if lines > MOST_LINES:
            breaches.append(f"{file}: {lines} lines, more than {MOST_LINES}")
    if breaches:
        print("breaches:", *breaches, sep="\n  ")
    return 1 if breaches else 0


sys.exit(main())
