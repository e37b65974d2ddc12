#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A function that holds most of the peak by many stacks, each with little of it, is a finding of report; with one large stack, that stack is."""
import os
import subprocess
import sys

from live import expect, run_tests, xheap

PROGRAM = """#include <stdlib.h>
volatile int made;
__attribute__((noinline)) void *node_make(int size) { void *volatile node = malloc(size); made++; return node; }
%s
__attribute__((noinline)) void *table_make(int size) { void *volatile table = malloc(size); made++; return table; }
int main(void) { %s table_make(TABLE); return 0; }
"""


def record(name, table):
    """Of fewer than ten callers: a function with more of them is a wrapper, and culled."""
    function = "__attribute__((noinline)) void {}(void) {{ {} made++; }}\n"
    kinds = [f"parse{i}" for i in range(5)]
    made = "".join(function.format(kind, "node_make(10000);") for kind in kinds)
    made += "".join(function.format(f"read{i}", " ".join(f"{kind}();" for kind in kinds)) for i in range(4))
    with open(f"{name}.c", "w") as file:
        file.write(PROGRAM % (made, " ".join(f"read{i}();" for i in range(4))))
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-g", f"-DTABLE={table}", "-o", name, f"{name}.c"], check=True)
    xheap("record", "-q", "-o", f"{name}.xht", f"./{name}")
    return " ".join(xheap("report", f"{name}.xht").split())


def several_stacks():
    said = record("spread", 1000)
    expect("spread!node_make holds 99 % of the peak: 195.3 KiB in 20 blocks, by several stacks. xheap heap spread.xht -frames sp -top 3" in said, said)


def one_stack():
    said = record("single", 400000)
    expect("single!table_make holds 66 % of the peak: 390.6 KiB in 1 block. xheap heap single.xht -stacks sp -top 3" in said, said)


sys.exit(run_tests(several_stacks, one_stack))
