#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A long recording whose folding gets a processor for some milliseconds now and then: it takes many times the wait limit, but it gets on, and so nothing is
lost."""
import os
import pathlib
import signal
import subprocess
import time

from live import PROGRAMS, XHEAP, expect, info, run_tests

ROUNDS, CYCLES, STOPPED_SECONDS, RUN_SECONDS, FOLDS = 700000, 6, 0.3, 0.004, 3


def folding(directory):
    """The process that folds the pieces in this directory, or None."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if len(words) > 2 and words[1] == b"--fold" and words[2].startswith(os.fsencode(directory)):
            return int(path.parent.name)
    return None


def throttle(pid):
    """How long it was kept from running, if it did not end before."""
    began = time.monotonic()
    try:
        for _ in range(CYCLES):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(STOPPED_SECONDS)
            os.kill(pid, signal.SIGCONT)
            time.sleep(RUN_SECONDS)
    except ProcessLookupError:
        return 0
    return time.monotonic() - began


def slowly():
    trace = pathlib.Path("slow.xht").absolute()
    seconds = []
    with subprocess.Popen([XHEAP, "record", "-q", "-o", trace, "--keep", "live", "--max-file", "1M", "--flush-timer", "50ms", "--wait-limit", "1s", "--",
                           f"{PROGRAMS}/ends_early", str(ROUNDS)]) as run:
        while run.poll() is None:
            pid = folding(f"{trace}.pieces") if len(seconds) < FOLDS else None
            if pid:
                seconds.append(throttle(pid))
            time.sleep(0.01)
    expect(run.returncode == 0, f"status {run.returncode}")
    facts = info(trace)
    expect(max(seconds, default=0) > 1, f"no folding took longer than the wait limit: {seconds}")
    expect(facts["lost_events"] == 0 and facts["complete"], f"{facts['lost_events']} lost, {facts['gaps'][:3]}")
    return f"folding took {max(seconds):.1f} s"


if __name__ == "__main__":
    raise SystemExit(run_tests(slowly))
