"""Connects standard input and output to a socket of run.py, where the server of a run lives.

Loading AgentDojo takes about a second, so it is loaded once for thousands of runs, and ptc starts this instead.

usage: relay.py SOCKET
"""

import os
import socket
import sys
import threading

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])


def to_server():
    while data := os.read(0, 1 << 16):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


threading.Thread(target=to_server, daemon=True).start()
while data := connection.recv(1 << 16):
    while data:
        data = data[os.write(1, data) :]
