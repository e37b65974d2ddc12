# SPDX-License-Identifier: MIT
"""Calls itself in all ways in which Python code is called, and takes blocks of memory on the way: by memalign(), which Python does not use. Writes, for each block, its
size and the frames as Python sees them. With FILE it takes as many more once that is there.

usage: python_calls.py LOG COUNT [SEED [FILE]]"""
import asyncio
import contextlib
import ctypes
import functools
import gc
import itertools
import json
import os
import random
import re
import sqlite3
import sys
import threading
import types

try:
    import greenlet
except ImportError:
    greenlet = None
try:
    import numpy
except ImportError:
    numpy = None

libc, with_lock = ctypes.CDLL(None), ctypes.PyDLL(None)
for library in (libc, with_lock):
    library.memalign.argtypes, library.memalign.restype = [ctypes.c_size_t, ctypes.c_size_t], ctypes.c_void_p
    library.free.argtypes, library.free.restype = [ctypes.c_void_p], None
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
libc.qsort.argtypes, libc.qsort.restype = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, CALLBACK], None

ALIGNMENT, THREADS, DEEPEST = 64, 4, 200
numbers, log, lock = itertools.count(1), open(sys.argv[1], "w"), threading.Lock()


def chain(frame):
    rows = []
    while frame:
        code = frame.f_code
        rows.append([code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno or 0])
        frame = frame.f_back
    return rows


def note(size, frame, kind=""):
    text = json.dumps([size, kind, chain(frame)]) + "\n"
    with lock:
        log.write(text)


def mark(depth, dice):
    """A block, taken with the interpreter's lock or without."""
    size = next(numbers)
    kind, library = "greenlet" if greenlet and greenlet.getcurrent().parent else "", with_lock if size % 2 else libc
    note(size, sys._getframe(), kind); library.free(library.memalign(ALIGNMENT, size))


def by_sort(depth, dice):
    return sorted([1], key=lambda _: go(depth, dice))


def by_map(depth, dice):
    return list(map(functools.partial(go, depth), [dice]))


def by_comprehension(depth, dice):
    return [go(depth, dice) for _ in (1,)]


def by_expression(depth, dice):
    return sum(go(depth, dice) or 0 for _ in (1,))


def generate(depth, dice):
    yield go(depth, dice)
    mark(depth, dice)
    yield from (go(depth, dice),)


def by_generator(depth, dice):
    for _ in generate(depth, dice):
        mark(depth, dice)


def by_exception(depth, dice):
    try:
        try:
            raise ValueError(depth)
        finally:
            go(depth, dice)
    except ValueError:
        mark(depth, dice)


class Made:
    def __init__(self, depth, dice):
        self.made = go(depth, dice)
        self.depth, self.dice = depth, dice

    @property
    def asked(self):
        return go(self.depth, self.dice)

    def __getattr__(self, name):
        return go(self.__dict__.get("depth", 0), random.Random(0))

    def __del__(self):
        mark(0, None)


def by_class(depth, dice):
    made = Made(depth, dice)
    return made.asked


def by_missing_attribute(depth, dice):
    made = Made(0, dice)
    made.depth = min(depth, 3)
    return made.nothing


def by_execution(depth, dice):
    """The code object dies, and others lie where it was."""
    names = {"go": go, "depth": depth, "dice": dice}
    lines, name = "\n" * dice.randrange(5), f"made_{dice.randrange(50)}"
    exec(compile(f"{lines}def {name}():\n{lines}    return go(depth, dice)\n{name}()", f"<made {dice.randrange(50)}>", "exec"), names)


def by_callback(depth, dice):
    """C calls Python, which has given up the interpreter for it."""
    array, called = (ctypes.c_int * 2)(2, 1), []

    def compare(left, right):
        if not called:
            called.append(1)
            go(depth, dice)
        return 0
    libc.qsort(array, 2, ctypes.sizeof(ctypes.c_int), CALLBACK(compare))


def by_hook(depth, dice):
    json.loads('{"a": 1}', object_hook=lambda _: go(depth, dice))
    re.sub("a", lambda _: go(depth, dice) or "", "a")


@contextlib.contextmanager
def entered(depth, dice):
    go(depth, dice)
    yield
    mark(depth, dice)


def by_context(depth, dice):
    with entered(depth, dice):
        mark(depth, dice)


def by_copy_of_function(depth, dice):
    types.FunctionType(go.__code__, globals(), "other")(depth, dice)


async def wait_for(depth, dice):
    mark(depth, dice)
    await asyncio.sleep(0)
    go(min(depth, 4), dice)
    if depth > 0:
        await asyncio.gather(wait_for(depth - 4, dice), count_up(depth - 4, dice))
    mark(depth, dice)


async def count_up(depth, dice):
    async for _ in ticks(depth, dice):
        mark(depth, dice)


async def ticks(depth, dice):
    for i in range(2):
        mark(depth, dice)
        await asyncio.sleep(0)
        yield i


def deep(left, depth, dice):
    if left:
        deep(left - 1, depth, dice)
    else:
        go(depth, dice)
    mark(depth, dice) if left % 50 == 0 else None


def by_depth(depth, dice):
    deep(dice.randrange(DEEPEST), min(depth, 2), dice)


def by_database(depth, dice):
    """sqlite calls Python: a function, an aggregate, an order, and what makes rows."""
    class Last:
        def step(self, value):
            go(depth, dice)

        def finalize(self):
            mark(depth, dice)

    def compare(left, right):
        mark(depth, dice)
        return (left > right) - (left < right)
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.row_factory = lambda _, row: (mark(depth, dice), row)
        base.create_function("go", 1, lambda _: go(depth, dice))
        base.create_aggregate("last", 1, Last)
        base.create_collation("of_python", compare)
        ways = ["select go(1)", "select last(2)", "select 'a' as t union all select 'b' order by t collate of_python"]
        base.execute(dice.choice(ways)).fetchall()


def by_numbers(depth, dice):
    """numpy calls Python: for each element, in comparisons, and for what becomes an array."""
    class Number:
        def __lt__(self, other):
            mark(depth, dice)
            return False

        def __array__(self, *_, **more):
            go(depth, dice)
            return numpy.zeros(3)
    pair = numpy.empty(2, dtype=object)
    pair[0], pair[1] = Number(), Number()
    ways = [lambda: numpy.frompyfunc(lambda _: go(depth, dice), 1, 1)(numpy.arange(1)), lambda: numpy.sort(pair),
            lambda: numpy.apply_along_axis(lambda row: go(depth, dice) or row, 0, numpy.zeros((2, 1))), lambda: numpy.fromiter((go(depth, dice) or 1 for _ in (1,)), dtype=int),
            lambda: numpy.asarray(Number()), lambda: numpy.vectorize(lambda _: go(depth, dice) or 1, otypes=[int])([1])]
    dice.choice(ways)()


def by_greenlet(depth, dice):
    """On a stack of its own, which is copied away and back: the evaluations further out run frames of no chain."""
    def inner():
        go(depth, dice)
        greenlet.getcurrent().parent.switch()
        mark(depth, dice)
    other = greenlet.greenlet(inner)
    other.switch()
    mark(depth, dice)
    other.switch()


WAYS = [by_sort, by_map, by_comprehension, by_expression, by_generator, by_exception, by_class, by_missing_attribute, by_execution, by_callback, by_hook, by_context,
        by_copy_of_function, by_depth, by_database]
WAYS += [by_numbers] * bool(numpy) + [by_greenlet] * bool(greenlet)


def go(depth, dice):
    mark(depth, dice)
    if depth > 0:
        dice.choice(WAYS)(depth - 1, dice)
    mark(depth, dice)


def work(count, seed, until):
    dice, last = random.Random(seed), count
    for i in itertools.count():
        number = next(numbers)
        if until and not os.path.exists(until):
            last = number + count
        if number > last:
            break
        go(dice.randrange(7), dice)
        if i % 20 == 0:
            asyncio.run(wait_for(8, dice))
            gc.collect()


def main():
    count, seed, until = int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, sys.argv[4] if len(sys.argv) > 4 else None
    sys.setrecursionlimit(5000)
    threads = [threading.Thread(target=work, args=(count, seed + i, until)) for i in range(1, THREADS)]
    for thread in threads:
        thread.start()
    work(count, seed, until)
    for thread in threads:
        thread.join()
    log.close()


main()
