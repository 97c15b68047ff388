# What calls give to a script: values that carry all content blocks of their results, results that are too
# large, and the functions for resources and prompts.


class CarrierType(type):
    """The type of a class that carries content. The class equals the plain type that it derives from."""

    def __eq__(cls, other):
        return other is cls or other is cls.__base__

    def __hash__(cls):
        return hash(cls.__base__)


def carrier(plain):
    """A class whose objects are those of the plain type, with `.content`. Copies of an object are plain."""

    def content(self):
        """All content blocks of the result, as dicts."""
        return text_block(self) if self._blocks_ is None else self._blocks_

    members = {"_blocks_": None, "content": property(content), "__reduce_ex__": lambda self, _: (plain, (plain(self),))}
    members.update(__module__="builtins", __doc__=plain.__doc__)
    return CarrierType(plain.__name__, (plain,), members)


# None and bool have no subclasses.
CARRIERS = {plain: carrier(plain) for plain in (str, dict, list, int, float)}


def carry(value, blocks):
    """The value, with `.content` if its type allows it."""
    kind = CARRIERS.get(type(value))
    if kind is None:
        return value
    carried = kind(value)
    carried._blocks_ = blocks
    return carried


TEXT_ENCODER = json.JSONEncoder()


def text_block(value):
    """The content of a result that its value says completely."""
    if value is None:
        return []
    return [{"type": "text", "text": str(value) if isinstance(value, str) else TEXT_ENCODER.encode(value)}]


class ResultCall(Call):
    """A call of a tool, or a request for a list, a resource or a prompt."""

    def __init__(self, name, message):
        self._message_ = message

        async def value():
            return carry(*await Script.channel.ask(message))

        super().__init__(name, value())


def content_of(result):
    """await content_of(call): all content blocks of what the call gives, as dicts. Of a result, its `.content`."""

    async def content():
        if isinstance(result, ResultCall):
            result._begin().close()
            value, blocks = await Script.channel.ask(result._message_)
        else:
            value, blocks = result, getattr(result, "content", None)
        if blocks is not None:
            return blocks
        # The blocks of what is too large to be carried are in the result that is kept.
        return value if isinstance(value, Spilled) else text_block(value)

    return Call("content_of", content())


def request_function(name, usage, about):
    def function(*positional, **named):
        return ResultCall(name, {"request": name, "arguments": [positional, named]})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"await {name}({usage}): {about}"
    return function


REQUESTS = {
    name: request_function(name, usage, about)
    for name, usage, about in [
        ("list_resources", "server", "the resources of a server, a list of dicts"),
        ("list_resource_templates", "server", "the templates of resource addresses of a server, a list of dicts"),
        ("read_resource", "server, uri", "what a resource holds"),
        ("list_prompts", "server", "the prompts of a server, a list of dicts"),
        ("get_prompt", "server, name, args=None", "a prompt with its arguments filled in: description and messages"),
    ]
}


class Spilled:
    """A result that is too large to be carried, kept by the server."""

    value_kind = "spilled"

    def __init__(self, kept):
        self.spill, self.bytes, self.lines, self.preview = (kept[each] for each in ("spill", "bytes", "lines", "preview"))

    def __repr__(self):
        return f"Spilled(spill={self.spill!r}, bytes={self.bytes}, lines={self.lines}, preview={self.preview!r})"


Spilled.__module__ = "builtins"


def kept_method(method, usage):
    def function(self, *positional, **named):
        async def look():
            value, _ = await Script.channel.ask({"kept": self.spill, "method": method, "arguments": [positional, named]})
            return value

        return Call(f"{self.spill}.{method}", look())

    function.__name__, function.__qualname__ = method, f"Spilled.{method}"
    function.__doc__ = f"await result.{method}({usage})"
    return function


for _name, _usage in {
    "stat": "", "head": "lines=50", "tail": "lines=50", "slice": "from_line=1, to_line=None", "grep": "pattern, context=0",
    "read": "max_bytes=None", "json_path": "path",
}.items():
    setattr(Spilled, _name, kept_method(_name, _usage))


def not_carried(self, *_, **__):
    raise TypeError(f"{self!r} is too large to be carried: look into it with await .head(n) .slice(a, b) .grep(pattern) .json_path(path)")


for _name in "__getitem__ __iter__ __len__ __contains__ __int__ __float__ __reversed__".split():
    setattr(Spilled, _name, not_carried)


def is_coroutine(thing, is_one=inspect.iscoroutine):
    return isinstance(thing, Call) or is_one(thing)


def is_coroutine_function(thing, is_one=inspect.iscoroutinefunction):
    return getattr(thing, "_is_tool_", False) or is_one(thing)


# Scripts ask these whether there is something to await.
inspect.iscoroutine, inspect.iscoroutinefunction = is_coroutine, is_coroutine_function
