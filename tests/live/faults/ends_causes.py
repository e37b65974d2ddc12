#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What ends a recording early, made to happen: a write error once and for good, a full quota, a limit of the logger's; and what does not end it: a logger
that is stopped, or gets hardly any processor. Every call is in the trace or in a number of it, and reports say when and why. (ends_early.py fills files
and disks.)"""
import os
import pathlib
import resource
import signal
import subprocess
import time

from faults.ends_early import PROGRAM, calls_of_all, check
from live import PATIENCE, XHEAP, expect, info, run_tests, stop_session, strace_is_here, told, wait_for, xheap

ROUNDS, NAME = 30000, f"causes{os.getpid()}"
LAUNCH = [XHEAP, "launch", NAME, "--", PROGRAM, str(ROUNDS)]


class Session:
    """A session whose logger something is done to."""

    def __init__(self, trace, *options):
        self.trace = pathlib.Path(trace).absolute()
        xheap("start", NAME, "-o", self.trace, *options)
        self.logger = told("query", NAME)["logger_pid"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop_session(NAME)


class Faults:
    """Calls of the logger's main thread that have to do with the trace fail as they are told to: strace's words for it."""

    def __init__(self, session, *injections):
        calls = ",".join(sorted({injection.partition(":")[0] for injection in injections}))
        words = [word for injection in injections for word in ("-e", f"inject={injection}")]
        self.process = subprocess.Popen(["strace", "-qq", "-o", "strace.out", "-p", str(session.logger), "-P", session.trace, "-e", f"trace={calls}", *words],
                                        stderr=subprocess.PIPE, text=True)
        wait_for("strace", lambda: self.process.poll() is not None or tracer(session.logger) == self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()


def tracer(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("TracerPid:")[1].split()[0])


def failed(trace, reason, *injections):
    """The file has its end."""
    with Session(trace) as session, Faults(session, *injections):
        subprocess.run(LAUNCH, check=True)
        said = xheap("stop", NAME, status=2)
    expect(said.count(reason) == 1, f"stop does not say once why: {said}")
    return check(trace, calls_of_all(ROUNDS), reason, said)


def write_error():
    if not strace_is_here():
        return "not tried: no strace, or it may not trace"
    failed("error.xht", "Input/output error", "pwrite64:error=EIO:when=3")
    return None


def quota():
    if not strace_is_here():
        return "not tried: no strace, or it may not trace"
    failed("quota.xht", "Disk quota exceeded", "fallocate:error=EDQUOT:when=2+", "pwrite64:error=EDQUOT:when=3")
    return None


def write_error_for_good():
    """The file has no end, but what is known of it is not gone."""
    if not strace_is_here():
        return "not tried: no strace, or it may not trace"
    with Session("gone.xht") as session, Faults(session, "pwrite64:error=EIO:when=3+"):
        subprocess.run(LAUNCH, check=True)
        said = xheap("stop", NAME, status=2)
    expect("Input/output error" in said and "xheap recover -o FILE gone.xht" in said, said)
    expect(not info("gone.xht")["complete"] and "cut" in xheap("heap", "gone.xht", "-totals").splitlines()[1], "a file without its end")
    said = xheap("recover", "-o", "made.xht", "gone.xht")
    check("made.xht", calls_of_all(ROUNDS), "Input/output error", said)
    return None


def limit():
    """RLIMIT_FSIZE of the logger, once its shared memory is made. The file's end may find its place, or not even that."""
    with Session("limit.xht", "--flush-timer", "50ms") as session:
        with subprocess.Popen([*LAUNCH[:-1], str(ROUNDS * 8)]) as program:
            size = 20000 + wait_for("a trace that grows", lambda: (size := session.trace.stat().st_size) > 4000 and size)
            resource.prlimit(session.logger, resource.RLIMIT_FSIZE, (size, size))
            program.wait()
        said = xheap("stop", NAME, status=2)
    expect(f"File too large; the limit RLIMIT_FSIZE (ulimit -f) is {size} bytes" in said, said)
    made = xheap("recover", "-o", "limited.xht", "limit.xht") if "recover" in said else said
    check("limited.xht" if "recover" in said else "limit.xht", calls_of_all(ROUNDS * 8), "File too large", made)


def check_gaps(trace, rounds, must_lose):
    """Calls that were lost are gaps with their times, and reports say why; there is no early end."""
    facts = info(trace)
    expected, lost = calls_of_all(rounds), facts["lost_events"]
    expect("ended_early" not in facts, f"{trace}: {facts.get('ended_early')}")
    # Nobody waits for ever for a logger without a processor: what ran before it had looked at its code is told.
    is_late = not must_lose and "unhooked" in facts
    told_count = facts["event_count"] + lost
    expect(told_count < expected if is_late else told_count == expected, f"{trace}: {facts['event_count']} + {lost} lost, not {expected}")
    expect(lost or not must_lose, f"{trace}: nothing was lost, so nothing was tried")
    expect(facts["complete"] == (lost == 0 and not is_late), f"{trace}: complete {facts['complete']}, {lost} lost")
    summed = sum(count for gap in facts["gaps"] for count in gap["events"].values())
    expect(summed == lost and all(gap["from_us"] <= gap["to_us"] for gap in facts["gaps"]), f"{trace}: {lost} lost, {facts['gaps'][:3]}")
    for words in (["info", trace], ["heap", trace, "-totals"], ["heap", trace, "-stacks"]):
        lines = xheap(*words).splitlines()[:6]
        expect(not lost or any("no buffer was free for longer than --wait-limit, 300 ms" in line for line in lines), f"{words}: {lines}")
        expect(not lost or any("    gap in process" in line and " from " in line for line in lines), f"{words}: {lines}")
    return f"{lost} of {expected} lost"


SMALL = ["--buffer-size", "64K", "--min-buffers", "2", "--max-buffers", "2", "--wait-limit", "300ms"]


def stopped():
    """Until the program has made all of its calls. A program that had made them before its logger was stopped makes more of them."""
    for rounds in (ROUNDS, 10 * ROUNDS, 100 * ROUNDS):
        record_with_stopped_logger(rounds)
        if info("stopped.xht")["lost_events"]:
            break
    return check_gaps("stopped.xht", rounds, True)


def record_with_stopped_logger(rounds):
    pathlib.Path("stopped.xht").unlink(missing_ok=True)
    with Session("stopped.xht", *SMALL) as session, subprocess.Popen([*LAUNCH[:-1], str(rounds)]) as program:
        wait_for("events", lambda: told("query", NAME)["events"] > 1000)
        os.kill(session.logger, signal.SIGSTOP)
        # The program's child ends, its last one.
        try:
            until = time.monotonic() + 20 * PATIENCE
            while children(program.pid) and not has_given_up(program.pid) and time.monotonic() < until:
                time.sleep(0.05)
        finally:
            os.kill(session.logger, signal.SIGCONT)
        program.wait()
        xheap("stop", NAME)


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def has_given_up(pid):
    """Whether the program, which has made all calls of its threads, has one thread."""
    return any(len(os.listdir(f"/proc/{child}/task")) == 1 for child in children(pid) if os.path.isdir(f"/proc/{child}/task"))


def starved():
    """It gets a processor when nobody else wants one, beside busy processes on that one."""
    processor = min(os.sched_getaffinity(0))
    with Session("starved.xht", *SMALL) as session:
        os.sched_setaffinity(session.logger, {processor})
        os.sched_setscheduler(session.logger, os.SCHED_IDLE, os.sched_param(0))
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=lambda: os.sched_setaffinity(0, {processor})) for _ in range(4)]
        try:
            subprocess.run(LAUNCH, check=True)
        finally:
            for process in busy:
                process.kill()
                process.wait()
        xheap("stop", NAME)
    return check_gaps("starved.xht", ROUNDS, False)


if __name__ == "__main__":
    raise SystemExit(run_tests(write_error, quota, write_error_for_good, limit, stopped, starved))
