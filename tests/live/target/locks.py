#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads begin while handlers interrupt them, while they are cancelled or killed, while others come before them: the recorder waits for none of them.

usage: locks.py [TEST...]
"""
import os
import subprocess
import sys

from live import PROGRAMS, SOAK, XHEAP, dump, expect, info, run_tests

TRACE, SKIPPED = os.path.abspath("locks.xht"), 77
FACTOR = 50 if SOAK else 1


def record(mode, rounds, may_lose=False):
    """Facts of the trace, and the allocations that the program counted."""
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    run = subprocess.run([XHEAP, "record", "-q", "-o", TRACE, "--", os.path.join(PROGRAMS, "locks"), mode, str(rounds * FACTOR)],
                         stdout=subprocess.PIPE, text=True)
    if run.returncode == SKIPPED:
        return None, 0
    expect(run.returncode == 0, f"locks {mode}: status {run.returncode}")
    facts = info(TRACE)
    expect((may_lose or not facts["lost_events"]) and "untraced_calls" not in facts, f"lost: {facts}")
    return facts, int(run.stdout)


def is_exact(mode, rounds):
    facts, counted = record(mode, rounds)
    if not facts:
        return "skipped: no real-time threads are allowed here"
    allocs = sum(row["action"] == "Alloc" for row in dump(TRACE))
    expect(allocs == counted, f"{allocs} allocations in the trace, {counted} in truth")
    return f"{allocs} allocations"


def handlers_interrupt_threads_that_begin():
    return is_exact("timer", 100)


def real_time_threads_come_before_them():
    return is_exact("fifo", 100)


def threads_are_cancelled():
    """Calls that were under way have no event."""
    record("cancel", 5)


def children_that_share_memory_are_killed():
    """One that is killed between two certain instructions has its parent's thread write a record that makes no sense: the rest of that buffer is lost,
    and counted."""
    facts, _ = record("vfork", 200, may_lose=True)
    expect(facts["event_count"] > 100000 and facts["lost_events"] < 5000, f"lost: {facts}")


sys.exit(run_tests(handlers_interrupt_threads_that_begin, real_time_threads_come_before_them, threads_are_cancelled,
                   children_that_share_memory_are_killed))
