#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap image add --service, under a real systemd: all that a unit executes is recorded from its next start, and nothing of another unit."""
import json
import sys

from live import expect, run_tests
from boot.machine import END, Machine, blocks_of, why_not

SERVED = "/opt/xheap/tests/live/served"
# Its parts: a program before the main one, and a shell with children, as another user behind a filter of system calls.
MEANT = ("[Service]\nType=oneshot\nDynamicUser=yes\nPrivateTmp=yes\nSystemCallFilter=@system-service\nStandardOutput=append:/mnt/log/meant\n"
         f"ExecStartPre={SERVED} 100 0\nExecStart=/bin/sh -c '{SERVED} 200 0; {SERVED} 300 0; true'\n")
OTHER = f"[Service]\nType=oneshot\nStandardOutput=append:/mnt/log/other\nExecStart={SERVED} 400 0\n"
WATCH = "[Service]\nExecStart=\nExecStart=/usr/local/bin/xheap image watch --deadline 10000\n"
SCRIPT = """systemctl start meant.service
xheap image add --service meant
until xheap image list --format json | grep -q '"in_force": 1'; do sleep 0.05; done
systemctl start meant.service other.service
systemctl start meant.service
until xheap image list --format json > /mnt/images.json; grep -q '"followed": 4,' /mnt/images.json; do sleep 0.05; done
""" + END
STARTS = 3


def service():
    """The second and third start of the unit are recorded, with all their processes; the first one was before the option."""
    machine = Machine("service", {"meant.service": MEANT, "other.service": OTHER})
    extra = machine.disk / "units/xheap-images.service.d"
    extra.mkdir()
    (extra / "deadline.conf").write_text(WATCH)
    taken, console = machine.start(SCRIPT)
    meant, other = machine.oracle("meant"), machine.oracle("other")
    expect(len(meant) == 3 * STARTS and len(other) == 1, f"{meant}, {other}: {machine.said()}")
    row = json.loads((machine.out / "images.json").read_text())["images"][0]
    found = {outcome: count for outcome, count in row["starts"].items() if count}
    # Each time the first program and the shell; its children are recorded by its session.
    expect(row["image"] == "meant.service" and found == {"traced": 4, "followed": 4}, f"{row}")
    traces = sorted((machine.disk / "var/traces").glob("meant.service.*.xht"))
    recorded = {}
    for trace in traces:
        recorded.update(blocks_of(trace, "served"))
    expected = dict(meant[3:])
    expect(recorded == expected, f"{recorded} in {traces}, not {expected}: {console[-2000:]}")
    return f"booted in {taken:.1f} s"


reason = why_not()
if reason:
    print(reason)
    sys.exit(77)
sys.exit(run_tests(service))
