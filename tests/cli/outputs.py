#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No output replaces a file that is read, under any name, and each is there whole or not at all; what is no file is refused as a trace, at once."""
import os
import pathlib
import signal
import subprocess
import sys

XHEAP = os.environ["XHEAP"]
MAKE_TRACE = os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
LIMIT_SECONDS = 60
READERS = (("heap", "-totals"), ("report",), ("info",), ("dump",), ("dump", "-allocations"), ("diff", "t.xht"),
           ("heap", "-format", "folded"), ("check", "--budget", "a.budget"), ("symbols",))


def xheap(*words, **how):
    return subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS, stdin=subprocess.DEVNULL, **how)


def expect(condition, what):
    if not condition:
        sys.exit(what)


def refused(reason, *words, **how):
    kept = {path: path.read_bytes() for path in pathlib.Path(".").iterdir() if path.is_file()}
    run = xheap(*words, **how)
    expect(run.returncode == 2 and reason in run.stderr and not run.stdout, f"{words}: status {run.returncode}: {run.stderr}")
    left = {path: path.read_bytes() for path in pathlib.Path(".").iterdir() if path.is_file()}
    expect(kept == left, f"{words}: changed {[str(path) for path in kept.keys() | left.keys() if kept.get(path) != left.get(path)]}")


def check_files_that_are_read():
    """The trace by its name, a link and another name; its index; lists of frames; what tells names; a merged one's parts; the command."""
    subprocess.run([MAKE_TRACE, "plain", "t.xht", "0"], check=True)
    subprocess.run([MAKE_TRACE, "random", "u.xht", "1"], check=True)
    os.link("t.xht", "hard.xht")
    os.symlink("t.xht", "soft.xht")
    pathlib.Path("frames.txt").write_text("malloc\n")
    os.link("frames.txt", "frames-too.txt")
    for name in ("t.xht", "./t.xht", "hard.xht", "soft.xht"):
        refused("one of the files that are read", "heap", "t.xht", "-totals", "-o", name)
        refused("one of the files that are read", "heap", name, "-totals", "-o", "t.xht")
        refused("one of the files that are read", "diff", "u.xht", "t.xht", "-o", name)
        refused("one of the files that are read", "dump", "t.xht", "-o", name)
        refused("one of the files that are read", "merge", "t.xht", "u.xht", "-o", name)
    refused("one of the files that are read", "heap", "t.xht", "-cullLists", "frames.txt", "-o", "frames-too.txt")
    expect(xheap("heap", "t.xht", "-totals", env=dict(os.environ, XHEAP_INDEX_EVENTS="1")).returncode == 0, "an index")
    index, = pathlib.Path(os.environ["XDG_CACHE_HOME"], "xheap/indexes").glob("*.index")
    os.link(index, "index-too")
    refused("one of the files that are read", "diff", "u.xht", "t.xht", "-o", "index-too", env=dict(os.environ, XHEAP_INDEX_EVENTS="1"))
    refused("one of the files that are read", "heap", "t.xht", "-totals", "-o", "index-too", env=dict(os.environ, XHEAP_INDEX_EVENTS="1"))
    pathlib.Path("grow.c").write_text("#include <stdlib.h>\nint main(void) { void *volatile p = malloc(5); free(p); return 0; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-g", "-o", "grow", "grow.c"], check=True)
    refused("it is the command itself", "record", "-q", "-o", "grow", "./grow")
    expect(xheap("record", "-q", "-o", "grow.xht", "./grow").returncode == 0, "record")
    refused("one of the files that are read", "heap", "grow.xht", "-o", "./grow")
    refused("one of the files that are read", "heap", "grow.xht", "-format", "folded", "-o", "./grow")
    refused("one of the files that are read", "diff", "t.xht", "grow.xht", "-o", "./grow")
    refused("one of the files that are read", "diff", "t.xht", "grow.xht", "-format", "folded", "-o", "./grow")


def check_whole():
    """What was there before stays until all is written; a new file has the usual mode, an old one keeps its own; a link stays a link."""
    before = pathlib.Path("report.txt")
    before.write_text("before")
    before.chmod(0o640)
    os.symlink("report.txt", "link.txt")
    printed = xheap("heap", "u.xht", "-stacks", "-by", "size", "-format", "csv").stdout
    expect(len(printed) > 8192, f"too short: {len(printed)}")
    run = subprocess.run(["sh", "-c", "ulimit -f 4; trap '' XFSZ; exec \"$0\" heap u.xht -stacks -by size -format csv -o report.txt", XHEAP], stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 2 and "cannot write report.txt: File too large" in run.stderr, f"a full disk: {run.returncode}: {run.stderr}")
    expect(before.read_text() == "before", "half a report took a file's place")
    run = xheap("heap", "u.xht", "-stacks", "-by", "size", "-format", "csv", "-o", "link.txt")
    expect(run.returncode == 0 and not run.stdout and before.read_text() == printed, f"through a link: {run.stderr}")
    expect(os.path.islink("link.txt") and before.stat().st_mode & 0o777 == 0o640, "the link or the mode has changed")
    run = xheap("heap", "u.xht", "-totals", "-o", "new.txt", umask=0o022)
    expect(run.returncode == 0 and os.stat("new.txt").st_mode & 0o777 == 0o644, "a new file's mode")
    expect(xheap("heap", "u.xht", "-totals", "-o", "/dev/stdout").stdout == xheap("heap", "u.xht", "-totals").stdout, "to a pipe")
    long_name = "n" * 255
    expect(xheap("heap", "u.xht", "-totals", "-o", long_name).returncode == 0 and os.path.exists(long_name), "a long name")
    expect(xheap("heap", "u.xht", "-totals", "-o", "no/such").returncode == 2, "a directory that is not there")
    expect(xheap("heap", "u.xht", "-totals", "-o", ".").returncode == 2, "a directory")
    left = [path for path in os.listdir(".") if path.endswith(".new")]
    expect(not left, f"left behind: {left}")


def check_standard_output():
    """A full disk is an error of each report, told once; a reader that leaves ends the command by SIGPIPE, without a word."""
    for words in READERS[:-1]:
        with open("/dev/full", "w") as full:
            run = subprocess.run([XHEAP, words[0], "u.xht", *words[1:]], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS)
        expect(run.returncode == 2 and run.stderr == "xheap: cannot write the output: No space left on device\n", f"{words}, a full disk: {run.returncode}: {run.stderr}")
        ours, theirs = os.pipe()
        os.close(ours)
        run = subprocess.run([XHEAP, words[0], "u.xht", *words[1:]], stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS)
        os.close(theirs)
        expect(run.returncode == -signal.SIGPIPE and not run.stderr, f"{words}, nobody reads: {run.returncode}: {run.stderr}")
    for words in (("image", "list"), ("sessions",), ("autologger", "list"), ("help",), ("version",), ("heap", "--help")):
        with open("/dev/full", "w") as full:
            run = subprocess.run([XHEAP, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS)
        expect(run.returncode == 2 and run.stderr == "xheap: cannot write the output: No space left on device\n", f"{words}, a full disk: {run.returncode}: {run.stderr}")


def check_no_traces():
    """A pipe that nobody writes to, a device, a directory, an empty file."""
    os.mkfifo("pipe.xht")
    os.mkdir("folder.xht")
    pathlib.Path("empty.xht").touch()
    for words in READERS:
        for name, reason in (("pipe.xht", "is a pipe, and a trace is a file"), ("/dev/null", "is a device, and a trace is a file"), ("folder.xht", "is a directory"), ("empty.xht", "is empty")):
            refused(reason, words[0], name, *words[1:])
    refused("is a pipe", "merge", "u.xht", "pipe.xht", "-o", "merged.xht")
    refused("is no file", "merge", "t.xht", "u.xht", "-o", "pipe.xht")
    with open("u.xht", "rb") as trace:
        run = subprocess.run([XHEAP, "heap", "/dev/stdin", "-totals"], stdin=trace, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 0, f"a trace by its descriptor: {run.stderr}")


def main():
    pathlib.Path("a.budget").write_text("peak <= 1T\n")
    check_files_that_are_read()
    check_whole()
    check_standard_output()
    check_no_traces()


main()
