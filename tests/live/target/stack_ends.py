#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A stack reaches its start, or ends at code without unwind data, which is named, or is cut; the three are told apart and counted."""
import collections
import os
import re
import subprocess
import sys

from live import PROGRAMS, dump, expect, info, run_tests, stop_session, told, wait_for, xheap

COUNT = 300


def record(*command, options=()):
    said = xheap("record", "-o", "ends.xht", "--check-stacks", *options, "--", *command)
    expect("\nxheap: 0 remembered stacks differed" in said, said)
    facts, found = info("ends.xht"), counted("ends.xht")
    expect(+told_counts(facts) == found, f"{told_counts(facts)} by info, {found} by dump")
    return facts


def end_of(stack):
    """By what dump shows of a stack, whose outermost frame is its last one."""
    return {"": "none", "[truncated]": "truncated", "[no unwind data]": "unwindless"}.get(stack.rsplit(";", 1)[-1], "whole")


def counted(trace):
    """How the stacks of all events end, by a look at each of them."""
    shown = {row["stack_id"]: row["stack"] for row in dump(trace, "-stacks", "-wholeStacks")}
    return collections.Counter(end_of(shown[row["stack_id"]] if row["stack_id"] else "") for row in dump(trace))


def told_counts(facts):
    """What the numbers of a report come to; stacks that are in none of them are those that there are not."""
    counts = {end: facts[f"{end}_stacks"] for end in ("whole", "truncated", "unwindless")}
    counts["none"] = facts.get("event_count", facts.get("events")) - sum(counts.values())
    return collections.Counter(counts)


def plain(text):
    """Its numbers without commas."""
    return re.sub(r"(\d),(\d)", r"\1\2", text)


def ends(facts, truncated, unwindless, images=None):
    found = facts["truncated_stacks"], facts["unwindless_stacks"], facts.get("unwindless_images")
    expect(found == (truncated, unwindless, images), f"{found}, not {(truncated, unwindless, images)}")


def without_data():
    """The calls through the function without data end there; all others reach their start, in the thread as well."""
    program = os.path.join(PROGRAMS, "unwindless")
    facts = record(program, COUNT)
    ends(facts, 0, 2 * COUNT, ["unwindless"])
    heap, whole = told("heap", "ends.xht"), facts["event_count"] - 2 * COUNT
    found = heap["whole_stacks"], heap["truncated_stacks"], heap["unwindless_stacks"]
    expect(found == (whole, 0, 2 * COUNT) and whole >= 6 * COUNT, f"heap: {found}")
    stacks = [row["stack"] for row in dump("ends.xht", "-stacks", "-wholeStacks")]
    expect(any(stack.endswith(";unwindless!call_through;[no unwind data]") or stack == "unwindless!call_through;[no unwind data]" for stack in stacks), stacks)
    text = xheap("heap", "ends.xht")
    expect(f"stacks without unwind data: {2 * COUNT} (they end at code of unwindless)" in text, text)
    expect(f"whole stacks: {whole}, of {facts['event_count']} events" in plain(text), text)
    text = xheap("info", "ends.xht")
    expect(re.search(f"\n +whole +{whole}, of {facts['event_count']} events\n", plain(text)), text)


def not_asked_for():
    """Events whose stacks were not asked for are no whole ones."""
    facts = record(os.path.join(PROGRAMS, "unwindless"), COUNT, options=("--stackwalk", "HeapAlloc"))
    expect(told_counts(facts)["none"] >= 4 * COUNT, told_counts(facts))


def in_a_session():
    """The numbers of a thread, of its process and of all go with the events that are told with them; at the end they are those of the trace."""
    name = f"ends{os.getpid()}"
    with subprocess.Popen([os.path.join(PROGRAMS, "attached"), "count"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            xheap("start", name, "-o", "session.xht", "-p", process.pid)
            for _ in range(5):
                wait_for("events", lambda: any(row["whole_stacks"] for row in told("query", name)["targets"]))
                state = told("query", name, "--threads")
                for row in state["targets"]:
                    expect(all(told_counts(thread)["none"] == 0 < thread["events"] for thread in row["thread_rows"]), row)
                    # Blocks from before have no stacks.
                    expect(told_counts(row)["none"] == row["events"] - sum(thread["events"] for thread in row["thread_rows"]), row)
                text = plain(xheap("query", name))
                expect(re.search(r"\n  stacks  [0-9]+ whole, 0 truncated, 0 without unwind data\n", text), text)
        finally:
            stop_session(name)
            process.kill()
    found = counted("session.xht")
    expect(+told_counts(info("session.xht")) == found and found["whole"] > 0, f"{info('session.xht')['whole_stacks']} by info, {found} by dump")


def made_code():
    facts = record(os.path.join(PROGRAMS, "jit"))
    expect(facts["truncated_stacks"] == 0 and facts["unwindless_stacks"] > 0 and "[no image]" in facts["unwindless_images"],
           f"{facts['truncated_stacks']} cut, {facts['unwindless_stacks']} without data at {facts.get('unwindless_images')}")


def cut():
    facts = record(os.path.join(PROGRAMS, "unwindless"), COUNT, options=("--stack-depth", "1"))
    # The frame that has no data is the only one that is asked for: there is nothing to cut.
    expect(facts["truncated_stacks"] >= 6 * COUNT and facts["unwindless_stacks"] == 2 * COUNT, f"{facts['truncated_stacks']} cut, {facts['unwindless_stacks']} without data")


def musl():
    """Nothing of musl has unwind data, but stacks reach the start of the program and of its threads."""
    done = 0
    for name in ("unwindless_musl", "unwindless_musl_static"):
        program = os.path.join(PROGRAMS, name)
        if not os.path.exists(program):
            continue
        facts = record(program, COUNT)
        ends(facts, 0, 2 * COUNT, [name])
        done += 1
    return f"{done} programs"


if __name__ == "__main__":
    sys.exit(run_tests(without_data, not_asked_for, in_a_session, made_code, cut, musl))
