#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where the recorder's memory lies: not where a program's null pointers, fixed mappings or growing heap go. All of them behave as
untraced, and each call of theirs is in the trace."""
import collections
import os
import subprocess
import sys

from live import PROGRAMS, XHEAP, dump, expect, info, run_tests, wait_for

TRACE = "placement.xht"
KINDS = ("pie", "low", "static", "static_high", "static_pie")
LOWEST, HEAP_ROOM = 4 << 20, 1 << 30
SIZES = range(7000, 8000)
LOW_FIRST = 0x10000     # what vm.mmap_min_addr leaves to programs
REPEATS = 3             # places are random


def program(kind, *words):
    return [os.path.join(PROGRAMS, f"placement_{kind}"), *map(str, words)]


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    return done.returncode, done.stdout


def record(*command):
    return run(XHEAP, "record", "-q", "-o", TRACE, "--", *command)


def expect_all_calls(what, times=2):
    """Each size was asked for as often as the program did, and each block was given back."""
    asked, live, freed = collections.Counter(), {}, 0
    for row in dump(TRACE):
        if row["action"] == "Alloc" and int(row["size"]) in SIZES:
            asked[int(row["size"])] += 1
            live[row["address"]] = True
        elif row["action"] == "Free":
            freed += live.pop(row["address"], False)
    wrong = {size: asked[size] for size in SIZES if asked[size] != times}
    expect(not wrong and not live and freed == times * len(SIZES), f"{what}: {len(wrong)} sizes of {len(SIZES)} are not there {times} times, {freed} freed")


def expect_as_untraced(kind, *words):
    what = f"{kind} {' '.join(map(str, words))}"
    expected = run(*program(kind, *words))
    expect(expected[0] == 0, f"{what}: untraced: {expected}")
    for _ in range(REPEATS):
        traced = record(*program(kind, *words))
        expect(traced == expected, f"{what}: {traced}, untraced {expected}")
        expect_all_calls(what)


def test_null():
    """What lies less than 4 MiB from a null pointer is nobody's."""
    for kind in KINDS:
        expect_as_untraced(kind, "null", 0, LOWEST)


def test_low_memory_is_free():
    for kind in KINDS:
        expect_as_untraced(kind, "free", LOW_FIRST, LOWEST)


def test_fixed_maps():
    """As wine's preloader, dosemu, and qemu-user with guest_base 0 do."""
    for kind in KINDS:
        expect_as_untraced(kind, "map", LOW_FIRST, 0x110000)
        expect_as_untraced(kind, "map", LOW_FIRST, 0x68000000)


def mappings(pid):
    for line in open(f"/proc/{pid}/maps"):
        low, high = (int(word, 16) for word in line.split()[0].split("-"))
        yield low, high, line.strip()


def expect_room(what, process):
    word, start, end = process.stdout.readline().split()
    expect(word == "break", f"{what}: {word}")
    start, end = int(start, 16), int(end, 16)
    for low, high, line in mappings(process.pid):
        expect(low >= LOWEST, f"{what}: {line}")
        expect("[heap]" in line or high <= start or low >= end + HEAP_ROOM, f"{what}: {line}, the heap is {start:#x} to {end:#x}")


def child_of(process):
    """The command of `xheap record`; the process itself when it is the program."""
    return wait_for("program", lambda: next((int(pid) for pid in open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
                                             if "placement" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))), None))


class Shown:
    def __init__(self, command, pid=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.stdout = self.process.stdout
        self.pid = pid or self.process.pid

    def end(self, what):
        output, _ = self.process.communicate("x", timeout=60)
        expect(self.process.returncode == 0 and output == "ok\n", f"{what}: status {self.process.returncode}, {output}")


def test_heap_has_room():
    """From its exec on, also where the heap does not exist yet."""
    for kind in KINDS:
        for random in ((), ("setarch", "-R"), ("sh", "-c", "ulimit -s unlimited; exec \"$@\"", "sh")):
            shown = Shown([*random, XHEAP, "record", "-q", "-o", TRACE, "--", *program(kind, "show")])
            try:
                shown.pid = child_of(shown.process)
                expect_room(f"{random} {kind}", shown)
            finally:
                shown.end(kind)
            expect_all_calls(kind)


def test_attached():
    for kind in KINDS:
        shown = Shown(program(kind, "show"))
        try:
            word, start, end = shown.stdout.readline().split()
            before = list(mappings(shown.pid))
            recording = subprocess.Popen([XHEAP, "record", "-q", "-o", TRACE, "-p", str(shown.pid)])
            wait_for("region", lambda: any("region." in line for _, _, line in mappings(shown.pid)))
            for low, high, line in set(mappings(shown.pid)) - set(before):
                expect(low >= LOWEST and (high <= int(start, 16) or low >= int(end, 16) + HEAP_ROOM or "[heap]" in line or "placement" in line),
                       f"{kind}: {line}, the heap is {start} to {end}")
        finally:
            shown.end(kind)
        expect(recording.wait(60) == 0, f"{kind}: record's status")
        expect_all_calls(kind, 1)


if __name__ == "__main__":
    sys.exit(run_tests(test_null, test_low_memory_is_free, test_fixed_maps, test_heap_has_room, test_attached))
