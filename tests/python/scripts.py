# Scripts as models write them, one a section: what each prints in the jail must be what the machine's Python prints.

# ---- totals by region
orders = [{"region": "EU", "total": 120.5}, {"region": "US", "total": 80}, {"region": "EU", "total": 19.5}]
totals = {}
for order in orders:
    totals[order["region"]] = totals.get(order["region"], 0) + order["total"]
for region, total in sorted(totals.items(), key=lambda item: -item[1]):
    print(f"{region:<4}{total:>10,.2f}")

# ---- counter of words
from collections import Counter
text = "the quick brown fox jumps over the lazy dog the end"
for word, count in Counter(text.split()).most_common(3):
    print(word, count)

# ---- defaultdict of lists
from collections import defaultdict
groups = defaultdict(list)
for name in ["anna", "bob", "alice", "bert", "carl"]:
    groups[name[0]].append(name.title())
print(dict(groups))

# ---- nested json
import json
data = json.loads('{"users": [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}], "next": null}')
print(json.dumps({"ids": [u["id"] for u in data["users"]], "tags": sum(len(u["tags"]) for u in data["users"])}, indent=2))

# ---- json with default
import json
from datetime import date
print(json.dumps({"d": date(2024, 2, 29), "s": {3, 1, 2}}, default=lambda x: sorted(x) if isinstance(x, set) else x.isoformat()))

# ---- regular expressions
import re
log = "2024-01-05 ERROR db: timeout\n2024-01-06 INFO ok\n2024-01-07 ERROR api: 502"
for m in re.finditer(r"^(?P<day>\S+) ERROR (?P<who>\w+): (.*)$", log, re.MULTILINE):
    print(m["day"], m.group("who"), m.group(3))

# ---- substitution by function
import re
print(re.sub(r"\b(\w)(\w*)", lambda m: m.group(1).upper() + m.group(2), "hello big world"))
print(re.sub(r"(\d+)-(\d+)", r"\2-\1", "10-20 30-40"), re.split(r"[,;]\s*", "a, b;c"))

# ---- dates
from datetime import datetime, timedelta
start = datetime.fromisoformat("2024-02-27T10:30:00")
for days in range(4):
    print((start + timedelta(days=days)).strftime("%a %d %b %Y"))

# ---- difference of dates
from datetime import date
delta = date(2024, 12, 25) - date(2024, 2, 29)
print(delta.days, delta, date(2024, 12, 25).isocalendar()[1], date(2024, 3, 1).weekday())

# ---- time zones
from datetime import datetime, timezone, timedelta
moment = datetime(2024, 6, 1, 12, 0, tzinfo=timezone.utc)
print(moment.astimezone(timezone(timedelta(hours=-7))).isoformat(), int(moment.timestamp()))

# ---- named time zones
from datetime import datetime
from zoneinfo import ZoneInfo
print(datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")).astimezone(ZoneInfo("America/New_York")))

# ---- statistics
import statistics
values = [12, 15, 11, 19, 14, 15]
print(statistics.mean(values), statistics.median(values), statistics.mode(values), round(statistics.stdev(values), 3))

# ---- quantiles
import statistics
print(statistics.quantiles(range(1, 101), n=4), statistics.pstdev([1, 2, 3, 4]), statistics.fmean([0.1, 0.2]))

# ---- f-strings
name, value = "rate", 0.123456
print(f"{name!r:>10}|{value:.2%}|{value:8.3f}|{1234567:,}|{255:#x}|{'mid':^9}|{value = :.1f}")

# ---- comprehensions
matrix = [[1, 2, 3], [4, 5, 6]]
print([[row[i] for row in matrix] for i in range(3)], {x: x ** 2 for x in range(5) if x % 2}, {c for c in "aab"} == {"a", "b"})

# ---- nested comprehension over records
data = {"a": [1, 2], "b": [], "c": [3]}
print([(k, v) for k, vs in data.items() for v in vs], sum(v for vs in data.values() for v in vs))

# ---- a class with methods
class Account:
    def __init__(self, owner, balance=0):
        self.owner, self.balance = owner, balance
    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        return self
    def __repr__(self):
        return f"Account({self.owner!r}, {self.balance})"
account = Account("eve").deposit(10).deposit(5)
print(account)
try:
    account.deposit(-1)
except ValueError as error:
    print("refused:", error)

# ---- inheritance and super
class Shape:
    def area(self): return 0
    def describe(self): return f"{type(self).__name__} of {self.area():.1f}"
class Circle(Shape):
    def __init__(self, r): self.r = r
    def area(self): return 3.14159 * self.r ** 2
class Ring(Circle):
    def __init__(self, r, hole):
        super().__init__(r)
        self.hole = hole
    def area(self): return super().area() - Circle(self.hole).area()
for shape in [Shape(), Circle(1), Ring(2, 1)]:
    print(shape.describe())

# ---- dataclasses
from dataclasses import dataclass, field, asdict, replace
@dataclass(order=True)
class Item:
    price: float
    name: str = field(compare=False)
    tags: list = field(default_factory=list, compare=False)
items = [Item(3.5, "pen"), Item(1.25, "clip", ["office"]), Item(20, "lamp")]
print(max(items), asdict(min(items)), replace(items[0], price=9).price)

# ---- enumerations
from enum import Enum, auto, IntEnum
class Status(Enum):
    OPEN = "open"
    DONE = "done"
class Level(IntEnum):
    LOW = auto()
    HIGH = auto()
print(Status("open"), Status.DONE.value, [s.name for s in Status], Level.HIGH > Level.LOW)

# ---- named tuples
from typing import NamedTuple
from collections import namedtuple
class Point(NamedTuple):
    x: int
    y: int = 0
Pair = namedtuple("Pair", "left right")
print(Point(1), Point(1, 2)._replace(x=5), Pair(1, 2)._asdict())

# ---- properties
class Temperature:
    def __init__(self, celsius): self._c = celsius
    @property
    def fahrenheit(self): return self._c * 9 / 5 + 32
    @fahrenheit.setter
    def fahrenheit(self, value): self._c = (value - 32) * 5 / 9
    @classmethod
    def freezing(cls): return cls(0)
    @staticmethod
    def unit(): return "C"
t = Temperature.freezing()
t.fahrenheit = 212
print(t._c, t.fahrenheit, Temperature.unit())

# ---- operators of a class
class Vector:
    def __init__(self, *xs): self.xs = xs
    def __add__(self, other): return Vector(*(a + b for a, b in zip(self.xs, other.xs)))
    def __mul__(self, k): return Vector(*(x * k for x in self.xs))
    __rmul__ = __mul__
    def __eq__(self, other): return self.xs == other.xs
    def __len__(self): return len(self.xs)
    def __getitem__(self, i): return self.xs[i]
    def __repr__(self): return f"Vector{self.xs}"
print(Vector(1, 2) + Vector(3, 4), 2 * Vector(1, 2) == Vector(2, 4), len(Vector(1)), list(Vector(7, 8)))

# ---- a generator
def chunks(items, size):
    for start in range(0, len(items), size):
        yield items[start:start + size]
for chunk in chunks(list(range(10)), 4):
    print(chunk, sum(chunk))

# ---- an endless generator
from itertools import islice
def primes():
    found = []
    n = 2
    while True:
        if all(n % p for p in found):
            found.append(n)
            yield n
        n += 1
print(list(islice(primes(), 15)))

# ---- yield from and send
def flatten(tree):
    for node in tree:
        if isinstance(node, list):
            yield from flatten(node)
        else:
            yield node
def running():
    total = 0
    while True:
        total += yield total
r = running()
next(r)
print(list(flatten([1, [2, [3, [4]], 5]])), r.send(5), r.send(6))

# ---- try and finally
def risky(n):
    try:
        return 10 / n
    except ZeroDivisionError:
        return "none"
    else:
        return "never"
    finally:
        print("tried", n)
print(risky(2), risky(0))

# ---- exceptions of one's own
class ApiError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
try:
    try:
        {}["missing"]
    except KeyError as error:
        raise ApiError(404, "not there") from error
except ApiError as error:
    print(error.code, error, repr(error.__cause__))

# ---- retry
attempts = 0
def flaky():
    global attempts
    attempts += 1
    if attempts < 3:
        raise ConnectionError(f"attempt {attempts}")
    return "ok"
for _ in range(5):
    try:
        print(flaky())
        break
    except ConnectionError as error:
        print("retry after", error)

# ---- asyncio gather
import asyncio
async def double(x):
    await asyncio.sleep(0.001 * (5 - x))
    return x * 2
print(await asyncio.gather(*(double(x) for x in range(5))))

# ---- gather with exceptions
import asyncio
async def work(n):
    if n == 2:
        raise ValueError("two")
    return n
results = await asyncio.gather(*[work(n) for n in range(4)], return_exceptions=True)
print([r if not isinstance(r, Exception) else type(r).__name__ for r in results])

# ---- a semaphore
import asyncio
sem, running, most = asyncio.Semaphore(3), 0, 0
async def job(i):
    global running, most
    async with sem:
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
    return i
print(sum(await asyncio.gather(*(job(i) for i in range(20)))), most)

# ---- a task group or gather
import asyncio, sys
async def f(x): return x + 1
if sys.version_info >= (3, 11):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(f(i)) for i in range(3)]
    print([t.result() for t in tasks])
else:
    print(await asyncio.gather(*(f(i) for i in range(3))))

# ---- wait_for and timeouts
import asyncio
try:
    await asyncio.wait_for(asyncio.sleep(60), timeout=0.01)
except asyncio.TimeoutError:
    print("too slow")

# ---- asyncio run
import asyncio
async def main():
    tasks = [asyncio.create_task(asyncio.sleep(0.001, result=i)) for i in (3, 1, 2)]
    done = [await t for t in tasks]
    print(done)
    return "end"
print(asyncio.run(main()))

# ---- if name is main
import asyncio
async def main():
    async def numbers():
        for n in range(3):
            await asyncio.sleep(0)
            yield n
    print([n async for n in numbers()])
if __name__ == "__main__":
    asyncio.run(main())

# ---- async context manager
import asyncio
class Session:
    async def __aenter__(self):
        print("open")
        return self
    async def __aexit__(self, *exc):
        print("close", exc[0])
    async def get(self): return {"status": 200}
async with Session() as session:
    print(await session.get())

# ---- a queue of work
import asyncio
queue, out = asyncio.Queue(), []
async def worker():
    while True:
        item = await queue.get()
        out.append(item * item)
        queue.task_done()
workers = [asyncio.create_task(worker()) for _ in range(2)]
for n in range(6):
    queue.put_nowait(n)
await queue.join()
for w in workers:
    w.cancel()
print(sorted(out))

# ---- as completed
import asyncio
async def wait(n):
    await asyncio.sleep(n / 200)
    return n
print([await each for each in asyncio.as_completed([wait(3), wait(1), wait(2)])])

# ---- sorting by several keys
people = [("Ann", 30), ("Bob", 25), ("Cid", 30), ("Dee", 25)]
print(sorted(people, key=lambda p: (-p[1], p[0])))
from operator import itemgetter
print(sorted(people, key=itemgetter(1)), max(people, key=itemgetter(1)))

# ---- itertools
import itertools as it
print([(k, len(list(g))) for k, g in it.groupby("aaabbc")], list(it.combinations("abc", 2)), list(it.accumulate([1, 2, 3, 4])))
print(list(it.chain([1], [2, 3])), list(it.product([0, 1], repeat=2)), list(it.zip_longest([1, 2], [3], fillvalue=0)))

# ---- functools
from functools import reduce, partial, lru_cache
@lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(80), reduce(lambda a, b: a * b, range(1, 11)), partial(pow, 2)(10), fib.cache_info().misses)

# ---- decorators
import functools
def logged(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        result = f(*args, **kwargs)
        print(f"{f.__name__}{args}{kwargs or ''} -> {result}")
        return result
    return inner
@logged
def add(a, b=1): return a + b
add(2)
add(2, b=5)

# ---- heaps
import heapq
tasks = [(3, "c"), (1, "a"), (2, "b")]
heapq.heapify(tasks)
print([heapq.heappop(tasks)[1] for _ in range(3)], heapq.nlargest(2, [5, 1, 9, 3]))

# ---- bisect
import bisect
scores = [60, 70, 80, 90]
print(["FDCBA"[bisect.bisect(scores, s)] for s in (33, 60, 77, 89, 90, 100)])

# ---- deque
from collections import deque
window, means = deque(maxlen=3), []
for value in [1, 2, 6, 4, 5]:
    window.append(value)
    means.append(round(sum(window) / len(window), 2))
print(means, list(window))

# ---- decimals
from decimal import Decimal, ROUND_HALF_UP
price = Decimal("19.995")
print(price.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP), sum([Decimal("0.1")] * 3), Decimal(1) / Decimal(7))

# ---- fractions
from fractions import Fraction
print(Fraction(1, 3) + Fraction(1, 6), Fraction("0.125"), float(Fraction(2, 3)))

# ---- math
import math
print(math.sqrt(2), math.gcd(84, 36), math.factorial(20), math.ceil(-1.5), math.isclose(0.1 + 0.2, 0.3), math.comb(10, 3))

# ---- big integers
n = 2 ** 200
print(n, len(str(n)), n % 97, pow(3, 1000, 1_000_007), (-7) // 2, (-7) % 3, divmod(17, 5))

# ---- rounding
print(round(2.5), round(3.5), round(2.675, 2), round(1234, -2), 0.1 + 0.2, 1e22, 1 / 3, float("inf"), -0.0)

# ---- text
s = "  Hello, World  "
print(s.strip().lower().replace("l", "L"), s.split(","), "-".join("abc"), "a,b,,c".split(","), "x".rjust(4, "."))
print("abc"[::-1], "hello".find("l"), "title case".title(), "ß".upper(), "tab\tq".expandtabs(4), "1".zfill(3))

# ---- partition and startswith
for line in ["key = value", "no equals", "# comment"]:
    if line.startswith("#"):
        continue
    key, sep, value = (part.strip() for part in line.partition("="))
    print(repr(key), bool(sep), repr(value))

# ---- translate
table = str.maketrans({"a": "4", "e": "3", "o": None})
print("leet code area".translate(table), "".join(filter(str.isalnum, "a-b c!1")))

# ---- unicode
import unicodedata
text = "Crème Brûlée — 日本 🎉"
plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
print(plain, len(text), text.encode("utf-8")[:8], unicodedata.name("é"))

# ---- bytes
data = bytes(range(5)) + b"abc"
print(data, data.hex(), int.from_bytes(data[:2], "big"), bytearray(b"xy")[0], b"\xff".decode("latin-1"))

# ---- base64 and hashes
import base64, hashlib
print(base64.b64encode("hello".encode()).decode(), hashlib.sha256(b"abc").hexdigest()[:16], hashlib.md5(b"").hexdigest())

# ---- csv
import csv, io
rows = list(csv.DictReader(io.StringIO('name,qty\n"Smith, J",3\nLee,4\n')))
out = io.StringIO()
writer = csv.writer(out, lineterminator="\n")
writer.writerows([[r["name"], int(r["qty"]) * 2] for r in rows])
print(rows[0]["name"], out.getvalue(), sep="\n", end="")

# ---- string io and print
import io
buffer = io.StringIO()
print("a", 1, None, sep="|", end="!\n", file=buffer)
print(*range(3), sep=", ")
print(buffer.getvalue(), end="")

# ---- a table
rows = [("name", "qty", "price"), ("apple", 3, 0.5), ("melon", 12, 2.25)]
widths = [max(len(str(r[i])) for r in rows) for i in range(3)]
for r in rows:
    print(" | ".join(str(c).ljust(w) for c, w in zip(r, widths)).rstrip())

# ---- markdown
rows = [{"id": 1, "ok": True}, {"id": 2, "ok": False}]
print("| " + " | ".join(rows[0]) + " |")
print("|" + "---|" * len(rows[0]))
for row in rows:
    print("| " + " | ".join(str(v) for v in row.values()) + " |")

# ---- pprint
from pprint import pprint
pprint({"b": list(range(30)), "a": {"x": "y" * 40, "z": ["q"] * 5}})

# ---- textwrap
import textwrap
print(textwrap.fill("The quick brown fox jumps over the lazy dog and runs away", 24), textwrap.dedent("    a\n      b"), sep="\n")

# ---- match statement
def kind(x):
    match x:
        case {"type": "circle", "r": r}: return f"circle {r}"
        case [a, *rest]: return f"list {a} {rest}"
        case int() | float() as n if n > 10: return "big"
        case str(s): return s.upper()
        case _: return "other"
print([kind(v) for v in ({"type": "circle", "r": 2}, [1, 2, 3], 11, "q", None)])

# ---- walrus
import re
lines = ["a=1", "bad", "b=22"]
print([m.group(2) for line in lines if (m := re.match(r"(\w)=(\d+)", line))])

# ---- star expressions
first, *middle, last = [1, 2, 3, 4]
a = {**{"x": 1}, "y": 2} | {"x": 3}
def f(*args, key=None, **rest): return args, key, rest
print(first, middle, last, a, f(*[1, 2], **{"key": 3, "z": 4}))

# ---- closures
def counter():
    count = 0
    def step(by=1):
        nonlocal count
        count += by
        return count
    return step
c = counter()
c()
print(c(5), [f() for f in [lambda i=i: i * i for i in range(4)]])

# ---- recursion
def depth(tree): return 1 + max((depth(t) for t in tree), default=0)
def hanoi(n, a, b, c): return 0 if n == 0 else hanoi(n - 1, a, c, b) + 1 + hanoi(n - 1, c, b, a)
print(depth([[], [[], [[]]]]), hanoi(10, "a", "b", "c"))

# ---- recursion error
def forever(n): return forever(n + 1)
try:
    forever(0)
except RecursionError as error:
    print("RecursionError", "maximum recursion depth" in str(error))

# ---- sets
a, b = {1, 2, 3}, {2, 3, 4}
print(a & b, a | b, a - b, a ^ b, a <= b, frozenset(a) in {frozenset({1, 2, 3})})

# ---- deduplicate in order
seen, out = set(), []
for item in [3, 1, 3, 2, 1]:
    if item not in seen:
        seen.add(item)
        out.append(item)
print(out, list(dict.fromkeys("banana")))

# ---- dictionaries
d = {"a": 1}
d.setdefault("b", []).append(2)
d.update(c=3)
print(d.pop("a"), d.get("zz", "none"), list(d), d.items(), {v: k for k, v in {"x": 1}.items()})

# ---- slices
xs = list(range(10))
del xs[::3]
xs[1:3] = ["a", "b", "c"]
print(xs, xs[-2:], xs[::-2])

# ---- zip and enumerate
names, ages = ["a", "b", "c"], [1, 2, 3]
for number, (name, age) in enumerate(zip(names, ages), start=1):
    print(f"{number}. {name}: {age}")
print(dict(zip(names, ages)), list(zip(*[(1, 2), (3, 4)])))

# ---- any all min max
xs = [3, -1, 4]
print(any(x < 0 for x in xs), all(xs), min(xs, key=abs), max([], default="none"), sum(xs, 10), sorted(xs, reverse=True))

# ---- map and filter
print(list(map(int, "1 2 3".split())), list(filter(None, [0, 1, "", "x"])), list(map(lambda a, b: a + b, [1, 2], [3, 4])))

# ---- types
for v in (1, 1.0, "s", None, True, [1], (1,), {1: 2}, {1}, b"b", 1j, range(3), len, int):
    print(type(v).__name__, end=" ")
print(isinstance(True, int), callable(len), issubclass(bool, int))

# ---- representations
print(repr("it's"), repr('say "hi"'), [None, True, 1.0, "a\n"], (1,), {}, set(), {"k": ("v",)})

# ---- truth
print([bool(x) for x in (0, "", [], {}, None, "0", [0], 0.0)], None or "default", 0 and 1, not [])

# ---- chained comparison
x = 5
print(1 < x < 10, 1 < x > 7, "a" < "b" < "c", [1, 2] < [1, 3], (x > 3) + (x > 4))

# ---- random with a seed
import random
random.seed(42)
print(random.randint(1, 100), random.sample(range(100), 3), random.choice("abc"), round(random.random(), 6))

# ---- typing
from typing import Optional, Dict, List, TypedDict, Any
class Row(TypedDict):
    id: int
    name: Optional[str]
def names(rows: List[Row]) -> Dict[int, Any]:
    return {row["id"]: row.get("name") for row in rows}
print(names([{"id": 1, "name": "x"}, {"id": 2, "name": None}]))

# ---- abstract classes
from abc import ABC, abstractmethod
class Base(ABC):
    @abstractmethod
    def go(self): ...
class Real(Base):
    def go(self): return "went"
try:
    Base()
except TypeError as error:
    print("abstract" in str(error), Real().go())

# ---- context managers
from contextlib import contextmanager, suppress
@contextmanager
def section(name):
    print("<" + name + ">")
    try:
        yield name.upper()
    finally:
        print("</" + name + ">")
with section("a") as big, suppress(KeyError):
    print(big)
    {}["x"]

# ---- an iterator class
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n + 1
print(list(Countdown(4)), sum(Countdown(10)))

# ---- slots and getattr
class Config:
    __slots__ = ("a",)
    def __init__(self): self.a = 1
c = Config()
try:
    c.b = 2
except AttributeError as error:
    print("AttributeError")
print(getattr(c, "a"), getattr(c, "b", "default"), hasattr(c, "b"))

# ---- traceback as text
import traceback
try:
    int("x")
except ValueError:
    print(traceback.format_exc().splitlines()[-1])

# ---- matrix product
a, b = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
print([[sum(x * y for x, y in zip(row, col)) for col in zip(*b)] for row in a])

# ---- sieve
n = 50
sieve = [True] * (n + 1)
for p in range(2, int(n ** 0.5) + 1):
    if sieve[p]:
        sieve[p * p::p] = [False] * len(sieve[p * p::p])
print([p for p in range(2, n + 1) if sieve[p]])

# ---- breadth first search
from collections import deque
graph = {"a": ["b", "c"], "b": ["d"], "c": ["d", "e"], "d": ["f"], "e": ["f"], "f": []}
def path(start, goal):
    queue, seen = deque([[start]]), {start}
    while queue:
        route = queue.popleft()
        if route[-1] == goal:
            return route
        for n in graph[route[-1]]:
            if n not in seen:
                seen.add(n)
                queue.append(route + [n])
print(" > ".join(path("a", "f")))

# ---- topological order
from graphlib import TopologicalSorter
print(list(TopologicalSorter({"d": {"b", "c"}, "b": {"a"}, "c": {"b"}}).static_order()))

# ---- xml
import xml.etree.ElementTree as ET
root = ET.fromstring("<items><item id='1'>a</item><item id='2'>b</item></items>")
print({i.get("id"): i.text for i in root.iter("item")}, ET.tostring(root[0], encoding="unicode"))

# ---- html
from html.parser import HTMLParser
import html
class Links(HTMLParser):
    found = []
    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.found.append(dict(attrs).get("href"))
p = Links()
p.feed('<p><a href="/x">x</a> <a class="b" href="/y">y</a></p>')
print(p.found, html.escape("<a & b>"), html.unescape("&eacute;&lt;"))

# ---- urls
from urllib.parse import urlparse, parse_qs, urlencode, quote, urljoin
u = urlparse("https://example.com:8080/a/b?x=1&x=2&y=%20z#frag")
print(u.hostname, u.port, u.path, parse_qs(u.query), urlencode({"q": "a b", "n": 1}), quote("a/b ü"), urljoin("https://e.com/a/", "../b"))

# ---- uuid and struct
import uuid, struct
print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.com"), struct.pack(">IH", 1, 2), struct.unpack("<h", b"\x01\x00"))

# ---- string templates
from string import Template, ascii_lowercase, digits
print(Template("$who owes $$${amount}").substitute(who="Ann", amount=5), ascii_lowercase[:3] + digits[-2:], "{:>5}|{k}".format(1, k=2), "%05.1f %s" % (3.14159, "x"))

# ---- copies
import copy
a = {"x": [1, 2]}
b, c = copy.copy(a), copy.deepcopy(a)
a["x"].append(3)
print(b, c)

# ---- calendar
import calendar
print(calendar.monthrange(2024, 2), calendar.isleap(1900), calendar.month_name[3])
print(calendar.month(2024, 2))

# ---- difference of texts
import difflib
print("\n".join(difflib.unified_diff("a\nb\nc".split("\n"), "a\nx\nc".split("\n"), lineterm="")))
print(difflib.get_close_matches("appel", ["ape", "apple", "peach"]), difflib.SequenceMatcher(None, "abcd", "bcde").ratio())

# ---- reading what tools gave
rows = json_rows = [{"date": "2024-01-0%d" % d, "close": 100 + d * (-1) ** d} for d in range(1, 6)]
changes = [(b["date"], round((b["close"] - a["close"]) / a["close"] * 100, 2)) for a, b in zip(rows, rows[1:])]
best = max(changes, key=lambda c: c[1])
print(f"best day {best[0]}: {best[1]:+.2f}%", *(f"{d} {c:+}" for d, c in changes), sep="\n")

# ---- moving average and anomalies
import statistics
series = [10, 11, 10, 12, 50, 11, 10]
mean, sd = statistics.mean(series), statistics.pstdev(series)
print([(i, v) for i, v in enumerate(series) if abs(v - mean) > 2 * sd], f"{mean:.2f} ± {sd:.2f}")

# ---- joining two lists
users = [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}]
orders = [{"user": 1, "total": 5}, {"user": 1, "total": 7}, {"user": 3, "total": 9}]
by_id = {u["id"]: u for u in users}
for o in orders:
    print(by_id.get(o["user"], {}).get("name", "unknown"), o["total"])
print({u["name"]: sum(o["total"] for o in orders if o["user"] == u["id"]) for u in users})

# ---- pages
def fetch(page): return {"items": list(range(page * 3, page * 3 + 3)), "next": page + 1 if page < 3 else None}
page, items = 0, []
while page is not None:
    answer = fetch(page)
    items += answer["items"]
    page = answer["next"]
print(len(items), items[-1])

# ---- a validated record
from dataclasses import dataclass
@dataclass(frozen=True)
class Person:
    name: str
    age: int
    def __post_init__(self):
        if self.age < 0:
            raise ValueError(f"age {self.age}")
for age in (5, -5):
    try:
        print(Person("p", age))
    except ValueError as error:
        print("invalid:", error)

# ---- loop with else
for n in (7, 9):
    for d in range(2, n):
        if n % d == 0:
            print(n, "=", d, "x", n // d)
            break
    else:
        print(n, "is prime")

# ---- printing while failing softly
results = {"ok": 0, "failed": []}
for raw in ["1", "x", "3.5", None]:
    try:
        results["ok"] += float(raw)
    except (ValueError, TypeError) as error:
        results["failed"].append(type(error).__name__)
print(results)

# ---- exec and eval
scope = {}
exec("def twice(x):\n    return 2 * x", scope)
print(scope["twice"](21), eval("a + b", {"a": 1, "b": 2}))

# ---- metaclass and descriptors
class Positive:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, obj, owner): return getattr(obj, self.name)
    def __set__(self, obj, value):
        if value < 0:
            raise ValueError(self.name[1:])
        setattr(obj, self.name, value)
class Meta(type):
    def __new__(mcs, name, bases, ns): return super().__new__(mcs, name, bases, {**ns, "kind": name.lower()})
class Box(metaclass=Meta):
    size = Positive()
b = Box()
b.size = 3
print(b.size, Box.kind)
