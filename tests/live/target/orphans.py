#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A forked child that has ended is shown as ended, and how, also when nobody waits for it and the recording ends at that moment."""
import os
import subprocess
import sys

from live import PROGRAMS, XHEAP, expect, info, run_tests, stop_session, told, wait_for, xheap

ROUNDS, BLOCKS, STATUS = 15, 60000, 7
KILLED = 9
ORPHAN = os.path.join(PROGRAMS, "orphan")


def child_after(count, status):
    xheap("record", "-q", "-o", "orphan.xht", "--", ORPHAN, count, status)
    processes = info("orphan.xht")["processes"]
    expect(len(processes) == 2 and processes[0]["status"] == 0, f"processes: {processes}")
    expect("end_us" in processes[1] and processes[1]["end_us"] >= processes[1]["start_us"], f"the child has no end: {processes[1]}")
    return processes[1]


def exits():
    for i in range(ROUNDS):
        child = child_after(BLOCKS if i % 3 else 100, STATUS)
        expect((child["end"], child.get("status")) == ("exit", STATUS), f"round {i}: {child}")


def kills():
    """The kernel knows of the signal as long as somebody has the process's pidfd; one that was never seen alive is of unknown end."""
    seen = []
    for i in range(ROUNDS):
        child = child_after(BLOCKS if i % 3 else 100, -KILLED)
        expect(child["end"] == "unknown" or (child["end"], child.get("signal")) == ("signal", KILLED), f"round {i}: {child}")
        seen.append(child["end"])
    return f"{seen.count('signal')} of {ROUNDS} signals seen"


def stays():
    """A parent that runs on without waiting: the logger meets a child that has ended, and the kernel still has its status."""
    for status, expected in ((STATUS, ("exit", STATUS, None)), (-KILLED, ("signal", None, KILLED))):
        xheap("start", "orphans", "-o", "stays.xht")
        try:
            with subprocess.Popen([XHEAP, "launch", "orphans", "--", ORPHAN, "100", str(status), "stay"], stdin=subprocess.PIPE) as parent:
                wait_for("events of the child", lambda: sum(target["events"] for target in told("query", "orphans")["targets"]) >= 1200)
                told("query", "orphans")  # the logger has been once around since
                parent.stdin.close()
        finally:
            stop_session("orphans")
        child = info("stays.xht")["processes"][-1]
        os.unlink("stays.xht")
        expect((child["end"], child.get("status"), child.get("signal")) == expected, f"{expected}: {child}")


if __name__ == "__main__":
    sys.exit(run_tests(exits, kills, stays))
