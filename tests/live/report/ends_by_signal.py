#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SIGINT and SIGTERM end each command that reads, at once and by the signal, whatever it reads; no part of a file is left, and an existing file is untouched. After
the signal a command uses a fraction of the processor time that it needs."""
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import time

from live import LONG_SECONDS, XHEAP, expect, run_tests, runs, stop_session, wait_for, xheap

NAME = f"ends{os.getpid()}"
SOURCE = """#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static void *one(size_t n) { return malloc(n); }
__attribute__((noinline)) static void *other(size_t n) { void *p = malloc(n + 8); __asm__(""); return p; }
/* PAIRS [stay]: pairs of calls, 4,096 blocks live */
int main(int count, char **arguments) {
	void *volatile kept[4096] = {0};
	long pairs = atol(arguments[1]);
	for (long i = 0; i < pairs; i++) {
		int at = (int)((unsigned)i * 2654435761u >> 7) % 4096;
		free(kept[at]);
		kept[at] = i % 3 ? one(16 + i % 500) : other(i % 100);
	}
	puts("made");
	fflush(stdout);
	return count > 2 && getchar() == 'x';
}
"""
PAIRS = 2000000
SIGNALS = (signal.SIGINT, signal.SIGTERM)
TICKS = os.sysconf("SC_CLK_TCK")
# Each takes a quarter of a second of the processor and more.
LARGE = (("heap", "large.xht", "-stacks"), ("report", "large.xht", "-o", "kept.txt"), ("heap", "large.xht", "-o", "kept.txt"), ("dump", "large.xht", "-events"),
         ("dump", "large.xht", "-allocations"), ("diff", "large.xht", "large.xht", "-o", "kept.txt"), ("check", "--budget", "large.budget", "large.xht", "--junit", "kept.txt"),
         ("dx", "large.xht", "@$cursession.TTD.Data.Heap().OrderBy(h => h.Size).Count()"), ("dx", "large.xht", "-f", "script.dx"))


def build():
    pathlib.Path("calls.c").write_text(SOURCE)
    subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-fno-builtin", "-o", "calls", "calls.c"], check=True)
    os.environ["XHEAP_INDEX_EVENTS"] = "none"
    xheap("record", "-q", "-o", "large.xht", "--", "./calls", PAIRS)
    pathlib.Path("large.budget").write_text("peak <= 1T\n")
    pathlib.Path("script.dx").write_text("@$cursession.TTD.Data.Heap().Count()\n" * 3)


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def begin(words, **more):
    return subprocess.Popen([XHEAP, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)


def has_ended(pid):
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end_of(pid):
    """Its status, negative for a signal, and the processor time of its whole life."""
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def files():
    return {str(path): path.read_bytes() for path in pathlib.Path(".").rglob("*") if path.is_file() and path.name != "large.xht"}


def large():
    """In the midst of the reading."""
    pathlib.Path("kept.txt").write_text("before")
    before = files()
    shares = []
    for words in LARGE:
        whole = begin(words)
        whole.stderr.read()
        status, needed = end_of(whole.pid)
        expect(status == 0, f"{words}: status {status}")
        pathlib.Path("kept.txt").write_text("before")
        for number in SIGNALS:
            process = begin(words)
            while processor_seconds(process.pid) < needed / 5 and not has_ended(process.pid):
                time.sleep(0.002)
            used = processor_seconds(process.pid)
            os.kill(process.pid, number)
            status, all_of_it = end_of(process.pid)
            said = process.stderr.read().decode()
            expect(status == -number and not said, f"{words}: {number.name} gave status {status}: {said}")
            expect(all_of_it - used < needed / 2, f"{words}: {number.name}: {all_of_it:.2f} s of the processor of {needed:.2f}, {used:.2f} before it")
            shares.append((all_of_it - used) / needed)
            expect(files() == before, f"{words}: {number.name} left {files().keys() ^ before.keys()}")
    return f"{len(LARGE)} commands of {needed:.1f} s; at most {max(shares) * 100:.0f} % of it after the signal"


def hit(words, number, directory):
    """Whether the signal came while a temporary file was there."""
    process = begin(words)
    while not any(name.endswith(".new") for name in os.listdir(directory)) and not has_ended(process.pid):
        pass
    os.kill(process.pid, number)
    status, _ = end_of(process.pid)
    said = process.stderr.read().decode()
    expect(status in (0, -number), f"{words}: {number.name} gave status {status}: {said}")
    expect(not any(name.endswith(".new") for name in os.listdir(directory)), f"{words}: {number.name} left {os.listdir(directory)}")
    return status == -number


def outputs():
    """In the midst of the writing, by commands that write long: what was there is untouched, or whole."""
    os.makedirs("out", exist_ok=True)
    xheap("record", "-q", "-o", "other.xht", "--", "./calls", PAIRS // 3)
    shutil.copy("large.xht", "named.xht")
    whole = {}
    hits = 0
    for words, path in ((("merge", "large.xht", "other.xht", "-o", "out/merged.xht"), "out/merged.xht"), (("symbols", "out/named.xht"), "out/named.xht")):
        for number in SIGNALS:
            for _ in range(20):
                shutil.copy("named.xht", path)
                before = os.stat(path)
                is_hit = hit(words, number, "out")
                after = os.stat(path)
                expect(not is_hit or (before.st_ino, before.st_size) == (after.st_ino, after.st_size), f"{words}: {number.name}: the file has changed")
                hits += is_hit
                if is_hit:
                    break
            whole[words[0]] = xheap("info", path)
    return f"{hits} signals while a file was written"


def recovering():
    """A recovery that a signal ends is made good by the next one; with -o nothing of it is left."""
    xheap("start", NAME, "-o", "lost.xht")
    with subprocess.Popen([XHEAP, "launch", NAME, "--", "./calls", str(PAIRS // 3), "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        expect(program.stdout.readline() == "made\n", "the program did not begin")
        pid = int(next(word for word in xheap("query", NAME).split("logger  pid ")[1].split(",")))
        os.kill(pid, signal.SIGKILL)
        program.communicate("\n")
    # On a busy machine a killed process lives until it gets a processor.
    wait_for("the logger's end", lambda: not runs(pid))
    os.makedirs("recovered", exist_ok=True)
    for number in SIGNALS:
        for words in (("recover", "lost.xht", "--keep", "-o", "recovered/lost.xht"), ("recover", "lost.xht", "--keep")):
            hit(words, number, "recovered")
    xheap("recover", "lost.xht")
    events = int(xheap("info", "lost.xht").split("of ")[1].split(" events")[0].replace(",", ""))
    expect(events > PAIRS // 3, f"only {events} events were recovered")


class Session:
    def __enter__(self):
        xheap("start", NAME, "-o", "session.xht")
        self.program = subprocess.Popen([XHEAP, "launch", NAME, "--", "./calls", str(PAIRS), "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        expect(self.program.stdout.readline() == "made\n", "the program did not begin")
        return self

    def __exit__(self, *_):
        self.program.communicate("\n")
        stop_session(NAME)


def of_terminal(number):
    """What top leaves of a terminal: its modes, and the last bytes."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(XHEAP, [XHEAP, "top", NAME, "-interval", "1"])
    before, got = termios.tcgetattr(terminal), b""
    wait_for("a picture", lambda: b"\x1b[?1049h" in (got := os.read(terminal, 65536)) or None)
    wait_for("other modes", lambda: termios.tcgetattr(terminal) != before)
    time.sleep(0.2)
    os.kill(pid, number)
    try:
        while select.select([terminal], [], [], LONG_SECONDS)[0]:
            got += os.read(terminal, 65536)
    except OSError:  # a terminal whose last program has ended
        pass
    status, _ = end_of(pid)
    os.close(terminal)
    return status, got


def sessions():
    """Commands of a session of four million events; top also on a terminal, which is then as before."""
    with Session():
        for number in SIGNALS:
            for words in (("top", NAME, "-count", "50", "-interval", "1"), ("report", "-session", NAME), ("heap", "-session", NAME, "-stacks"), ("query", NAME), ("flush", NAME)):
                process = begin(words)
                while processor_seconds(process.pid) < 0.1 and not has_ended(process.pid) and words[0] not in ("query", "flush"):
                    time.sleep(0.002)
                used = processor_seconds(process.pid)
                os.kill(process.pid, number)
                status, all_of_it = end_of(process.pid)
                said = process.stderr.read().decode()
                expect(status == -number or words[0] in ("query", "flush") and status == 0, f"{words}: {number.name} gave status {status}: {said}")
                expect(all_of_it - used < 0.5, f"{words}: {number.name}: {all_of_it - used:.2f} s of the processor after it")
            status, got = of_terminal(number)
            expect(status == -number and got.rstrip().endswith(b"\x1b[?25h\x1b[?1049l"), f"top on a terminal, {number.name}: status {status}, {got[-200:]}")
        expect("made" not in xheap("query", NAME), "the session has ended")


def answers():
    """record, in its answer: the trace is whole, and the rest is not waited for."""
    for number in SIGNALS:
        process = subprocess.Popen([XHEAP, "record", "-o", "answered.xht", "--", "./calls", str(PAIRS // 6), "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdin.close()
        while b"tracing cost" not in process.stderr.readline():
            pass
        os.kill(process.pid, number)
        said = process.stderr.read().decode()
        status = process.wait()
        expect(status in (0, -number), f"record: {number.name} gave status {status}: {said}")
        expect("events" in xheap("info", "answered.xht"), "the trace is not whole")


build()
sys.exit(run_tests(large, outputs, recovering, sessions, answers))
