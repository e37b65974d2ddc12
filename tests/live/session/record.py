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

from live import LONG_SECONDS, wait_for

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()
XHEAP = os.environ["XHEAP"]
PROGRAMS = BUILD / "tests/live"
TRACE = "command.xht"


class Failure(Exception):
    pass


def expect(what, condition):
    if not condition:
        raise Failure(what)


def record(*command, options=()):
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    return subprocess.run([XHEAP, "record", "-o", TRACE, *options, "--", *map(str, command)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)


def info():
    return json.loads(subprocess.run([XHEAP, "info", TRACE, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)


def test_statuses():
    for script, status in (("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
        done = record("sh", "-c", script)
        expect(f"{script}: {done.returncode}, expected {status}\n{done.stderr}", done.returncode == status)


def test_missing():
    pathlib.Path("plain").write_text("text\n")
    for command, status in ((["no-such-program"], 2), (["./no-such-file"], 2), (["./plain"], 2), (["/"], 2)):
        done = record(*command)
        expect(f"{command}: {done.returncode}, expected {status}\n{done.stderr}", done.returncode == status)
        expect(f"{command}: no reason: {done.stderr}", done.stderr.startswith("xheap: ") and done.stderr.count("\n") == 1)


def stripped():
    shutil.copy(PROGRAMS / "churn_static", "stripped")
    subprocess.run(["strip", "stripped"], check=True)
    return "./stripped"


def test_refused():
    """Static and without symbols: nothing of it can be seen, so it does not run."""
    done = record(stripped())
    expect(f"refused: {done.returncode} {done.stdout} {done.stderr}", done.returncode == 2 and not done.stdout)
    expect(f"no reason: {done.stderr}", "symbol" in done.stderr)


def test_refused_child():
    """As a child it runs untouched, and is named."""
    done = record("sh", "-c", f"{stripped()}; echo after")
    expect(f"{done.returncode} {done.stdout} {done.stderr}", done.returncode == 0 and done.stdout == "ok\nafter\n")
    expect(f"not named: {done.stderr}", "stripped" in done.stderr)


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
        expect(f"threads of {words}: {names}", names <= {name})


def test_no_follow():
    done = record("sh", "-c", f"'{PROGRAMS}/churn'; :", options=["--no-follow"])
    expect(f"{done.returncode} {done.stdout} {done.stderr}", done.returncode == 0 and done.stdout == "ok\n")
    counts = events_by_image()
    expect(f"events of {counts}", counts and "churn" not in counts)


def test_until_exit():
    """The command's child goes on, untraced and unharmed, when the command has ended."""
    os.mkfifo("go")
    recorder = subprocess.Popen([XHEAP, "record", "-o", TRACE, "--until-exit", "--", "sh", "-c", f"'{PROGRAMS}/attached' often 2 <go >late 2>&1 & read line"],
                                stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with open("go", "w"):
        wait_for("events of the child", lambda: has_events_of("attached"))
        errors = recorder.communicate("\n", timeout=LONG_SECONDS)[1]
        expect(f"{recorder.returncode} {errors}", recorder.returncode == 0)
        expect(f"not named: {errors}", "attached" in errors)
        expect("the child has ended, too", pathlib.Path("late").read_text() == "")
    wait_for("good end of the child", lambda: pathlib.Path("late").read_text() == "bad 0\n")


def test_signal():
    """A signal sent to `xheap record` reaches the command."""
    process = subprocess.Popen([XHEAP, "record", "-o", TRACE, "--", "sh", "-c",
                                "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect("not ready", process.stdout.readline() == "ready\n")
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=LONG_SECONDS)
    expect(f"{process.returncode} {output} {errors}", process.returncode == 9 and output == "caught\n")


def test_summary():
    done = record("sh", "-c", "echo text; echo errors >&2")
    lines = done.stderr.splitlines()
    expect(f"output: {done.stdout}", done.stdout == "text\n")
    expect(f"the program's errors come first: {lines}", lines and lines[0] == "errors")
    expect(f"the file is named: {lines}", any(TRACE in line for line in lines))
    expect(f"the last line is what to type next: {lines}", "xheap report" in lines[-1])
    expect("quiet is not quiet", record("true", options=["--quiet"]).stderr == "")
    facts = info()
    expect(f"not complete: {facts}", facts["complete"] and facts["lost_events"] == 0)


def test_default_file():
    done = subprocess.run([XHEAP, "record", "true"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
    files = list(pathlib.Path(".").glob("xheap.true.*.xht"))
    expect(f"{done.returncode} {files} {done.stderr}", done.returncode == 0 and len(files) == 1)


def main():
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            try:
                test()
            except Failure as failure:
                failed += 1
                print(f"{name}: {failure}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
