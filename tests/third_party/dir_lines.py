"""Reads lines of `dir` and makes arguments of them, without any other knowledge of the tool.

Written from the table of docs/guide.md alone, apart from tests/src/signature.rs, so that each checks the other.
"""

import json
import re
import re._parser as sre

LEAST, FIRST, LAST = "least", "first", "last"
DEEPEST = 4
TEXTS = {
    "date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "10:30:00Z", "uri": "https://example.com/a",
    "url": "https://example.com/a", "email": "ada@example.com", "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "uri-reference": "/a", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "duration": "P1D",
    "cidrv4": "192.0.2.0/24", "cidrv6": "2001:db8::/32", "json": "{}",
}


class Line:
    """A tool's line: `name {:a string :b integer?} - What it does`."""

    def __init__(self, text):
        self.name, self.rest = read_name(text)
        self.text, self.types = text, {}
        self.of = self.union()
        while self.takes(" where ") or self.takes("; "):
            name = self.word()
            self.expect(" = ")
            self.types[name] = self.union()
        if self.rest and not self.rest.startswith(" - "):
            raise ValueError(f"more than a signature: {self.rest!r} in {text}")

    def value(self, style):
        return value(self.of, style, self.types, 0)

    def names(self):
        """Names of the arguments, those in parentheses included; None if there may be others."""
        maps = [of for of in alternatives(self.of) if of[0] == "map"]
        if not maps or any(of[2] is not None or of[4] is None for of in maps):
            return None
        return {name for of in maps for name in [member[0] for member in of[1]] + of[4]}

    def takes(self, word):
        if self.rest.startswith(word):
            self.rest = self.rest[len(word):]
            return True
        return False

    def expect(self, word):
        if not self.takes(word):
            raise ValueError(f"no {word!r} before {self.rest!r} in {self.text}")

    def word(self):
        found = re.match(r"\w*", self.rest, re.A).group()
        self.rest = self.rest[len(found):]
        return found

    def json(self):
        number = re.match(r"-?\d[\d.eE+-]*", self.rest)
        if number and ".." not in number.group():
            self.rest = self.rest[number.end():]
            return json.loads(number.group())
        found, end = json.JSONDecoder().raw_decode(self.rest)
        self.rest = self.rest[end:]
        return found

    def union(self):
        kinds = [self.single()]
        while self.takes("|"):
            if self.takes("…"):
                int(self.word())
                self.expect(" more")
            else:
                kinds.append(self.single())
        return kinds[0] if len(kinds) == 1 else ("union", kinds)

    def single(self):
        of = self.whole()
        return ("cut", of) if self.takes("…") else of

    def whole(self):
        if self.takes("{"):
            return self.map()
        if self.takes("["):
            items = [self.union()]
            while self.takes(", "):
                items.append(self.union())
            self.expect("]")
            return ("list", items, self.facts())
        if self.takes("const<"):
            constant = self.json()
            self.expect(">")
            return ("literal", constant)
        if self.rest[:1] in '"-0123456789':
            return ("literal", self.json())
        name = self.word()
        if name in ("true", "false"):
            return ("literal", name == "true")
        if not name:
            raise ValueError(f"no type before {self.rest!r} in {self.text}")
        return ("named", name) if name[0].isupper() else ("word", name, self.facts())

    def map(self):
        members, others, more = [], None, []
        while not self.takes("}"):
            self.takes(" ")
            if self.takes("* "):
                others = self.union()
            elif self.takes("… ("):
                names, self.rest = self.rest.split(")", 1)
                more = None if "…" in names else [name.strip('"') for name in names.split(" ")]
            elif self.takes("…"):
                more = None
            else:
                name, self.rest = self.rest[1:].split(" ", 1) if self.rest[0] == ":" else (self.json(), self.rest[1:])
                of = self.union()
                is_required = not self.takes("?")
                default = (self.json(),) if self.takes(" = ") else ()
                members.append((name, of, is_required, default))
        return ("map", members, others, self.facts(), more)

    def facts(self):
        facts = []
        if not self.takes("<"):
            return facts
        while True:
            word = next((word for word in ("not ", "unlike ") if self.takes(word)), "")
            if word or self.rest.startswith('"'):
                facts.append((word.strip() or "like", self.json()))
            else:
                fact = re.match(r"[^,>|]*", self.rest).group()
                self.rest = self.rest[len(fact):]
                facts.append(("fact", fact))
            if self.takes(">"):
                return facts
            if not self.takes("|"):
                self.expect(", ")


def read_name(text):
    """The name of the tool and what follows it."""
    if text.startswith('"'):
        name, end = json.JSONDecoder().raw_decode(text)
        return name, text[end + 1:]
    return tuple(text.split(" ", 1))


def alternatives(of):
    return of[1] if of[0] == "union" else [of]


def is_cut(of):
    """True if the line does not say all that a value of this type needs."""
    kind = of[0]
    if kind == "map":
        return any(is_cut(member[1]) for member in of[1] if member[2])
    return kind == "cut" or kind in ("union", "list") and any(is_cut(part) for part in of[1])


def value(of, style, types, depth):
    kind = of[0]
    if kind == "union":
        plain = [part for part in of[1] if style != LEAST or part[0] != "named"] or of[1]
        return value(plain[-1] if style == LAST else plain[0], style, types, depth)
    if kind == "literal":
        return of[1]
    if kind == "cut":
        return value(of[1], style, types, depth)
    if kind == "named":
        return value(types[of[1]], style if depth < DEEPEST else LEAST, types, depth + 1)
    if kind == "list":
        least, most = bounds(of[2])
        if len(of[1]) > 1:
            return [value(item, style, types, depth) for item in of[1]]
        count = min(max(0 if style == LEAST else 1, int(least or 0)), int(most if most is not None else 99))
        return [value(of[1][0], style, types, depth) for _ in range(count)]
    if kind == "map":
        return map_value(of, style, types, depth)
    made = word_value(of[1], of[2], style)
    refused = [other for mark, other in of[2] if mark == "not"]
    if made in refused:
        made = made + 1 if isinstance(made, (int, float)) and made is not True else f"{made}!"
    return made


def map_value(of, style, types, depth):
    _, members, others, facts, _ = of
    sets = [fact[5:].split(" ") for mark, fact in facts if mark == "fact" and fact.startswith("with ")]
    also = {name.lstrip(":") for name in (sets[-1 if style == LAST else 0] if sets else [])}
    made = {}
    for name, part, is_required, default in members:
        # A line that leaves something out does not say how to write that argument.
        if is_required or name in also or (style != LEAST and not is_cut(part)):
            made[name] = default[0] if default and style == FIRST else value(part, style, types, depth)
            # Names are a part of the line, too.
            if made[name] == "text" and re.search("absolute_?path", name, re.I):
                made[name] = "/text"
    for name, part, _, _ in members:
        if len(made) < (bounds(facts)[0] or 0):
            made.setdefault(name, value(part, style, types, depth))
    if others is not None and style != LEAST:
        made["other"] = value(others, style, types, depth)
    return made


def bounds(facts):
    for mark, fact in facts:
        if mark == "fact" and ".." in fact:
            return tuple(float(limit) if limit else None for limit in fact.split("..", 1))
    return None, None


def word_value(name, facts, style):
    least, most = bounds(facts)
    words = [fact for mark, fact in facts if mark == "fact" and ".." not in fact]
    if name in ("integer", "number"):
        limit = {word.split(" ")[0]: float(word.split(" ")[1]) for word in words}
        low = max([limit.get("above", float("-inf")) + 1, least if least is not None else float("-inf")])
        high = min([limit.get("below", float("inf")) - 1, most if most is not None else float("inf")])
        number = high if style == LAST and high < 1e15 else max(low, min(1, high))
        step = limit.get("times")
        number = number // step * step if step else number
        return int(number) if number == int(number) else number
    if name == "string":
        patterns = [pattern for mark, pattern in facts if mark == "like"]
        return text(patterns, words[0] if words else "", int(least or 0), int(most if most is not None else 10**9))
    return {"boolean": True, "null": None, "array": [], "object": {}, "any": "anything"}[name]


def text(patterns, form, least, most):
    if not patterns:
        # A text of a format is not padded: that would be another one.
        made = TEXTS.get(form, "text")
        return (made if form in TEXTS else made.ljust(least, "x"))[:most]
    fits = lambda made: all(re.search(pattern, made) for pattern in patterns) and least <= len(made) <= most
    known = [*([TEXTS[form]] if form in TEXTS else []), *TEXTS.values(), "main", "10:30", "12", "a b"]
    parsed = sre.parse(patterns[0])
    tries = known + [like(parsed, extra) for extra in range(0, 70)]
    return next((made for made in tries if fits(made)), tries[len(known)])


def like(parsed, extra):
    """A text that a parsed pattern matches; each repetition is made `extra` times more than it has to be."""
    made = ""
    for code, what in parsed:
        code = str(code)
        if code == "LITERAL":
            made += chr(what)
        elif code == "NOT_LITERAL":
            made += "a" if what != ord("a") else "b"
        elif code == "ANY":
            made += "x"
        elif code == "IN":
            made += one_of(what)
        elif code == "BRANCH":
            made += like(what[1][0], extra)
        elif code == "SUBPATTERN":
            made += like(what[3], extra)
        elif code in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, part = what
            made += like(part, extra) * min(least + extra, int(most))
    return made


def one_of(items):
    allowed = lambda char: any(
        what == ord(char) if str(code) == "LITERAL"
        else what[0] <= ord(char) <= what[1] if str(code) == "RANGE"
        else bool(re.match({"CATEGORY_DIGIT": r"\d", "CATEGORY_WORD": r"\w", "CATEGORY_SPACE": r"\s",
                            "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_NOT_WORD": r"\W", "CATEGORY_NOT_DIGIT": r"\D"}[str(what)], char))
        for code, what in items if str(code) != "NEGATE")
    is_negated = any(str(code) == "NEGATE" for code, _ in items)
    candidates = "a1Ax0-_./ :" + "".join(map(chr, range(33, 127)))
    return next((char for char in candidates if allowed(char) != is_negated), "")
