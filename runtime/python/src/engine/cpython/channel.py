# The channel between a script's process and the host: lines of JSON in both directions.


def plain(value):
    """What JSON has no form for, as models mean it."""
    if isinstance(value, (set, frozenset, tuple, collections.abc.KeysView, collections.abc.ValuesView, range)):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be an argument of a tool")


# Made before scripts, which may change the functions of the module.
ENCODER = json.JSONEncoder(separators=(",", ":"), default=plain, allow_nan=False, ensure_ascii=False)
DECODER = json.JSONDecoder()


class Channel:
    """Sends the calls of a script, and gives each reply to the future that waits for it. No reply is lost: one that
    Python cannot decode, or that does not fit into the memory, is the exception of its call."""

    # Each reply begins with this and its number.
    REPLY = b'{"reply":'

    # Most bytes of that beginning.
    BEGINNING = 32

    def __init__(self, descriptor):
        # `waiting` has the future and the name of each call, by number.
        self.descriptor, self.buffer, self.waiting, self.last = descriptor, bytearray(), {}, 0
        # The beginning of a line that does not fit into the memory; its other bytes are not kept.
        self.unkept = None
        # Most bytes of a line to the host.
        self.longest = 0

    def read_task(self):
        """The next task. What stands before it are replies to calls that no script waits for."""
        while "code" not in (task := self.read_line()):
            pass
        self.longest = task["line_bytes"]
        return task

    def send(self, message):
        """Sends a line. What cannot be sent raises an exception, and nothing is sent."""
        data = line_of(message)
        if len(data) > self.longest:
            raise ValueError(f"this is too much at once: {len(data)} bytes, of at most {self.longest}")
        data = memoryview(data)
        # The other side stops reading while many replies are unread, so they are read meanwhile.
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN | select.POLLOUT)
        filled = False
        while data:
            ready = poll.poll()[0][1]
            if ready & select.POLLOUT or not ready & select.POLLIN:
                data = data[os.write(self.descriptor, data[:AT_ONCE]):]
            else:
                self.fill()
                filled = True
        if filled:
            # Nothing else may make the channel readable again.
            self.settle_all()

    def read_line(self):
        """The next line, decoded. A reply that cannot be decoded has the reason in place of its value."""
        while (end := self.buffer.find(b"\n")) < 0:
            self.fill()
        number = self.number(self.buffer)
        try:
            with memoryview(self.buffer) as all_lines, all_lines[:end] as line:
                text = str(line, "utf-8")
            return DECODER.decode(text)
        except MemoryError:
            if number is None:
                raise
            return {"reply": number, "unkept": True}
        except (RecursionError, ValueError) as error:
            if number is None:
                raise
            return {"reply": number, "undecoded": str(error)}
        finally:
            del self.buffer[: end + 1]

    def number(self, line):
        """The number of a reply; None for another line."""
        beginning = bytes(line[: self.BEGINNING])
        return int(beginning[len(self.REPLY):].partition(b",")[0]) if beginning.startswith(self.REPLY) else None

    def fill(self):
        data = os.read(self.descriptor, 1 << 16)
        if not data:
            os._exit(70)
        if self.unkept is None:
            try:
                self.buffer += data
                return
            except MemoryError:
                begun = self.buffer.rfind(b"\n") + 1
                self.unkept = bytes(self.buffer[begun : begun + self.BEGINNING])
                del self.buffer[begun:]
        rest_of_line, end, others = data.partition(b"\n")
        self.unkept = (self.unkept + rest_of_line[: self.BEGINNING])[: self.BEGINNING]
        if end:
            number, self.unkept = self.number(self.unkept), None
            if number is None:
                raise MemoryError
            self.buffer += b'%s%d,"unkept":true}\n%s' % (self.REPLY, number, others)

    def ask(self, message):
        """A future of the reply: the value, and all content blocks or None when the value says everything."""
        # The script may be killed during the call, so its output is sent first.
        for output in Script.outputs:
            output.tell()
        self.last += 1
        future = asyncio.get_running_loop().create_future()
        name = message.get("tool") or message.get("request") or f"{message['kept']}.{message['method']}"
        number = self.last
        self.waiting[number] = (future, name)
        try:
            self.send({"call": number, **message})
        except BaseException:
            del self.waiting[number]
            raise
        return future

    def look(self, at):
        """What it shows, at once."""
        self.last += 1
        number = self.last
        self.send({"call": number, "look": at})
        while (reply := self.read_line())["reply"] != number:
            self.settle(reply)
        self.settle_all()
        error = failure(next(iter(at)), reply)
        if error is not None:
            raise error
        return reply["value"]

    def readable(self):
        try:
            self.fill()
        except BaseException as error:
            self.give_up(error)
        self.settle_all()

    def settle_all(self):
        try:
            while b"\n" in self.buffer:
                self.settle(self.read_line())
        except BaseException as error:
            self.give_up(error)

    def give_up(self, error):
        """Fails all calls that wait: a reply to one of them may be lost."""
        for future, _ in self.waiting.values():
            if is_awaited(future):
                future.set_exception(error)
        self.waiting.clear()

    def settle(self, reply):
        future, name = self.waiting.pop(reply["reply"], (None, None))
        if future is None or not is_awaited(future):
            return
        error = failure(name, reply)
        if error is not None:
            future.set_exception(error)
        elif "kept" in reply:
            future.set_result((Spilled(reply["kept"]), None))
        else:
            # A result that has nothing but other content is this content.
            content = reply.get("content")
            future.set_result((reply.get("value", content), content))


def line_of(message):
    """The message as a line of UTF-8."""
    text = ENCODER.encode(message)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # Two surrogates may be the halves of one character. Of a call everything is sent as it is, or not at all.
        errors = "strict" if "arguments" in message else "replace"
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", errors).encode() + b"\n"
        except UnicodeDecodeError:
            raise ValueError("a text has half of a character (an unpaired surrogate), which JSON cannot carry") from None


def is_awaited(future):
    return not future.done() and not future.get_loop().is_closed()


def failure(name, reply):
    """The exception that a reply to this function is; None for a result."""
    if "unkept" in reply:
        return MemoryError(f"the result of '{name}' does not fit into the memory of the script")
    if "undecoded" in reply:
        return ToolError(f"'{name}' failed: Python cannot decode its result: {reply['undecoded']}")
    if "error" not in reply:
        return None
    error = ToolError(reply["error"])
    error.content, error.structured_content = reply.get("content", ()), reply.get("structured")
    return error
