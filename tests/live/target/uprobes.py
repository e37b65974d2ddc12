#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A function with a breakpoint of the kernel (a uprobe, as of bpftrace, perf or bcc) is left alone: the program continues, and the trace names the function."""
import os
import re
import shutil
import subprocess
import sys

from live import PROGRAMS, attach, expect, info, run_tests, wait_until_begun, xheap

EVENTS = "/sys/kernel/tracing/uprobe_events"
PROGRAM, GROUP = "probed", f"xheap_{os.getpid()}"


def output_of(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


def offset_of(name):
    """The function's place in the file."""
    address = int(re.search(rf"^([0-9a-f]+) T {name}$", output_of("nm", PROGRAM), re.M).group(1), 16)
    for found in re.finditer(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", output_of("readelf", "-lW", PROGRAM)):
        offset, low, size = (int(text, 16) for text in found.groups())
        if low <= address < low + size:
            return address - low + offset
    return 0


def add_event(text):
    """Without O_APPEND all events of the machine would be removed; open() would search for the end, which the file does not allow."""
    events = os.open(EVENTS, os.O_WRONLY | os.O_APPEND)
    os.write(events, text.encode())
    os.close(events)


class Probe:
    """A uprobe on one of the program's functions."""

    def __init__(self, function):
        self.function = function

    def enable(self, is_on):
        with open(f"{os.path.dirname(EVENTS)}/events/{GROUP}/{self.function}/enable", "w", encoding="ascii") as file:
            file.write(str(int(is_on)))

    def __enter__(self):
        add_event(f"p:{GROUP}/{self.function} /proc/{os.getpid()}/cwd/{PROGRAM}:{offset_of(self.function):#x}\n")
        self.enable(True)
        return self

    def __exit__(self, *_):
        self.enable(False)
        add_event(f"-:{GROUP}/{self.function}\n")


def hits():
    return sum(int(line.split()[-1]) for line in open(f"{os.path.dirname(EVENTS)}/uprobe_profile") if PROGRAM in line)


def expect_named(trace, function, said):
    named = f"not every function could be hooked: {function} of"
    expect(named in said and "uprobe" in said, said)
    facts = info(trace)
    expect(not facts["complete"] and facts["lost_events"] == 0, facts)


def check_attach(function):
    with Probe(function):
        program = subprocess.Popen([f"./{PROGRAM}", "seldom", "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        wait_until_begun(program)
        said = attach("record", "-o", "attached.xht", "-p", program.pid, "--duration", "300ms")
        expect(program.poll() is None, f"the program ended with status {program.returncode}: {said}")
    output, _ = program.communicate("", timeout=100)
    expect(program.returncode == 0 and output == "bad 0\n", f"status {program.returncode}: {output}")
    expect_named("attached.xht", function, said)


def test_attach():
    check_attach("malloc")
    check_attach("free")


def test_record():
    with Probe("malloc"):
        before = hits()
        said = xheap("record", "-o", "recorded.xht", "--", f"./{PROGRAM}", "idle", stdin=subprocess.DEVNULL)
        expect(hits() > before, "the uprobe is not hit")
    expect_named("recorded.xht", "malloc", said)


if __name__ == "__main__":
    if not os.access(EVENTS, os.W_OK):
        print(f"{EVENTS} cannot be written: the kernel has no uprobes, or this is not root")
        sys.exit(77)
    shutil.copy(f"{PROGRAMS}/attached_static", PROGRAM)
    sys.exit(run_tests(test_attach, test_record))
