#!/usr/bin/env python3
"""Seed corpora and the dictionary of the fuzz targets.

    fuzz/seeds.py collect   gathers programs from tests and builtin examples into seeds/programs.jsonl,
                            and their names into ptc.dict
    fuzz/seeds.py expand    writes each line of seeds/*.jsonl as a file of corpus/<target>/

seeds/json.jsonl and seeds/regex.jsonl are written by hand.
"""

import hashlib
import json
import pathlib
import re
import sys

FUZZ = pathlib.Path(__file__).resolve().parent
ROOT = FUZZ.parent
TARGETS = {
    "programs": ["lex", "parse", "compile", "run"],
    "json": ["json_decode"],
    "regex": ["regex_translate"],
}
# Longer programs make slow inputs; every feature has a short program.
LONGEST = 400
RUST_STRING = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|r#"(.*?)"#)', re.S)
SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "\\": "\\", "'": "'"}
TOKENS = [
    "(", ")", "[", "]", "{", "}", "#{", "#(", '#"', '"', "'", "#'", "%", "%2", "%&", "##NaN", "##Inf", "##-Inf",
    ":keys", ":strs", ":as", ":or", ":when", ":while", ":let", ":else", ":>>", "& ", "nil", "true", "false",
    "data/rows", "data/text", "data/n", "data/nested", "tool/call", "tool/x", "\\newline", "\\space", "1e308", "-0.0",
    "9223372036854775807", "-9223372036854775808", "9007199254740993", " ", "\n", "; ",
]


def unescape(text):
    text = re.sub(r"\\\n\s*", "", text)
    text = re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda m: chr(int(m[1], 16)), text)
    return re.sub(r"\\(.)", lambda m: SIMPLE_ESCAPES.get(m[1], m[0]), text)


def rust_programs(path):
    for plain, raw in RUST_STRING.findall(path.read_text()):
        text = raw or unescape(plain)
        if text.startswith("(") and text.rstrip().endswith(")") and "{{" not in text and "…" not in text:
            yield text.strip()


def collect():
    programs = []
    for path in sorted((ROOT / "tests/conformance").glob("*.jsonl")):
        programs += [json.loads(line)["program"] for line in path.read_text().splitlines()]
    for pattern in ["vm/src/builtins/**/*.rs", "tests/tests/language/suspension.rs", "tests/tests/language/small_stack.rs"]:
        for path in sorted(ROOT.glob(pattern)):
            programs += rust_programs(path)
    seeds = sorted({program for program in programs if len(program) <= LONGEST})
    write_lines(FUZZ / "seeds/programs.jsonl", [json.dumps(seed) for seed in seeds])
    names = {name for seed in seeds for name in re.findall(r"[(#' ]([A-Za-z*<>=+/.?!%-][^\s()\[\]{}\",;'`@~^]*)", seed)}
    special = re.findall(r'^    [A-Z]\w+ "([^"\s]+)" (?:true|false)', (ROOT / "compiler/src/names/special.rs").read_text(), re.M)
    names = {name for name in names if len(name) > 1 and name.isascii()} | set(special)
    quote = lambda text: '"%s"' % "".join(
        c if " " <= c <= "~" and c not in '"\\' else "\\x%02x" % ord(c) for c in text)
    rows = [quote(token) for token in TOKENS] + [quote("(" + name + " ") for name in sorted(names)]
    write_lines(FUZZ / "ptc.dict", rows)
    print(f"{len(seeds)} programs, {len(rows)} dictionary rows")


def write_lines(path, lines):
    path.write_text("".join(line + "\n" for line in lines))


def expand():
    for name, targets in TARGETS.items():
        seeds = [json.loads(line) for line in (FUZZ / f"seeds/{name}.jsonl").read_text().splitlines()]
        for target in targets:
            folder = FUZZ / "corpus" / target
            folder.mkdir(parents=True, exist_ok=True)
            for seed in seeds:
                data = seed.encode()
                (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)
        print(f"{len(seeds)} seeds for {', '.join(targets)}")


if __name__ == "__main__":
    {"collect": collect, "expand": expand}[sys.argv[1]]()
