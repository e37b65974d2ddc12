#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attaches to programs that load and unload libraries during the attach: the trace has each library that is loaded, and each call of it; one that is gone is in nobody's way.

usage: loads.py [TEST...]"""
import collections
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

from live import LONG_SECONDS, PROGRAMS, XHEAP, dump, expect, for_preload, info, run_tests, wait_for, wait_until_begun

# Of so many libraries one has a heap of its own, with functions to hook: a region has rows for 256.
COUNT, WITH_HEAP, ROUNDS = 400, 8, 3
SLOW_ROUNDS = 30
FIRST_SIZE = 100000     # programs/loads.c
TRACE, LIBRARIES = os.path.abspath("loads.xht"), os.path.abspath("libraries")


def make_libraries():
    os.makedirs(LIBRARIES, exist_ok=True)
    for i in range(COUNT):
        if not os.path.exists(f"{LIBRARIES}/{i}"):
            shutil.copy(f"{PROGRAMS}/{'loaded' if i % WITH_HEAP else 'loaded_heap'}.so", f"{LIBRARIES}/{i}")


def attach_to(how, count, **environment):
    """The libraries that are loaded in the end, each with the size of its block, as the program says; the trace is in TRACE."""
    make_libraries()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(TRACE)
    program = subprocess.Popen([f"{PROGRAMS}/loads", how, LIBRARIES, str(count)], stdin=subprocess.PIPE, stdout=open("said", "w"), text=True)
    try:
        wait_until_begun(program)
        logger = subprocess.Popen([XHEAP, "record", "-o", TRACE, "-p", str(program.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=dict(os.environ, **environment))
        program.stdin.write("\n")
        program.stdin.flush()
        wait_for("end of the program's work", lambda: logger.poll() is not None or pathlib.Path("said").read_text().endswith("end\n"))
        # The blocks from before are read only while the program runs.
        told = []
        for line in logger.stdout:
            told.append(line)
            if "blocks from before" in line:
                program.stdin.close()
        if logger.wait(LONG_SECONDS) == 0:
            program.wait(LONG_SECONDS)
        expect(program.returncode == 0 and logger.returncode == 0, f"{how}: status {program.returncode} and {logger.returncode}: {told}")
    finally:
        program.kill()
        program.wait()
    facts = info(TRACE)
    expect(facts["complete"] and "unhooked" not in facts, f"{how}: not complete, or not all is hooked: {facts}")
    return [tuple(map(int, line.split())) for line in pathlib.Path("said").read_text().splitlines()[:-1]]


def blocks():
    return collections.Counter(int(row["size"]) for row in dump(TRACE) if row["action"] == "Alloc" and FIRST_SIZE <= int(row["size"]) < FIRST_SIZE + COUNT)


def live_libraries():
    return sorted(int(os.path.basename(row["path"])) for row in dump(TRACE, "-images") if os.path.dirname(row["path"]) == LIBRARIES and not row["unload_ns"])


def check(how):
    for _ in range(ROUNDS):
        said = attach_to(how, COUNT)
        numbers, found = [number for number, _ in said], live_libraries()
        expect(found == numbers, f"{how}: of {len(numbers)} libraries are missing: {sorted(set(numbers) - set(found))}; "
                                 f"gone but there: {sorted(set(found) - set(numbers))}")
        expect(blocks() == collections.Counter(size for _, size in said), f"{how}: of {len(said)} blocks of libraries: {blocks()}")


def loaded_during_the_attach():
    """The loader reports its work from the moment at which its function is patched; its work before that is in the maps."""
    check("load")


def unloaded_during_the_attach():
    """A library that is gone cannot be patched; that is no reason to give up."""
    check("unload")


def check_replaced(rounds, **environment):
    for _ in range(rounds):
        said = attach_to("replace", 2, **environment)
        found = blocks()
        expect(sum(found.values()) == len(said), f"{found}, not {len(said)} blocks")


def replaced_all_the_time():
    """No moment is found at which the images are those that were read: then they are read while the program is paused."""
    check_replaced(ROUNDS)


def replaced_while_it_is_read():
    """A library is replaced by another one and comes back, at the same address, while its functions are read."""
    check_replaced(SLOW_ROUNDS, LD_PRELOAD=for_preload("slow_reads.so"))


sys.exit(run_tests(loaded_during_the_attach, unloaded_during_the_attach, replaced_all_the_time, replaced_while_it_is_read))
