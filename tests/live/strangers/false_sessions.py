#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""False sessions of another user: sockets that answer nothing, that never end, or that send text which steers terminals. Root does not connect to them unasked,
and whatever root asks them ends with a clear error. All of it lies on file systems of this test's own."""
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import unicodedata

from live import LONG_SECONDS, PROGRAMS, XHEAP, attach, enter_mounts, expect, run_tests, stop_session, told, xheap

PRIVATE, USER = "XHEAP_TEST_FALSE_SESSIONS", 64021
FALSE_LOGGER = os.path.join(PROGRAMS, "false_logger")
PLACE = f"/dev/shm/xheap-{USER}-abcdef"


def prepare():
    for place, mode in (("/dev/shm", "1777"), ("/run", "755")):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=256m,mode={mode}", "test", place], check=True)
    for name in ("XHEAP_RUNTIME_DIR", "XDG_RUNTIME_DIR"):
        os.environ.pop(name, None)


@contextlib.contextmanager
def false_session(kind, user=USER, place=PLACE):
    """One of this kind and name, until the end of the block. Gives the process."""
    command = [FALSE_LOGGER, place, kind, kind]
    # The other user need not reach the program by its path.
    fd = os.open(FALSE_LOGGER, os.O_RDONLY)
    process = subprocess.Popen([f"/proc/self/fd/{fd}", *command[1:]], user=user, group=user, extra_groups=[], pass_fds=[fd], stdout=subprocess.PIPE, text=True)
    os.close(fd)
    expect(process.stdout.readline() == "ready\n", f"{kind} does not begin: {process.poll()}")
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        subprocess.run(["rm", "-r", f"{place}/of-{kind}", f"{place}/{kind}.session"], check=True)


def connections(process):
    """How often it was connected to since it began. Ends it."""
    process.kill()
    return process.stdout.read().count("connected")


def asked(kind, *words):
    """What a command about it says; it fails, and comes to its end."""
    return xheap(*words, status=2)


def unasked():
    """Neither root's list nor another command of root connects to a session of another user."""
    with false_session("mute") as mute:
        expect("no sessions" in xheap("sessions"), "root sees a session of another user unasked")
        xheap("start", "own", "-o", "own.xht")
        try:
            expect([row["name"] for row in told("sessions")] == ["own"], "root sees a session of another user unasked")
        finally:
            xheap("stop", "own")
        expect(connections(mute) == 0, "root has connected to a session of another user")


def all_of_them():
    """With --all its own comes first, and each other one is in the list once, whatever it does."""
    kinds = "mute", "full", "busy", "notes", "targets"
    xheap("start", "own", "-o", "own.xht")
    try:
        with contextlib.ExitStack() as stack:
            for kind in kinds:
                stack.enter_context(false_session(kind))
            run = subprocess.run([XHEAP, "sessions", "--all"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
            lines = run.stdout.splitlines()
            expect(run.returncode == 0 and lines[0].startswith("own: 0 targets"), f"{run}")
            expect(sorted(lines[1:]) == sorted(f"{USER}/{kind}: its logger does not answer" for kind in kinds) or "did not all answer" in run.stderr, f"{run}")
    finally:
        stop_session("own")


def at_once(do, items):
    """Do it for all items at the same time: each waits for a limit."""
    with concurrent.futures.ThreadPoolExecutor(len(items)) as pool:
        list(pool.map(do, items))


def ends():
    """Whatever root asks of a session that is mute, or sends without end, comes to its end with an error that says so."""
    reasons = {"mute": "does not answer", "full": "does not answer", "busy": "sends more than", "notes": "sends more than", "targets": "sends more than"}

    def end(item):
        kind, words = item
        text = asked(kind, *words, f"{USER}/{kind}")
        expect(reasons[kind] in text, f"{words} of {kind}: {text[-300:]}")
    with contextlib.ExitStack() as stack:
        for kind in reasons:
            stack.enter_context(false_session(kind))
        at_once(end, [(kind, words) for kind in reasons for words in (("query",), ("flush",), ("stop",), ("report", "-session"))])


def stopped():
    """A logger that is stopped is given up; the same logger, going on, is stopped as usual."""
    xheap("start", "own", "-o", "own.xht")
    logger = told("query", "own")["logger_pid"]
    os.kill(logger, signal.SIGSTOP)
    try:
        at_once(lambda word: expect("does not answer" in asked("own", word, "own"), word), ("query", "flush", "stop"))
        expect("own: its logger does not answer" in xheap("sessions"), "a stopped logger is listed otherwise")
    finally:
        os.kill(logger, signal.SIGCONT)
    xheap("stop", "own")


def steers(text):
    """The first character of the text that steers a terminal, or None."""
    for character in text:
        if character not in "\n\t" and (unicodedata.category(character) in ("Cc", "Cf", "Cs") or character == "\x7f"):
            return character
    return None


def texts():
    """No text of a session steers a terminal, nor begins a line, in any command."""
    with false_session("steer"):
        name = f"{USER}/steer"
        for words in (("sessions", "--all"), ("query", name), ("query", name, "--threads"), ("query", name, "--format", "json"), ("sessions", "--all", "--format", "json"), ("flush", name),
                      ("update", name, "--add-pid", os.getpid()), ("report", "-session", name), ("launch", name, "--", "true"), ("stop", name)):
            run = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LONG_SECONDS)
            text = (run.stdout + run.stderr).decode(errors="surrogateescape")
            expect("red" in text or "launch" in words, f"{words}: the text did not come: {text}")
            expect(steers(text) is None, f"{words}: {text!r} has {steers(text)!r}")
            expect("\nxheap: a line" not in text, f"{words}: a text begins a line: {text}")


@contextlib.contextmanager
def process_of_user(*words):
    """A process of the other user that waits for the end of the block."""
    command = [os.path.join(PROGRAMS, "claimed"), *words]
    process = subprocess.Popen(command, user=USER, group=USER, extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect(process.stdout.readline() == "ready\n", f"{command} does not begin: {process.poll()}")
    try:
        yield process.pid
    finally:
        process.stdin.close()
        process.wait()


def claimed():
    """A process that has made itself what a recorded one looks like is recorded all the same: in a directory for all, in a place of its user's, and with a
    socket that nobody listens at."""
    for place, mode, name in ("/dev/shm/theirs", 0o755, "xheap"), (f"/dev/shm/xheap-{USER}-claims", 0o700, "1-abcdef"):
        directory = f"{place}/{name}"
        os.mkdir(place, mode)
        os.chown(place, USER, USER)
        with process_of_user(directory) as pid:
            attach("start", "own", "-p", pid, "-o", "own.xht")
            expect(told("query", "own")["targets"], f"{directory}: the process is not recorded")
            xheap("stop", "own")
        subprocess.run(["rm", "-r", place], check=True)


def recorded():
    """A process that a session records is left to it: root's, its owner's, or root's that is to be recovered."""
    with process_of_user() as pid:
        attach("start", "own", "-p", pid, "-o", "own.xht")
        expect("is recorded already, by own" in asked("other", "start", "other", "-p", pid, "-o", "other.xht"), "root records what root records")
        os.kill(told("query", "own")["logger_pid"], signal.SIGKILL)
        expect("is recorded already, by own" in asked("other", "start", "other", "-p", pid, "-o", "other.xht"), "root records what is to be recovered")
    xheap("recover", "own.xht")
    os.mkdir("/dev/shm/traces", 0o755)
    os.chown("/dev/shm/traces", USER, USER)
    theirs = {"user": USER, "group": USER, "extra_groups": [], "cwd": "/dev/shm/traces"}
    with process_of_user() as pid:
        xheap("start", "theirs", "-p", pid, "-o", "own.xht", **theirs)
        try:
            expect("is recorded already, by theirs" in asked("other", "start", "other", "-p", pid, "-o", "other.xht"), "root records what its owner records")
        finally:
            xheap("stop", "theirs", **theirs)


enter_mounts(PRIVATE, "only root may be another user and mount file systems of its own")
prepare()
sys.exit(run_tests(unasked, all_of_them, ends, stopped, texts, claimed, recorded))
