#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills targets and loggers at random moments: what had returned is in the trace.

usage: kill.py [SCENE...]        ROUNDS=N, SEED=N; SOAK=1: 200 rounds of each scene in place of 8, 400 of generations in place of 16

Each round records a program that logs each of its calls when it has returned (wrap.c), and kills, after a random time, the
target, the logger, or both. Then every call that the log saw return before the kill must be in the trace: as the logger wrote
it, or as `xheap recover` makes it of what a killed logger left behind. A target whose logger was killed must run to its end as
if nothing had happened, and so must its children. The scenes:

threads      two threads with pauses
full         eight threads without any, and so few buffers that they wait for the logger most of the time
generations  threads, forked children, and one exec after the other, so that many kills hit one that is being held
"""
import glob
import mmap
import os
import pathlib
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from live import PATIENCE, PROGRAMS, SOAK, SOURCE, XHEAP, Failure, expect, run_tests, wait_for

# Program, its words, the options of record.
SCENES = {
    "threads": ("churn_wrapped", ["2", "400000", "3"], []),
    "full": ("churn_wrapped", ["8", "150000"], ["--min-buffers", "2", "--max-buffers", "4"]),
    "generations": ("generations", ["700"], []),
}
HEADER_BYTES, STAMP_AT, COUNT_AT, CAPACITY_AT = 4096, 24, 16, 8  # of struct call_header
RECORD_BYTES, RETURNED_AT, ENTERED = 64, 24, 1                   # of struct call_record
WAIT_SECONDS = 30 * PATIENCE


LOG_MAGIC = b"CALL"


def stamps_read(logs):
    """Each log's clock: calls that returned before it had this value."""
    stamps = {}
    for log in logs.glob("*.calls"):
        with open(log, "rb") as file:
            file.seek(STAMP_AT)
            value = file.read(8)
        stamps[log] = struct.unpack("<Q", value)[0] if len(value) == 8 else 0
    return stamps


def forget_later(log, stamp):
    """A call that returned after the logger was killed is no more than one that may be in the trace."""
    with open(log, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        count, capacity = (struct.unpack_from("<Q", data, at)[0] for at in (COUNT_AT, CAPACITY_AT))
        for at in range(HEADER_BYTES, HEADER_BYTES + min(count, capacity) * RECORD_BYTES, RECORD_BYTES):
            if struct.unpack_from("<Q", data, at + RETURNED_AT)[0] >= stamp:
                struct.pack_into("<I", data, at, ENTERED)


def wait_for_end(alive):
    """Until nobody has the other end of the pipe any more: a killed target's children run on, and log what they do."""
    if not select.select([alive], [], [], WAIT_SECONDS)[0]:
        raise Failure(f"a child of the target still runs after {WAIT_SECONDS} s")


def logger_find(runtime):
    """The logger of this round's session, told from those of others by its environment."""
    setting = f"XHEAP_RUNTIME_DIR={runtime}".encode()
    for directory in glob.glob("/proc/[0-9]*"):
        try:
            with open(directory + "/comm") as file:
                if file.read().strip() != "xheap-logger":
                    continue
            with open(directory + "/environ", "rb") as file:
                if setting in file.read().split(b"\0"):
                    return int(directory[6:])
        except OSError:
            pass
    return None


class Round:
    def __init__(self, directory, scene, victims, delay):
        self.directory, self.victims, self.delay = directory, victims, delay
        self.program, self.words, self.options = SCENES[scene]
        self.trace, self.logs = directory / "trace.xht", directory / "logs"
        self.logs.mkdir()
        self.runtime = tempfile.mkdtemp(prefix="xheap-kill.", dir="/dev/shm")
        self.environment = dict(os.environ, XHEAP_RUNTIME_DIR=self.runtime, CALL_LOG=str(self.logs))

    def run(self):
        try:
            with open(self.directory / "errors", "wb") as errors:
                command = [XHEAP, "record", "-o", self.trace, *self.options, "--", os.path.join(PROGRAMS, self.program), *self.words]
                alive, inherited = os.pipe()
                process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=errors, pass_fds=[inherited])
                os.close(inherited)
                try:
                    stamps = self.kill(process)
                    wait_for_end(alive)
                finally:
                    os.close(alive)
                    process.kill() if process.poll() is None else None
            self.check(stamps)
        finally:
            shutil.rmtree(self.runtime, ignore_errors=True)

    def kill(self, process):
        wait_for("log of the target", lambda: next(iter(self.logs.glob("*.calls")), None), WAIT_SECONDS, pause=0.002)
        target = int(self.logs_begun()[0].name.split("-")[0])
        logger = wait_for("logger", lambda: logger_find(self.runtime), WAIT_SECONDS, pause=0.002)
        time.sleep(self.delay)
        stamps = stamps_read(self.logs)
        for victim in self.victims:
            try:
                os.kill({"target": target, "logger": logger}[victim], signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            status = process.wait(timeout=WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure("xheap record did not end") from None
        expected = 137 if "target" in self.victims else 0
        if status != expected:
            raise Failure(f"xheap record ended with {status}, expected {expected}")
        return stamps

    def logs_begun(self):
        """In the order in which they were begun, which their names tell; some are of processes that were killed as they began."""
        return sorted(self.logs.glob("*.calls"), key=lambda log: int(log.stem.split("-")[1]))

    def check(self, stamps):
        # A logger whose target was killed first may have ended by itself.
        if list(pathlib.Path(self.runtime).glob("*/*/session")):
            done = subprocess.run([XHEAP, "recover"], env=self.environment, cwd=self.directory, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                raise Failure(f"xheap recover: {done.stdout}")
        dump = self.directory / "dump.csv"
        with open(dump, "wb") as file:
            subprocess.run([XHEAP, "dump", self.trace, "--events", "--format", "csv"], stdout=file, check=True)
        if "logger" in self.victims:
            for log in self.logs.glob("*.calls"):
                forget_later(log, stamps.get(log, 0))
        # Killed before its log was begun.
        for log in self.logs.glob("*.calls"):
            with open(log, "rb") as file:
                is_begun = file.read(4) == LOG_MAGIC
            if not is_begun:
                log.unlink()
        if not self.logs_begun():
            return
        # A process whose last calls came too late for us to know is in the trace alone.
        command = [SOURCE / "tests/live/compare.py", "--order", "finished", "--unlogged", "1000000", self.logs, dump]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Failure(done.stdout)


def run_rounds(scene, count):
    rounds = int(os.environ.get("ROUNDS", count * 25 if SOAK else count))
    seed = int(os.environ.get("SEED", time.time()))
    chance = random.Random(seed)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="xheap-kill."))
    failures = []
    for number in range(rounds):
        victims = (["target"], ["logger"], ["target", "logger"], ["logger", "target"])[number % 4]
        delay = chance.uniform(0, 0.4)
        directory = scratch / str(number)
        directory.mkdir()
        try:
            Round(directory, scene, victims, delay).run()
        except Failure as failure:
            errors = (directory / "errors").read_text(errors="replace") if (directory / "errors").exists() else ""
            failures.append(f"round {number}: {' and '.join(victims)} killed after {delay:.3f} s: {failure}\n{errors}")
        shutil.rmtree(directory, ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)
    expect(not failures, f"{len(failures)} of {rounds} rounds, seed {seed}:\n" + "\n".join(failures))
    return f"{rounds} rounds"


def threads():
    return run_rounds("threads", 8)


def full():
    return run_rounds("full", 8)


def generations():
    return run_rounds("generations", 16)


if __name__ == "__main__":
    sys.exit(run_tests(threads, full, generations))
