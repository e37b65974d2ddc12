#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A /dev/shm as containers have it, or hardly any: every process is recorded all the same.

usage: small_memory.py [TEST...]
"""
import glob
import os
import subprocess
import sys

from live import PROGRAMS, XHEAP, expect, info, run_tests

TRACE, SKIPPED = os.path.abspath("small.xht"), 77
IDLE, BUSY = 200, 20
# One after the other, and all alive at once: what is idle waits for the end of its input.
CROWD = f"""
for i in $(seq {IDLE}); do sleep 1000 & idle="$idle $!"; done
for i in $(seq {BUSY}); do '{PROGRAMS}/churn' 2 > /dev/null & busy="$busy $!"; done
wait $busy
kill $idle
wait
"""


def within(size, command):
    """Run it where /dev/shm is a file system of that size; what it prints."""
    run = subprocess.run(["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o size={size},mode=755 none /dev/shm && exec \"$@\"", "sh", *command],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, XHEAP_RUNTIME_DIR="/dev/shm", TMPDIR=os.getcwd()))
    expect(run.returncode == 0, f"{command[:4]} with {size}: status {run.returncode}: {run.stdout[-1500:]}")
    return run.stdout


def record(size, *command):
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    said = within(size, [XHEAP, "record", "-o", TRACE, "--", *command])
    facts = info(TRACE)
    known = {key: value for key, value in facts.items() if key != "processes"}
    expect(facts["complete"] and not facts["lost_events"] and "untraced_processes" not in facts, f"{said}: {known}")
    expect("untraced-execs" not in facts["options"], f"{said}: {known}")
    return facts, said


def idle_and_busy_processes():
    facts, _ = record("64m", "sh", "-c", CROWD)
    images = [os.path.basename(process.get("image", "")) for process in facts["processes"]]
    expect(images.count("churn") == BUSY, f"{images.count('churn')} of {BUSY} busy processes")
    # Some may have been ended before they could execute anything.
    forked = sum(process["exec_generation"] == 0 for process in facts["processes"]) - 1
    expect(forked >= IDLE + BUSY, f"{forked} of {IDLE + BUSY} forked processes")
    return f"{len(images)} processes"


def hardly_any():
    """What finds no room there lies on another file system, and is gone at the end."""
    places = [pattern for place in ("/tmp", "/var/tmp", "/run", os.getcwd()) for pattern in [f"{place}/xheap-region-0-*"]]
    before = {path for pattern in places for path in glob.glob(pattern)}
    facts, said = record("256k", "sh", "-c", f"'{PROGRAMS}/churn' 2; true")
    expect(len(facts["processes"]) >= 2, f"{facts['processes']}")
    expect("is full" in said, f"nothing is said: {said}")
    after = {path for pattern in places for path in glob.glob(pattern)}
    expect(not after - before, f"left behind: {after - before}")


if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
    print("only root may mount a file system of its own here")
    sys.exit(SKIPPED)
sys.exit(run_tests(idle_and_busy_processes, hardly_any))
