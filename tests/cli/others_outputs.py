#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No command writes through a link of another user, nor into a file or pipe of his; a trace's mode is never that of what lay there."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

XHEAP = os.environ["XHEAP"]
sys.path.insert(0, str(pathlib.Path(os.environ["SOURCE"]) / "tests/live"))
from pushed_files import Stacks, write  # noqa: E402

NOBODY = 65534
LIMIT_SECONDS = 60
# Each option that names what is written: how to call it. A trace has mode 600 whatever was there.
RECORDED = "sh", "-c", ":"
WRITERS = {
    ("record", "-o"): lambda out: ("record", "-q", "-o", out, "--", *RECORDED),
    ("start", "-o"): lambda out: ("start", f"others{os.getpid()}", "-o", out),
    ("merge", "-o"): lambda out: ("merge", "a.xht", "b.xht", "-o", out),
    ("recover", "-o"): lambda out: ("recover", "-o", out, "cut.xht"),
    ("report", "-o"): lambda out: ("report", "a.xht", "-o", out),
    ("view", "--html"): lambda out: ("view", "a.xht", "--html", out),
    ("fleet", "--html"): lambda out: ("fleet", "top", "pushes", "--html", out),
    ("dump", "-o"): lambda out: ("dump", "a.xht", "-o", out),
    ("heap", "-o"): lambda out: ("heap", "a.xht", "-totals", "-o", out),
    ("export", "-o"): lambda out: ("export", "a.xht", "-format", "pprof", "-o", out),
    ("explain", "-o"): lambda out: ("explain", "a.xht", address(), "-o", out),
    ("why", "-o"): lambda out: ("why", "pages.xht", "-o", out),
    ("leaks", "-o"): lambda out: ("leaks", "--at-end", "-o", out, "--", *RECORDED),
    ("diff", "-o"): lambda out: ("diff", "a.xht", "b.xht", "-o", out),
    ("check", "--junit"): lambda out: ("check", "a.xht", "--budget", "a.budget", "--junit", out),
    ("check", "--update"): lambda out: ("check", "a.xht", "--budget", out, "--update"),
    ("boottrace", "-resultPath"): lambda out: ("boottrace", "-trace", "command", "-numRuns", "1", "-resultPath", os.path.dirname(out), "--", *RECORDED),
    # It writes what it reads.
    ("symbols", None): lambda out: ("symbols", out),
}
TRACES = "record", "start", "merge", "recover"
# Only counts or ways of writing, and no name.
NO_NAMES = {("dx", "-r")} | {(command, option) for command in ("record", "start") for option in ("--trigger", "--permissions", "--generations")}


def xheap(*words):
    return subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS, stdin=subprocess.DEVNULL)


def expect(condition, what):
    if not condition:
        sys.exit(what)


def address():
    """Of a block of the trace."""
    return json.loads(xheap("dump", "a.xht", "-allocations", "-format", "json").stdout.splitlines()[0])["address"]


def options_that_write():
    """By the help of each command."""
    found = set()
    for command in re.findall(r"^  ([a-z]+)  ", xheap("help").stdout, re.M):
        text = xheap(command, "--help").stdout
        if re.search(r"(\[| )-o (FILE|OUT)", text.splitlines()[0]):
            found.add((command, "-o"))
        for option, what in re.findall(r"^  (-[-\w]+)(.*)", text, re.M):
            if re.search(r"\bwrit(e|ten)\b", what) and "how the answer is written" not in what:
                found.add((command, option))
    return found - NO_NAMES


def name_of(option, folder):
    return f"{folder}/command.csv" if option == "-resultPath" else f"{folder}/out.xht"


def refused(key, out, why):
    run = xheap(*WRITERS[key](out))
    expect(run.returncode == 2 and re.search(why, run.stderr), f"{key}, {out}: status {run.returncode}: {run.stderr}")


def attack(key):
    """Each way in which nobody prepares the folder for root."""
    precious = pathlib.Path("a.xht" if key[0] == "symbols" else "a.budget" if key[1] == "--update" else "precious").read_bytes()
    # A budget that is a pipe is read to its end first.
    for way in ("link", "dangling", "folder", "file") + (() if key[1] == "--update" else ("pipe",)):
        shutil.rmtree("theirs", ignore_errors=True)
        shutil.rmtree("ours", ignore_errors=True)
        os.mkdir("theirs")
        os.mkdir("ours")
        os.chown("theirs", NOBODY, NOBODY)
        out = name_of(key[1], "theirs")
        target = pathlib.Path("ours", os.path.basename(out))
        target.write_bytes(precious)
        reader = None
        if way in ("link", "dangling"):
            if way == "dangling":
                target.unlink()
            os.symlink(target.absolute(), out)
        elif way == "folder":
            os.symlink(pathlib.Path("ours").absolute(), "theirs/in")
            out = name_of(key[1], "theirs/in")
        elif way == "file":
            pathlib.Path(out).write_bytes(precious)
            os.chmod(out, 0o666)
        else:
            os.mkfifo(out)
            reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
        for path in (out, "theirs/in"):
            if os.path.lexists(path) and way != "folder" or path == "theirs/in" and way == "folder":
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        # What is read as well has reasons of its own before.
        own = "|is a pipe|is no file|no such|No such|cannot read|cannot open|not a budget" if key in (("symbols", None), ("check", "--update"), ("start", "-o"), ("record", "-o"), ("merge", "-o")) else ""
        refused(key, out, "belongs to another user|is a symbolic link" + own)
        if reader is not None:
            try:
                expect(os.read(reader, 1) == b"", f"{key}: something was written to another user's pipe")
            except BlockingIOError:
                pass
            os.close(reader)
        if way == "dangling":
            expect(not target.exists(), f"{key}: a file was made through a link")
        elif way != "file":
            expect(target.read_bytes() == precious and os.listdir("ours") == [target.name], f"{key}, {way}: written through it: {os.listdir('ours')}")
        else:
            expect(pathlib.Path(out).read_bytes() == precious, f"{key}: a file of another user was written")


def main():
    if os.geteuid():
        print("skipped: only root can make files of another user")
        sys.exit(77)
    named = {key for key in WRITERS if key[1]}
    expect(options_that_write() == named, f"options that write: {sorted(options_that_write() ^ named)}")
    pathlib.Path("precious").write_text("precious")
    pathlib.Path("a.budget").write_text("peak <= 1T\n")
    os.mkdir("pushes")
    write("pushes", Stacks([("web!main",)]), [(1, 10, 1, 10)])
    for name in ("a.xht", "b.xht"):
        expect(xheap("record", "-q", "-o", name, "--", *RECORDED).returncode == 0, "record")
    os.chmod(".", 0o755)
    # Long enough for a reading of its pages.
    expect(xheap("record", "-q", "-o", "pages.xht", "--", "perl", "-e", "my @a = map { 'x' x 9000 } 1..2000; sleep 2").returncode == 0, "no record of pages")
    whole = pathlib.Path("a.xht").read_bytes()
    pathlib.Path("cut.xht").write_bytes(whole[:len(whole) * 2 // 3])
    for key in WRITERS:
        attack(key)
    # A link of this user's own, a file of its own with a mode for all, and a folder that another user's link names and owns.
    for command in TRACES:
        own = pathlib.Path(f"own-{command}.xht")
        own.touch()
        own.chmod(0o666)
        run = xheap(*WRITERS[command, "-o"](own.name))
        if command == "start":
            xheap("stop", f"others{os.getpid()}")
        expect(run.returncode == 0 and own.stat().st_mode & 0o777 == 0o600, f"{command}: status {run.returncode}, mode {own.stat().st_mode:o}: {run.stderr}")
    os.symlink("own.txt", "own-link")
    os.symlink(pathlib.Path("theirs").absolute(), "named")
    os.chown("named", NOBODY, NOBODY, follow_symlinks=False)
    shutil.rmtree("theirs")
    os.mkdir("theirs")
    os.chown("theirs", NOBODY, NOBODY)
    for out in ("own-link", "named/report.txt", "/dev/null"):
        run = xheap("report", "a.xht", "-o", out)
        expect(run.returncode == 0, f"-o {out}: {run.stderr}")
    expect(os.path.islink("own-link") and os.path.getsize("own.txt") and os.path.getsize("theirs/report.txt"), "own links are followed")


main()
