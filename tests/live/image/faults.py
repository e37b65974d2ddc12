#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options when something breaks: programs start in any case, and each start is traced, or counted, or falls into a listed time without a watcher."""
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

from image.lab import FILES, SOAK_KILLS, TRACES, Watching, clear, enter, listed, prepare, processes, register, run, wait_for_starts, wait_until_in_force
from live import XHEAP, expect, run_tests, told, wait_for, xheap

PERL, KILLS = FILES / "perl", SOAK_KILLS or 100
SHORT = [PERL, "-e", "1"]
REMARKED_STARTS = 400


def start(**more):
    done = run(*SHORT, **more)
    expect(done.returncode == 0 and not done.stderr, f"a program did not start: {done}")


def watcher():
    return wait_for("a watcher", lambda: (state := listed()[0])["in_force"] and state["watcher"])


def kill(pid):
    """Whether it was there: the state that is read may be older."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def is_traced():
    """Whether a start has been traced: after another one, since a logger may not be ready for the first."""
    start()
    return listed()[1][str(PERL)]["traced"]


def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])


def processes_named(name, session=None):
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text() == name + "\n" and (session is None or str(TRACES) in os.popen(f"ls -l /proc/{path.parent.name}/fd").read()):
                yield int(path.parent.name)
        except OSError:
            pass


def own_logger():
    """The logger of the image's own session: it has a trace of this test open."""
    return wait_for("the image's logger", lambda: next(processes_named("xheap-logger", True), 0))


def in_a_gap(intervals, begin, end):
    return any(gap["from_ns"] <= end and begin <= (gap["to_ns"] or 1 << 62) for gap in intervals)


class Storm:
    """Starts, one after the other, in threads, until the block ends. Each leaves its pid and its time."""

    def __enter__(self):
        self.is_over, self.starts, self.failures = False, [], []
        self.threads = [threading.Thread(target=self.go_on) for _ in range(2)]
        for thread in self.threads:
            thread.start()
        return self

    def go_on(self):
        while not self.is_over:
            begin = time.time_ns()
            process = subprocess.Popen(SHORT, stderr=subprocess.PIPE)
            said = process.stderr.read()
            process.stderr.close()
            if process.wait() or said:
                self.failures.append((process.returncode, said))
            self.starts.append((process.pid, begin, time.time_ns()))

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def killed():
    """A watcher that is killed again and again under a storm of starts."""
    clear()
    register("perl")
    chance, intervals = random.Random(17), {}

    def note_intervals():
        """The list has the last 128. The newest one may have no end yet."""
        state = listed()[0]
        intervals.update((gap["from_ns"], gap) for gap in state["intervals"])
        return state
    with Watching():
        wait_until_in_force()
        with Storm() as storm:
            last = 0
            for number in range(KILLS):
                if number % 50 == 49:
                    note_intervals()
                # An ended process can be killed, too, and the state that is read may be older.
                last = wait_for("another watcher", lambda: (pid := watcher()) != last and kill(pid) and pid)
                time.sleep(chance.random() / 50)
        expect(not storm.failures, f"programs failed: {storm.failures[:3]}")
        wait_for("another watcher", lambda: watcher() != last)
        _, rows = wait_for("all counts", lambda: settled())
        state = note_intervals()
    traced = {int(row["pid"]) for trace in TRACES.glob("*.xht") for row in processes(trace)}
    counted = sum(count for outcome, count in rows["perl"]["starts"].items() if outcome != "traced")
    missing = [one for one in storm.starts if one[0] not in traced and not in_a_gap(intervals.values(), one[1], one[2])]
    said = open("watch.err").read()
    begun, stuck = said.count("another watcher has begun"), said.count("it gave no sign of life")
    # A watcher that its guardian takes for stuck, on a busy machine, may be gone already when it is killed here, or had no marks yet.
    expect(KILLS - stuck <= state["interval_count"] <= begun <= KILLS + stuck, f"{state['interval_count']} intervals after {KILLS} kills, {begun} others have begun, {stuck} were stuck")
    expect(len(missing) <= counted, f"{len(missing)} of {len(storm.starts)} starts are neither traced nor counted ({counted}): {missing[:3]}")
    expect(traced, "no start was traced")
    return f"{len(storm.starts)} starts, {len(traced)} traced, {KILLS} kills"


def unseen():
    """Starts between a watcher's end and the next one's signs of life fall into the interval, however late the keeper hears of both."""
    clear()
    register(PERL)
    with Watching():
        pid, keeper = watcher(), listed()[0]["keeper"]
        guardian_pid = parent(pid)
        os.kill(keeper, signal.SIGSTOP)
        try:
            os.kill(pid, signal.SIGKILL)
            begin = time.time_ns()
            start()
            end = time.time_ns()
            wait_for("another watcher", lambda: any(one != pid and parent(one) == guardian_pid for one in processes_named("xheap-watcher")))
            time.sleep(0.2)  # the new one's signs of life
        finally:
            os.kill(keeper, signal.SIGCONT)
        wait_for("another watcher", lambda: watcher() != pid)
        state, rows = listed()
    expect(not rows[str(PERL)]["traced"] and in_a_gap(state["intervals"], begin, end), f"{begin} to {end} is not in {state['intervals']}")


def marked_anew():
    """The keeper sets all marks anew, again and again, under a storm of starts: none is missed between the old marks and the new ones."""
    clear()
    register("perl")
    with Watching():
        wait_until_in_force()
        keeper = listed()[0]["keeper"]
        with Storm() as storm:
            while len(storm.starts) < REMARKED_STARTS:
                os.kill(keeper, signal.SIGHUP)
                time.sleep(0.02)
        expect(not storm.failures, f"programs failed: {storm.failures[:3]}")
        state, rows = wait_for("all counts", lambda: settled())
    # A watcher that is late on a busy machine is killed by its guardian.
    counted, watched = sum(rows["perl"]["starts"].values()), [one for one in storm.starts if not in_a_gap(state["intervals"], one[1], one[2])]
    expect(counted >= len(watched), f"{len(storm.starts)} starts, {len(watched)} of them beside a watcher, {counted} counted: {rows['perl']['starts']}")
    return f"{len(storm.starts)} starts, {len(watched)} of them beside a watcher, {counted} counted"


def settled():
    before = listed()
    time.sleep(0.2)
    after = listed()
    return before == after and after


def stopped():
    """A watcher that is stopped is killed by its guardian, and the start goes on."""
    clear()
    register(PERL)
    with Watching():
        for _ in range(3):
            pid = watcher()
            os.kill(pid, signal.SIGSTOP)
            start()
            wait_for("another watcher", lambda: watcher() != pid)
        wait_for("a traced start", is_traced)
        state, _ = listed()
        expect(sum(gap["why"] == "it gave no sign of life" for gap in state["intervals"]) == 3, f"{state['intervals']}")


def guardian():
    """A guardian that is killed takes its watcher along; the keeper starts both again."""
    clear()
    register(PERL)
    with Watching():
        pid = watcher()
        os.kill(parent(pid), signal.SIGKILL)
        start()
        wait_for("another watcher", lambda: watcher() != pid)
        wait_for("a traced start", is_traced)


def descriptors():
    """A watcher without free descriptors denies nothing."""
    clear()
    register(PERL)
    with Watching():
        pid = watcher()
        # Numbers below that are in use, and gaps above it do not count.
        expect({"0", "1", "2"} <= set(os.listdir(f"/proc/{pid}/fd")), "the watcher lacks a standard descriptor")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))
        for _ in range(5):
            start()
        wait_for("another watcher", lambda: watcher() != pid)
        wait_for("a traced start", is_traced)


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


enter()
prepare()
sys.exit(run_tests(killed, marked_anew, unseen, stopped, guardian, descriptors, logger, full, debugged))
