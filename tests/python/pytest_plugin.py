#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The plugin of pytest: what each test needs, limits and what exceeds them, mistakes in marks, and the same numbers with workers and without."""
import os
import pathlib
import re
import subprocess
import sys

from package import SKIP, expect, finish, same, unpack

PYTHONS = (sys.executable, "python3", "/usr/bin/python3", *os.environ.get("XHEAP_TEST_PYTHONS", "").split())
TESTS = """
import pytest
kept = []
def load(size):
    return bytearray(size)
@pytest.mark.limit_memory("24 MB")
def test_fits():
    load(20 << 20)
@pytest.mark.limit_memory("24MiB")
def test_over():
    first = load(20 << 20)
    second = load(10 << 20)
@pytest.mark.limit_allocations(5)
def test_many():
    blocks = [bytearray(2000) for i in range(10)]
@pytest.mark.limit_leaks("1 MB")
def test_leaks():
    kept.append(load(3 << 20))
@pytest.mark.limit_leaks(1 << 20)
def test_cycle():
    cycle = [load(5 << 20)]
    cycle.append(cycle)
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.limit_memory("10 B")
def test_fails(size):
    assert size == len(load(1 << 20))
@pytest.mark.skip
def test_skipped():
    pass
"""
WANTED = {"test_fits": (20.0, 1, 0), "test_over": (30.0, 2, 0), "test_many": (0.0, 10, 0), "test_leaks": (3.0, 1, 3.0), "test_cycle": (5.0, 1, 0)}
UNITS = {"B": 1 / (1 << 20), "KiB": 1 / 1024, "MiB": 1}


def pytest(python, *words, **settings):
    environment = dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="", **settings)
    del environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
    run = subprocess.run([python, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:memray", *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return run.returncode, run.stdout


def rows_of(said):
    found = re.findall(r"^ *([\d.]+) (\w+) +([\d,]+) +([\d.]+) (\w+)  test_memory\.py::(\S+)$", said, re.M)
    return {name: (float(peak) * UNITS[unit], int(blocks.replace(",", "")), float(stay) * UNITS[of_stay]) for peak, unit, blocks, stay, of_stay, name in found}


def has(python, package):
    return not subprocess.run([python, "-c", f"import {package}"], stderr=subprocess.DEVNULL).returncode


def check(python):
    status, said = pytest(python, "--xheap", "--xheap-traces", "traces", "test_memory.py")
    rows = rows_of(said)
    same("status", status, 1)
    same("what came of the tests", re.findall(r"^FAILED \S+::(\w+)", said, re.M), ["test_over", "test_many", "test_leaks", "test_fails", "test_fails"])
    for name, (peak, blocks, stay) in WANTED.items():
        seen = rows.get(name, (-1, -1, -1))
        expect(abs(seen[0] - peak) <= 0.1 and blocks <= seen[1] <= blocks + 2 and abs(seen[2] - stay) <= 0.1, f"{name}: {seen}, not {peak, blocks, stay}: {said}")
    for words in ("over  limit_memory('24MiB')\n      30.0 MiB: 6.0 MiB (25.0 %) more than the 24.0 MiB allowed\n", "test_memory.py!load (test_memory.py:5)\n        test_memory.py!test_over (test_memory.py:11)\n",
                  "10 blocks: 5 blocks (100.0 %) more than the 5 blocks allowed", "3.0 MiB: 2.0 MiB (200.0 %) more than the 1.0 MiB allowed", "assert 1 == 1048576"):
        expect(words in said, f"no {words!r} in: {said}")
    expect(not re.search(r"pytest_plugin\.py!|before the trace", said), f"memory of the plugin: {said}")
    expect(os.path.exists("traces/main.xht"), "the trace was not kept")
    return rows


def main():
    unpack()
    python = next((python for python in PYTHONS if has(python, "pytest")), None)
    if not python:
        print("there is no Python with pytest")
        sys.exit(SKIP)
    pathlib.Path("test_memory.py").write_text(TESTS)
    check(python)
    status, said = pytest(python, "test_memory.py")
    expect(status == 1 and not rows_of(said) and "xheap: memory" not in said and said.count("FAILED test_memory") == 2, f"without --xheap: {said}")
    pathlib.Path("test_mark.py").write_text('import pytest\n@pytest.mark.limit_memory("much")\ndef test():\n    pass\n')
    status, said = pytest(python, "--xheap", "test_mark.py")
    expect(status and "a limit is a number of bytes, or a text such as '24 MB', not 'much'" in said, f"a limit that is none: {said}")
    status, said = pytest(python, "--xheap", "test_mark.py", XHEAP="/nowhere/xheap")
    expect(status == 2 and "xheap cannot record the tests" in said, f"without xheap: {said}")
    if has(python, "xdist"):
        each = {number: rows_of(pytest(python, "--xheap", "--xheap-warm-up", "-n", number, "test_memory.py", PYTHONMALLOC="malloc")[1]) for number in ("0", "4")}
        same("blocks with workers", *({name: row[1] for name, row in rows.items()} for rows in each.values()))
        expect(len(each["0"]) == 7, f"{each}")
    else:
        print("not checked: there is no pytest-xdist")
    finish()


main()
