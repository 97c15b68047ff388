#!/usr/bin/env python3
"""What durable and recorded runs cost: writes to the disk, time of a call, replays, tests, runs that wait for a person.

usage: measure.py [--ptc PATH] [--only fsyncs,latency,replay,test,parked] [--runs N] [--parked N]

Starts real `ptc` processes in a folder of its own, with one upstream server (this file again) that has a tool `read` and a tool `write`,
and prints one Markdown table:

- fsyncs: calls of fsync and fdatasync that `strace` counts in `ptc serve --state`, for --runs (40) runs that read, write once, or write
  five times, less those of a server that is only started and ended.
- latency: time of a `lisp_eval` with one read, and with one write, with --state and without. Both servers live at the same time and take
  turns (with, without, without, with); 300 runs of each. The time of a bare fdatasync in the same folder is next to it.
- replay: time of `ptc replay` of a program with 50 calls and some 20 ms of computing, and of `ptc eval` of the same program with literals
  in place of its calls, both less the start of `ptc`.
- test: `ptc test` of 200 recordings, and how often the upstream server was started meanwhile.
- parked: --parked (1000) runs of one server that wait for `ptc approvals`: bytes on the disk and resident memory of each.

Exits with 0 when everything was measured. Only Python's standard library is needed, Linux (/proc), and strace for the first part."""
import argparse, json, os, pathlib, re, shutil, signal, statistics, subprocess, sys, tempfile, threading, time

PARTS = ("fsyncs", "latency", "replay", "test", "parked")
READ, WRITE = "(tool/call! 'up/read {:k 1})", "(tool/call! 'up/write {:k 1})"
FIVE = "(loop [i 0 sum 0] (if (= i 5) sum (recur (inc i) (+ sum (tool/call! 'up/write {:k i})))))"
LATENCIES, ROUNDS, CALLS, RECORDINGS = 300, 9, 50, 200
# A call of `work` is a 50th of some 20 ms.
WORK = "(defn work [from] (loop [i 0 sum from] (if (= i 42000) sum (recur (inc i) (mod (+ sum i) 1000003)))))"


class NotMeasured(Exception):
    """Why a part has no figure."""


# The upstream server.


def upstream(log):
    """An MCP server over stdio that answers a call with its argument. Its starts, and nothing else, are lines of a file."""
    with open(log, "a") as file:
        file.write("started\n")
    schema = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}
    hints = {"read": {"readOnlyHint": True}, "write": {"readOnlyHint": False}}
    tools = [{"name": name, "inputSchema": schema, "annotations": annotations} for name, annotations in hints.items()]
    about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "up", "version": "1"}}
    answers = {
        "initialize": lambda params: about,
        "tools/list": lambda params: {"tools": tools},
        "tools/call": lambda params: {"content": [{"type": "text", "text": str(params["arguments"]["k"])}]},
        "ping": lambda params: {},
    }
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        method = answers.get(message["method"])
        if method:
            answer["result"] = method(message.get("params") or {})
        else:
            answer["error"] = {"code": -32601, "message": "unknown method"}
        print(json.dumps(answer), flush=True)


# Processes of `ptc`.


class World:
    """A folder with a configuration, and `ptc` processes whose home it is."""

    def __init__(self, ptc, folder):
        self.ptc, self.folder, self.log = str(ptc), folder, folder / "starts"
        self.config = folder / "servers.json"
        entry = {"command": sys.executable, "args": [str(pathlib.Path(__file__).resolve()), "--upstream", str(self.log)]}
        self.config.write_text(json.dumps({"mcpServers": {"up": entry}}))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PTC_", "XDG_"))}
        self.environment = {**kept, "HOME": str(folder)}

    def command(self, *words, upstreams=True):
        return [self.ptc, *map(str, words)] + (["--upstreams-config", str(self.config)] if upstreams else [])

    def run(self, *words, upstreams=True, text="", right=0):
        """Output of a command that has to end with this exit code."""
        command = self.command(*words, upstreams=upstreams)
        done = subprocess.run(command, input=text, capture_output=True, text=True, env=self.environment)
        if done.returncode != right:
            raise NotMeasured(f"{' '.join(command)[:200]} ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}")
        return done.stdout

    def seconds(self, *words, **more):
        begun = time.perf_counter()
        self.run(*words, **more)
        return time.perf_counter() - begun

    def serve(self, *flags, before=()):
        return Server([*before, *self.command("serve", *flags)], self.environment)

    def starts(self):
        return self.log.read_text().count("\n") if self.log.exists() else 0


class Server:
    """A `ptc serve` over stdio, after its handshake."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.number = 0
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "measure", "version": "1"}}
        self.ask("initialize", params)
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})

    def ask(self, method, params):
        self.request(method, params)
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.number and "method" not in message:
                return message["result"]
        raise NotMeasured("the server has ended")

    def program(self, text, right):
        """Seconds until a program is answered, with this text in its answer."""
        begun = time.perf_counter()
        result = self.ask("tools/call", {"name": "lisp_eval", "arguments": {"program": text}})
        seconds = time.perf_counter() - begun
        answer = json.dumps(result)
        if result.get("isError") or right not in answer:
            raise NotMeasured(f"{text} is answered with {answer[:300]}")
        return seconds

    def resident(self):
        """Resident bytes."""
        status = pathlib.Path("/proc", str(self.process.pid), "status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


# The parts. Each returns rows of the table: what, figure, aim.


def fsyncs(world, options):
    """Calls of fsync and fdatasync of each run and each call that may write."""
    if not shutil.which("strace"):
        raise NotMeasured("strace is not installed")

    def counted(program, runs):
        state, report = world.folder / f"fsyncs-{time.monotonic_ns()}", world.folder / "strace"
        # A folder that is there already: the first start makes the database, which is no cost of a run.
        world.serve("--state", state).end()
        server = world.serve("--state", state, before=["strace", "-f", "-c", "-o", str(report), "-e", "trace=fsync,fdatasync"])
        try:
            server.program(READ, "1")
            for _ in range(runs):
                server.program(*program)
            server.end()
        finally:
            server.kill()
        rows = [line.split() for line in report.read_text().splitlines()]
        return sum(int(row[3]) for row in rows if row and row[-1] in ("fsync", "fdatasync"))

    runs, idle = options.runs, statistics.median(counted((READ, "1"), 0) for _ in range(3))
    rows = []
    for name, program, right, calls, aim in (
        ("only reads", READ, "1", 0, "0"), ("one call that may write", WRITE, "1", 1, "1 a call"), ("five such calls", FIVE, "10", 5, "1 a call")
    ):
        extra = counted((program, right), runs) - idle
        figure = f"{extra / runs:.2f} a run" + (f", {extra / runs / calls:.2f} a call" if calls else "")
        rows.append((f"fsyncs of a run with {name} ({runs} runs; idle server: {idle})", figure, aim))
    return rows


def bare_sync(folder):
    """Median seconds of an append and fdatasync of 4 KiB."""
    with open(folder / "sync", "wb", buffering=0) as file:
        def once():
            begun = time.perf_counter()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            return time.perf_counter() - begun
        return statistics.median(once() for _ in range(100))


def latency(world, options):
    """Time of a run with --state and without, in turns."""
    servers = {True: world.serve("--state", world.folder / "latency"), False: world.serve()}
    rows = []
    try:
        for name, program in (("read", READ), ("write", WRITE)):
            times = {True: [], False: []}
            for server in servers.values():
                for _ in range(20):
                    server.program(program, "1")
            for _ in range(LATENCIES // 2):
                for durable in (True, False, False, True):
                    times[durable].append(servers[durable].program(program, "1"))
            stored, plain = (statistics.median(times[durable]) * 1000 for durable in (True, False))
            figure = f"{stored:.2f} and {plain:.2f} ms: {stored / plain:.2f} times, {stored - plain:+.2f} ms"
            rows.append((f"a run of one {name}, with `--state` and without (medians of {LATENCIES})", figure, "1.0 times" if name == "read" else ""))
        for server in servers.values():
            server.end()
    finally:
        for server in servers.values():
            server.kill()
    rows.append(("an append of 4 KiB and `fdatasync` by Python in the same folder", f"{bare_sync(world.folder) * 1000:.2f} ms", ""))
    return rows


def recordings(folder):
    return sorted(folder.glob("*.ptcrun"))


def replay(world, options):
    """Time of a replay against that of computing alone."""
    texts = {name: f"{WORK}\n(reduce (fn [sum i] (work (+ sum {call}))) 0 (range {CALLS}))" for name, call in
             (("calls", "(tool/call! 'up/read {:k i})"), ("literals", "i"))}
    for name, text in texts.items():
        (world.folder / f"{name}.ptc").write_text(text)
    folder = world.folder / "replay"
    recorded = world.run("eval", world.folder / "calls.ptc", "--record", folder)
    computed = world.run("eval", world.folder / "literals.ptc", upstreams=False)
    if recorded != computed:
        raise NotMeasured(f"calls give {recorded!r}, literals {computed!r}")
    (file,) = recordings(folder)
    commands = {"start": ("eval", "1"), "literals": ("eval", world.folder / "literals.ptc"), "replay": ("replay", file)}
    times = {name: [] for name in commands}
    for number in range(ROUNDS):
        for name in sorted(commands, reverse=number % 2 == 1):
            times[name].append(world.seconds(*commands[name], upstreams=False) * 1000)
    start, literals, replayed = (statistics.median(times[name]) for name in ("start", "literals", "replay"))
    own, again = literals - start, replayed - start
    figure = f"{again:.1f} and {own:.1f} ms: {again / own:.2f} times"
    return [(f"replay of {CALLS} calls, and its computing alone, both less the start of {start:.1f} ms (medians of {ROUNDS})", figure, "")]


def test(world, options):
    """Time of `ptc test`, and starts of servers meanwhile."""
    folder = world.folder / "recordings"
    program = lambda n: f"(+ (tool/call! 'up/read {{:k {n}}}) (tool/call! 'up/write {{:k {n}}}))"
    lines = "".join(json.dumps({"id": n, "program": program(n)}) + "\n" for n in range(RECORDINGS))
    answers = [json.loads(line) for line in world.run("batch", "--record", folder, text=lines).splitlines()]
    if [answer.get("value") for answer in answers] != [str(2 * n) for n in range(RECORDINGS)]:
        raise NotMeasured(f"a run is answered wrongly: {answers[:3]}")
    there = len(recordings(folder))
    if there != RECORDINGS:
        raise NotMeasured(f"{RECORDINGS} runs have {there} recordings")
    before = world.starts()
    # The configuration is there to be found: a replay must not even look for the server.
    world.environment["PTC_UPSTREAMS"] = str(world.config)
    try:
        seconds = statistics.median(world.seconds("test", folder, upstreams=False) for _ in range(3))
    finally:
        del world.environment["PTC_UPSTREAMS"]
    figure = f"{seconds:.2f} s, {world.starts() - before} servers started"
    return [(f"`ptc test` of {RECORDINGS} recordings of two calls (median of 3)", figure, "0 servers")]


POLICY = 'default = { read = "allow", write = "ask", destructive = "ask" }\n[servers.up]\ntrust = "annotations"\n'


def settled(measure, seconds=60):
    """The value of a measure that has not changed for two seconds."""
    last, since, end = measure(), time.monotonic(), time.monotonic() + seconds
    while time.monotonic() < min(end, since + 2):
        time.sleep(0.2)
        now = measure()
        if now != last:
            last, since = now, time.monotonic()
    return last


class Waiting:
    """A server with so many runs that have read, and wait for a person before they write."""

    PROGRAM = "(let [seen (tool/call! 'up/read {:k 7})] (tool/call! 'up/write {:k seen}))"

    def __init__(self, world, many, *flags):
        self.many, self.questions, self.answers = many, world.folder / ".local/state/ptc/approvals", []
        shutil.rmtree(self.questions, ignore_errors=True)
        policy = world.folder / "policy.toml"
        policy.write_text(POLICY)
        flags = [*flags, "--policy", policy, "--approvals", "wait", "--approval-timeout", "3h"]
        # Beyond the default of 1,024 the next run would wait for one of these to end.
        self.server = world.serve(*flags, "--max-suspended", many + 64)
        self.server.program(READ, "1")
        self.before = self.server.resident()

    def begin(self):
        """Seconds until all of them wait."""
        begun = time.monotonic()
        threading.Thread(target=lambda: self.answers.extend(self.server.process.stdout), daemon=True).start()
        for _ in range(self.many):
            self.server.request("tools/call", {"name": "lisp_eval", "arguments": {"program": self.PROGRAM}})
        seen, since = -1, begun
        while seen < self.many:
            if self.server.process.poll() is not None or self.answers:
                raise NotMeasured(f"{seen} of {self.many} runs wait; the server ended, or answered {self.answers[:1]}")
            files = os.listdir(self.questions) if self.questions.is_dir() else []
            now = sum(name.endswith(".question") for name in files)
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() > since + 60:
                raise NotMeasured(f"only {seen} of {self.many} runs wait, and none more within a minute")
            time.sleep(0.2)
        return time.monotonic() - begun

    def memory(self):
        """Resident bytes that they have added, and threads of the server."""
        status = pathlib.Path("/proc", str(self.server.process.pid), "status").read_text()
        return settled(self.server.resident) - self.before, int(re.search(r"Threads:\s+(\d+)", status)[1])


def parked(world, options):
    """What runs take that wait for a person, on the disk and in memory."""
    many, state = options.parked, world.folder / "parked"
    listed = lambda: json.loads(world.run("runs", "list", "--state", state, "--output", "json", upstreams=False))["runs"]
    size = lambda: (state / "runs.redb").stat().st_size
    stored = Waiting(world, many, "--state", state)
    try:
        empty, seconds = size(), stored.begin()
        # Before anything else is asked of the server, which would take memory of its own.
        (memory, threads), bytes_now, begun = stored.memory(), size(), time.monotonic()
        there, listing = len(listed()), time.monotonic() - begun
        if there != many:
            raise NotMeasured(f"{many} runs wait, {there} are stored")
        stored.server.process.send_signal(signal.SIGTERM)
        stored.server.process.wait(120)
    finally:
        stored.server.kill()
    left = sum(run["status"] == "interrupted" for run in listed())
    if left != many:
        raise NotMeasured(f"{left} of {many} runs are left when the server is stopped")
    plain = Waiting(world, many)
    try:
        plain.begin()
        memory_plain, _ = plain.memory()
    finally:
        plain.server.kill()
    figure = f"{memory / many:,.0f} and {memory_plain / many:,.0f} bytes"
    return [
        (f"{many:,} runs that wait for a person: state file of each", f"{(bytes_now - empty) / many:,.0f} bytes", ""),
        (f"the same: resident memory of each, with `--state` and without ({threads} threads)", figure, ""),
        ("the same: until all wait, and `ptc runs` meanwhile", f"{seconds:.1f}, {listing:.1f} s", ""),
    ]


def main():
    if sys.argv[1:2] == ["--upstream"]:
        return upstream(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptc", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "target/release/ptc")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas")
    parser.add_argument("--runs", type=int, default=40, help="runs of which fsyncs are counted")
    parser.add_argument("--parked", type=int, default=1000, help="runs that wait for a person")
    options = parser.parse_args()
    only = options.only.split(",")
    if wrong := set(only) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(wrong))}")
    rows, failures = [], []
    with tempfile.TemporaryDirectory(prefix="ptc-durable-") as folder:
        world = World(options.ptc.resolve(), pathlib.Path(folder))
        for name in (name for name in PARTS if name in only):
            try:
                rows += globals()[name](world, options)
            except (NotMeasured, OSError, subprocess.SubprocessError) as problem:
                failures.append(f"{name}: {problem}")
            print(f"{name} done", file=sys.stderr, flush=True)
    print("| what | figure | aim |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print("".join(f"\nnot measured: {failure}" for failure in failures), end="\n" if failures else "")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
