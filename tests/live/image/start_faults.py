#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options when a start cannot be recorded: loggers that are stopped or killed at each of their steps, no room for traces, no memory, programs that are traced
already or of another architecture. Programs start in any case, and each start is traced, or counted with its reason."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

from image.lab import (FILES, PERL, SHORT, TRACES, Watching, clear, enter, listed, prepare, processes_named, register, row_of, run, start, state_in_force,
                       wait_for_starts, wait_until_traced, watcher)
from live import PROGRAMS, expect, run_tests, strace_is_here, told, wait_for, xheap

CLOCK_NANOSLEEP = "230 "    # as /proc has the numbers of system calls of x86-64


def own_logger():
    """The logger of the image's own session: it has a trace of this test open."""
    def has_trace(pid):
        return str(TRACES) in os.popen(f"ls -l /proc/{pid}/fd").read()
    return wait_for("the image's logger", lambda: next(filter(has_trace, processes_named("xheap-logger")), 0))


def logger():
    """A logger that is stopped delays a start by the deadline only; one that is killed is replaced."""
    clear()
    register(PERL)
    with Watching("--deadline", "100"):
        watcher()
        start()
        wait_for_starts(PERL, 1)
        pid = own_logger()
        os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        start()
        took = time.monotonic() - began
        os.kill(pid, signal.SIGCONT)
        row = wait_for_starts(PERL, 2)
        expect(row["untraced"] == 1 and row["starts"]["deadline_exceeded"] == 1, f"{row}")
        os.kill(pid, signal.SIGSTOP)
        waiting = subprocess.Popen(SHORT)
        os.kill(pid, signal.SIGKILL)
        expect(waiting.wait() == 0, "a start failed with its logger")
        wait_for("another session", lambda: not any(one == pid for one in processes_named("xheap-logger")))
        def goes_on():
            start()
            return listed()[1][str(PERL)]["traced"] > 1
        wait_for("a start that is traced by another logger", goes_on)
    return f"{took:.3f} s behind a stopped logger"


def full():
    """Without room for traces programs start, and are counted with the reason."""
    clear()
    TRACES.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "test", TRACES], check=True)
    register(PERL)
    try:
        (TRACES / "filler").write_bytes(bytes(16 << 10))
        with Watching():
            watcher()
            for _ in range(5):
                start()
            row = wait_for_starts(PERL, 5)
            expect(row["traced"] + row["untraced"] == 5, f"{row}")
    finally:
        subprocess.run(["umount", "-l", TRACES], check=True)


def debugged():
    """A program that strace traces already runs untraced, and is named."""
    if not shutil.which("strace"):
        return "skipped: there is no strace"
    clear()
    register(PERL)
    with Watching():
        watcher()
        done = run("strace", "-o", "strace.out", *SHORT)
        expect(done.returncode == 0, f"{done}")
        row = wait_for_starts(PERL, 1)
        expect(row["untraced"] == 1 and "is traced by process" in row["last_reason"], f"{row}")
        expect("exited with 0" in open("strace.out").read(), "strace has missed the end")


def logger_pid(image="perl"):
    """The logger of the image's own session."""
    return wait_for("the image's logger", lambda: next((row["logger_pid"] for row in told("sessions") if row["alive"] and row["name"].rpartition(".")[2].startswith(image)), 0))


def logger_steps():
    """A logger is killed at each call by which it takes a process over, before its answer and after it: the program runs, and the start is counted."""
    if not strace_is_here():
        return "skipped: there is no strace"
    clear()
    register("perl")
    steps = [("ptrace", number) for number in (1, 2, 3, 6)] + [("pwrite64", 1), ("wait4", 1), ("sendto", 1), ("sendto", 2)]
    ended, tried = 0, 0
    with Watching("--deadline", "5000"):
        state_in_force()
        for call, number in steps:
            wait_until_traced("perl")
            logger, before = logger_pid(), row_of("perl")["starts"]
            tracer = subprocess.Popen(["strace", "-f", "-qq", "-p", str(logger), "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"],
                                      stderr=subprocess.PIPE)
            try:
                wait_for("strace", lambda: "TracerPid:\t0" not in open(f"/proc/{logger}/status").read())
                done = run(PERL, "-e", "print 1 + 1; exit 3")
                expect((done.returncode, done.stdout, done.stderr) == (3, "2", ""), f"killed at {call} {number}: the program failed: {done}")
                now = wait_for(f"a count of the start, at {call} {number}", lambda: (now := row_of("perl")["starts"]) != before and now)
                tried += 1
                ended += now["logger_ended"] > before["logger_ended"]
            finally:
                tracer.kill()
                tracer.wait()
                tracer.stderr.close()
    expect(ended >= 2, f"no logger was killed before its report: {ended} of {tried}")
    return f"{tried} steps, {ended} starts counted as untraced"


def is_sleeping(pid):
    return "TracerPid:\t0\n" in open(f"/proc/{pid}/status").read() and open(f"/proc/{pid}/syscall").read().startswith(CLOCK_NANOSLEEP)


def late_stop():
    """A logger that stood still stops a process long after its exec, in a sleep that a filter of the process forbids to resume: the process sleeps on."""
    clear()
    strict = FILES / "strict"
    shutil.copy(os.path.join(PROGRAMS, "strict"), strict)
    register("strict")
    with Watching("--deadline", "100"):
        state_in_force()
        run(strict, "0")
        wait_for_starts("strict", 1)
        logger = wait_for("its logger", lambda: next((row["logger_pid"] for row in told("sessions") if row["name"].endswith(".strict")), None))
        os.kill(logger, signal.SIGSTOP)
        try:
            process = subprocess.Popen([strict, "1000"], stdout=subprocess.PIPE, text=True)
            expect(process.stdout.readline() == "sleeps\n", "it does not begin")
            wait_for("its sleep", lambda: is_sleeping(process.pid))
        finally:
            os.kill(logger, signal.SIGCONT)
        row = wait_for_starts("strict", 2)
        wait_for("its sleep or its end", lambda: process.poll() is not None or is_sleeping(process.pid))
        expect(process.poll() is None, f"it has ended with {process.poll()}")
        process.kill()
        process.wait()
        expect(row["starts"]["deadline_exceeded"] >= 1, f"it was not late: {row}")
        said = xheap("image", "list")
        expect("of deadline exceeded (xheap image watch --deadline MILLISECONDS allows more time)" in said, f"the deadline's option is not named: {said}")


def architectures():
    """A program of another architecture runs, and is named with the reason."""
    clear()
    program = FILES / "small32"
    source = 'void _start(void) { __asm__ volatile("int $0x80" : : "a"(1), "b"(5)); __builtin_unreachable(); }'
    made = subprocess.run(["gcc", "-m32", "-static", "-nostdlib", "-x", "c", "-", "-o", program], input=source, text=True, stderr=subprocess.DEVNULL)
    if made.returncode or subprocess.run([program]).returncode != 5:
        return "skipped: no program of 32 bits can be made and run here"
    register(program)
    with Watching():
        state_in_force()
        expect(run(program).returncode == 5, "the program of 32 bits ended otherwise")
        row = wait_for_starts(program, 1)
    expect(row["starts"]["cannot_be_traced"] == 1 and "a 32-bit program" in row["last_reason"], f"{row}")
    return row["last_reason"]


def memory():
    """A program without room for the recorder, and a logger without memory: programs run, and are counted."""
    clear()
    program = FILES / "tight"
    source = "int main(void) { return 6; }"
    if subprocess.run(["cc", "-static", "-x", "c", "-", "-o", program], input=source, text=True, stderr=subprocess.DEVNULL).returncode:
        return "skipped: no static program can be linked"
    register(program)
    register("perl")
    with Watching("--deadline", "5000"):
        state_in_force()
        done = run("prlimit", "--as=2000000", program)
        expect(done.returncode == 6, f"the program ended otherwise: {done}")
        row = wait_for_starts(program, 1)
        expect(row["traced"] + row["starts"]["cannot_be_traced"] == 1 and (row["traced"] or row["last_reason"]), f"{row}")
        reason = row["last_reason"]
        wait_until_traced("perl")
        logger, before = logger_pid(), sum(row_of("perl")["starts"].values())
        size = int(open(f"/proc/{logger}/statm").read().split()[0]) * resource.getpagesize()
        resource.prlimit(logger, resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
        for _ in range(5):
            start()
        row = wait_for_starts("perl", before + 5)
        resource.prlimit(logger, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        expect(sum(row["starts"].values()) == row["traced"] + row["starts"]["cannot_be_traced"] and row["last_reason"], f"{row}")
        wait_until_traced("perl")
    return f"{reason}; {row['last_reason']}"


enter()
prepare()
sys.exit(run_tests(logger, full, debugged, logger_steps, late_stop, architectures, memory))
