#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A recording with --keep live and a flight recorder, side by side, each of a program that leaks what is known without xheap, beside many more busy
processes than there are processors: nothing is lost, and what is taken stays within the bounds that `query` tells.

usage: long_run.py        SOAK=1: half an hour beside 50 busy processes, in place of some seconds beside a few.
                          LONG_RUN_SECONDS and LONG_RUN_LOOPS: others
"""
import os
import pathlib
import signal
import subprocess
import time

from live import LONG_SECONDS, PROGRAMS, SOAK, XHEAP, expect, info, is_whole, run_tests, stop_session, told, wait_for, xheap

SECONDS = float(os.environ.get("LONG_RUN_SECONDS", 1800 if SOAK else 6))
LOOPS = int(os.environ.get("LONG_RUN_LOOPS", 50 if SOAK else 6))
ASK_SECONDS = 5 if SOAK else 0.5
MIB = 1 << 20
WINDOW = 4 * MIB
LEAKING, THREADS = f"{PROGRAMS}/leaking", 3
FORGETS = ("forget_first", "forget_second", "forget_third")


class Busy:
    """Processes that want all of a processor each. They end with the test, whatever becomes of it, and at the latest some time after it should have."""

    def __enter__(self):
        limit = str(int(2 * SECONDS + LONG_SECONDS))
        self.all = [subprocess.Popen(["timeout", limit, "sh", "-c", "while :; do :; done"]) for _ in range(LOOPS)]
        return self

    def __exit__(self, *_):
        for process in self.all:
            process.terminate()
        for process in self.all:
            process.wait()


class Session:
    """A session and its program, which goes on until its input ends."""

    def __init__(self, name, pause_us, *options):
        self.name, self.trace, self.looks = f"{name}{os.getpid()}", f"{name}.xht", 0
        xheap("start", self.name, "-o", self.trace, "--max-file", WINDOW, *options)
        self.program = subprocess.Popen([XHEAP, "launch", self.name, "--", LEAKING, "0", str(THREADS), str(pause_us)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.kill()
        self.program.communicate()
        stop_session(self.name)

    def look(self):
        """Until now nothing is lost, and no bound is passed."""
        state = told("query", self.name)
        self.looks += 1
        expect(state["lost_events"] == 0, f"{self.name}: {state['lost_events']} lost: {state}")
        expect(state["disk_bytes"] <= state["disk_limit_bytes"], f"{self.name}: {state['disk_bytes']} bytes of {state['disk_limit_bytes']}: {state}")
        expect(state["logger_bytes"] <= state["logger_limit_bytes"], f"{self.name}: {state['logger_bytes']} bytes of {state['logger_limit_bytes']}: {state}")
        return state

    def end(self):
        """How many blocks were leaked, and what was recorded."""
        output = self.program.communicate(timeout=LONG_SECONDS)[0]
        expect(self.program.returncode == 0, f"{self.name}: the program ended with status {self.program.returncode}")
        wait_for("end of the program", lambda: not told("query", self.name)["targets"])
        return int(output.split()[1]), self.look()

    def said(self, state):
        return (f"{state['events']:,} events, {state['waits']} waits of {state['wait_us'] / 1e6:.1f} s, the logger {state['logger_bytes'] >> 10} KiB of "
                f"{state['logger_limit_bytes'] >> 10}")


def check_kept(session, count, state):
    facts = info(session.trace)
    expect(facts["complete"] and not facts["lost_events"] and "dropped" not in facts, f"{facts['lost_events']} lost, dropped {facts.get('dropped')}")
    expect(facts["event_count"] == state["events"], f"{facts['event_count']} events are in the trace, {state['events']} were recorded")
    expect(facts["folded"]["events"] > 0, "nothing was folded")
    answer = told("heap", session.trace, *(word for name in FORGETS for word in ("-requireFrames", f"leaking!{name}")))
    expect(answer["totals"]["outstanding_count"] == count, f"{answer['totals']['outstanding_count']} leaked blocks of {count}")
    expect(not answer["unknown_frees"] and not answer["order_conflicts"], f"{answer['unknown_frees']} unknown frees, {answer['order_conflicts']} conflicts")


def check_flown(session, state):
    facts = info(session.trace)
    expect(is_whole(facts) and not facts["lost_events"] and facts["complete"], f"{facts['lost_events']} lost")
    dropped = facts.get("dropped", {"events": 0})["events"]
    expect(facts["event_count"] + dropped == state["events"], f"{facts['event_count']} events and {dropped} of the past are not {state['events']}")
    expect(dropped > 0 and facts["size_bytes"] <= WINDOW, f"{dropped} events dropped, {facts['size_bytes']} bytes")


def beside():
    with Busy(), Session("kept", 20, "--keep", "live", "--flush-timer", "100ms") as kept, Session("flown", 20, "--file-mode", "flight") as flown:
        until = time.monotonic() + SECONDS
        disk = 0
        # On a slow machine it takes longer until something is folded, and the past dropped.
        while time.monotonic() < until or not kept.look().get("folded_bytes") or not flown.look()["dropped_events"]:
            disk = max(disk, kept.look()["disk_bytes"])
            flown.look()
            time.sleep(ASK_SECONDS)
        count, state = kept.end()
        _, flown_state = flown.end()
        limit = kept.look()["disk_limit_bytes"]
        xheap("stop", kept.name)
        xheap("stop", flown.name)
    check_kept(kept, count, state)
    check_flown(flown, flown_state)
    expect(not pathlib.Path(f"{kept.trace}.pieces").exists(), "pieces are left")
    return (f"beside {LOOPS} busy processes, {kept.looks + flown.looks} looks; --keep live: {kept.said(state)}, pieces at most {disk >> 10} KiB of {limit >> 10}; "
            f"flight: {flown.said(flown_state)}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: exit(1))
    raise SystemExit(run_tests(beside))
