#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A long recording whose folding gets a processor for some milliseconds now and then: it takes many times the wait limit, but it gets on, and so nothing is
lost; and what the recording takes meanwhile stays within the bounds that `query` tells."""
import os
import pathlib
import signal
import subprocess
import time

from live import Failure, PROGRAMS, XHEAP, expect, info, run_tests, stop_session, strace_is_here, told, wait_for, xheap

NAME, WINDOW, BUFFERS, FEW_BUFFERS, BUFFER_BYTES, EARLIER = f"slow{os.getpid()}", 1 << 20, 32, 8, 1 << 16, 60000
ROUNDS, CYCLES, STOPPED_SECONDS, RUN_SECONDS, FOLDS = 700000, 6, 0.3, 0.004, 3


def folding(directory):
    """The process that folds the pieces in this directory, or None."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if len(words) > 2 and words[1] == b"--fold" and words[2].startswith(os.fsencode(directory)):
            return int(path.parent.name)
    return None


def sizes(directory, logger):
    """Bytes that the pieces take, and of the logger's memory."""
    total = 0
    for path in directory.glob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            pass
    status = pathlib.Path(f"/proc/{logger}/status").read_text()
    return total, int(status.split("VmRSS:")[1].split()[0]) << 10


class Watch:
    """What the session takes, and the most that it says it may take; it cannot be asked while it waits for folding."""

    def __init__(self, directory):
        self.directory, self.state = directory, told("query", NAME)
        self.disk = self.memory = self.folded = self.looks = 0

    def look(self):
        disk, memory = sizes(self.directory, self.state["logger_pid"])
        self.disk, self.memory, self.looks = max(self.disk, disk), max(self.memory, memory), self.looks + 1

    def ask(self):
        self.look()
        self.state = told("query", NAME)
        self.folded = max(self.folded, self.state.get("folded_bytes", 0))
        self.check()

    def check(self):
        state = self.state
        expect(self.disk <= state["disk_limit_bytes"], f"{self.disk} bytes of pieces, more than {state['disk_limit_bytes']}")
        expect(state["disk_bytes"] <= state["disk_limit_bytes"] and state["logger_bytes"] <= state["logger_limit_bytes"], f"{state}")
        expect(self.memory <= state["logger_limit_bytes"], f"the logger has {self.memory} bytes, more than {state['logger_limit_bytes']}")


def throttle(pid, watch):
    """How long it was kept from running, if it did not end before."""
    began = time.monotonic()
    try:
        for _ in range(CYCLES):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(STOPPED_SECONDS)
            watch.look()
            os.kill(pid, signal.SIGCONT)
            time.sleep(RUN_SECONDS)
    except ProcessLookupError:
        return 0
    return time.monotonic() - began


def slowly():
    """Nothing is lost, and disk and memory stay within the bounds that are told: programs wait, and that is counted."""
    trace = pathlib.Path("slow.xht").absolute()
    seconds, directory = [], pathlib.Path(f"{trace}.pieces")
    xheap("start", NAME, "-o", trace, "--keep", "live", "--max-file", WINDOW, "--flush-timer", "50ms", "--wait-limit", "1s", "--max-buffers", BUFFERS)
    try:
        with subprocess.Popen([XHEAP, "launch", NAME, "--", f"{PROGRAMS}/ends_early", str(ROUNDS)]) as run:
            wait_for("a target", lambda: told("query", NAME)["targets"])
            watch = Watch(directory)
            said = xheap("query", NAME)
            expect("programs wait when folding is late" in said and "  limits  disk " in said, said)
            while run.poll() is None:
                watch.look()
                pid = folding(str(directory)) if len(seconds) < FOLDS else None
                if pid:
                    seconds.append(throttle(pid, watch))
                time.sleep(0.01)
        expect(run.returncode == 0, f"status {run.returncode}")
        watch.ask()
    finally:
        stop_session(NAME)
    facts = info(trace)
    expect(max(seconds, default=0) > 1, f"no folding took longer than the wait limit: {seconds}")
    expect(facts["lost_events"] == 0 and facts["complete"], f"{facts['lost_events']} lost, {facts['gaps'][:3]}")
    expect(watch.state["waits"] > 0 and watch.state["dropped_events"] == 0, f"{watch.state}")
    # Twice the window, a piece, what waited in buffers, and thrice what is folded and is being folded: much less than all that was recorded.
    expect(watch.looks > 10 and watch.disk > WINDOW, f"{watch.looks} looks, at most {watch.disk} bytes: no test")
    return (f"folding took {max(seconds):.1f} s; pieces had at most {watch.disk >> 10} KiB of {watch.state['disk_limit_bytes'] >> 10}, the logger "
            f"{watch.memory >> 10} KiB of {watch.state['logger_limit_bytes'] >> 10}; {watch.state['waits']} waits")


MANY_BLOCKS = f"import sys; blocks = [bytes(60 + i % 90) for i in range({EARLIER})]; print(flush=True); sys.stdin.read()"


def pieces_bytes(directory):
    total = 0
    for path in directory.glob("piece.*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            pass
    return total


def attaching():
    """While a process is attached to, slowly, and its blocks from before are read, nothing may be folded: then another one waits that calls all the time,
    and the window stays what it is."""
    if not strace_is_here():
        return "not tried: no strace, or it may not trace"
    trace = pathlib.Path("attaching.xht").absolute()
    xheap("start", NAME, "-o", trace, "--keep", "live", "--max-file", WINDOW, "--flush-timer", "50ms", "--wait-limit", "1s", "--max-buffers", FEW_BUFFERS)
    large = subprocess.Popen(["/usr/bin/python3", "-c", MANY_BLOCKS], env=dict(os.environ, PYTHONMALLOC="malloc"), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    directory, most, names = pathlib.Path(f"{trace}.pieces"), 0, set()
    try:
        large.stdout.readline()
        with subprocess.Popen([XHEAP, "launch", NAME, "--", f"{PROGRAMS}/dense", str(1 << 40), "free"]) as run:
            try:
                wait_for("folding", lambda: told("query", NAME).get("folded_bytes"))
                slow = ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(told("query", NAME)["logger_pid"]), "-P", f"/proc/{large.pid}/mem", "-e", "trace=pread64",
                        "-e", "inject=pread64:delay_enter=30000"]
                with subprocess.Popen(slow, stderr=subprocess.DEVNULL) as strace, subprocess.Popen([XHEAP, "update", NAME, "--add-pid", str(large.pid)], stderr=subprocess.DEVNULL) as update:
                    # Until folding goes on: what was begun before the attach may end meanwhile.
                    def is_folded_again():
                        nonlocal most, names
                        names |= {path.name for path in directory.glob("folded.*")} if update.poll() is not None else set()
                        most = max(most, pieces_bytes(directory))
                        return len(names) >= 3
                    try:
                        wait_for("three foldings after the attach", is_folded_again, 60)
                    except Failure as failure:
                        raise Failure(f"{failure}: {names}, update {update.poll()}, the program {run.poll()}: {told('query', NAME)}")
                    finally:
                        strace.kill()  # when it is asked to end while the logger makes a process, it waits for that one without end
                        update.terminate()
                state = told("query", NAME)
                expect(state["lost_events"] == 0 and state["dropped_events"] == 0 and state["waits"] > 0, f"{state}")
            finally:
                for pid in pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
    finally:
        large.kill()
        large.communicate()
        stop_session(NAME)
    facts = info(trace)
    expect(facts["lost_events"] == 0 and facts["events"]["earlier"] >= EARLIER, f"{facts['lost_events']} lost, {facts['events']}")
    bound = 2 * WINDOW + WINDOW // 8 + 2 * FEW_BUFFERS * BUFFER_BYTES + EARLIER * 16
    expect(most <= bound, f"{most} bytes of pieces while a process was attached to, more than {bound}")
    return f"pieces had at most {most >> 10} KiB of {bound >> 10}"


if __name__ == "__main__":
    raise SystemExit(run_tests(slowly, attaching))
