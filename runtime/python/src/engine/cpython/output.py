# The standard output and the standard error of a script.

# Number of pieces of output that are sent as they are written. Later ones are sent at this interval, in seconds, or when
# they have so many bytes together.
PIECES_AT_ONCE = 1000
PAUSE = 0.05
PIECE = 4096


class Output(io.TextIOBase):
    """`sys.stdout` or `sys.stderr`: keeps what fits, and tells it on the way, so that it is known of a script that is cut off."""

    encoding, errors, newlines, mode = "utf-8", "strict", None, "w"
    line_buffering, write_through = True, False

    def __init__(self, name, word, limit):
        self.name, self.word, self.limit = name, word, limit
        # Whether the script may have put a stream of its own over the bytes.
        self.bytes_stream, self.is_shared = OutputBytes(self), False
        self.bytes, self.cut, self.parts, self.sent, self.told, self.times, self.last = 0, False, [], 0, 0, 0, 0.0

    @property
    def buffer(self):
        self.is_shared = True
        return self.bytes_stream

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

    def close(self):
        """It stays open, for what else prints in this process."""
        self.flush()

    def writable(self):
        return True

    def reconfigure(self, **_):
        pass

    def detach(self):
        return self.buffer

    def fileno(self):
        raise io.UnsupportedOperation("scripts have no files; use print()")


class OutputBytes(io.BufferedIOBase):
    """`sys.stdout.buffer`: bytes of UTF-8. Those of a character may come one by one."""

    mode = "wb"

    def __init__(self, output):
        self.output, self.decoder = output, codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data):
        with memoryview(data) as view:
            data = view.tobytes()
        self.output.write(self.decoder.decode(data))
        return len(data)

    def finish(self):
        """Writes a character of which bytes are missing as one that cannot be read."""
        self.output.write(self.decoder.decode(b"", final=True))

    def flush(self):
        self.output.flush()

    def close(self):
        self.flush()

    def writable(self):
        return True

    def fileno(self):
        return self.output.fileno()


def streams_over(stream):
    """Streams that write to this one, directly or through others. The outermost are first."""
    found = [stream]
    for inner in found:
        outer = gc.get_referrers(inner)
        found += [each for each in outer if isinstance(each, (io.TextIOWrapper, io.BufferedWriter)) and each not in found]
    return found[:0:-1]


def flush_all(streams):
    for stream in streams:
        # One of the script's may be closed, or fail.
        with contextlib.suppress(Exception):
            stream.flush()


def end_outputs(outputs):
    """Tells what is left, also in streams that the script has put over these."""
    flush_all([sys.stdout, sys.stderr])
    for each in outputs:
        if each.is_shared:
            flush_all(streams_over(each.bytes_stream))
        each.bytes_stream.finish()
        each.tell()
