#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attaching to processes that run, and letting go of them: nothing of theirs is disturbed, and between the two no call is missing.

usage: undisturbed.py        SOAK=1: a thousand rounds in place of a few
"""
import ctypes
import errno
import os
import pathlib
import pwd
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

from live import (LONG_SECONDS, PROGRAMS, SOAK, XHEAP, Failure, check_counting, dump, expect, info, is_whole, processor_ticks, regions, run_tests, stop_session,
                  wait_for, wait_until_begun, xheap)

PROGRAM = os.path.join(PROGRAMS, "attached")
ROUNDS = 1000 if SOAK else 12
RESTART_SYSCALL, PTRACE = 219, 101  # of x86-64
SET_USER_DISPATCH = 59


class Target:
    def __init__(self, *arguments, program=PROGRAM, reads=True, **more):
        """reads: the program waits for its standard input once it has begun."""
        self.process = subprocess.Popen([program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
        self.pid = self.process.pid
        if reads:
            wait_until_begun(self.process)

    def end(self):
        """Its own checks have to pass."""
        out, _ = self.process.communicate("", timeout=LONG_SECONDS)
        expect(self.process.returncode == 0, f"{self.process.args}: status {self.process.returncode}: {out}")

    def kill(self):
        self.process.kill()
        self.process.communicate()


def record(trace, *options, status=0, **more):
    run = subprocess.run([XHEAP, "record", "-o", trace, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS, **more)
    expect(run.returncode == status, f"record {options}: status {run.returncode}: {run.stderr}")
    return run.stderr


def recording(trace, *options):
    """One that goes on, and has attached."""
    recorder = subprocess.Popen([XHEAP, "record", "-o", trace, *map(str, options)], stderr=subprocess.PIPE, text=True)
    while "attached to process" not in (line := recorder.stderr.readline()):
        expect(line, f"record {options}: nothing is recorded")
    return recorder


def wait_until_recorded(trace, count=1000, pids=()):
    """Until the trace, which grows, has so many events of each of these processes, or of all."""
    def is_recorded():
        try:
            facts = info(trace)
        except Failure:  # it has not begun
            return False
        by_pid = {row["pid"]: row.get("events", 0) for row in facts["processes"]}
        return all(by_pid.get(pid, 0) > count for pid in pids) if pids else facts["event_count"] > count
    wait_for(f"{count} events in {trace}", is_recorded)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def counting(kind="count"):
    """A busy program, again and again; no call between the two ends is missing."""
    target, pauses, calls = Target(kind, 8), [], 0
    for number in range(ROUNDS):
        said = record("count.xht", "-p", target.pid, "--duration", "60ms")
        pauses.append(float(re.search(r"threads paused for ([\d.]+) ms", said)[1]))
        if number % 100 == 0 or number == ROUNDS - 1:
            found, threads = check_counting("count.xht")
            expect(found > 100 and threads == 8, f"{found} calls of {threads} threads")
            calls += found
    left = regions(target.pid)
    expect(len(left) <= ROUNDS // 4, f"{len(left)} regions are still mapped after {ROUNDS} rounds")
    target.end()
    return f"{ROUNDS} rounds, all stood for {sorted(pauses)[len(pauses) // 2]} ms (median), {max(pauses)} ms at most"


def adjacent():
    """Stacks that are one mapping are told apart: what was mapped goes, as elsewhere."""
    return counting("adjacent")


def blocked():
    """Calls that a stop may interrupt end as they would have, also where a filter forbids the call by which the kernel would resume them."""
    for words in ((), (RESTART_SYSCALL,)) if os.geteuid() == 0 else ((),):
        target = Target("blocked", 14, *words)
        for _ in range(3):
            record("blocked.xht", "-q", "-p", target.pid, "--duration", "100ms")
        target.end()


def children():
    """What is forked and executed later is recorded, too, and all is let go of."""
    target = Target("children")
    record("children.xht", "-p", target.pid, "--duration", "1500ms")
    target.end()
    sizes = {row["size"] for row in dump("children.xht")}
    expect({"4001", "4002"} <= sizes, f"children's calls are missing: {sorted(sizes)[:20]}")
    return f"{len(info('children.xht')['processes'])} processes"


def loading():
    """Libraries that come and go later."""
    target = Target("loads", 2)
    record("loads.xht", "-p", target.pid, "--duration", "500ms")
    target.end()
    expect(any(row["size"] == "5001" for row in dump("loads.xht")), "nothing was recorded")


def stopped():
    """A stopped process stays stopped, and is recorded once it goes on."""
    target = Target("count")
    os.kill(target.pid, signal.SIGSTOP)
    wait_for("stop", lambda: state_of(target.pid) == "T")
    recorder = recording("stopped.xht", "-p", target.pid)
    # For a moment it is stopped for us.
    wait_for("stop as before", lambda: state_of(target.pid) == "T")
    os.kill(target.pid, signal.SIGCONT)
    wait_until_recorded("stopped.xht")
    recorder.send_signal(signal.SIGINT)
    expect(recorder.wait(LONG_SECONDS) == 0, "record failed")
    target.end()
    expect(check_counting("stopped.xht")[0] > 100, "nothing was recorded")


def several():
    """Two at once, of which one ends; the other way round; and all or none."""
    one, two = Target("count"), Target("count", 2)
    recorder = recording("several.xht", "-p", f"{one.pid},{two.pid}")
    wait_until_recorded("several.xht", 100, (one.pid, two.pid))
    one.end()
    wait_for("end of the first of two", lambda: any(row["pid"] == one.pid and row["end"] == "exit" for row in info("several.xht")["processes"]))
    wait_until_recorded("several.xht", info("several.xht")["event_count"] + 100)
    expect(recorder.poll() is None, "it ended with the first of two")
    recorder.send_signal(signal.SIGINT)
    expect(recorder.wait(LONG_SECONDS) == 0, "Ctrl-C: it failed")
    expect({process["pid"] for process in info("several.xht")["processes"]} == {one.pid, two.pid}, "not both are recorded")
    said = record("none.xht", "-p", two.pid, "-p", 4194303, status=2)
    expect("no process 4194303" in said, said)
    expect(not os.path.exists("none.xht"), "a trace of nothing is left")
    two.end()


def ending():
    """A process that ends ends its recording; one that is killed loses no call that had returned."""
    target = Target("count", 4)
    recorder = recording("ending.xht", "-p", target.pid)
    wait_until_recorded("ending.xht", 2000)
    target.kill()
    expect(recorder.wait(LONG_SECONDS) == 0, "record failed")
    expect(check_counting("ending.xht")[0] > 1000, "nothing was recorded")


def ends():
    """The trace has the status or the signal of a process that is no child of the logger, and what the kernel says of it."""
    kernel = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))
    for number in (0, signal.SIGKILL, signal.SIGTERM):
        target = Target("count", 4)
        recorder = recording("ends.xht", "-p", target.pid)
        wait_until_recorded("ends.xht", 100)
        if number:
            target.process.send_signal(number)
            target.process.communicate()
        else:
            target.end()
        expect(recorder.wait(LONG_SECONDS) == 0, "record failed")
        row = info("ends.xht")["processes"][0]
        if row["end"] == "unknown" and kernel < (6, 15):
            return "the kernel does not give the status, before 6.15"
        expect((row["end"], row.get("signal", row.get("status"))) == ("signal" if number else "exit", number), f"signal {number}: {row}")
        said = subprocess.run([XHEAP, "report", "ends.xht"], stdout=subprocess.PIPE, text=True, check=True).stdout
        words = f"Ended: pid {target.pid}, {signal.Signals(number).name} at " if number else "Ended"
        expect((words in said) == bool(number), said)
        if number == signal.SIGKILL:
            # Others may be killed for want of memory meanwhile, but the cgroup's count is there where the machine's is.
            expect(row["memory_kills"] and "end_cause" not in row or any(row["memory_kills"].values()), f"{row}")
    return None


def killed():
    """Killed controllers and loggers leave the target running."""
    target = Target("count", 4)
    recorder = recording("killed.xht", "-p", target.pid)
    wait_until_recorded("killed.xht")
    recorder.kill()
    recorder.wait()
    wait_for("end of the trace by its logger", lambda: is_whole(info("killed.xht")))
    check_counting("killed.xht")
    recorder = recording("killed2.xht", "-p", target.pid)
    wait_until_recorded("killed2.xht")
    logger = subprocess.run(["pgrep", "-P", str(recorder.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
    os.kill(int(logger[0]), signal.SIGKILL)
    recorder.wait(LONG_SECONDS)
    ticks = processor_ticks(target.pid)
    wait_for("work of the target without its logger", lambda: processor_ticks(target.pid) > ticks + 10)
    target.end()
    subprocess.run([XHEAP, "recover", "killed2.xht"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def refused():
    """What cannot be attached to is told, and unharmed."""
    # A filter that would end the process for a call that is needed; as an ordinary user, any filter.
    for call in (257, 53, 47):
        target = Target("seccomp", 1, call)
        expect("seccomp" in record("no.xht", "-p", target.pid, status=2), "seccomp is not told")
        target.end()
    # To find that out the threads are stopped in calls that the kernel would resume by one that ends them.
    target = Target("shut", 14)
    for _ in range(3):
        expect("seccomp filter that" in record("no.xht", "-p", target.pid, status=2), "seccomp is not told")
    target.end()
    target = Target("idle")
    tracer = subprocess.Popen(["gdb", "-q", "-batch", "-ex", "shell read line", "-p", str(target.pid)], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if shutil.which("gdb") else None
    if tracer:
        status = pathlib.Path(f"/proc/{target.pid}/status")
        wait_for("gdb that traces", lambda: "TracerPid:\t0\n" not in status.read_text())
        said = record("no.xht", "-p", target.pid, status=2)
        expect("traced by" in said, said)
        tracer.communicate(b"\n", timeout=LONG_SECONDS)
    target.end()
    for words, what in ((("-p", "x"), "not a process's number"), (("-p", "1", "ls"), "not both"), (("--duration", "1s", "ls"), "goes with --pid"),
                        (("-p", "1,"), "not a process's number"), (("-p", "1", "--duration", "soon"), "not a time")):
        said = record("no.xht", *words, status=2)
        expect(what in said, said)
    expect(not os.path.exists("no.xht"), "a trace of nothing is left")


def mappings(target):
    """All but heaps, which grow by themselves."""
    return [line.split()[0] for line in pathlib.Path(f"/proc/{target.pid}/maps").read_text().splitlines() if "/" in line or " r-xp " in line or " r--p " in line]


def stripped():
    """A static program without symbols is found to have no allocator only when it has been looked into: nothing of that stays."""
    program = os.path.abspath("stripped")
    subprocess.run(["strip", "-o", program, os.path.join(PROGRAMS, "attached_static")], check=True)
    target = Target("count", 4, program=program)
    before = mappings(target)
    for _ in range(3):
        said = record("no.xht", "-p", target.pid, status=2)
        expect("no allocator that can be hooked" in said, f"it is not told why: {said}")
    expect(mappings(target) == before, f"mapped before: {before}, after: {mappings(target)}")
    target.end()


def static():
    """What a static program was given to unwind by goes with the rest."""
    target = Target("count", 4, program=os.path.join(PROGRAMS, "attached_static"))
    before = mappings(target)
    for _ in range(3):
        record("static.xht", "-p", target.pid, "--duration", "100ms")
        expect(check_counting("static.xht")[1] == 4, "not all threads were recorded")
    expect(len(mappings(target)) == len(before), f"mapped before: {before}, after: {mappings(target)}")
    target.end()


def narrow():
    """Programs for other modes of the processor are told by their names, also where a traced process starts them; none is harmed."""
    said = []
    for name, what in (("narrow_32", "a 32-bit program"), ("narrow_x32", "an x32 program")):
        program = os.path.join(PROGRAMS, name)
        if not os.path.exists(program):
            said.append(f"{name} cannot be built here")
            continue
        expect(what in record("no.xht", program, status=2), f"record {name}: not told why")
        try:
            target = Target(program=program, reads=False)
        except OSError as error:
            said.append(f"{name}: {error.strerror}")
            continue
        expect(what in record("no.xht", "-p", target.pid, status=2), f"{name}: not told why")
        target.end()
        shell = Target("-c", f"read line; '{program}' </dev/null || exit 1; '{PROGRAM}' count 1 1 </dev/null; read line; exit 0", program="/bin/sh")
        recorder = subprocess.Popen([XHEAP, "record", "-o", "narrow.xht", "-p", str(shell.pid)], stderr=subprocess.PIPE, text=True)
        while "blocks from before" not in (line := recorder.stderr.readline()):
            expect(line, "record failed")
        shell.process.stdin.write("go\n")
        shell.process.stdin.flush()
        shell.end()
        told = recorder.communicate(timeout=LONG_SECONDS)[1]
        expect(recorder.returncode == 0 and "runs untraced" in told and what in told, told)
    return "; ".join(said)


def mixed():
    """A thread that is in 32-bit code makes no calls for us, which would mean something else there."""
    if not os.path.exists(os.path.join(PROGRAMS, "mixed")):
        return "cannot be built here"
    for _ in range(2):
        target = Target(program=os.path.join(PROGRAMS, "mixed"))
        record("mixed.xht", "-p", target.pid, "--duration", "100ms")
        expect(dump("mixed.xht"), "nothing was recorded")
        # Nobody knows how much of its 64-bit stack is in use, so our code may stay there. Then there is no second one.
        again = subprocess.run([XHEAP, "record", "-o", "mixed.xht", "-p", str(target.pid), "--duration", "100ms"], stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
        expect(again.returncode == 0 or "in the inactive code of an earlier recording" in again.stderr, again.stderr)
        mapped = regions(target.pid)
        expect(len(mapped) <= 1, f"{len(mapped)} regions are mapped")
        target.end()
    target = Target("alone", program=os.path.join(PROGRAMS, "mixed"), reads=False)
    run = subprocess.run([XHEAP, "record", "-o", "alone.xht", "-p", str(target.pid), "--duration", "100ms"], stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
    expect(run.returncode == 0 or "in 64-bit code" in run.stderr, run.stderr)
    target.end()


def in_vfork():
    """Who waits for the child of a vfork stops for nobody: that is said, and the process is left as it was."""
    target = Target("vfork", 0)
    target.process.stdin.write("x")
    target.process.stdin.flush()
    wait_for("the child", lambda: pathlib.Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text())
    said = record("vfork.xht", "-p", target.pid, "--duration", "100ms", status=2)
    expect(f"thread {target.pid} of process {target.pid} did not stop within a second (state D: in vfork, or in an uninterruptible call)" in said, said)
    target.process.stdin.write("x")
    target.process.stdin.flush()
    wait_for("the child's end", lambda: not pathlib.Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text())
    record("vfork.xht", "-p", target.pid, "--duration", "100ms")
    target.end()


def passed():
    """A region that the target may not open itself is handed over by any of its threads: here the first makes no calls."""
    program = os.path.join(PROGRAMS, "mixed")
    if os.geteuid() != 0 or not os.path.exists(program):
        return "not root" if os.geteuid() else "cannot be built here"
    user = pwd.getpwnam("nobody")
    folder = tempfile.mkdtemp(dir="/tmp", prefix="xheap-nobody.")
    os.chmod(folder, 0o755)
    shutil.copy(program, folder)
    for _ in range(3):
        target = Target(program=os.path.join(folder, "mixed"), user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        record("passed.xht", "-p", target.pid, "--duration", "100ms")
        expect(dump("passed.xht"), "nothing was recorded")
        target.end()
    shutil.rmtree(folder)


def filtered():
    """A seccomp filter that allows what is needed, as those of containers do, is no hindrance to root."""
    if os.geteuid() != 0:
        return "not root: filters cannot be read"
    target = Target("seccomp", 4, 101)
    for _ in range(5):
        record("filtered.xht", "-p", target.pid, "--duration", "100ms")
        expect(check_counting("filtered.xht")[1] == 4, "not all threads were recorded")
    target.end()


def sandboxed():
    """Threads with filters that xheap's calls would violate are recorded without such calls."""
    target = Target("sandboxed", 6)
    for _ in range(3):
        record("sandboxed.xht", "-p", target.pid, "--duration", "100ms")
        expect(check_counting("sandboxed.xht")[1] == 6, "not all threads were recorded")
    target.end()


def tightening():
    """So are threads that get such a filter later, all at once, and one that begins with it."""
    target = Target("tightening", 3)
    recorder = recording("tightening.xht", "-p", target.pid)
    wait_until_recorded("tightening.xht")
    target.process.stdin.write("x")
    target.process.stdin.flush()
    wait_for("another thread", lambda: len(os.listdir(f"/proc/{target.pid}/task")) == 5)
    wait_until_recorded("tightening.xht", info("tightening.xht")["event_count"] + 5000)
    target.end()
    expect(recorder.wait(LONG_SECONDS) == 0, "record failed")
    # The first thread prints.
    expect(check_counting("tightening.xht")[1] >= 4 and info("tightening.xht")["missing_calls"] == 0, "calls are missing")


def has_dispatch():
    """Whether the kernel has syscall user dispatch: it can be switched off."""
    return ctypes.CDLL(None).prctl(SET_USER_DISPATCH, 0, 0, 0, 0) == 0


def hide_dispatch():
    """From now on this process gets the answer of a kernel before 6.4: ptrace does not know the request."""
    rows = ((0x20, 0, 0, 0), (0x15, 0, 3, PTRACE), (0x20, 0, 0, 16), (0x15, 0, 1, 0x4211), (0x06, 0, 0, 0x50000 | errno.EIO), (0x06, 0, 0, 0x7fff0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        raise OSError("no seccomp filter")


def dispatched():
    """Threads that send themselves a signal for each system call of others get none. Where no thread may make calls, nothing is recorded."""
    if not has_dispatch():
        return "the kernel has no syscall user dispatch"
    for more in ({}, {"preexec_fn": hide_dispatch}):
        target = Target("dispatched", 6)
        for _ in range(3):
            record("dispatched.xht", "-p", target.pid, "--duration", "100ms", **more)
            expect(check_counting("dispatched.xht")[1] == 6, "not all threads were recorded")
        target.end()
        target = Target("dispatching", 1)
        expect("gets SIGSYS" in record("no.xht", "-p", target.pid, "--duration", "1ms", status=2, **more), "the dispatch is not told")
        target.end()


def dispatching():
    """Such a program is recorded from its start, and goes on without a session. No thread of it can unmap what the session had mapped: that is said."""
    if not has_dispatch():
        return "the kernel has no syscall user dispatch"
    stop_session("dispatching")
    xheap("start", "dispatching", "-o", "dispatching.xht")
    command = subprocess.Popen([XHEAP, "launch", "dispatching", "--", PROGRAM, "dispatching", "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_until_recorded("dispatching.xht")
    said = xheap("stop", "dispatching")
    expect("stay mapped" in said and "64-bit" not in said, said)
    out, _ = command.communicate("", timeout=LONG_SECONDS)
    expect(command.returncode == 0, f"status {command.returncode}: {out}")
    expect(check_counting("dispatching.xht")[1] >= 2, "not all threads were recorded")


def as_somebody():
    """An ordinary user attaches to their own processes, not to others'."""
    if os.geteuid() != 0:
        return "not root: the rest of the test was as an ordinary user"
    user = pwd.getpwnam("nobody")
    folder = tempfile.mkdtemp(dir="/tmp", prefix="xheap-nobody.")
    shutil.copy(PROGRAM, folder)
    shutil.copy(XHEAP, os.path.join(folder, "xheap"))
    os.chown(folder, user.pw_uid, user.pw_gid)
    os.chmod(folder, 0o755)
    more = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": folder, "env": dict(os.environ, XHEAP_RUNTIME_DIR="")}
    others, own = Target("count"), Target("count", program=os.path.join(folder, "attached"), **more)
    command = [os.path.join(folder, "xheap"), "record", "-o", "own.xht", "--duration", "300ms", "-p"]
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    allowed = not scope.exists() or scope.read_text().strip() == "0"
    run = subprocess.run([*command, str(own.pid)], stderr=subprocess.PIPE, text=True, **more)
    expect(run.returncode == (0 if allowed else 2), f"own: {run.stderr}")
    expect(allowed or "ptrace_scope" in run.stderr, run.stderr)
    run = subprocess.run([*command, str(others.pid)], stderr=subprocess.PIPE, text=True, **more)
    expect(run.returncode == 2 and "may not be traced" in run.stderr, f"another's: {run.returncode} {run.stderr}")
    others.end()
    own.end()
    if allowed:
        shutil.copy(os.path.join(folder, "own.xht"), "own.xht")
        expect(check_counting("own.xht")[0] > 100, "nothing was recorded")
    # Filters cannot be read: threads that have one make no call, and there must be another one.
    for words, status, said in ((("sandboxed", 4), 0, "attached"), (("seccomp", 1, 101), 2, "seccomp")):
        target = Target(*words, program=os.path.join(folder, "attached"), **more)
        run = subprocess.run([*command, str(target.pid)], stderr=subprocess.PIPE, text=True, **more)
        expect(not allowed or (run.returncode == status and said in run.stderr), f"{words}: {run.returncode} {run.stderr}")
        target.end()
    shutil.rmtree(folder)


sys.exit(run_tests(counting, adjacent, blocked, children, loading, stopped, several, ending, ends, killed, refused, stripped, static, narrow, mixed, in_vfork, passed, filtered, sandboxed,
                   tightening, dispatched, dispatching, as_somebody))
