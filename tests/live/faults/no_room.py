#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""More threads, or forked children, at once than there are buffers, slots or rows for: the program goes on as if nobody recorded, and what found no room is told.

usage: no_room.py [TEST...]
"""
import os
import subprocess
import sys

from live import LONG_SECONDS, PROGRAMS, XHEAP, expect, info, run_tests

# Buffers of a process, threads of a region, processes of a region.
BUFFERS, THREADS, PROCESSES = 1024, 8192, 1024
SPARE = 8 # beside those that are asked for
STANDING, TRACE = os.path.join(PROGRAMS, "standing"), os.path.abspath("crowd.xht")


def record(what, count, *options):
    """What the trace says, and how many calls it may have: each a block and its free, and those of the program and its library beside."""
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    subprocess.run([XHEAP, "record", "-q", *options, "-o", TRACE, "--", STANDING, what, str(count)], check=True, timeout=LONG_SECONDS)
    facts = info(TRACE)
    expect(facts["event_count"] + facts.get("untraced_calls", 0) + facts["lost_events"] >= 2 * count, f"{what} {count}: {facts}")
    return facts


def more_threads_than_buffers():
    """Threads that keep no buffer share those that go round."""
    facts = record("threads", 3000, "--max-buffers", str(BUFFERS), "--wait-limit", "60s")
    expect(not facts["lost_events"] and "untraced_calls" not in facts, f"lost: {facts}")
    expect(facts["cost"]["peak_buffers"] <= BUFFERS + SPARE, f"more buffers than allowed: {facts}")


def fewer_buffers_than_threads():
    facts = record("threads", 300, "--min-buffers", "2", "--max-buffers", "8", "--wait-limit", "60s")
    expect(not facts["lost_events"] and "untraced_calls" not in facts, f"lost: {facts}")


def more_threads_than_slots():
    facts = record("threads", THREADS + 100, "--wait-limit", "200ms")
    expect(facts.get("untraced_calls", 0) > 0, f"nothing is told of those that found no room: {facts}")


def more_children_than_rows():
    facts = record("children", PROCESSES + 200)
    expect(facts.get("untraced_calls", 0) > 0, f"nothing is told of those that found no room: {facts}")
    expect(not facts["complete"] and facts["missing_calls"] == facts["untraced_calls"] + facts["lost_events"], f"complete, or another number: {facts}")
    shown = subprocess.run([XHEAP, "heap", TRACE, "-width", "300"], stdout=subprocess.PIPE, text=True, check=True).stdout
    expect(shown.splitlines()[0].endswith(f"; not complete: {facts['missing_calls']:,} calls are missing") and "untraced calls: " in shown,
           f"xheap heap does not say so: {shown[:500]}")


sys.exit(run_tests(more_threads_than_buffers, fewer_buffers_than_threads, more_threads_than_slots, more_children_than_rows))
