# SPDX-License-Identifier: MIT
"""Makes objects of many kinds, wherever the interpreter makes them, in threads, too. Keeps them, and writes where tracemalloc saw each one made: its address, and file and
line of each frame, innermost first. Run it with PYTHONMALLOC=malloc: each object is a block then.

usage: python_traced.py LOG COUNT"""
import argparse
import ast
import asyncio
import collections
import copy
import csv
import dataclasses
import datetime
import decimal
import functools
import gc
import io
import json
import os
import pickle
import random
import re
import sqlite3
import string
import sys
import textwrap
import threading
import tracemalloc

try:
    import numpy
except ImportError:
    numpy = None

THREADS = 3


@dataclasses.dataclass
class Order:
    number: int
    lines: list = dataclasses.field(default_factory=list)

    def __add__(self, other):
        return Order(self.number + other.number, self.lines + other.lines)

    def __hash__(self):
        return hash(str(self.number) * 3)

    def __del__(self):
        pass


def words(dice):
    return ["".join(dice.choices(string.ascii_letters + "é☃", k=dice.randrange(20, 90))) for _ in range(5)]


def of_text(dice):
    text = ", ".join(words(dice))
    return [text, text.upper(), text.encode(), text.split(","), f"{text!r} {dice.random():>40}", textwrap.wrap(text, 30), re.sub("[a-m]", lambda found: found.group() * 3, text),
            text.translate({ord("a"): "aaa"}), "%s-%d" % (text, 5), str(dice.random()) + text[3:]]


def of_numbers(dice):
    big = dice.getrandbits(400)
    return [big ** 3, big << 77, [big + i for i in range(5)], decimal.Decimal(big) / 7, sum(big * i for i in range(9)), -big, divmod(big, 10 ** 30)]


def of_objects(dice):
    orders = [Order(i, words(dice)) for i in range(3)]
    return [orders, functools.reduce(lambda a, b: a + b, orders), copy.deepcopy(orders), {order: order.number for order in orders}, pickle.loads(pickle.dumps(orders)), dataclasses.replace(orders[0]),
            sorted(orders, key=lambda order: words(dice))]


def of_code(dice):
    names = {}
    name = f"made_{dice.randrange(1000)}"
    source = f"class {name}:\n    def serve(self, count):\n        '''{name * 9}'''\n        return [str(i) * 30 for i in range(count)]\nmade = {name}().serve(4)\n"
    exec(compile(source, f"<{name}>", "exec"), names)
    return [names.pop("made"), names.pop(name), ast.dump(ast.parse(source)), functools.partial(of_text, dice), re.compile(name + "[a-z]+(x|y)")]


def of_files(dice):
    rows = io.StringIO()
    csv.writer(rows).writerows([words(dice) for _ in range(2)])
    parser = argparse.ArgumentParser(prog="one")
    parser.add_argument("--two", help="three" * 9)
    return [rows.getvalue(), list(csv.reader(io.StringIO(rows.getvalue()))), json.loads(json.dumps({word: [word] for word in words(dice)})), parser.format_help(), parser.parse_args([])]


def of_collections(dice):
    found = collections.defaultdict(lambda: Order(len(found), words(dice)))
    _ = [found[i] for i in range(3)]
    return [found, collections.Counter("".join(words(dice))), collections.deque(words(dice)), set(words(dice)), datetime.datetime(2020, 1, 1) + datetime.timedelta(dice.random()), collections.OrderedDict(a=1)]


def of_database(dice):
    base = sqlite3.connect(":memory:")
    base.create_function("made", 1, lambda text: text * 3)
    base.executescript("create table t(a, b)")
    base.executemany("insert into t values (?, ?)", ((word, word * 2) for word in words(dice)))
    found = base.execute("select a, made(b), randomblob(100) from t order by 1").fetchall()
    base.close()
    return found


def of_awaiting(dice):
    async def make(left):
        await asyncio.sleep(0)
        return [*words(dice), *(await asyncio.gather(make(left - 1), make(left - 1)) if left else [])]

    async def ticks():
        for word in words(dice):
            yield word * 2

    async def every():
        return [await make(2), [word async for word in ticks()]]
    return asyncio.run(every())


def of_errors(dice):
    kept = []

    def deep(left):
        kept.append(str(left) * 20)
        if not left:
            raise ValueError(words(dice))
        try:
            deep(left - 1)
        finally:
            kept.append(str(-left) * 20)
    try:
        deep(dice.randrange(60))
    except ValueError as error:
        kept.append(str(error))
    return kept


def of_arrays(dice):
    array = numpy.arange(dice.randrange(5, 99))
    return [array, array * 2, array.astype(float).tobytes(), numpy.frompyfunc(lambda i: str(i) * 30, 1, 1)(array), numpy.array2string(array), array.reshape(1, -1).copy()]


WAYS = [of_text, of_numbers, of_objects, of_code, of_files, of_collections, of_database, of_awaiting, of_errors] + [of_arrays] * bool(numpy)
# Their memory comes from the allocator each time: the interpreter keeps no old ones to use again.
KINDS = (str, bytes, bytearray, int, set, collections.deque, decimal.Decimal, datetime.datetime, type(of_text), re.Pattern, functools.partial, Order, *([numpy.ndarray] if numpy else []))


def work(count, seed, kept):
    dice = random.Random(seed)
    for _ in range(count):
        kept.append(dice.choice(WAYS)(dice))


def main():
    kept = []
    tracemalloc.start(500)
    threads = [threading.Thread(target=work, args=(int(sys.argv[2]), i, kept)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    work(int(sys.argv[2]), THREADS, kept)
    for thread in threads:
        thread.join()
    if len(kept) != (THREADS + 1) * int(sys.argv[2]):
        os._exit(1)
    gc.collect()
    found, ways, seen = [], [kept], set()
    while ways:
        at = ways.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, KINDS) and tracemalloc.get_object_traceback(at):
            found.append(at)
        if isinstance(at, (list, tuple, dict, set, collections.deque, Order, argparse.Namespace)):
            ways += [*at, *at.values()] if isinstance(at, dict) else vars(at).values() if hasattr(at, "__dict__") and not isinstance(at, (list, tuple)) else at
    with open(sys.argv[1], "w") as log:
        for at in found:
            frames = [[frame.filename, frame.lineno] for frame in reversed(tracemalloc.get_object_traceback(at))]
            log.write(json.dumps([id(at), type(at).__name__, frames]) + "\n")
    os._exit(0)


main()
