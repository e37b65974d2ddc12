#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""More of what may break about image options: a keeper that is stopped or killed, a frozen cgroup, a queue that overflows, loggers that are killed at each of
their steps, damaged and many option files, an upgrade, other architectures, no memory. Programs start in any case, and each start is traced or counted."""
import os
import pathlib
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

from image.lab import FILES, OPTIONS, ROOT, TRACES, Watching, cgroups, clear, enter, listed, prepare, processes, register, run, wait_for_starts, wait_until_in_force
from live import PATIENCE, PROGRAMS, XHEAP, expect, run_tests, strace_is_here, told, wait_for, xheap

CLOCK_NANOSLEEP = "230 "    # as /proc has the numbers of system calls of x86-64
PERL = FILES / "perl"
SHORT = [str(PERL), "-e", "1"]
PAUSE_S = 1  # between two lists of a thousand options
PROGRAMS_OF_XHEAP = [pathlib.Path(XHEAP), pathlib.Path(XHEAP).with_name("xheap-images")]
NOBODY, QUEUED, MANY_STARTS = 65534, 4, 160
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


def start(**more):
    done = run(*SHORT, **more)
    expect(done.returncode == 0 and not done.stderr, f"a program did not start: {done}")


def state_in_force():
    return wait_for("a watcher with its marks", lambda: (state := listed()[0])["in_force"] and state)


def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])


def processes_named(name):
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text() == name + "\n":
                yield int(path.parent.name)
        except OSError:
            pass


def row_of(image=PERL):
    return listed()[1][str(image)]


def logger_pid(image="perl"):
    """The logger of the image's own session."""
    return wait_for("the image's logger", lambda: next((row["logger_pid"] for row in told("sessions") if row["alive"] and row["name"].rpartition(".")[2].startswith(image)), 0))


def covers(state, moment_ns):
    return any(gap["from_ns"] <= moment_ns <= (gap["to_ns"] or 1 << 62) for gap in state["intervals"])


def wait_until_traced(image=PERL):
    def is_traced():
        start()
        return row_of(image)["traced"] > before
    before = row_of(image)["traced"]
    wait_for("a start that is traced", is_traced)


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


def logger_steps():
    """A logger is killed at each call by which it takes a process over, before its answer and after it: the program runs, and the start is counted."""
    if not strace_is_here():
        return "skipped: there is no strace"
    clear()
    register("perl")
    steps = [("ptrace", number) for number in (1, 2, 3, 6)] + [("pwrite64", 1), ("wait4", 1), ("sendto", 1), ("sendto", 2)]
    ended, tried = 0, 0
    with Watching("--deadline", "5000"):
        state_in_force()
        for call, number in steps:
            wait_until_traced("perl")
            logger, before = logger_pid(), row_of("perl")["starts"]
            tracer = subprocess.Popen(["strace", "-f", "-qq", "-p", str(logger), "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"],
                                      stderr=subprocess.PIPE)
            try:
                wait_for("strace", lambda: "TracerPid:\t0" not in open(f"/proc/{logger}/status").read())
                done = run(PERL, "-e", "print 1 + 1; exit 3")
                expect((done.returncode, done.stdout, done.stderr) == (3, "2", ""), f"killed at {call} {number}: the program failed: {done}")
                now = wait_for(f"a count of the start, at {call} {number}", lambda: (now := row_of("perl")["starts"]) != before and now)
                tried += 1
                ended += now["logger_ended"] > before["logger_ended"]
            finally:
                tracer.kill()
                tracer.wait()
                tracer.stderr.close()
    expect(ended >= 2, f"no logger was killed before its report: {ended} of {tried}")
    return f"{tried} steps, {ended} starts counted as untraced"


def is_sleeping(pid):
    return "TracerPid:\t0\n" in open(f"/proc/{pid}/status").read() and open(f"/proc/{pid}/syscall").read().startswith(CLOCK_NANOSLEEP)


def late_stop():
    """A logger that stood still stops a process long after its exec, in a sleep that a filter of the process forbids to resume: the process sleeps on."""
    clear()
    strict = FILES / "strict"
    shutil.copy(os.path.join(PROGRAMS, "strict"), strict)
    register("strict")
    with Watching("--deadline", "100"):
        state_in_force()
        run(strict, "0")
        wait_for_starts("strict", 1)
        logger = wait_for("its logger", lambda: next((row["logger_pid"] for row in told("sessions") if row["name"].endswith(".strict")), None))
        os.kill(logger, signal.SIGSTOP)
        try:
            process = subprocess.Popen([strict, "1000"], stdout=subprocess.PIPE, text=True)
            expect(process.stdout.readline() == "sleeps\n", "it does not begin")
            wait_for("its sleep", lambda: is_sleeping(process.pid))
        finally:
            os.kill(logger, signal.SIGCONT)
        row = wait_for_starts("strict", 2)
        wait_for("its sleep or its end", lambda: process.poll() is not None or is_sleeping(process.pid))
        expect(process.poll() is None, f"it has ended with {process.poll()}")
        process.kill()
        process.wait()
        expect(row["starts"]["deadline_exceeded"] >= 1, f"it was not late: {row}")


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
                shutil.copy(program, installed / "new")
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


def architectures():
    """A program of another architecture runs, and is named with the reason."""
    clear()
    program = FILES / "small32"
    source = 'void _start(void) { __asm__ volatile("int $0x80" : : "a"(1), "b"(5)); __builtin_unreachable(); }'
    made = subprocess.run(["gcc", "-m32", "-static", "-nostdlib", "-x", "c", "-", "-o", program], input=source, text=True, stderr=subprocess.DEVNULL)
    if made.returncode or subprocess.run([program]).returncode != 5:
        return "skipped: no program of 32 bits can be made and run here"
    register(program)
    with Watching():
        state_in_force()
        expect(run(program).returncode == 5, "the program of 32 bits ended otherwise")
        row = wait_for_starts(program, 1)
    expect(row["starts"]["cannot_be_traced"] == 1 and "a 32-bit program" in row["last_reason"], f"{row}")
    return row["last_reason"]


def memory():
    """A program without room for the recorder, and a logger without memory: programs run, and are counted."""
    clear()
    program = FILES / "tight"
    source = "int main(void) { return 6; }"
    if subprocess.run(["cc", "-static", "-x", "c", "-", "-o", program], input=source, text=True, stderr=subprocess.DEVNULL).returncode:
        return "skipped: no static program can be linked"
    register(program)
    register("perl")
    with Watching("--deadline", "5000"):
        state_in_force()
        done = run("prlimit", "--as=2000000", program)
        expect(done.returncode == 6, f"the program ended otherwise: {done}")
        row = wait_for_starts(program, 1)
        expect(row["traced"] + row["starts"]["cannot_be_traced"] == 1 and (row["traced"] or row["last_reason"]), f"{row}")
        reason = row["last_reason"]
        wait_until_traced("perl")
        logger, before = logger_pid(), sum(row_of("perl")["starts"].values())
        size = int(open(f"/proc/{logger}/statm").read().split()[0]) * resource.getpagesize()
        resource.prlimit(logger, resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
        for _ in range(5):
            start()
        row = wait_for_starts("perl", before + 5)
        resource.prlimit(logger, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        expect(sum(row["starts"].values()) == row["traced"] + row["starts"]["cannot_be_traced"] and row["last_reason"], f"{row}")
        wait_until_traced("perl")
    return f"{reason}; {row['last_reason']}"


enter()
prepare()
sys.exit(run_tests(keeper_stopped, keeper_killed, frozen, starved, overflow, logger_steps, late_stop, damaged, many, upgraded, locked, trusted, ended, architectures, memory))
