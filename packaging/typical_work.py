"""Runs typical work with a binary, for `packaging/pgo.sh`, or measures it.

    packaging/typical_work.py BINARY               runs each piece once
    packaging/typical_work.py BINARY BINARY …      seconds of processor time of each piece, best of seven, taken in turns
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORKLOADS = ROOT / "benches/src/measure/workloads"
BUDGET = ["--fuel", "2000000000", "--memory", "1000000000", "--timeout", "120s"]
# Workloads of the benches that need no data, and others over data that they make.
PROGRAMS = {name: (WORKLOADS / f"{name}.ptc").read_text() + "(work nil)" for name in ("w1", "w2", "w8")} | {
    "rows": """(->> (range 200000)
                    (map (fn [i] {:team (str "t" (mod i 50)) :amount (mod (* i 7919) 1000) :tags [(mod i 3)]}))
                    (filter #(> (:amount %) 20))
                    (group-by :team)
                    (map (fn [[team rows]] {:team team :sum (reduce + (map :amount rows)) :n (count rows)}))
                    (sort-by :sum >) (take 5))""",
    "texts": """(let [lines (map #(str "line " % "," (* % %) ",end") (range 200000))]
                  [(count (str/join "\n" lines))
                   (reduce + (map #(count (second (str/split % #","))) lines))
                   (count (filter #(re-find #"7+,\d" %) lines))])""",
    "maps": """(let [m (reduce (fn [m i] (update m (mod (* i 31) 5003) (fnil inc 0))) {} (range 300000))]
                 (reduce-kv (fn [acc k v] (+ acc (* k v))) 0 m))""",
    "JSON": """(let [text (json/generate-string (map (fn [i] {:id i :login (str "u" i) :labels ["a" "b"] :open true}) (range 50000)))]
                 (count (filter :open (json/parse-string text))))""",
}
SMALL = [
    "(+ 1 2)",
    '(str/join ", " (map :name [{:name "a"} {:name "b"}]))',
    "(->> (range 100) (filter even?) (map #(* % %)) (reduce +))",
    "(loop [i 0 acc []] (if (< i 20) (recur (inc i) (conj acc i)) acc))",
    '(->> [{:team "a" :n 3} {:team "b" :n 5} {:team "a" :n 1}] (group-by :team) (map (fn [[k v]] [k (reduce + (map :n v))])))',
    "(tool/servers)",
    "(let [{:keys [a b]} {:a 1 :b nil}] (if b :some {:error (str \"no b with \" a)}))",
    "(map",
]


def messages(count):
    """One client over stdio: the handshake, the list of tools, programs."""
    client = {"name": "typical", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    yield {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    yield {"jsonrpc": "2.0", "method": "notifications/initialized"}
    yield {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for at in range(count):
        # Every tenth program is new.
        program = SMALL[at % len(SMALL)] if at % 10 else f"(let [n {at}] {SMALL[at // 10 % (len(SMALL) - 1)]})"
        arguments = {"program": program}
        call = {"name": "lisp_eval", "arguments": arguments}
        yield {"jsonrpc": "2.0", "id": at + 2, "method": "tools/call", "params": call}


def serve(count):
    text = "".join(json.dumps(message) + "\n" for message in messages(count))
    return ["serve"], text


def pieces(folder):
    """Name, arguments and standard input of each piece of work."""
    upstream = folder / "upstreams.json"
    upstream.write_text(json.dumps({"mcpServers": {"inner": {"command": os.environ["PTC"], "args": ["serve"]}}}))
    call = '(count (pmap (fn [i] (tool/call {:server "inner" :tool "lisp_eval" :args {:program (str "(* 2 " i ")")}})) (range 40)))'
    found = {name: (["eval", *BUDGET, program], "") for name, program in PROGRAMS.items()}
    found["calls of a server"] = (["eval", "--upstreams-config", str(upstream), call], "")
    found["small programs over stdio"] = serve(20_000)
    found["start"] = (["eval", "1"], "")
    return found


def seconds(binary, arguments, text, folder):
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([binary, *arguments], input=text, env=environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stderr}{done.stdout[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    binaries = [os.path.abspath(binary) for binary in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        os.environ["PTC"] = binaries[0]
        for name, (arguments, text) in pieces(folder).items():
            rounds = 7 if len(binaries) > 1 else 1
            taken = [[seconds(binary, arguments, text, folder) for binary in binaries] for _ in range(rounds)]
            best = [min(column) for column in zip(*taken)]
            print(name, *(f"{value:.3f}" for value in best), sep="\t", flush=True)


if __name__ == "__main__":
    main()
