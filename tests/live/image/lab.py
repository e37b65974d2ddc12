# SPDX-License-Identifier: MIT
"""What tests of image options share. All files with marks lie on a tmpfs of the test's own, in a mount namespace of its own; nothing of the machine is
marked. Each watcher is killed after a time."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

from live import PATIENCE, SOAK, XHEAP, dump, enter_mounts, expect, told, wait_for, xheap

PRIVATE = "XHEAP_TEST_IMAGES"
ROOT, FILES = pathlib.Path("root").absolute(), pathlib.Path("files").absolute()
OPTIONS, TRACES = ROOT / "etc/xheap/image.d", ROOT / "var/lib/xheap/traces"
PERL = FILES / "perl"
SHORT = [str(PERL), "-e", "1"]
LIFE_SECONDS = 30 * PATIENCE
# Until a vfork's child has executed its program, Python runs no other thread. Starts may wait for long here.
subprocess._USE_VFORK = False
SOAK_KILLS = 1000 if SOAK else 0


def enter():
    enter_mounts(PRIVATE, "skipped: only root may mount a file system of its own and ask for permission events")


def prepare():
    for directory in (ROOT, FILES):
        directory.mkdir(mode=0o755, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m,mode=755", "test", FILES], check=True)
    os.environ["XHEAP_IMAGE_ROOT"] = str(ROOT)
    for name in ("perl", "sort"):
        shutil.copy(shutil.which(name), FILES / name)


@contextlib.contextmanager
def usual_places():
    """Sessions live where they do without XHEAP_RUNTIME_DIR, those of users, too. There are none but those of the block."""
    places, environment = (("/dev/shm", "1777"), ("/run", "755")), dict(os.environ)
    for place, mode in places:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=256m,mode={mode}", "test", place], check=True)
    for name in ("XHEAP_RUNTIME_DIR", "XDG_RUNTIME_DIR"):
        os.environ.pop(name, None)
    try:
        yield
    finally:
        os.environ.update(environment)
        for place, _ in places:
            subprocess.run(["umount", "-l", place], check=True)


def cgroups():
    """Where the tree of cgroups (version 2) is mounted; a directory that is not there if it is nowhere."""
    for line in open("/proc/self/mounts"):
        _, place, kind, _ = line.split(None, 3)
        if kind == "cgroup2":
            return pathlib.Path(place)
    return pathlib.Path("/nonexistent")


class Watching:
    """xheap image watch, until the end of the block. It ends by itself, whatever becomes of this test."""

    def __init__(self, *words, xheap=XHEAP, pause=0.02):
        # On a busy machine a logger may be slow: only tests of that have the usual deadline.
        self.words = words if "--deadline" in words else ["--deadline", "10000", *words]
        self.xheap, self.pause = xheap, pause

    def __enter__(self):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", "timeout", "-s", "KILL", str(LIFE_SECONDS), self.xheap, "image", "watch", "--below", FILES, *self.words],
                                        stderr=open("watch.err", "w"))
        wait_for("watcher", lambda: self.process.poll() is not None or told("image", "list")["keeper"], pause=self.pause)
        expect(self.process.poll() is None, f"the keeper has ended: {open('watch.err').read()}")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.kill(told("image", "list")["keeper"] or self.process.pid, signal.SIGTERM)
        self.process.wait()


def register(*words):
    xheap("image", "add", *words)


def listed():
    state = told("image", "list")
    return state, {row["image"]: row for row in state["images"]}


def wait_until_in_force():
    """Until the marks are set for the options as they are now."""
    wait_for("marks in force", lambda: listed()[0]["in_force"])


def clear():
    shutil.rmtree(OPTIONS, ignore_errors=True)
    shutil.rmtree(TRACES, ignore_errors=True)
    shutil.rmtree(ROOT / "run", ignore_errors=True)


def run(*command, **more):
    return subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60 * PATIENCE, **more)


def wait_for_starts(image, count):
    """Until so many starts of the image have been counted."""
    def found():
        row = listed()[1][str(image)]
        return sum(row["starts"].values()) >= count and row
    return wait_for(f"{count} starts of {image} in {listed()[1]}", found)


def processes(trace):
    return dump(trace, "-processes")


def start(**more):
    """A start of the image PERL, which must not fail."""
    done = run(*SHORT, **more)
    expect(done.returncode == 0 and not done.stderr, f"a program did not start: {done}")


def row_of(image=PERL):
    return listed()[1][str(image)]


def watcher():
    """Its pid, when its marks are in force."""
    return wait_for("a watcher", lambda: (state := listed()[0])["in_force"] and state["watcher"])


def state_in_force():
    """As listed() has it, when the marks are in force."""
    return wait_for("a watcher with its marks", lambda: (state := listed()[0])["in_force"] and state)


def covers(state, moment_ns):
    """Whether a moment lies in a listed time without a watcher."""
    return any(gap["from_ns"] <= moment_ns <= (gap["to_ns"] or 1 << 62) for gap in state["intervals"])


def is_traced():
    """Whether a start has been traced: after another one, since a logger may not be ready for the first."""
    start()
    return listed()[1][str(PERL)]["traced"]


def wait_until_traced(image=PERL):
    def is_traced():
        start()
        return row_of(image)["traced"] > before
    before = row_of(image)["traced"]
    wait_for("a start that is traced", is_traced)


def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])


def processes_named(name):
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text() == name + "\n":
                yield int(path.parent.name)
        except OSError:
            pass
