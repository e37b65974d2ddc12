#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The runner of the tests ends all that it started, whenever it ends, and a test that takes too much or stands still.

A copy of it runs one test that starts a program of each kind that is hard to find again: in a session of its own, without a parent, without its
environment, deaf to signals. Then the runner, its guard, or what it runs under the guard is killed."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

SOURCE = pathlib.Path(os.environ["SOURCE"])
WAIT_SECONDS = 200
LEAVING = """#!/usr/bin/env python3
import os, pathlib, signal, subprocess, sys, time
here = pathlib.Path(os.environ["HERE"])
SLEEP = "import os, pathlib, signal, sys, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; " \\
        "pathlib.Path(sys.argv[1], f'{os.getpid()}.pid').touch(); time.sleep(3600)"
def sleeper(**how):
    return subprocess.Popen([sys.executable, "-c", SLEEP, str(here)], **how)
sleeper()
sleeper(start_new_session=True, env={})
if os.fork() == 0:
    os.setsid()
    sleeper(start_new_session=True, env={}, cwd="/")
    os._exit(0)
os.wait()
while len(list(here.glob("*.pid"))) < 3:
    time.sleep(0.02)
(here / f"{os.getpid()}.pid").touch()
END
"""
ENDS = {"stays": "time.sleep(3600)", "ends": "sys.exit(0)", "spins": "while True: pass"}
LEFT = 4                  # processes of a test, with itself


def expect(condition, what):
    if not condition:
        sys.exit(what)


def stat(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def is_running(pid):
    fields = stat(pid)
    return fields is not None and fields[0] not in "ZX"


def wait_until(what, condition):
    until = time.monotonic() + WAIT_SECONDS
    while not condition():
        expect(time.monotonic() < until, f"not even after {WAIT_SECONDS} s: {what}")
        time.sleep(0.02)


class Runner:
    def __init__(self, name, end, **environment):
        self.name, self.here = name, pathlib.Path(f"{name}.here").resolve()
        tests = pathlib.Path(name, "tests").resolve()
        (tests / "cli").mkdir(parents=True)
        self.here.mkdir()
        for file in ("run", "guard", "known-failures"):
            shutil.copy(SOURCE / "tests" / file, tests / file)
        test = tests / "cli/leaving"
        test.write_text(LEAVING.replace("END", ENDS[end]))
        test.chmod(0o755)
        (self.here / "tmp").mkdir()
        self.process = subprocess.Popen([sys.executable, tests / "run", "--build", self.here], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=dict(os.environ, HERE=str(self.here), TMPDIR=str(self.here / "tmp"), **environment))

    def started(self):
        return [int(path.stem) for path in self.here.glob("*.pid")]

    def wait_until_started(self):
        wait_until("the test begins", lambda: len(self.started()) == LEFT)
        expect(all(map(is_running, self.started())), f"{self.name}: not all run")

    def child(self, depth):
        """The guard, or what it guards."""
        pid = self.process.pid
        for _ in range(depth):
            pid = next(int(word) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for word in task.read_text().split())
        return pid

    def check_end(self):
        output, _ = self.process.communicate(timeout=WAIT_SECONDS)
        wait_until(f"{self.name}: all has ended", lambda: not any(map(is_running, self.started())))
        wait_until(f"{self.name}: nothing is left of it", lambda: not list((self.here / "tmp").iterdir()))
        return output


def killed():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
        runner = Runner(f"by-{number.name}", "stays")
        runner.wait_until_started()
        os.kill(runner.process.pid, number)
        runner.check_end()
        wanted = -number if number == signal.SIGKILL else 128 + number
        expect(runner.process.returncode == wanted, f"{number.name}: status {runner.process.returncode}")
    for depth, who in ((1, "guard"), (2, "runner-below-it"), (3, "guard-of-the-test")):
        runner = Runner(who, "stays")
        runner.wait_until_started()
        os.kill(runner.child(depth), signal.SIGKILL)
        output = runner.check_end()
        expect(runner.process.returncode, f"{who}: status 0: {output}")


def ended():
    runner = Runner("passes", "ends")
    output = runner.check_end()
    expect(runner.process.returncode == 0 and "1 passed" in output, output)


def limited():
    """Some of a second of processor time is all it has."""
    runner = Runner("spins", "spins", SLOWNESS="0.02")
    output = runner.check_end()
    expect(runner.process.returncode == 1 and "of processor time" in output, output)


def again():
    """Who fails once only is told of and does not fail the whole; who fails again does; and nobody is asked again unless the runner is told to."""
    tests, here = pathlib.Path("again/tests").resolve(), pathlib.Path("again.here").resolve()
    (tests / "cli").mkdir(parents=True)
    for file in ("run", "guard", "known-failures"):
        shutil.copy(SOURCE / "tests" / file, tests / file)
    for name, text in (("always", "exit 3"), ("once", "[ -e $HERE/once ] || { touch $HERE/once; echo the first time; exit 4; }"), ("passes", "exit 0")):
        (tests / "cli" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tests / "cli" / name).chmod(0o755)

    def told(*words):
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        ran = subprocess.run([sys.executable, tests / "run", "--build", here, *words], stdout=subprocess.PIPE, text=True, env=dict(os.environ, HERE=str(here)))
        return ran.returncode, ran.stdout

    status, output = told()
    expect(status == 1 and "1 passed, 2 failed, 0 skipped" in output, output)
    status, output = told("--again")
    expect(status == 1 and "1 passed, 1 unstable, 1 failed, 0 skipped" in output and "the first time" in output, output)
    expect(output.splitlines()[-3:-1] == ["FAIL cli/always", "unstable cli/once"], output)
    status, output = told("--again", "cli/once")
    expect(status == 0 and "0 passed, 1 unstable, 0 failed, 0 skipped" in output, output)


def run(*words):
    """The names of tests."""
    return subprocess.run([sys.executable, SOURCE / "tests/run", "--build", os.environ["BUILD"], "--list", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def left_out():
    """What a pattern takes, it leaves out as well."""
    boot, rest = run("live/boot/"), run("--without", "live/boot/")
    expect(boot and not set(boot) & set(rest) and sorted(boot + rest) == sorted(run()), f"{boot}, and {len(rest)} others")


def functions():
    """One function of a test, or each as a test of its own."""
    expect(run("live/attach/undisturbed:in_vfork") == ["live/attach/undisturbed:in_vfork"], run("live/attach/undisturbed:in_vfork"))
    alone, together = run("--functions"), run()
    expect({name.split(":")[0] for name in alone} == set(together), set(together) ^ {name.split(":")[0] for name in alone})
    expect(len(alone) > 2 * len(together) and len(set(alone)) == len(alone), f"{len(alone)} functions of {len(together)} tests")
    other = subprocess.run([sys.executable, SOURCE / "tests/live/attach/undisturbed.py", "in_fork"], stdout=subprocess.PIPE, text=True)
    expect(other.returncode == 2 and "in_fork: there is no such function" in other.stdout, f"{other.returncode} {other.stdout}")


for test in (ended, limited, again, left_out, functions, killed):
    test()
