#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""After a detach nothing is left in a process: no mapping, descriptor or file of ours. A thread that stays in our code longer than the detach waits keeps
it mapped, inactive; that is said, and it is removed as soon as the thread has left.

usage: detach.py [TEST...]        SOAK=1: a thousand rounds in place of a few
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

from live import PROGRAMS, SOAK, XHEAP, expect, info, regions, run_tests, stop_session, told, wait_for, xheap

PROGRAM = os.path.join(PROGRAMS, "leaving")
SESSION = f"detach-{os.getpid()}"
# The recorder's data and its threads' memory are larger than this, and what a program does by itself is less.
SPACE_KIB = 4096


class Target:
    """A program that has begun; control: it was never traced."""

    def __init__(self, *words, program=PROGRAM, ready="ready", **more):
        self.process = subprocess.Popen([program, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
        self.pid = self.process.pid
        if ready:
            self.hear(ready)

    def hear(self, word):
        line = self.process.stdout.readline()
        expect(line.strip() == word, f"{self.process.args} says {line!r}, not {word}")

    def say(self, word, answer):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        self.hear(answer)

    def maps(self):
        return pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines()

    def regions(self):
        """Inodes of the regions that it has mapped."""
        return {row[4] for row in regions(self.pid)}

    def code(self):
        """Code without a file."""
        return [line for line in self.maps() if re.search(r" r-xp 0+ 00:00 0 *$", line)]

    def data(self):
        """Our data: the kernel empties it in forked children, and leaves it out of core files."""
        text = pathlib.Path(f"/proc/{self.pid}/smaps").read_text()
        return [line for line in text.splitlines() if line.startswith("VmFlags:") and " dd" in line and " wf" in line]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def space_kib(self):
        return int(re.search(r"VmSize:\s+(\d+)", pathlib.Path(f"/proc/{self.pid}/status").read_text())[1])

    def has_nothing(self):
        return not self.regions() and not self.code() and not self.data()

    def code_of_files(self):
        """Where code of files is mapped, in which of them, and where there."""
        rows = [line.split(maxsplit=5) for line in self.maps()]
        return [(*(int(end, 16) for end in row[0].split("-")), row[5], int(row[2], 16)) for row in rows if row[1] == "r-xp" and row[4] != "0"]

    def text(self):
        with open(f"/proc/{self.pid}/mem", "rb") as memory:
            return [os.pread(memory.fileno(), high - low, low) for low, high, _, _ in self.code_of_files()]

    def text_of_files(self):
        return [pathlib.Path(path).read_bytes()[offset:offset + high - low].ljust(high - low, b"\0") for low, high, path, offset in self.code_of_files()]

    def describe(self):
        return f"{len(self.regions())} regions, {len(self.code())} code mappings, {len(self.data())} data mappings"

    def end(self):
        self.process.communicate("", timeout=60)
        expect(self.process.returncode == 0, f"{self.process.args}: status {self.process.returncode}")

    def kill(self):
        self.process.kill()
        self.process.communicate()


def record(pid, *words, status=0, trace="detach.xht"):
    """What it says on its errors' stream."""
    run = subprocess.run([XHEAP, "record", "-o", trace, "-p", str(pid), *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120)
    expect(run.returncode == status, f"record {pid} {words}: status {run.returncode}: {run.stderr}")
    return run.stderr


def rounds(count, target, control=None):
    """So many attaches and detaches: after each at most one inactive region, which is said; at the end nothing."""
    inactive = 0
    descriptors = target.descriptors()
    for number in range(count):
        # A sample, but for some: blocks from before need not be read.
        said = record(target.pid, "--duration", "20ms", *(["--sample", "4k"] if number % 10 else []))
        regions = target.regions()
        expect(len(regions) <= 1 and len(target.data()) <= 1, f"round {number}: {target.describe()}")
        expect(not regions or "inactive code" in said, f"round {number}: what is left is not said: {said}")
        expect(target.descriptors() <= descriptors, f"round {number}: {target.descriptors()} descriptors, {descriptors} before")
        inactive += len(regions)
    # Each occasion removes what it can.
    for _ in range(5):
        if target.has_nothing():
            break
        record(target.pid, "--duration", "20ms", "--sample", "4k")
    expect(target.has_nothing(), f"after {count} rounds: {target.describe()}")
    expect(target.text() == target.text_of_files(), f"after {count} rounds: code is not that of its files")
    if control:
        expect(target.space_kib() <= control.space_kib() + SPACE_KIB, f"{target.space_kib()} KiB, untraced {control.space_kib()} KiB")
    return f"{count} rounds, {inactive} with inactive code left, all removed"


def program_rounds(count, *words, program=PROGRAM):
    # A thread that naps comes to its arena, of 64 MiB, at a time of its own.
    more = {"program": program, "env": dict(os.environ, MALLOC_ARENA_MAX="2" if words[0] == "loops" else "1")}
    target, control = Target(*words, **more), Target(*words, **more)
    threads = 1 + (words[1] if len(words) > 1 else 1)
    try:
        # The untraced one leaves the processors to the other when both have all that they will have: an arena takes 64 MiB.
        wait_for("threads and arenas of both", lambda: target.threads() == control.threads() == threads and
                 abs(target.space_kib() - control.space_kib()) < SPACE_KIB // 2, 60, pause=0.3)
        os.kill(control.pid, signal.SIGSTOP)
        said = rounds(1000 if SOAK else count, target, control)
        target.end()
        return said
    finally:
        target.kill()
        control.kill()


def loops():
    """Eight threads on fewer processors, all in the allocator all the time."""
    return program_rounds(20, "loops", 8)


def crowd():
    """Sixty of them: those that are in our code have to get a processor."""
    return program_rounds(5, "loops", 60)


def naps():
    """Numbers on the stack are no addresses, however low code lies."""
    return "; ".join(program_rounds(4, "naps", program=os.path.join(PROGRAMS, name)) for name in ("leaving", "leaving_fixed", "leaving_static"))


def deep():
    return program_rounds(2, "deep")


def words():
    """What looks like a return address into our code is none where the stack can be unwound."""
    target = Target("words")
    recorder = subprocess.Popen([XHEAP, "start", SESSION, "-o", "words.xht", "-p", str(target.pid)], stderr=subprocess.PIPE, text=True)
    expect(recorder.wait(60) == 0, f"start: {recorder.stderr.read()}")
    target.say("enter", "inside")
    xheap("stop", SESSION)
    expect(target.has_nothing(), target.describe())
    target.say("leave", "outside")
    target.end()


def forks():
    """A forked child that never calls the heap is in no list, and has all that its parent has."""
    target, session = Target("forks"), f"{SESSION}-forks"
    try:
        xheap("start", session, "-o", "forks.xht", "-p", target.pid)
        target.say("enter", "inside")
        child = int(pathlib.Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text())
        expect(regions(child), "the child has nothing")
        xheap("stop", session)
        expect(target.has_nothing(), f"parent: {target.describe()}")
        expect(not regions(child), "the child has a region")
        target.say("leave", "outside")
        target.end()
    finally:
        stop_session(session)
        target.kill()


def entries():
    """What looks like a place within an entry keeps no process from being attached to."""
    target = Target("entries")
    expect("attached to process" in record(target.pid, "--duration", "20ms"), "nothing is recorded")
    expect(target.has_nothing(), target.describe())
    target.end()


def stays(kind):
    """A thread stays in our code, or comes back to it: nothing is unmapped, and all is said; the next ones remove it when the thread is out."""
    session, trace = f"{SESSION}-{kind}", f"{kind}.xht"
    program = os.path.join(PROGRAMS, "leaving_stays" if kind == "stays" else "leaving")
    target = Target(kind, program=program)
    try:
        xheap("start", session, "-o", trace, "-p", target.pid)
        target.say("enter", "inside")
        xheap("update", session, "--remove-pid", target.pid)
        expect(len(target.regions()) == 1 and target.code(), f"inside: {target.describe()}")
        inactive = told("query", session)["inactive"]
        expect([row["pid"] for row in inactive] == [target.pid] and inactive[0]["threads"] == 1 and inactive[0]["bytes"] > 0, f"query: {inactive}")
        expect(f"process {target.pid}" in xheap("query", session), "query does not say so")
        # Another one that comes meanwhile does not add a second one.
        said = record(target.pid, "--duration", "20ms", trace=f"{kind}-other.xht", status=2)
        expect("in the inactive code of an earlier recording" in said, said)
        expect(len(target.regions()) == 1, f"after an attach: {target.describe()}")
        # The session removes it by itself.
        target.say("leave", "outside")
        wait_for("end of the inactive code", target.has_nothing, 60)
        wait_for("end of it in the session", lambda: not told("query", session)["inactive"], 60)
        # Detached from once more, by the end of the session: the trace has it, and the next one to attach removes it.
        xheap("update", session, "--add-pid", target.pid)
        target.say("enter", "inside")
        said = xheap("stop", session)
        expect("inactive code" in said, f"stop: {said}")
        facts = info(trace)
        expect([row["pid"] for row in facts["inactive"]] == [target.pid] and "inactive" not in facts["options"], f"info: {facts['inactive']}")
        expect("had inactive code" in " ".join(xheap("info", trace).split()), "info's text does not say so")
        target.say("leave", "outside")
        expect(len(target.regions()) == 1, f"left: {target.describe()}")
        said = record(target.pid, "--duration", "20ms", trace=f"{kind}-last.xht")
        expect("was removed" in said, said)
        expect(target.has_nothing(), f"at the end: {target.describe()}")
        expect("inactive" not in info(f"{kind}-last.xht"), "info names one")
        target.end()
    finally:
        stop_session(session)
        target.kill()


def staying():
    """In a call that it made, in the handler of a signal that interrupted our code, and in one with a stack of its own; at once, for each takes its time."""
    kinds = "stays", "handler", "alternate"
    with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:
        for run in [pool.submit(stays, kind) for kind in kinds]:
            run.result()


def orphaned():
    """What a logger that was killed has left is removed by the next attach, though all functions lead there still: directly, and from a low address."""
    for name in ("leaving", "leaving_static"):
        target, trace = Target("loops", 2, program=os.path.join(PROGRAMS, name)), f"{name}.xht"
        try:
            recorder = subprocess.Popen([XHEAP, "record", "-o", trace, "-p", str(target.pid)], stderr=subprocess.PIPE, text=True)
            while "attached to process" not in (line := recorder.stderr.readline()):
                expect(line, "nothing is recorded")
            text = target.text()
            logger = subprocess.run(["pgrep", "-P", str(recorder.pid)], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
            os.kill(int(logger[0]), signal.SIGKILL)
            recorder.communicate(timeout=60)
            expect(len(target.regions()) == 1, target.describe())
            xheap("recover", trace)
            said = record(target.pid, "--duration", "20ms")
            expect("was removed" in said, said)
            expect(target.has_nothing(), target.describe())
            expect(target.text() != text and target.text() == target.text_of_files(), f"{name}: code is not that of its files")
            target.end()
        finally:
            target.kill()


def passing():
    """From a shell's commands, which begin and end all the time: a process that is just executing or ending is no reason to say that anything stays in it."""
    count = 1000 if SOAK else 40
    shell = subprocess.Popen(["sh", "-c", "while :; do sh -c 'ls /dev/null; :'; done"], stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        for number in range(count):
            said = record(shell.pid, "-q", "--duration", "100ms")
            expect("stay" not in said, f"round {number}: {said}")
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    return f"{count} rounds"


def java():
    """A virtual machine, whose own code has no unwind tables."""
    command = shutil.which("rmiregistry")
    if not command:
        return "not installed: no rmiregistry, a server of the Java runtime, is here"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    target = Target(port, program=command, ready=None)
    try:
        wait_listening(port)
        return rounds(1000 if SOAK else 5, target)
    finally:
        target.kill()


def wait_listening(port):
    def is_listening():
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False
    return wait_for("server", is_listening, 60)


sys.exit(run_tests(loops, crowd, naps, deep, words, forks, entries, staying, orphaned, passing, java))
