#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A logger that has no memory ends at once: its targets run on, all that they had done until then is in what xheap recover makes, and who asks is told why.

allocations  each allocation of the logger in turn is the first that fails, while it writes, and while a program is executed
single       the same, but it is the only one that fails: a logger that goes on with that has all, or says what is missing
limits       the limit of data ends a logger; that of address space keeps it from recording more programs, which is said
"""
import os
import pathlib
import resource
import struct
import subprocess

from live import LONG_SECONDS, PROGRAMS, SOAK, XHEAP, dump, expect, followed_by, for_preload, info, is_whole, run_tests, stop_session, told, wait_for, xheap

NAME, BLOCKS, OTHER_BLOCKS, FIRST = f"memory{os.getpid()}", 400, 10, 100000
ROUNDS = 400 if SOAK else 10
COUNT_ONLY = 1 << 40
WHY = "for want of memory"


class Left:
    """How many allocations of the logger there are left."""

    def __init__(self):
        self.path = pathlib.Path("left")
        self.path.write_bytes(bytes(16))

    def set(self, number, is_single=False):
        with self.path.open("r+b") as file:
            file.write(struct.pack("QQ", number, is_single))

    def get(self):
        return struct.unpack("QQ", self.path.read_bytes())[0]


class Program:
    """It has made its blocks, and waits."""

    def __init__(self):
        self.path = pathlib.Path("counters")
        self.path.write_bytes(bytes(16))
        self.process = subprocess.Popen([XHEAP, "launch", NAME, "--", f"{PROGRAMS}/crashes", "waits", self.path, str(BLOCKS)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect(self.process.stdout.readline() == "waits\n", "it does not wait")

    def end(self):
        _, said = self.process.communicate(timeout=LONG_SECONDS)
        counts = struct.unpack("QQ", self.path.read_bytes())
        expect(self.process.returncode == 0 and counts == (2 * BLOCKS, BLOCKS), f"status {self.process.returncode}, {counts} blocks: {said}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def start(**environment):
    subprocess.run([XHEAP, "start", NAME, "-o", "memory.xht", "-p", "0"], env=dict(os.environ, **environment), check=True, timeout=LONG_SECONDS,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return told("query", NAME)["logger_pid"]


def execute_one():
    """What becomes of it is the logger's affair, unless it runs; then it runs well."""
    path = pathlib.Path("other")
    path.write_bytes(bytes(16))
    run = subprocess.run([XHEAP, "launch", NAME, "--", "sh", "-c", f"'{PROGRAMS}/crashes' exit {path} {OTHER_BLOCKS}; exit $?"], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=LONG_SECONDS)
    expect(run.returncode == 0 or (run.returncode == 2 and path.read_bytes() == bytes(16)), f"status {run.returncode}: {run.stdout}")


def flush():
    xheap("flush", NAME, status=None)


def lives(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(XHEAP)
    except OSError:
        return False


def pids_of(facts, kind):
    return [str(row["pid"]) for row in facts["processes"] if f"/crashes {kind} " in row.get("command", "") and row.get("image", "").endswith("/crashes")]


def check_program(facts, rows, kind, least):
    """Of the last process that executed it: all blocks of the first thread up to some number, which is not less than that, and of the second one."""
    pids = pids_of(facts, kind)
    expect(pids, f"{kind}: {facts['processes']}")
    for thread, some in enumerate(least):
        first = (thread + 1) * FIRST
        sizes = [int(row["size"]) - first for row in rows if row["pid"] == pids[-1] and row["action"] == "Alloc" and first <= int(row["size"]) < first + FIRST]
        expect(sizes == list(range(len(sizes))) and len(sizes) >= some, f"{kind}, thread {thread}: {len(sizes)} blocks, not {some}: {sizes[-3:]}")


def check_blocks(least):
    facts = info("memory.xht")
    expect(is_whole(facts) and not facts["lost_events"] and not facts["gaps"], f"{facts}")
    rows = dump("memory.xht")
    check_program(facts, rows, "waits", (least, BLOCKS))
    # A logger that lives has recorded the last one, which was executed when there was memory.
    if pids_of(facts, "exit") and least > BLOCKS:
        check_program(facts, rows, "exit", (OTHER_BLOCKS, OTHER_BLOCKS))
    return facts


def check_dead(program, logger):
    wait_for("end of the logger", lambda: not lives(logger))
    expect(WHY in xheap("query", NAME, status=2), "who asks is not told why")
    expect(WHY in xheap("sessions"), "the list does not tell why")
    program.end()
    xheap("recover")
    facts = check_blocks(BLOCKS)
    expect(WHY in facts["options"]["recovered"], f"{facts['options']}")


def round_of(left, number, act, is_single=False):
    """How many allocations it took; None: the logger had too few, and ended."""
    logger = start(LD_PRELOAD=for_preload("no_memory.so"), NO_MEMORY=str(left.path.absolute()))
    program = Program()
    try:
        left.set(number, is_single)
        act()
        taken = number - left.get()
        if lives(logger) and (is_single or left.get() != 1):
            left.set(0)
            if is_single:
                execute_one()
            program.end()
            stopped = xheap("stop", NAME, status=None if is_single else 0)
            # It answers when all is written, a moment before it is gone.
            wait_for("end of the logger", lambda: not lives(logger))
        if not is_single and left.get() == 0:
            expect(info("memory.xht")["complete"], f"it had memory, but the trace is not complete: {stopped}")
        if left.get() == 0 and not lives(logger) and not any_dead():
            check_blocks(2 * BLOCKS)
            return taken
        check_dead(program, logger)
        return None
    finally:
        left.set(0)
        program.kill()


def any_dead():
    return f"{NAME}:" in xheap("sessions")


def rounds(is_single):
    ended, count, left = 0, 0, Left()
    for act in (flush, execute_one):
        taken = round_of(left, COUNT_ONLY, act)
        step = max(1, taken // ROUNDS)
        for number in range(1, taken + 1, step):
            count += 1
            try:
                ended += round_of(left, number, act, is_single) is None
            except Exception as failure:
                raise type(failure)(f"{act.__name__}, allocation {number} of {taken}: {failure}") from None
    return f"{ended} ends in {count} rounds"


def allocations():
    return rounds(False)


def single():
    return rounds(True)


def limits():
    logger = start()
    program = Program()
    try:
        before = resource.prlimit(logger, resource.RLIMIT_AS)
        size = int(pathlib.Path(f"/proc/{logger}/statm").read_text().split()[0]) * resource.getpagesize()
        resource.prlimit(logger, resource.RLIMIT_AS, (size + (1 << 20), before[1]))
        run = subprocess.run([XHEAP, "launch", NAME, "--", "true"], stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
        expect(run.returncode == 2 and "RLIMIT_AS" in run.stderr and lives(logger), f"status {run.returncode}: {run.stderr}")
        resource.prlimit(logger, resource.RLIMIT_AS, before)
        xheap("launch", NAME, "--", "true")
        resource.prlimit(logger, resource.RLIMIT_DATA, (4096, 4096))
        for _ in range(200):
            if not lives(logger):
                break
            execute_one()
        check_dead(program, logger)
    finally:
        program.kill()


def end_all():
    stop_session(NAME)
    xheap("recover", status=None)


if __name__ == "__main__":
    raise SystemExit(run_tests(*map(followed_by(end_all), (allocations, single, limits))))
