#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What others see of a program that is recorded: a profiler that follows frame pointers, and gdb in the middle of an allocator, get to main."""
import os
import re
import shutil
import subprocess
import sys

from live import PROGRAMS, XHEAP, expect, run_tests

TRACE = "backtraces.xht"


def test_frame_pointers():
    run = subprocess.run([XHEAP, "record", "-q", "-o", TRACE, os.path.join(PROGRAMS, "framed")], stdout=subprocess.PIPE, text=True, timeout=100)
    expect(run.returncode == 0 and run.stdout.endswith("lost 0, with too many frames 0; samples some, lost 0\n"), f"{run.returncode}: {run.stdout}")


def backtrace(program, place):
    """What gdb shows when the program comes by there, after it was attached to."""
    recorder = subprocess.Popen([XHEAP, "record", "-q", "-o", TRACE, os.path.join(PROGRAMS, program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect(recorder.stdout.readline() == "ready\n", f"{program} is not ready")
    pid = int(open(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read().split()[0])
    expect(os.path.basename(os.readlink(f"/proc/{pid}/exe")) == program, f"{pid} is not {program}")
    gdb = subprocess.Popen(["gdb", "-nx", "-batch", "-ex", "set breakpoint pending off", "-p", str(pid), "-ex", f"break {place}", "-ex", "echo set\\n",
                            "-ex", "continue", "-ex", "backtrace", "-ex", "delete", "-ex", "detach"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           env=dict(os.environ, DEBUGINFOD_URLS="", HOME=os.getcwd()))
    said = ""
    while "set\n" not in said:
        line = gdb.stdout.readline()
        expect(line, f"gdb: {said}")
        said += line
    recorder.stdin.write("x")
    recorder.stdin.flush()
    said += gdb.communicate(timeout=60)[0]
    output = recorder.communicate(timeout=60)[0]
    expect(recorder.returncode == 0 and output == "ok\n", f"{program}: {recorder.returncode}, {output}")
    return said


def expect_chain(program, place, *names):
    said = backtrace(program, place)
    found = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S+)", said, re.M)
    shown = [name for name in found if name in names]
    expect(shown == list(names), f"{program}: {found}: {said}")
    foreign = [name for name in found if name in ("??", "<signal")]
    expect(len(foreign) <= 2, f"{program}: {foreign}: {said}")


def test_gdb():
    expect_chain("backtraced", "inside", "inside", "malloc", "inner", "outer", "main")


def test_gdb_in_libc():
    expect_chain("backtraced_static", "_int_malloc", "_int_malloc", "inner", "outer", "main")


if __name__ == "__main__":
    tests = [test_frame_pointers]
    if shutil.which("gdb"):
        tests += [test_gdb, test_gdb_in_libc]
    else:
        print("without gdb")
    sys.exit(run_tests(*tests))
