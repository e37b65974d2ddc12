#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ctrl-C, Ctrl-Z and fg act on the traced program as they do without xheap: in an interactive shell on a terminal. A session
goes on when the terminal ends in which it began."""
import glob
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

XHEAP = os.environ.get("XHEAP", "")
# A shell with children that do their work, and a program without any: a shell that reads with a time limit does not always
# run its trap, untraced as well.
SCRIPT = """trap 'echo caught; exit 3' INT
echo ready
while :; do sleep 0.05; done
"""
PROGRAM = """import signal, sys, time
def caught(*_):
    print("caught", flush=True)
    sys.exit(3)
signal.signal(signal.SIGINT, caught)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""
WAIT_SECONDS = 150


class Terminal:
    def __init__(self):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            # What the tests' own shell ignores, as in the background, a shell script cannot trap.
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], dict(os.environ, PS1="$ ", TERM="dumb"))
        self.seen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def job_goes_on(self):
        """Whether another group than the shell's is in the foreground, and none of its processes is stopped."""
        job = os.tcgetpgrp(self.fd)
        states = []
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                fields = open(path).read().rpartition(")")[2].split()
            except OSError:
                continue
            states += [fields[0]] * (int(fields[2]) == job)
        return job != self.pid and states and not any(state in "Tt" for state in states)

    def wait_until(self, what, condition):
        end = time.monotonic() + WAIT_SECONDS
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"not even after {WAIT_SECONDS} s: {what}\nseen: {self.seen}")
            time.sleep(0.02)

    def expect(self, pattern):
        end = time.monotonic() + WAIT_SECONDS
        while not (found := re.search(pattern, self.seen)):
            if time.monotonic() > end:
                raise SystemExit(f"not seen: {pattern}\nin: {self.seen}")
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen[found.end():]
        return found


def play(command):
    """Stop it, go on, interrupt it; returns the status that the shell saw."""
    terminal = Terminal()
    terminal.type(command + "\n")
    terminal.expect(r"\nready")
    terminal.type("\x1a")
    terminal.expect(r"Stopped")
    terminal.type("fg\n")
    terminal.expect(command.split("/")[-1].split()[-1])
    terminal.wait_until("the job is in the foreground and goes on", lambda: terminal.job_goes_on())
    terminal.type("\x03")
    terminal.expect("caught")
    terminal.wait_until("the shell is in the foreground", lambda: os.tcgetpgrp(terminal.fd) == terminal.pid)
    terminal.type("echo status=$?\n")
    status = terminal.expect(r"\nstatus=(\d+)").group(1)
    terminal.type("jobs; echo left=$?; exit\n")
    terminal.expect(r"\nleft=0")
    os.close(terminal.fd)
    os.waitpid(terminal.pid, 0)
    return status


def outlive():
    """The logger leaves its terminal's foreground and the terminal, and neither its keys nor its end reach it."""
    name = f"terminal-{os.getpid()}"
    terminal = Terminal()
    terminal.type(f"'{XHEAP}' start {name} -q -o outlive.xht; echo status=$?\n")
    terminal.expect(r"\nstatus=0")
    logger = json.loads(subprocess.check_output([XHEAP, "query", name, "--format", "json"]))["logger_pid"]
    with open(f"/proc/{logger}/stat") as file:
        group, _, device, foreground = map(int, file.read().rpartition(")")[2].split()[2:6])
    # Of a process without a terminal.
    lone = (group, device, foreground) == (logger, 0, -1)
    terminal.type("\x03\x1a\x1c")
    os.kill(terminal.pid, signal.SIGKILL)
    os.close(terminal.fd)
    os.waitpid(terminal.pid, 0)
    launched = subprocess.run([XHEAP, "launch", name, "--", "true"]).returncode
    stopped = subprocess.run([XHEAP, "stop", name]).returncode
    facts = json.loads(subprocess.check_output([XHEAP, "info", "outlive.xht", "--format", "json"]))
    print(f"alone {lone}, launch {launched}, stop {stopped}, complete {facts['complete']}, {len(facts['processes'])} process")
    return lone and not launched and not stopped and facts["complete"] and len(facts["processes"]) == 1


def main():
    for name, text in (("script.sh", SCRIPT), ("program.py", PROGRAM)):
        with open(name, "w") as file:
            file.write(text)
    record = f"'{XHEAP}' record -o terminal.xht --"
    statuses = [play("python3 program.py"), play(f"{record} python3 program.py")]
    # A shell that uses vfork does not stop, untraced, if its child gets the stop before its exec. Traced it must.
    statuses.append(play(f"{record} dash script.sh"))
    print(f"statuses {statuses}")
    return 0 if statuses == ["3"] * 3 and outlive() else 1


if __name__ == "__main__":
    sys.exit(main())
