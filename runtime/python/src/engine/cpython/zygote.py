# The warm process that forks all scripts: the interpreter with the standard library in memory, in the jail.
#
# Its socket carries lines. It receives `functions` with the functions of later scripts as JSON, `run N` with
# the descriptor of the script's channel, `kill N`, `pause N`, `resume N`. It sends, as JSON, that it is
# ready, and how script N ended. It reads nothing that a script wrote.

import array
import collections
import gc
import json
import os
import select
import signal
import socket
import sys

# Modules that scripts use, loaded before the fork.
WARM = """abc array ast asyncio base64 binascii bisect calendar collections collections.abc contextlib copy csv
dataclasses datetime decimal difflib enum fnmatch fractions functools graphlib hashlib heapq hmac html html.parser
inspect io itertools json keyword linecache locale math numbers operator pathlib pprint queue random re reprlib
secrets shlex statistics string struct textwrap time timeit tokenize traceback types typing unicodedata urllib.parse
uuid warnings weakref xml.etree.ElementTree zlib zoneinfo""".split()

# Most scripts that were received and not forked yet. A script may be killed before it is forked, so all of
# them are searched.
MOST_WAITING = 64

# Scripts give way to the server, which otherwise waits for its turn behind each script that computes.
NICENESS = 5


def warm_up():
    for name in WARM:
        try:
            __import__(name)
        except ImportError:
            # This Python was built without the module.
            pass


class Zygote:
    def __init__(self, settings, make_functions, run_script):
        self.settings, self.make_functions, self.run_script = settings, make_functions, run_script
        self.control = socket.socket(fileno=0)
        self.alarm, self.wakeup = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # Bytes of an incomplete line, and channels that belong to lines not read yet.
        self.unread, self.channels = bytearray(), collections.deque()
        # By number: (channel, functions) of scripts to fork, and processes of forked scripts.
        self.waiting, self.running = collections.OrderedDict(), {}
        self.functions = make_functions({"functions": [], "unavailable": []})

    def serve(self):
        """Comes back in no process."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # The first process of a namespace gets no signal from inside without a handler; Python has one for
        # this signal.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self.wakeup, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.alarm, select.POLLIN)
        gc.collect()
        gc.freeze()
        version = ".".join(map(str, sys.version_info[:3]))
        self.report({"ready": {"version": version, "layers": self.settings["layers"]}})
        while True:
            for descriptor, _ in poll.poll(0 if self.waiting else None):
                if descriptor == self.alarm:
                    self.report_ends()
                else:
                    self.listen()
            if self.waiting:
                self.fork()

    def listen(self):
        """Takes in what there is, so that whoever is to be ended is not forked first."""
        while len(self.waiting) < MOST_WAITING:
            try:
                # Not `socket.recv_fds`, which waits despite its flags.
                data, ancillary, _, _ = self.control.recvmsg(1 << 16, socket.CMSG_SPACE(4), socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if not data:
                os._exit(0)
            for level, kind, descriptors in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    self.channels.extend(array.array("i", descriptors[: len(descriptors) // 4 * 4]))
            *lines, rest = data.split(b"\n")
            for line in lines:
                self.obey(bytes(self.unread) + line)
                self.unread.clear()
            self.unread += rest

    def obey(self, line):
        word, _, rest = line.partition(b" ")
        if word == b"functions":
            self.learn(rest)
        elif word == b"run":
            if self.channels:
                self.waiting[int(rest)] = (self.channels.popleft(), self.functions)
            else:
                # The system had no free descriptor for the channel.
                self.report({"ended": int(rest), "status": 71})
        elif word == b"kill":
            number = int(rest)
            if number in self.waiting:
                os.close(self.waiting.pop(number)[0])
                self.report({"ended": number, "status": -9})
            elif number in self.running:
                os.kill(self.running[number], signal.SIGKILL)
        elif word in (b"pause", b"resume") and int(rest) in self.running:
            os.kill(self.running[int(rest)], signal.SIGSTOP if word == b"pause" else signal.SIGCONT)

    def learn(self, text):
        table = json.loads(text)
        self.functions = self.make_functions(table)
        # The functions are in the memory of each script. Its limit is for the memory that the script uses
        # itself.
        self.settings["base_bytes"] += 4 * len(text) + 4096 * len(table["functions"])
        gc.collect()
        gc.freeze()

    def fork(self):
        number, (channel, functions) = self.waiting.popitem(last=False)
        child = os.fork()
        if child == 0:
            self.become_script(channel, functions)
        os.close(channel)
        self.running[number] = child

    def become_script(self, channel, functions):
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            others = [each for each, _ in self.waiting.values()]
            os.nice(NICENESS)
            inherited = [self.control.detach(), self.alarm, self.wakeup, *others, *self.channels]
            self.run_script(self.settings, functions, channel, inherited)
        finally:
            os._exit(70)

    def report_ends(self):
        try:
            os.read(self.alarm, 4096)
        except BlockingIOError:
            pass
        while self.running:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == 0:
                return
            for number, child in self.running.items():
                if child == ended:
                    del self.running[number]
                    self.report({"ended": number, "status": os.waitstatus_to_exitcode(status)})
                    break

    def report(self, message):
        self.control.sendall(json.dumps(message).encode() + b"\n")
