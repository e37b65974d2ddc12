#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""File modes and the flight recorder, with a program that numbers its blocks: block i has 1,000,000 + i bytes. It tells how far it is,
so that what a trace has to hold is known without xheap: the newest numbers, none missing between the first one kept and the last."""
import glob
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from live import SOAK, XHEAP, dump, expect, info, is_whole, run_tests, stop_session, told, wait_for, xheap

SOURCE = pathlib.Path(os.environ["SOURCE"])
NAME = f"modes{os.getpid()}"
MIB = 1 << 20
FIRST, IDLE_FIRST = 1000000, 900000
PROGRAM = """
import ctypes, os, sys, mmap, threading, time
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
shared = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 8)
counter, i, end, kept = ctypes.c_uint64.from_buffer(shared), 0, int(sys.argv[2]), []
def give_out(done):
    for number in range(20):
        library.free(library.malloc(900000 + number))
    done.set()
    time.sleep(1 << 20)
while i < end:
    library.free(library.malloc(1000000 + i))
    counter.value = i = i + 1
    if os.path.exists(sys.argv[1] + ".idle"):
        done = threading.Event()
        threading.Thread(target=give_out, args=(done,), daemon=True).start()
        done.wait()
        os.unlink(sys.argv[1] + ".idle")
    [str(n) * 3 for n in range(20)]
    if os.path.exists(sys.argv[1] + ".grow") and not kept:
        kept = [b"x" * (100 << 20)]
    if not os.path.exists(sys.argv[1] + ".grow"):
        kept = []
if "abort" in sys.argv:
    os.abort()
"""
def query(name):
    return told("query", name)


class Program:
    """One that numbers its blocks. until: it ends by itself."""
    all = []

    def __init__(self, until=1 << 40, *words):
        Program.all.append(self)
        self.path = f"counter.{len(Program.all)}"
        pathlib.Path(self.path).write_bytes(bytes(8))
        self.command = ["/usr/bin/python3", "-c", PROGRAM, self.path, str(until), *words]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, env=dict(os.environ, PYTHONMALLOC="malloc"))
        self.wait_for(10)
        return self

    def done(self):
        """So many blocks, at least, have been given back."""
        return int.from_bytes(pathlib.Path(self.path).read_bytes(), "little")

    def wait_for(self, number):
        wait_for(f"block {number} of the program", lambda: self.done() >= number, 30, 0.01)

    def go_on(self, number):
        self.wait_for(self.done() + number)

    def grow(self, is_large):
        grown = pathlib.Path(self.path + ".grow")
        grown.touch() if is_large else grown.unlink()

    def idle(self):
        """A thread gives out some blocks of other sizes, and does nothing from then on."""
        mark = pathlib.Path(self.path + ".idle")
        mark.touch()
        wait_for("thread that begins", lambda: not mark.exists())

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()


def allocations(trace):
    """Size and thread of those that the program numbers. There are a hundred others to each, which a table by names would take too long for."""
    run = subprocess.run([XHEAP, "dump", trace, "-events", "-format", "csv"], stdout=subprocess.PIPE, check=True, text=True)
    lines = run.stdout.splitlines()
    names = lines[0].split(",")
    action, size, tid = (names.index(name) for name in ("action", "size", "tid"))
    rows = (line.split(",") for line in lines if ",Alloc," in line)
    rows = ((int(row[size]), row[tid]) for row in rows if row[action] == "Alloc" and len(row[size]) >= 6)
    return [row for row in rows if IDLE_FIRST <= row[0] < FIRST * 30]


def numbers(trace):
    return [size - FIRST for size, _ in allocations(trace) if size >= FIRST]


def idle_count(trace):
    return sum(size < FIRST for size, _ in allocations(trace))


def check(trace, last, limit=None, first=None, may_lose=False):
    """All numbers from the first one kept to `last` are there, and the file is whole and within its limit. The first one."""
    facts = info(trace)
    expect(is_whole(facts) and (may_lose or facts["complete"]), f"{trace}: {facts['lost_events']} lost, {facts.get('cut_reason')}")
    if limit:
        expect(facts["size_bytes"] <= limit, f"{trace} has {facts['size_bytes']} bytes, more than {limit}")
    found = numbers(trace)
    if may_lose:
        found = [number for number in found if number < last]
    # A block's trace of one thread is in order, so what is not kept is before all that is.
    expect(found == list(range(found[0], found[0] + len(found))) if found else False, f"{trace}: numbers are missing in {len(found)} from {found[:1]}")
    expect(found and found[-1] >= last - 1, f"{trace} ends with {found[-1:]}, {last - 1} was recorded")
    dropped = facts.get("dropped", {}).get("events", 0)
    expect((dropped > 0) == (found[:1] != [first]) if first is not None else True, f"{trace} begins with {found[:1]}, {dropped} events dropped")
    said = xheap("heap", trace, "-totals")
    expect(("are not kept" in said) == (dropped > 0), f"{trace}: the report does not tell of what was dropped: {said}")
    return found[0] if found else -1


def flight():
    program = Program().start()
    xheap("start", NAME, "-o", "f.xht", "-p", program.process.pid, "--file-mode", "flight", "--max-file", "1M")
    expect(not os.path.exists("f.xht"), "a flight recorder writes before it is told to")
    program.go_on(2000)
    before = program.done()
    said = xheap("flush", NAME)
    expect("f.xht" in said, said)
    check("f.xht", before, MIB)
    # It goes on, and the past goes. Until some of it is gone:
    wait_for("end of what is kept", lambda: query(NAME)["dropped_events"] > 0)
    before = program.done()
    xheap("flush", NAME)
    first = check("f.xht", before, MIB)
    state = query(NAME)
    expect(state["written_out"] == 2 and state["size_bytes"] <= MIB and state["file_mode"] == "flight", f"{state}")
    # Looking is no writing out.
    newest = told("heap", "-session", NAME, "-totals")["totals"]["total_count"]
    expect(newest > 100 and query(NAME)["written_out"] == 2, "a look at a flight recorder")
    # The last events of who was killed are there.
    program.go_on(3000)
    program.end()
    last = program.done()
    xheap("stop", NAME)
    expect(check("f.xht", last, MIB) > first, "the oldest are still there")


def flight_of_a_command():
    program = Program(8000, "abort")
    xheap("record", "-o", "a.xht", "--file-mode", "buffering", "--max-file", "1M", "--", "env", "PYTHONMALLOC=malloc", *program.command, status=134)
    check("a.xht", 8000, MIB)
    expect([row["signal"] for row in info("a.xht")["processes"] if row["end"] == "signal"] == [6], "how the program ended is not kept")


def triggers():
    program, other = Program().start(), Program().start()
    xheap("start", NAME, "-o", "t.%02d.xht", "-p", f"{program.process.pid},{other.process.pid}", "--file-mode", "flight", "--max-file", "4M",
          "--trigger", "rss=90M", "--trigger", "crash")
    program.go_on(1000)
    expect(not os.path.exists("t.01.xht"), "a trigger without a reason")
    program.grow(True)
    wait_for("trigger by rss", lambda: query(NAME)["written_out"] == 1)
    program.go_on(500)
    expect(query(NAME)["written_out"] == 1 and not os.path.exists("t.02.xht"), "a trigger again and again")

    def grow_again():
        """The logger looks at the memory from time to time: it may not have seen that it was less."""
        program.grow(False)
        program.go_on(2000)
        program.grow(True)
        until = time.monotonic() + 3
        while query(NAME)["written_out"] != 2 and time.monotonic() < until:
            time.sleep(0.02)
        return query(NAME)["written_out"] == 2
    wait_for("second trigger by rss", grow_again)
    os.kill(query(NAME)["logger_pid"], signal.SIGUSR1)
    wait_for("trigger by signal", lambda: query(NAME)["written_out"] == 3)
    last = other.done()
    other.end(signal.SIGABRT)
    wait_for("trigger by a crash", lambda: query(NAME)["written_out"] == 4)
    grown = [size for size in (int(row["size"] or 0) for row in dump("t.01.xht")) if size > 100 * MIB]
    expect(grown, "what the memory went into is not in the trace")
    program.end(signal.SIGTERM)
    xheap("stop", NAME)
    # The memory may have been a reason once more.
    pids = {row["pid"] for trace in sorted(glob.glob("t.*.xht"))[3:] for row in info(trace)["processes"]}
    expect(other.process.pid in pids and last > 0, "who crashed is not there")
    expect(all(os.path.exists(f"t.0{i}.xht") for i in range(1, 6)), f"{sorted(os.listdir('.'))}")
    for i in range(1, 6):
        facts = info(f"t.0{i}.xht")
        expect(is_whole(facts) and facts["size_bytes"] <= 4 * MIB, f"t.0{i}.xht: {facts.get('cut_reason')}, {facts['size_bytes']}")


def memory_limit():
    """Where cgroups can be made: one whose limit the program hits, which ends it if it cannot be helped."""
    group = pathlib.Path(f"/sys/fs/cgroup/memory/xheap-test-{os.getpid()}")
    limit = group / "memory.limit_in_bytes"
    if not group.parent.is_dir():
        group = pathlib.Path(f"/sys/fs/cgroup/xheap-test-{os.getpid()}")
        limit = group / "memory.max"
    program = None
    try:
        group.mkdir()
        limit.write_text(str(60 * MIB))
        program = Program().start()
        (group / "cgroup.procs").write_text(str(program.process.pid))
    except OSError as error:
        if program:
            program.end()
        if group.is_dir():
            group.rmdir()
        return f"no cgroup can be made: {error}"
    xheap("start", NAME, "-o", "m.xht", "-p", program.process.pid, "--file-mode", "flight", "--trigger", "memory-limit")
    program.go_on(1000)
    expect(query(NAME)["written_out"] == 0, "a limit that was not hit")
    program.grow(True)
    wait_for("trigger by the cgroup's limit", lambda: query(NAME)["written_out"] >= 1)
    check("m.xht", 1)
    xheap("stop", NAME)
    program.end()
    wait_for("end of the cgroup", lambda: is_removed(group))


def is_removed(group):
    """A cgroup can be removed when nobody is in it any more."""
    try:
        group.rmdir()
    except OSError:
        return False
    return True


def idle_is_taken(events):
    rows = [row for target in told("query", NAME, "--threads")["targets"] for row in target["thread_rows"]]
    return len(rows) == 2 and min(row["events"] for row in rows) >= events


def not_said(pattern):
    """As if the logger had been killed before it could say that it went on in the next file, and when it had just made the one behind that; an older
    session has left another one behind it."""
    found = list(pathlib.Path(os.environ["XHEAP_RUNTIME_DIR"]).glob("**/session"))
    expect(len(found) == 1, f"{found}")
    text = found[0].read_text()
    named, newest = int(re.search("^counter=([0-9]+)$", text, re.M)[1]), 1
    while os.path.exists(pattern % (newest + 1)):
        newest += 1
    expect(newest > 2, f"only {newest} files")
    text = text.replace(f"counter={named}\n", f"counter={newest - 2}\n").replace("/" + pattern % named + "\n", "/" + pattern % (newest - 2) + "\n")
    found[0].write_text(text)
    pathlib.Path(pattern % (newest + 1)).write_bytes(pathlib.Path(pattern % 1).read_bytes()[:64])
    xheap("record", "-o", pattern % (newest + 2), "--", "true")


def check_merged(pattern, newest, last):
    """The files are one trace: nothing is missing between them, nothing is in two of them, and no two threads have one number."""
    count = int(newest.split(".")[-2])
    expect(not os.path.exists(pattern % (count + 1)), "an empty file is left")
    expect(info(pattern % (count + 2))["processes"][0]["command"] == "true", "an older session's file was changed")
    xheap("merge", "-o", "n.xht", *(pattern % number for number in range(1, count + 1)))
    expect(check("n.xht", last, may_lose=True) == numbers(pattern % 1)[0], "the files do not begin at the beginning")
    rows = allocations("n.xht")
    main, idle = {tid for size, tid in rows if size >= FIRST}, [tid for size, tid in rows if size < FIRST]
    expect(len(idle) == 20 and len({*idle}) == len(main) == 1 and main != {*idle}, f"{main} {idle}")


def killed_loggers():
    for mode, path in (("flight", "k.xht"), ("circular", "c.xht"), ("newfile", "n.%d.xht")):
        program = Program().start()
        xheap("start", NAME, "-o", path, "-p", program.process.pid, "--file-mode", mode, "--max-file", "1M")
        program.idle()
        wait_for(f"{mode}: what the idle thread did", lambda: idle_is_taken(20 * 2))
        # Until that is in nothing that is gone on with.
        taken = query(NAME)["events"]
        wait_for(f"{mode}: end of the first rounds", lambda: query(NAME)["size_bytes"] > 2 * MIB if mode == "newfile"
                   else query(NAME)["dropped_events"] > taken)
        logger = query(NAME)["logger_pid"]
        last = program.done()
        os.kill(logger, signal.SIGKILL)
        program.go_on(100)
        if mode == "newfile":
            not_said(path)
        said = xheap("recover", *(["-o", "recovered.xht"] if mode == "flight" else []))
        found = "recovered.xht" if mode == "flight" else path if mode == "circular" else said.split(": ")[1]
        # What it did without a logger, for as long as there were buffers, does not matter.
        check(found, last, may_lose=True)
        if mode == "newfile":
            check_merged(path, found, last)
        expect(idle_count(found) == 0, f"{mode}: {idle_count(found)} calls that were dropped are there again")
        expect(program.process.poll() is None, "the program did not outlive its logger")
        program.end()


def circular():
    program = Program().start()
    xheap("start", NAME, "-o", "r.xht", "-p", program.process.pid, "--file-mode", "circular", "--max-file", "1M", "--flush-timer", "50ms")
    first = 0
    for _ in range(5):
        program.go_on(1500)
        expect(os.path.getsize("r.xht") <= MIB, "a circular file is larger than its limit")
        last = program.done()
        xheap("flush", NAME)
        # It is written on while it is read: what is read is of one moment, and nothing is missing in it but the end.
        facts, found = info("r.xht"), numbers("r.xht")
        expect("without a footer" in facts["cut_reason"], f"a circular file that is written: {facts['cut_reason']}")
        expect(found == list(range(found[0], found[0] + len(found))) and found[-1] >= last - 1, f"{len(found)} numbers, {found[:1]} to {found[-1:]}, of {last}")
        for _ in range(3):
            totals = told("heap", "-session", NAME, "-totals")["totals"]
            expect(totals["total_count"] > 1000, f"a look at a circular file: {totals}")
    program.end()
    last = program.done()
    xheap("stop", NAME)
    first = check("r.xht", last, MIB)
    expect(first > 0 and os.path.getsize("r.xht") > MIB * 95 // 100, f"too little is kept: {os.path.getsize('r.xht')} bytes")
    if SOAK:
        check_by_document()
    xheap("symbols", "r.xht")
    check("r.xht", last)


def check_by_document():
    """With the reader that was written after the document; it takes most of a minute for a mebibyte (cli/format reads smaller traces with it)."""
    spec = importlib.util.spec_from_file_location("format", SOURCE / "tests/cli/format.py")
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    trace = reader.Trace(pathlib.Path("r.xht").read_bytes())
    mine, theirs = sorted(event[:11] for event in trace.events), sorted(reader.dumped("r.xht"))
    expect(mine == theirs and len(mine) > 10000, f"{len(mine)} events by the document, {len(theirs)} by xheap dump")
    expect(trace.dropped == info("r.xht")["dropped"]["events"], f"{trace.dropped} events dropped by the document")


def new_files():
    program = Program(12000)
    xheap("record", "-o", "w.%03d.xht", "--file-mode", "newfile", "--max-file", "96K", "--", "env", "PYTHONMALLOC=malloc", *program.command)
    names = sorted(str(path) for path in pathlib.Path(".").glob("w.*.xht"))
    expect(len(names) > 1 and names[0] == "w.001.xht", f"{names}")
    for name in names:
        facts = info(name)
        expect(facts["complete"] and os.path.getsize(name) <= 96 << 10, f"{name} is not whole or too large")
        expect(name == names[-1] or (facts["event_count"] and os.path.getsize(name) >= (96 << 10) * 85 // 100), f"{name} has {os.path.getsize(name)} bytes")
    filled = sum(map(os.path.getsize, names[:-1]))
    expect(filled >= (96 << 10) * (len(names) - 1) * 9 // 10, f"{len(names) - 1} files have {filled} bytes")
    xheap("merge", "-o", "w.xht", *names)
    expect(check("w.xht", 12000, first=0) == 0, "the merged files do not begin at the beginning")


def append():
    for round in range(3):
        xheap("record", "-o", "p.xht", "--file-mode", "append", "--", "env", "PYTHONMALLOC=malloc", *Program(500).command)
    facts = info("p.xht")
    expect(facts["complete"] and "dropped" not in facts, f"an appended trace: {facts}")
    expect(numbers("p.xht") == [*range(500)] * 3, f"{len(numbers('p.xht'))} numbers in three parts")
    before = pathlib.Path("p.xht").read_bytes()
    if facts["clock"] == "tsc":
        xheap("record", "-o", "p.xht", "--file-mode", "append", "--clock", "monotonic", "--", "true", status=2)
    expect(pathlib.Path("p.xht").read_bytes() == before, "a trace that cannot be appended to was changed")
    pathlib.Path("text.xht").write_text("no trace at all, but more than a header's sixty-four bytes of text\n")
    xheap("record", "-o", "text.xht", "--file-mode", "append", "--", "true", status=2)
    expect("no trace" in pathlib.Path("text.xht").read_text(), "a file that is no trace was changed")


def full_disk():
    os.mkdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", "small"], stderr=subprocess.DEVNULL).returncode:
        return "no small disk can be made"
    try:
        program = Program().start()
        xheap("start", NAME, "-o", "small/f.xht", "-p", program.process.pid, "--file-mode", "flight", "--max-file", "1M")
        wait_for("full memory", lambda: query(NAME)["size_bytes"] > 700 << 10)
        said = xheap("flush", NAME, status=2)
        expect("No space" in said and os.listdir("small") == [], f"{said}{os.listdir('small')}")
        subprocess.run(["mount", "-o", "remount,size=8m", "small"], check=True)
        last = program.done()
        xheap("flush", NAME)
        check("small/f.xht", last, MIB)
        xheap("stop", NAME)
        subprocess.run(["rm", "small/f.xht"], check=True)
        subprocess.run(["mount", "-o", "remount,size=600k", "small"], check=True)
        # A circular file makes do with what there is.
        xheap("start", NAME, "-o", "small/c.xht", "-p", program.process.pid, "--file-mode", "circular", "--max-file", "64M")
        wait_for("end of what is kept", lambda: query(NAME)["dropped_events"] > 0)
        last = program.done()
        xheap("stop", NAME)
        check("small/c.xht", last, 600 << 10)
        program.end()
    finally:
        subprocess.run(["umount", "small"])


def refused():
    for words in (["--file-mode", "x"], ["--file-mode", "circular"], ["--file-mode", "newfile"], ["--file-mode", "circular", "--max-file", "512K"],
                  ["--file-mode", "newfile", "--max-file", "1M", "-o", "x.xht"], ["--trigger", "exit"], ["--file-mode", "flight", "--trigger", "rss"],
                  ["--file-mode", "flight", "--trigger", "exit=1"], ["--file-mode", "flight", "--max-file", "10000G"], ["--flush-timer", "1ms"],
                  ["--file-mode", "none", "-o", "x.xht"]):
        said = xheap("start", NAME, *words, status=2)
        expect(said.startswith("xheap: "), f"{words}: {said}")
    expect(not list(pathlib.Path(".").glob("x*.xht")) and NAME not in xheap("sessions"), "something is left of what was refused")
    xheap("record", "--file-mode", "none", "--", "true", status=2)
    xheap("start", NAME, "--file-mode", "none", "--real-time")
    program = Program().start()
    xheap("update", NAME, "--add-pid", program.process.pid)
    program.go_on(500)
    expect("no file" in xheap("flush", NAME, status=2), "a session without a file was flushed")
    expect("live" in xheap("top", NAME), "a session without a file cannot be looked at")
    xheap("stop", NAME)
    program.end()
    expect(not list(pathlib.Path(".").glob(f"xheap.{NAME}*")), "a session without a file has left one")


def alone(test):
    """With sessions of its own, and what is left of a killed logger; whatever becomes of it, its programs end."""
    def run():
        runtime = f"/dev/shm/xheap-modes.{os.getpid()}"
        before = os.environ.get("XHEAP_RUNTIME_DIR")
        os.mkdir(runtime, 0o700)
        os.environ["XHEAP_RUNTIME_DIR"] = runtime
        try:
            said = test()
            expect(NAME not in xheap("sessions"), "a session is left")
            return said
        finally:
            for program in Program.all:
                if program.process:
                    program.end()
            stop_session(NAME)
            shutil.rmtree(runtime, ignore_errors=True)
            os.environ.pop("XHEAP_RUNTIME_DIR") if before is None else os.environ.update(XHEAP_RUNTIME_DIR=before)
    run.__name__ = test.__name__
    return run


sys.exit(run_tests(*map(alone, (flight, flight_of_a_command, triggers, memory_limit, killed_loggers, circular, new_files, append, full_disk, refused))))
