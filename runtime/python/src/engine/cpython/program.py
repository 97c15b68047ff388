# Runs one script in its forked process. A script can change everything here, so the reader of the channel
# trusts nothing that this side sends.
#
# The channel carries lines of JSON. The first line is the task: {code, output_bytes, keep, line_bytes}. This side sends
# {call, tool, arguments, keep}, {call, request, arguments}, {call, kept, method, arguments}, {call, look},
# {printed, cut} and {warned, cut} (more of its output), and at the end {output, cut, notes} or {error, cut}. It
# receives {reply, value, content}, {reply, kept} or {reply, error, content, structured}; `reply` stands first.
# The exit status is 0 if the script succeeded, otherwise 1. A process with a retained namespace does not exit:
# the next task follows.

import ast
import asyncio
import builtins
import codecs
import collections
import collections.abc
import contextlib
import difflib
import errno
import functools
import gc
import inspect
import io
import itertools
import json
import linecache
import os
import resource
import select
import selectors
import signal
import sys
import sysconfig
import time
import traceback
import types
import warnings
import weakref

FILE = "<program>"
OURS = "<ptc>"

# Most characters of a traceback.
LONGEST_TRACEBACK = 1 << 16

# Most bytes that are written at once. A socket that is writable takes them without waiting.
AT_ONCE = 1 << 15

LIBRARY = sysconfig.get_paths()["stdlib"] + "/"
LOOP_FILES = ("asyncio/base_events.py", "asyncio/events.py", "asyncio/runners.py")


class ToolError(Exception):
    """A tool call that failed. `content` has the blocks of the tool's error if there are others than texts, and
    `structured_content` its data if the message does not say the same."""

    content, structured_content = (), None


ToolError.__module__ = "builtins"


class Script:
    """The script of this process: its channel, what its cancelled tasks ran, and how many calls of each name it has
    made and not awaited."""

    channel, cancelled, functions, outputs = None, set(), {}, ()
    never = collections.Counter()
    # Numbers of the scripts in a retained namespace, from the second on.
    number = itertools.count(2)


class Call(collections.abc.Coroutine):
    """A call that was not awaited yet. Says so to whoever takes it for its result."""

    def __init__(self, name, coroutine):
        # What prints a task shows these.
        self.__name__ = self.__qualname__ = name
        # Counted until it begins, in the script that made it.
        never = Script.never
        never[name] += 1
        self._call_ = (name, coroutine, never)

    def _begin(self):
        name, coroutine, never = self._call_
        if never is not None:
            never[name] -= 1
            self._call_ = (name, coroutine, None)
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
        _, coroutine, never = self._call_
        if never is not None:
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

for _name in """__getitem__ __setitem__ __delitem__ __iter__ __len__ __contains__ __int__ __float__ __index__ __call__
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __mod__ __lt__ __le__ __gt__ __ge__
    __reversed__ __enter__ __format__ __or__ __and__""".split():
    setattr(Call, _name, not_awaited)


def truth(self):
    # What prints a task asks whether it has a coroutine.
    if sys._getframe(1).f_globals.get("__name__") == "asyncio.base_tasks":
        return True
    return not_awaited(self)


Call.__bool__ = truth


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
        one.stack[:] = [frame for frame in frames if not frame.filename.endswith(LOOP_FILES)]
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
    task = channel.read_task()
    loop = install_loops()
    limit(settings, task["keep"])
    own_domain(settings["landlock"])
    filter_system_calls(settings["filter"])

    namespace = main_module({"__builtins__": builtins, "ToolError": ToolError, **functions["all"]})
    builtins.exit = builtins.quit = sys.exit
    for public, (names, modules) in QUIET.items():
        for name in names:
            for module in filter(None, map(sys.modules.get, modules)):
                setattr(module, name, refused(f"{public}.{name}"))
    sys.argv = [FILE]
    file = FILE
    status = run_one(loop, namespace, task, file)
    while task["keep"]:
        task = channel.read_task()
        # Definitions of earlier scripts keep their file names, so that tracebacks show their lines.
        file = FILE[:-1] + " " + str(next(Script.number)) + ">"
        run_one(loop, namespace, task, file)
    os._exit(status)


def run_one(loop, namespace, task, file):
    """The exit status. What it printed, or why not, was sent."""
    channel, code = Script.channel, task["code"]
    asyncio.set_event_loop(loop)
    output = sys.stdout = sys.__stdout__ = Output("<stdout>", "printed", task["output_bytes"])
    sys.stderr = sys.__stderr__ = Output("<stderr>", "warned", task["output_bytes"])
    outputs = Script.outputs = (output, sys.stderr)
    # Lines as Python counts them. Each has a line end, because the marks below a line are computed with it.
    lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    linecache.cache[file] = (len(code), None, [line + "\n" for line in lines], file)
    Script.never = collections.Counter()
    Script.cancelled.clear()
    status, message = 0, None
    try:
        loop.run_script(compiled(code, file), namespace)
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
        loop.end_script(task["keep"])
    except BaseException:
        # An exit that a cancelled task asked for comes too late.
        pass
    try:
        end_outputs(outputs)
        if status == 0:
            text = "".join(output.parts)
            never = sorted(name for name, count in Script.never.items() if count > 0)
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

