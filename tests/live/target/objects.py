#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Heaps of mimalloc: each call of the mi_heap functions as the program has logged it, and each block's heap and end as a model of these calls has them.

usage: objects.py [TEST...]"""
import collections
import os
import subprocess
import sys

from live import LONG_SECONDS, PROGRAMS, XHEAP, dump, expect, info, run_tests, told

OBJECTS, TRACE = os.path.join(PROGRAMS, "objects"), os.path.abspath("objects.xht")
THREADS, CALLS = 2, 3000
KINDS = {"mi_heap_new": "Create", "mi_heap_delete": "Destroy", "mi_heap_destroy": "Destroy", "mi_free": "Free"}
SIZES = {"mi_heap_calloc": lambda a: a[1] * a[2], "mi_heap_mallocn": lambda a: a[1] * a[2], "mi_heap_reallocn": lambda a: a[2] * a[3],
         "mi_heap_realloc": lambda a: a[2], "mi_heap_realloc_aligned": lambda a: a[2]}


class Call:
    def __init__(self, line):
        words = line.split()
        self.tid, self.name, self.result = words[0], words[1], int(words[-1])
        self.arguments = list(map(int, words[2:-2]))
        self.is_realloc = "realloc" in self.name
        self.kind = KINDS.get(self.name, "ReAlloc" if self.is_realloc else "Alloc")
        self.size = SIZES.get(self.name, lambda a: a[1])(self.arguments) if self.kind in ("Alloc", "ReAlloc") else 0


def record(seed, *options):
    """The program's calls by thread; the trace is in TRACE."""
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    run = subprocess.run([XHEAP, "record", "-q", *options, "-o", TRACE, "--", OBJECTS, str(THREADS), str(CALLS), str(seed)], stdout=subprocess.PIPE, text=True,
                         check=True, timeout=LONG_SECONDS)
    calls = collections.defaultdict(list)
    for line in run.stdout.splitlines():
        call = Call(line)
        calls[call.tid].append(call)
    expect(len(calls) == THREADS, f"threads: {list(calls)}")
    return calls


def numbers(text):
    """The values of the column of arguments."""
    return [int(part.split("=")[1], 0) for part in text.split(";") if part]


def check_events(calls):
    """Function, arguments, result, in the order of each thread."""
    rows = collections.defaultdict(list)
    for row in dump(TRACE):
        rows[row["tid"]].append(row)
    for tid, made in calls.items():
        # mimalloc's own names: what the thread has from others, such as its C library, is not among them.
        found = [row for row in rows[tid] if row["function"].startswith("mi_") or row["function"] == "free"]
        # At its end a thread deletes its heaps.
        more = [row["function"] for row in found[len(made):]]
        expect(len(found) >= len(made) and set(more) <= {"mi_heap_delete"}, f"thread {tid}: {len(found)} events of {len(made)} calls; {more}")
        for row, call in zip(found, made):
            expect(row["action"] == call.kind and (row["function"] == call.name or call.name == "mi_free"), f"{row}, called {vars(call)}")
            expect(numbers(row["args"]) == call.arguments, f"{row}, called {vars(call)}")
            if call.kind in ("Alloc", "ReAlloc", "Create"):
                expect(int(row["address"], 16) == call.result and int(row["size"]) == call.size, f"{row}, called {vars(call)}")
            if call.kind != "Free":
                heap = call.result if call.kind == "Create" else call.arguments[0]
                expect(int(row["heap"], 16) == heap, f"{row}, called {vars(call)}")


def model(calls):
    """Of all blocks: address, size, heap, how they ended."""
    blocks = collections.Counter()
    for made in calls.values():
        live, heap_of = {}, {}
        for call in made:
            if call.name == "mi_free":
                blocks[(*live.pop(call.arguments[0]), "free")] += 1
                heap_of.pop(call.arguments[0])
            elif call.name == "mi_heap_delete":
                for address, heap in heap_of.items():
                    heap_of[address] = None if heap == call.arguments[0] else heap
            elif call.name == "mi_heap_destroy":
                for address in [address for address, heap in heap_of.items() if heap == call.arguments[0]]:
                    blocks[(*live.pop(address), "destroy")] += 1
                    heap_of.pop(address)
            elif call.kind in ("Alloc", "ReAlloc"):
                born_in = now_in = call.arguments[0]
                if call.is_realloc:
                    old = live.pop(call.arguments[1])
                    blocks[(*old, "realloc")] += 1
                    was_in = heap_of.pop(call.arguments[1])
                    # In place it stays where it is.
                    if call.result == call.arguments[1]:
                        born_in, now_in = old[2], was_in
                live[call.result] = (call.result, call.size, born_in)
                heap_of[call.result] = now_in
        for block in live.values():
            blocks[(*block, "exit")] += 1
    return blocks


def check_blocks(calls):
    tids = set(calls)
    objects = {int(call.result) for made in calls.values() for call in made if call.kind == "Create"}
    found = collections.Counter((int(row["address"], 16), int(row["size"]), int(row["heap"], 16), row["end_kind"])
                                for row in dump(TRACE, "-allocations") if row["tid"] in tids and int(row["heap"], 16) in objects)
    wanted = model(calls)
    expect(found == wanted, f"not as the model: {list((wanted - found).items())[:5]} are missing, {list((found - wanted).items())[:5]} too many")
    return wanted


def each_call_and_block():
    for seed in (1, 100, 1000):
        calls = record(seed)
        facts = info(TRACE)
        expect(facts["complete"], f"not complete: {facts}")
        check_events(calls)
        wanted = check_blocks(calls)
        # A heap of the report is one handle: that of a heap that is gone may be another's.
        rows = told("heap", TRACE, "-heaps")
        expect(not rows["unknown_frees"] and not rows["order_conflicts"], f"{rows['unknown_frees']} unknown frees, {rows['order_conflicts']} conflicts")
        by_heap = collections.Counter()
        for (_, _, heap, _), count in wanted.items():
            by_heap[heap] += count
        shown = {int(row["heap"], 16): row["total_count"] for row in rows["actions"][0]["rows"] if row["name"].endswith(" heap")}
        expect(shown == by_heap, f"heaps: {shown}, not {by_heap}")


def with_keep_live():
    """Folded, the sums are the same."""
    calls = record(7, "--keep", "live")
    wanted = model(calls)
    totals = told("heap", TRACE, "-heaps")["actions"][0]["rows"]
    found = sum(row["total_count"] for row in totals if row["name"].endswith(" heap"))
    expect(found == sum(wanted.values()), f"{found} blocks, not {sum(wanted.values())}")
    outstanding = sum(row["outstanding_count"] for row in totals if row["name"].endswith(" heap"))
    expect(outstanding == sum(count for block, count in wanted.items() if block[3] == "exit"), f"{outstanding} outstanding")


if not os.path.exists(OBJECTS):
    print("programs/objects is not built: there is no mimalloc.h here (Debian: libmimalloc-dev)")
    sys.exit(77)
sys.exit(run_tests(each_call_and_block, with_keep_live))
