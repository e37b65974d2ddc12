#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Triggers of a flight recorder fire when they should, and only then; what they write out has the last that each thread did, by the program's own counts.

crashes   every way in which a program may end: by a signal, whatever sent it and whichever thread it hit, or not
exits     the same programs, for a trigger at every end
command   of a recording without a session: the trigger's file and that of the end
resident  memory that is resident: what it went into is there
killed    by the kernel, at the memory limit of a cgroup
at_once   the same, before anybody looked at the process
"""
import os
import pathlib
import signal
import struct
import subprocess

from live import LONG_SECONDS, PROGRAMS, XHEAP, dump, expect, followed_by, info, is_whole, run_tests, stop_session, told, wait_for, xheap

NAME, BLOCKS, FIRST, LEFT, MIB, RESIDENT_MIB = f"triggers{os.getpid()}", 500, 100000, 3, 1 << 20, 60
# The signal that ends the process; None: none does. "thread" is the second thread.
SIGNALS = {"exit": None, "segv": signal.SIGSEGV, "thread": signal.SIGSEGV, "busy": signal.SIGSEGV, "abort": signal.SIGABRT, "fpe": signal.SIGFPE,
           "term": signal.SIGTERM, "kill": signal.SIGKILL, "twice": signal.SIGABRT, "overflow": signal.SIGSEGV, "again": signal.SIGSEGV, "leave": None,
           "jump": None, "child": None}
STATUSES = {"leave": LEFT}


def start(*options):
    xheap("start", NAME, "-o", "t.%02d.xht", "-p", "0", "--file-mode", "flight", "--max-file", "16M", *options)


def written_out():
    return told("query", NAME)["written_out"]


def counters(kind):
    path = pathlib.Path(f"{kind}.counters")
    path.write_bytes(bytes(16))
    return path


def run(kind):
    """It, as it runs without us: its own counts of blocks, by thread."""
    path = counters(kind)
    process = subprocess.run([XHEAP, "launch", NAME, "--", f"{PROGRAMS}/crashes", kind, path, str(BLOCKS)], stderr=subprocess.PIPE, timeout=LONG_SECONDS)
    number = SIGNALS[kind]
    status = 128 + number if number else STATUSES.get(kind, 0)
    expect(process.returncode == status, f"{kind}: status {process.returncode}, not {status}: {process.stderr}")
    return struct.unpack("QQ", path.read_bytes())


def process_of(facts, kind, forked=False):
    """The process that ran this program, or the one that it forked."""
    rows = [row for row in facts["processes"] if f"/crashes {kind} " in row["command"] and ("forked_from" in row) == forked]
    expect(len(rows) == 1, f"{kind}: {facts['processes']}")
    return rows[0]


def check_blocks(trace, kind, pid, counts):
    """Each thread's blocks are all there, each with its end."""
    rows = [row for row in dump(trace) if row["pid"] == str(pid)]
    for thread, count in enumerate(counts):
        first = (thread + 1) * FIRST
        made = [row for row in rows if row["action"] == "Alloc" and first <= int(row["size"]) < first + FIRST]
        sizes = [int(row["size"]) - first for row in made]
        # A block that is not counted yet may be the last one; one that is given back twice is in no count.
        most = count + (kind == "twice" and thread == 0) + (kind == "busy" and thread == 1)
        expect(sizes == list(range(len(sizes))) and count <= len(sizes) <= most, f"{trace}, {kind}: thread {thread} made {count}, {len(sizes)} are there")
        tids = {row["tid"] for row in made}
        # The handler's one is of a line of its own of the same thread.
        expect(len(tids) == 1, f"{trace}, {kind}: thread {thread} is {tids}")
        freed = [row["address"] for row in rows if row["action"] == "Free" and row["tid"] in tids]
        missing = [row for row in made[:count] if row["address"] not in freed]
        expect(not missing and len(freed) >= count, f"{trace}, {kind}: {len(missing)} of {count} blocks of thread {thread} have no end")


def check_written(number, kind, counts):
    """The newest file, by a trigger, of which there are so many by now."""
    wait_for(f"{kind}: file {number}", lambda: written_out() >= number)
    trace = f"t.{number:02d}.xht"
    facts = info(trace)
    expect(is_whole(facts) and facts["complete"] and "dropped" not in facts, f"{trace}, {kind}: {facts}")
    row = process_of(facts, kind)
    expect(facts.get("triggers") and f"process {row['pid']} " in facts["triggers"][-1] or kind == "child", f"{trace}: {facts['triggers']}")
    said = xheap("report", trace)
    expect(f"Triggered: {facts['triggers'][-1]}" in " ".join(said.split()), said)
    if SIGNALS[kind]:
        expect((row["end"], row.get("signal")) == ("signal", SIGNALS[kind]), f"{trace}: {row}")
    if kind == "child":
        # One that came and went before anybody looked has ended as nobody knows.
        child = process_of(facts, kind, True)
        expect((child["end"], child.get("signal")) in (("signal", signal.SIGSEGV), ("unknown", None)), f"{trace}: {child}")
    check_blocks(trace, kind, row["pid"], counts)


def crashes():
    start("--trigger", "crash")
    number = 0
    for kind, sent in SIGNALS.items():
        counts = run(kind)
        if sent or kind == "child":
            number += 1
            check_written(number, kind, counts)
    # A flush comes after whatever the others might have asked for.
    xheap("flush", NAME)
    expect(written_out() == number + 1, f"{written_out()} files, {number} programs have crashed")
    xheap("stop", NAME)
    return f"{number} crashes of {len(SIGNALS)} programs"


def exits():
    start("--trigger", "exit")
    for number, kind in enumerate(("exit", "leave", "segv"), 1):
        check_written(number, kind, run(kind))
    xheap("flush", NAME)
    expect(written_out() == 4, f"{written_out()} files of three ends and a flush")
    xheap("stop", NAME)


def command():
    path = counters("segv")
    process = subprocess.run([XHEAP, "record", "-o", "c.%d.xht", "--file-mode", "flight", "--trigger", "crash", "--", f"{PROGRAMS}/crashes", "segv", path,
                              str(BLOCKS)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONG_SECONDS)
    expect(process.returncode == 128 + signal.SIGSEGV, f"status {process.returncode}: {process.stdout}")
    expect("was ended by signal 11: written out to " in process.stdout and "c.1.xht" in process.stdout, process.stdout)
    for trace in ("c.1.xht", "c.2.xht"):
        facts = info(trace)
        expect(facts["complete"], f"{trace}: {facts}")
        check_blocks(trace, "segv", process_of(facts, "segv")["pid"], struct.unpack("QQ", path.read_bytes()))
    expect(not os.path.exists("c.3.xht"), f"{sorted(os.listdir('.'))}")


def grow(blocks):
    """The program, which stands before it begins, and its counts."""
    path = counters("grow")
    process = subprocess.Popen(["sh", "-c", "read go; exec \"$@\"", "sh", f"{PROGRAMS}/crashes", "grow", path, str(blocks)], stdin=subprocess.PIPE)
    return process, path


def large_blocks(trace, pid):
    """How many of 1 MiB, numbered without a gap, are there."""
    sizes = [int(row["size"]) - MIB for row in dump(trace) if row["pid"] == str(pid) and row["action"] == "Alloc" and int(row["size"]) >= MIB]
    expect(sizes == list(range(len(sizes))), f"{trace}: {sizes}")
    return len(sizes)


def resident():
    start("--trigger", f"rss={RESIDENT_MIB}M")
    process, path = grow(2 * RESIDENT_MIB)
    try:
        xheap("update", NAME, "--add-pid", process.pid)
        expect(written_out() == 0, "a trigger without a reason")
        process.stdin.write(b"\n")
        process.stdin.close()
        wait_for("trigger by memory", lambda: written_out() == 1)
        wait_for("end of its growth", lambda: struct.unpack("QQ", path.read_bytes())[0] == 2 * RESIDENT_MIB)
        # What is resident beside the blocks is a program's usual few MiB.
        count = large_blocks("t.01.xht", process.pid)
        expect(RESIDENT_MIB - 10 <= count <= 2 * RESIDENT_MIB, f"{count} blocks when {RESIDENT_MIB} MiB were resident")
        xheap("flush", NAME)
        expect(written_out() == 2, "a trigger again and again")
        expect(large_blocks("t.02.xht", process.pid) == 2 * RESIDENT_MIB, "what came behind the trigger is missing")
    finally:
        process.kill()
        process.wait()
    xheap("stop", NAME)
    return f"{count} blocks of 1 MiB"


def make_group():
    """A cgroup with a limit, of the first or the second version; or why there is none."""
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(parent) / f"xheap-triggers-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            why = error
            continue
        try:
            (group / limit).write_text(str(RESIDENT_MIB * MIB))
            return group
        except OSError as error:
            why = error
            group.rmdir()
    return f"no cgroup with a memory limit can be made: {why}"


def killed():
    group = make_group()
    if isinstance(group, str):
        return group
    process, path = grow(4 * RESIDENT_MIB)
    try:
        try:
            (group / "cgroup.procs").write_text(str(process.pid))
        except OSError as error:
            return f"no process can be moved into a cgroup: {error}"
        start("--trigger", "memory-limit")
        xheap("update", NAME, "--add-pid", process.pid)
        expect(written_out() == 0, "a limit that was not hit")
        process.stdin.write(b"\n")
        process.stdin.close()
        # It is left a zombie: before Linux 6.15 nobody but its parent learns of the signal after that.
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        expect((ended.si_code, ended.si_status) == (os.CLD_KILLED, signal.SIGKILL), f"{ended}: the kernel did not end it")
        count = struct.unpack("QQ", path.read_bytes())[0]

        def has_end():
            traces = sorted(pathlib.Path(".").glob("t.*.xht"))[-1:]
            return any(row["end"] == "signal" for trace in traces for row in info(trace)["processes"]) and traces[0]
        trace = wait_for("file with its end", has_end)
        found = large_blocks(trace, process.pid)
        # Each but the last was counted when it had been written to.
        expect(count <= found <= count + 1, f"{trace}: {found} blocks, it has counted {count}")
        row = next(row for row in info(trace)["processes"] if row["end"] == "signal")
        expect(row.get("end_cause") == "memory_limit" and row["memory_kills"]["cgroup"] >= 1, f"{row}")
    finally:
        process.kill()
        process.wait()
        wait_for("empty cgroup", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()
    xheap("stop", NAME)
    return f"{found} blocks of 1 MiB"


def at_once():
    group, count = make_group(), 10
    if isinstance(group, str):
        return group
    processor = {min(os.sched_getaffinity(0))}

    def enter():
        (group / "cgroup.procs").write_text("0")
        os.sched_setaffinity(0, processor)
    try:
        start("--trigger", "memory-limit")
        # It runs behind them.
        for task in os.listdir(f"/proc/{told('query', NAME)['logger_pid']}/task"):
            os.setpriority(os.PRIO_PROCESS, int(task), 19)
            os.sched_setaffinity(int(task), processor)
        for number in range(count):
            try:
                process = subprocess.run([XHEAP, "launch", NAME, "--", f"{PROGRAMS}/limits", "at-once"], stderr=subprocess.PIPE, timeout=LONG_SECONDS,
                                         preexec_fn=enter)
            except subprocess.SubprocessError as error:
                return f"no process can be moved into a cgroup: {error}"
            expect(process.returncode == 128 + signal.SIGKILL, f"status {process.returncode}, not by the kernel: {process.stderr}")
            wait_for(f"trigger {number + 1}", lambda number=number: written_out() > number)
        xheap("stop", NAME)
        traces = sorted(pathlib.Path(".").glob("t.*.xht"))
        found = {row["pid"]: row.get("end_cause") for trace in traces for row in info(trace)["processes"] if row["end"] == "signal"}
        expect(list(found.values()) == count * ["memory_limit"], f"{found}")
    finally:
        wait_for("empty cgroup", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def end_all():
    stop_session(NAME)
    for path in pathlib.Path(".").glob("*.xht"):
        path.unlink()


if __name__ == "__main__":
    raise SystemExit(run_tests(*map(followed_by(end_all), (crashes, exits, command, resident, killed, at_once))))
