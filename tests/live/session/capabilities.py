#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What root's logger may do once it has begun, as the kernel says; and that it suffices to record other users' processes and to write into their directories."""
import glob
import os
import pathlib
import subprocess
import sys

from live import PROGRAMS, SOURCE, attach, expect, info, run_tests, stop_session, told, xheap

SKIP, USER = 77, 64023
# Numbers of linux/capability.h, as docs/security.md lists them.
KEPT = {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "KILL": 5, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_NICE": 23, "SYS_RESOURCE": 24}


def facts(path):
    """The rows of a file `status` in /proc."""
    return dict(line.split(":", 1) for line in pathlib.Path(path).read_text().splitlines() if ":" in line)


def kept():
    """All threads have these capabilities at most, also after an exec, and no seccomp filter."""
    mask = sum(1 << number for number in KEPT.values())
    own = int(facts("/proc/self/status")["CapEff"], 16)
    xheap("start", "own", "-p", "0", "-o", "own.xht")
    try:
        xheap("launch", "own", "--", "true")
        logger = told("query", "own")["logger_pid"]
        threads = glob.glob(f"/proc/{logger}/task/*/status")
        expect(threads, "no logger")
        for path in threads:
            rows = facts(path)
            for name in "CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb":
                expect(not int(rows[name], 16) & ~mask, f"{path}: {name} {rows[name]}")
            expect(int(rows["CapEff"], 16) == own & mask, f"{path}: CapEff {rows['CapEff']}, not {own & mask:x}")
            expect(rows["Seccomp"].strip() == facts("/proc/self/status")["Seccomp"].strip(), f"{path}: a seccomp filter")
    finally:
        stop_session("own")


def suffices():
    """A process of another user is attached to, its trace is written into a closed directory of that user, and detached from."""
    os.mkdir("theirs", 0o700)
    os.chown("theirs", USER, USER)
    process = subprocess.Popen([os.path.join(PROGRAMS, "claimed")], user=USER, group=USER, extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect(process.stdout.readline() == "ready\n", "the process does not begin")
    try:
        attach("start", "own", "-p", process.pid, "-o", "theirs/own.xht")
        expect(len(told("query", "own")["targets"]) == 1, "it is not recorded")
        xheap("stop", "own")
        expect(process.poll() is None, "it has ended")
    finally:
        stop_session("own")
        process.stdin.close()
        process.wait()
    expect(info("theirs/own.xht")["complete"], xheap("info", "theirs/own.xht"))


def documented():
    """The page has the same list."""
    text = (SOURCE / "docs/security.md").read_text()
    missing = [name for name in KEPT if f"`{name}`" not in text]
    expect(not missing, f"docs/security.md does not say {missing}")


if os.geteuid():
    print("not root: there are no capabilities to give up")
    sys.exit(SKIP)
sys.exit(run_tests(kept, suffices, documented))
