#!/usr/bin/env python3
"""How many durable runs a second a database takes from many nodes.

usage: store_limit.py [--ptc PATH] [--nodes 1,4,16,100] [--seconds S] [--writes N]

Simulates nodes by connections of `pgbench`, which execute the statements of one run that makes --writes (2) calls: begin of the log, two
records for each further call, one for its last answer, removal of the log. (Those of `runtime/base/src/store/postgres`; a test of this file's
texts is that the runs leave nothing behind.) Each connection also renews a lease now and then. Prints one Markdown table: runs a second,
time of one run, requests, bytes of write-ahead log and most locks held at once for each number of nodes.

Database, simulated nodes and their log are on one machine, so the figure is a lower bound of what a database of its own takes. Needs
PostgreSQL and only Python's standard library."""
import argparse, pathlib, re, subprocess, tempfile, threading, time

from measure import Cluster

RECORD = "convert_to(repeat('a', 300), 'UTF8')"
APPEND = """INSERT INTO ptc_logs (log, number, record)
    SELECT 'run/' || :run, {at} + new.place - 1, new.record FROM held, unnest(ARRAY[{records}]) WITH ORDINALITY AS new (record, place)
    ON CONFLICT (log, number) DO NOTHING"""
BEGIN = """WITH held AS (INSERT INTO ptc_leases AS lease (log, holder, epoch, until)
    VALUES ('run/' || :run, 'node' || :client_id, nextval('ptc_epochs'), now() + interval '30 seconds')
    ON CONFLICT (log) DO UPDATE SET until = excluded.until WHERE lease.holder = excluded.holder
    RETURNING epoch), added AS ({append}) SELECT epoch FROM held \\gset"""
MORE = """WITH held AS (SELECT 1 FROM ptc_leases WHERE log = 'run/' || :run AND epoch = :epoch AND holder <> '' FOR UPDATE),
    added AS ({append}) SELECT 1 FROM held;"""
REMOVE = """WITH held AS (UPDATE ptc_leases SET holder = '', until = now() + interval '1 day'
    WHERE log = 'run/' || :run AND epoch = :epoch AND holder <> '' RETURNING log),
    gone AS (DELETE FROM ptc_logs USING held WHERE ptc_logs.log = held.log),
    old AS (DELETE FROM ptc_leases WHERE holder = '' AND until <= now()) SELECT 1 FROM held;"""


def script(writes):
    """The statements of one run. Its header and first call begin the log."""
    lines = ["\\set run random(1, 1000000000000000)", one_line(BEGIN.format(append=APPEND.format(at=0, records=", ".join([RECORD] * 2))))]
    at = 2
    for _ in range(writes - 1):
        lines.append(one_line(MORE.format(append=APPEND.format(at=at, records=", ".join([RECORD] * 2)))))
        at += 2
    lines.append(one_line(MORE.format(append=APPEND.format(at=at, records=RECORD))))
    return "\n".join([*lines, one_line(REMOVE)]) + "\n", writes + 2


def one_line(text):
    return re.sub(r"\s+", " ", text)


class Store(Cluster):
    """A database with the tables of ptc, without nodes."""

    def __init__(self, folder, ptc):
        self.folder, self.ptc, self.processes = pathlib.Path(folder), ptc, []
        self.database()

    def locks(self):
        return int(self.ask("SELECT count(*) FROM pg_locks WHERE locktype <> 'virtualxid' AND pid <> pg_backend_pid()"))


def measure(store, file, nodes, seconds, requests):
    bytes_before, most, over = store.load()[1], [0], threading.Event()

    def watch():
        while not over.wait(0.2):
            most[0] = max(most[0], store.locks())

    watching = threading.Thread(target=watch)
    watching.start()
    bench = ["pgbench", "-h", str(store.folder), "-U", "ptc", "-n", "-M", "prepared", "-c", str(nodes), "-j", "1", "-T", str(seconds), "-f", file]
    said = subprocess.run([*bench, "postgres"], capture_output=True, text=True, check=True).stdout
    over.set()
    watching.join()
    runs = float(re.search(r"tps = ([\d.]+)", said)[1])
    latency = float(re.search(r"latency average = ([\d.]+)", said)[1])
    done = int(re.search(r"actually processed: (\d+)", said)[1])
    wal = (store.load()[1] - bytes_before) / done
    left = store.ask("SELECT count(*) FROM ptc_logs")
    assert left == "0", f"{left} records are left"
    print(f"| {nodes} | {runs:.0f} | {latency:.1f} ms | {requests} | {wal:.0f} | {most[0]} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ptc", default="target/release/ptc")
    parser.add_argument("--nodes", default="1,4,16,100")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--writes", type=int, default=2)
    arguments = parser.parse_args()
    text, requests = script(arguments.writes)
    print("| nodes | runs a second | time of a run | requests | bytes of log a run | locks |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="store") as folder:
        store = Store(folder, str(pathlib.Path(arguments.ptc).resolve()))
        file = pathlib.Path(folder) / "run.sql"
        file.write_text(text)
        try:
            for nodes in map(int, arguments.nodes.split(",")):
                measure(store, file, nodes, arguments.seconds, requests)
        finally:
            store.end()


if __name__ == "__main__":
    main()
