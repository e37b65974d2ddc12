#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options: which starts an option covers, where they are recorded, and how long they wait."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from image_lab import FILES, TRACES, Watching, clear, enter, listed, prepare, processes, register, run, wait_for_starts, wait_until_in_force
from live import XHEAP, expect, run_tests, told, wait_for, xheap

PERL = FILES / "perl"
LONG_MS = 10000


def own_logger(image):
    """The logger of the image's own session."""
    return wait_for("the image's logger", lambda: next((row["logger_pid"] for row in told("sessions") if row["alive"] and row["name"].endswith(f".{image}")), None))


class Cgroups:
    """Cgroups of the test's own, which end with the block: paths as a service manager makes them."""

    def __enter__(self):
        for line in open("/proc/self/mountinfo"):
            place, kind = line.split()[4], line.partition(" - ")[2].split()
            if kind[0] == "cgroup2" or "name=systemd" in kind[2]:
                self.base = pathlib.Path(place, f"xheap-test-{os.getpid()}.slice")
                self.made = []
                try:
                    self.base.mkdir()
                    self.made.append(self.base)
                    return self
                except OSError:
                    pass
        return None

    def make(self, path):
        for part in [*reversed(pathlib.PurePath(path).parents), pathlib.PurePath(path)][1:]:
            if not (self.base / part).exists():
                (self.base / part).mkdir()
                self.made.append(self.base / part)
        return self.base / path

    def __exit__(self, *_):
        for path in reversed(self.made):
            wait_for(f"the end of {path}", lambda: removed(path))


def removed(path):
    try:
        path.rmdir()
    except OSError:
        return False
    return True


def run_in(cgroup, *command):
    return run("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup, *command)


def print_pid(cgroup, program=PERL):
    done = run_in(cgroup, program, "-e", 'print "$$\\n"')
    expect(done.returncode == 0 and not done.stderr, f"{done}")
    return int(done.stdout)


def traced_pids(pattern):
    return {int(row["pid"]) for trace in TRACES.glob(pattern) for row in processes(trace)}


def service():
    """All that a unit executes is recorded, and nothing of others: neither a unit of the same name in a container, nor of a longer name."""
    clear()
    with Cgroups() as cgroups:
        if not cgroups:
            return "skipped: no cgroup can be made here"
        script = FILES / "script"
        script.write_text(f"#!{PERL}\nprint \"$$\\n\";\n")
        script.chmod(0o755)
        privileged, own = FILES / "privileged", FILES / "xheap"
        shutil.copy(PERL, privileged)
        privileged.chmod(0o4755)
        shutil.copy(XHEAP, own)
        unit, below, container, longer = map(cgroups.make, ("xt.service", "xt.service/worker", "box.scope/xt.service", "longer-xt.service"))
        said = xheap("image", "add", "--service", "xt")
        expect("processes that xt.service has already are not recorded; systemctl restart xt.service" in said, said)
        register(FILES / "sort", "--service", "longer-xt.service")
        with Watching("--deadline", str(LONG_MS)):
            wait_until_in_force()
            pids = {print_pid(unit), print_pid(below), int(run_in(unit, script).stdout)}
            pids.add(int(run_in(unit, "sh", "-c", f"{PERL} -e 'print \"$$\\n\"'; true").stdout))
            outer, inner = run_in(unit, PERL, "-e", f"$| = 1; print \"$$\\n\"; system('{PERL}', '-e', 'print \"$$\\n\"')").stdout.split()
            pids |= {int(outer), int(inner)}
            print_pid(unit, privileged)
            others = {print_pid(container), print_pid(longer), print_pid(cgroups.base)}
            expect(run_in(unit, own, "version").returncode == 0, "xheap does not run in the unit")
            for place in (unit, longer, cgroups.base):
                expect(run_in(place, FILES / "sort", "/dev/null").returncode == 0, "sort does not run")
            row = wait_for_starts("xt.service", 8)
            expect(wait_for_starts(FILES / "sort", 1)["traced"] == 1, "sort in its unit is not traced")
        found = {outcome: count for outcome, count in row["starts"].items() if count}
        # Five as pids are printed, and sort; the child of the fifth by its parent's session.
        expect(found == {"traced": 6, "followed": 1, "privileged": 1}, f"{found}")
        traced = traced_pids("xt.service.*.xht")
        expect(pids <= traced and not others & traced and len(traced) == 7, f"{pids} of the unit, {others} of others, {traced} in the traces")
        expect("xt.service: on, 6 traced, 1 untraced, 1 followed" in xheap("image", "list"), xheap("image", "list"))
        xheap("image", "remove", "xt.service")
    for unit in ("a.timer", "a b", "a/b", "init.scope", "-.slice", "xheap-images", "x@.service", "." , "x" * 300):
        expect(xheap("image", "add", "--service", unit, status=2).startswith("xheap: image add: "), f"{unit}")


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
sys.exit(run_tests(service, deadline))
