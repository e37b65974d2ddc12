#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that execute others under a seccomp filter, which kills for each system call of xheap's own: nobody is killed, and no call is missing."""
import os
import subprocess
import sys

from live import LONG_SECONDS, PROGRAMS, XHEAP, dump_each, expect, info, run_tests

BLOCKS, BYTES = 500, 777


def check(how, by):
    """The program that is executed is in the trace, with all of its blocks."""
    trace = f"{how}-{by}.xht"
    run = subprocess.run([XHEAP, "record", "--quiet", "-o", trace, "--", f"{PROGRAMS}/seccomp", how, by], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         timeout=LONG_SECONDS)
    expect(run.returncode == 0 and run.stdout == "ok\n", f"{how} {by}: {run}")
    facts = info(trace)
    after = [process["id"] for process in facts["processes"] if process.get("command", "").endswith(" after")]
    expect(len(after) == 1, f"{how} {by}: {facts['processes']}")
    made = sum(row["action"] == "Alloc" and row["size"] == str(BYTES) and row["process"] == str(after[0]) for row in dump_each(trace))
    expect(made == BLOCKS and facts["missing_calls"] == 0, f"{how} {by}: {made} blocks, {facts['missing_calls']} missing calls")
    return facts


def without_filter():
    for by in ("exec", "fork", "spawn"):
        check("open", by)


def executed():
    check("deny", "exec")


def forked():
    check("deny", "fork")


def spawned():
    """A child that shares its parent's memory has only its parent's ids there."""
    check("deny", "spawn")


def cloned():
    """A child of a bare system call has its parent's ids in its memory."""
    check("deny", "clone")


def unprivileged():
    """A logger that may not suspend filters leaves the program alone, and says that one ran untraced."""
    for by in ("exec", "fork"):
        trace = f"unprivileged-{by}.xht"
        run = subprocess.run(["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", XHEAP, "record", "--quiet", "-o", trace, "--", f"{PROGRAMS}/seccomp", "deny", by],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
        expect(run.returncode == 0 and run.stdout == "ok\n", f"{by}: {run}")
        facts = info(trace)
        untraced = [process for process in facts["processes"] if process.get("command", "").endswith(" after") and process.get("events")]
        expect(not facts["complete"] and not untraced, f"{by}: {facts['processes']}")


if os.geteuid():
    print("only root may suspend filters")
    sys.exit(77)
sys.exit(run_tests(without_filter, executed, forked, spawned, cloned, unprivileged))
