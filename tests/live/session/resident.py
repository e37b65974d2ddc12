#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The resident memory by kind of mapping, as the logger reads it, is that of the kernel's smaps, which is read here by other means.

attached  a process that has mapped known amounts of each kind: every kind agrees to the byte, and so do the largest mappings
begun     a recorded command with 20,000 more mappings: the sum and the number of mappings agree, and the blocks are told from the rest
"""
import json
import os
import re
import resource
import struct
import subprocess
import sys

from live import PROGRAMS, XHEAP, expect, run_tests, stop_session, wait_for, xheap

NAME = f"resident-{os.getpid()}"
PAGE, MIB = 4096, 1 << 20
KINDS = ("files", "stacks", "break", "anonymous", "code", "shared", "recorder", "other", "unread")
MANY = 20000
DATA_LIMIT = 1 << 40


def smaps(pid):
    """(low, high, permissions, path, resident bytes) of each mapping."""
    rows = []
    for line in open(f"/proc/{pid}/smaps"):
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+\s*(.*)", line)
        if head:
            rows.append([int(head[1], 16), int(head[2], 16), head[3], head[4], 0])
        elif line.startswith("Rss:"):
            rows[-1][4] = int(line.split()[1]) * 1024
    return rows


def present(pid, low, high):
    """Resident bytes of part of a mapping."""
    with open(f"/proc/{pid}/pagemap", "rb") as file:
        file.seek(low // PAGE * 8)
        entries = struct.unpack(f"<{(high - low) // PAGE}Q", file.read((high - low) // PAGE * 8))
    return sum(entry >> 63 for entry in entries) * PAGE


def kind_of(low, high, permissions, path, stacks):
    if path == "[heap]":
        return "break"
    if path == "[stack]" or any(low < end and begin < high for begin, end in stacks):
        return "stacks"
    if not path or path.startswith("[anon:"):
        return "code" if "x" in permissions else "anonymous"
    if path.startswith(("/memfd:", "/dev/shm/", "/dev/zero", "/SYSV")):
        return "shared"
    return "other" if path.startswith("[") else "files"


def expected(pid, stacks, before):
    """By kind. The recorder's memory is what was not there `before`; None: its region tells, and the rest is anonymous or code."""
    sums = dict.fromkeys(KINDS, 0)
    for low, high, permissions, path, resident in smaps(pid):
        if before is not None:
            new = high - low - sum(max(0, min(high, end) - max(low, begin)) for begin, end, *_ in before)
            if new == high - low:
                sums["recorder"] += resident
                continue
            if new:
                # The kernel has joined it with the program's own.
                own = sum(present(pid, max(low, begin), min(high, end)) for begin, end, *_ in before if begin < high and low < end)
                sums["recorder"] += resident - own
                resident = own
        elif "/region." in path:
            sums["recorder"] += resident
            continue
        sums[kind_of(low, high, permissions, path, stacks)] += resident
    return sums


def begin(*words, command=()):
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    program = subprocess.Popen([*command, os.path.join(PROGRAMS, "resident"), "mapped.bin", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT, hard)))
    pid = int(program.stdout.readline())
    return program, pid, [tuple(int(word, 16) for word in program.stdout.readline().split()) for _ in range(3)]


def rows_of(trace, subject):
    return [json.loads(line) for line in xheap("dump", trace, f"-{subject}", "-format", "json").splitlines() if line.startswith("{")]


def last_split(trace, pid, least):
    """The last sample that was read by kind, if it is of nearly all that is resident now."""
    rows = [row for row in rows_of(trace, "memory") if row["pid"] == pid and "mappings" in row]
    return rows[-1] if rows and rows[-1]["resident_bytes"] >= least else None


def split_of(row):
    return {kind: row[f"{kind}_bytes"] for kind in KINDS}


def resident_now(pid):
    return sum(row[4] for row in smaps(pid))


def check_amounts(split, more, slack=0):
    """What the program has touched at least; libraries and xheap come on top of some. slack: bytes that may not have been read again."""
    least = {"files": 3 * MIB, "stacks": 9 * MIB // 4, "break": MIB, "anonymous": 13 * MIB + more, "code": 2 * MIB, "shared": 5 * MIB}
    for kind, amount in least.items():
        expect(amount - slack <= split[kind] < amount + 11 * MIB, f"{kind}: {split[kind]} bytes, {amount} were touched")
    heap = split["break"] + split["anonymous"] - 14 * MIB - more
    expect(10 * MIB - slack <= heap < 11 * MIB, f"10 MiB were allocated, {heap} bytes are of that kind: pages that were only read count")
    expect(split["unread"] == 0, f"{split['unread']} bytes were not read")


def attached():
    program, pid, stacks = begin()
    try:
        before = smaps(pid)
        xheap("start", NAME, "-o", "attached.xht", "-p", pid)

        def flushed():
            xheap("flush", NAME)
            return last_split("attached.xht", pid, resident_now(pid) * 127 // 128)
        # The logger reads some of the program's files in its memory after the attach, so the second split is compared.
        wait_for("a split", flushed)
        program.stdin.write("more\n")
        program.stdin.flush()
        wait_for("growth", lambda: resident_now(pid) > sum(row[4] for row in before) + 2 * MIB)
        row = wait_for("another split", flushed)
        split, truth = split_of(row), expected(pid, stacks, before)
        expect(split == truth, f"the logger has {split},\nsmaps has {truth}")
        expect(row["mappings"] == len(smaps(pid)), f"{row['mappings']} mappings, {len(smaps(pid))} in smaps")
        check_amounts(split, 2 * MIB)
        return check_parts(pid, row)
    finally:
        stop_session(NAME)
        program.communicate()


def check_parts(pid, row):
    """Each part is as large as smaps says of its addresses, and the largest are there."""
    parts = [part for part in rows_of("attached.xht", "mappings") if part["time_ns"] == row["time_ns"]]
    known = smaps(pid)
    for part in parts:
        low, high = int(part["base"], 16), int(part["end"], 16)
        inside = sum(resident for begin, end, _, path, resident in known if low <= begin and end <= high and (part["kind"] != "files" or path == part["name"]))
        partly = any(begin < low < end or begin < high < end for begin, end, *_ in known)
        expect(partly or inside == part["resident_bytes"], f"{part}: {inside} bytes in smaps")
    names = {part.get("name", "") for part in parts}
    expect(any(name.endswith("/mapped.bin") for name in names), f"the mapped file is not in {names}")
    expect(any(part["kind"] == "anonymous" and 14 * MIB <= part["resident_bytes"] for part in parts), f"no 14 MiB in {parts}")
    if any(path == "[anon:resident test]" for *_, path, _ in known):
        expect("[anon:resident test]" in names, f"the named mapping is not in {names}")
    return f"{len(parts)} mappings of {row['mappings']}"


def begun():
    program, pid, stacks = begin(str(MANY), command=(XHEAP, "record", "-q", "-o", "begun.xht", "--flush-timer", "50ms"))
    try:
        row = wait_for("a split", lambda: last_split("begun.xht", pid, resident_now(pid) * 127 // 128))
        split, truth = split_of(row), expected(pid, stacks, None)
        # The logger grows the region as it pleases, and may have read before the last pages were touched.
        distance = abs(sum(split.values()) - split["recorder"] - sum(truth.values()) + truth["recorder"])
        expect(distance <= sum(truth.values()) // 32 + MIB, f"the logger has {split},\nsmaps has {truth}")
        expect(abs(row["mappings"] - len(smaps(pid))) < 100 and row["mappings"] > MANY, f"{row['mappings']} mappings, {len(smaps(pid))} in smaps")
        # A rise of less than a 128th of all is not read again. Where the program stands, "attached" compares to the byte.
        slack = sum(truth.values()) // 127
        for kind in ("stacks", "break", "shared"):
            expect(abs(split[kind] - truth[kind]) <= slack, f"{kind}: {split[kind]} and in smaps {truth[kind]}")
        check_amounts(split, MANY * PAGE, slack)
    finally:
        program.communicate()
    expect(program.returncode == 0, f"status {program.returncode}")
    check_info(row)
    return f"{row['mappings']} mappings, {sum(split.values()) // MIB} MiB"


def check_report(row):
    """The 160 blocks of 64 KiB, of which every second one was freed, are told from what the program has mapped beside them."""
    resident = json.loads(xheap("report", "begun.xht", "-format", "json"))["resident"]
    heap = resident["live_bytes"] + resident["rounding_bytes"] + resident["free_bytes"]
    # What the program takes below the break by itself counts as free memory of the main arena there.
    expect(5 * MIB <= resident["live_bytes"] < 6 * MIB and 6 * MIB - MIB // 4 <= resident["free_bytes"] < 7 * MIB, f"{resident}")
    expect(heap + resident["other_bytes"] == resident["read_bytes"] == sum(split_of(row).values()), f"{resident} and {row}")
    expect(sum(resident["others"].values()) == resident["other_bytes"], f"{resident}")
    least = {"files": 3 * MIB, "stacks": 9 * MIB // 4, "anonymous": 13 * MIB + MANY * PAGE, "code": 2 * MIB, "shared": 5 * MIB}
    for kind, amount in least.items():
        slack = 11 * MIB if kind == "files" else MIB
        expect(amount <= resident["others"][kind] < amount + slack, f"{kind}: {resident['others'][kind]} bytes are not heap, of {amount}")


def cgroup_limit():
    """The least limit of this process's cgroup, where the recorded one was, too. None: there is no limit."""
    found = []
    for line in open("/proc/self/cgroup"):
        _, controllers, path = line.strip().split(":", 2)
        root, name = {"": ("/sys/fs/cgroup", "memory.max"), "memory": ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")}.get(controllers, (None, None))
        while root and path:
            try:
                text = open(f"{root}{path}/{name}").read().strip()
                found += [int(text)] if text.isdigit() and int(text) < 1 << 62 else []
            except OSError:
                pass
            path = path[:path.rfind("/")] if path != "/" else ""
    return min(found, default=None)


def check_info(row):
    process = json.loads(xheap("info", "begun.xht", "-format", "json"))["processes"][row["process"]]
    resident = process["resident"]
    expect(resident["max_bytes"] >= row["resident_bytes"], f"{resident} and {row}")
    read = sum(resident[f"{kind}_bytes"] for kind in KINDS)
    check_report(row)
    limits = {"data_bytes": DATA_LIMIT, "machine_bytes": os.sysconf("SC_PHYS_PAGES") * PAGE}
    space, cgroup = resource.getrlimit(resource.RLIMIT_AS)[0], cgroup_limit()
    limits.update({"address_space_bytes": space} if space != resource.RLIM_INFINITY else {})
    limits.update({"cgroup_bytes": cgroup} if cgroup else {})
    expect(process["memory_limits"] == limits, f"{process['memory_limits']}, not {limits}")
    expect(resident["read_bytes"] == read and 31 * resident["max_bytes"] // 32 - MIB <= read, f"{resident}: {read} bytes by kind")


sys.exit(run_tests(attached, begun))
