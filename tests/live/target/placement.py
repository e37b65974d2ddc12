#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of all kinds are traced, and where the recorder's memory lies: not where a program's null pointers, fixed mappings or growing heap go. All of them behave as
untraced, and each call of theirs is in the trace."""
import collections
import os
import struct
import subprocess
import sys

from live import PROGRAMS, XHEAP, dump, expect, loader_of, run_tests, wait_for

TRACE = "placement.xht"
KINDS = ("pie", "low", "static", "static_high", "static_pie", "static_full", "static_high_full", "pie_by_loader", "low_by_loader")
LOWEST, HEAP_ROOM = 4 << 20, 1 << 30
SIZES = range(7000, 8000)
LOW_FIRST = 0x10000     # what vm.mmap_min_addr leaves to programs
REPEATS = 2             # of what maps most: places are random


def fill_last_page(path, filled):
    """A copy of the program whose code goes on to the end of its last page, as one in 85 does by chance."""
    image = bytearray(open(path, "rb").read())
    offset, = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    for at in range(offset, offset + size * count, size):
        kind, flags = struct.unpack_from("<II", image, at)
        if kind == 1 and flags & 1:
            address, _, bytes = struct.unpack_from("<QQQ", image, at + 16)
            bytes += -(address + bytes) % 4096
            struct.pack_into("<QQ", image, at + 32, bytes, bytes)
    with open(filled, "wb") as file:
        file.write(image)
    os.chmod(filled, 0o755)


def program(kind, *words):
    path, name = os.path.join(PROGRAMS, f"placement_{kind}"), f"placement_{kind}"
    if kind.endswith("_by_loader"):
        path = path.removesuffix("_by_loader")
        return [loader_of(path), path, *map(str, words)]
    if kind.endswith("_full"):
        path = os.path.abspath(name)
        if not os.path.exists(path):
            fill_last_page(os.path.join(PROGRAMS, name.removesuffix("_full")), path)
    return [path, *map(str, words)]


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


def expect_as_untraced(kind, *words, times=1):
    what = f"{kind} {' '.join(map(str, words))}"
    expected = run(*program(kind, *words))
    expect(expected[0] == 0, f"{what}: untraced: {expected}")
    for _ in range(times):
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
        expect_as_untraced(kind, "map", LOW_FIRST, 0x68000000, times=REPEATS)


def room_behind_code(kind):
    """Bytes of the code's last page that are nobody's: where a static program is patched by way of them, it needs nothing else below 4 GiB."""
    said = subprocess.run(["readelf", "-lW", program(kind)[0]], stdout=subprocess.PIPE, text=True, check=True).stdout
    ends = [int(words[2], 16) + int(words[5], 16) for words in map(str.split, said.splitlines()) if words[:1] == ["LOAD"] and "E" in words[6:-1]]
    return -ends[0] % 4096


def test_all_low_memory_mapped():
    """As qemu-user does for a guest of 32 bits."""
    for kind in KINDS:
        if kind.startswith("static") and room_behind_code(kind) < 1024:
            print(f"{kind}: its code fills its last page")
        else:
            expect_as_untraced(kind, "map", LOW_FIRST, 1 << 32, times=REPEATS)


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
                                             if b"/placement_" in open(f"/proc/{pid}/cmdline", "rb").read()
                                             and "xheap" not in os.path.basename(os.readlink(f"/proc/{pid}/exe"))), None))


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


def attach(shown, *options):
    recording = subprocess.Popen([XHEAP, "record", "-o", TRACE, "-p", str(shown.pid), *options], stderr=subprocess.PIPE, text=True)
    line = recording.stderr.readline()
    expect(str(shown.pid) in line and "paused for" in line, f"not attached: {line}")
    return recording


def expect_recorded(what, recording):
    said = recording.communicate(timeout=60)[1]
    expect(recording.returncode == 0, f"{what}: record's status {recording.returncode}: {said}")


def expect_new_mappings_apart(what, shown, before, start, end):
    new = set(mappings(shown.pid)) - before
    expect(any("region." in line for _, _, line in new), f"{what}: no region")
    for low, high, line in new:
        expect(low >= LOWEST and (high <= start or low >= end + HEAP_ROOM or "[heap]" in line or "placement" in line), f"{what}: {line}, the heap is {start:#x} to {end:#x}")


def attach_apart(what, command):
    shown = Shown(command)
    try:
        word, start, end = shown.stdout.readline().split()
        before = set(mappings(shown.pid))
        recording = attach(shown)
        expect_new_mappings_apart(what, shown, before, int(start, 16), int(end, 16))
    finally:
        shown.end(what)
    expect_recorded(what, recording)
    expect_all_calls(what, 1)


def test_attached():
    for kind in KINDS:
        attach_apart(kind, program(kind, "show"))


def test_attached_without_other_room():
    """Where the kernel would place memory of ours just above the heap."""
    attach_apart("cover", ["sh", "-c", "ulimit -s 4000000; exec \"$@\"", "sh", *program("static", "cover")])


def changed_code(pid):
    """Mappings of code that are not as in the file, to the end of their last page."""
    for line in open(f"/proc/{pid}/maps"):
        words = line.rstrip("\n").split(maxsplit=5)
        if len(words) > 5 and words[1][2] == "x" and words[5].startswith("/"):
            low, high = (int(word, 16) for word in words[0].split("-"))
            with open(f"/proc/{pid}/mem", "rb") as memory, open(words[5], "rb") as file:
                memory.seek(low)
                file.seek(int(words[2], 16))
                there, here = memory.read(high - low), file.read(high - low)
                if there != here.ljust(high - low, b"\0"):
                    yield words[5]


def test_detached():
    """All code is as in the files again, with what lies behind it, and nothing is left."""
    for kind in KINDS:
        shown = Shown(program(kind, "show"))
        try:
            shown.stdout.readline()
            before = set(mappings(shown.pid))
            expect_recorded(kind, attach(shown, "--duration", "100ms"))
            changed, left = list(changed_code(shown.pid)), set(mappings(shown.pid)) - before
            expect(not changed and not left, f"{kind}: changed {changed}, left {left}")
        finally:
            shown.end(kind)


def test_detached_child():
    """One that was forked from a process that was attached to."""
    for kind in KINDS:
        shown = Shown(program(kind, "fork"))
        try:
            shown.stdout.readline()
            before = {line for _, _, line in mappings(shown.pid) if "[heap]" not in line}
            recording = attach(shown, "--duration", "300ms")
            os.write(shown.process.stdin.fileno(), b"x")
            for _ in range(2):
                shown.stdout.readline()
            expect_recorded(kind, recording)
            pids = shown.pid, child_of(shown.process)
            for pid in pids:
                left = {line for _, _, line in mappings(pid) if "[heap]" not in line} - before
                expect(not list(changed_code(pid)) and not left, f"{kind}: {list(changed_code(pid))}, {left} left in {pid} of {pids}")
        finally:
            os.write(shown.process.stdin.fileno(), b"x")
            shown.end(kind)


if __name__ == "__main__":
    sys.exit(run_tests(test_null, test_low_memory_is_free, test_fixed_maps, test_all_low_memory_mapped, test_heap_has_room, test_attached, test_attached_without_other_room,
                       test_detached, test_detached_child))
