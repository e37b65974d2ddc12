#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package is typed: mypy accepts it strictly, and a program that uses it; of a program with mistakes it names each."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import packages
from package import SKIP, SOURCE, expect, finish, same, unpack

GOOD = """
import xheap
from xheap import col, count

with xheap.open("x.xht") as trace:
    print(trace.info.event_count, trace.heap(by="stack", size=(1, None)).totals["total_bytes"])
    for row in trace.query([count(), col("size").sum()], where=(col("size") > 1) & col("end_ns").is_absent(), by="function"):
        print(row.sum_size)
    text: str = trace.report().text


@xheap.record("y.xht")
def work(number: int) -> int:
    return number


xheap.diff(trace, "y.xht").as_dict()["function"]
"""
BAD = """
import xheap

trace = xheap.open(1)
trace.heap(top="x")
trace.heap(by=1)
trace.nosuch()
xheap.nosuch()
number: int = trace.report().text
"""


def mypy(*words):
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", "cache", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def main():
    folder = unpack()
    if not packages.use() or not importlib.util.find_spec("mypy"):
        print("there is no mypy: tests/python/packages.py installs it")
        sys.exit(SKIP)
    os.environ["MYPYPATH"] = folder
    status, said = mypy("--config-file", SOURCE / "python/pyproject.toml")
    same("mypy of the package", (status, said.startswith("Success")), (0, True))
    if status:
        print(said)
    pathlib.Path("good.py").write_text(GOOD)
    pathlib.Path("bad.py").write_text(BAD)
    expect(mypy("--strict", "good.py")[0] == 0, f"a program: {mypy('--strict', 'good.py')[1]}")
    same("lines with mistakes", [int(line) for line in re.findall(r"bad\.py:(\d+): error", mypy("--strict", "bad.py")[1])], [4, 5, 6, 7, 8, 9])
    finish()


main()
