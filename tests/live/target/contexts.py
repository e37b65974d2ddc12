#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Blocks of a sample have the trace and span that their thread had published, as the program itself says for each block.

usage: contexts.py [TEST...]"""
import os
import subprocess
import sys

from live import PROGRAMS, SOAK, XHEAP, attach, expect, for_preload, run_tests, told, wait_until_begun, xheap

ROUNDS = 2000 if SOAK else 150
SAMPLE = "16K"  # no block of 4 MiB is missed: exp(-256)
HEAP, BLOCKS = "@$cursession.TTD.Data.Heap()", "@$cursession.TTD.Data.Allocations()"


def is_built(name):
    return os.path.exists(os.path.join(PROGRAMS, name))


def read(lines):
    """By size, the trace and the span."""
    return {int(size): (trace_id, span_id) for size, trace_id, span_id in map(str.split, lines)}


def record(trace, program, *words, sample=SAMPLE, **more):
    """What the program says of its blocks."""
    done = subprocess.run([XHEAP, "record", "-q", "-o", trace, *(["--sample", sample] if sample else []), "--",
                           os.path.join(PROGRAMS, program), *map(str, words)], stdout=subprocess.PIPE, text=True, check=True, **more)
    return read(done.stdout.splitlines())


def ask(trace, query):
    return [row["value"] for row in told("dx", trace, "-r2", query)["result"]]


def ids(row):
    return row.get("TraceId", "-"), row.get("SpanId", "-")


def check(trace, wanted):
    """Calls and blocks have what was published. Return how many have a context."""
    select = "Where(b => b.Size >= 0x400000).Select(b => new { b.Size, b.TraceId, b.SpanId })"
    for objects in (HEAP, BLOCKS):
        rows = ask(trace, f"{objects}.{select}")
        found = {int(row["Size"]): ids(row) for row in rows}
        expect(len(rows) == len(found) and found.keys() == wanted.keys(), f"{trace}: {len(rows)} blocks, not {len(wanted)}")
        wrong = [(size, found[size], wanted[size]) for size in wanted if found[size] != wanted[size]]
        expect(not wrong, f"{trace}: {len(wrong)} of {len(wanted)} blocks have another context, such as {wrong[:2]}")
    return sum(context != ("-", "-") for context in wanted.values())


def of_the_program():
    """The variable is the program's own, and published rightly and wrongly."""
    said = []
    for program in filter(is_built, ("contexts", "contexts_static", "contexts_musl")):
        wanted = record(f"{program}.xht", program, ROUNDS)
        published = check(f"{program}.xht", wanted)
        expect(len(wanted) / 3 < published < len(wanted), f"{published} of {len(wanted)} blocks have a context")
        said.append(f"{program} {published} of {len(wanted)}")
    return ", ".join(said)


def of_a_library():
    """The variable is a library's, which was there at the start, or came later. A preloaded library has to be xheap's, too: not one for musl."""
    said = []
    for way in filter(lambda way: is_built(f"context_{way}.so"), ("general", "descriptor", "initial", "general_musl")):
        library, program = for_preload(f"context_{way}.so"), "contexts_elsewhere_musl" if "musl" in way else "contexts_elsewhere"
        first, later = ("first", (), {"env": {**os.environ, "LD_PRELOAD": library}}), ("later", (library,), {})
        for when, words, more in (later,) if "musl" in way else (first, later):
            name = f"{way}_{when}"
            wanted = record(f"{name}.xht", program, ROUNDS, *words, **more)
            said.append(f"{name} {check(f'{name}.xht', wanted)} of {len(wanted)}")
    return ", ".join(said)


def of_a_process_that_runs():
    """Its library was loaded before it was attached to."""
    said = []
    for program, library in (("contexts", None), ("contexts_elsewhere", "context_descriptor.so")):
        environment = {**os.environ, "LD_PRELOAD": for_preload(library)} if library else None
        with subprocess.Popen([os.path.join(PROGRAMS, program), str(-ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as process:
            wait_until_begun(process)
            attach("start", "contexts", "-p", process.pid, "--sample", SAMPLE, "-o", "attached.xht")
            wanted = read(process.communicate("\n")[0].splitlines())
        xheap("stop", "contexts")
        said.append(f"{program} {check('attached.xht', wanted)} of {len(wanted)}")
        os.remove("attached.xht")
    return ", ".join(said)


def of_no_sample():
    """A session that does not sample reads none."""
    wanted = record("whole.xht", "contexts", 20, sample=None)
    check("whole.xht", dict.fromkeys(wanted, ("-", "-")))


if __name__ == "__main__":
    sys.exit(run_tests(of_the_program, of_a_library, of_a_process_that_runs, of_no_sample))
