#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One session of a great number of forks, threads, loads, execs: the stacks at the end, of sleepers too, are as another unwinder sees them, and nothing is cut.

usage: numerous.py [TEST...]"""
import os
import shutil
import subprocess

from live import LONG_SECONDS, PROGRAMS, SOAK, XHEAP, dump, expect, info, run_tests

TRACE = "numerous.xht"
MANY = 10 if SOAK else 1
FIRST_SIZE = 100000          # programs/numerous.c
MARKS = {0, 1, 10, 11, 20, 21}


def marks(said):
    """By size: the callers, innermost first, as the program has printed them."""
    found = {}
    for line in said.splitlines()[:-1]:
        size, *frames = line.split("\t")
        found[int(size) - FIRST_SIZE] = [frame.rpartition("+")[::2] for frame in frames]
    expect(said.endswith("end\n") and found.keys() == MARKS, f"the program says {said}")
    return found


def chain(nodes, node):
    """The frames of a stack, innermost first."""
    frames = []
    while node != "0":
        row = nodes[node]
        frames.append((row["image"], row["offset"]))
        node = row["parent_id"]
    return frames


def same(image, offset, other):
    """Whether a frame is the other unwinder's, which knows the start of a program only as far as it has a table."""
    path, place = other
    return os.path.realpath(image) == os.path.realpath(path) and int(offset, 16) == int(place, 16)


def expect_stacks(said):
    nodes = {row["stack_id"]: row for row in dump(TRACE, "-stacks")}
    stacks = {}
    for row in dump(TRACE, "-events"):
        mark = int(row["size"] or 0) - FIRST_SIZE
        if row["action"] == "Alloc" and mark in MARKS:
            stacks[mark] = row["stack_id"]
    for mark, expected in marks(said).items():
        found = chain(nodes, stacks[mark])[1:]
        expect(len(found) == len(expected) and all(same(*frame, other) for frame, other in zip(found, expected)),
               f"block {mark}: {found}, not {expected}")


def record(*words, before=()):
    """What xheap info says of the trace, in which all stacks are whole."""
    run = subprocess.run([*before, XHEAP, "record", "-q", "-o", TRACE, "--", os.path.join(PROGRAMS, "numerous"), *map(str, words)], stdout=subprocess.PIPE, text=True,
                         timeout=LONG_SECONDS)
    expect(run.returncode == 0, f"{words}: status {run.returncode}: {run.stdout}")
    facts = info(TRACE)
    expect(facts["complete"] and not {"limited", "unhooked"} & facts.keys() and facts["truncated_stacks"] == 0 and facts["lost_events"] == 0 and
           "events_without_heap" not in facts,
           f"{words}: {[facts.get(name) for name in ('complete', 'limited', 'truncated_stacks', 'lost_events', 'events_without_heap', 'event_count')]}")
    expect_stacks(run.stdout)
    return facts


def sites(count, name="sites"):
    """So many shared objects, each another file."""
    os.makedirs("sites", exist_ok=True)
    paths = [os.path.abspath(f"sites/{name}{i}.so") for i in range(count)]
    for path in paths:
        if not os.path.exists(path):
            shutil.copy(f"{PROGRAMS}/{name}.so", path)
    return paths


def test_forks():
    """Each child has return addresses that its parent has not seen, and arenas; all together a million and more, and 40,000."""
    count = 20000 * MANY
    facts = record("forks", count, 30, *sites(1))
    expect(facts["events"]["alloc"] >= 30 * count, f"{facts['events']}")


def test_threads():
    count = 100000 * MANY
    facts = record("threads", count)
    expect(len(facts["processes"]) == 2 and facts["processes"][0]["threads"] == count + 2, f"{facts['processes']}")
    expect(facts["events"]["alloc"] >= count, f"{facts['events']}")


def test_loads():
    """A host of plugins that loads a few of them again and again; some have functions to hook."""
    count = 5000 * MANY
    facts = record("loads", count, 120, *sites(3), *sites(2, "sites_heap"))
    expect(facts["events"]["alloc"] >= 120 * count, f"{facts['events']}")


def test_execs():
    count = 5000 * MANY
    facts = record("execs", count)
    expect(sum(process["command"].endswith(" once") for process in facts["processes"]) == count, f"{len(facts['processes'])} processes")


def test_more_program_counters_than_rows():
    """Under a limit of the address space the region has room for 65,536 at a time; each plugin has 2,000 of its own."""
    facts = record("loads", 300 * MANY, 1000, *sites(150), before=("prlimit", f"--as={900 << 20}"))
    expect(facts["events"]["alloc"] >= 300000 * MANY, f"{facts['events']}")


if __name__ == "__main__":
    raise SystemExit(run_tests(test_forks, test_threads, test_loads, test_execs, test_more_program_counters_than_rows))
