#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A session whose file system is mounted later, by a table or a unit, or is read-only at first: its events are in the trace, and nothing is left below the mount."""
import os
import pathlib
import subprocess
import sys

from live import enter_mounts, expect, info, run_tests, told, wait_for, xheap

PRIVATE, ROOT = "XHEAP_TEST_MOUNTS", pathlib.Path("root").absolute()
PLACE = pathlib.Path("place").absolute()
TABLE, UNITS = pathlib.Path("fstab").absolute(), pathlib.Path("units").absolute()


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def allocate(session, count=1):
    for _ in range(count):
        xheap("launch", session, "--", "ls", "/")


def session(name, trace, *words):
    xheap("autologger", "add", name, "--FileName", trace, *words)
    xheap("autologger", "run", name)
    expect({row["name"]: row for row in told("autologger", "list")}[name]["status"] == 0, told("autologger", "list"))


def finish(name, trace, count):
    xheap("autologger", "stop", name)
    facts = info(trace)
    expect(len(facts["processes"]) == count and facts["complete"] and all(row["events"] for row in facts["processes"]), facts["processes"])
    xheap("autologger", "remove", name)


def mounted_later():
    """The directory is there, on the file system below; a table says that another one will be mounted there."""
    var = PLACE / "var"
    (var / "log").mkdir(parents=True)
    trace = var / "log/boot.xht"
    TABLE.write_text(f"# comment\nproc /proc proc defaults 0 0\ntmpfs {PLACE}/va tmpfs defaults 0 0\ntmpfs {var}/log/other tmpfs defaults 0 0\n"
                     f"tmpfs {var} tmpfs defaults 0 0\ntmpfs {var}/log tmpfs noauto 0 0\n")
    session("mounted", trace)
    allocate("mounted")
    mount("-t", "tmpfs", "test", var)
    allocate("mounted")
    expect(not trace.exists(), "the directory is missing")
    (var / "log").mkdir()
    wait_for("the trace", trace.exists)
    allocate("mounted")
    finish("mounted", trace, 3)
    subprocess.run(["umount", var], check=True)
    expect(not list((var / "log").iterdir()), f"below the mount: {list((var / 'log').iterdir())}")
    TABLE.write_text("")


def unit_name(directory):
    """Of the mount unit for a directory, as systemd.unit(5) says."""
    return "-".join("".join(c if c.isalnum() or c in ":_." else f"\\x{ord(c):02x}" for c in part) for part in directory.parts[1:]) + ".mount"


def units_later():
    """A mount unit without a line in the table, which another unit wants. Units that are masked, missing, or wanted by none are not waited for."""
    data = PLACE / "my-data"
    trace = data / "masked/missing/unwanted/boot.xht"
    trace.parent.mkdir(parents=True)
    wants = UNITS / "local-fs.target.wants"
    wants.mkdir()
    for directory in (data, data / "masked", data / "masked/missing"):
        (wants / unit_name(directory)).symlink_to(f"../{unit_name(directory)}")
    (UNITS / unit_name(data / "masked")).symlink_to("/dev/null")
    for directory in (data, trace.parent):
        (UNITS / unit_name(directory)).write_text(f"[Mount]\nWhat=test\nWhere={directory}\nType=tmpfs\n")
    session("units", trace)
    allocate("units")
    mount("-t", "tmpfs", "test", data)
    expect(not trace.exists(), "the directory is missing")
    trace.parent.mkdir(parents=True)
    wait_for("the trace", trace.exists)
    allocate("units")
    finish("units", trace, 2)
    subprocess.run(["umount", data], check=True)
    expect(not list(trace.parent.iterdir()), f"below the mount: {list(trace.parent.iterdir())}")
    # A file system that never comes: the trace is there at the end, rather than in memory.
    session("never", trace)
    allocate("never")
    expect(not trace.exists(), "the file system is not mounted")
    finish("never", trace, 1)


def read_only():
    """The trace of the boot before is there, too, and is replaced."""
    other = PLACE / "other"
    other.mkdir()
    mount("-t", "tmpfs", "test", other)
    trace = other / "boot.xht"
    session("whole", trace)
    allocate("whole", 2)
    finish("whole", trace, 2)
    mount("-o", "remount,ro", other)
    session("again", trace)
    allocate("again")
    expect(len(info(trace)["processes"]) == 2, "it is read-only")
    mount("-o", "remount,rw", other)
    wait_for("the new trace", lambda: len(info(trace)["processes"]) == 1)
    allocate("again", 2)
    finish("again", trace, 3)
    subprocess.run(["umount", other], check=True)


def limited():
    """What does not fit into memory is counted: calls in the trace and after its end are all that were made."""
    trace = PLACE / "limited/boot.xht"
    trace.parent.mkdir()
    TABLE.write_text(f"tmpfs {trace.parent} tmpfs defaults 0 0\n")
    xheap("start", "limited", "-o", trace, "--late-file", "--max-file", "64K")
    xheap("launch", "limited", "--", "env", "PYTHONMALLOC=malloc", sys.executable, "-S", "-c", "[str(i) * 3 for i in range(9999)]")
    xheap("start", "all", "-o", PLACE / "all.xht")
    xheap("launch", "all", "--", "env", "PYTHONMALLOC=malloc", sys.executable, "-S", "-c", "[str(i) * 3 for i in range(9999)]")
    xheap("stop", "all")
    mount("-t", "tmpfs", "test", trace.parent)
    xheap("stop", "limited", status=None)
    facts, whole = info(trace), info(PLACE / "all.xht")
    after = sum(row["calls_after"] for row in facts["ended_early"])
    made = facts["event_count"] + after
    # Two runs of the interpreter differ by some calls.
    expect(facts["event_count"] > 0 and after > 0 and abs(made - whole["event_count"]) < whole["event_count"] // 100, f"{made} calls, {whole['event_count']} in another run")
    subprocess.run(["umount", trace.parent], check=True)


enter_mounts(PRIVATE, "only root may mount file systems of its own")
os.environ["XHEAP_IMAGE_ROOT"] = str(ROOT)
(ROOT / "etc/xheap/autologger.d").mkdir(parents=True)
PLACE.mkdir()
mount("-t", "tmpfs", "test", PLACE)
TABLE.write_text("")
if not os.path.exists("/etc/fstab"):
    print("there is no /etc/fstab to replace")
    sys.exit(77)
mount("--bind", TABLE, "/etc/fstab")
UNITS.mkdir()
tests = [mounted_later, read_only, limited]
if os.path.isdir("/etc/systemd/system"):
    mount("--bind", UNITS, "/etc/systemd/system")
    tests.append(units_later)
else:
    print("units_later: there is no /etc/systemd/system to replace")
sys.exit(run_tests(*tests))
