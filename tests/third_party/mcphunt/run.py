#!/usr/bin/env python3
"""Plays the tasks of MCPHunt through `ptc serve`, with programs in place of a model: leaks and false alarms.

usage: run.py MCPHUNT [--ptc FILE] [--policy FILE] [--group NAME] [--tasks]

MCPHUNT is a checkout of https://github.com/lihaonan0716/MCPHunt (MIT). Its environments, its canaries and its labels are
used from there. README.md says what is counted.
"""

import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SERVERS = ["filesystem", "sqlite", "memory", "git", "browser", "shell", "time"]
GROUPS = ("obliging", "wanted", "careful", "harmless")
REFUSED = ("denied", "approval_unavailable")
SOURCE = ["project_alpha/README.md", "project_alpha/src/main.py", "project_alpha/requirements.txt"]
SETTINGS = ["project_alpha/.env", "project_alpha/config.yaml", "project_alpha/deploy.sh"]
PAGES = {"i": "index", "a": "admin", "s": "settings", "u": "users"}
TABLES = ["users", "api_keys", "audit_log", "employees", "credentials", "oauth_tokens"]
PEOPLE = ["SELECT name, email, role FROM users", "SELECT name FROM employees"]
# The number of lines, and the name that begins the first one.
BRIEF = '(str (count (split-lines text)) " lines, " (first (split (first (split-lines text)) #"[=:{]")))'


def read(server, tool, **arguments):
    return f'(tool/call {{:server "{server}" :tool "{tool}" :args {written(arguments)}}})'


def written(arguments):
    return "{" + " ".join(f"{json.dumps(name)} {json.dumps(value)}" for name, value in arguments.items()) + "}"


def files(paths):
    return [read("filesystem", "read_file", path=path) for path in paths]


def rows(queries):
    return [read("sqlite", "read_query", query=query) for query in queries]


READS = {
    "S": lambda: files(SOURCE),
    "C": lambda: files(SETTINGS),
    "F": lambda: files(SOURCE + SETTINGS),
    "N": lambda: files(["notes/meeting_notes.md"]),
    "L": lambda: [read("filesystem", "list_directory", path=".")],
    "D": lambda: rows(f"SELECT * FROM {table}" for table in TABLES),
    "U": lambda: rows(PEOPLE),
    "M": lambda: [read("sqlite", "list_tables")],
    "K": lambda: [read("memory", "read_graph")],
    "G": lambda: [read("git", "git_show", repo_path=".", revision="HEAD~1")],
    "H": lambda: [read("git", "git_log", repo_path=".")],
    "T": lambda: [read("time", "get_current_time", timezone="UTC")],
    "-": lambda: [],
}
SINKS = {
    "file": ("filesystem", "write_file", '{"path" "notes/out.md" "content" text}'),
    "db": ("sqlite", "write_query", '{"query" (str "INSERT INTO audit_log VALUES (9, \'note\', \'" text "\', \'\')")}'),
    "graph": ("memory", "create_entities", '{"entities" [{"name" "note" "entityType" "note" "observations" [text]}]}'),
    "shell": ("shell", "execute_command", '{"command" (str "check " text)}'),
}


def reads(codes):
    """The calls that read. `W` is followed by letters of pages."""
    before, _, pages = codes.partition("W")
    calls = [call for code in before for call in READS[code]()]
    return calls + [read("browser", "browser_navigate", url=f"web/{PAGES[page]}.html") for page in pages]


def program(task, is_brief):
    """A program that writes what it has read, in full or in brief. Its value has the reason of each failed call."""
    calls = reads(task["reads"])
    text = f"(let [text (str (:value x))] {BRIEF})" if is_brief else "(str (:value x))"
    sinks = "".join(
        f' (tool/call {{:server "{server}" :tool "{tool}" :args {arguments}}})'
        for server, tool, arguments in (SINKS[sink] for sink in task["sinks"])
    )
    return (
        f'(let [read [{" ".join(calls)}] text (join "\\n" (cons "from the task" (map (fn [x] {text}) read))) '
        f"written [{sinks}]] (map :reason (concat read written)))"
    )


class Ptc:
    """`ptc serve` with the servers of one environment."""

    def __init__(self, options, world):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ptc-mcphunt-"))
        state, self.log = self.folder / "state.json", self.folder / "calls"
        state.write_text(json.dumps(world))
        self.log.touch()
        stand_in = [str(HERE / "stand_in.py")]
        servers = {
            name: {"command": sys.executable, "args": [*stand_in, name, str(state), str(self.log)]} for name in SERVERS
        }
        config = self.folder / "servers.json"
        config.write_text(json.dumps({"mcpServers": servers}))
        flags = ["--upstreams-config", str(config), *(["--policy", options.policy] if options.policy else [])]
        environment = {"XDG_STATE_HOME": str(self.folder / "home"), "PATH": "/usr/bin:/bin"}
        self.process = subprocess.Popen(
            [options.ptc, "serve", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=environment,
        )
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "mcphunt", "version": "1"}}
        self.ask("initialize", about)
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.send({"id": 1, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == 1 and "method" not in message:
                return message
        sys.exit("ptc has ended")

    def run(self, text):
        """The calls that reached a server, and whether one was refused."""
        before = self.log.stat().st_size
        result = self.ask("tools/call", {"name": "lisp_eval", "arguments": {"program": text}})["result"]
        said = result["content"][0]["text"]
        if result.get("isError"):
            sys.exit(f"a program fails: {said}\n{text}")
        with self.log.open(encoding="utf-8") as log:
            log.seek(before)
            events = [json.loads(line) | {"turn": turn} for turn, line in enumerate(log)]
        return events, any(reason in said for reason in REFUSED)

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        shutil.rmtree(self.folder)


def tasks():
    lines = [line for line in (HERE / "tasks.txt").read_text().splitlines() if not line.startswith("#")]
    found = {}
    for line in lines:
        name, codes, sinks, *brief = line.split()
        found[name] = {"reads": codes, "sinks": sinks.split(","), "brief": bool(brief)}
    return found


def world(name):
    from mcphunt import environments

    return environments.ENV_VARIANTS[name] | {
        "old": environments._OLD_FILE_MAP.get(name, {}),
        "pages": environments._build_web_pages(name),
    }


def plays(taxonomy, known):
    """Group, task, environment, and whether the program is brief."""
    for name in known:
        about = taxonomy.TASK_REGISTRY[name]
        for place in taxonomy.get_valid_envs(name):
            if about.task_type != "risk":
                yield "harmless", name, place, known[name]["brief"]
                continue
            if place.startswith("risky"):
                yield "wanted" if about.completion_requires_secret else "obliging", name, place, False
            if not about.completion_requires_secret:
                yield "careful", name, place, True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("--ptc", default="ptc")
    parser.add_argument("--policy")
    parser.add_argument("--tasks", action="store_true", help="show each task")
    parser.add_argument("--group", choices=GROUPS, help="this group alone")
    options = parser.parse_args()
    options.ptc = shutil.which(options.ptc)
    if options.ptc is None:
        parser.error("there is no such ptc")
    sys.path.insert(0, str(options.bench / "src"))
    from mcphunt import labeling, taxonomy

    known = tasks()
    if set(known) != set(taxonomy.TASK_REGISTRY):
        sys.exit(f"other tasks: {set(known) ^ set(taxonomy.TASK_REGISTRY)}")
    by_place = collections.defaultdict(list)
    for play in plays(taxonomy, known):
        if options.group in (None, play[0]):
            by_place[play[2]].append(play)
    counts = collections.defaultdict(collections.Counter)
    for place, chosen in by_place.items():
        ptc = Ptc(options, world(place))
        for group, name, _, is_brief in chosen:
            events, is_refused = ptc.run(program(known[name], is_brief))
            leaks = labeling.compute_risk_labels(events, place, name)["any_risk"]
            counts[group].update(runs=1, leaks=int(leaks), refused=int(is_refused))
            if options.tasks:
                print(f"{place} {name} {group}: {'leak' if leaks else '-'}{', refused' if is_refused else ''}")
        ptc.close()
    for group, counted in counts.items():
        print(json.dumps({"group": group, **counted}))


if __name__ == "__main__":
    main()
