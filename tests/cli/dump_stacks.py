#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `dump -stacks` writes grows with what the trace holds, not with the square of its depth; frames and parents make up the stacks of -wholeStacks."""
import csv
import io
import json
import os
import subprocess
import sys

XHEAP = os.environ["XHEAP"]
DEEP, CALLS = 800, 5
ROW_BYTES = 250
PROGRAM = """
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) static void down(int depth)
{
	if (depth == 0) {
		free(kept);
		kept = malloc(10);
	} else {
		down(depth - 1);
	}
	__asm__ volatile("" : : : "memory");
}
int main(void)
{
	for (int i = 0; i < CALLS; i++)
		down(DEEP - i);
	return 0;
}
"""


def xheap(*words):
    return subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, check=True, text=True).stdout


def expect(condition, what):
    if not condition:
        sys.exit(what)


def main():
    with open("deep.c", "w") as file:
        file.write(PROGRAM)
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-fno-optimize-sibling-calls", f"-DDEEP={DEEP}", f"-DCALLS={CALLS}", "-o", "deep", "deep.c"], check=True)
    subprocess.run([XHEAP, "record", "-q", "-o", "deep.xht", "./deep"], check=True)
    text = xheap("dump", "deep.xht", "-stacks", "-format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    expect(len(rows) > DEEP and len(text) < ROW_BYTES * len(rows), f"{len(text)} bytes for {len(rows)} rows")
    parents = {row["stack_id"]: row for row in rows}

    def stack_of(row):
        frames = []
        while row:
            frames.append(row["frame"])
            row = parents.get(row["parent_id"])
        return ";".join(frames)

    whole = list(csv.DictReader(io.StringIO(xheap("dump", "deep.xht", "-stacks", "-wholeStacks", "-format", "csv"))))
    for row, full in zip(rows, whole, strict=True):
        expect(stack_of(row) == full["stack"] and row == {name: full[name] for name in row}, f"{stack_of(row)[:200]}, not {full['stack'][:200]}")
    lines = [json.loads(line) for line in xheap("dump", "deep.xht", "-stacks", "-format", "json").splitlines()]
    expect([line["frame"] for line in lines] == [row["frame"] for row in rows] and "stack" not in lines[0], "JSON differs")
    run = subprocess.run([XHEAP, "dump", "deep.xht", "-events", "-wholeStacks"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 2 and "-wholeStacks is for -stacks" in run.stderr, run.stderr)


main()
