#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what the answer at the end of `xheap record` costs: the processor time of recordings with and without it, in turns, and the ratio of the
medians' difference to the recording.

usage: record_answer.py [--rounds N] [--xheap PATH]
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Blocks of many sizes, of which 10,000 live, with some work for each.
SOURCE = """#include <stdlib.h>
static void *kept[10000];
__attribute__((noinline)) void *node_make(size_t n) { char *p = malloc(n); p[0] = 1; return p; }
int main(int count, char **arguments) {
	long blocks = atol(arguments[1]), work = atol(arguments[2]);
	unsigned s = count;
	volatile double x = 1;
	for (long i = 0; i < blocks; i++) {
		s = s * 1103515245 + 12345;
		free(kept[(s >> 8) % 10000]);
		kept[(s >> 8) % 10000] = node_make(16 + (s >> 4) % 500);
		for (long k = 0; k < work; k++) x *= 1.0001;
	}
	return 0;
}
"""
WORKLOADS = (("calls only", (3000000, 0), ()), ("calls only, --index", (3000000, 0), ("--index",)), ("1 us of work a call", (1000000, 1000), ()),
             ("5 us of work a call", (400000, 5000), ()), ("few calls", (1000, 300000), ()), ("nothing", (0, 0), ()))


def record(xheap, words):
    """Processor seconds of the command and all of its children, and whether there was an answer."""
    before = os.times()
    run = subprocess.run([xheap, "record", *words], stderr=subprocess.PIPE, text=True, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, "xheap: peak: " in run.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--xheap", default=str(HERE.parent / "build/xheap"))
    options = parser.parse_args()
    os.environ.pop("COLUMNS", None)
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        os.environ["XDG_CACHE_HOME"] = directory
        pathlib.Path("work.c").write_text(SOURCE)
        subprocess.run(["cc", "-O1", "-o", "work", "work.c"], check=True)
        print(f"{'workload':24} {'without':>9} {'with':>9} {'cost':>7}  answers")
        for name, numbers, more in WORKLOADS:
            command = [*more, "-o", "t.xht", "--", "./work", *map(str, numbers)]
            pairs = [(record(options.xheap, ["--quiet", *command])[0], *record(options.xheap, command)) for _ in range(options.rounds)]
            without, with_ = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
            print(f"{name:24} {without:8.3f}s {with_:8.3f}s {(with_ / without - 1) * 100:6.1f}%  {sum(pair[2] for pair in pairs)} of {len(pairs)}")


main()
