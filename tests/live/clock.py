#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Both clocks of a session: times must be those of the wall, also of a recording shorter than the rate takes to measure."""
import json
import os
import subprocess
import sys
import time

XHEAP = os.environ["XHEAP"]
TRACE = os.path.abspath("clock.xht")
NAMES = {"monotonic": "monotonic_raw", "": None}


def dump(what):
    done = subprocess.run([XHEAP, "dump", TRACE, what, "--format", "json"], stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(clock, seconds):
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    begin = time.monotonic()
    subprocess.run([XHEAP, "record", "-q", "-o", TRACE, "--", "sh", "-c", f"sleep {seconds}; :"], check=True,
                   env=dict(os.environ, XHEAP_CLOCK=clock), stdin=subprocess.DEVNULL)
    wall = time.monotonic() - begin
    facts = json.loads(subprocess.run([XHEAP, "info", TRACE, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
    if NAMES[clock] and facts["clock"] != NAMES[clock]:
        return f"the clock is {facts['clock']}"
    processes, events = dump("--processes"), dump("--events")
    for row in processes:
        if not 0 <= row["start_ns"] <= row["end_ns"] <= wall * 1e9:
            return f"a process out of time: {row}, {wall} s"
    sleep = [row for row in processes if os.path.basename(row["image"]).startswith("sleep")]
    lived = (sleep[0]["end_ns"] - sleep[0]["start_ns"]) / 1e9 if sleep else 0
    if not seconds <= lived <= wall:
        return f"sleep {seconds} took {lived} s of {wall} s"
    return "no events" if not events else None


def main():
    failed = 0
    for clock in NAMES:
        for seconds in (0.001, 0.3):
            why = check(clock, seconds)
            if why:
                failed += 1
                print(f"XHEAP_CLOCK={clock!r}, sleep {seconds}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
