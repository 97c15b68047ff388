# The event loop of a script, and its code as that of a module that is awaited.


class ScriptLoop(asyncio.SelectorEventLoop):
    """The only loop of a script's process. The script is awaited in it and may run it again, as scripts do that are not
    awaited: `asyncio.run`, `loop.run_until_complete`. Then turns of the loop go on until the inner work is done."""

    def install(self):
        asyncio.set_event_loop(self)
        asyncio.run = self.run_main
        asyncio.new_event_loop = asyncio.events.new_event_loop = lambda: self
        if hasattr(asyncio, "Runner"):
            asyncio.Runner = type("Runner", (ScriptRunner,), {"loop": self})

    def close(self):
        """The process closes it."""

    def run_until_complete(self, future):
        if not self.is_running():
            return super().run_until_complete(future)
        task = asyncio.ensure_future(future, loop=self)
        outer = asyncio.current_task(self)
        if outer is not None:
            asyncio.tasks._leave_task(self, outer)
        try:
            while not task.done():
                self._run_once()
        finally:
            if outer is not None:
                asyncio.tasks._enter_task(self, outer)
        return task.result()

    def run_main(self, main, *, debug=None, loop_factory=None):
        """`asyncio.run`: cancels the tasks that `main` leaves."""
        if not asyncio.iscoroutine(main):
            raise ValueError(f"a coroutine was expected, got {main!r}")
        earlier = asyncio.all_tasks(self)
        try:
            return self.run_until_complete(main)
        finally:
            self.cancel_left(asyncio.all_tasks(self) - earlier)

    def cancel_left(self, tasks):
        """Cancels tasks, runs them to their end, and remembers what they were, if the script has not cancelled them."""
        for task in tasks:
            coroutine = task.get_coro()
            if not (hasattr(task, "cancelling") and task.cancelling()):
                Script.cancelled.add(getattr(coroutine, "__qualname__", type(coroutine).__name__))
            task.cancel()
        if tasks:
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


class ScriptRunner:
    """`asyncio.Runner` in the loop of the script."""

    loop = None

    def __init__(self, *, debug=None, loop_factory=None):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, coro, *, context=None):
        return self.loop.run_main(coro)

    def get_loop(self):
        return self.loop

    def close(self):
        pass


class ModuleScope(ast.NodeTransformer):
    """Code of a module as the body of a function whose names are global. Functions in it stay as they are."""

    def visit_FunctionDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    def visit_AnnAssign(self, node):
        # A global name has no annotation in a function.
        if not isinstance(node.target, ast.Name):
            return node
        plain_one = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.copy_location(plain_one, node)

    def visit_ImportFrom(self, node):
        # A function cannot import all names of a module.
        if all(name.name != "*" for name in node.names):
            return node
        text = f"exec('from {node.module} import *', globals())"
        return ast.copy_location(ast.parse(text).body[0], node)


def names_in(body, file):
    """The names that code binds as the body of a function."""
    wrapper = ast.parse("async def __main__():\n    pass", file)
    wrapper.body[0].body = body
    function = next(each for each in compile(wrapper, file, "exec", dont_inherit=True).co_consts if hasattr(each, "co_code"))
    return [name for name in {*function.co_varnames, *function.co_cellvars} if name.isidentifier()]


def compiled(code, file):
    """Runs as the body of a module whose frame is called `__main__`. A `return` outside of functions makes it a function,
    with the names of the module."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        body = compile(code, file, "exec", flags=flags, dont_inherit=True)
    except SyntaxError as error:
        if "outside" not in str(error.msg):
            raise
        tree = ModuleScope().visit(ast.parse(code, file))
        wrapper = ast.parse("async def __main__():\n    pass\nawait __main__()", file)
        names = names_in(tree.body, file)
        wrapper.body[0].body = [ast.Global(names)] * bool(names) + tree.body
        return compile(ast.fix_missing_locations(wrapper), file, "exec", flags=flags, dont_inherit=True)
    names = {"co_name": "__main__"}
    if hasattr(body, "co_qualname"):
        names["co_qualname"] = "__main__"
    return body.replace(**names)
