# A script as the module `__main__`: its namespace, and its code as that of a module that is awaited.


def main_module(names):
    """The namespace of a module that others find by its name, as they find that of a program."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__dict__.update(names)
    return module.__dict__


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

    def visit_Call(self, node):
        # What asks for the local names means those of the module.
        self.generic_visit(node)
        name = getattr(node.func, "id", None)
        if name not in ("locals", "vars", "dir") or node.args or node.keywords:
            return node
        text = "sorted(globals())" if name == "dir" else "globals()"
        return ast.copy_location(ast.parse(text, mode="eval").body, node)

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


def with_return(code, file, flags):
    tree = ModuleScope().visit(ast.parse(code, file))
    # These stand at the beginning of a module.
    futures = [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
    body = [each for each in tree.body if each not in futures]
    wrapper = ast.parse("async def __main__():\n    pass\nawait __main__()", file)
    names = names_in(body, file)
    wrapper.body[0].body = [ast.Global(names)] * bool(names) + body
    wrapper.body[:0] = futures
    try:
        return compile(ast.fix_missing_locations(wrapper), file, "exec", flags=flags, dont_inherit=True)
    except SyntaxError as error:
        raise error from None


def compiled(code, file):
    """Runs as the body of a module whose frame is called `__main__`. A `return` outside of functions makes it a function,
    with the names of the module."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        body = compile(code, file, "exec", flags=flags, dont_inherit=True)
    except SyntaxError as error:
        if error.msg != "'return' outside function":
            raise
        return with_return(code, file, flags)
    if body.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR):
        raise SyntaxError("'yield' outside function")
    names = {"co_name": "__main__"}
    if hasattr(body, "co_qualname"):
        names["co_qualname"] = "__main__"
    return body.replace(**names)
