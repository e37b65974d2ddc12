#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""With --python-objects, each object that a Python program takes from its allocator's pools is a block of a nested heap: as many as the allocator itself says, and no memory counts twice.

usage: python_objects.py [TEST...]"""
import collections
import json
import operator
import os
import pathlib
import re
import subprocess
import sys

from live import PROGRAMS, SOAK, XHEAP, attach, expect, info, kill, run_tests, told, xheap
from pythons import interpreters

NONE = ("", "-", "0x0")
TOGGLED = 200 if SOAK else 20


def few_interpreters():
    """The oldest, the newest, and the system's: for what no version does in a way of its own."""
    found = sorted(interpreters().items())
    return dict([found[0], found[-1], *(item for item in found if item[1] == "/usr/bin/python3")]).items()


Event = collections.namedtuple("Event", "pid action function address previous_address size")


def events(trace):
    """Those of the trace, read faster than rows that may have quotes: most of a program's calls are of objects."""
    with subprocess.Popen([XHEAP, "dump", trace, "-events", "-format", "csv"], stdout=subprocess.PIPE, text=True) as run:
        columns = operator.itemgetter(*map(run.stdout.readline().rstrip().split(",").index, Event._fields))
        yield from (Event(*columns(line.split(","))) for line in run.stdout)
    expect(run.returncode == 0, f"dump {trace}: status {run.returncode}")


def is_object(event):
    return event.function.startswith("_PyObject_") and not event.function.startswith("_PyObject_Arena")


Objects = collections.namedtuple("Objects", "live actions begun mallocs")


def objects_of(trace, pid=None):
    """What is live of objects at the end of a process, the first one if none is named, as sizes by address; how often each action was; each that was begun, as address and size; and where
    there were blocks of malloc."""
    live, actions, begun, mallocs = {}, collections.Counter(), collections.Counter(), set()
    for event in events(trace):
        pid = pid or event.pid
        if not is_object(event) or event.pid != pid:
            if not event.function.startswith("_Py") and event.address not in NONE:
                mallocs.add(int(event.address, 16))
            continue
        actions[event.action] += 1
        ended = event.previous_address if event.action == "ReAlloc" else event.address
        kept = live.get(ended)
        if event.action != "Alloc" and ended not in NONE:
            expect(live.pop(ended, None) is not None, f"{trace}: an object ends that is none: {event}")
        if event.action != "Free" and event.address not in NONE:
            size = int(event.size)
            expect(event.address not in live and 0 < size <= 512, f"{trace}: {event}")
            begun[int(event.address, 16), size] += 1
            # What shrinks where it is keeps its place in a pool of larger ones.
            live[event.address] = max(kept or 0, size) if event.address == ended else size
    return Objects(live, actions, begun, mallocs)


STATISTICS = """
import os, sys
def load(count):
    return [str(i) * 3 for i in range(count)]
rows, pairs = load(20000), {i: (i, [i]) for i in range(5000)}
del pairs
rows = rows[:100]
sys.stderr.flush()
sys._debugmallocstats()
os._exit(0)
"""


def by_allocator():
    """Of each size as many are live as the allocator counts in its pools. Where the interpreter's tables are changed it counts nothing."""
    pathlib.Path("objects.py").write_text(STATISTICS)
    compared = 0
    for _, path in sorted(interpreters().items()):
        run = subprocess.run([XHEAP, "record", "-q", "--python-objects", "-o", "objects.xht", path, "objects.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
        said = {int(size): int(count) for size, count in re.findall(r"^ +\d+ +(\d+) +\d+ +(\d+) +\d+$", run.stderr, re.M)}
        live, actions, _, _ = objects_of("objects.xht")
        found = collections.Counter((size + 15) // 16 * 16 for size in live.values())
        facts = info("objects.xht")
        expect(facts["complete"] and facts["options"]["python-objects"] == "yes" and actions["Alloc"] > 40000, f"{path}: {facts}, {actions}")
        expect(not said or said == found, f"{path}: {said} objects, but {found} were found")
        compared += len(said)
    return f"{compared} sizes compared"


def counted_once():
    """In totals are arenas, and blocks of malloc: objects lie in these. The heap of objects has their own sums."""
    pathlib.Path("objects.py").write_text(STATISTICS)
    for _, path in few_interpreters():
        xheap("record", "-q", "--python-objects", "-o", "objects.xht", path, "objects.py")
        outer, inner, objects = 0, 0, 0
        for event in events("objects.xht"):
            if event.action in ("Alloc", "ReAlloc") and event.address not in NONE:
                outer += int(event.size) * (not is_object(event))
                inner += int(event.size) * is_object(event)
                objects += is_object(event)
        stacks = told("heap", "objects.xht", "-stacks", "-noDefaultCull")["actions"][0]["rows"]
        expect(all(frame.get("image") for row in stacks for frame in row["stack"]), f"{path}: a frame of xheap's")
        whole = told("heap", "objects.xht", "-heaps")
        heaps = {heap["name"]: heap for heap in whole["actions"][0]["rows"]}
        expect(whole["totals"]["total_bytes"] == outer, f"{path}: {whole['totals']}, not {outer}")
        own = heaps["python objects"]
        expect((own["total_bytes"], own["total_count"]) == (inner, objects), f"{path}: {own}, not {inner} bytes of {objects}")
        expect(told("heap", "objects.xht", "-heap", "python objects")["totals"]["total_bytes"] == inner, f"{path}: not {inner}")


# Calls the allocator itself, as often as it is told, and says what it did.
CALLS = """
import ctypes, json, os, random, sys
P, S = ctypes.c_void_p, ctypes.c_size_t
def function(name, result, *arguments):
    of = getattr(ctypes.pythonapi, name)
    of.restype, of.argtypes = result, arguments
    return of
domains = [[function(domain + "_Malloc", P, S), function(domain + "_Calloc", P, S, S), function(domain + "_Realloc", P, P, S), function(domain + "_Free", None, P)]
           for domain in ("PyObject", "PyMem")]
live, known, held, chance = {}, set(), [], random.Random(1)
def take(size, calls, done):
    at = calls[0](size) if size % 2 else calls[1](1, size)
    done.append((at, size))
    known.add(at)
    live[at] = (size, calls)
def change(at, size, done):
    was, calls = live.pop(at)
    to = calls[2](at, size)
    # What was there before may be no object.
    if at in known:
        done.append((to, size))
        known.add(to)
    live[to] = (size, calls)
def work(count):
    done = []
    for i in range(count):
        size, what = chance.choice((chance.randint(1, 512), chance.randint(1, 700))), chance.randint(0, 3)
        if what < 2 or not live:
            take(size, chance.choice(domains), done)
        elif what == 2:
            change(chance.choice(list(live)), size, done)
        else:
            at = chance.choice(list(live))
            live.pop(at)[1][3](at)
            known.discard(at)
    return done
for line in sys.stdin:
    words = line.split()
    if words[0] == "trace":
        import tracemalloc
        tracemalloc.start() if words[1] == "on" else tracemalloc.stop()
        print(json.dumps([]), flush=True)
    elif words[0] == "hold":
        held += [domains[0][0](16) for i in range(int(words[1]))]
        print(json.dumps([]), flush=True)
    elif words[0] == "release":
        grown = [domains[0][2](at, 500) for at in held]
        for at in grown:
            domains[0][3](at)
        print(json.dumps(grown), flush=True)
    elif words[0] == "fork":
        child = os.fork()
        if not child:
            work(int(words[1]))
            for at, (size, calls) in live.items():
                calls[3](at)
            os._exit(0)
        os.waitpid(child, 0)
        print(json.dumps(child), flush=True)
    else:
        known.clear()
        print(json.dumps([work(int(words[1])), {at: size for at, (size, calls) in live.items()}]), flush=True)
os._exit(0)
"""


class Worker:
    """A process that calls the allocator when it is told to."""

    def __init__(self, path, *before, **environment):
        pathlib.Path("calls.py").write_text(CALLS)
        self.process = subprocess.Popen([*before, path, "calls.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        expect(line, f"it ended with {self.process.poll()}")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        status = self.process.wait()
        expect(status == 0, f"it ended with {status}")


def has_each(name, trace, did):
    """Each call that wanted an object's size, and found it in a pool, is an event; no other is. Return what objects_of() does."""
    objects = objects_of(trace)
    begun = objects.begun
    wanted = collections.Counter((at, size) for at, size in did)
    lacking = [call for call in wanted if call[1] <= 512 and begun[call] < wanted[call]]
    wrong = [call for call in wanted if call[1] > 512 and call in begun]
    # A block of malloc stays one when it gets small.
    lacking = [call for call in lacking if call[0] not in objects.mallocs]
    expect(not lacking and not wrong, f"{name}: {len(lacking)} of {len(wanted)} objects are missing, such as {lacking[:3]}; {wrong[:3]} are none")
    return objects


def each_call():
    """All functions of both domains, from the start."""
    for _, path in sorted(interpreters().items()):
        worker = Worker(path, XHEAP, "record", "-q", "--python-objects", "-o", "calls.xht")
        did, live = worker.ask("work", 1500)
        more, live = worker.ask("work", 1500)
        worker.end()
        found = has_each(path, "calls.xht", did + more)
        kept = {int(at) for at, size in live.items() if size <= 512}
        missing = [at for at in kept if f"{at:#x}" not in found.live and at not in found.mallocs]
        expect(not missing, f"{path}: {missing[:3]} are live, but not found")
        facts = info("calls.xht")
        expect(facts["complete"] and not facts.get("pythonless_stacks"), f"{path}: {facts}")
        rows = told("heap", "calls.xht", "-heap", "python objects", "-frames")["actions"][0]["rows"]
        taken = sum(row["total_count"] for row in rows if row["frame"].get("symbol") == "take" and row["frame"]["image"] == "calls.py")
        expect(taken > 300, f"{path}: {taken} objects of take()")


def attached():
    """In a process that runs, and again; what it does in between is in no trace, and it goes on."""
    for _, path in sorted(interpreters().items()):
        worker = Worker(path)
        worker.ask("work", 2000)
        for i in range(3):
            name = f"xheap-objects-{os.getpid()}"
            attach("start", name, "-p", worker.process.pid, "--python-objects", "-o", "calls.xht")
            did, _ = worker.ask("work", 2000)
            xheap("stop", name)
            actions = has_each(path, "calls.xht", did).actions
            expect(actions["Free"] and not told("heap", "calls.xht", "-heaps")["unknown_frees"], f"{path}: {actions}")
            worker.ask("work", 2000)
        worker.end()


def resized_from_before():
    """Objects from before an attach that move into new arenas: each is one from then on, whatever the call did to get its place."""
    for _, path in few_interpreters():
        worker, name = Worker(path), f"xheap-objects-{os.getpid()}"
        worker.ask("hold", 10000)
        attach("start", name, "-p", worker.process.pid, "--python-objects", "-o", "calls.xht")
        grown = worker.ask("release")
        xheap("stop", name)
        worker.end()
        begun, facts = objects_of("calls.xht").begun, told("heap", "calls.xht", "-heaps")
        lacking = sum(not begun[at, 500] for at in grown)
        expect(not facts["unknown_frees"] and lacking < 100, f"{path}: {facts['unknown_frees']} unknown frees, {lacking} objects are missing")


def beside_tracemalloc():
    """Which keeps the functions that it finds, beyond a detach, and puts them back."""
    for _, path in few_interpreters():
        worker = Worker(path)
        for begin, end in (("on", "off"), ("off", "on"), ("on", "off")):
            name = f"xheap-objects-{os.getpid()}"
            attach("start", name, "-p", worker.process.pid, "--python-objects", "-o", "calls.xht")
            worker.ask("trace", begin)
            did, _ = worker.ask("work", 1000)
            xheap("stop", name)
            has_each(path, "calls.xht", did)
            worker.ask("work", 1000)
            worker.ask("trace", end)
            worker.ask("work", 1000)
        worker.end()


TOGGLES = """
import os, tracemalloc
while not os.path.exists("enough"):
    tracemalloc.start()
    texts = [str(i) * 3 for i in range(300)]
    tracemalloc.stop()
    texts = [str(i) * 3 for i in range(300)]
    expected = [str(i) * 3 for i in range(300)]
    assert texts == expected
"""


def toggled():
    """The words of the tables change all the time, and during an attach, too: none is refused, with objects and without."""
    for _, path in few_interpreters():
        with subprocess.Popen([path, "-c", TOGGLES]) as process:
            for i in range(TOGGLED):
                name = f"xheap-objects-{os.getpid()}"
                attach("start", name, "-p", process.pid, *["--python-objects"] * (i % 4 > 0), "-o", "toggled.xht")
                xheap("stop", name)
                os.unlink("toggled.xht")
            pathlib.Path("enough").touch()
            expect(process.wait() == 0, f"{path}: it ended with {process.returncode}")
        os.unlink("enough")


LINES = """
import sys, tracemalloc
class Point:
    __slots__ = ("x", "y")
def texts(count):
    return [str(i) * 5 for i in range(count)]
def points(count):
    return [Point() for i in range(count)]
def lists(count):
    return [[i] for i in range(count)]
tracemalloc.start(1)
kept = [texts(900), points(600), lists(300)]
for i in range(20):
    texts(500), points(500)
counts = {at.traceback[0].lineno: at.count for at in tracemalloc.take_snapshot().statistics("lineno") if at.traceback[0].filename == __file__}
print(*(counts[line] for line in (6, 8, 10)), flush=True)
import os
os._exit(0)
"""


def live_by(what, trace):
    """How many objects are live of each line, or symbol, of Python."""
    found = collections.Counter()
    for row in told("heap", trace, "-heap", "python objects", "-stacks", "soc", "-top", "500", "-noDefaultCull")["actions"][0]["rows"]:
        found[next((frame.get(what) for frame in row["stack"] if frame.get("kind") == "python"), None)] += row["outstanding_count"]
    return found


def by_line():
    """Each line has as many live objects as tracemalloc counts there, but for a few, such as those of the lists themselves."""
    pathlib.Path("lines.py").write_text(LINES)
    for _, path in sorted(interpreters().items()):
        run = subprocess.run([XHEAP, "record", "-q", "--python-objects", "-o", "lines.xht", path, os.path.abspath("lines.py")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
        counted, found = list(map(int, run.stdout.split())), live_by("line", "lines.xht")
        differences = [found[line] - count for line, count in zip((6, 8, 10), counted)]
        expect(min(counted) >= 300 and all(abs(difference) <= 5 for difference in differences), f"{path}: {counted} counted, {[found[line] for line in (6, 8, 10)]} found")


RECYCLED = """
import os, tracemalloc
def dropped(i):
    return [i]
def kept(i):
    return [i]
tracemalloc.start(1)
all_kept, last = [], None
for i in range(1000, 3000):
    last = dropped(i)
    last = None
    all_kept.append(kept(i))
counts = {at.traceback[0].lineno: at.count for at in tracemalloc.take_snapshot().statistics("lineno") if at.traceback[0].filename == __file__}
print(*(counts.get(line, 0) for line in (4, 6)), flush=True)
os._exit(0)
"""


def recycled():
    """A list that CPython kept for reuse is no event: it stays at the line that took its memory. tracemalloc moves it to the line that makes the new one. Both have as many of both lines."""
    pathlib.Path("recycled.py").write_text(RECYCLED)
    for _, path in sorted(interpreters().items()):
        run = subprocess.run([XHEAP, "record", "-q", "--python-objects", "-o", "recycled.xht", path, os.path.abspath("recycled.py")], stdout=subprocess.PIPE, text=True, check=True)
        (dropped, kept), found = map(int, run.stdout.split()), live_by("symbol", "recycled.xht")
        expect(dropped < 100 and kept > 3800, f"{path}: tracemalloc has {dropped} dropped, {kept} kept")
        first, again = found["dropped"], found["kept"]
        expect(first > 1800 and abs(first + again - dropped - kept) <= 5, f"{path}: {first} dropped and {again} kept were found, {dropped} and {kept} counted")


def logger_killed():
    """What is left of a recording whose logger was killed does no harm, and another one begins."""
    for _, path in few_interpreters():
        worker, name = Worker(path), f"xheap-objects-{os.getpid()}"
        attach("start", name, "-p", worker.process.pid, "--python-objects", "-o", "killed.xht")
        worker.ask("trace", "on")
        kill(next(row["logger_pid"] for row in told("sessions") if row["name"] == name))
        worker.ask("work", 1000)
        worker.ask("trace", "off")
        worker.ask("work", 1000)
        xheap("recover", "killed.xht", status=None)
        os.unlink("killed.xht")
        attach("start", name, "-p", worker.process.pid, "--python-objects", "-o", "calls.xht")
        did, _ = worker.ask("work", 1000)
        xheap("stop", name)
        has_each(path, "calls.xht", did)
        worker.end()


def forked():
    """A child ends objects that it has from its parent, which stay the parent's."""
    for _, path in few_interpreters():
        worker = Worker(path, XHEAP, "record", "-q", "--python-objects", "-o", "calls.xht")
        did, live = worker.ask("work", 2000)
        child = worker.ask("fork", 500)
        more, live = worker.ask("work", 500)
        worker.end()
        has_each(path, "calls.xht", did + more)
        facts = told("heap", "calls.xht", "-heaps")
        expect(info("calls.xht")["complete"] and not facts["unknown_frees"] and not facts["order_conflicts"], f"{path}: {facts}")
        frees = sum(event.action == "Free" and event.function == "_PyObject_Free" and int(event.pid) == child for event in events("calls.xht"))
        expect(frees > len(live) / 2, f"{path}: {frees} frees of the child")


def left_alone():
    """Where another allocator is chosen, objects are its blocks, and none twice. That for debugging may have copies of the usual one's functions."""
    for _, path in few_interpreters():
        for allocator, is_seen in ("malloc", False), ("debug", None), ("pymalloc", True):
            worker = Worker(path, XHEAP, "record", "-q", "--python-objects", "-o", "calls.xht", PYTHONMALLOC=allocator)
            worker.ask("work", 1000)
            worker.end()
            actions = objects_of("calls.xht").actions
            facts = told("heap", "calls.xht", "-heaps")
            expect(is_seen in (None, bool(actions["Alloc"])), f"{path} with {allocator}: {actions}")
            expect(not facts["unknown_frees"] and not facts["order_conflicts"], f"{path} with {allocator}: {facts['unknown_frees']} unknown frees")


OTHER = """
import ctypes, _ctypes, mmap, sys
other = ctypes.CDLL(sys.argv[1])
other.PyMem_Malloc(40)
below = mmap.mmap(-1, 1 << 22)
_ctypes.dlclose(other._handle)
rows = [str(i) * 3 for i in range(50000)]
"""


def other_unloaded():
    """Another interpreter in the process, whose tables of allocators are unmapped, while the first one takes arenas. None of these fits there."""
    for _, path in few_interpreters():
        xheap("record", "-q", "--python-objects", "-o", "other.xht", path, "-c", OTHER, os.path.join(PROGRAMS, "interpreter.so"))
        facts, live = info("other.xht"), objects_of("other.xht").begun
        expect(facts["complete"] and sum(live.values()) > 50000, f"{path}: {facts}, {len(live)} objects")


if __name__ == "__main__":
    sys.exit(run_tests(by_allocator, counted_once, by_line, recycled, each_call, attached, resized_from_before, beside_tracemalloc, toggled, logger_killed, forked, left_alone, other_unloaded))
