#!/usr/bin/env python3
"""Compares the CPU time of ptc and Lua 5.4 on the same workloads, interleaved in one run, with equal results.

usage: run.py [--rounds N] [--work w1,w3] [--ptc-bench PATH] [--with 'NAME=COMMAND' ...] [--latency]

Prints, per workload, the median over the rounds of each side's median run, and the ratio to Lua within a round, with the geometric
mean. A COMMAND given by --with gets the workload's name as its last argument, runs in a folder with issues.json, and prints
`RES <workload> <result> <ms> <ms> …`. --latency prints microseconds from source text to value instead.
Build the binary first: cargo build --profile bench -p ptc-benches --bin ptc-bench. Needs lua5.4 and lua-cjson; without cjson the JSON rows are left out."""
import argparse, json, math, os, re, shlex, shutil, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LUA = os.path.join(HERE, "workloads.lua")
WORK = {"w1": "fib27", "w2": "loop5M", "w3": "pipeline", "w4": "freq", "w5": "strings", "w6": "sort",
        "w7p": "jsonparse", "w7w": "jsonwalk", "w8": "closures"}
LABELS = ["bug", "feature", "docs", "question", "wontfix", "perf", "ui", "api", "build", "test", "security", "good first issue"]
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu".split()


def write_issues(folder, rows=20000):
    """Rows as an issue tracker's API gives them, the same in every run; 20,000 are about 5 MB."""
    state = 42

    def below(limit):
        nonlocal state
        state = state * 16807 % 2147483647
        return state % limit

    issues = []
    for number in range(rows):
        user = below(500)
        labels = []
        for _ in range(below(4)):
            kind = below(12)
            labels.append({"id": 1000 + kind, "name": LABELS[kind], "color": "%06x" % (kind * 12345)})
        issues.append({
            "id": 100000 + number, "number": number, "title": " ".join(WORDS[below(12)] for _ in range(5)),
            "state": ["open", "closed"][below(2)], "user": {"login": f"user{user}", "id": user, "site_admin": False},
            "labels": labels, "comments": below(40), "score": below(1000) / 8.0, "milestone": None,
        })
    with open(os.path.join(folder, "issues.json"), "w") as file:
        json.dump(issues, file, separators=(",", ":"))


def cell(command, folder):
    """The result and the median milliseconds of one process; None when it gives none."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder)
    for line in done.stdout.splitlines():
        if line.startswith("RES"):
            _, _, result, *times = line.split()
            return result, statistics.median(float(time) for time in times)
    return None


def compare(args, lua, sides, folder):
    median = statistics.median
    print("| workload | " + " | ".join(f"{name} ms" for name in sides) + " | "
          + " | ".join(f"{name} / Lua" for name in sides if name != "Lua 5.4") + " |")
    print("|---" * (2 * len(sides)) + "|")
    means = {name: [] for name in sides}
    for work in args.work.split(",") if args.work else WORK:
        times, ratios, answer = {name: [] for name in sides}, {name: [] for name in sides}, None
        for _ in range(args.rounds):
            got = {name: cell(command + [work], folder) for name, command in sides.items()}
            if got["Lua 5.4"] is None:
                break
            for name, result in got.items():
                if result is None:
                    continue
                answer = answer or result[0]
                if result[0] != answer:
                    raise SystemExit(f"{work}: {name} says {result[0]}, not {answer}")
                times[name].append(result[1])
                ratios[name].append(result[1] / got["Lua 5.4"][1])
        if not times["Lua 5.4"]:
            print(f"# {work}: Lua gives no result (is lua-cjson installed?)", file=sys.stderr)
            continue
        for name in sides:
            if ratios[name]:
                means[name].append(median(ratios[name]))
        shown = [f"{median(times[name]):.1f}" if times[name] else "-" for name in sides]
        shown += [f"{median(ratios[name]):.2f}" if ratios[name] else "-" for name in sides if name != "Lua 5.4"]
        print(f"| {WORK[work]} | " + " | ".join(shown) + " |")
        sys.stdout.flush()
    for name in sides:
        if name != "Lua 5.4" and means[name]:
            mean = math.exp(statistics.mean(math.log(ratio) for ratio in means[name]))
            print(f"\ngeometric mean of {name} / Lua 5.4 over {len(means[name])} workloads: {mean:.2f}")


def latency(args, lua, folder):
    """The fastest run of each program, interleaved. More rounds than for whole workloads: a round is over in a moment, and a shared
    processor is slow for seconds."""
    best = {}
    for _ in range(4 * args.rounds):
        for side, command in (("ptc", [args.ptc_bench, "latency"]),
                              ("Lua 5.4", [lua, LUA, "latency", os.path.join(HERE, "p25.lua")])):
            out = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder, check=True).stdout
            for row, micros in re.findall(r"^LAT (\S+) .* ?min=([\d.]+)", out, re.M):
                best[row, side] = min(float(micros), best.get((row, side), math.inf))
    print("| program, isolate | ptc µs | Lua 5.4 µs |\n|---|---|---|")
    for row in ("tiny_new", "tiny_reuse", "p25_new", "p25_reuse"):
        shown = [f"{best[row, side]:.1f}" if (row, side) in best else "-" for side in ("ptc", "Lua 5.4")]
        print(f"| {row} | {' | '.join(shown)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work")
    parser.add_argument("--latency", action="store_true")
    parser.add_argument("--ptc-bench", default=os.path.join(HERE, "..", "..", "target", "release", "ptc-bench"))
    parser.add_argument("--with", dest="extra", action="append", default=[])
    args = parser.parse_args()
    args.ptc_bench = os.path.abspath(args.ptc_bench)
    lua = shutil.which("lua5.4") or shutil.which("lua")
    if not lua:
        raise SystemExit("needs lua5.4")
    sides = {"Lua 5.4": [lua, LUA], "ptc": [args.ptc_bench, "workload"]}
    for extra in args.extra:
        name, command = extra.split("=", 1)
        sides[name] = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder:
        if args.latency:
            latency(args, lua, folder)
        else:
            write_issues(folder)
            compare(args, lua, sides, folder)


if __name__ == "__main__":
    main()
