#!/usr/bin/env python3
"""Counts the instructions of the interpreter, the compiler, JSON and the request path with callgrind.

usage: run.py [--only PREFIX] [--bless] [--growth] [--binary PATH] [--ptc PATH]

Prints a table of all cases next to baseline.json and exits with 1 when one is more than 3 % off, in either direction: the commit that
moves a case explains why and writes the new baseline with --bless. Counts do not depend on what else the machine does, but on the
compiler and the profile: the baseline says which compiler made it, and `bench` is the profile (target/release/ptc is
what was built last, so build it with --profile bench as well). --growth runs the workloads, and the compiler on a long program, at 1/16, 1/4
and 1 of their size instead and exits with 1 when one grows faster than n to the 1.1. The request path is counted in the binary given by --ptc, and left out without it.
Needs valgrind."""
import argparse, importlib.util, json, math, os, re, subprocess, sys, tempfile, threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BASELINE = os.path.join(HERE, "baseline.json")
TOLERANCE = 0.03
EXPONENT = 1.1
# Small enough for a minute in all; fib grows exponentially and has a size of its own.
SMALL = {"run/fib": 20}
SHRINK = 16
# Requests sent to the server. The difference between the two counts is the cost of the request path.
REQUESTS = (1000, 9000)

spec = importlib.util.spec_from_file_location("compare", os.path.join(HERE, "..", "compare", "run.py"))
compare = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compare)


CALLGRIND = ["valgrind", "--tool=callgrind", "--cache-sim=no", "--callgrind-out-file=/dev/null"]


def build():
    """The path of the binary with the cases."""
    command = ["cargo", "build", "--profile", "bench", "--locked", "-p", "ptc-benches", "--bin", "instructions", "--message-format=json"]
    out = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    artifacts = (json.loads(line) for line in out.splitlines() if line.startswith("{"))
    return next(path for path in (a.get("executable") for a in artifacts if a.get("target", {}).get("name") == "instructions") if path)


def callgrind(options, command, folder):
    done = subprocess.run([*CALLGRIND, *options, *command], cwd=folder, capture_output=True, text=True)
    return collected(done.stderr, done.returncode, command)


def collected(log, status, command):
    found = re.search(r"Collected : (\d+)", log)
    if status or not found:
        raise SystemExit(f"{' '.join(command)}: {log[-2000:]}")
    return int(found[1])


def count(binary, case, size, folder):
    """Instructions of one case at a size. The JSON cases read a file of that many rows."""
    if case.startswith("json/") or case.startswith("run/json"):
        compare.write_issues(folder, size)
    return callgrind(["--toggle-collect=*measured*"], [binary, case, str(size)], folder)


METADATA = {"_meta": {"progressToken": 1, "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                      "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1.0"},
                      "io.modelcontextprotocol/clientCapabilities": {}}}
# Parameters of each request: merged with the tool's name, and replacing the tiny program where they have
# arguments.
PARAMETERS = {
    "request/tiny": {},
    "request/meta": METADATA,
    "request/context": {"arguments": {"program": "(+ data/a 2)", "context": {"a": 1, "name": "bench"}}, **METADATA},
    "request/nested": {
        "arguments": {
            "program": "(+ (get-in data/user [:id]) (count data/tags))",
            "context": {"user": {"id": 1, "name": "bench"}, "tags": ["a", "b"]},
        },
        **METADATA,
    },
}


def request(ptc, folder, more):
    """Instructions of one tiny lisp_eval of `ptc serve`, from its frame to its answer: the least of three measurements, since what
    its threads make of batches and wake-ups only adds to it."""
    def total(requests):
        params = {"name": "lisp_eval", "arguments": {"program": "(+ 1 2)"}, **more}
        frames = [json.dumps({"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": params}) + "\n" for at in range(requests)]
        # Fair scheduling of threads gives batches of the same size in every run.
        command = [*CALLGRIND, "--fair-sched=yes", ptc, "serve"]
        with tempfile.TemporaryFile("w+") as log:
            server = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
            # The first request goes alone, because a worker compiles and runs it. Requests sent with it would
            # take the same path in a number that depends on chance.
            server.stdin.write(frames[0])
            server.stdin.flush()
            server.stdout.readline()
            answers = threading.Thread(target=server.stdout.read)
            answers.start()
            server.stdin.writelines(frames[1:])
            server.stdin.close()
            answers.join()
            status = server.wait()
            log.seek(0)
            return collected(log.read(), status, [ptc, "serve"])

    few, many = REQUESTS
    return min((total(many) - total(few)) // (many - few) for _ in range(3))


def baseline(args, binary, cases, folder):
    with open(BASELINE) as file:
        old = json.load(file)
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if old["compiler"] != rustc and not args.bless:
        print(f"# the baseline was made with {old['compiler']}, this is {rustc}: expect differences", file=sys.stderr)
    counts, off = {}, []
    print("| case | instructions | baseline | change |\n|---|---|---|---|")
    works = [(case, lambda case=case, size=size: count(binary, case, SMALL.get(case, max(1, size // SHRINK)), folder))
             for case, size in cases.items()]
    if args.ptc:
        works += [(case, lambda more=more: request(os.path.abspath(args.ptc), folder, more)) for case, more in PARAMETERS.items()]
    for case, work in works:
        if not case.startswith(args.only):
            continue
        counts[case] = work()
        known = old["instructions"].get(case)
        change = counts[case] / known - 1 if known else None
        print(f"| {case} | {counts[case]:,} | {f'{known:,}' if known else '-'} | {f'{change:+.1%}' if known else 'new'} |", flush=True)
        if change is None or abs(change) > TOLERANCE:
            off.append(case)
    if args.bless:
        kept = {case: known for case, known in old["instructions"].items() if case in cases or case in PARAMETERS}
        with open(BASELINE, "w") as file:
            json.dump({"compiler": rustc, "instructions": {**kept, **counts}}, file, indent=1)
            file.write("\n")
    elif off:
        raise SystemExit(f"more than {TOLERANCE:.0%} off: {', '.join(off)}")


def growth(args, binary, cases, folder):
    steep = []
    print("| workload | 1/16 | 1/4 | 1 | exponent |\n|---|---|---|---|---|")
    for case, size in cases.items():
        grows = case.startswith("run/") and case != "run/fib" or case == "compile/long"
        if not grows or not case.startswith(args.only):
            continue
        sizes = [size // 16, size // 4, size]
        counts = [count(binary, case, each, folder) for each in sizes]
        # Sorting n items takes n log n steps.
        units = [each / math.log2(at) if case == "run/sort" else each for each, at in zip(counts, sizes)]
        xs, ys = [math.log(at) for at in sizes], [math.log(unit) for unit in units]
        mean_x, mean_y = sum(xs) / 3, sum(ys) / 3
        exponent = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)
        print(f"| {case} | " + " | ".join(f"{each:,}" for each in counts) + f" | {exponent:.2f} |", flush=True)
        if exponent > EXPONENT:
            steep.append(case)
    if steep:
        raise SystemExit(f"grows faster than n to the {EXPONENT}: {', '.join(steep)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--binary", help="the cases, built already")
    parser.add_argument("--ptc")
    args = parser.parse_args()
    binary = os.path.abspath(args.binary) if args.binary else build()
    listed = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True).stdout
    cases = {name: int(size) for name, size in (line.split() for line in listed.splitlines())}
    with tempfile.TemporaryDirectory() as folder:
        (growth if args.growth else baseline)(args, binary, cases, folder)


if __name__ == "__main__":
    main()
