"""Stands between an MCP client and a stdio server, and keeps what they say.

usage: record.py TRANSCRIPT COMMAND [ARGUMENT ...]

Each line of TRANSCRIPT is {"from": "client" or "server", "message": the JSON-RPC message}.
"""

import json
import subprocess
import sys
import threading


def main(transcript, command):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lock = threading.Lock()
    with open(transcript, "a", encoding="utf-8") as kept:

        def hand_on(source, sink, sender):
            for line in source:
                with lock:
                    kept.write(json.dumps({"from": sender, "message": json.loads(line)}) + "\n")
                    kept.flush()
                try:
                    sink.write(line)
                    sink.flush()
                except BrokenPipeError:
                    break
            try:
                sink.close()
            except BrokenPipeError:
                pass

        answers = threading.Thread(target=hand_on, args=(server.stdout, sys.stdout.buffer, "server"))
        answers.start()
        hand_on(sys.stdin.buffer, server.stdin, "client")
        answers.join()
    sys.exit(server.wait())


main(sys.argv[1], sys.argv[2:])
