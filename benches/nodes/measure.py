#!/usr/bin/env python3
"""What several nodes of one database do behind a balancer that knows nothing of sessions.

usage: measure.py [--ptc PATH] [--only clients,killed,relay,cost] [--nodes N] [--clients N] [--tasks N]

Starts PostgreSQL (as the user `nobody` when run as root), nginx with plain round robin, and --nodes (4) processes of `ptc serve --http`
with `--state postgres://…`, each with one upstream server (this file again). Prints one Markdown table:

- clients: --clients (1000) clients, a third of each revision, all with their sessions at the same time. Each runs three programs, is asked
  for an approval and answers it, and closes its session; those of 2025-11-25 also run a task. Every request is a connection of its own, so
  it goes to any node. A client is clean if every answer was the right one.
- killed: --tasks (200) tasks of five writes each; one node is killed with SIGKILL when a third of them has begun. Lost tasks, writes that were
  done twice, and the time after which the tasks of the dead node answer again (--lease 5s).
- relay: time of `tasks/get` at the node that has the task, and at the others.
- cost: processor time of all nodes, statements and bytes of write-ahead log of the database for one run, by kind; processor time of one node
  alone for the same requests.

Exits with 0 when everything was measured. Needs PostgreSQL and nginx, and only Python's standard library."""
import argparse, asyncio, collections, json, os, pathlib, shutil, signal, statistics, subprocess, sys, tempfile, threading, time

PARTS = ("clients", "killed", "relay", "cost")
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
AT_ONCE = 48
POLICY = 'default = { read = "allow", write = "allow", destructive = "ask" }\n[servers.up]\ntrust = "annotations"\n'
APPROVED = {"action": "accept", "content": {"decision": "approve"}}
META = "io.modelcontextprotocol/"


# The upstream server.


def upstream(log):
    """An MCP server over stdio. Each call is a line of a file; `write` and `put` take 50 ms."""
    schema = {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}
    hints = {"read": {"readOnlyHint": True}, "put": {"readOnlyHint": False, "destructiveHint": False}, "write": {}}
    tools = [{"name": name, "inputSchema": schema, "annotations": annotations} for name, annotations in hints.items()]
    about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "up", "version": "1"}}
    lock = threading.Lock()

    def send(message):
        with lock:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def call(id, name, key):
        with open(log, "a") as file:
            file.write(f"{name} {key}\n")
        if name != "read":
            time.sleep(0.05)
        send({"id": id, "result": {"content": [{"type": "text", "text": json.dumps(key)}]}})

    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        id, method, params = message["id"], message["method"], message.get("params") or {}
        if method == "tools/call":
            threading.Thread(target=call, args=(id, params["name"], params["arguments"]["k"])).start()
        elif method == "initialize":
            send({"id": id, "result": about})
        else:
            send({"id": id, "result": {"tools": tools} if method == "tools/list" else {}})


# The processes.


def as_nobody(folder):
    if os.geteuid() != 0:
        return {}
    shutil.chown(folder, "nobody")
    return {"user": "nobody", "group": 65534}


class Cluster:
    def __init__(self, folder, ptc, nodes, policy=None, lease="30s"):
        self.folder, self.ptc, self.processes = pathlib.Path(folder), ptc, []
        self.log = self.folder / "log"
        self.log.touch()
        self.database()
        entry = {"command": sys.executable, "args": [__file__, "--upstream", str(self.log)]}
        (self.folder / "servers.json").write_text(json.dumps({"mcpServers": {"up": entry}}))
        self.flags = ["--upstreams-config", str(self.folder / "servers.json"), "--state", self.url, "--lease", lease, "--timeout", "60s",
                      "--upstream-call-timeout", "30s", "--max-concurrent", "8", "--http-max-sessions", "4096", "--log-level", "error"]
        if policy:
            (self.folder / "policy.toml").write_text(policy)
            self.flags += ["--policy", str(self.folder / "policy.toml")]
        self.nodes = [self.start(port) for port in range(7410, 7410 + nodes)]
        for _, port in self.nodes:
            self.wait(port)
        self.balancer()
        self.wait(7400)

    def database(self):
        data, user = self.folder / "database", as_nobody(self.folder)
        binaries = pathlib.Path(shutil.which("initdb") or sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))[-1]).resolve().parent
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self.folder, **user}
        subprocess.run([binaries / "initdb", "--username=ptc", "--auth=trust", "--pgdata", data], check=True, **quiet)
        settings = ["-c", "listen_addresses=", "-c", "max_connections=200"]
        self.processes.append(subprocess.Popen([binaries / "postgres", "-D", data, "-k", self.folder, *settings], **quiet))
        self.url = "postgres://ptc@" + str(self.folder).replace("/", "%2F") + "/postgres"
        while subprocess.run([self.ptc, "runs", "--state", self.url], capture_output=True).returncode:
            time.sleep(0.1)

    def start(self, port):
        command = [self.ptc, "serve", "--http", f"127.0.0.1:{port}", *self.flags]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process, port

    def wait(self, port):
        async def ready():
            while True:
                try:
                    if (await send(port, "GET", {}, "", path="/ready"))[0] == 200:
                        return
                except OSError:
                    pass
                await asyncio.sleep(0.05)
        asyncio.run(ready())

    def balancer(self):
        servers = "".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;" for _, port in self.nodes)
        text = f"""daemon off; pid {self.folder}/nginx.pid; error_log /dev/null; worker_processes 1; events {{ worker_connections 8192; }}
        http {{ access_log off; client_body_temp_path {self.folder}/body; proxy_temp_path {self.folder}/proxy; fastcgi_temp_path {self.folder}/f;
        uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s; upstream nodes {{ {servers} }}
        server {{ listen 127.0.0.1:7400 backlog=4096; location / {{ proxy_pass http://nodes; proxy_set_header Host localhost;
        proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 1h; }} }} }}"""
        (self.folder / "nginx.conf").write_text(text)
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        self.processes.append(subprocess.Popen([nginx, "-c", self.folder / "nginx.conf", "-e", "/dev/null"], stdout=subprocess.DEVNULL))

    def calls(self):
        return collections.Counter(self.log.read_text().splitlines())

    def seconds(self):
        """Processor time of the nodes."""
        total = 0
        for process, _ in self.nodes:
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def ask(self, statement):
        psql = [shutil.which("psql") or "psql", "-h", str(self.folder), "-U", "ptc", "-tA", "postgres", "-c", statement]
        return subprocess.run(psql, check=True, capture_output=True, text=True).stdout.strip()

    def load(self):
        """Transactions and bytes of write-ahead log so far."""
        self.ask("SELECT pg_stat_force_next_flush()")
        time.sleep(1.5)
        words = self.ask("SELECT xact_commit, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') FROM pg_stat_database WHERE datname = 'postgres'")
        return [int(word) for word in words.split("|")]

    def end(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGINT if process is self.processes[0] else signal.SIGTERM)
        for process in self.processes:
            process.wait()


# A client.


async def send(port, method, headers, body, path="/mcp", events=None):
    """One request over a connection of its own: status, headers and messages. `events` gets each message as it comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    try:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", "Accept: application/json, text/event-stream"]
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body.encode())}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
        status = int((await reader.readline()).split()[1])
        given = {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            given[name.lower()] = value.strip()
        messages, text = [], ""
        is_stream = given.get("content-type", "").startswith("text/event-stream")

        async def pieces():
            if given.get("transfer-encoding") == "chunked":
                while size := int(await reader.readline(), 16):
                    yield await reader.readexactly(size)
                    await reader.readline()
            else:
                yield await reader.readexactly(int(given.get("content-length", 0)))

        async for piece in pieces():
            text += piece.decode()
            while is_stream and "\n\n" in text:
                event, _, text = text.partition("\n\n")
                data = [line[5:] for line in event.splitlines() if line.startswith("data:")]
                if data and data[0].strip():
                    messages.append(json.loads(data[0]))
                    if events:
                        await events(messages[-1])
        if not is_stream and text.startswith("{"):
            messages.append(json.loads(text))
        return status, given, messages
    finally:
        writer.close()


class Client:
    def __init__(self, name, revision, port=7400):
        self.name, self.revision, self.port, self.id, self.headers = name, revision, port, 0, {}

    async def request(self, method, params, events=None, port=None):
        self.id += 1
        headers = {**self.headers, "MCP-Protocol-Version": self.revision} if method != "initialize" else {}
        if self.revision == "2026-07-28":
            params["_meta"] = {META + "protocolVersion": self.revision, META + "clientCapabilities": {"elicitation": {}}}
            headers |= {"Mcp-Method": method, "Mcp-Name": params.get("name", "")}
        body = json.dumps({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        status, given, messages = await send(port or self.port, "POST", headers, body, events=events)
        if status != 200 or "result" not in messages[-1]:
            raise AssertionError(f"{method}: {status} {messages}")
        return given, messages[-1]["result"]

    async def begin(self):
        if self.revision == "2026-07-28":
            return
        about = {"protocolVersion": self.revision, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}}
        given, _ = await self.request("initialize", about)
        self.headers = {"Mcp-Session-Id": given["mcp-session-id"]}
        await self.tell({"method": "notifications/initialized"})

    async def tell(self, message):
        headers = {**self.headers, "MCP-Protocol-Version": self.revision}
        status, _, _ = await send(self.port, "POST", headers, json.dumps({"jsonrpc": "2.0", **message}))
        assert status == 202, f"{message}: {status}"

    async def answer(self, message):
        if message.get("method") == "elicitation/create":
            await self.tell({"id": message["id"], "result": APPROVED})

    async def run(self, program, extra=None, port=None):
        params = {"name": "lisp_eval", "arguments": {"program": program}, **(extra or {})}
        _, result = await self.request("tools/call", params, events=self.answer, port=port)
        while result.get("resultType") == "input_required":
            answers = {name: APPROVED for name in result["inputRequests"]}
            more = {"inputResponses": answers, "requestState": result["requestState"]}
            _, result = await self.request("tools/call", {**params, **more}, port=port)
        return result

    async def value(self, program, port=None):
        return (await self.run(program, port=port))["content"][0]["text"]

    async def task(self, program, port=None):
        return (await self.run(program, {"task": {}}, port=port))["task"]["taskId"]

    async def work(self):
        for number in range(3):
            key = f"{self.name}-{number}"
            value = await self.value(f"(tool/call! 'up/read {{:k \"{key}\"}})")
            assert value == f'"{key}"', value
        value = await self.value(f"(tool/call! 'up/write {{:k \"{self.name}\"}})")
        assert value == f'"{self.name}"', value
        if self.revision == "2025-11-25":
            task = {"taskId": await self.task(f"(tool/call! 'up/put {{:k \"{self.name}\"}})")}
            while (await self.request("tasks/get", dict(task)))[1]["status"] == "working":
                await asyncio.sleep(0.05)
            value = (await self.request("tasks/result", dict(task), events=self.answer))[1]["content"][0]["text"]
            assert value == f'"{self.name}"', value
        if self.headers:
            status, _, _ = await send(self.port, "DELETE", self.headers, "")
            assert status == 204, status


async def all_of(works):
    """Runs all of these, some at a time; the faults."""
    room, faults = asyncio.Semaphore(AT_ONCE), []

    async def one(work):
        async with room:
            try:
                await work
            except Exception as fault:
                faults.append(f"{type(fault).__name__}: {fault}"[:300])

    await asyncio.gather(*map(one, works))
    return faults


# The parts.


def row(what, figure):
    print(f"| {what} | {figure} |", flush=True)


def clients(arguments, folder):
    cluster = Cluster(folder, arguments.ptc, arguments.nodes, policy=POLICY)
    try:
        every = [Client(f"c{number}", REVISIONS[number % 3]) for number in range(arguments.clients)]

        async def go():
            begun = time.monotonic()
            faults = await all_of(client.begin() for client in every)
            faults += await all_of(client.work() for client in every)
            return faults, time.monotonic() - begun

        faults, seconds = asyncio.run(go())
        writes = [count for line, count in cluster.calls().items() if line.startswith(("write", "put"))]
        for fault in faults[:5]:
            print(fault, file=sys.stderr)
        row(f"clean clients, {arguments.nodes} nodes, all revisions", f"{arguments.clients - len(faults)} of {arguments.clients} in {seconds:.0f} s")
        row("writes, and writes that were done twice", f"{len(writes)}, {sum(count > 1 for count in writes)}")
    finally:
        cluster.end()


def killed(arguments, folder):
    cluster = Cluster(folder, arguments.ptc, arguments.nodes, lease="5s")
    try:
        client = Client("killed", "2025-11-25")
        begun, states, answered_after = {}, {}, []
        dead, port = cluster.nodes[0]
        moment = []

        async def one(number):
            while True:
                keys = " ".join(f'"{number}-{write}-{len(begun)}"' for write in range(5))
                try:
                    task = await client.task(f"(mapv (fn [k] (:reason (tool/call 'up/write {{:k k}}) :fine)) [{keys}])")
                    break
                except (AssertionError, OSError, IndexError, asyncio.IncompleteReadError):
                    await asyncio.sleep(0.1)
            begun[number] = task
            if len(begun) == arguments.tasks // 3:
                dead.kill()
                moment.append(time.monotonic())
            silent = None
            while True:
                try:
                    _, state = await client.request("tasks/get", {"taskId": task})
                    if silent:
                        answered_after.append(time.monotonic() - moment[0])
                        silent = None
                    if state["status"] != "working":
                        break
                except (AssertionError, OSError, IndexError, asyncio.IncompleteReadError) as fault:
                    if "-32602" in str(fault):
                        states[number] = "unknown"
                        return
                    silent = silent or time.monotonic()
                await asyncio.sleep(0.1)
            _, result = await client.request("tasks/result", {"taskId": task})
            states[number] = result["content"][0]["text"]

        async def go():
            await client.begin()
            return await all_of(one(number) for number in range(arguments.tasks))

        faults = asyncio.run(go())
        for fault in faults[:5]:
            print(fault, file=sys.stderr)
        fine = sum(text == "[:fine :fine :fine :fine :fine]" for text in states.values())
        in_doubt = sum(text.count(":outcome_unknown") for text in states.values())
        odd = [text for text in states.values() if "unknown" == text or not text.startswith("[")]
        for text in odd[:5]:
            print(text[:300], file=sys.stderr)
        twice = sum(count > 1 for count in cluster.calls().values())
        row("tasks, one of the nodes killed under load: lost", f"{arguments.tasks - len(states) + len(odd)} of {arguments.tasks}")
        row("… of which all five writes are known to be done", fine)
        row("… writes that were on their way (`outcome_unknown`)", in_doubt)
        row("… writes that were done twice", twice)
        if answered_after:
            answered_after.sort()
            row("… tasks of the dead node answer again after (lease 5 s)", f"{statistics.median(answered_after):.1f} s, at most {answered_after[-1]:.1f} s")
    finally:
        cluster.end()


def relay(arguments, folder):
    cluster = Cluster(folder, arguments.ptc, arguments.nodes)
    try:
        client = Client("relay", "2025-11-25")
        ports = [port for _, port in cluster.nodes]

        async def go():
            await client.begin()
            task = {"taskId": await client.task("(+ 1 2)", port=ports[0])}
            times = {port: [] for port in ports[:2]}
            for _ in range(1000):
                for port in times:
                    begun = time.perf_counter()
                    await client.request("tasks/get", dict(task), port=port)
                    times[port].append(1000 * (time.perf_counter() - begun))
            return list(times.values())

        for name, times in zip(("at its node", "at another node"), asyncio.run(go())):
            times.sort()
            row(f"`tasks/get` {name}", f"{statistics.median(times):.1f} ms, p99 {times[989]:.1f} ms")
    finally:
        cluster.end()


def cost(arguments, folder):
    kinds = {
        "a program that reads": lambda client, number: client.value(f"(tool/call! 'up/read {{:k \"{number}\"}})"),
        "a program with one write": lambda client, number: client.value(f"(tool/call! 'up/put {{:k \"{number}\"}})"),
        "a session of a client (begin, end)": session_of,
        "a task with one write": task_of,
    }
    counts = {}
    for nodes in (arguments.nodes, 1):
        with tempfile.TemporaryDirectory(prefix="pn") as own:
            cluster = Cluster(own, arguments.ptc, nodes)
            try:
                for kind, work in kinds.items():
                    counts[kind, nodes] = cost_of(cluster, work)
            finally:
                cluster.end()
    for kind in kinds:
        cpu, transactions, wal = counts[kind, arguments.nodes]
        alone = counts[kind, 1][0]
        row(f"{kind}: transactions, write-ahead log", f"{transactions:.1f}, {wal / 1024:.1f} KB")
        row(f"… processor time of {arguments.nodes} nodes, of one", f"{cpu:.2f} ms, {alone:.2f} ms: {cpu / alone:.2f} times")


async def session_of(_, number):
    client = Client(f"s{number}", "2025-11-25")
    await client.begin()
    await send(client.port, "DELETE", client.headers, "")


async def task_of(client, number):
    task = {"taskId": await client.task(f"(tool/call! 'up/put {{:k \"t{number}\"}})")}
    await client.request("tasks/result", task)


def cost_of(cluster, work, count=2000):
    client = Client("cost", "2025-11-25")

    async def go(numbers):
        faults = await all_of(work(client, number) for number in numbers)
        assert not faults, faults[:3]

    asyncio.run(client.begin())
    asyncio.run(go(range(60)))
    transactions, wal = cluster.load()
    cpu = cluster.seconds()
    asyncio.run(go(range(60, 60 + count)))
    spent = cluster.seconds() - cpu
    after, wal_after = cluster.load()
    return 1000 * spent / count, (after - transactions) / count, (wal_after - wal) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ptc", default="target/release/ptc")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--upstream")
    arguments = parser.parse_args()
    if arguments.upstream:
        return upstream(arguments.upstream)
    arguments.ptc = str(pathlib.Path(arguments.ptc).resolve())
    print("| what | figure |\n|---|---|", flush=True)
    for part in arguments.only.split(","):
        with tempfile.TemporaryDirectory(prefix="pn") as folder:
            globals()[part](arguments, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
