#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of strangers: no reader and no logger opens a pipe or a device, whatever leads to it. The kernel tells of each opening (inotify)."""
import ctypes
import glob
import os
import shutil
import stat
import subprocess
import sys

from live import PROGRAMS, XHEAP, expect, info, run_tests, xheap

IN_OPEN = 0x20
STRANGER = os.path.join(PROGRAMS, "stranger")
LIBRARY = next(iter(glob.glob("/usr/lib/*/libz.so.1") + glob.glob("/usr/lib*/libz.so.1")), None)
libc = ctypes.CDLL(None, use_errno=True)


class Opened:
    """How often a file was opened while this was watched. A descriptor that only names the file (O_PATH) is no opening of it."""
    def __init__(self, path):
        self.path = path
        self.queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        expect(libc.inotify_add_watch(self.queue, os.fsencode(path), IN_OPEN) >= 0, f"cannot watch {path}")

    def count(self):
        try:
            return len(os.read(self.queue, 65536)) // 16
        except BlockingIOError:
            return 0

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        count = self.count()
        os.close(self.queue)
        if not kind:
            expect(count == 0, f"{self.path} was opened {count} times")


def can_tell():
    """That the check above can fail."""
    os.mkfifo("told")
    watch = Opened("told")
    os.close(os.open("told", os.O_RDONLY | os.O_NONBLOCK))
    os.close(os.open("told", os.O_PATH))
    expect(watch.count() == 1, "the kernel does not tell of an opened pipe")


def program_of_own():
    """The trace of a program that is nowhere else."""
    shutil.copy(shutil.which("perl"), "own")
    xheap("record", "-q", "-o", "own.xht", "./own", "-e", "my @kept = map { 'x' x $_ } 1 .. 2000")


def readers():
    """A report, symbols, and a trace that is a pipe."""
    program_of_own()
    os.remove("own")
    for name in "own", "own.debug":
        os.mkfifo(name)
    with Opened("own"), Opened("own.debug"):
        said = xheap("report", "own.xht", status=None)
        said += xheap("symbols", "own.xht", status=None)
        xheap("heap", "own.xht", "-stacks", status=None)
    expect("own was left out: at its path is no file any more" in said, f"nothing says that the pipe was left out: {said}")
    os.mkfifo("pipe.xht")
    with Opened("pipe.xht"):
        said = xheap("report", "pipe.xht", status=2)
    expect("is a pipe, and a trace is a file" in said, said)


def without_proc():
    """Where there is no /proc a trace is read all the same."""
    if os.geteuid():
        print("not root: no mounts, so no test without /proc")
        return
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    program_of_own()
    run = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" report own.xht', XHEAP], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    expect(run.returncode == 0 and "own" in run.stdout, f"status {run.returncode}: {run.stdout}")


def logger():
    """A library that a recorded process has in its own mount namespace, at a path where others have a pipe or a device."""
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode or not LIBRARY:
        print("not root: no mounts, so no file that only the process sees")
        return
    os.mkdir("theirs")
    os.mkfifo("theirs/pipe")
    os.mknod("theirs/device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    for name in "pipe", "device":
        path = os.path.abspath(f"theirs/{name}")
        with Opened(path):
            script = f"mount -t tmpfs theirs theirs && cp {LIBRARY} {path} && exec '{STRANGER}' load {path} < /dev/null"
            said = xheap("record", "-q", "-o", f"{name}.xht", "unshare", "-m", "sh", "-c", script)
        expect("loaded" in said and info(f"{name}.xht")["complete"], f"{said}{info(f'{name}.xht')}")


sys.exit(run_tests(can_tell, readers, without_proc, logger))
