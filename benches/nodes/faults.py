#!/usr/bin/env python3
"""What clients of nodes see when the database of the nodes fails.

usage: faults.py [--ptc PATH] [--only restart,failover,full,stands,slow] [--nodes N] [--clients N] [--seconds S]

Starts PostgreSQL, nginx and nodes as measure.py does. --clients (24) clients call programs for --seconds (20), each a read and then a write with
a key of its own; a third of the time in, the database fails:

- restart: it is stopped as by a crash, and started again after two seconds.
- failover: a synchronous standby is promoted two seconds after the primary was killed; the address of the state names both.
- full: its disk has no room for three seconds (a file system in memory; needs root).
- stands: its processes stand still for five seconds: connections are accepted, and there is no answer.
- slow: all the time, each message to it takes 200 ms longer.

Prints one Markdown table: answers of reads and their p99, writes that were made and the longest of them, refused (`:state_unavailable`) or in doubt
(`:outcome_unknown`), requests without an answer, writes that were answered and not made (lost), and keys that were written twice.
Needs PostgreSQL and nginx, and only Python's standard library."""
import argparse, asyncio, collections, os, pathlib, shutil, signal, subprocess, sys, tempfile, threading, time

from measure import Client, Cluster, as_nobody

PARTS = ("restart", "failover", "full", "stands", "slow")
POLICY = 'default = { read = "allow", write = "allow", destructive = "allow" }\n[servers.up]\ntrust = "annotations"\n'
DELAY = 0.2


class FaultyCluster(Cluster):
    """Nodes with a database that fails in one of the ways."""

    def __init__(self, fault, *arguments):
        self.fault = fault
        super().__init__(*arguments, policy=POLICY, lease="10s")

    def database(self):
        self.binaries = pathlib.Path(shutil.which("initdb") or sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))[-1]).resolve().parent
        self.quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self.folder, **as_nobody(self.folder)}
        self.data = self.folder / "database"
        if self.fault == "full":
            self.data.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m,mode=700,uid=65534,gid=65534", "tmpfs", self.data], check=True)
        subprocess.run([self.binaries / "initdb", "--username=ptc", "--auth=trust", "--pgdata", self.data], check=True, **self.quiet)
        self.server = self.run(self.data, 7390)
        self.url = "postgres://ptc@127.0.0.1:7390/postgres"
        if self.fault == "failover":
            self.replicate()
        if self.fault == "slow":
            threading.Thread(target=lambda: asyncio.run(delayed(7391, 7390)), daemon=True).start()
            self.url = "postgres://ptc@127.0.0.1:7391/postgres"
        while subprocess.run([self.ptc, "runs", "--state", self.url], capture_output=True).returncode:
            time.sleep(0.1)

    def run(self, data, port, *settings):
        command = [self.binaries / "postgres", "-D", data, "-k", self.folder, "-p", str(port), "-c", "max_connections=100", *settings]
        server = subprocess.Popen(command, **self.quiet)
        while subprocess.run([self.binaries / "pg_isready", "-h", "127.0.0.1", "-p", str(port)], **self.quiet).returncode:
            time.sleep(0.05)
        return server

    def replicate(self):
        copy = self.folder / "standby"
        backup = [self.binaries / "pg_basebackup", "-h", "127.0.0.1", "-p", "7390", "-U", "ptc", "-D", copy, "-R", "-c", "fast"]
        subprocess.run(backup, check=True, **self.quiet)
        self.standby = self.run(copy, 7392)
        psql = [self.binaries / "psql", "-h", "127.0.0.1", "-p", "7390", "-U", "ptc", "postgres", "-c"]
        for statement in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
            subprocess.run([*psql, statement], check=True, **self.quiet)
        self.url = "postgres://ptc@127.0.0.1:7390,127.0.0.1:7392/postgres?target_session_attrs=read-write"

    def fail(self):
        if self.fault == "restart":
            self.server.send_signal(signal.SIGQUIT)
            self.server.wait()
            time.sleep(2)
            self.server = self.run(self.data, 7390)
        elif self.fault == "failover":
            self.server.send_signal(signal.SIGQUIT)
            self.server.wait()
            time.sleep(2)
            subprocess.run([self.binaries / "pg_ctl", "promote", "-D", self.folder / "standby"], check=True, **self.quiet)
        elif self.fault == "stands":
            self.stand_still(signal.SIGSTOP)
            time.sleep(5)
            self.stand_still(signal.SIGCONT)
        elif self.fault == "full":
            filler = self.data / "filler"
            with open(filler, "wb") as file:
                try:
                    while True:
                        file.write(bytes(1 << 16))
                        file.flush()
                except OSError:
                    pass
            # The next segment of the write-ahead log has no room.
            psql = [self.binaries / "psql", "-h", "127.0.0.1", "-p", "7390", "-U", "ptc", "postgres", "-c", "SELECT pg_switch_wal()"]
            for _ in range(6):
                subprocess.run(psql, **self.quiet)
                time.sleep(0.5)
            filler.unlink()
            print(f"its server {'goes on' if self.server.poll() is None else 'has ended'}", file=sys.stderr)
            if self.server.poll() is not None:
                self.server = self.run(self.data, 7390)

    def stand_still(self, number):
        """Sends a signal to the server and then to its processes: when it stands still it starts no more of them."""
        self.server.send_signal(number)
        found = subprocess.run(["pgrep", "-P", str(self.server.pid)], capture_output=True, text=True)
        for process in found.stdout.split():
            os.kill(int(process), number)

    def end(self):
        super().end()
        for server in (self.server, getattr(self, "standby", None)):
            if server and server.poll() is None:
                server.send_signal(signal.SIGINT)
                server.wait()
        if self.fault == "full":
            subprocess.run(["umount", self.data])


async def delayed(port, behind):
    """A proxy whose messages to the database take longer."""

    async def copy(reader, writer, delay):
        waiting = asyncio.Queue()

        async def write():
            while (piece := await waiting.get()) is not None:
                at, data = piece
                await asyncio.sleep(max(0, at - time.monotonic()))
                writer.write(data)
                await writer.drain()
            writer.close()

        writing = asyncio.create_task(write())
        while data := await reader.read(1 << 16):
            waiting.put_nowait((time.monotonic() + delay, data))
        waiting.put_nowait(None)
        await writing

    async def pair(reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", behind)
        await asyncio.gather(copy(reader, back, DELAY), copy(there, writer, 0), return_exceptions=True)

    await (await asyncio.start_server(pair, "127.0.0.1", port)).serve_forever()


async def load(cluster, count, seconds):
    """The answers of all clients, by kind, times of reads, and the keys of writes that were answered as made."""
    until, kinds, times, longest, made = time.monotonic() + seconds, collections.Counter(), [], [0], []

    async def one(number):
        client = Client(f"c{number}", ("2025-11-25", "2026-07-28")[number % 2])
        await client.begin()
        turn = 0
        while time.monotonic() < until:
            turn += 1
            key = f"{number}-{turn}"
            for tool in ("read", "write"):
                begun = time.monotonic()
                try:
                    text = await client.value(f"(let [r (tool/call 'up/{tool} {{:k \"{key}\"}})] (if (:ok r) (:value r) (:reason r)))")
                except (AssertionError, OSError, ValueError, IndexError, asyncio.IncompleteReadError):
                    text = "none"
                if tool == "read":
                    times.append(time.monotonic() - begun)
                elif key in text:
                    made.append(key)
                    longest[0] = max(longest[0], time.monotonic() - begun)
                kinds[tool, "made" if key in text else text.split("\n")[0][:40]] += 1

    await asyncio.gather(*(one(number) for number in range(count)), later(cluster, seconds / 3))
    return kinds, sorted(times), longest[0], made


async def later(cluster, after):
    await asyncio.sleep(after)
    await asyncio.get_running_loop().run_in_executor(None, cluster.fail)


def measure(fault, arguments, folder):
    cluster = FaultyCluster(fault, folder, arguments.ptc, arguments.nodes)
    try:
        kinds, times, longest, made = asyncio.run(load(cluster, arguments.clients, arguments.seconds))
        written = collections.Counter(line.split()[1] for line in cluster.log.read_text().splitlines() if line.startswith("write "))
        twice = sum(count > 1 for count in written.values())
        lost = sum(key not in written for key in made)
        reads = {kind: count for (tool, kind), count in kinds.items() if tool == "read"}
        writes = {kind: count for (tool, kind), count in kinds.items() if tool == "write"}
        good, good_writes = reads.pop("made", 0), writes.pop("made", 0)
        say = lambda others: ", ".join(f"{count} `{kind}`" for kind, count in sorted(others.items())) or "0"
        p99 = times[len(times) * 99 // 100]
        print(f"| {fault} | {good} | {say(reads)} | {p99:.2f} s | {good_writes} | {longest:.1f} s | {say(writes)} | {lost} | {twice} |", flush=True)
    finally:
        cluster.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ptc", default="target/release/ptc")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    arguments.ptc = str(pathlib.Path(arguments.ptc).resolve())
    print("| fault | reads | other answers | p99 | writes | longest | other answers | lost | twice |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    for fault in arguments.only.split(","):
        with tempfile.TemporaryDirectory(prefix="faults") as folder:
            measure(fault, arguments, pathlib.Path(folder))


if __name__ == "__main__":
    main()
