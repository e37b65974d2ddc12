#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wrappers that xheap finds in traces, held against a model that reads `xheap dump` alone, and against what the program says of itself. Without symbols the
model takes the functions from the program's own symbols, which it has kept elsewhere."""
import bisect
import collections
import json
import os
import re
import shutil
import subprocess
import sys

from live import dump, expect, run_tests, xheap

SOURCE = os.path.join(os.environ["SOURCE"], "tests/live/cull")
ALLOCATORS = {"malloc", "calloc", "realloc"}  # that the program calls
BEGINNERS = re.compile(r"^(libc\.so|ld-)")
CALLS_PART, CALLERS_MIN, RUN_MAX = 20, 10, 2


def functions_of(program):
    """The function at an address, by the program's symbols."""
    rows = subprocess.run(["nm", "-S", "--defined-only", program], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    table = sorted((int(row.split()[0], 16), row.split()[3]) for row in rows if len(row.split()) == 4 and row.split()[2] in "tTwW")
    starts = [start for start, _ in table]

    def find(frame):
        image, _, offset = frame.rpartition("+0x")
        if not image or "!" in image or image != os.path.basename(program):
            return frame
        return f"{image}!{table[bisect.bisect_right(starts, int(offset, 16) - 1) - 1][1]}"
    return find


def model(trace, function_of):
    """{wrapper: calls}, by the definition of docs/semantics.md."""
    stacks = {row["stack_id"]: [function_of(frame) for frame in row["stack"].split(";")] for row in dump(trace, "-stacks", "-wholeStacks")}
    calls = collections.Counter(row["stack_id"] for row in dump(trace, "-allocations") if row["stack_id"] in stacks)
    starts, wrappers = set(), set()
    for frames in stacks.values():
        outer = frames[::-1]
        starts |= {frames[-1], *(frame for frame in frames if frame.endswith("!main"))}
        at = 1
        while at < len(outer) and (at == 1 or BEGINNERS.match(outer[at - 1])):
            starts.add(outer[at])
            at += 1
    while True:
        found = {}
        by_function = collections.defaultdict(lambda: [0, 0, set()])
        for stack, count in calls.items():
            frames = list(stacks[stack])
            while frames and (frames[0] in wrappers or frames[0].partition("!")[2] in ALLOCATORS):
                frames.pop(0)
            if not frames:
                continue
            function, run = frames[0], 0
            while frames and frames[0] == function:
                frames.pop(0)
                run += 1
            if run > RUN_MAX or function in frames:
                by_function[function][1] += count
                continue
            by_function[function][0] += count
            by_function[function][2] |= set(frames[:1])
        for function, (count, recursive, callers) in by_function.items():
            is_enough = count * CALLS_PART >= sum(calls.values()) and len(callers) >= CALLERS_MIN and recursive < count
            if is_enough and function not in starts and not function.startswith("libc.so"):
                found[function] = count
        if not found:
            return wrappers
        wrappers |= set(found)


def report(trace, *words):
    return json.loads(xheap("heap", trace, *words, "-format", "json"))


def build(name, *flags):
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-pthread", *flags, "-o", name, f"{SOURCE}/wrappers.c"], check=True)
    return name


def check_set(trace, wanted, function_of):
    of_model = model(trace, function_of)
    for words in (["-frames"], ["-stacks", "-range", "0", "1ms"], ["-tree", "-size", "0", "40"], ["-frames", "-lines"], ["-frames", "-requireFrames", "malloc"]):
        answer = report(trace, *words)["culled_wrappers"]
        found = {function_of(f"{row['image']}+{row['offset_end']}") if "offset" in row else f"{row['image']}!{row['symbol']}" for row in answer}
        expect(found == of_model, f"{words}: xheap finds {sorted(found)}, the model {sorted(of_model)}")
        expect({name.partition("!")[2] for name in found} == wanted, f"{words}: {sorted(found)}")
        expect(len(answer) == len(wanted), f"{words}: {answer}")


def test_with_symbols():
    """Also: the innermost first, their callers are in the rows, and one line names them."""
    build("wrapped", "-g")
    xheap("record", "-q", "-o", "wrapped.xht", "--", "./wrapped")
    check_set("wrapped.xht", {"take_memory", "make_node"}, lambda frame: frame)
    answer = report("wrapped.xht", "-frames", "-top", "100")
    expect([row["symbol"] for row in answer["culled_wrappers"]] == ["take_memory", "make_node"], f"{answer['culled_wrappers']}")
    rows = {row["frame"]["symbol"] for row in answer["actions"][0]["rows"]}
    callers = {f"caller_{number}" for number in range(12)}
    expect(callers | {"nine_callers", "few_calls", "walk", "visit", "work", "main", "asks_xzalloc"} <= rows, f"{rows}")
    expect(not rows & {"take_memory", "make_node", "malloc", "between", "xzalloc"}, f"{rows}")
    text = xheap("heap", "wrapped.xht", "-frames")
    expect("\n  wrappers culled: take_memory, make_node\n" in text, text[:800])
    expect("\n  wrappers culled: take_memory, make_node\n" in xheap("report", "wrapped.xht", "-more"), "the report does not name them")
    whole = report("wrapped.xht", "-frames", "-noDefaultCull", "-top", "100")
    expect(not whole["culled_wrappers"] and all(row["frame"]["symbol"] in ("malloc", "calloc", "realloc", "memalign") or "ld-" in row["frame"].get("image", "")
                                                for row in whole["actions"][0]["rows"]), "-noDefaultCull culls")


def test_without_symbols():
    """By the unwind table; without that, nothing is guessed."""
    build("stripped")
    os.makedirs("kept", exist_ok=True)
    shutil.copy("stripped", "kept/stripped")
    subprocess.run(["strip", "stripped"], check=True)
    xheap("record", "-q", "-o", "stripped.xht", "--", "./stripped")
    check_set("stripped.xht", {"take_memory", "make_node"}, functions_of("kept/stripped"))
    text = xheap("heap", "stripped.xht", "-frames")
    expect(re.search(r"^  wrappers culled: stripped\+0x[0-9a-f]+\.\.0x[0-9a-f]+(, | and 1 more)", text, re.MULTILINE), text[:800])
    os.rename("stripped", "elsewhere")
    answer = report("stripped.xht", "-frames")
    expect(not answer["culled_wrappers"] and answer["images_without_functions"] == ["stripped"], f"{answer['culled_wrappers']}")
    expect("  wrappers cannot be found without known functions: stripped\n" in xheap("heap", "stripped.xht", "-frames"), "the report does not say so")


def test_two_sources():
    """One set for both sides of a comparison, even if a side by itself has another one."""
    build("wrapped", "-g")
    xheap("record", "-q", "-o", "wrapped.xht", "--", "./wrapped")
    answer = json.loads(xheap("diff", "wrapped.xht", "wrapped.xht@..1us", "-frames", "-format", "json"))
    expect([row["symbol"] for row in answer["culled_wrappers"]] == ["take_memory", "make_node"], f"{answer['culled_wrappers']}")


sys.exit(run_tests(test_with_symbols, test_without_symbols, test_two_sources))
