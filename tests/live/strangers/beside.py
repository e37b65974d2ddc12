#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Beside hostile sessions of another user: directories that look like sessions with garbage in them, sockets that never answer or answer nonsense, pipes, huge
files, links in circles. Root's lists come to their end, and tests pass, as each has a place of its own: some of them, or with SOAK=1 all.

All of it lies on file systems of this test's own, where nobody else meets it."""
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time

from live import BUILD, LONG_SECONDS, SOAK, SOURCE, enter_mounts, expect, run_tests, stop_session, told, xheap

PRIVATE, SKIP = "XHEAP_TEST_STRANGERS", 77
USER, HUGE_BYTES = 64020, 1 << 40
PLACES = pathlib.Path(f"/dev/shm/xheap-{USER}-abcdef"), pathlib.Path(f"/run/user/{USER}/xheap-{USER}")
SOME = ("session/commands",), ("faults/no_memory", "limits"), ("image/starts", "starts", "sessions"), ("target/placement", "test_attached")


def prepare():
    """Where sessions live: this test's own is another one than the usual places."""
    own = pathlib.Path(os.environ["XHEAP_RUNTIME_DIR"])
    for place, mode in (("/dev/shm", "1777"), ("/run", "755")):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=1g,mode={mode}", "test", place], check=True)
    own.mkdir(mode=0o755, parents=True)
    for folder in ("/run/user", f"/run/user/{USER}"):
        os.mkdir(folder, 0o755)
    os.chown(f"/run/user/{USER}", USER, USER)
    os.chmod(f"/run/user/{USER}", 0o700)


# ---- what the other user does ----

def garbage(place):
    for name, size in (("session", 9000), ("region.0", 1 << 20), ("region.0.info", 500), ("control", 10)):
        (place / name).write_bytes(random.Random(size).randbytes(size))


def damaged(place):
    (place / "session").write_text("trace=/etc/shadow\nname=..\npid=1\npid_start=0\nclock=tsc\nmult=0\nshift=99\n")
    (place / "region.0").symlink_to("/dev/zero")


def pipes(place):
    for name in ("session", "region.0", "region.0.info", "control"):
        os.mkfifo(place / name)


def huge(place):
    for name in ("session", "region.0", "region.0.info"):
        (place / name).touch()
        os.truncate(place / name, HUGE_BYTES)


def circles(place):
    for name, target in (("session", "session"), ("region.0", "region.1"), ("region.1", "region.0"), ("control", ".")):
        (place / name).symlink_to(target)


def listen(place, backlog):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(place / "control"))
    listener.listen(backlog)
    return listener


KEPT = []


def silent(place):
    """Its queue is full: nobody can connect any more."""
    KEPT.append(listen(place, 0))
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    caller.connect(str(place / "control"))
    KEPT.append(caller)


def mute(place):
    KEPT.append(listen(place, 1000))


def babbling(place):
    def answer(listener):
        while True:
            link, _ = listener.accept()
            KEPT.append(link)
            try:
                link.send(random.Random(1).randbytes(700))
            except OSError:
                pass
    threading.Thread(target=answer, args=(listen(place, 100),), daemon=True).start()


SOCKETS = silent, mute, babbling


def as_stranger(ready):
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    for parent in PLACES:
        parent.mkdir(0o700)
        # Root lists eight sessions of a user, the first ones of the runtime directory.
        for number, fill in enumerate((garbage, damaged, pipes, huge, circles) if parent == PLACES[0] else (garbage, damaged, *SOCKETS), 1):
            place = parent / f"{number}-abcdef"
            place.mkdir(0o700)
            fill(place)
            (parent / f"{fill.__name__}.session").symlink_to(place.name)
        (parent / "circle.session").symlink_to("circle.session")
        (parent / "outside.session").symlink_to("/etc")
        (parent / ("x" * 200 + ".session")).symlink_to("1-abcdef")
        (parent / "-\x1b[31m\n.session").symlink_to("1-abcdef")
        os.mkfifo(parent / "pipe.session")
    shared = pathlib.Path("/dev/shm")
    os.mkfifo(shared / f"xheap-{USER}-pipe")
    (shared / f"xheap-{USER}-circle").symlink_to(f"xheap-{USER}-circle")
    (shared / "xheap-0-abcdef").mkdir(0o777)
    ready.write(b"x")
    ready.flush()
    while True:
        time.sleep(1000)


def begin_stranger():
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ours)
        try:
            as_stranger(os.fdopen(theirs, "wb"))
        finally:
            os._exit(1)
    os.close(theirs)
    expect(os.read(ours, 1) == b"x", "the other user does not begin")
    return pid


# ---- tests ----

def lists():
    """Nothing is seen of the other user from a place of one's own, nor from root's usual one without --all, and root's own session is used."""
    expect("no sessions" in xheap("sessions"), "another user's sessions are seen from a place of this user's own")
    place = os.environ.pop("XHEAP_RUNTIME_DIR")
    try:
        xheap("start", "own", "-o", "own.xht", "-p", "0")
        xheap("launch", "own", "--", "true")
        expect([row["name"] for row in told("sessions")] == ["own"], "root sees sessions of others unasked")
        rows = {row["name"]: row for row in told("sessions", "--all")}
        expect(rows["own"]["alive"] and {f"{USER}/{one.__name__}" for one in SOCKETS} <= set(rows) and len(rows) <= 9, f"{rows.keys()}")
        expect(not any(row["alive"] for name, row in rows.items() if name != "own"), f"{rows}")
        expect("nothing to recover" in xheap("recover", status=2), "there is something to recover")
        xheap("stop", "own")
    finally:
        stop_session("own")
        os.environ["XHEAP_RUNTIME_DIR"] = place
    return f"{len(rows)} sessions"


def run_one(name, *words):
    folder = pathlib.Path(f"of-{name.replace('/', '-')}").absolute()
    folder.mkdir()
    done = subprocess.run([SOURCE / f"tests/live/{name}.py", *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LONG_SECONDS, env=dict(os.environ, TMPDIR=str(folder)))
    expect(done.returncode == 0, f"{name} beside a stranger: status {done.returncode}: {done.stdout[-3000:]}")


def suites():
    """Tests that list, watch and stop sessions; with SOAK=1 all of them, as make check runs them."""
    if not SOAK:
        for words in SOME:
            run_one(*words)
        return f"{len(SOME)} tests"
    environment = {name: value for name, value in os.environ.items() if name != "SOAK"}
    done = subprocess.run([SOURCE / "tests/run", "--build", BUILD, "unit/", "cli/", "golden/", "live/"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    expect(done.returncode == 0, f"status {done.returncode}: {done.stdout[-8000:]}")
    return done.stdout.splitlines()[-1]


if os.environ.get(PRIVATE) == "inside":
    print("this is run beside a stranger already")
    sys.exit(SKIP)
enter_mounts(PRIVATE, "only root may be another user and mount file systems of its own")
prepare()
os.environ[PRIVATE] = "inside"
stranger = begin_stranger()
try:
    status = run_tests(lists, suites)
finally:
    os.kill(stranger, signal.SIGKILL)
    os.waitpid(stranger, 0)
sys.exit(status)
