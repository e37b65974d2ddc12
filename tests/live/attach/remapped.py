#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that has put a copy of its C library's code in the place of the code, as for huge pages: attached to before and after, and recorded from the start."""
import os
import subprocess
import sys

from live import PROGRAMS, attach, expect, info, run_tests, xheap

PROGRAM = os.path.join(PROGRAMS, "remapped")
LIBRARY = "libc.so.6"


def expect_recorded(trace):
    facts = info(trace)
    expect(facts["complete"] and facts["events"].get("alloc") and facts["events"].get("free"), facts)


def test_attach():
    program = subprocess.Popen([PROGRAM, LIBRARY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect(program.stdout.readline() == "1\n", "no code was replaced")
    for i in range(2):
        said = attach("record", "-o", f"attached{i}.xht", "-p", program.pid, "--duration", "1s")
        expect(program.poll() is None, f"status {program.returncode}: {said}")
        expect_recorded(f"attached{i}.xht")
    expect("region.0" not in open(f"/proc/{program.pid}/maps").read(), "the region stays")
    output = program.communicate("", timeout=100)[0]
    expect(program.returncode == 0 and output == "ok\n", f"status {program.returncode}: {output}")


def test_record():
    """The copy has the jumps to the recorder."""
    said = xheap("record", "-q", "-o", "recorded.xht", "--", PROGRAM, LIBRARY, stdin=subprocess.DEVNULL)
    expect(said == "1\nok\n", said)
    expect_recorded("recorded.xht")


if __name__ == "__main__":
    sys.exit(run_tests(test_attach, test_record))
