#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""-top N shows the first N of all rows, for every key, action and N; all rows are in order, by the key and then by what decides ties."""
import json
import os
import random
import subprocess
import sys

XHEAP = os.environ["XHEAP"]
KEYS = {"so": "outstanding_bytes", "soc": "outstanding_count", "st": "total_bytes", "stc": "total_count", "src": "realloc_count",
        "sp": "peak_bytes", "spc": "peak_count", "stt": "temporary_count"}
ACTIONS = ["-stacks", "-frames", "-frames -inclusive", "-image", "-stacks -by thread", "-frames -by size"]


def ask(path, action, key, top):
    first, *more = action.split()
    command = [XHEAP, "heap", path, first, key, *more, "-noDefaultCull", "-format", "json", "-top", str(top)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["actions"][0]


def problems_of(path, action, key, chance):
    everything = ask(path, action, key, 10 ** 9)
    rows = everything["rows"]
    numbers = [(row[KEYS[key]], row["total_bytes"], row["total_count"]) for row in rows]
    if numbers != sorted(numbers, reverse=True):
        yield "rows are out of order"
    if everything["row_count"] != len(rows) or everything["cut"]:
        yield f"{len(rows)} of {everything['row_count']} rows, {everything['cut']} cut"
    for top in [1, len(rows) - 1, *(chance.randrange(1, len(rows) + 2) for _ in range(2))]:
        some = ask(path, action, key, max(top, 1))
        shown = min(max(top, 1), len(rows))
        if some["rows"] != rows[:shown]:
            yield f"-top {top}: not the first {shown} rows"
        if some["row_count"] != len(rows) or some["cut"] != len(rows) - shown:
            yield f"-top {top}: {some['cut']} of {some['row_count']} rows cut"


def main():
    make, chance = os.path.join(os.environ["BUILD"], "tests/golden/make_trace"), random.Random(1)
    subprocess.run([make, "random", "random.xht", "3"], check=True)
    found, rows = [], 0
    for action in ACTIONS:
        for key in KEYS:
            found += [f"{action} {key}: {problem}" for problem in problems_of("random.xht", action, key, chance)]
        rows += ask("random.xht", action, "so", 1)["row_count"]
    print(f"{len(ACTIONS) * len(KEYS)} orders of {rows} rows, {len(found)} problems")
    print("\n".join(found[:20]))
    sys.exit(1 if found or rows < 100 else 0)


main()
