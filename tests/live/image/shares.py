#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options beside a user who floods them: places for starts, loggers that begin and the room for traces are shared by users."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from image.lab import FILES, TRACES, Watching, clear, enter, listed, prepare, processes, register, run, wait_for_starts, wait_until_in_force
from live import PROGRAMS, expect, run_tests, told, wait_for

NAME, NOBODY, ROOTS, FLOODERS = "h6prog", 65534, 100, 100
INNER = 100000
TRACE_FILES_MAX, TRACE_BYTES = 16, 64 << 10
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
BY_NOBODY = [*AS_NOBODY, "sh", "-c", '"$@"; true', "sh"]


def copy(directory, owner=0):
    place = FILES / directory
    place.mkdir(exist_ok=True)
    shutil.copy(os.path.join(PROGRAMS, "served"), place / NAME)
    os.chown(place / NAME, owner, owner)
    return place / NAME


def pid_of(*command):
    done = run(*command)
    expect(done.returncode == 0 and not done.stderr, f"{done}")
    return int(done.stdout.split()[0])


def traced(pattern):
    return {int(row["pid"]) for trace in TRACES.glob(pattern) for row in processes(trace)}


class Flood:
    """Processes of nobody that execute an own copy as often as they can."""

    def __enter__(self):
        loop = 'i=0; while [ $i -lt "$1" ]; do i=$((i + 1)); while :; do "$0"; done & done; wait'
        self.process = subprocess.Popen([*AS_NOBODY, "sh", "-c", loop, copy("theirs", NOBODY), str(FLOODERS)], stdout=subprocess.DEVNULL, start_new_session=True)
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def places():
    """Root's starts find a place and a logger, and are in traces of their own."""
    clear()
    mine = copy("mine")
    register(NAME)
    with Watching():
        wait_until_in_force()
        with Flood():
            logger = wait_for("the flood's logger", lambda: next((row["logger_pid"] for row in told("sessions") if row["name"].endswith(f"@{NOBODY}")), None))
            pid_of(mine, "3")
            # More of them wait for it than there are places.
            os.kill(logger, signal.SIGSTOP)
            try:
                wait_for("places that are taken", lambda: listed()[1][NAME]["starts"]["too_many_at_once"])
                pids = [pid_of(mine, "3") for _ in range(ROOTS)]
            finally:
                os.kill(logger, signal.SIGCONT)
            # It may have been stopped before its first start.
            wait_for("a start of the flood in its traces", lambda: traced(f"{NAME}@{NOBODY}.*.xht"))
        wait_for("all of root's starts in root's traces", lambda: set(pids) <= traced(f"{NAME}.*.xht"))
        others = traced(f"{NAME}@{NOBODY}.*.xht")
        expect(others and not others & set(pids), "the flood has no traces of its own")
        expect(len(traced(f"{NAME}.*.xht")) == ROOTS + 1, "the flood is in root's traces")
        expect(listed()[1][NAME]["traces"] >= 2, f"the traces of all are counted: {listed()}")


def room():
    """What a user records takes the place of the user's own traces only."""
    clear()
    mine, theirs = copy("mine"), copy("theirs", NOBODY)
    register(NAME, "--max-file", "64K")
    with Watching():
        wait_until_in_force()
        pid = pid_of(mine, "10")
        wait_for("root's trace", lambda: pid in traced(f"{NAME}.*.xht"))
        numbers = set()

        def has_turned():
            pid_of(*BY_NOBODY, theirs, "100000")
            numbers.update(path.name for path in TRACES.glob(f"{NAME}@*.xht"))
            return len(numbers) > 2 * TRACE_FILES_MAX and len(list(TRACES.glob(f"{NAME}@*.xht"))) <= TRACE_FILES_MAX + 1
        wait_for("traces that were removed", has_turned)
        expect(pid in traced(f"{NAME}.00001.xht"), f"root's trace is gone: {sorted(path.name for path in TRACES.iterdir())}")


def namespaces():
    """All users of a namespace are the one who has made it; with many users, some share a session."""
    clear()
    mine = copy("mine")
    register(NAME)
    with Watching():
        wait_until_in_force()
        with subprocess.Popen([*AS_NOBODY, "unshare", "-U", "sh", "-c", "echo ready && read end"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            expect(process.stdout.readline() == "ready\n", "no namespace")
            for numbers in ("uid_map", "gid_map"):
                pathlib.Path(f"/proc/{process.pid}/{numbers}").write_text(f"0 {INNER} 1000")
            pid = pid_of("nsenter", "-U", "-t", process.pid, "-S", "7", "-G", "7", mine)
            process.communicate("end\n")
        wait_for("the start in the namespace", lambda: pid in traced(f"{NAME}@{NOBODY}.*.xht"))
        for user in range(INNER, INNER + 6):
            pid_of("setpriv", "--reuid", str(user), "--clear-groups", mine)
        row = wait_for_starts(NAME, 7)
        expect(row["traced"] == 7, f"{row}")
        expected = {f"{NAME}@{user}" for user in (NOBODY, INNER, INNER + 1, INNER + 2, "others")}
        found = lambda: {path.name.split(".")[0] for path in TRACES.iterdir()}
        wait_for(f"sessions of {expected} in {found()}", lambda: found() == expected, 2)


enter()
prepare()
sys.exit(run_tests(places, room, namespaces))
