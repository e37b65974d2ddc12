#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""File systems that do not answer: a recorded process of another user has files on a FUSE file system of its own, below an overlay in a user namespace of its
own. Root's logger asks it, and does not wait for it. All of it lies on a file system of this test's own; each server ends by itself."""
import contextlib
import glob
import os
import pathlib
import shutil
import subprocess
import sys

from live import LONG_SECONDS, PROGRAMS, XHEAP, enter_mounts, expect, info, run_tests, stop_session, wait_for, xheap

PRIVATE, SKIP, USER = "XHEAP_TEST_UNANSWERED", 77, 64022
STRANGER, SERVER_SECONDS = os.path.join(PROGRAMS, "stranger"), 2 * LONG_SECONDS
PLACE = pathlib.Path("strange").absolute()
LIBRARY = next(iter(glob.glob("/usr/lib/*/libz.so.1") + glob.glob("/usr/lib*/libz.so.1")), None)
# The layers of the overlay: FUSE, and an empty directory.
SCRIPT = """set -e
mount -t tmpfs strange {mounts}
mkdir {mounts}/fuse {mounts}/empty {mounts}/all
'{stranger}' serve {mounts}/fuse {device} $2 {answered} {seconds} > {place}/server.$1 &
while ! grep -qs serves {place}/server.$1; do sleep 0.02; kill -0 $!; done
mount -t overlay all -o lowerdir={mounts}/fuse:{mounts}/empty {mounts}/all
{command}
"""


def prepare():
    """A place of the other user's, and the device as udev makes it."""
    PLACE.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "test", PLACE], check=True)
    (PLACE / "mounts").mkdir()
    os.chown(PLACE, USER, USER)
    made = subprocess.run(["mknod", "-m", "666", PLACE / "device", "c", "10", "229"], stderr=subprocess.DEVNULL).returncode == 0
    works = made and as_user("true", 9, "works", subprocess.Popen).wait() == 0
    if not works or not LIBRARY:
        print("no FUSE file system in a user namespace of another user")
        sys.exit(SKIP)


def as_user(command, answered, name, run, before=(), served=LIBRARY, **more):
    """Run the shell's command as the other user, beside a server of the file that leaves the open after so many without an answer. -1: no read is."""
    script = SCRIPT.format(mounts=PLACE / "mounts", place=PLACE, stranger=STRANGER, device=PLACE / "device", answered=answered,
                           seconds=SERVER_SECONDS, command=command)
    return run([*before, "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--pdeathsig", "KILL", "unshare", "--user", "--map-root-user", "--mount",
                "--pid", "--kill-child", "--fork", "sh", "-c", script, "sh", name, served], **more)


def unanswered():
    """Whether a server leaves an open without an answer."""
    return any(pathlib.Path(path).exists() for path in glob.glob(f"/proc/[0-9]*/root{PLACE}/mounts/fuse.unanswered"))


@contextlib.contextmanager
def hanging(session, command, answered, name, served=LIBRARY):
    """The command in the session, until the end of the block."""
    process = as_user(command, answered, name, subprocess.Popen, (XHEAP, "launch", session, "--"), served, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.stdin.close()
        process.kill()
        process.wait()


def session_of(command, answered, name, served=LIBRARY):
    """The command runs in a session while another program is recorded; the server leaves an open without an answer. What is said of the trace."""
    xheap("start", "own", "-o", f"{name}.xht")
    try:
        with hanging("own", command, answered, name, served) as process:
            if answered >= 0:
                wait_for("open without an answer", unanswered)
            xheap("launch", "own", "--", "perl", "-e", "my @kept = map { 'x' x $_ } 1 .. 20000")
            expect(process.stdout.readline() == "loaded\n", "the process does not go on")
            expect("0 lost" in xheap("query", "own"), "query")
            xheap("stop", "own")
            expect(process.poll() is None, "the server has ended before")
    finally:
        stop_session("own")
    facts = info(f"{name}.xht")
    expect(facts["lost_events"] == 0, f"{facts}")
    return " ".join(xheap("info", f"{name}.xht").split())


def loaded():
    """A library that the logger cannot open: the logger answers, records others wholly, says what it could not read, and ends when it is told to."""
    said = session_of(f"exec '{STRANGER}' load {PLACE}/mounts/all/file", 1, "loaded")
    expect(f"all functions of {PLACE}/mounts/all/file: its file system does not answer" in said, said)


def executed():
    """A program that the logger cannot open is executed untraced; the same of the others."""
    said = session_of(f"{PLACE}/mounts/all/file; echo loaded; cat", 0, "executed", shutil.which("true"))
    # The middle of a long path is left out.
    expect("not complete" in said and "/mounts/all/file: its file system does not answer" in said, said)


def answering():
    """Where the file system answers, the library is read as any other."""
    xheap("start", "own", "-o", "answering.xht")
    try:
        with hanging("own", f"exec '{STRANGER}' load {PLACE}/mounts/all/file", 1000, "answering") as process:
            expect(process.stdout.readline() == "loaded\n", "the library is not loaded")
            process.stdin.close()
            process.wait()
        xheap("stop", "own")
    finally:
        stop_session("own")
    expect(info("answering.xht")["complete"], xheap("info", "answering.xht"))


def mapped():
    """Memory that a process has mapped, and that its file system never gives: what lies there is read by a child."""
    said = session_of(f"exec '{STRANGER}' map {PLACE}/mounts/all/file {LIBRARY}", -1, "mapped")
    expect(f"all functions of {PLACE}/mounts/all/file: its file system does not answer" in said, said)


enter_mounts(PRIVATE, "only root may be another user and mount file systems of its own")
prepare()
sys.exit(run_tests(loaded, executed, answering, mapped))
