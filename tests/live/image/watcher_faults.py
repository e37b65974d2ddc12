#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options when a watcher breaks: it is killed, stopped, starved or overrun. Programs start in any case, and each start is traced, or counted, or falls into a
listed time without a watcher."""
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import threading
import time

from image.lab import (FILES, PERL, ROOT, SHORT, SOAK_KILLS, TRACES, Watching, cgroups, clear, enter, is_traced, listed, parent, prepare, processes,
                       processes_named, register, start, state_in_force, wait_until_in_force, wait_until_traced, watcher)
from live import PATIENCE, XHEAP, expect, run_tests, wait_for, xheap

KILLS = SOAK_KILLS or 100
REMARKED_STARTS = 400
QUEUED = 4
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
static void limit(const char *text, int length)
{
	int fd = open("/proc/sys/fs/fanotify/max_queued_events", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, length) != length) _exit(9);
	close(fd);
}
int fanotify_init(unsigned flags, unsigned event_flags)
{
	char usual[32];
	int fd = open("/proc/sys/fs/fanotify/max_queued_events", O_RDONLY | O_CLOEXEC), length = read(fd, usual, sizeof(usual));
	close(fd);
	limit("4", 1);
	int group = ((int (*)(unsigned, unsigned))dlsym(RTLD_NEXT, "fanotify_init"))(flags, event_flags);
	limit(usual, length);
	return group;
}
"""


def kill(pid):
    """Whether it was there: the state that is read may be older."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def in_a_gap(intervals, begin, end):
    return any(gap["from_ns"] <= end and begin <= (gap["to_ns"] or 1 << 62) for gap in intervals)


class Storm:
    """Starts, one after the other, in threads, until the block ends. Each leaves its pid and its time."""

    def __enter__(self):
        self.is_over, self.starts, self.failures = False, [], []
        self.threads = [threading.Thread(target=self.go_on) for _ in range(2)]
        for thread in self.threads:
            thread.start()
        return self

    def go_on(self):
        while not self.is_over:
            begin = time.time_ns()
            process = subprocess.Popen(SHORT, stderr=subprocess.PIPE)
            said = process.stderr.read()
            process.stderr.close()
            if process.wait() or said:
                self.failures.append((process.returncode, said))
            self.starts.append((process.pid, begin, time.time_ns()))

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def killed():
    """A watcher that is killed again and again under a storm of starts."""
    clear()
    register("perl")
    chance, intervals = random.Random(17), {}

    def note_intervals():
        """The list has the last 128. The newest one may have no end yet."""
        state = listed()[0]
        intervals.update((gap["from_ns"], gap) for gap in state["intervals"])
        return state
    with Watching():
        wait_until_in_force()
        with Storm() as storm:
            last = 0
            for number in range(KILLS):
                if number % 50 == 49:
                    note_intervals()
                # An ended process can be killed, too, and the state that is read may be older.
                last = wait_for("another watcher", lambda: (pid := watcher()) != last and kill(pid) and pid)
                time.sleep(chance.random() / 50)
        expect(not storm.failures, f"programs failed: {storm.failures[:3]}")
        wait_for("another watcher", lambda: watcher() != last)
        _, rows = wait_for("all counts", lambda: settled())
        state = note_intervals()
    traced = {int(row["pid"]) for trace in TRACES.glob("*.xht") for row in processes(trace)}
    counted = sum(count for outcome, count in rows["perl"]["starts"].items() if outcome != "traced")
    missing = [one for one in storm.starts if one[0] not in traced and not in_a_gap(intervals.values(), one[1], one[2])]
    said = open("watch.err").read()
    begun, stuck = said.count("another watcher has begun"), said.count("it gave no sign of life")
    # A watcher that its guardian takes for stuck, on a busy machine, may be gone already when it is killed here, or had no marks yet.
    expect(KILLS - stuck <= state["interval_count"] <= begun <= KILLS + stuck, f"{state['interval_count']} intervals after {KILLS} kills, {begun} others have begun, {stuck} were stuck")
    expect(len(missing) <= counted, f"{len(missing)} of {len(storm.starts)} starts are neither traced nor counted ({counted}): {missing[:3]}")
    expect(traced, "no start was traced")
    return f"{len(storm.starts)} starts, {len(traced)} traced, {KILLS} kills"


def unseen():
    """Starts between a watcher's end and the next one's signs of life fall into the interval, however late the keeper hears of both."""
    clear()
    register(PERL)
    with Watching():
        pid, keeper = watcher(), listed()[0]["keeper"]
        guardian_pid = parent(pid)
        os.kill(keeper, signal.SIGSTOP)
        try:
            os.kill(pid, signal.SIGKILL)
            begin = time.time_ns()
            start()
            end = time.time_ns()
            wait_for("another watcher", lambda: any(one != pid and parent(one) == guardian_pid for one in processes_named("xheap-watcher")))
            time.sleep(0.2)  # the new one's signs of life
        finally:
            os.kill(keeper, signal.SIGCONT)
        wait_for("another watcher", lambda: watcher() != pid)
        state, rows = listed()
    expect(not rows[str(PERL)]["traced"] and in_a_gap(state["intervals"], begin, end), f"{begin} to {end} is not in {state['intervals']}")


def marked_anew():
    """The keeper sets all marks anew, again and again, under a storm of starts: none is missed between the old marks and the new ones."""
    clear()
    register("perl")
    with Watching():
        wait_until_in_force()
        keeper = listed()[0]["keeper"]
        with Storm() as storm:
            while len(storm.starts) < REMARKED_STARTS:
                os.kill(keeper, signal.SIGHUP)
                time.sleep(0.02)
        expect(not storm.failures, f"programs failed: {storm.failures[:3]}")
        state, rows = wait_for("all counts", lambda: settled())
    # A watcher that is late on a busy machine is killed by its guardian.
    counted, watched = sum(rows["perl"]["starts"].values()), [one for one in storm.starts if not in_a_gap(state["intervals"], one[1], one[2])]
    expect(counted >= len(watched), f"{len(storm.starts)} starts, {len(watched)} of them beside a watcher, {counted} counted: {rows['perl']['starts']}")
    return f"{len(storm.starts)} starts, {len(watched)} of them beside a watcher, {counted} counted"


def settled():
    before = listed()
    time.sleep(0.2)
    after = listed()
    return before == after and after


def stopped():
    """A watcher that is stopped is killed by its guardian, and the start goes on."""
    clear()
    register(PERL)
    with Watching():
        for _ in range(3):
            pid = watcher()
            os.kill(pid, signal.SIGSTOP)
            start()
            wait_for("another watcher", lambda: watcher() != pid)
        wait_for("a traced start", is_traced)
        state, _ = listed()
        expect(sum(gap["why"] == "it gave no sign of life" for gap in state["intervals"]) == 3, f"{state['intervals']}")


def guardian():
    """A guardian that is killed takes its watcher along; the keeper starts both again."""
    clear()
    register(PERL)
    with Watching():
        pid = watcher()
        os.kill(parent(pid), signal.SIGKILL)
        start()
        wait_for("another watcher", lambda: watcher() != pid)
        wait_for("a traced start", is_traced)


def descriptors():
    """A watcher without free descriptors denies nothing."""
    clear()
    register(PERL)
    with Watching():
        pid = watcher()
        # Numbers below that are in use, and gaps above it do not count.
        expect({"0", "1", "2"} <= set(os.listdir(f"/proc/{pid}/fd")), "the watcher lacks a standard descriptor")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))
        for _ in range(5):
            start()
        wait_for("another watcher", lambda: watcher() != pid)
        wait_for("a traced start", is_traced)


def frozen():
    """A watcher in a cgroup that is frozen is killed; another one begins outside of it. The service as a whole goes on when it is thawed."""
    cgroup = cgroups() / f"xheap-frozen-{os.getpid()}"
    try:
        cgroup.mkdir()
    except OSError as error:
        return f"skipped: no cgroup can be made: {error}"
    clear()
    register(PERL)
    try:
        with Watching():
            state = state_in_force()
            (cgroup / "cgroup.procs").write_text(str(state["watcher"]))
            (cgroup / "cgroup.freeze").write_text("1")
            start()
            wait_for("another watcher", lambda: listed()[0]["watcher"] not in (0, state["watcher"]))
            wait_until_traced()
            gap = listed()[0]["intervals"][-1]
            expect(gap["why"] == "it gave no sign of life", f"{gap}")
            state = state_in_force()
            for pid in (parent(state["watcher"]), state["watcher"]):
                (cgroup / "cgroup.procs").write_text(str(pid))
            waiting = subprocess.Popen(["sh", "-c", " ".join(SHORT[:2]) + " 1"])
            (cgroup / "cgroup.freeze").write_text("0")
            expect(waiting.wait() == 0, "a program did not start after the thaw")
            wait_until_traced()
    finally:
        (cgroup / "cgroup.freeze").write_text("0")
        wait_for("an empty cgroup", lambda: not (cgroup / "cgroup.procs").read_text())
        cgroup.rmdir()


def small_share():
    """A cgroup of this test's, whose processes may have a thousandth of a processor."""
    for line in open("/proc/self/mounts"):
        _, place, kind, options, _ = line.split(None, 4)
        if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(",")):
            cgroup = pathlib.Path(place, f"xheap-starved-{os.getpid()}")
            try:
                cgroup.mkdir()
            except OSError:
                continue
            for file, value in (("cpu.max", "1000 1000000"), ("cpu.cfs_period_us", "1000000"), ("cpu.cfs_quota_us", "1000"), ("cpu.rt_runtime_us", "200000")):
                if (cgroup / file).exists():
                    (cgroup / file).write_text(value)
            if (cgroup / "cpu.stat").exists() and "nr_throttled" in (cgroup / "cpu.stat").read_text():
                return cgroup
            cgroup.rmdir()
    return None


def starved():
    """A watcher has the processor although others have used up its cgroup's share: it is not killed as one that is stuck."""
    cgroup = small_share()
    if not cgroup:
        return "skipped: no cgroup with a share of the processor can be made"
    clear()
    register(PERL)
    busy = subprocess.Popen(["timeout", str(30 * PATIENCE), "sh", "-c", "while :; do :; done"], start_new_session=True)

    def waits():
        return int(next(line.split()[1] for line in (cgroup / "cpu.stat").read_text().splitlines() if line.startswith("nr_throttled ")))
    try:
        with Watching():
            state = state_in_force()
            try:
                for pid in (parent(state["watcher"]), state["watcher"]):
                    (cgroup / "cgroup.procs").write_text(str(pid))
            except OSError as error:
                return f"skipped: no real-time process may be in the cgroup: {error}"
            spinning = wait_for("a busy shell", lambda: [pid for pid in processes_named("sh") if parent(pid) == busy.pid])
            (cgroup / "cgroup.procs").write_text(str(spinning[0]))
            wait_for("a share that is used up", lambda: waits() >= 2)
            wait_until_traced()
            now = listed()[0]
            expect(now["watcher"] == state["watcher"] and not now["interval_count"], f"{state['watcher']} was the watcher: {now}")
    finally:
        os.killpg(busy.pid, signal.SIGKILL)
        busy.wait()
        wait_for("an empty cgroup", lambda: not (cgroup / "cgroup.procs").read_text())
        cgroup.rmdir()


def overflow():
    """The kernel's queue of events is full: it allows what does not fit, and list says so."""
    clear()
    register("perl")
    shim = ROOT.parent / "shim.so"
    made = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", shim], input=SHIM, text=True, stderr=subprocess.DEVNULL)
    if made.returncode:
        return "skipped: the library that limits the queue cannot be made"
    os.environ["LD_PRELOAD"] = str(shim)
    try:
        watching = Watching()
        watching.__enter__()
    finally:
        del os.environ["LD_PRELOAD"]
    try:
        state = state_in_force()
        guardian = parent(state["watcher"])
        os.kill(guardian, signal.SIGSTOP)
        os.kill(state["watcher"], signal.SIGSTOP)
        # Each waits in its exec, but for those whose events do not fit.
        waiting = [threading.Thread(target=start) for _ in range(3 * QUEUED)]
        for thread in waiting:
            thread.start()
        wait_for("starts that the kernel allows", lambda: sum(not thread.is_alive() for thread in waiting) >= 2 * QUEUED)
        os.kill(state["watcher"], signal.SIGCONT)
        os.kill(guardian, signal.SIGCONT)
        for thread in waiting:
            thread.join()
        state = wait_for("a count of overflows", lambda: (now := listed()[0])["queue_overflows"] and now)
        expect("starts did not fit into the kernel's queue" in xheap("image", "list"), xheap("image", "list"))
        wait_until_traced("perl")
    finally:
        watching.__exit__()
    return f"{3 * QUEUED} starts at once, {state['queue_overflows']} overflows"


def locked():
    """However little memory may be locked, the watcher has what it needs."""
    clear()
    limited = FILES / "limited"
    for mebibytes in range(2, 9):
        size = mebibytes << 20
        limited.write_text(f"#!/bin/sh\nexec prlimit --memlock={size}:{size} setpriv --bounding-set=-ipc_lock,-sys_resource '{XHEAP}' \"$@\"\n")
        limited.chmod(0o755)
        clear()
        register("perl")
        with Watching("--deadline", "5000", xheap=limited):
            state_in_force()
            wait_until_traced("perl")
            expect(not listed()[0]["interval_count"], f"{mebibytes} MiB: a watcher has ended: {listed()[0]}")


enter()
prepare()
sys.exit(run_tests(killed, unseen, marked_anew, stopped, guardian, descriptors, frozen, starved, overflow, locked))
