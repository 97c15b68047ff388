#!/usr/bin/env python3
"""A soak: one server under mixed attack for as long as you like, next to one normal client that checks each of its answers.

usage: run.py [--ptc PATH] [--minutes N] [--attackers N] [--quiet SECONDS] [--idle SECONDS] [--seed N] [--only KIND,KIND] [--log FILE]

Starts `ptc serve --http` in a folder of its own, with sessions, a store of preludes, Python scripts, two tokens (the normal client's, the
attackers') and two upstream servers (upstream.py; the attackers ask theirs to crash). The normal client is alone for --quiet seconds (60);
then --attackers threads (6) send one attack after another (attacks.py) until --minutes (60) are over; then nobody asks anything for
--idle seconds (30). Attackers and their upstream have a lower priority of processor time (nice 19): they stand for other machines.

Prints a line a minute, and at the end: resident memory, threads and descriptors of the server at its start, after the quiet time, at most,
and after idling; wrong answers of the normal client; its latencies, quiet and under attack; attacks by kind and by how they ended. Exits
with 1 when an answer was wrong or not of the protocol, when the server died or panicked, when more than 20 MB stayed, or when the p99 of
a question is more than three times its quiet value. Only Python's standard library is needed, and Linux (/proc)."""
import argparse, collections, hashlib, json, multiprocessing, os, pathlib, random, re, subprocess, sys, tempfile, threading, time

import attacks
from door import Door, Unexpected

HERE = pathlib.Path(__file__).resolve().parent
STAYS_MB, SLOWER = 20, 3
NORMAL, HOSTILE = "token-of-the-normal-client", "token-of-the-attackers"


class Server:
    """The server under attack, in a folder of its own."""

    def __init__(self, ptc, folder):
        upstream = lambda nice: {"command": sys.executable, "args": [str(HERE / "upstream.py")], "env": {"SOAK_NICE": str(nice)}}
        config, tokens = folder / "servers.json", folder / "tokens.toml"
        config.write_text(json.dumps({"mcpServers": {"good": upstream(0), "bad": upstream(19)}}))
        tokens.write_text("".join(f'[t{n}]\nsha256 = "{hashlib.sha256(t.encode()).hexdigest()}"\n' for n, t in enumerate((NORMAL, HOSTILE))))
        tokens.chmod(0o600)
        flags = ["--http", "127.0.0.1:0", "--http-tokens", tokens, "--upstreams-config", config, "--tools", "lisp_eval,execute_program"]
        flags += ["--sessions", "--prelude-store", folder / "store.redb", "--sessions-allow-prelude-write", "--session-ttl", "86400s"]
        flags += ["--timeout", "2s", "--python-timeout", "3s"]
        self.log = folder / "log"
        environment = {**os.environ, "HOME": str(folder)}
        with self.log.open("w") as log:
            self.process = subprocess.Popen([ptc, "serve", *map(str, flags)], stderr=log, stdin=subprocess.DEVNULL, env=environment)
        self.port = self.listening()

    def listening(self):
        for _ in range(300):
            found = re.search(r"listening at http://[^:]+:(\d+)", self.log.read_text())
            if found:
                return int(found[1])
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit(f"the server does not listen:\n{self.log.read_text()}")

    def state(self):
        """Resident megabytes, threads, descriptors."""
        base = pathlib.Path("/proc", str(self.process.pid))
        status = dict(line.split(":", 1) for line in (base / "status").read_text().splitlines() if ":" in line)
        return int(status["VmRSS"].split()[0]) / 1024, int(status["Threads"]), len(os.listdir(base / "fd"))

    def end(self):
        """Its exit code, if it ended before it was asked to."""
        ended = self.process.poll()
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return ended


class Normal:
    """The normal client: asks one question after another, and knows all answers."""

    def __init__(self, port):
        self.door = Door(port, NORMAL)
        self.random = random.Random(1)
        self.latencies = collections.defaultdict(list)
        self.asked, self.wrong = 0, []
        text, is_error = self.door.text("lisp_session_start", {})
        assert not is_error, text
        self.session = re.search(r"ptcs_[\w-]+", text)[0]

    def question(self):
        """Kind, tool, arguments, and the text of the answer."""
        a, b = self.random.randrange(10**6), self.random.randrange(10**6)
        program = lambda text, **more: ("lisp_eval", {"program": text, **more})
        rows = [{"id": n, "v": (n * a) % 97} for n in range(200)]
        choices = {
            "tiny": (*program(f"(+ {a} {b})"), str(a + b)),
            "sort": (*program(f"(reduce + (take 10 (sort (map (fn [i] (mod (* i {a}) 10007)) (range 5000)))))"), str(sum(sorted(i * a % 10007 for i in range(5000))[:10]))),
            "context": (*program("(reduce + (map :v data/rows))", context={"rows": rows}), str(sum(row["v"] for row in rows))),
            "call": (*program(f'(:a (:value (tool/call {{:server "good" :tool "echo" :args {{:a {a}}}}})))'), str(a)),
            "pmap": (*program(f'(reduce + (pmap (fn [i] (:a (:value (tool/call {{:server "good" :tool "echo" :args {{:a (+ i {a})}}}})))) (range 8)))'), str(8 * a + 28)),
            "session": ("lisp_session_eval", {"session_id": self.session, "program": f"(do (def n {a}) (+ n {b}))"}, str(a + b)),
            "script": ("execute_program", {"code": f"print({a} * {b})"}, str(a * b)),
        }
        kind = self.random.choice(list(choices))
        return kind, *choices[kind]

    def ask(self):
        kind, tool, arguments, right = self.question()
        begun = time.monotonic()
        try:
            text, is_error = self.door.text(tool, arguments)
            is_right = not is_error and re.search(rf"(?<!\d){right}(?!\d)", text)
        except (OSError, Unexpected, ValueError) as problem:
            text, is_right = repr(problem), False
        self.latencies[kind].append(time.monotonic() - begun)
        self.asked += 1
        if not is_right:
            self.wrong.append(f"{kind}: {right} expected, answered {text[:300]!r}")

    def take_latencies(self):
        taken, self.latencies = self.latencies, collections.defaultdict(list)
        return taken


def attack(port, seed, kinds, counts, stop):
    """One attacker: one attack after another, which it counts."""
    random.seed(seed)
    weights = [1 if kind in attacks.RARE else 4 for kind in kinds]
    while not stop.is_set():
        kind = random.choices(kinds, weights)[0]
        door = Door(port, HOSTILE, timeout=30)
        try:
            ended = attacks.ATTACKS[kind](door)
        except Unexpected as problem:
            # Too much, too busy, and refused are answers too; a fault of the server is none.
            ended = "refused" if re.match(r"HTTP (4|503)", str(problem)) else f"UNEXPECTED {problem}"
        except TimeoutError:
            ended = "UNEXPECTED no answer within 30 s"
        except OSError:
            ended = "closed"
        except Exception as problem:
            ended = f"UNEXPECTED {problem!r}"
        finally:
            door.close()
        counts.put((kind, ended))


def attackers(port, seed, kinds, number, counts, stop):
    """The process of the attackers."""
    os.nice(19)
    threads = [threading.Thread(target=attack, args=(port, seed + n, kinds, counts, stop)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1000 if values else float("nan")


class Soak:
    def __init__(self, options, server):
        self.options, self.server = options, server
        self.states = {"start": server.state()}
        self.peak = 0
        self.counts = collections.defaultdict(collections.Counter)
        self.normal = Normal(server.port)

    def sample(self):
        state = self.server.state()
        if state[0] > self.peak:
            self.peak, self.states["at most"] = state[0], state
        return state

    def ask_for(self, seconds, each_minute=lambda: None):
        """The normal client asks for so long, with pauses as people and models make them."""
        end = minute = time.monotonic() + seconds
        minute -= seconds - 60
        while time.monotonic() < end and self.server.process.poll() is None:
            self.normal.ask()
            self.sample()
            time.sleep(0.02)
            if time.monotonic() > minute:
                minute += 60
                each_minute()
        return self.normal.take_latencies()

    def drain(self, counts):
        while not counts.empty():
            kind, ended = counts.get()
            self.counts[kind][ended] += 1

    def run(self):
        quiet = self.ask_for(self.options.quiet)
        self.states["after the quiet time"] = self.sample()
        counts, stop = multiprocessing.Queue(), multiprocessing.Event()
        kinds = self.options.only.split(",") if self.options.only else sorted(attacks.ATTACKS)
        arguments = (self.server.port, self.options.seed, kinds, self.options.attackers, counts, stop)
        process = multiprocessing.Process(target=attackers, args=arguments)
        process.start()
        begun = time.monotonic()

        def minute():
            self.drain(counts)
            megabytes, threads, descriptors = self.sample()
            number = sum(sum(counter.values()) for counter in self.counts.values())
            print(f"{(time.monotonic() - begun) / 60:4.0f} min: {number} attacks, {self.normal.asked} questions, {len(self.normal.wrong)} wrong, "
                  f"{megabytes:.0f} MB, {threads} threads, {descriptors} descriptors", flush=True)

        loaded = self.ask_for(self.options.minutes * 60, minute)
        stop.set()
        # The queue is emptied while the attackers end, or their process could not.
        while process.is_alive():
            self.drain(counts)
            time.sleep(0.1)
        self.drain(counts)
        if self.server.process.poll() is None:
            self.normal.door.close()
            time.sleep(self.options.idle)
            self.states[f"after {self.options.idle} s idle"] = self.server.state()
        return self.report(quiet, loaded)

    def report(self, quiet, loaded):
        failures = []
        print("\n| server | resident MB | threads | descriptors |\n|---|---|---|---|")
        for name, (megabytes, threads, descriptors) in self.states.items():
            print(f"| {name} | {megabytes:.1f} | {threads} | {descriptors} |")
        stays = list(self.states.values())[-1][0] - self.states["after the quiet time"][0]
        print(f"\n{stays:+.1f} MB stayed since the quiet time, {list(self.states.values())[-1][0] - self.states['start'][0]:+.1f} MB since the start")
        if stays > STAYS_MB:
            failures.append(f"{stays:.1f} MB stayed")
        print("\n| question | quiet: number | p50 ms | p99 ms | attacked: number | p50 ms | p99 ms | p99 / quiet |\n|---|---|---|---|---|---|---|---|")
        everything = {"all": (sum(quiet.values(), []), sum(loaded.values(), []))}
        for kind, (before, after) in {**{kind: (quiet[kind], loaded[kind]) for kind in sorted(quiet)}, **everything}.items():
            ratio = percentile(after, 0.99) / percentile(before, 0.99)
            print(f"| {kind} | {len(before)} | {percentile(before, 0.5):.1f} | {percentile(before, 0.99):.1f} | {len(after)} | "
                  f"{percentile(after, 0.5):.1f} | {percentile(after, 0.99):.1f} | {ratio:.1f} |")
            if ratio > SLOWER:
                failures.append(f"p99 of {kind} is {ratio:.1f} times its quiet value")
        print("\n| attack | number | ended |\n|---|---|---|")
        for kind, counter in sorted(self.counts.items()):
            shown = ", ".join(f"{ended} {number}" for ended, number in counter.most_common() if not ended.startswith("UNEXPECTED"))
            print(f"| {kind} | {sum(counter.values())} | {shown} |")
            failures += [f"{kind}: {ended} ({number} times)" for ended, number in counter.items() if ended.startswith("UNEXPECTED")]
        print(f"\n{sum(sum(c.values()) for c in self.counts.values())} attacks; {self.normal.asked} questions, {len(self.normal.wrong)} answered wrongly")
        failures += [f"wrong answer: {wrong}" for wrong in self.normal.wrong[:20]]
        return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptc", default=HERE.parents[1] / "target/release/ptc")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--attackers", type=int, default=6)
    parser.add_argument("--quiet", type=int, default=60)
    parser.add_argument("--idle", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="kinds of attacks, with commas")
    parser.add_argument("--log", help="keeps the log of the server here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ptc-soak-") as folder:
        server = Server(options.ptc, pathlib.Path(folder))
        try:
            failures = Soak(options, server).run()
        finally:
            ended = server.end()
            log = server.log.read_text(errors="replace")
            if options.log:
                pathlib.Path(options.log).write_text(log)
    if ended is not None:
        failures.append(f"the server ended by itself, with {ended}:\n{log[-2000:]}")
    failures += [f"log: {line}" for line in log.splitlines() if "panicked" in line][:20]
    print("\nPASSED" if not failures else "\nFAILED\n" + "\n".join(failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
