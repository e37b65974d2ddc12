#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""New handlers: each operator new of each allocator calls them as often as untraced, and leaves as they make it leave. What they do is recorded, and so
is the block that they made room for."""
import collections
import glob
import os
import subprocess
import sys

from live import BUILD, LONG_SECONDS, PROGRAMS, XHEAP, attach, dump, expect, info, is_reading, run_tests, stop_session, told, wait_for, xheap

TRACE = "handlers.xht"
NAME = f"handlers{os.getpid()}"
SKIPPED = 77
LIBRARIES = ("libjemalloc.so.2", "libmimalloc.so.2*", "libtcmalloc_minimal.so.4", "libtcmalloc_minimal_debug.so.4", "libtcmalloc.so.4", "libtcmalloc_debug.so.4")
LINKED = "handlers", "handlers_static", "handlers_jemalloc", "handlers_jemalloc_static", "handlers_tcmalloc_static"
ENDLESS = "none", "once", "gone", "other", "nested", "jump"
# As programs/handlers.cc has them.
OPERATORS, ROUNDS, HANDLED, SMALL, SMALL_COUNT, RESERVE, LARGE = 7, 5, 3, 123, 10, 54321, 32 << 20


def programs():
    """Each way to come by an allocator: its name, and the command."""
    for name in LINKED:
        if os.path.exists(os.path.join(PROGRAMS, name)):
            yield name, [os.path.join(PROGRAMS, name)]
    for pattern in LIBRARIES:
        for path in glob.glob("/usr/lib/x86_64-linux-gnu/" + pattern)[:1]:
            yield os.path.basename(path), ["env", "LD_PRELOAD=" + path, os.path.join(PROGRAMS, "handlers")]


def outcome(*command):
    # jemalloc maps more than it needs, which would do for the next block.
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, MALLOC_CONF="retain:false"))
    return run.returncode, run.stdout


def record(*command, options=()):
    return outcome(XHEAP, "record", "-q", "-q", "-o", TRACE, *options, "--", *command)


def each(check, *ways):
    """Check each program that there is; what was tried."""
    tried = []
    for name, command in programs():
        for way in ways:
            # One that aborts by itself does so as a signal of this process's child, or of the recorded one.
            status, output = outcome("sh", "-c", '"$@"; exit $?', "sh", *command, way)
            check(f"{name} {way}", [*command, way], (status, output))
        tried.append(name)
    return ", ".join(tried)


def blocks(size):
    """Of this size: how many there were, and how many of them were freed."""
    live, counts = set(), collections.Counter()
    for row in dump(TRACE):
        if row["action"] == "Alloc" and row["address"] and int(row["size"]) == size:
            expect(row["address"] not in live, f"a block that is there is handed out: {row}")
            live.add(row["address"])
            counts["made"] += 1
        elif row["action"] == "Free" and row["address"] in live:
            live.remove(row["address"])
            counts["freed"] += 1
    return counts["made"], counts["freed"]


def as_untraced():
    def check(name, command, untraced):
        traced = record(*command)
        expect(traced == untraced, f"{name}: {traced}, untraced {untraced}")
        expect(info(TRACE)["lost_events"] == 0, f"{name}: {info(TRACE)}")
    return each(check, *ENDLESS)


def what_handlers_do_is_recorded():
    """Each operator fails in each round, after its handler was called three times."""
    count = OPERATORS * ROUNDS * HANDLED * SMALL_COUNT

    def check(name, command, untraced):
        for options in ((), ("--sample", "1")):
            traced = record(*command, options=options)
            expect(traced == untraced, f"{name}: {traced}, untraced {untraced}")
            if untraced[0] == 0:
                expect(blocks(SMALL) == (count, count), f"{name} {options}: {blocks(SMALL)} blocks of handlers, not {count}")
    return each(check, "deep")


def blocks_that_handlers_make_room_for():
    def check(name, command, untraced):
        traced = record(*command)
        expect(traced == untraced, f"{name}: {traced}, untraced {untraced}")
        if untraced[0] == 0:
            expect(blocks(LARGE) == blocks(RESERVE) == (OPERATORS, OPERATORS), f"{name}: {blocks(LARGE)} and {blocks(RESERVE)}, not {OPERATORS}")
    return each(check, "saved")


def names_and_stacks():
    """The failed call has the name and the stack of the operator that the program called."""
    def check(name, command, untraced):
        record(*command)
        failed = [row for row in dump(TRACE) if row["action"] == "Alloc" and not row["address"]]
        wanted = {"_Znwm", "_ZnwmRKSt9nothrow_t", "_ZnwmSt11align_val_t", "_ZnwmSt11align_val_tRKSt9nothrow_t"}
        expect(untraced[0] == 0 and wanted <= {row["function"] for row in failed}, f"{name}: {sorted({row['function'] for row in failed})}")
        expect(all(row["stack_id"] not in ("", "0") for row in failed), f"{name}: a failed call without a stack")
    known = [row for row in programs() if "jemalloc" in row[0] or row[0] in ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "handlers_tcmalloc_static")]
    for name, command in known:
        check(name, [*command, "none"], outcome(*command, "none"))
    return ", ".join(name for name, _ in known)


def detached_while_a_handler_runs():
    """Its exception still comes through, and then nothing of the recorder stays. A debugging allocator is called directly: there it would not."""
    tried = []
    for name, command in programs():
        if "jemalloc" not in name and name not in ("libtcmalloc_minimal.so.4", "handlers_tcmalloc_static"):
            continue
        xheap("start", NAME, "-o", TRACE)
        process = subprocess.Popen([XHEAP, "launch", NAME, "--", *command, "slow"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            pid = wait_for("process", lambda: next((row["pid"] for row in told("query", NAME)["targets"]), None))
            wait_for("handler", lambda: is_reading(pid))
            xheap("stop", NAME)
            process.stdin.write("\n")
            process.stdin.flush()
            expect(process.stdout.readline() == "number\n", f"{name}: the exception did not come through")
            wait_for("second input", lambda: is_reading(pid))
            attach("record", "-q", "-o", "again.xht", "-p", pid, "--duration", "10ms")
            maps = open(f"/proc/{pid}/maps").read()
            expect("region." not in maps, f"{name}: something stays: {maps}")
            process.stdin.write("\n")
            process.stdin.close()
            expect(process.wait(LONG_SECONDS) == 0, f"{name}: status {process.returncode}")
        finally:
            stop_session(NAME)
            process.kill()
            process.wait()
        tried.append(name)
    return ", ".join(tried)


if not os.path.exists(os.path.join(PROGRAMS, "handlers")):
    print(f"{BUILD} has no programs/handlers: there is no C++ compiler here")
    sys.exit(SKIPPED)
sys.exit(run_tests(as_untraced, what_handlers_do_is_recorded, blocks_that_handlers_make_room_for, names_and_stacks, detached_while_a_handler_runs))
