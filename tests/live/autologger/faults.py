#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What keeps an autologger from its start, or ends it: each refused start has its error in Status, by number and text, whoever wrote the file; every other session
starts all the same. Read-only places, a full disk, a missing directory, a killed logger."""
import functools
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys

from live import expect, info, is_whole, run_tests, told, wait_for, xheap

GUID = "{222962ab-6180-4b88-a825-346b75f2a24a}"
ROOT = pathlib.Path("root").absolute()
FILES, STATE, TRACES = (ROOT / path for path in ("etc/xheap/autologger.d", "var/lib/xheap/autologger", "var/lib/xheap/traces"))
HEAD = f"[autologger]\nGuid = {GUID}\nStart = 1\n"
# As a shell's script has it: the tree may lie in a folder with a blank.
COMMAND = shlex.quote(os.environ["XHEAP"])
MISSING, DENIED, UNSUPPORTED, WRONG, FULL, FLAGS = 2, 5, 50, 87, 112, 1004
# Lines that a file may have by hand, the number of its Status, and a part of the text.
REFUSED = (
    ("Guid = {00000000-0000-0000-0000-000000000000}", WRONG, "only {222962ab"), ("Start = 2", WRONG, "0 to 1"), ("Boot = 2", WRONG, "0 to 1"),
    ("BufferSize = 1024", WRONG, "1 to 1023 KB"), ("BufferSize = 64K", WRONG, "not a number"), ("MinimumBuffers = 9\nMaximumBuffers = 8", WRONG, "less than"),
    ("MaximumBuffers = 1", WRONG, "2 to 65536"), ("MaxFileSize = -1", WRONG, "not a number"), ("FileMax = 17", WRONG, "0 to 16"), ("FileCounter = 1", DENIED, "by itself"),
    ("Status = 0", DENIED, "by itself"), ("EnableFlags = 1", FLAGS, "1004"), ("LogFileMode = 0x8", UNSUPPORTED, "NEWFILE"), ("LogFileMode = NEWFILE", UNSUPPORTED, "NEWFILE"),
    ("LogFileMode = 0x10000", UNSUPPORTED, "not known"), ("LogFileMode = SEQUENTIAL+CIRCULAR", WRONG, "exclude"), ("LogFileMode = 0x402", WRONG, "exclude"),
    ("LogFileMode = BUFFERING+REAL_TIME", WRONG, "exclude"), ("LogFileMode = BUFFERING+APPEND", WRONG, "exclude"), ("LogFileMode = APPEND", WRONG, "BufferSize"),
    ("LogFileMode = APPEND\nBufferSize = 64\nFileMax = 2", WRONG, "FileMax"), ("LogFileMode = CIRCULAR\nMaxFileSize = 0", WRONG, "MaxFileSize"),
    ("FileName = relative.xht", WRONG, "absolute"), (f"FileName = /{'x' * 1025}", None, "longer than"), ("FlushTimer = 61", WRONG, "0 to 60"), ("ClockType = 4", WRONG, "1 to 3"),
    ("StackWalkingFilter = 20 10 00", WRONG, "four"), ("StackWalkingFilter = 25 10 00 00", WRONG, "0x1025"), ("AllProcesses = 2", WRONG, "0 to 1"),
    ("BufferSize", WRONG, "neither"), ("Unknown = 1", WRONG, "no such value"), ("LogFileMode = CIRCULAR\nFileName = /nowhere/at/all.xht", MISSING, "/nowhere"),
    ("LogFileMode = BUFFERING\nFileName = /nowhere/at/all.xht", MISSING, "/nowhere"), ("FileName = /dev/null", None, "/dev/null"))


def listed():
    return {row["name"]: row for row in told("autologger", "list")}


def write(name, lines):
    (FILES / f"{name}.conf").write_text(HEAD + lines + "\n")


def alone(test):
    """Run the test with no autologgers before and after it."""
    def clear():
        xheap("autologger", "stop", status=None)
        for path in FILES.iterdir():
            path.unlink()

    @functools.wraps(test)
    def run():
        clear()
        try:
            return test()
        finally:
            clear()
    return run


def in_mounts(script):
    """Run a shell's script in a mount namespace of its own: (status, what it printed)."""
    run = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return run.returncode, run.stdout


@alone
def by_hand():
    """Each contradiction that `add` refuses is in Status when a file has it; the file before and the one behind it start."""
    write("a-first", "")
    write("z-last", "")
    for number, (lines, _, _) in enumerate(REFUSED):
        write(f"bad{number:02}", lines)
    said = xheap("autologger", "run", status=2)
    rows, text = listed(), xheap("autologger", "list")
    for number, (lines, error, reason) in enumerate(REFUSED):
        name = f"bad{number:02}"
        row = rows[name]
        expect(not row["running"] and row["status"] and row["status"] == (error or row["status"]) and reason in row["error"], f"{lines}: {row}")
        status = (STATE / f"{name}.status").read_text()
        expect(f"Status={row['status']}\n" in status and reason in status, f"{lines}: {status}")
        expect(reason in said and reason in text and reason in xheap("autologger", "show", name), f"{lines}: {said}")
    for name in ("a-first", "z-last"):
        expect(rows[name]["running"] and rows[name]["status"] == 0, rows[name])
        xheap("launch", name, "--", "ls", "/")
    xheap("autologger", "stop", status=None)
    for name in ("a-first", "z-last"):
        expect(info(TRACES / f"{name}.xht")["complete"], name)
    # A file that is mended has no error after its next start.
    write("bad00", "")
    xheap("autologger", "run", "bad00")
    expect(listed()["bad00"]["status"] == 0 and listed()["bad00"]["running"], listed()["bad00"])


@alone
def read_only():
    """/etc may be read-only: sessions start, Status is known, and `add` says why it cannot write. With /var read-only sessions start, too."""
    write("good", "FlushTimer = 1")
    write("flags", "EnableFlags = 1")
    remount = "set -e; mount --bind {0} {0}; mount -o remount,bind,ro {0}; set +e\n"
    status, said = in_mounts(remount.format(ROOT / "etc") + f"{COMMAND} autologger run; echo status $?; {COMMAND} autologger add other; echo status $?")
    expect(status == 0 and said.count("status 2") == 2 and "1004" in said and "Read-only" in said, said)
    rows = listed()
    expect(rows["good"]["running"] and rows["good"]["status"] == 0 and rows["flags"]["status"] == 1004 and "other" not in rows, rows)
    xheap("autologger", "stop")
    shutil.rmtree(STATE)
    (TRACES / "good.xht").unlink()
    status, said = in_mounts(remount.format(ROOT / "var") + f"{COMMAND} autologger run good; echo status $?; {COMMAND} launch good -- ls /; "
                             f"mount -o remount,bind,rw {ROOT}/var; until [ -s {TRACES}/good.xht ]; do sleep 0.05; done; {COMMAND} autologger stop")
    expect(status == 0 and "status 0" in said, said)
    expect(len(info(TRACES / "good.xht")["processes"]) == 1, said)


@alone
def full_disk():
    """A disk that is full at the start, and one that becomes full: the error, and the number of calls that are missing. The other session records on."""
    place = pathlib.Path("small").absolute()
    place.mkdir()
    write("full", f"FileName = {place}/full.xht\nFlushTimer = 1")
    write("other", "")
    allocate = "env PYTHONMALLOC=malloc python3 -S -c 'import random; [bytes(random.randrange(9999)) for i in range(99999)]'"
    status, said = in_mounts(f"mount -t tmpfs -o size=256k tmpfs {place}; {COMMAND} autologger run; echo status $?; {COMMAND} launch full -- {allocate}; {COMMAND} launch other -- ls /; "
                             f"{COMMAND} autologger stop; echo status $?; cp {place}/* {place}.copy")
    expect(status == 0 and said.startswith("status 0"), said)
    facts = info(f"{place}.copy")
    expect(is_whole(facts) and facts["ended_early"] and facts["ended_early"][0]["calls_after"] > 0 and not facts["complete"], facts)
    # Of each block an allocation and a free: what is not in the trace is counted.
    counted = facts["event_count"] + facts["lost_events"] + sum(end["calls_after"] for end in facts["ended_early"])
    expect(counted >= 2 * 99999, f"{counted} of {2 * 99999} calls")
    expect(info(TRACES / "other.xht")["complete"], "the other session")
    status, said = in_mounts(f"mount -t tmpfs -o size=64k tmpfs {place}; cat /dev/zero > {place}/zeros; {COMMAND} autologger run; echo status $?; {COMMAND} autologger list --format json")
    rows = {row["name"]: row for row in json.loads(said[said.index("["):])}
    expect(rows["other"]["running"], rows)
    expect((rows["full"]["status"] == FULL and not rows["full"]["running"]) or rows["full"]["status"] == 0, f"{rows['full']}: {said}")
    return f"a full disk at the start has Status {rows['full']['status']}"


@alone
def killed():
    """A killed logger: its session runs no longer, its trace is recovered with all events, and the next start goes well. The other session goes on."""
    write("killed", "")
    write("other", "")
    xheap("autologger", "run")
    xheap("launch", "killed", "--", "ls", "/")
    state = told("query", "killed")
    os.kill(state["logger_pid"], signal.SIGKILL)
    wait_for("end of the logger", lambda: not listed()["killed"]["running"])
    expect(listed()["other"]["running"], listed()["other"])
    xheap("recover", TRACES / "killed.xht")
    facts = info(TRACES / "killed.xht")
    expect(is_whole(facts) and facts["complete"] and facts["event_count"] == state["events"] > 0, f"{facts['event_count']} of {state['events']} events: {facts}")
    xheap("autologger", "run")
    expect(listed()["killed"]["running"] and listed()["killed"]["status"] == 0, listed()["killed"])


os.environ["XHEAP_IMAGE_ROOT"] = str(ROOT)
FILES.mkdir(parents=True)
if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
    print("file systems cannot be mounted here, by root and unshare")
    sys.exit(77)
sys.exit(run_tests(by_hand, read_only, full_disk, killed))
