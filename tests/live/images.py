#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options: programs that are recorded whenever they start. All files with marks lie on a tmpfs of this test's own, in a mount namespace of its
own; nothing of the machine is marked. Each watcher is killed after a time."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from live import PATIENCE, XHEAP, Failure, dump, expect, run_tests, told, wait_for, xheap

SKIP, PRIVATE = 77, "XHEAP_TEST_IMAGES"
ROOT, FILES = pathlib.Path("root").absolute(), pathlib.Path("files").absolute()
OPTIONS, TRACES = ROOT / "etc/xheap/image.d", ROOT / "var/lib/xheap/traces"
LIFE_SECONDS = 30 * PATIENCE


def enter():
    """Begin again in a mount namespace of its own."""
    if os.environ.get(PRIVATE):
        return
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
        print("skipped: only root may mount a file system of its own and ask for permission events")
        sys.exit(SKIP)
    os.environ[PRIVATE] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def prepare():
    for directory in (ROOT, FILES):
        directory.mkdir(mode=0o755, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "test", FILES], check=True)
    os.environ["XHEAP_IMAGE_ROOT"] = str(ROOT)
    for name in ("perl", "sort"):
        shutil.copy(shutil.which(name), FILES / name)


class Watching:
    """xheap image watch, until the end of the block. It ends by itself, whatever becomes of this test."""

    def __init__(self, *words):
        self.words = words

    def __enter__(self):
        self.process = subprocess.Popen(["timeout", "-s", "KILL", str(LIFE_SECONDS), XHEAP, "image", "watch", "--below", FILES, *self.words],
                                        stderr=open("watch.err", "w"))
        wait_for("watcher", lambda: self.process.poll() is not None or told("image", "list")["keeper"])
        expect(self.process.poll() is None, f"the keeper has ended: {open('watch.err').read()}")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.kill(told("image", "list")["keeper"] or self.process.pid, signal.SIGTERM)
        self.process.wait()


def register(*words):
    xheap("image", "add", *words)


def listed():
    state = told("image", "list")
    return state, {row["image"]: row for row in state["images"]}


def wait_until_in_force():
    """Until the marks are set for the options as they are now."""
    wait_for("marks in force", lambda: listed()[0]["in_force"])


def clear():
    xheap("image", "remove", "--all")
    shutil.rmtree(TRACES, ignore_errors=True)
    shutil.rmtree(ROOT / "run", ignore_errors=True)


def run(*command, **more):
    return subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60 * PATIENCE, **more)


def wait_for_starts(image, count):
    """Until so many starts of the image have been counted."""
    def found():
        row = listed()[1][str(image)]
        return sum(row["starts"].values()) >= count and row
    return wait_for(f"{count} starts of {image} in {listed()[1]}", found)


def processes(trace):
    return dump(trace, "-processes")


def starts():
    """Starts by a shell, by vfork, by exec in place, and of a script are recorded; the program notices nothing."""
    clear()
    perl, script = FILES / "perl", FILES / "script"
    script.write_text(f"#!{perl}\nprint \"script\\n\";\n")
    script.chmod(0o755)
    register(perl)
    register("script")
    with Watching():
        wait_until_in_force()
        say = [perl, "-e", "print \"$$\\n\""]
        pids = {int(run(*say).stdout) for _ in range(3)}
        pids.add(int(run("sh", "-c", f"{perl} -e 'print \"$$\\n\"'; true").stdout))
        pids.add(int(run("sh", "-c", f"exec {perl} -e 'print \"$$\\n\"'").stdout))
        expect(run(script).stdout == "script\n", "the script did not run")
        failing = run(perl, "-e", "print STDERR 'x'; exit 3")
        expect((failing.returncode, failing.stdout, failing.stderr) == (3, "", "x"), f"it ended otherwise: {failing}")
        run(FILES / "sort", "/dev/null")
        row = wait_for_starts(perl, 6)
        expect(row["traced"] == 6 and row["untraced"] == 0, f"not all are traced: {row}")
        expect(wait_for_starts("script", 1)["traced"] == 1, "the script is not traced")
        expect("image.script" in xheap("sessions"), "the session of the image is not listed")
    traces = sorted(TRACES.glob("*.xht"))
    expect(len(traces) == 2, f"traces: {traces}")
    found = {int(row["pid"]) for trace in traces for row in processes(trace)}
    expect(pids <= found and len(found) == 7, f"{pids} ran, {found} are in the traces")
    expect(all(told("info", trace)["complete"] for trace in traces), "a trace lacks calls")


enter()
prepare()
sys.exit(run_tests(starts))
