# Runs one script in its forked process. A script can change everything here, so the reader of the channel
# trusts nothing that this side sends.
#
# The channel carries lines of JSON. The first line is the task: {code, output_bytes, keep}. This side sends
# {call, tool, arguments, keep}, {call, request, arguments}, {call, kept, method, arguments}, {call, look},
# {printed, cut} and {warned, cut} (more of its output), and at the end {output, cut, notes} or {error, cut}. It
# receives {reply, value, content}, {reply, kept} or {reply, error, content, structured}; `reply` stands first.
# The exit status is 0 if the script succeeded, otherwise 1. A process with a retained namespace does not exit:
# the next task follows.

import ast
import asyncio
import builtins
import collections.abc
import difflib
import errno
import itertools
import json
import linecache
import os
import resource
import select
import signal
import sys
import sysconfig
import time
import traceback

FILE = "<program>"
OURS = "<ptc>"

# Most characters of a traceback.
LONGEST_TRACEBACK = 1 << 16

# Most bytes that are written at once. A socket that is writable takes them without waiting.
AT_ONCE = 1 << 15

LIBRARY = sysconfig.get_paths()["stdlib"] + "/"


class ToolError(Exception):
    """A tool call that failed. `content` has the blocks of the tool's error if there are others than texts, and
    `structured_content` its data if the message does not say the same."""

    content, structured_content = (), None


ToolError.__module__ = "builtins"


# Number of pieces of output that are sent as they are written. Later ones are sent at this interval, in seconds, or when
# they have so many bytes together.
PIECES_AT_ONCE = 1000
PAUSE = 0.05
PIECE = 4096


class Output:
    """`sys.stdout` or `sys.stderr`: keeps what fits, and tells it on the way, so that it is known of a script that is cut off."""

    encoding, errors, newlines, mode, closed = "utf-8", "strict", None, "w", False

    def __init__(self, name, word, limit):
        self.name, self.word, self.limit = name, word, limit
        self.bytes, self.cut, self.parts, self.sent, self.told, self.times, self.last = 0, False, [], 0, 0, 0, 0.0

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not self.cut:
            data = text.encode("utf-8", "replace")
            room = self.limit - self.bytes
            if len(data) > room:
                self.cut, data = True, data[:room]
            self.bytes += len(data)
            # Unpaired surrogates have no form in UTF-8.
            self.parts.append(data.decode("utf-8", "ignore"))
            is_much = self.cut or self.bytes - self.told >= PIECE
            if is_much or self.times < PIECES_AT_ONCE or time.monotonic() - self.last > PAUSE:
                self.tell()
        return len(text)

    def tell(self):
        if self.sent < len(self.parts):
            text = "".join(self.parts[self.sent:])
            self.sent, self.told, self.times, self.last = len(self.parts), self.bytes, self.times + 1, time.monotonic()
            Script.channel.send({self.word: text, "cut": self.cut})

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        self.tell()

    def isatty(self):
        return False

    def writable(self):
        return True

    def readable(self):
        return False

    def reconfigure(self, **_):
        pass

    @property
    def buffer(self):
        return OutputBytes(self)

    def fileno(self):
        raise OSError("scripts have no files; use print()")


class OutputBytes:
    """`sys.stdout.buffer`: bytes of UTF-8."""

    mode, closed = "wb", False

    def __init__(self, output):
        self.output = output

    def write(self, data):
        data = bytes(data)
        self.output.write(data.decode("utf-8", "replace"))
        return len(data)

    def flush(self):
        self.output.flush()

    def writable(self):
        return True


class Script:
    """The script of this process: its channel, what it called and did not await, and what its cancelled tasks ran."""

    channel, never, names, cancelled, functions, outputs = None, set(), {}, set(), {}, ()
    # Numbers of the scripts in a retained namespace, from the second on.
    number = itertools.count(2)


class Call(collections.abc.Coroutine):
    """A call that was not awaited yet. Says so to whoever takes it for its result."""

    def __init__(self, name, coroutine):
        self._call_ = (name, coroutine, False)
        # What prints a task shows these.
        self.__name__ = self.__qualname__ = name
        Script.never.add(id(self))
        Script.names[id(self)] = name

    def _begin(self):
        name, coroutine, _ = self._call_
        Script.never.discard(id(self))
        self._call_ = (name, coroutine, True)
        return coroutine

    def send(self, value):
        return self._begin().send(value)

    def throw(self, *error):
        return self._begin().throw(*error)

    def close(self):
        self._begin().close()

    def __await__(self):
        return self._begin().__await__()

    def __del__(self):
        _, coroutine, has_begun = self._call_
        if not has_begun:
            coroutine.close()

    def __repr__(self):
        return f"<the call of {self._call_[0]}, which was not awaited>"

    __str__ = __repr__


def no_result(call):
    name = object.__getattribute__(call, "_call_")[0]
    return f"{name}(…) was not awaited, so this is no result yet: write `await {name}(…)`"


def not_awaited(self, *_, **__):
    raise TypeError(no_result(self))


def no_attribute(self, _):
    raise AttributeError(no_result(self))


Call.__getattr__ = no_attribute

for _name in """__getitem__ __setitem__ __delitem__ __iter__ __len__ __contains__ __bool__ __int__ __float__ __index__ __call__
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __mod__ __lt__ __le__ __gt__ __ge__
    __reversed__ __enter__ __format__ __or__ __and__""".split():
    setattr(Call, _name, not_awaited)


def takes_keep(name, params, named):
    """Whether the result may be kept. A parameter of the tool of that name is the tool's."""
    if "on_large" in params or "on_large" not in named:
        return False
    wanted = named.pop("on_large")
    if wanted not in ("spill", None):
        raise ValueError(f"{name}() takes on_large=\"spill\" or nothing, not {wanted!r}")
    return wanted is not None


def tool_function(tool):
    """`tool`: {name, params, required}."""
    name, params = tool["name"], tool["params"]

    def function(*positional, **named):
        if len(positional) > len(params):
            takes = f"{name}() takes {len(params)} positional arguments ({', '.join(params)}) but {len(positional)} were given"
            raise TypeError(takes)
        for parameter, value in zip(params, positional):
            if parameter in named:
                raise TypeError(f"{name}() got multiple values for argument '{parameter}'")
            named[parameter] = value
        keep = takes_keep(name, params, named)
        return ResultCall(name, {"tool": name, "arguments": named, "keep": keep})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"await {name}({', '.join(params)}); help({name}) explains it"
    function._is_tool_ = True
    return function


def unavailable(name):
    def function(*_, **__):
        error = ToolError(f"'{name}' is not available in execute_program")
        error.bare = True
        raise error

    return function


def make_functions(table):
    """What scripts find beside what Python has. Made once for all scripts that have these functions."""
    functions = {tool["name"]: tool_function(tool) for tool in table["functions"]}

    def tools(words=""):
        """The names of all tool functions; with words, of those whose name or description has each of them."""
        return Script.channel.look({"tools": words})

    def help(thing=None):
        """Prints what a tool function, or anything else, is and takes."""
        thing = functions.get(thing, thing) if isinstance(thing, str) else thing
        if thing is None:
            print("help(f) explains the function f; tools() lists the tool functions, tools(\"words\") searches them.")
        elif getattr(thing, "_is_tool_", False):
            print(Script.channel.look({"help": thing.__name__}))
        else:
            import pydoc

            print(pydoc.render_doc(thing, renderer=pydoc.plaintext))

    others = {name: unavailable(name) for name in table["unavailable"]}
    ours = {"tools": tools, "help": help, "content_of": content_of, **REQUESTS}
    return {"names": functions, "all": {**functions, **others, **ours}}


def format_traceback(error):
    """The traceback without frames of ours."""
    if getattr(error, "bare", False) and isinstance(error, ToolError):
        return f"ToolError: {error}"
    shown = traceback.TracebackException.from_exception(error, compact=True)
    open_ones = [shown]
    while open_ones:
        one = open_ones.pop()
        ours = (OURS, "<frozen ")
        frames = [frame for frame in one.stack if not frame.filename.startswith(ours)]
        for frame in frames:
            # The traceback does not show where Python is installed.
            frame.filename = frame.filename.removeprefix(LIBRARY)
        # Frames of the event loop below a call are not part of the script.
        one.stack[:] = [frame for frame in frames if not frame.filename.endswith(("asyncio/base_events.py", "asyncio/events.py"))]
        open_ones += [each for each in (one.__cause__, one.__context__) if each is not None]
        open_ones += getattr(one, "exceptions", None) or []
    text = "".join(shown.format()).rstrip("\n")
    if isinstance(error, NameError) and getattr(error, "name", None):
        near = difflib.get_close_matches(error.name, list(Script.functions), 1, 0.6)
        if near and "Did you mean" not in text:
            text += f". Did you mean: '{near[0]}'?"
        elif error.name.startswith("mcp__") and not near:
            text += ". There is no such tool; `print(tools())` lists those that there are"
    return text


def refused(name):
    def function(*_, **__):
        raise PermissionError(errno.EPERM, f"{name} is not permitted in execute_program")

    return function


# Functions that the system refuses without an error in Python: public name, and all modules that have it.
QUIET = {
    "os": ("system sync umask getpgrp".split(), ["os", "posix"]),
    "signal": ("alarm pause".split(), ["signal", "_signal"]),
}


def limit(settings, keep=False):
    # A retained process has its time limited by the wall clock, and is stopped between scripts.
    seconds = resource.RLIM_INFINITY if keep else settings["cpu_seconds"]
    for which, most in [
        (resource.RLIMIT_AS, settings["base_bytes"] + settings["memory_bytes"]),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 32),
    ]:
        resource.setrlimit(which, (most, most))


def can_signal(process):
    try:
        os.kill(process, 0)
        return True
    except PermissionError:
        return False


def try_child(settings):
    """What every script adds to the jail, tried in a child. The names of these layers."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            limit(settings)
            own_domain(settings["landlock"])
            if settings["landlock"] >= LANDLOCK_SCOPED and can_signal(os.getppid()):
                os._exit(1)
            filter_system_calls(settings["filter"])
            os.getpgid(0)
        except PermissionError:
            # The call failed as it should: the filter does not allow it.
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1] != 0:
        raise JailError("seccomp or Landlock: the filter of system calls or the scope of signals cannot be set, or does nothing")
    return ["limits", "seccomp"]


def run_script(settings, functions, descriptor, inherited):
    """Ends the process."""
    die_with_parent()
    for each in inherited:
        os.close(each)
    nothing = settings["nothing"]
    for each in (0, 1, 2):
        if each != descriptor:
            os.dup2(nothing, each)
    channel = Script.channel = Channel(descriptor)
    Script.functions = functions["names"]
    task = channel.read_line()
    loop = ScriptLoop()
    loop.install()
    loop.add_reader(descriptor, channel.readable)
    limit(settings, task["keep"])
    own_domain(settings["landlock"])
    filter_system_calls(settings["filter"])

    namespace = {"__name__": "__main__", "__builtins__": builtins, "ToolError": ToolError, **functions["all"]}
    builtins.exit = builtins.quit = sys.exit
    for public, (names, modules) in QUIET.items():
        for name in names:
            for module in filter(None, map(sys.modules.get, modules)):
                setattr(module, name, refused(f"{public}.{name}"))
    sys.argv = [FILE]
    file = FILE
    status = run_one(loop, namespace, task, file)
    while task["keep"]:
        while "code" not in (task := channel.read_line()):
            # The reply to a call that the script no longer waits for.
            pass
        # Definitions of earlier scripts keep their file names, so that tracebacks show their lines.
        file = FILE[:-1] + " " + str(next(Script.number)) + ">"
        run_one(loop, namespace, task, file)
    os._exit(status)


def run_one(loop, namespace, task, file):
    """The exit status. What it printed, or why not, was sent."""
    channel, code = Script.channel, task["code"]
    output = sys.stdout = sys.__stdout__ = Output("<stdout>", "printed", task["output_bytes"])
    sys.stderr = sys.__stderr__ = Output("<stderr>", "warned", task["output_bytes"])
    outputs = Script.outputs = (output, sys.stderr)
    # Lines as Python counts them. Each has a line end, because the marks below a line are computed with it.
    lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    linecache.cache[file] = (len(code), None, [line + "\n" for line in lines], file)
    Script.never.clear()
    Script.names.clear()
    Script.cancelled.clear()

    async def main():
        result = eval(compiled(code, file), namespace)
        if asyncio.iscoroutine(result):
            await result

    status, message = 0, None
    try:
        loop.run_until_complete(main())
    except SystemExit as error:
        status = 0 if error.code in (None, 0) else 1
        message = f"SystemExit: {error.code}"
    except BaseException as error:
        status = 1
        try:
            message = format_traceback(error)
        except BaseException:
            message = type(error).__name__
    try:
        loop.cancel_left(asyncio.all_tasks(loop))
    except BaseException:
        # An exit that a cancelled task asked for comes too late.
        pass
    try:
        for each in outputs:
            each.tell()
        if status == 0:
            text = "".join(output.parts)
            never = sorted({Script.names[each] for each in Script.never})
            notes = [f"RuntimeWarning: {name}(…) was never awaited, so it was not called: write `await {name}(…)`" for name in never]
            left = sorted(Script.cancelled)
            notes += [f"RuntimeWarning: a task of {name}(…) was cancelled before it was done: await the task" for name in left]
            channel.send({"output": text, "cut": output.cut, "notes": notes})
        else:
            channel.send({"error": message[:LONGEST_TRACEBACK], "cut": output.cut})
    except BaseException:
        status = 1
    channel.waiting.clear()
    return status

