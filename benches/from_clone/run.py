#!/usr/bin/env python3
"""Measures the way from `git clone` to the first answer through a server, step by step, and time and size of builds.

usage: run.py [--source PATH_OR_URL] [--builds NAME,NAME] [--ptc PATH] [--server COMMAND …]

Clones, fetches the crates, builds in a target folder of its own, then does what the README says with that binary, in a home folder of
its own: `ptc add`, `ptc doctor`, `ptc eval`. The server is the reference filesystem server of tests/third_party (installed first,
which is not counted) unless another one is given, which then has to take a folder as its last argument and have `list_directory`.
Prints two tables for docs/performance.md. --ptc leaves clone and builds out and takes that binary. Builds, all of them by default:

  release   what people install: thin link-time optimisation, symbols stripped
  before    as it was before: fat link-time optimisation, one unit, symbols kept
  bare      release without default features: no engine of Python scripts in the binary

Seconds of the clock depend on what else the machine does; processor time hardly does. Needs git, cargo, node and npm, and for each build some 3 GB
of disk, which are freed after it."""
import argparse, os, pathlib, resource, shutil, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDS = {
    "release": ([], {}),
    "before": ([], {"LTO": "fat", "CODEGEN_UNITS": "1", "STRIP": "none"}),
    "bare": (["--no-default-features"], {}),
}
PROGRAM = '(count (str/split-lines (:value (tool/call {:server "fs" :tool "list_directory" :args {:path "%s"}}))))'


def timed(command, **more):
    """Seconds of the clock and of the processor, and what it printed."""
    command = [str(part) for part in command]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **more)
    clock, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}")
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def shown(seconds):
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{int(seconds // 60)} m {int(seconds % 60):02} s"


def build(clone, name, target):
    """The binary of a build, with its times."""
    flags, profile = BUILDS[name]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    environment |= {f"CARGO_PROFILE_RELEASE_{key}": value for key, value in profile.items()}
    clock, processor, _ = timed(["cargo", "build", "--release", "--locked", "-q", *flags], cwd=clone, env=environment)
    return target / "release/ptc", clock, processor


def first_answer(ptc, server, folder, rows):
    """What the README says one does next; a row a step."""
    files, home = folder / "files", folder / "home"
    files.mkdir()
    home.mkdir()
    for number in range(3):
        (files / f"{number}.txt").write_text("text")
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    environment.pop("PTC_UPSTREAMS", None)
    run = lambda *arguments: timed([ptc, *arguments], env=environment, cwd=folder)
    rows.append(("`ptc add fs -- …/server-filesystem DIR`", run("add", "fs", "--", *server, files)[:2]))
    rows.append(("`ptc doctor`, which starts the server", run("doctor")[:2]))
    clock, processor, answer = run("eval", PROGRAM % files)
    if answer.strip() != "3":
        sys.exit(f"the answer is {answer!r} and not 3")
    rows.append(("`ptc eval '(… (tool/call {:server \"fs\" …}))'`, which starts it again", (clock, processor)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default=str(ROOT))
    parser.add_argument("--builds", default=",".join(BUILDS))
    parser.add_argument("--ptc")
    parser.add_argument("--server", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    server = given.server
    if not server:
        subprocess.run(["bash", ROOT / "tests/third_party/install.sh"], check=True, stdout=sys.stderr)
        installed = pathlib.Path(os.environ.get("PTC_THIRD_PARTY_DIR", ROOT / "target/third_party"))
        server = ["node", installed / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"]
    steps, builds = [], []
    with tempfile.TemporaryDirectory(dir=ROOT / "target", prefix="from_clone") as folder:
        folder = pathlib.Path(folder)
        if given.ptc:
            first_answer(pathlib.Path(given.ptc).resolve(), server, folder, steps)
        else:
            clone = folder / "clone"
            steps.append(("`git clone`", timed(["git", "clone", "-q", given.source, clone])[:2]))
            steps.append(("`cargo fetch --locked` (crates that are there already take no time)", timed(["cargo", "fetch", "--locked", "-q"], cwd=clone)[:2]))
            for name in given.builds.split(","):
                target = folder / f"target_{name}"
                ptc, clock, processor = build(clone, name, target)
                builds.append((name, clock, processor, ptc.stat().st_size))
                print(f"{name}: {shown(clock)}, {ptc.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
                if name == "release":
                    steps.append(("`cargo build --release`", (clock, processor)))
                    first_answer(ptc, server, folder, steps)
                shutil.rmtree(target)
    print("| step | clock | processor |\n|---|---|---|")
    for step, (clock, processor) in steps:
        print(f"| {step} | {shown(clock)} | {shown(processor)} |")
    print(f"| all of it | {shown(sum(clock for _, (clock, _) in steps))} | {shown(sum(processor for _, (_, processor) in steps))} |")
    if builds:
        print("\n| build | clock | processor | binary |\n|---|---|---|---|")
        for name, clock, processor, size in builds:
            print(f"| {name} | {shown(clock)} | {shown(processor)} | {size / 1e6:.1f} MB |")


if __name__ == "__main__":
    main()
