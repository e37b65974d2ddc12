#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `xheap record` itself owes its user: exit statuses, what it refuses, whom it follows, signals sent to it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from live import LONG_SECONDS, PROGRAMS, XHEAP, expect, info, run_tests, wait_for

TRACE = "command.xht"


def record(*command, options=()):
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    return subprocess.run([XHEAP, "record", "-o", TRACE, *options, "--", *map(str, command)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)


def test_statuses():
    for script, status in (("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
        done = record("sh", "-c", script)
        expect(done.returncode == status, f"{script}: {done.returncode}, expected {status}\n{done.stderr}")


def test_missing():
    pathlib.Path("plain").write_text("text\n")
    for command, status in ((["no-such-program"], 2), (["./no-such-file"], 2), (["./plain"], 2), (["/"], 2)):
        done = record(*command)
        expect(done.returncode == status, f"{command}: {done.returncode}, expected {status}\n{done.stderr}")
        expect(done.stderr.startswith("xheap: ") and done.stderr.count("\n") == 1, f"{command}: no reason: {done.stderr}")


def stripped():
    shutil.copy(f"{PROGRAMS}/churn_static", "stripped")
    subprocess.run(["strip", "stripped"], check=True)
    return "./stripped"


def test_refused():
    """Static and without symbols: nothing of it can be seen, so it does not run."""
    done = record(stripped())
    expect(done.returncode == 2 and not done.stdout, f"refused: {done.returncode} {done.stdout} {done.stderr}")
    expect("symbol" in done.stderr, f"no reason: {done.stderr}")


def test_refused_child():
    """As a child it runs untouched, and is named."""
    done = record("sh", "-c", f"{stripped()}; echo after")
    expect(done.returncode == 0 and done.stdout == "ok\nafter\n", f"{done.returncode} {done.stdout} {done.stderr}")
    expect("stripped" in done.stderr, f"not named: {done.stderr}")


def events_by_image():
    csv = subprocess.run([XHEAP, "dump", TRACE, "--processes", "--format", "json"], stdout=subprocess.PIPE, check=True, text=True)
    images = {}
    for line in csv.stdout.splitlines():
        row = json.loads(line)
        images[row["process"]] = os.path.basename(row["image"])
    events = subprocess.run([XHEAP, "dump", TRACE, "--events", "--format", "json"], stdout=subprocess.PIPE, check=True, text=True)
    counts = {}
    for line in events.stdout.splitlines():
        image = images[json.loads(line)["process"]]
        counts[image] = counts.get(image, 0) + 1
    return counts


def has_events_of(image):
    """In a trace that grows, and may not have begun; a process may be new between the two questions."""
    try:
        return events_by_image().get(image, 0) > 100
    except (subprocess.CalledProcessError, KeyError):
        return False


def test_short_programs():
    """The first thread of a program that has ended before the logger reads its events has the name that it began with, also that of a script."""
    script = pathlib.Path("short-script")
    script.write_text("#!/bin/sh\n:\n")
    script.chmod(0o755)
    for words, name in 6 * [(("true",), "true")] + 2 * [(("./short-script",), "short-script")]:
        record(*words)
        rows = json.loads(subprocess.run([XHEAP, "heap", TRACE, "-frames", "-by", "thread", "-noDefaultCull", "-format", "json"], stdout=subprocess.PIPE, check=True).stdout)
        names = {row["thread"].split()[-1] for row in rows["actions"][0]["rows"]}
        expect(names <= {name}, f"threads of {words}: {names}")


def test_no_follow():
    done = record("sh", "-c", f"'{PROGRAMS}/churn'; :", options=["--no-follow"])
    expect(done.returncode == 0 and done.stdout == "ok\n", f"{done.returncode} {done.stdout} {done.stderr}")
    counts = events_by_image()
    expect(counts and "churn" not in counts, f"events of {counts}")


def test_until_exit():
    """The command's child goes on, untraced and unharmed, when the command has ended."""
    os.mkfifo("go")
    recorder = subprocess.Popen([XHEAP, "record", "-o", TRACE, "--until-exit", "--", "sh", "-c", f"'{PROGRAMS}/attached' often 2 <go >late 2>&1 & read line"],
                                stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with open("go", "w"):
        wait_for("events of the child", lambda: has_events_of("attached"))
        errors = recorder.communicate("\n", timeout=LONG_SECONDS)[1]
        expect(recorder.returncode == 0, f"{recorder.returncode} {errors}")
        expect("attached" in errors, f"not named: {errors}")
        expect(pathlib.Path("late").read_text() == "", "the child has ended, too")
    wait_for("good end of the child", lambda: pathlib.Path("late").read_text() == "bad 0\n")


def test_signal():
    """A signal sent to `xheap record` reaches the command."""
    process = subprocess.Popen([XHEAP, "record", "-o", TRACE, "--", "sh", "-c",
                                "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(process.stdout.readline() == "ready\n", "not ready")
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=LONG_SECONDS)
    expect(process.returncode == 9 and output == "caught\n", f"{process.returncode} {output} {errors}")


def test_summary():
    done = record("sh", "-c", "echo text; echo errors >&2")
    lines = done.stderr.splitlines()
    expect(done.stdout == "text\n", f"output: {done.stdout}")
    expect(lines and lines[0] == "errors", f"the program's errors come first: {lines}")
    expect(any(TRACE in line for line in lines), f"the file is named: {lines}")
    expect("xheap report" in lines[-1], f"the last line is what to type next: {lines}")
    expect(record("true", options=["--quiet"]).stderr == "", "quiet is not quiet")
    facts = info(TRACE)
    expect(facts["complete"] and facts["lost_events"] == 0, f"not complete: {facts}")


def test_default_file():
    done = subprocess.run([XHEAP, "record", "true"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
    files = list(pathlib.Path(".").glob("xheap.true.*.xht"))
    expect(done.returncode == 0 and len(files) == 1, f"{done.returncode} {files} {done.stderr}")


sys.exit(run_tests(test_statuses, test_missing, test_refused, test_refused_child, test_short_programs, test_no_follow, test_until_exit, test_signal,
                   test_summary, test_default_file))
