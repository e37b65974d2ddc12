#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The index that nobody asked for: it is made while a processor is idle, and is then the one that a question makes; where it is not free, there is none, and record says why.
What the kernel says of processors is this test's, in a mount namespace of its own."""
import glob
import os
import shutil
import subprocess
import sys
import threading
import time

from live import LONG_SECONDS, XHEAP, enter_mounts, expect, run_tests, same_index, wait_for, xheap

enter_mounts("XHEAP_TEST_IDLE", "what the kernel says of processors can be replaced only by root, in a mount namespace")
os.environ["PYTHONMALLOC"] = "malloc"
PYTHON = "/usr/bin/python3"
TRACE, CACHE, STAT = "made.xht", os.path.abspath("cache"), os.path.abspath("stat")
os.environ["XDG_CACHE_HOME"] = CACHE
# Millions of events; then it waits for a line, and makes some more.
MAKING = """import sys
def make(rounds):
    for round in range(rounds):
        kept = [str(number) for number in range(100000)]
make(%d)
print("ready", flush=True)
sys.stdin.readline()
make(1)
"""


class Processors:
    """Idle all the time, or never."""
    def __init__(self, is_idle):
        self.is_idle, self.is_over = is_idle, threading.Event()
        self.write()
        self.thread = threading.Thread(target=self.run)

    def write(self):
        ticks = int(time.monotonic() * 100) if self.is_idle else 0
        with open(STAT, "w") as file:
            file.write("cpu  1 1 1 1 1\n" + "".join(f"cpu{number} 1 1 1 {ticks} 1 0 0 0 0 0\n" for number in range(os.cpu_count())) + "intr 1\n")

    def run(self):
        while not self.is_over.wait(0.05):
            self.write()

    def __enter__(self):
        subprocess.run(["mount", "--bind", STAT, "/proc/stat"], check=True)
        self.thread.start()

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        subprocess.run(["umount", "/proc/stat"], check=True)


def remove():
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    shutil.rmtree(CACHE, ignore_errors=True)


def indexes():
    return glob.glob(f"{CACHE}/xheap/indexes/*")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()


def written(record):
    """Bytes of the index without a name that a worker of the recording has written."""
    for logger in children(record.pid):
        for worker in children(logger):
            for path in glob.glob(f"/proc/{worker}/fd/*"):
                try:
                    if os.readlink(path).startswith(CACHE):
                        return os.stat(path).st_size
                except OSError:
                    continue
    return 0


def recorded(rounds, until=None, words=(), environment=None):
    """What record said of the program; until: what to wait for before the program ends."""
    remove()
    command = subprocess.Popen([XHEAP, "record", *words, "-o", TRACE, PYTHON, "-c", MAKING % rounds], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(environment or {})))
    command.stdout.readline()
    if until:
        wait_for("index that grows", lambda: until(command), LONG_SECONDS)
    return command.communicate("go on\n", timeout=LONG_SECONDS)[1]


def idle():
    """Most of it is made before the end. However much else runs here, what is left then is little, but may take long."""
    with Processors(True):
        for _ in range(5):
            said = recorded(4, lambda command: written(command) > 1 << 20)
            if "its end takes more than half a second" not in said and "no processor was idle" not in said:
                break
        else:
            return "not shown: half a second was never enough, or this test had no processor to say that one is idle"
    expect("the trace has an index" in said and len(indexes()) == 1, said)
    made = indexes()[0]
    os.rename(made, "idle.index")
    xheap("heap", TRACE, "-totals")
    expect(same_index("idle.index", made), "the index is another one than a question makes")
    return f"{os.path.getsize(made)} bytes"


def none_of(said, why):
    expect(f"no index was made during the recording, the first question makes it: {why}" in said and not indexes(), said)


def busy():
    with Processors(False):
        none_of(recorded(3), "no processor was idle")


def large():
    """The trace is more than a tenth of what all indexes may have."""
    with Processors(True):
        none_of(recorded(5, environment={"XHEAP_INDEX_LIMIT": "1M"}), "the trace has more than a tenth of the 1.0 MiB for all indexes")


def silent():
    """Traces that are too small, and users who want none."""
    with Processors(True):
        for rounds, words, environment in ((0, (), {}), (3, ("--index", "never"), {}), (3, (), {"XHEAP_INDEX_EVENTS": "none"}),
                                           (8, (), {"XHEAP_INDEX_EVENTS": "20000000"})):
            said = recorded(rounds, None, words, environment)
            expect("index" not in said and not indexes(), f"{words} {environment}: {said}")


def small():
    """The smallest number of events is the user's."""
    with Processors(True):
        said = recorded(0, environment={"XHEAP_INDEX_EVENTS": "10000"})
        expect("index" in said, said)


sys.exit(run_tests(idle, busy, large, silent, small))
