#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The counter that tests/tested-with holds recordings against (counter.c) counts each call that the program makes, and none twice."""
import os
import struct
import sys

from live import PROGRAMS, dump, expect, for_preload, run_tests, xheap

SLOT, SLOTS = struct.Struct("<6q64s16x"), 16384


def test_search():
    """Also what dlsym() frees for the counter, of an error that the program made."""
    with open("counts", "wb") as file:
        file.truncate(SLOT.size * SLOTS)
    xheap("record", "-o", "counted.xht", "--", f"{PROGRAMS}/with", "COUNTS=counts", f"LD_PRELOAD={for_preload('counter.so')}", f"{PROGRAMS}/dlerrors")
    with open("counts", "rb") as file:
        counted = SLOT.unpack(file.read(SLOT.size))[1:4]
    rows = [row for row in dump("counted.xht") if row["process"] == "1"]
    recorded = tuple(sum(row["action"] == action for row in rows) for action in ("Alloc", "ReAlloc", "Free"))
    expect(counted == recorded and counted[2], f"counted {counted}, recorded {recorded}")
    os.unlink("counts")


sys.exit(run_tests(test_search))
