#!/usr/bin/env python3
"""ptc against Lua 5.4: the same work, interleaved in one run, CPU time, results checked equal.

usage: run.py [--rounds N] [--ptc PATH]

Prints, per workload, the median over the rounds of each side's median run and the ratio ptc/Lua.
Build the binary first: cargo build --release."""
import argparse, os, shutil, statistics, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = {"w1": "fib(27)", "w2": "loop of 5M rounds"}


def cell(command):
    """The result and the median milliseconds of one process."""
    out = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    for line in out.splitlines():
        if line.startswith("RES "):
            _, _, result, *times = line.split()
            return result, statistics.median(float(t) for t in times)
    raise SystemExit(f"no result from {command}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ptc", default=os.path.join(HERE, "..", "..", "target", "release", "ptc"))
    args = parser.parse_args()
    lua = shutil.which("lua5.4") or shutil.which("lua")
    if not lua:
        raise SystemExit("needs lua5.4")
    print("| workload | Lua 5.4 ms | ptc ms | ratio |\n|---|---|---|---|")
    for name, title in WORK.items():
        ours, theirs, ratios = [], [], []
        for _ in range(args.rounds):
            lua_result, lua_ms = cell([lua, os.path.join(HERE, "time.lua"), name])
            ptc_result, ptc_ms = cell([args.ptc, "bench", "workload", name])
            if lua_result != ptc_result:
                raise SystemExit(f"{name}: {lua_result} is not {ptc_result}")
            ours.append(ptc_ms)
            theirs.append(lua_ms)
            ratios.append(ptc_ms / lua_ms)
        median = statistics.median
        print(f"| {title} | {median(theirs):.1f} | {median(ours):.1f} | {median(ratios):.2f} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
