# The event loops of a script. Scripts that are written for a process of their own run loops where one runs already:
# in code that a task calls. Another loop then runs to its end while the outer one waits; the same loop goes on in turns.


class ScriptLoop(asyncio.SelectorEventLoop):
    """Any loop of a script. It can be run while a loop runs, and reads the replies of calls. It needs no descriptors, of
    which scripts have few, because it has no threads and no signals."""

    loops = weakref.WeakSet()

    # Most times that tasks of a script that ends may exit, stop the loop, or make others.
    ROUNDS = 1000

    def __init__(self, _=None):
        super().__init__(selectors.PollSelector())
        self.loops.add(self)
        self.add_reader(Script.channel.descriptor, Script.channel.readable)

    def _make_self_pipe(self):
        self._ssock = self._csock = None

    def _close_self_pipe(self):
        pass

    def add_signal_handler(self, *_):
        """No signal reaches a script."""

    def remove_signal_handler(self, _):
        return False

    async def shutdown_default_executor(self, *_):
        """No executor has threads."""

    def run_forever(self):
        with outer_set_aside():
            if self.is_running():
                self.turn(lambda: False)
            else:
                super().run_forever()

    def run_until_complete(self, future):
        if not self.is_running():
            with outer_set_aside():
                return super().run_until_complete(future)
        # The task that asks goes on only afterwards, so a gathering of it and of others would never be done.
        if asyncio.current_task(self) in getattr(future, "_children", ()):
            raise RuntimeError("a task cannot wait for itself: leave out asyncio.current_task()")
        with outer_set_aside():
            future = asyncio.ensure_future(future, loop=self)
            self.turn(future.done)
            if not future.done():
                raise RuntimeError("Event loop stopped before Future completed.")
            return future.result()

    def turn(self, is_done):
        """Turns of this loop within one of its turns, until this is done or the loop is stopped. The outer turn has
        counted the handles that it will run, so it finds as many."""
        counted, stopping = len(self._ready), self._stopping
        nothing = asyncio.Handle(len, (), self)
        nothing.cancel()
        asyncio._set_running_loop(self)
        self._stopping = False
        try:
            while not is_done() and not self._stopping:
                self._run_once()
        finally:
            self._stopping = stopping
            self._ready.extendleft([nothing] * (counted - len(self._ready)))

    def cancel_left(self):
        """Cancels its tasks, runs them to their end, and remembers what they were. None may go on in a later script, so
        this does not end with an exit or a stop that one of them asks for, and takes tasks that they make meanwhile."""
        cancelled = set()
        for _ in range(self.ROUNDS):
            tasks = Hidden.all_tasks(self)
            if not tasks:
                break
            new = tasks - cancelled
            remember(new - set(Hidden.tasks))
            for task in new:
                task.cancel()
            cancelled |= new
            with contextlib.suppress(BaseException):
                self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


class MainLoop(ScriptLoop):
    """The loop that awaits scripts, and that they find."""

    def close(self):
        """Later scripts of a session need it."""

    def run_script(self, code, namespace):
        """Runs the code of a module. Only one that awaits something is a task."""
        result = eval(code, namespace)
        if code.co_flags & inspect.CO_COROUTINE:
            task = self.create_task(result)
            Hidden.tasks.add(task)
            try:
                self.run_until_complete(task)
            finally:
                # Another task has ended the loop. As with `asyncio.run`, all clean up.
                if not task.done():
                    self.cancel_left()

    def end_script(self, keep):
        """Ends what it has left. A retained namespace may have generators that go on."""
        # One turn, in which a stop of this script takes effect.
        self.stop()
        # An exit that comes now comes too late.
        with contextlib.suppress(BaseException):
            self.run_forever()
        for loop in list(self.loops):
            if not loop.is_closed():
                loop.cancel_left()
                if not keep:
                    with contextlib.suppress(BaseException):
                        loop.run_until_complete(loop.shutdown_asyncgens())


class Hidden:
    """Tasks that others do not find among all tasks: the script, and those that wait for an inner run of their loop.
    Whoever waits for all tasks would wait for itself."""

    tasks, all_tasks = weakref.WeakSet(), asyncio.all_tasks


def seen_tasks(loop=None):
    """All tasks. Code that gives the loop may be about to run it until they are done, and the task of the script, which
    would be one of them, cannot be told from code outside of tasks. Without a loop it is a task that asks."""
    seen = FoundTasks(Hidden.all_tasks(loop).difference(Hidden.tasks))
    if loop is None:
        seen.add(asyncio.current_task())
        seen.discard(None)
    return seen


class FoundTasks(set):
    """Tasks from which the one that asks may be removed, also where it was left out."""

    def remove(self, task):
        if task in Hidden.tasks:
            self.discard(task)
        else:
            super().remove(task)


@contextlib.contextmanager
def outer_set_aside():
    """Lets a loop run within a task of the loop that runs."""
    loop = asyncio._get_running_loop()
    task = None if loop is None else asyncio.current_task(loop)
    if task is not None:
        asyncio.tasks._leave_task(loop, task)
    is_seen = task is not None and task not in Hidden.tasks
    if is_seen:
        Hidden.tasks.add(task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
        if task is not None:
            asyncio.tasks._enter_task(loop, task)
        if is_seen:
            Hidden.tasks.discard(task)


def remember(tasks):
    """Remembers what tasks were that are cancelled because their loop ends, if the script has not cancelled them. Those that
    Python makes to close a generator are nothing to await."""
    for task in tasks:
        coroutine = task.get_coro()
        is_cancelled = hasattr(task, "cancelling") and task.cancelling()
        if not is_cancelled and isinstance(coroutine, (types.CoroutineType, types.GeneratorType, Call)):
            Script.cancelled.add(coroutine.__qualname__)


def within_others(function):
    """A function that refuses to run a loop while another one runs, without that refusal."""

    @functools.wraps(function)
    def run(*positional, **named):
        with outer_set_aside():
            return function(*positional, **named)

    return run


def install_loops():
    """Makes these the loops of all functions of asyncio. Returns the loop of the script."""
    main = MainLoop()
    cancel_all, set_event_loop = asyncio.runners._cancel_all_tasks, asyncio.set_event_loop

    def cancel_and_remember(loop):
        remember(asyncio.all_tasks(loop))
        cancel_all(loop)

    def set_or_main(loop):
        set_event_loop(main if loop is None else loop)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        type(asyncio.get_event_loop_policy())._loop_factory = ScriptLoop
    for name in ("SelectorEventLoop", "EventLoop"):
        if hasattr(asyncio, name):
            setattr(asyncio, name, ScriptLoop)
    asyncio.runners._cancel_all_tasks = cancel_and_remember
    asyncio.all_tasks = asyncio.tasks.all_tasks = seen_tasks
    asyncio.set_event_loop = asyncio.events.set_event_loop = set_or_main
    asyncio.run = within_others(asyncio.run)
    if hasattr(asyncio, "Runner"):
        asyncio.Runner.run = within_others(asyncio.Runner.run)
    return main
