#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A logger that can have no descriptors of processes, or hardly any descriptors at all, records what it can, and tells of the rest.

missing   the kernel has no such descriptors: all is as with them
few       the logger has used up its limit: what is recorded stays recorded, whatever is executed then is named with the reason, and what comes when there
          are descriptors again is recorded
"""
import collections
import os
import pathlib
import resource
import signal
import subprocess

from live import LONG_SECONDS, PROGRAMS, XHEAP, attach, expect, followed_by, info, run_tests, stop_session, told, wait_for, xheap

NAME, BLOCKS = f"pidfds{os.getpid()}", 300
# Children that are executed, also at once, in the place of a shell, and by a child of a child; all ends are there.
SCRIPT = f"""
for kind in exit leave segv; do '{PROGRAMS}/crashes' $kind counters {BLOCKS}; done
'{PROGRAMS}/crashes' exit counters {BLOCKS} & '{PROGRAMS}/crashes' leave counters {BLOCKS} & wait
(sh -c "'{PROGRAMS}/crashes' abort counters {BLOCKS}; exit 7")
exec '{PROGRAMS}/crashes' exit counters {BLOCKS}
"""


def ends(facts):
    """How often which program has ended how."""
    rows = (row for row in facts["processes"] if row["exec_generation"])
    return collections.Counter((os.path.basename(row["image"]), row["end"], row.get("status"), row.get("signal")) for row in rows)


def record_script(trace, *before):
    subprocess.run([*before, XHEAP, "start", NAME, "-o", trace, "-p", "0"], check=True, timeout=LONG_SECONDS, stdout=subprocess.DEVNULL)
    run = subprocess.run([XHEAP, "launch", NAME, "--", "sh", "-c", SCRIPT], stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
    expect(run.returncode == 0, f"{trace}: status {run.returncode}: {run.stderr}")
    program = subprocess.Popen([f"{PROGRAMS}/attached", "often", "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for("a program", lambda: os.readlink(f"/proc/{program.pid}/exe").endswith("/attached"))
    attach("update", NAME, "--add-pid", program.pid)
    wait_for("its events", lambda: any(row["pid"] == program.pid and row["events"] > 100 for row in told("query", NAME)["targets"]))
    xheap("update", NAME, "--remove-pid", program.pid)
    said, _ = program.communicate(timeout=LONG_SECONDS)
    expect("bad 0" in said, f"{trace}: the program says {said}")
    xheap("stop", NAME)
    facts = info(trace)
    expect(facts["complete"] and "untraced_execs" not in facts, f"{trace}: {facts}")
    return facts


def missing():
    path = pathlib.Path("counters")
    path.write_bytes(bytes(16))
    run = subprocess.run([f"{PROGRAMS}/without_pidfds", "true"], stderr=subprocess.PIPE, text=True)
    if run.returncode:
        return f"no filter can be set: {run.stderr}"
    expected, seen = ends(record_script("with.xht")), ends(record_script("without.xht", f"{PROGRAMS}/without_pidfds"))
    # Of one that was waited for before anybody looked, only such a descriptor tells which signal ended it.
    unknown = sum(count for end, count in (seen - expected).items() if end[1] == "unknown")
    missed = sum(count for end, count in (expected - seen).items() if end[1] == "signal")
    expect(sum(seen.values()) == sum(expected.values()) and (seen - expected).total() == unknown == missed == (expected - seen).total(),
           f"without: {seen}, with: {expected}")
    return f"{sum(seen.values())} programs, {unknown} ends unknown"


def few():
    pathlib.Path("counters").write_bytes(bytes(16))
    xheap("start", NAME, "-o", "few.xht", "-p", "0")
    shell = subprocess.Popen([XHEAP, "launch", NAME, "--", "sh", "-c", f"while read kind; do '{PROGRAMS}/crashes' $kind counters {BLOCKS}; echo $?; done"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(kind):
        shell.stdin.write(kind + "\n")
        shell.stdin.flush()
        return int(shell.stdout.readline())
    try:
        expect(run("leave") == 3, "a child before")
        logger = told("query", NAME)["logger_pid"]
        limits = resource.prlimit(logger, resource.RLIMIT_NOFILE)
        used = {int(name) for name in os.listdir(f"/proc/{logger}/fd")}
        free = next(number for number in range(len(used) + 1) if number not in used)
        # A quarter of so few is for what is open for a moment.
        resource.prlimit(logger, resource.RLIMIT_NOFILE, (free + free // 3, limits[1]))
        for kind, status in (("leave", 3), ("exit", 0), ("segv", 128 + signal.SIGSEGV)):
            expect(run(kind) == status, f"{kind}, without descriptors for it")
        resource.prlimit(logger, resource.RLIMIT_NOFILE, limits)
        expect(run("abort") == 128 + signal.SIGABRT, "a child after that")
    finally:
        shell.stdin.close()
        shell.wait()
    expect(shell.returncode == 0, f"the shell ended with {shell.returncode}")
    xheap("stop", NAME)
    facts = info("few.xht")
    children = [row for row in facts["processes"] if row["exec_generation"] and row["image"].endswith("/crashes")]
    untraced = [row.get("note", "") for row in children]
    told_of = [bool(note) for note in untraced]
    expect(told_of == [False, True, True, True, False], f"{children}")
    expect(all("RLIMIT_NOFILE" in note for note in untraced if note), f"{untraced}")
    expect(not facts["complete"] and "untraced_execs" not in facts, f"{facts['options']}")
    expect((children[-1]["end"], children[-1]["signal"]) == ("signal", signal.SIGABRT), f"{children[-1]}")
    (first,) = [row for row in facts["processes"] if row.get("command", "").startswith("sh -c") and row["exec_generation"] == 0]
    expect((first["end"], first["status"]) == ("exit", 0), f"what was recorded before: {first}")


if __name__ == "__main__":
    raise SystemExit(run_tests(*map(followed_by(lambda: stop_session(NAME)), (missing, few))))
