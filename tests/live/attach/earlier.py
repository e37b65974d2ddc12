#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Blocks from before an attach: all of them are found, with their sizes, and nothing else, however busy the program is.

The oracle logs every call from the program's first one on. What lives at the program's end by its log has to be what lives there by the trace,
which began in the middle: so each earlier block was found, or its free would be unknown; and each that was found was one, or it would live on.

usage: earlier.py [TEST...]     SOAK=1: many more rounds
"""
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

from live import LONG_SECONDS, PROGRAMS, SOAK, XHEAP, Failure, dump, expect, for_preload, info, run_tests, stop_session, told, wait_until_begun, xheap

PROGRAM, USABLE = os.path.join(PROGRAMS, "earlier"), os.path.join(PROGRAMS, "usable")
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
ROUNDS = 100 if SOAK else 6
RECORD = struct.Struct("<IHHIIQQ3QQ")
RETURNED = 2
HEADER_BYTES, NAMES_AT, NAME_BYTES = 4096, 48, 32
LARGEST_WASTE = 2 * 4096


def log_read(path):
    """The calls of a log: function, entered, returned, arguments, result."""
    with open(path, "rb") as log:
        head = log.read(HEADER_BYTES)
        functions, capacity, count = struct.unpack_from("<4xIQQ", head)
        names = [head[NAMES_AT + i * NAME_BYTES:][:NAME_BYTES].split(b"\0")[0].decode() for i in range(functions)]
        expect(count <= capacity, f"{count} calls do not fit the log")
        calls = log.read(count * RECORD.size)
    for state, function, error, pid, _, entered, returned, *arguments, result in RECORD.iter_unpack(calls):
        if state == RETURNED:
            yield pid, names[function], error, entered, returned, arguments, result


def requested(name, arguments):
    if name in ("calloc",):
        return arguments[0] * arguments[1]
    return arguments[{"realloc": 1, "aligned_alloc": 1, "memalign": 1, "posix_memalign": 2}.get(name, 0)]


def log_live(path, wanted_pid):
    """What lives at the end: requested bytes by address."""
    points = []
    for pid, name, error, entered, returned, arguments, result in log_read(path):
        if pid != wanted_pid or error:
            continue
        if name == "free":
            points.append((entered, arguments[0], None))
            continue
        if name == "realloc" and arguments[0]:
            points.append((entered, arguments[0], None))
        if name == "posix_memalign":
            raise Failure("posix_memalign is not understood here")
        if result:
            points.append((returned, result, requested(name, arguments)))
    live = {}
    for _, address, size in sorted(points):
        if size is None:
            live.pop(address, None)
        else:
            live[address] = size
    return live


class Target:
    def __init__(self, *command, **environment):
        shutil.rmtree("log", ignore_errors=True)
        os.mkdir("log")
        self.process = subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, LD_PRELOAD=for_preload("oracle.so"), CALL_LOG=os.path.abspath("log"), **environment))
        self.pid = self.process.pid
        expect(self.process.stdout.readline() == "filled\n", f"{command}: it did not begin")

    def end(self):
        self.process.communicate("\n", timeout=LONG_SECONDS)
        expect(self.process.returncode == 0, f"{self.process.args}: status {self.process.returncode}")

    def log(self):
        for name in os.listdir("log"):
            return log_live(os.path.join("log", name), self.pid)
        raise Failure("there is no log")


def record(target, trace, seconds=0.1, disturb=None, how=()):
    """Attach, and let the program end."""
    recorder = subprocess.Popen([XHEAP, "record", "-o", trace, *how, "-p", str(target.pid)], stderr=subprocess.PIPE, text=True)
    said = ""
    try:
        while "blocks from before" not in said:
            line = recorder.stderr.readline()
            expect(line, f"record: {said}")
            said += line
    finally:
        if disturb:
            disturb.end()
    time.sleep(seconds)
    target.end()
    said += recorder.communicate(timeout=LONG_SECONDS)[1]
    expect(recorder.returncode == 0, f"record: {said}")
    return said


ARENA_BYTES = (1 << 14, 1 << 18, 1 << 20)


def compare(target, trace, said):
    """The end of the trace, and of the log. The number of earlier blocks."""
    doubts = told("heap", trace)
    expect("not all blocks" not in said, said)
    facts = {key: value for key, value in info(trace).items() if value and isinstance(value, int)}
    expect(doubts["unknown_frees"] == 0 and doubts["order_conflicts"] == 0,
           f"{doubts['unknown_frees']} unknown frees, {doubts['order_conflicts']} order conflicts; {said} {facts}")
    live = target.log()
    rows = dump(trace, "-allocations")
    found = {int(row["address"], 16): row for row in rows if int(row["pid"]) == target.pid and row["end_kind"] in ("exit", "open", "")}
    # Python's arenas, which the log does not have, begin with a page, as no block of malloc does.
    for address in [address for address, row in found.items() if address % 4096 == 0 and int(row["size"]) in ARENA_BYTES]:
        del found[address]
    missing, strange = live.keys() - found.keys(), found.keys() - live.keys()
    expect(not missing, f"{len(missing)} of {len(live)} blocks are missing: {[(hex(a), live[a]) for a in list(missing)[:5]]}")
    expect(not strange, f"{len(strange)} blocks too many: {[(hex(a), found[a]['size'], found[a]['birth_ns']) for a in list(strange)[:5]]}")
    for address, row in found.items():
        size, usable = live[address], int(row["size"])
        if row["birth_ns"]:
            expect(size == usable, f"{address:#x} has {usable} bytes, not {size}")
        else:
            expect(size <= usable <= size + LARGEST_WASTE, f"{address:#x} was found to have {usable} bytes, not {size}")
    earlier = [row for row in rows if not row["birth_ns"]]
    listed = {"count": len(earlier), "bytes": sum(int(row["size"]) for row in earlier)}
    # Those that were given back by the folded time are in sums.
    is_right = all(doubts["earlier"][key] >= listed[key] for key in listed) if "folded" in doubts else doubts["earlier"] == listed
    expect(is_right, f"{doubts['earlier']}, {listed} are listed")
    return doubts["earlier"]["count"]


def still():
    """Nobody calls the heap meanwhile: one thread, and several arenas."""
    told = []
    for mode, threads in (("still", 1), ("still", 2), ("still", 8), ("heaps", 1)):
        target = Target(PROGRAM, mode, threads, 5)
        told.append(compare(target, "still.xht", record(target, "still.xht")))
        expect(told[-1] > 1000, f"only {told[-1]} blocks were found")
    return f"{told} blocks"


def unusual():
    """No thread has a cache, or nothing lies in the main arena: where caches are made when they are needed, as since glibc 2.42."""
    told = []
    for mode in ("large", "mapped"):
        for threads in (0, 2):
            target = Target(PROGRAM, mode, threads, 3)
            told.append(compare(target, "unusual.xht", record(target, "unusual.xht")))
            expect(told[-1] > 1000, f"{mode} {threads}: only {told[-1]} blocks were found")
    return f"{told} blocks"


# Caches that hold more, larger ones, or nothing, and what they leave to the other lists.
TUNABLES = ("tcache_count=0", "tcache_count=65535", "tcache_max=0", "tcache_max=100", "tcache_max=5000", "tcache_max=4194287",
            "tcache_max=4194287:glibc.malloc.tcache_count=2000:glibc.malloc.mmap_threshold=33554432", "mxfast=0", "mxfast=160", "arena_max=1",
            "mmap_threshold=2000")


# Half of the time of this test: which lists a block lies in depends on the tunable, hardly on what the threads do meanwhile.
BUSY_TUNABLES = TUNABLES if SOAK else ("tcache_max=5000", "mxfast=160", "arena_max=1")


def tuned():
    """As GLIBC_TUNABLES has it."""
    told = []
    for number, tunable in enumerate(TUNABLES):
        # Blocks that are mapped alone while others go are not found.
        is_busy = tunable in BUSY_TUNABLES and not tunable.startswith("mmap")
        for mode, threads in (("still", 0), ("still", 3), *([("busy", 3)] if is_busy else [])):
            try:
                target = Target(PROGRAM, mode, threads, number + 1, GLIBC_TUNABLES=f"glibc.malloc.{tunable}")
                told.append(compare(target, "tuned.xht", record(target, "tuned.xht")))
            except Failure as failure:
                raise Failure(f"{mode} {threads}, {tunable}: {failure}")
            expect(told[-1] > 1000, f"{mode} {threads}, {tunable}: only {told[-1]} blocks were found")
    return f"{len(TUNABLES)} tunables, {min(told)} to {max(told)} blocks"


def growing():
    """Arenas grow all the time: they are read up to where they reached, and long before they stop."""
    target = Target(PROGRAM, "grows", 2, 1)
    return f"{compare(target, 'growing.xht', record(target, 'growing.xht'))} blocks"


def said_first(*words):
    """The first lines of an answer."""
    return xheap(*words).splitlines()[:8]


def damaged():
    """Two of three arenas cannot be read: what was found of the rest is there, and everybody is told what is not. Recording ends all the same."""
    target = subprocess.Popen([PROGRAM, "broken", "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect(target.stdout.readline() == "filled\n", "it did not begin")
    said = xheap("record", "-o", "damaged.xht", "-p", target.pid, "--duration", "100ms")
    target.communicate("\n", timeout=LONG_SECONDS)
    expect(target.returncode == 0, f"status {target.returncode}")
    text = "2 of 3 arenas could not be walked"
    expect(text in said, said)
    facts, answer = info("damaged.xht"), told("heap", "damaged.xht")
    expect(not facts["complete"] and text in facts["earlier_missing"][0], f"info: {facts}")
    expect(not answer["complete"] and text in answer["earlier"]["missing"][0], f"heap: {answer}")
    for words in (["info", "damaged.xht"], ["report", "damaged.xht"], ["heap", "damaged.xht"], ["dump", "damaged.xht", "-allocations"]):
        expect(any(text in line for line in said_first(*words)), f"{words}: {said_first(*words)}")
    expect("not complete" in said_first("info", "damaged.xht")[0], f"{said_first('info', 'damaged.xht')}")


def usable():
    """What each block has is what malloc says, of earlier ones and of those that are recorded from their beginning."""
    def told(process):
        lines = iter(process.stdout.readline, "all\n")
        return {int(address, 16): int(size) for address, size in map(str.split, lines)}

    target = subprocess.Popen([USABLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wanted = told(target)
    xheap("record", "-o", "usable.xht", "-p", target.pid, "--duration", "100ms")
    target.communicate("")
    found = {int(row["address"], 16): int(row["size"]) for row in dump("usable.xht", "-allocations")}
    wrong = {address: (found.get(address), size) for address, size in wanted.items() if found.get(address) != size}
    expect(len(wanted) > 100 and not wrong, f"of {len(wanted)} earlier blocks, other sizes were found of {wrong}")
    recorder = subprocess.Popen([XHEAP, "record", "-q", "-o", "usable.xht", "--", USABLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wanted = told(recorder)
    recorder.communicate("")
    found = {int(row["address"], 16): int(row["usable"]) for row in dump("usable.xht", "-events") if row["action"] in ("Alloc", "ReAlloc")}
    wrong = {address: (found.get(address), size) for address, size in wanted.items() if found.get(address) != size}
    expect(not wrong, f"other sizes were recorded of {wrong}")
    return f"{len(wanted)} blocks"


def stale():
    """Blocks that look as they did when they lay in the cache of a thread, which has ended since."""
    target = Target(PROGRAM, "stale", 1)
    told = compare(target, "stale.xht", record(target, "stale.xht"))
    expect(told >= 63, f"only {told} blocks were found")
    return f"{told} blocks"


class Stutter:
    """Stops a process again and again, so that its threads are in the middle of calls for long."""

    def __init__(self, pid, seed):
        self.pid, self.chance, self.is_over = pid, random.Random(seed), threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over.is_set():
            os.kill(self.pid, signal.SIGSTOP)
            time.sleep(self.chance.uniform(0.005, 0.02))
            os.kill(self.pid, signal.SIGCONT)
            time.sleep(self.chance.uniform(0.0005, 0.003))

    def end(self):
        self.is_over.set()
        self.thread.join()


def busy(disturb=None, mode="busy", threads=(1, 2, 3, 8)):
    """All threads work on while the heaps are read."""
    told = []
    for i in range(ROUNDS):
        target = Target(PROGRAM, mode, threads[i % len(threads)], i + 1)
        try:
            told.append(compare(target, "busy.xht", record(target, "busy.xht", disturb=disturb and disturb(target.pid, i))))
        except Failure as failure:
            raise Failure(f"seed {i + 1}: {failure}")
    return f"{ROUNDS} rounds, {min(told)} to {max(told)} blocks"


def stuttering():
    """Threads are stopped anywhere, also in calls that were under way at the attach."""
    return busy(Stutter)


def brief():
    """Threads come and go meanwhile, and their caches with them."""
    return busy(mode="brief", threads=(1, 2, 3))


def ending():
    """Threads are stopped while they end, when what their caches have is in no list any more."""
    return busy(Stutter, "brief", (1, 2, 3))


def forks():
    """A child has its parent's earlier blocks, and may give them back."""
    target = Target(PROGRAM, "forks", 3, 9)
    count = compare(target, "forks.xht", record(target, "forks.xht"))
    child = info("forks.xht")["processes"][1]
    expect(count // 2 < child["inherited_count"] <= count, f"{child['inherited_count']} blocks were inherited of {count}")
    return f"{child['inherited_count']} of {count} blocks were inherited"


def kept():
    """A long run: what was there before is folded with all else, and what lives at its end is there."""
    # How much is recorded in a time is the machine's business.
    for seconds in (1.5, 6, 24):
        target = Target(PROGRAM, "busy", 3, 7)
        how = ("--keep", "live", "--max-file", "1M", "--flush-timer", "100ms", "--wait-limit", "60s")
        count = compare(target, "kept.xht", record(target, "kept.xht", seconds, how=how))
        folded = told("heap", "kept.xht").get("folded", {"events": 0})["events"]
        if folded > 10000:
            break
    expect(folded > 10000, f"{folded} events are folded")
    return f"{count} blocks, {folded} events folded"


def let_go():
    """Let go of while its heaps are read, a program goes on without events: nothing is believed then of what was found, and that is told."""
    target = Target(PROGRAM, "busy", 2, 3)
    os.kill(target.pid, signal.SIGSTOP)
    name = f"let-go-{os.getpid()}"
    try:
        # Where its threads stand is not known, so their calls are waited for.
        xheap("start", name, "-o", "let_go.xht", "-p", target.pid)
        xheap("update", name, "--remove-pid", target.pid)
        os.kill(target.pid, signal.SIGCONT)
    finally:
        stop_session(name)
        os.kill(target.pid, signal.SIGCONT)
    target.end()
    earlier = told("heap", "let_go.xht")["earlier"]
    expect(earlier["count"] == 0 and "detached from" in earlier["missing"][0], f"{earlier}")


PYTHON = """
import sys, threading
kept, is_over = {}, threading.Event()
def work(seed):
    for i in range(1 << 62):
        kept[(seed, i * 7919 % 1500)] = [str(i) * (i % 90), bytearray(i * 31 % 3000)]
        if i % 100 == 0 and is_over.wait(0.002):
            return
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
for thread in threads:
    thread.start()
is_over.wait(0.1)
print("filled", flush=True)
sys.stdin.readline()
is_over.set()
for thread in threads:
    thread.join()
"""


def real():
    """Python, with blocks of its own pools and without."""
    told = []
    if not os.path.exists("/usr/bin/python3"):
        return "no python3"
    for allocator in ("malloc", "pymalloc"):
        target = Target("/usr/bin/python3", "-c", PYTHON, PYTHONMALLOC=allocator)
        told.append(compare(target, "real.xht", record(target, "real.xht")))
    return f"{told} blocks"


def skipped():
    """What cannot be walked is left out and told: in the summary, and in each report."""
    if not os.path.exists(JEMALLOC):
        return "no libjemalloc"
    target = subprocess.Popen([os.path.join(PROGRAMS, "attached"), "idle"], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, env=dict(os.environ, LD_PRELOAD=JEMALLOC))
    wait_until_begun(target)
    run = subprocess.run([XHEAP, "record", "-o", "skipped.xht", "-p", str(target.pid), "--duration", "200ms"], stderr=subprocess.PIPE, text=True)
    target.communicate(b"")
    expect(run.returncode == 0, run.stderr)
    expect("libjemalloc.so.2 has its own heap" in run.stderr, run.stderr)
    missing = told("heap", "skipped.xht")["earlier"]["missing"]
    expect(len(missing) == 1 and "libjemalloc.so.2" in missing[0], f"{missing}")
    text = subprocess.run([XHEAP, "heap", "skipped.xht", "-width", "300"], stdout=subprocess.PIPE, text=True, check=True).stdout
    expect("not all blocks from before are known" in text, text)


def sampled():
    """Of a sample, no free of an earlier block is known: there are none."""
    target = Target(PROGRAM, "busy", 2, 1)
    run = subprocess.run([XHEAP, "record", "--sample", "64k", "-o", "sampled.xht", "-p", str(target.pid), "--duration", "200ms"], stderr=subprocess.PIPE,
                         text=True)
    target.end()
    expect(run.returncode == 0 and "the session samples" in run.stderr, run.stderr)
    doubts = told("heap", "sampled.xht")
    expect(doubts["earlier"]["count"] == 0 and doubts["unknown_frees"] == 0, f"{doubts['earlier']}, {doubts['unknown_frees']} unknown frees")


sys.exit(run_tests(still, growing, damaged, usable, stale, unusual, tuned, busy, stuttering, brief, ending, forks, kept, let_go, real, skipped, sampled))
