"""Runs programs with `ptc serve`, next to a server of AgentDojo that lives in this process."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

import server

RELAY = pathlib.Path(__file__).with_name("relay.py")


class Run:
    """One conversation with ptc: programs, and questions that a person answers.

    `person` is None (nobody to ask), True (says yes) or False (says no).
    """

    def __init__(self, ptc, suite, world, policy=None, person=None, answer=None):
        self.folder = tempfile.TemporaryDirectory(prefix="agentdojo-")
        self.person = person
        self.questions = []
        address = os.path.join(self.folder.name, "socket")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address)
        self.listener.listen()
        self.server = server.Server(suite, world, *([answer] if answer else []))
        threading.Thread(target=self._serve, daemon=True).start()
        command = [sys.executable, "-S", "-E", str(RELAY), address]
        config = pathlib.Path(self.folder.name, "servers.json")
        config.write_text(json.dumps({"mcpServers": {suite: {"command": command[0], "args": command[1:]}}}))
        flags = ["--upstreams-config", config, *(["--policy", policy] if policy else [])]
        environment = {"HOME": self.folder.name, "PATH": os.environ["PATH"]}
        self.log = pathlib.Path(self.folder.name, "log").open("w+")
        self.process = subprocess.Popen(
            [ptc, "serve", "--sessions", *map(str, flags)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment,
        )
        self.last_id = 0
        features = {} if person is None else {"elicitation": {}}
        info = {"name": "agentdojo", "version": "1"}
        self._request("initialize", {"protocolVersion": "2025-06-18", "capabilities": features, "clientInfo": info})
        self._send({"method": "notifications/initialized"})
        started = self._request("tools/call", {"name": "lisp_session_start", "arguments": {}})
        self.session = started["structuredContent"]["session_id"]

    def _serve(self):
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return  # closed without a start of the server
        with connection, connection.makefile("r") as read, connection.makefile("w") as write:
            try:
                self.server.serve(read, write)
            except BrokenPipeError:
                pass

    def _send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self.process.stdin.flush()

    def _request(self, method, params):
        self.last_id += 1
        self._send({"id": self.last_id, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                self._answer(message)
            elif message.get("id") == self.last_id and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]
        self.log.seek(0)
        raise RuntimeError(f"ptc ended: {self.log.read()}")

    def _answer(self, message):
        self.questions.append(message["params"]["message"])
        fields = message["params"].get("requestedSchema", {}).get("properties", {})
        content = {name: _yes(field) if self.person else _no(field) for name, field in fields.items()}
        answer = {"action": "accept" if self.person else "decline"}
        self._send({"id": message["id"], "result": answer | ({"content": content} if self.person else {})})

    def program(self, text, limit=None):
        """The answer of a program as text; `limit` is the only type that it may have."""
        arguments = {"session_id": self.session, "program": text}
        arguments |= {"output_schema": {"type": limit}} if limit else {}
        result = self._request("tools/call", {"name": "lisp_session_eval", "arguments": arguments})
        return "\n".join(part.get("text", "") for part in result["content"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.listener.close()
        self.log.close()
        self.folder.cleanup()


def _yes(field):
    choices = field.get("enum")
    return choices[0] if choices else True


def _no(field):
    choices = field.get("enum")
    return choices[-1] if choices else False
