#!/usr/bin/env python3
"""Scores programs that a model wrote for the tasks in tasks.json.

usage: score.py PTC TABLE_SERVER PROGRAMS [--warm]

PROGRAMS has a part for each task: `;; 1`, then the programs in the order in which they were sent, divided by lines `;;`.
The last one must give the answer. A task is solved at first try when it has one program and that is right.
Prints how many were right, right at first try, and the number of discovery forms. --warm calls every tool twice before,
so that shapes of results are known."""
import json, os, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DISCOVERY = re.compile(r"\((?:dir|doc|apropos|meta|tool/servers|describe)\b")


class Server:
    def __init__(self, ptc, config, state):
        command = [ptc, "serve", "--upstreams-config", config, "--response-profile", "structured", "--timeout", "60s"]
        environment = {**os.environ, "XDG_STATE_HOME": state, "XDG_CONFIG_HOME": "/nonexistent"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        self.id = 0
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "score", "version": "1"}})

    def ask(self, method, params):
        self.id += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.id:
                return answer["result"]

    def run(self, program):
        return self.ask("tools/call", {"name": "lisp_eval", "arguments": {"program": program}})["structuredContent"]


def is_same(given, wanted):
    if isinstance(given, dict) and isinstance(wanted, dict):
        return given.keys() == wanted.keys() and all(is_same(given[key], wanted[key]) for key in wanted)
    if isinstance(given, list) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(is_same, given, wanted))
    if isinstance(given, (int, float)) and isinstance(wanted, (int, float)):
        return abs(given - wanted) < 1e-6
    return given == wanted


WARM = """(let [a (:iban (first (:value (tool/call 'bank/accounts {}))))
      n (:name (first (:value (tool/call 'inbox/contacts {}))))
      h (:code (first (:value (tool/call 'travel/hotels {}))))
      s (:sensor (first (:value (tool/call 'plant/sensors {}))))]
  (doseq [[server tool args] [["bank" "account" {:iban a}] ["bank" "transfers" {}] ["bank" "standing_orders" {}] ["inbox" "mails" {}]
                              ["inbox" "contact" {:name n}] ["travel" "reviews" {:hotel h}] ["travel" "trips" {}]
                              ["plant" "readings" {:sensor s}] ["plant" "file" {:path "stock.csv"}] ["plant" "file" {:path "events.jsonl"}]]]
    (tool/call {:server server :tool tool :args args})))"""


def main():
    warm = "--warm" in sys.argv
    ptc, table_server, programs = [argument for argument in sys.argv[1:] if argument != "--warm"]
    tasks = json.load(open(os.path.join(HERE, "tasks.json")))
    parts = re.split(r"^;; (\d+)\n", open(programs).read(), flags=re.M)[1:]
    given = {int(number): [one for one in re.split(r"^;;\n", text, flags=re.M) if one.strip()] for number, text in zip(parts[::2], parts[1::2])}
    data = os.path.join(HERE, "data.json")
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "servers.json")
        with open(config, "w") as file:
            json.dump({"mcpServers": {name: {"command": table_server, "args": [data, name]} for name in json.load(open(data))}}, file)
        server = Server(ptc, config, folder)
        for _ in range(2 if warm else 0):
            server.run(WARM)
        right = first = sent = discovery = 0
        for number, task in enumerate(tasks, 1):
            answers = [server.run(program) for program in given.get(number, [])]
            is_right = bool(answers) and answers[-1]["status"] == "ok" and is_same(answers[-1].get("value"), task["answer"])
            right += is_right
            first += is_right and len(answers) == 1
            sent += len(answers)
            discovery += sum(len(DISCOVERY.findall(program)) for program in given.get(number, []))
            if not is_right:
                print(f"{number}: {task['task']}\n  wanted {json.dumps(task['answer'])}\n  {json.dumps(answers[-1:])[:600]}")
        print(f"right {right} of {len(tasks)}, at first try {first}, programs {sent}, discovery forms {discovery}")
        server.process.stdin.close()
        server.process.wait()


main()
