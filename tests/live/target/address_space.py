#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that limits its own address space: 96 MiB more than it needs untraced are enough for it and its recording.

usage: address_space.py [TEST...]
"""
import os
import re
import subprocess
import sys

from live import PROGRAMS, XHEAP, expect, run_tests

PROGRAM, ROOM = os.path.join(PROGRAMS, "address_space"), 96
TRACE, SKIPPED = os.path.abspath("address_space.xht"), 77


def outcome(*words, prefix=()):
    run = subprocess.run([*prefix, PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return run.returncode, run.stdout


def recorded(*words):
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    return outcome(*words, prefix=(XHEAP, "record", "-q", "-o", TRACE, "--"))


def as_untraced(*more):
    enough = next((limit for limit in range(8, 1000, 2) if outcome(limit, *more) == (0, "block 4\n")), None)
    if outcome(1000, *more)[0] == SKIPPED:
        return "skipped: memory may not be locked here"
    expect(enough, "no limit is enough for the program itself")
    for limit in (enough + ROOM, enough + ROOM + 1, enough + 2 * ROOM, enough + 500):
        traced, untraced = recorded(limit, *more), outcome(limit, *more)
        expect(traced == untraced, f"{limit} MiB: {traced} traced, {untraced} untraced; {enough} MiB are enough without us")
    return f"from {enough + ROOM} MiB on, {enough} MiB without us"


def limits_of_its_own():
    return as_untraced()


def memory_that_is_locked():
    return as_untraced("locked")


def what_is_mapped():
    """As the process itself sees it."""
    show = ["sh", "-c", "exec grep VmSize /proc/self/status"]
    untraced = subprocess.run(show, stdout=subprocess.PIPE, text=True, check=True).stdout
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    traced = subprocess.run([XHEAP, "record", "-q", "-o", TRACE, "--", *show], stdout=subprocess.PIPE, text=True, check=True).stdout
    grown = (int(re.findall(r"\d+", traced)[0]) - int(re.findall(r"\d+", untraced)[0])) >> 10
    expect(0 < grown <= ROOM, f"it grew by {grown} MiB")
    return f"{grown} MiB more"


sys.exit(run_tests(limits_of_its_own, memory_that_is_locked, what_is_mapped))
