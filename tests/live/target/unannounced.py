#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that execute others by system calls of their own, past the functions of the C library: what they execute is named, and no trace is complete."""
import json
import os
import subprocess
import sys

from live import PROGRAMS, XHEAP, attach, expect, info, run_tests, wait_for, xheap

PROGRAM = f"{PROGRAMS}/unannounced"
TRACE = "unannounced.xht"
WAIT = "read line; exit 7"  # until the test says so
NOT_SEEN = "its exec was not seen"


def named_in(trace):
    """Processes of a trace, perhaps one that grows, that ran untraced."""
    shown = subprocess.run([XHEAP, "dump", trace, "--processes", "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    return [row for row in rows if "note" in row]


def record(*command, reason=NOT_SEEN):
    """Records a command that ends with 7 when it has read a line, which it gets when somebody was named for that reason. The trace's facts, and what was said."""
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    with subprocess.Popen([XHEAP, "record", "-o", TRACE, "--flush-timer", "100ms", "--", *command], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as recording:
        try:
            wait_for(f"process of which is said: {reason}", lambda: any(reason in row["note"] for row in named_in(TRACE)))
        finally:
            _, said = recording.communicate("go on\n")
    expect(recording.returncode == 7, f"{command}: status {recording.returncode}: {said}")
    return info(TRACE), said


def check_named(facts, said, image="sh"):
    """One process was named, is in the trace, and is told wherever the trace is."""
    named = [process for process in facts["processes"] if "note" in process]
    expect(len(named) == 1 and facts["untraced_processes"] == 1 and said.count("runs untraced") == 1, f"named: {named}: {said}")
    expect(image in named[0]["image"] and image in named[0]["command"], f"named as {named[0]}")
    expect(not facts["complete"] and not facts["missing_calls"], f"complete {facts['complete']}")
    text = xheap("info", TRACE)
    expect(text.startswith(f"{TRACE}: not complete: 1 process ran untraced"), text)
    expect("1 process ran untraced" in xheap("report", TRACE), "the report does not say so")
    return named[0], [process for process in facts["processes"] if "note" not in process]


def test_vfork():
    """As Go's programs start each child."""
    named, others = check_named(*record(PROGRAM, "vfork", "/bin/sh", "-c", WAIT))
    expect(len(others) == 1 and named["parent"] == others[0]["id"], f"{named} is no child of {others}")
    expect(others[0]["events"] >= 400, f"its parent has {others[0]['events']} events")


def test_fork():
    """A child with a copy of the memory is recorded up to its exec; how that image ended is not known if nobody had looked before."""
    named, others = check_named(*record(PROGRAM, "fork", "/bin/sh", "-c", WAIT))
    forked = [process for process in others if process["pid"] == named["pid"]]
    expect(len(others) == 2 and len(forked) == 1 and forked[0]["end"] in ("exec", "unknown") and forked[0]["events"] == 200, f"{named}, {others}")


def test_exec():
    """The same without a child."""
    named, others = check_named(*record(PROGRAM, "exec", "/bin/sh", "-c", WAIT))
    expect(len(others) == 1 and others[0]["pid"] == named["pid"] and others[0]["end"] == "exec", f"{named}, {others}")
    expect(named["exec_generation"] == others[0]["exec_generation"] + 1, f"{named}, {others}")


def test_descendants():
    """What an untraced process starts is untraced as well."""
    facts, said = record(PROGRAM, "vfork", "/bin/sh", "-c", f"/bin/sh -c '{WAIT}'; exit $?", reason="its parent runs untraced")
    named = [process for process in facts["processes"] if "note" in process]
    expect(len(named) == 2 and named[1]["parent"] == named[0]["id"] and not facts["complete"], f"{named}: {said}")


def test_ended():
    """A child that has ended is seen as long as nobody has waited for it; it has a name only, unless the logger came sooner."""
    named, _ = check_named(*record(PROGRAM, "late", "/bin/sh", "-c", "exit 7"))
    expect(named["command"] in ("sh", "/bin/sh -c exit 7"), f"{named}")


def test_announced():
    """Nobody is named whose exec was announced, nor when children are not wanted, nor when recording has ended, nor what was there before an attach."""
    for options, script in ((), "for i in 1 2 3 4 5; do /bin/true; (/bin/sleep 0.1) & done; wait"), (("--no-follow",), f"'{PROGRAM}' vfork /bin/sleep 0.3"):
        said = xheap("record", "-o", TRACE, *options, "--", "sh", "-c", script)
        facts = info(TRACE)
        expect("untraced" not in said and "untraced_processes" not in facts and facts["complete"], f"{options}: {said}")
    said = xheap("record", "-o", TRACE, "--max-file", "128K", "--", "sh", "-c", f"'{PROGRAMS}/churn' 2 50000 3; for i in 1 2 3; do /bin/sleep 0.1; done")
    expect("greatest size" in said and "untraced" not in said, f"after the end of the file: {said}")
    with subprocess.Popen([PROGRAM, "vfork", "/bin/sh", "-c", "echo ready; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        expect(running.stdout.readline() == "ready\n", "it did not start")
        said = attach("record", "-o", TRACE, "-p", running.pid, "--duration", "500ms")
        running.communicate("go on\n")
    expect("untraced" not in said and "untraced_processes" not in info(TRACE), said)


sys.exit(run_tests(test_vfork, test_fork, test_exec, test_descendants, test_ended, test_announced))
