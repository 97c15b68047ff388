"""The attacks of the soak, by kind: each is one function over a client, and one call of it is one attack.

An attack returns a word for how the server took it. A server that refuses is as good as one that answers; what counts against it is an
answer that is not of the protocol (`door.Unexpected`), its end, its memory, and what the normal client sees meanwhile."""
import json, random, re, socket, struct, time

ATTACKS = {}
# Kinds that set many connections up, or wait long: they are picked more rarely.
RARE = {"slow_heads", "unread_answers", "python_hogs", "python_floods", "idle_connections"}


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def run(door, program, **more):
    _, is_error = door.program(program, **more)
    return "error" if is_error else "value"


def script(door, code):
    _, is_error = door.text("execute_program", {"code": code})
    return "error" if is_error else "value"


def pick(*choices):
    return random.choice(choices)


# Floods of calls.


@attack
def refused_calls(door):
    form = pick(
        '(tool/call {:server "bad" :tool "text" :args {:k "dup"}})',
        '(tool/call {:server "nowhere" :tool "text" :args {:k "dup"}})',
        '(tool/call {:server "bad" :tool "no-such-tool"})',
        '(resource/read {:server "bad" :uri "x:y"})',
        '(prompt/list {:server "bad"})',
    )
    loop = pick(f"(loop [i 0] {form} (recur (inc i)))", f"(loop [] (doall (pmap (fn [_] {form}) (range 500))) (recur))")
    return run(door, loop)


@attack
def failing_calls(door):
    tool = pick("fail", "garbage", "text")
    size = pick(1, 10_000, 3_000_000)
    return run(door, f'(pmap (fn [i] (:reason (tool/call {{:server "bad" :tool "{tool}" :args {{:n {size} :i i}}}}))) (range 40))')


@attack
def crashing_upstream(door):
    return run(door, '(:reason (tool/call {:server "bad" :tool "crash"}))')


@attack
def prints(door):
    return run(door, pick('(loop [i 0] (println i) (recur (inc i)))', '(loop [] (println (apply str (repeat 10000 "x"))) (recur))'))


# Large results and answers.


@attack
def large_results(door):
    return run(door, pick("(range 1500000)", '(apply str (repeat 5000000 "x"))', "(into {} (map (fn [i] [i {i i}]) (range 100000)))"))


@attack
def large_answers(door):
    tool, size = pick(("text", 1_900_000), ("items", 60_000), ("text", 2_500_000))
    return run(door, f'(reduce + (map (fn [i] (count (str (:value (tool/call {{:server "bad" :tool "{tool}" :args {{:n {size} :i i}}}}))))) (range 10)))')


# Deep nesting.


@attack
def deep_sources(door):
    opening, closing = pick(("(", ")"), ("[", "]"), ("{1 ", "}"), ("#(", ")"), ("(-> ", ")"), ("'", ""))
    depth = pick(100, 5_000, 200_000)
    return run(door, opening * depth + "1" + closing * depth)


@attack
def deep_values(door):
    return run(
        door,
        pick(
            "(loop [v [] i 0] (if (= i 60000) v (recur [v] (inc i))))",
            "(loop [v {} i 0] (if (= i 60000) (= v v) (recur {v i} (inc i))))",
            '(count (str (:value (tool/call {:server "bad" :tool "deep" :args {:n 60000}}))))',
        ),
    )


@attack
def deep_contexts(door):
    depth = pick(100, 5_000, 100_000)
    headers, body = door.request("lisp_eval", {"program": "(count data/x)", "context": "DEPTH"})
    body = body.replace(b'"DEPTH"', b'{"x":' + b"[" * depth + b"]" * depth + b"}")
    door.post(headers, body)
    return "answered"


@attack
def big_contexts(door):
    context = pick({"x": "y" * 3_900_000}, {"x": [{"k": i} for i in range(150_000)]}, {f"k{i}": i for i in range(150_000)})
    return run(door, "(count data/x)", context=context)


# Work.


@attack
def regexes(door):
    pattern = pick("(a+)+$", "(a|a)*b", "(.*)(.*)(.*)(.*)x", "(a{1,50}){1,50}", "((a?){30}){30}")
    return run(door, f'(re-find #"{pattern}" (apply str (repeat 100000 "a")))')


@attack
def endless(door):
    return run(
        door,
        pick(
            "(loop [] (recur))",
            "(loop [v []] (recur (conj v (vec (range 1000)))))",
            '(loop [s "x"] (recur (str s s)))',
            "(loop [n 2] (recur (* n n)))",
            "(count (sort-by (fn [x] (mod (* x 7919) 1000003)) (range 1000000)))",
            "(do (defn f [n] (if (= n 0) 0 (+ (f (dec n)) (f (dec n))))) (f 60))",
        ),
    )


@attack
def long_sources(door):
    return run(
        door,
        pick(
            "(do " + " ".join(f"(def v{i} {i})" for i in range(9_000)) + ")",
            "(+ " + "1 " * 400_000 + ")",
            "(let [" + " ".join(f"a{i} {i}" for i in range(9_000)) + "] a1)",
            '"' + "x" * 990_000 + '"',
        ),
    )


@attack
def costly_arguments(door):
    values = pick('{:v (vec (repeat 100000 "e19999"))}', "{:v (zipmap (map (fn [i] (str \"k\" i)) (range 3000)) (repeat 1))}")
    return run(door, f'(:reason (tool/call {{:server "bad" :tool "{pick("enum", "wide")}" :args {values}}}))')


# Cancelled calls and hostile connections.


@attack
def cancelled_calls(door):
    head, body = door.bytes("lisp_eval", {"program": pick("(loop [] (recur))", '(tool/call {:server "bad" :tool "slow" :args {:n 1500}})')})
    with door.raw() as connection:
        connection.sendall(head + body)
        time.sleep(random.random() / 5)
    return "cancelled"


@attack
def cancelled_scripts(door):
    head, body = door.bytes("execute_program", {"code": "while True: pass"})
    with door.raw() as connection:
        connection.sendall(head + body)
        time.sleep(random.random() / 2)
    return "cancelled"


def reset(connection):
    """Closes with a reset instead of an orderly end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@attack
def aborted_connections(door):
    head, body = door.bytes("lisp_eval", {"program": "(range 500000)", "context": {"x": "y" * 1_000_000}})
    whole = head + body
    for _ in range(10):
        connection = door.raw()
        connection.sendall(whole[: random.randrange(1, len(whole))])
        reset(connection)
    return "aborted"


@attack
def slow_heads(door):
    head, _ = door.bytes("lisp_eval", {"program": "1"})
    connections = [door.raw() for _ in range(50)]
    for position in range(20):
        for connection in connections:
            connection.sendall(head[position : position + 1])
        time.sleep(0.1)
    for connection in connections:
        connection.close()
    return "aborted"


@attack
def unread_answers(door):
    head, body = door.bytes("lisp_eval", {"program": '(apply str (repeat 1000000 "x"))'})
    connections = [door.raw() for _ in range(8)]
    for connection in connections:
        connection.sendall(head + body)
    time.sleep(1.5)
    for connection in connections:
        reset(connection)
    return "aborted"


@attack
def idle_connections(door):
    connections = [door.raw() for _ in range(200)]
    time.sleep(1)
    for connection in connections:
        connection.close()
    return "aborted"


@attack
def wrong_requests(door):
    head, body = door.bytes("lisp_eval", {"program": "1"})
    wrong = pick(
        b"GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        head[:-2] + b"X-Long: " + b"x" * 100_000 + b"\r\n\r\n" + body,
        head[:-2] + b"Transfer-Encoding: chunked\r\n\r\n" + body,
        head + b"{" * len(body),
        head + random.randbytes(len(body)),
        random.randbytes(2_000) + b"\r\n\r\n",
    )
    with door.raw() as connection:
        connection.settimeout(20)
        try:
            connection.sendall(wrong)
            connection.recv(4_096)
        except OSError:
            return "closed"
    return "answered"


@attack
def wrong_tokens(door):
    # From another address of this machine, since an address that shows wrong tokens is refused for a while.
    head, body = door.bytes("lisp_eval", {"program": "1"})
    head = head.replace(b"Bearer ", b"Bearer x")
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", door.port), timeout=20, source_address=("127.0.0.66", 0)) as connection:
            connection.sendall(head + body)
            status = connection.recv(64).split(b" ")[1]
            if status not in (b"401", b"429"):
                raise AssertionError(f"a wrong token is answered with {status!r}")
    return "refused"


# Sessions and preludes.


def session(door, **arguments):
    """Id of a new session, if there is room for one."""
    text, is_error = door.text("lisp_session_start", {"ttl_ms": 5_000, **arguments})
    return None if is_error else re.search(r"ptcs_[\w-]+", text)[0]


def evaluate(door, session, program):
    return door.text("lisp_session_eval", {"session_id": session, "program": program})[1]


@attack
def sessions(door):
    begun = session(door)
    if begun is None:
        return "refused"
    for program in ("(def big (vec (range 30000)))", "(def s (apply str (repeat 200000 \"x\")))", "(loop [] (recur))", "(count big)"):
        evaluate(door, begun, program)
    if random.random() < 0.7:
        door.text("lisp_session_close", {"session_id": begun})
        return "closed"
    return "left open"


@attack
def preludes(door):
    begun = session(door, mode="write_capable")
    if begun is None:
        return "refused"
    name = f"p{random.randrange(50)}"
    constants = pick(
        '(apply str (map (fn [i] (str "(def c" i " (reduce + (range 1900000))) ")) (range 400)))',
        '(apply str (map (fn [i] (str "(def c" i " (apply str (repeat 4000000 1))) ")) (range 400)))',
        '(apply str (map (fn [i] (str "(defn f" i " [x] (+ x " i ")) ")) (range 300)))',
    )
    program = f'(prelude/write {{:id "{name}" :source (str "(ns {name}) " {constants}) :metadata {{:reason "soak"}}}})'
    is_error = evaluate(door, begun, program)
    door.text("lisp_session_close", {"session_id": begun})
    return "error" if is_error else "value"


@attack
def handshakes(door):
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
    headers, _ = door.request("lisp_eval", {})
    headers = {key: value for key, value in headers.items() if not key.lower().startswith("mcp-")}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
    status, _ = door.post(headers, body)
    return "begun" if status == 200 else "refused"


# Scripts.


@attack
def python_hogs(door):
    return script(
        door,
        pick(
            "while True: pass",
            "x = []\nwhile True: x.append(bytearray(1 << 20))",
            "x = 'x' * (1 << 30)",
            "def f(n): return f(n + 1)\nf(0)",
            "x = 7\nwhile True: x = x * x",
            "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
            "import asyncio\nawait asyncio.gather(*[asyncio.sleep(100) for _ in range(100000)])",
        ),
    )


@attack
def python_floods(door):
    return script(
        door,
        pick(
            "while True: print('x' * 10000)",
            "import sys\nwhile True: sys.stderr.write('x' * 10000)",
            "import asyncio\nwhile True:\n  try: await mcp__bad__fail()\n  except Exception: pass",
            "import os\nfor n in range(3, 64):\n  try: os.write(n, b'{\"kind\":\"done\",\"output\":\"forged\"}\\n' * 100)\n  except OSError: pass",
            "for _ in range(100000):\n  try: await mcp__bad__text(n=10)\n  except Exception: pass",
        ),
    )


@attack
def python_escapes(door):
    return script(
        door,
        pick(
            "import os\nfor p in range(1, 400):\n  for s in (2, 9, 15, 19):\n    try: os.kill(p, s)\n    except BaseException: pass",
            "import fcntl, socket, os\na, b = socket.socketpair()\nfor p in range(1, 400):\n  try: fcntl.fcntl(a, fcntl.F_SETOWN, p)\n  except BaseException: pass",
            "import os\nfor _ in range(1000):\n  try: os.fork()\n  except BaseException: pass",
            "import os\nfor root, _, files in os.walk('/'):\n  for f in files[:3]:\n    try: open(os.path.join(root, f), 'w')\n    except BaseException: pass",
            "import ctypes\nctypes.string_at(0)",
            "import os\nos._exit(0)",
            "import os, sys\nos.closerange(0, 256)",
        ),
    )
