#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A stack reaches its start, or ends at code without unwind data, which is named, or is cut; the three are told apart and counted."""
import os
import sys

from live import PROGRAMS, dump, expect, info, run_tests, told, xheap

COUNT = 300


def record(*command, options=()):
    said = xheap("record", "-o", "ends.xht", "--check-stacks", *options, "--", *command)
    expect("\nxheap: 0 remembered stacks differed" in said, said)
    return info("ends.xht")


def ends(facts, truncated, unwindless, images=None):
    found = facts["truncated_stacks"], facts["unwindless_stacks"], facts.get("unwindless_images")
    expect(found == (truncated, unwindless, images), f"{found}, not {(truncated, unwindless, images)}")


def without_data():
    """The calls through the function without data end there; all others reach their start, in the thread as well."""
    program = os.path.join(PROGRAMS, "unwindless")
    facts = record(program, COUNT)
    ends(facts, 0, 2 * COUNT, ["unwindless"])
    heap = told("heap", "ends.xht")
    expect((heap["truncated_stacks"], heap["unwindless_stacks"]) == (0, 2 * COUNT), f"heap: {heap['unwindless_stacks']}")
    stacks = [row["stack"] for row in dump("ends.xht", "-stacks", "-wholeStacks")]
    expect(any(stack.endswith(";unwindless!call_through;[no unwind data]") or stack == "unwindless!call_through;[no unwind data]" for stack in stacks), stacks)
    text = xheap("heap", "ends.xht")
    expect(f"stacks without unwind data: {2 * COUNT} (they end at code of unwindless)" in text, text)


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
    sys.exit(run_tests(without_data, made_code, cut, musl))
