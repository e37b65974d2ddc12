#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A watcher that begins before process 1: on directories that are read-only, and followed by the watcher of the service."""
import os
import signal
import subprocess
import sys

from image.lab import FILES, ROOT, TRACES, Watching, clear, enter, listed, prepare, register, run, wait_for_starts, wait_until_in_force
from live import XHEAP, expect, run_tests, told, wait_for

PERL = FILES / "perl"


class Following:
    """The watcher of the service, beside an early one."""

    def __enter__(self):
        self.process = subprocess.Popen([XHEAP, "image", "watch", "--below", FILES, "--deadline", "10000"], stderr=subprocess.PIPE, text=True)
        said = self.process.stderr.readline()
        expect("this one follows it" in said, said)
        return self.process

    def __exit__(self, *_):
        # Loggers of one that is killed go on, with the options of this test's function.
        self.process.terminate()
        self.process.wait(60)


def start():
    done = run(PERL, "-e", "1")
    expect(done.returncode == 0, done)


def follows():
    """Its messages reach the early one, which ends with it; Ctrl-C ends only the follower."""
    register(PERL)
    with Watching("--boot") as early:
        wait_until_in_force()
        expect(listed()[0]["early"] == 1, listed()[0])
        with Following() as follower:
            start()
            wait_for_starts(PERL, 1)
            follower.send_signal(signal.SIGINT)
            expect(follower.wait(60) == 0, f"its status is {follower.returncode}")
        expect(early.process.poll() is None and listed()[0]["keeper"], "Ctrl-C reached the early one")
        with Following() as follower:
            follower.send_signal(signal.SIGTERM)
            expect(follower.wait(60) == 0, f"its status is {follower.returncode}")
        expect(early.process.wait(60) == 0 and not listed()[0]["keeper"], "the early one goes on")
    clear()


def takes_place():
    """When the early one is killed, the follower watches itself, and starts are traced."""
    register(PERL)
    with Watching("--boot"):
        wait_until_in_force()
        with Following() as follower:
            os.kill(listed()[0]["keeper"], signal.SIGKILL)
            wait_for("the follower", lambda: listed()[0]["keeper"] == follower.pid and listed()[0]["in_force"])
            expect(listed()[0]["early"] == 0, listed()[0])
            start()
            expect(wait_for_starts(PERL, 1)["traced"] == 1, listed())
            follower.terminate()
            expect(follower.wait(60) == 0, f"its status is {follower.returncode}")
    clear()


def read_only():
    """Without a directory for traces, on a file system that is read-only, events of an option's own file are kept until both are there."""
    clear()
    trace = TRACES / "own.xht"
    register(PERL, "--output", trace)
    (ROOT / "run").mkdir(exist_ok=True)
    for path, options in ((ROOT, "remount,bind,ro"), (ROOT / "run", "")):
        subprocess.run(["mount", "--bind", path, path] if options else ["mount", "-t", "tmpfs", "test", path], check=True)
        if options:
            subprocess.run(["mount", "-o", options, path], check=True)
    try:
        with Watching("--boot"):
            wait_until_in_force()
            start()
            wait_for_starts(PERL, 1)
            expect(not TRACES.exists(), "it is read-only")
            subprocess.run(["mount", "-o", "remount,bind,rw", ROOT], check=True)
            wait_for("the trace", trace.exists)
            start()
            expect(wait_for_starts(PERL, 2)["traced"] == 2, listed())
        facts = told("info", trace)
        expect(len(facts["processes"]) == 2 and facts["complete"] and all(row["events"] for row in facts["processes"]), facts["processes"])
    finally:
        subprocess.run(["umount", ROOT / "run"], check=False)
        subprocess.run(["umount", ROOT], check=False)


enter()
prepare()
sys.exit(run_tests(follows, takes_place, read_only))
