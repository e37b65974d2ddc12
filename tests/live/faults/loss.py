#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""When buffers run out: dropping loses nothing uncounted, and waiting ends when the logger makes no progress.

dropping   --on-full drop with next to no buffers: events in the trace and events lost add up to the calls made
stopped    the logger is stopped (SIGSTOP) while targets wait for it: after --wait-limit they go on, dropping and counting;
           once it goes on, so does the trace
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import compare
import kill
from live import PROGRAMS, XHEAP

SMALL = ["--buffer-size", "64K", "--min-buffers", "2", "--max-buffers", "2"]
CALLS = "100000"
STAMPS = 800000  # at least: two for each call
WAIT_SECONDS = 60


class Recording:
    def __init__(self, name, options):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}."))
        self.logs, self.trace = self.directory / "logs", self.directory / "trace.xht"
        self.logs.mkdir()
        self.runtime = tempfile.mkdtemp(prefix="xheap-loss.", dir="/dev/shm")
        environment = dict(os.environ, XHEAP_RUNTIME_DIR=self.runtime, CALL_LOG=str(self.logs))
        self.process = subprocess.Popen([XHEAP, "record", "-o", self.trace, *options, "--", f"{PROGRAMS}/churn_wrapped",
                                         "4", CALLS], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def finish(self):
        output, _ = self.process.communicate(timeout=WAIT_SECONDS * kill.PATIENCE)
        if self.process.returncode or output != "ok\n":
            raise kill.Failure(f"exit status {self.process.returncode}, output {output}")

    def check(self, loss_expected):
        info = json.loads(subprocess.run([XHEAP, "info", self.trace, "--format", "json"], stdout=subprocess.PIPE,
                                         check=True).stdout)
        dump = self.directory / "dump.csv"
        with open(dump, "wb") as file:
            subprocess.run([XHEAP, "dump", self.trace, "--events", "--format", "csv"], stdout=file, check=True)
        traced = sum(len(calls) for _, threads in compare.read_dump(dump) for calls in threads.values())
        logged = sum(len(calls) for path in self.logs.glob("*.calls") for threads in compare.Log(path).processes.values()
                     for calls in threads.values())
        # The loader's few calls before the program are in the trace only.
        lost = info["lost_events"]
        print(f"{logged} calls, {traced} events in the trace, {lost} lost, {len(info['gaps'])} gaps")
        if not 0 <= traced + lost - logged <= 200:
            raise kill.Failure("events and losses do not add up")
        if loss_expected and not lost:
            raise kill.Failure("nothing was lost, so nothing was tried")
        if lost and not info["gaps"]:
            raise kill.Failure("a loss without a gap")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        shutil.rmtree(self.runtime, ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)


def test_dropping():
    recording = Recording("dropping", ["--on-full", "drop", *SMALL])
    try:
        recording.finish()
        recording.check(loss_expected=False)
    finally:
        recording.close()


def test_stopped():
    recording = Recording("stopped", ["--wait-limit", "1s", *SMALL])
    try:
        kill.wait_for("the log", lambda: next(iter(recording.logs.glob("*.calls")), None))
        logger = kill.wait_for("the logger", lambda: kill.logger_find(recording.runtime))
        os.kill(logger, signal.SIGSTOP)
        try:
            log = next(recording.logs.glob("*.calls"))
            since, stamp = time.monotonic(), 0
            # The target ends, or gets no further: both show in its log.
            while stamp < STAMPS and time.monotonic() - since < WAIT_SECONDS:
                before, stamp = stamp, sum(kill.stamps_read(recording.logs).values())
                since = time.monotonic() if stamp != before else since
                time.sleep(0.2)
            if stamp < STAMPS:
                raise kill.Failure(f"the program stands still after {stamp} of its calls' ends")
        finally:
            os.kill(logger, signal.SIGCONT)
        recording.finish()
        recording.check(loss_expected=True)
    finally:
        recording.close()


def main():
    failed = 0
    for test in (test_dropping, test_stopped):
        try:
            test()
        except kill.Failure as failure:
            failed += 1
            print(f"{test.__name__}: {failure}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
