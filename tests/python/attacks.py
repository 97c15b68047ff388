# Attacks on the jail of scripts, one a section. Each prints BROKEN when it gets what it must not; to end in any other
# way is to have failed.

# ---- read a file of the system
print("BROKEN", open("/etc/passwd").read()[:40])

# ---- list the root of the system
import os
names = set(os.listdir("/"))
if names & {"etc", "home", "root", "proc", "var"}: print("BROKEN", names)

# ---- metadata of a file of the system
import os
print("BROKEN", os.stat("/etc/passwd"))

# ---- metadata of a home folder
import os
print("BROKEN", os.stat("/root"), os.stat("/home"))

# ---- links of the system
import os
print("BROKEN", os.readlink("/proc/self/exe"))

# ---- own environment from the kernel
print("BROKEN", open("/proc/self/environ").read())

# ---- memory of the parent
import os
print("BROKEN", open(f"/proc/{os.getppid()}/mem", "rb"))

# ---- own memory map
print("BROKEN", open("/proc/self/maps").read()[:80])

# ---- environment secrets
import os
if any("SECRET" in key or "TOKEN" in key for key in os.environ): print("BROKEN", os.environ)

# ---- environment beyond what Python itself makes
import os
rest = set(os.environ) - {"LC_CTYPE", "PWD"}
if rest: print("BROKEN", rest)

# ---- write a file where it is
open("mine", "w").write("x"); print("BROKEN")

# ---- write a file into the library
import os
open(os.path.dirname(os.__file__) + "/evil.py", "w").write("x"); print("BROKEN")

# ---- make a folder
import os
os.mkdir("/empty/folder"); print("BROKEN")

# ---- make a folder in the root
import os
os.mkdir("/folder"); print("BROKEN")

# ---- make a temporary file
import tempfile
tempfile.TemporaryFile().write(b"x"); print("BROKEN")

# ---- make a link out
import os
os.symlink("/", "/empty/out"); print("BROKEN", os.listdir("/empty/out"))

# ---- climb out by dots
import os
names = set(os.listdir("../../../../.."))
if names & {"etc", "root", "home"}: print("BROKEN", names)

# ---- an internet socket
import socket
socket.socket(socket.AF_INET, socket.SOCK_STREAM); print("BROKEN")

# ---- a datagram socket
import socket
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); print("BROKEN")

# ---- a raw socket
import socket
socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print("BROKEN")

# ---- a local socket
import socket
socket.socket(socket.AF_UNIX); print("BROKEN")

# ---- a pair of sockets
import socket
socket.socketpair(); print("BROKEN")

# ---- names of the internet
import socket
print("BROKEN", socket.getaddrinfo("localhost", 80, proto=socket.IPPROTO_TCP))

# ---- a request to the internet
import urllib.request
print("BROKEN", urllib.request.urlopen("http://127.0.0.1:80/"))

# ---- a program
import subprocess
print("BROKEN", subprocess.run(["/bin/true"]))

# ---- a shell
import os
if os.system("true") == 0: print("BROKEN")

# ---- a fork
import os
os.fork(); print("BROKEN")

# ---- a fork bomb
import os
while True: os.fork(); print("BROKEN")

# ---- another program in this process
import os
os.execv("/usr/bin/python3", ["python3", "-c", "print('BROKEN')"]); print("BROKEN")

# ---- spawn
import os
print("BROKEN", os.posix_spawn("/bin/sh", ["sh"], {}))

# ---- a thread
import threading
threading.Thread(target=print, args=["BROKEN"]).start()

# ---- many threads by an executor
from concurrent.futures import ThreadPoolExecutor
print("BROKEN", list(ThreadPoolExecutor(4).map(len, ["a"])))

# ---- another process by multiprocessing
import multiprocessing
multiprocessing.get_context("fork").Process(target=print, args=["BROKEN"]).start(); print("BROKEN")

# ---- kill the process of all scripts
import os
os.kill(1, 9); print("BROKEN")

# ---- kill everybody
import os
os.kill(-1, 9); print("BROKEN")

# ---- kill the parent
import os
os.kill(os.getppid(), 15); print("BROKEN")

# ---- kill a group
import os
os.killpg(0, 15); print("BROKEN")

# ---- signal another process by ctypes
import ctypes
if ctypes.CDLL(None).kill(1, 15) == 0: print("BROKEN")

# ---- system call by ctypes: socket
import ctypes
if ctypes.CDLL(None).syscall(41, 2, 1, 0) >= 0: print("BROKEN")

# ---- system call by ctypes: ptrace
import ctypes
if ctypes.CDLL(None).syscall(101, 0, 0, 0, 0) >= 0: print("BROKEN")

# ---- system call by ctypes: io_uring
import ctypes
if ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(256)) >= 0: print("BROKEN")

# ---- system call by ctypes: openat2
import ctypes
if ctypes.CDLL(None).syscall(437, -100, b"/etc/passwd", ctypes.create_string_buffer(24), 24) >= 0: print("BROKEN")

# ---- system call by ctypes: memory file
import ctypes
if ctypes.CDLL(None).memfd_create(b"x", 0) >= 0: print("BROKEN")

# ---- system call by ctypes: memory of another process
import ctypes
if ctypes.CDLL(None).syscall(310, 1, 0, 0, 0, 0, 0) >= 0: print("BROKEN")

# ---- system call by ctypes: another namespace
import ctypes
if ctypes.CDLL(None).unshare(0x10000000) == 0: print("BROKEN")

# ---- system call by ctypes: mount
import ctypes
if ctypes.CDLL(None).mount(b"x", b"/empty", b"tmpfs", 0, None) == 0: print("BROKEN")

# ---- system call by ctypes: root
import ctypes
if ctypes.CDLL(None).chroot(b"/empty") == 0: print("BROKEN")

# ---- system call by ctypes: the x32 table
import ctypes
if ctypes.CDLL(None).syscall(0x40000000 + 41, 2, 1, 0) >= 0: print("BROKEN")

# ---- system call by ctypes: clone
import ctypes
child = ctypes.CDLL(None).syscall(56, 17, 0, 0, 0, 0)
if child >= 0: print("BROKEN")

# ---- another filter of system calls
import ctypes
if ctypes.CDLL(None).prctl(22, 2, 0, 0, 0) == 0: print("BROKEN")

# ---- to outlive the parent
import ctypes
if ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0: print("BROKEN")

# ---- raise a limit
import resource
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)); print("BROKEN")

# ---- take a priority
import os
os.nice(-5); print("BROKEN")

# ---- descriptors that were left open
import os
for descriptor in range(3, 64):
    try:
        os.write(descriptor, b"")
    except OSError:
        continue
    kind = os.fstat(descriptor).st_mode >> 12
    # 12: a socket. The channel is one; any other open descriptor that takes bytes is foreign.
    if kind == 8: print("BROKEN", descriptor)

# ---- the socket of the process of all scripts
import os
found = [d for d in range(64) if d > 2 and not os.path.lexists("/proc")]
sockets = 0
for descriptor in range(64):
    try:
        sockets += os.fstat(descriptor).st_mode >> 12 == 12
    except OSError:
        pass
# The channel, and the loop's own pair.
if sockets > 3: print("BROKEN", sockets)

# ---- memory in one object
x = bytearray(2 << 30); print("BROKEN")

# ---- memory in many objects
x = []
while True: x.append(bytearray(1 << 20))

# ---- memory in a number
x = 3 ** (10 ** 9); print("BROKEN")

# ---- memory by a map of nothing
import mmap
mmap.mmap(-1, 4 << 30); print("BROKEN")

# ---- endless loop
while True: pass

# ---- time in one native operation
sum(range(10 ** 12)); print("BROKEN")

# ---- time in a regex
import re
if re.match(r"(a+)+$", "a" * 60 + "b"): print("BROKEN")

# ---- sleep
import time
time.sleep(1000); print("BROKEN")

# ---- sleep with signals off
import signal, time
for number in range(1, 60):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
time.sleep(1000); print("BROKEN")

# ---- an alarm of its own
import signal, time
signal.alarm(1)
time.sleep(1000); print("BROKEN")

# ---- endless output
while True: print("x" * 1000)

# ---- endless output on the descriptor
import os
while True: os.write(1, b"x" * 65536)

# ---- endless errors
import sys
while True: sys.stderr.write("x" * 1000)

# ---- crash of the interpreter
import ctypes
ctypes.string_at(0); print("BROKEN")

# ---- end without a word
import os
os._exit(0)

# ---- abort
import os
os.abort()

# ---- overflow of the stack
import sys
sys.setrecursionlimit(10 ** 9)
def f(): f()
f()

# ---- a breakpoint
breakpoint(); print("BROKEN")

# ---- standard input
print("BROKEN" if input() else "")

# ---- frames of the bootstrap: its channel
import sys
frame = sys._getframe()
while frame.f_back: frame = frame.f_back
channel = frame.f_locals.get("channel") or frame.f_globals.get("channel")
for _ in range(1000):
    channel.send({"call": 1, "tool": "mcp__none__none", "arguments": {}})

# ---- forged lines: nonsense on the channel
import os
for descriptor in range(3, 32):
    try: os.write(descriptor, b"{not json\n" * 10)
    except OSError: pass
print("still here")

# ---- forged lines: one that never ends
import os
for descriptor in range(3, 32):
    try:
        while True: os.write(descriptor, b"x" * 65536)
    except OSError: pass

# ---- forged lines: calls without number
import os
line = b'{"call":1,"tool":"mcp__none__none","arguments":{}}\n' * 1000
for descriptor in range(3, 32):
    try:
        for _ in range(1000): os.write(descriptor, line)
    except OSError: pass

# ---- forged lines: an end, and to go on
import os
for descriptor in range(3, 32):
    try: os.write(descriptor, b'{"output":"forged","cut":false,"notes":[]}\n')
    except OSError: pass
while True: pass

# ---- changes that the next script sees
import builtins, json, sys
builtins.print = lambda *_: None
json.loads = lambda *_: "BROKEN"
sys.modules["math"] = None

# ---- time in one comparison
x, y = [], []
for _ in range(60): x, y = [x, x], [y, y]
print("BROKEN" if x == y else "")

# ---- memory in the text of a list
x = []
for _ in range(60): x = [x, x]
print("BROKEN", len(str(x)))

# ---- time in the square of a number
x = 3
for _ in range(60): x = x * x
print("BROKEN", x)

# ---- memory in a text
x = "x" * (10 ** 10)
print("BROKEN", len(x))

# ---- depth of a value
x = []
for _ in range(10 ** 6): x = [x]
print("BROKEN" if len(repr(x)) > 10 ** 6 else "")

# ---- depth of the code
eval("(" * 10 ** 5 + ")" * 10 ** 5)
print("BROKEN")

# ---- files by pathlib
from pathlib import Path
print("BROKEN", Path("/etc/passwd").read_text()[:40])

# ---- is there a file
from pathlib import Path
if Path("/etc/passwd").exists(): print("BROKEN")

# ---- the interpreter's own insides
import sys
if sys.exit.__self__.modules["os"].system("true") == 0: print("BROKEN")
