#!/usr/bin/env python3
"""Checks that comments, documents and names use the words of the field.

- Few words of a private dialect stand in comments (per 1,000 comment lines) and in documents.
- Few types are named after a word with many meanings (`Place`, `Turn`, `Kept`), and few functions are named `of`.
- ARCHITECTURE.md stays a map.
- Retired names do not come back (RETIRED; each row says what to write instead).

usage: python3 .ci/words.py [--worst N]
  --worst N  also lists the N files with the most dialect words
"""

import os
import re
import subprocess
import sys

DIALECT = re.compile(r"\b(?:nobody|somebody|whoever|whomever|whom|whose|told|beside)\b", re.I)
COMMENT = re.compile(r"(?:^|\s)//[/!]?(.*)")
TYPE = re.compile(r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|trait|type)\s+(\w+)")
DECLARED = re.compile(r"\b(?:struct|enum|trait|type|const|static|fn|mod)\s+(\w+)")
# A long line of a document counts as the lines of this many characters that it would fill.
LINE = 100
MOST = {
    "dialect words in 1,000 comment lines": 5,
    "dialect words in 1,000 lines of documents": 8,
    "types named *Place*": 2,
    "types named *Turn*": 3,
    "types named *Kept*": 0,
    "functions named `of`": 20,
    "bytes of ARCHITECTURE.md": 16_000,
}

# Names that were retired, and what replaced them: nothing may be declared under them again.
RETIRED = {
    "AnswerRoom": "ResultSink",
    "Below": "ReturnAction",
    "BusyTurns": "a permit or quantum by its purpose",
    "Departure": "Piece",
    "Departures": "Port",
    "Errand": "TaskHandle",
    "GIVING_WAY": "HTTP_WORKER_NICENESS",
    "HandshakeState": "ConnectionState",
    "JobPlace": "JobPermit",
    "Membership": "QueueHandle",
    "Parcel": "PreparedCall",
    "Party": "Tenant",
    "PlaceRequest": "PermitRequest",
    "RoundSeat": "PendingRequestSlot",
    "Surroundings": "HostCallContext",
    "Tried": "BacktrackLimits",
}


def tracked(*patterns):
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    files = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({file for file in files if os.path.exists(file)})


def lines(file):
    with open(file, encoding="utf8", errors="replace") as text:
        yield from text


def main():
    comments, words, functions = 0, {}, 0
    types, retired = set(), []
    for file in tracked("*.rs"):
        for number, line in enumerate(lines(file), 1):
            if comment := COMMENT.search(line):
                comments += 1
                words[file] = words.get(file, 0) + len(DIALECT.findall(comment.group(1)))
            if declared := TYPE.match(line):
                types.add(declared.group(1))
            functions += bool(re.search(r"\bfn of\b", line))
            for name in DECLARED.findall(line.split("//")[0]):
                if name in RETIRED:
                    retired.append(f"{file}:{number}: {name} is retired: write {RETIRED[name]}")
    documents = [line for file in tracked("*.md") for line in lines(file)]
    named = lambda word: sum(word in name for name in types)
    rate = lambda hits, of: 1000 * hits / max(1, of)
    figures = dict(
        zip(
            MOST,
            [
                rate(sum(words.values()), comments),
                rate(
                    sum(len(DIALECT.findall(line)) for line in documents),
                    sum(max(1, len(line) // LINE) for line in documents),
                ),
                named("Place"),
                named("Turn"),
                named("Kept"),
                functions,
                os.path.getsize("ARCHITECTURE.md"),
            ],
        )
    )
    for name, figure in figures.items():
        print(f"{name}: {figure:.1f}".removesuffix(".0"), f"(at most {MOST[name]:,})")
    if "--worst" in sys.argv:
        worst = sorted(words, key=words.get, reverse=True)[: int(sys.argv[sys.argv.index("--worst") + 1])]
        print(*(f"{words[file]:4} {file}" for file in worst if words[file]), sep="\n")
    breaches = [f"more than {MOST[name]:,} {name}" for name, figure in figures.items() if figure > MOST[name]]
    breaches += retired
    if breaches:
        print("breaches:", *breaches, sep="\n  ")
    return 1 if breaches else 0


sys.exit(main())
