# The process that all scripts are forked from: the interpreter with the standard library in memory, in the jail.
#
# Its socket carries lines. To it: `run` with the descriptor of the script's channel, `kill N`. From it, as JSON: that
# it is ready, and how script N ended; N counts them. It reads nothing that a script wrote.

import gc
import json
import os
import select
import signal
import socket
import sys

# What scripts use, so that each of them finds it in memory.
WARM = """abc array ast asyncio base64 binascii bisect calendar collections collections.abc contextlib copy csv
dataclasses datetime decimal difflib enum fnmatch fractions functools graphlib hashlib heapq hmac html html.parser
inspect io itertools json keyword linecache locale math numbers operator pathlib pprint queue random re reprlib
secrets shlex statistics string struct textwrap time timeit tokenize traceback types typing unicodedata urllib.parse
uuid warnings weakref xml.etree.ElementTree zlib zoneinfo""".split()


def warm_up():
    for name in WARM:
        try:
            __import__(name)
        except ImportError:
            # A Python that was built without it.
            pass


def serve_scripts(settings, run_script):
    """Comes back in no process."""
    control = socket.socket(fileno=0)
    alarm, wakeup = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    running, count = {}, 0
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(alarm, select.POLLIN)
    gc.collect()
    gc.freeze()
    version = ".".join(map(str, sys.version_info[:3]))
    tell(control, {"ready": version})
    unread, channels = b"", []
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == alarm:
                try:
                    os.read(alarm, 4096)
                except BlockingIOError:
                    pass
                report_ends(control, running)
                continue
            data, descriptors, _, _ = socket.recv_fds(control, 256, 1)
            if not data:
                os._exit(0)
            channels += descriptors
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                if line == b"run":
                    count += 1
                    channel = channels.pop(0)
                    child = os.fork()
                    if child == 0:
                        become_script(settings, run_script, channel, (control, alarm, wakeup))
                    os.close(channel)
                    running[child] = count
                elif line.startswith(b"kill "):
                    number = int(line[5:])
                    for child, its_number in running.items():
                        if its_number == number:
                            os.kill(child, signal.SIGKILL)


def become_script(settings, run_script, channel, inherited):
    control, alarm, wakeup = inherited
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        run_script(settings, channel, (control.detach(), alarm, wakeup))
    finally:
        os._exit(70)


def tell(control, message):
    control.sendall(json.dumps(message).encode() + b"\n")


def report_ends(control, running):
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        if child in running:
            tell(control, {"ended": running.pop(child), "status": os.waitstatus_to_exitcode(status)})
