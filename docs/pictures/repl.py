#!/usr/bin/env python3
"""Makes repl.svg: the screen of a terminal (tmux) with a session of `ptc repl`.

    python3 docs/pictures/repl.py [PTC]

Completion, an input of several lines, a table, Ctrl-C while a server does not answer, a hint. Needs tmux.
"""

import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS, LINES = 92, 60
# Pixels of a character, and around all of them.
WIDTH, HEIGHT, MARGIN = 8, 17, 12
# What colours of the terminal are on paper, by their codes.
COLOURS = {31: "#f47067", 32: "#8ddb8c", 33: "#f0c674", 34: "#6cb6ff", 35: "#d2a8ff", 36: "#76e3ea"}
PLAIN, FAINT, GROUND = "#e6edf3", "#7d8590", "#1c2027"

SERVER = r"""
import json, sys
def say(id, **what):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, **what}) + "\n"); sys.stdout.flush()
def tool(name, description, *names):
    properties = {name: {"type": "integer"} for name in names}
    return {"name": name, "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": list(names)}}
ORDERS = [{"id": 701, "item": "lamp", "open": True, "total": 40}, {"id": 702, "item": "desk", "open": False, "total": 310},
    {"id": 703, "item": "chair", "open": True, "total": 120}]
for line in sys.stdin:
    message = json.loads(line)
    id, params = message.get("id"), message.get("params", {})
    if message.get("method") == "initialize":
        say(id, result={"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "shop", "version": "1"}})
    elif message.get("method") == "tools/list":
        say(id, result={"tools": [tool("orders_of", "Orders of a customer", "customer"), tool("audit", "Never ends")]})
    elif message.get("method") == "tools/call" and params["name"] == "orders_of":
        say(id, result={"content": [{"type": "text", "text": json.dumps(ORDERS)}]})
    elif id is not None and message.get("method") != "tools/call":
        say(id, error={"code": -32601, "message": "unknown"})
"""

PRELUDE = """(ns orders "Orders of the shop.")

(defn of-customer
  "All orders of a customer."
  [customer]
  (let [answer (tool/call 'shop/orders_of {:customer customer})]
    (if (:ok answer) (:value answer) (fail (:reason answer)))))

(defn open-ones
  "Those that are not done."
  [customer]
  (filter :open (of-customer customer)))
"""

# What is typed, and what the last lines of the screen must show before one goes on. `Enter` and the like are keys.
PROMPT = r"ptc>\s*\Z"
TYPED = [
    (["(count (orders/o", "Tab", "Tab"], r"orders/of-customer\s+orders/open-ones[\s\S]*orders/o\Z"),
    (["f", "Tab"], r"orders/of-customer\Z"),
    ([" 7))", "Enter"], r"\n3\n" + PROMPT),
    (["(->> (orders/of-customer 7)", "Enter"], r"7\)\n\.\.\.>\Z"),
    (["(filter :open)", "Enter"], r"open\)\n\.\.\.>\Z"),
    (["(map (fn [{:keys [item total]}]", "Enter"], r"total\]\}\]\n\.\.\.>\Z"),
    (["       {:item item :with-tax (* total 1.2)})))", "Enter"], r"\}\]\n" + PROMPT),
    ([":table", "Enter"], r"chair +144\.0\n" + PROMPT),
    (["(tool/call 'shop/audit {})", "Enter"], r"audit \{\}\)\Z"),
    (["C-c"], r"cancelled[\s\S]*" + PROMPT),
    (["(:reason *e)", "Enter"], r"\n:cancelled\n" + PROMPT),
    (["(orders/open-ones 7 8)", "Enter"], r"hint: [\s\S]*" + PROMPT),
    (["(reduce "], r"\(reduce +\(reduce [^\n]*\Z"),
]


class Screen:
    """A terminal of tmux, on a socket of its own."""

    def __init__(self, folder, command):
        self.tmux = ["tmux", "-S", str(folder / "socket"), "-f", "/dev/null"]
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        # No history of the person who makes the picture.
        state = ["-e", f"XDG_STATE_HOME={folder}", "-e", "NO_COLOR=", "-e", "COLORTERM="]
        subprocess.run([*self.tmux, "new-session", "-d", *size, *state, *command], check=True)

    def shown(self, *flags):
        shown = subprocess.run([*self.tmux, "capture-pane", "-p", *flags], check=True, capture_output=True, text=True)
        return shown.stdout.rstrip()

    def press(self, keys):
        for key in keys:
            is_name = key in ("Enter", "Tab", "C-c")
            subprocess.run([*self.tmux, "send-keys", *([] if is_name else ["-l"]), key], check=True)

    def wait(self, pattern, again=lambda: None):
        """Until the screen shows it. `again` is done while it does not."""
        for attempt in range(600):
            if re.search(pattern, self.shown()):
                return
            if attempt % 10 == 9:
                again()
            time.sleep(0.05)
        sys.exit(f"{pattern!r} is not shown:\n{self.shown()}")

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], check=False)


def styled(lines):
    """Pieces of text, each with its line, the column where it begins and its colour, which lasts beyond a line."""
    colour, is_faint = PLAIN, False
    for row, line in enumerate(lines):
        column = 0
        for codes, text in re.findall(r"(?:\x1b\[([0-9;]*)m)?([^\x1b]*)", line):
            for code in map(int, filter(None, codes.split(";"))):
                is_faint = code == 2 or is_faint and code not in (0, 22)
                colour = PLAIN if code in (0, 39) else COLOURS.get(code, colour)
            if text.strip():
                blank = len(text) - len(text.lstrip())
                yield row, column + blank, FAINT if is_faint else colour, text.strip()
            column += len(text)


def svg(screen):
    lines = screen.split("\n")
    width, height = COLUMNS * WIDTH + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-size="13" '
        'font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace">')
    yield f'<rect width="{width}" height="{height}" rx="6" fill="{GROUND}"/>'
    for row, column, colour, text in styled(lines):
        x, y = column * WIDTH + MARGIN, (row + 1) * HEIGHT + MARGIN - 4
        yield (f'<text x="{x}" y="{y}" fill="{colour}" textLength="{len(text) * WIDTH}" xml:space="preserve">'
            f"{html.escape(text, quote=False)}</text>")
    yield "</svg>"


def main():
    ptc = sys.argv[1] if len(sys.argv) > 1 else "target/release/ptc"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "server.py").write_text(SERVER)
        (folder / "orders.clj").write_text(PRELUDE)
        entry = {"command": sys.executable, "args": [str(folder / "server.py")]}
        (folder / "servers.json").write_text(json.dumps({"mcpServers": {"shop": entry}}))
        flags = ["-p", str(folder / "orders.clj"), "--upstreams-config", str(folder / "servers.json")]
        screen = Screen(folder, [os.path.abspath(ptc), "repl", *flags])
        try:
            screen.wait(PROMPT)
            for keys, pattern in TYPED:
                screen.press(keys)
                # Ctrl-C may come before the program has begun.
                screen.wait(pattern, lambda: keys == ["C-c"] and screen.press(keys))
            picture = HERE / "repl.svg"
            picture.write_text("\n".join(svg(screen.shown("-e"))) + "\n")
        finally:
            screen.close()
        print(f"{picture}: {picture.stat().st_size} bytes")


main()
