#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options when the keeper breaks, or what it reads: it is stopped, killed or replaced, option files are damaged or too many. Programs start in any case, and
each start is traced, or counted, or falls into a listed time without a watcher."""
import os
import pathlib
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

from image.lab import (FILES, OPTIONS, PERL, ROOT, SHORT, TRACES, Watching, clear, covers, enter, listed, parent, prepare, processes, processes_named, register,
                       row_of, run, start, state_in_force, wait_for_starts, wait_until_traced)
from live import XHEAP, expect, run_tests, strace_is_here, wait_for, xheap

PAUSE_S = 1  # between two lists of a thousand options
PROGRAMS_OF_XHEAP = [pathlib.Path(XHEAP), pathlib.Path(XHEAP).with_name("xheap-images")]
NOBODY, MANY_STARTS = 65534, 160


def keeper_stopped():
    """A keeper that is stopped for long: programs start, no count is lost, and the time without a watcher begins when the last one ended."""
    clear()
    register("perl")
    with Watching("--deadline", "5000"):
        state = state_in_force()
        guardian = parent(state["watcher"])
        start()
        wait_for_starts("perl", 1)
        os.kill(state["keeper"], signal.SIGSTOP)
        try:
            loop = f"for i in $(seq {MANY_STARTS // 2}); do {PERL} -e 1 || exit 1; done"
            expect(all(shell.wait() == 0 for shell in [subprocess.Popen(["sh", "-c", loop]) for _ in range(2)]), "a program did not start")
            at_work = time.time_ns()
            os.kill(state["watcher"], signal.SIGKILL)
            other = wait_for("another watcher", lambda: next((pid for pid in processes_named("xheap-watcher") if pid != state["watcher"] and parent(pid) == guardian), 0))
            # Its first sign of life: it has waited for its keeper once.
            wait_for("its signs of life", lambda: int(open(f"/proc/{other}/status").read().rpartition("nonvoluntary")[0].rpartition(":")[2]) >= 3)
            untraced_ns = time.time_ns()
            start()
        finally:
            os.kill(state["keeper"], signal.SIGCONT)
        wait_for("the marks of another watcher", lambda: (now := listed()[0])["in_force"] and now["watcher"] != state["watcher"])
        row = wait_for_starts("perl", MANY_STARTS + 1)
        now = listed()[0]
    expect(covers(now, untraced_ns), f"the time without a watcher does not hold {untraced_ns}: {now['intervals']}")
    expect(not covers(now, at_work - 10**9), f"{now['intervals']} at {at_work}")
    expect(sum(row["starts"].values()) == MANY_STARTS + 1, f"{row}")


def keeper_killed():
    """A keeper that is killed takes its watcher along. The next one lists the time between."""
    clear()
    register("perl")
    with Watching():
        state = state_in_force()
        start()
        wait_for_starts("perl", 1)
        os.kill(state["keeper"], signal.SIGKILL)
        wait_for("the watcher's end", lambda: not os.path.exists(f"/proc/{state['watcher']}"))
        between_ns = time.time_ns()
        start()
    with Watching():
        state = state_in_force()
        wait_until_traced("perl")
    expect(covers(state, between_ns), f"the time without a keeper is not listed: {state['intervals']}, {between_ns}")


def damaged():
    """Option files with anything in them, of any kind: programs start, each file is named, and the good one stays in force."""
    clear()
    OPTIONS.mkdir(parents=True)
    register("perl")
    text, chance = (OPTIONS / "perl.conf").read_bytes(), random.Random(17)
    with Watching("--deadline", "5000"):
        state_in_force()
        (OPTIONS / "empty.conf").write_bytes(b"")
        (OPTIONS / "zero.conf").write_bytes(bytes(5000))
        (OPTIONS / "long.conf").write_bytes(b"[image]\nImage = " + b"x" * 100000 + b"\n")
        (OPTIONS / "half.conf").write_bytes(b"[image]\nIma")
        (OPTIONS / "bytes.conf").write_bytes(bytes(range(256)) * 20)
        (OPTIONS / "directory.conf").mkdir()
        os.mkfifo(OPTIONS / "fifo.conf")
        (OPTIONS / "link.conf").symlink_to("/etc/passwd")
        (OPTIONS / "nothing.conf").symlink_to("nothing")
        (OPTIONS / "twice.conf").write_bytes(text)
        bad = {name for name in os.listdir(OPTIONS)} - {"perl.conf"}
        wait_for("a message about each file", lambda: all(any(f"{name}" in mistake for mistake in listed()[0]["mistakes"]) for name in bad - {"twice.conf"}))
        wait_until_traced("perl")
        for number in range(200):
            changed = bytearray(text)
            for _ in range(chance.randrange(1, 6)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            (OPTIONS / "mutated.conf").write_bytes(changed[:chance.randrange(len(changed) + 1)])
            if number % 10 == 0:
                start()
        (OPTIONS / "mutated.conf").unlink()
        wait_until_traced("perl")
        for name in bad:
            path = OPTIONS / name
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        wait_for("no more messages", lambda: not listed()[0]["mistakes"])


def many():
    """More options than there is room for: those that are not in force are named, and the others are."""
    clear()
    OPTIONS.mkdir(parents=True)
    for number in range(1100):
        (OPTIONS / f"image{number:04}.conf").write_text(f"[image]\nImage = image{number:04}\n")
    shutil.copy(PERL, FILES / "image1023")
    shutil.copy(PERL, FILES / "image1099")
    with Watching("--deadline", "5000", pause=PAUSE_S):
        wait_for("marks in force", lambda: listed()[0]["in_force"], pause=PAUSE_S)
        run(FILES / "image1023", "-e", "1")
        wait_for("a traced start", lambda: row_of("image1023")["traced"] == 1, pause=PAUSE_S)
        mistakes = listed()[0]["mistakes"]
        expect(any("image1099.conf" in mistake for mistake in mistakes), f"what exceeds the limit is not named: {mistakes[:3]}")
        expect(run(FILES / "image1099", "-e", "1").returncode == 0, "a program did not start")


def upgraded():
    """The command and the watcher's program are replaced and the service started again, while programs start."""
    clear()
    register("perl")
    installed = ROOT.parent / "installed"
    installed.mkdir(mode=0o755)
    results, is_over, first_ns = [], threading.Event(), 0

    def storm():
        while not is_over.is_set():
            begin = time.time_ns()
            process = subprocess.Popen(SHORT, stderr=subprocess.PIPE)
            said = process.communicate()[1]
            results.append((process.pid, begin, time.time_ns(), process.returncode or said))
    threads = [threading.Thread(target=storm) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(3):
            for program in PROGRAMS_OF_XHEAP:
                # By a process of its own: a child of the threads would hold what is open here, and nobody may execute that.
                subprocess.run(["cp", program, installed / "new"], check=True)
                os.rename(installed / "new", installed / program.name)
            with Watching("--deadline", "5000", xheap=installed / "xheap"):
                state_in_force()
                # Starts before the first marks fall into no interval, though one of them may begin later than another one that is traced.
                first_ns = first_ns or time.time_ns()
                before = row_of("perl")["traced"] if "perl" in listed()[1] else 0
                wait_for("traced starts", lambda: row_of("perl")["traced"] > before + 10)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    expect(not [row for row in results if row[3]], f"programs failed: {[row for row in results if row[3]][:3]}")
    state, rows = listed()
    traced = {int(row["pid"]) for trace in TRACES.glob("*.xht") for row in processes(trace)}
    counted = sum(count for outcome, count in rows["perl"]["starts"].items() if outcome != "traced")
    missing = [row for row in results if row[0] not in traced and row[1] > first_ns and
               not any(gap["from_ns"] <= row[2] and row[1] <= (gap["to_ns"] or 1 << 62) for gap in state["intervals"])]
    expect(len(missing) <= counted, f"{len(missing)} of {len(results)} starts are neither traced nor counted ({counted}): {missing[:3]} {state['intervals']}")
    return f"{len(results)} starts, {len(traced)} traced"


def trusted():
    """`image watch` executes no program that is missing, or that others may replace, or that is a link; and leaves both of xheap's own files alone."""
    clear()
    place = FILES / "place"
    place.mkdir(mode=0o755)
    for program in PROGRAMS_OF_XHEAP:
        shutil.copy(program, place)
    command, watcher = place / "xheap", place / "xheap-images"

    def is_refused(why, path=watcher):
        done = run(command, "image", "watch", "--below", FILES)
        expect(done.returncode == 2 and f"image watch: cannot use {path}: {why}\n" in done.stderr.replace("/:", ":"), f"{path}, {why}: {done}")
    os.rename(watcher, place / "away")
    is_refused("No such file or directory")
    watcher.symlink_to("away")
    is_refused("it is not a file")
    os.replace(place / "away", watcher)
    for path in (watcher, place):
        mode = path.stat().st_mode & 0o777
        for more in (0o020, 0o002):
            path.chmod(mode | more)
            is_refused("others may write to it", path)
        path.chmod(mode)
        os.chown(path, NOBODY, NOBODY)
        is_refused("it belongs to another user", path)
        os.chown(path, 0, 0)
    # By other names, and so by the files.
    for program in PROGRAMS_OF_XHEAP:
        os.link(place / program.name, FILES / f"other-{program.name}")
        expect("does not trace itself" in xheap("image", "add", place / program.name, status=2), f"{program} can be registered")
        register(FILES / f"other-{program.name}")
    with Watching("--deadline", "5000", xheap=command):
        wait_for("two options that are not in force", lambda: all(re.search(rf"other-{program.name}-\w+\.conf is not in force: xheap does not trace itself", open("watch.err").read())
                                                                  for program in PROGRAMS_OF_XHEAP))


def ended():
    """A service that ends slowly: starts fall into the listed time, from the moment on at which nothing waits for the watcher any more."""
    if not strace_is_here():
        return "skipped: there is no strace"
    clear()
    register("perl")
    with Watching():
        state = state_in_force()
        start()
        wait_for_starts("perl", 1)
        watcher = os.pidfd_open(state["watcher"])
        # Each of the keeper's closes takes a while: that of its guardian's socket, by which the watcher ends, and that of the watcher's.
        tracer = subprocess.Popen(["strace", "-qq", "-p", str(state["keeper"]), "-o", "/dev/null", "-e", "trace=close", "-e", "inject=close:delay_exit=500000"], stderr=subprocess.PIPE)
        try:
            wait_for("strace", lambda: "TracerPid:\t0" not in open(f"/proc/{state['keeper']}/status").read())
            os.kill(state["keeper"], signal.SIGTERM)
            wait_for("the watcher's end", lambda: select.select([watcher], [], [], 0)[0])
            begin_ns = time.time_ns()
            start()
            end_ns = time.time_ns()
        finally:
            tracer.kill()
            tracer.wait()
            tracer.stderr.close()
            os.close(watcher)
    state = listed()[0]
    expect(covers(state, end_ns), f"a start without a watcher, from {begin_ns} to {end_ns}, is not in {state['intervals']}")


enter()
prepare()
sys.exit(run_tests(keeper_stopped, keeper_killed, damaged, many, upgraded, trusted, ended))
