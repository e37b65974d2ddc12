#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A session whose file system is mounted later, or is read-only at first: its events are in the trace, and nothing is left below the mount."""
import os
import pathlib
import subprocess
import sys

from live import XHEAP, expect, info, run_tests, told, wait_for, xheap

PRIVATE, ROOT = "XHEAP_TEST_MOUNTS", pathlib.Path("root").absolute()
PLACE = pathlib.Path("place").absolute()
TABLE = pathlib.Path("fstab").absolute()


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


if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
    print("only root may mount file systems of its own")
    sys.exit(77)
if not os.environ.get(PRIVATE):
    os.environ[PRIVATE] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
os.environ["XHEAP_IMAGE_ROOT"] = str(ROOT)
(ROOT / "etc/xheap/autologger.d").mkdir(parents=True)
PLACE.mkdir()
mount("-t", "tmpfs", "test", PLACE)
TABLE.write_text("")
if not os.path.exists("/etc/fstab"):
    print("there is no /etc/fstab to replace")
    sys.exit(77)
mount("--bind", TABLE, "/etc/fstab")
sys.exit(run_tests(mounted_later, read_only, limited))
