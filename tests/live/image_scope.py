#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options: which starts an option covers, where they are recorded, and how long they wait."""
import os
import signal
import subprocess
import sys
import time

from image_lab import FILES, Watching, clear, enter, listed, prepare, register, run, wait_for_starts, wait_until_in_force
from live import expect, run_tests, told, wait_for, xheap

PERL = FILES / "perl"
LONG_MS = 10000


def own_logger(image):
    """The logger of the image's own session."""
    return wait_for("the image's logger", lambda: next((row["logger_pid"] for row in told("sessions") if row["alive"] and row["name"].endswith(f".{image}")), None))


def deadline():
    """A start waits for its logger as long as --deadline says."""
    clear()
    register("perl")
    for value in ("9", "10001", "x", ""):
        xheap("image", "watch", "--deadline", value, status=2)
    with Watching("--deadline", str(LONG_MS)):
        wait_until_in_force()
        run(PERL, "-e", "1")
        wait_for_starts("perl", 1)
        logger = own_logger("perl")
        os.kill(logger, signal.SIGSTOP)
        try:
            # Popen() returns after the exec of the shell.
            waiting = subprocess.Popen(["sh", "-c", f"{PERL} -e 1; true"])
            # Five times the usual deadline.
            time.sleep(0.5)
            expect(waiting.poll() is None, "the start did not wait for its logger")
        finally:
            os.kill(logger, signal.SIGCONT)
        expect(waiting.wait() == 0, "the program failed")
        row = wait_for_starts("perl", 2)
        expect(row["untraced"] == 0, f"{row}")


enter()
prepare()
sys.exit(run_tests(deadline))
