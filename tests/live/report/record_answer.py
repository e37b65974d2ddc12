#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The last lines of xheap record: the peak, what is never freed or grows, and the command to type next, equal to what reports say; the reason, counts and the command where
the answer would cost more than a tenth of the processor time of the recording, and than a tenth of its time up to 250 ms (below a second: 5 ms, or a hundredth), or where there is no
one trace to answer from."""
import os
import re
import shlex
import subprocess
import sys

from live import LONG_SECONDS, XHEAP, expect, info, run_tests, xheap

SOURCE = """#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static double now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void *kept_by_it(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
__attribute__((noinline)) void *leaked_by_it(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
__attribute__((noinline)) void *with_a_name_that_is_very_long_%s(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
/* busy SECONDS of processor time, CALLS; leak SECONDS; long */
int main(int count, char **arguments) {
	double seconds = atof(arguments[2]);
	if (!strcmp(arguments[1], "busy")) {
		int calls = count > 3 ? atoi(arguments[3]) : 1000;
		for (int i = 0; i < calls; i++) free(kept_by_it(100));
		void *all[10];
		for (int i = 0; i < 10; i++) all[i] = kept_by_it(5000);
		for (int i = 0; i < 9; i++) free(all[i]);
		while (now(CLOCK_PROCESS_CPUTIME_ID) < seconds) ;
	} else if (!strcmp(arguments[1], "leak")) {
		double end = now(CLOCK_MONOTONIC) + seconds, rest = 0.002;
		kept_by_it(1 << 20);
		for (; now(CLOCK_MONOTONIC) < end; usleep(2000)) {
			leaked_by_it(256);
			for (double until = now(CLOCK_PROCESS_CPUTIME_ID) + rest / 2; now(CLOCK_PROCESS_CPUTIME_ID) < until;) ;
		}
		_exit(0);
	} else {
		with_a_name_that_is_very_long_%s(100000);
		while (now(CLOCK_PROCESS_CPUTIME_ID) < seconds) ;
	}
	return 0;
}
""" % (("x" * 200,) * 2)
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def build():
    with open("answer.c", "w") as file:
        file.write(SOURCE)
    subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-fno-builtin", "-o", "answer", "answer.c"], check=True)


def record(trace, *words, options=()):
    """The lines of the answer: those behind the one with the cost."""
    run = subprocess.run([XHEAP, "record", *options, "-o", trace, "--", "./answer", *map(str, words)], stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
    expect(run.returncode == 0, run.stderr)
    lines = [line.removeprefix("xheap: ") for line in run.stderr.splitlines()]
    cost = [i for i, line in enumerate(lines) if "tracing cost: " in line]
    return lines[cost[0] + 1:] if cost else lines


def check_next(line, trace):
    """The command can be typed."""
    expect(line.startswith("next: xheap ") and trace in line, line)
    run = subprocess.run([XHEAP, *shlex.split(line)[2:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(run.returncode == 0 and trace in run.stdout, f"{line}: {run.stdout}")


def is_near(text, number):
    value, unit = re.fullmatch(r"([\d.,]+) (\w+)", text).groups()
    return abs(float(value.replace(",", "")) * UNITS[unit] - number) <= max(1, 0.051 * UNITS[unit])


def answers():
    lines = record("busy.xht", "busy", 1.5)
    expect(len(lines) == 3, f"{lines}")
    totals = xheap("heap", "busy.xht", "-totals", "-format", "csv").splitlines()
    numbers = dict(zip(totals[0].split(","), totals[1].split(",")))
    peak = re.fullmatch(r"peak: ([\d.]+ \w+) in ([\d,]+) blocks at [\d.]+ \w+; (\d+) % of it from kept_by_it", lines[0])
    kept = re.fullmatch(r"never freed: ([\d.]+ \w+) in ([\d,]+) blocks?; (\d+) % of it from kept_by_it", lines[1])
    expect(peak and is_near(peak[1], int(numbers["peak_bytes"])) and peak[2] == f"{int(numbers['peak_count']):,}", f"{lines}, {numbers}")
    expect(kept and is_near(kept[1], int(numbers["outstanding_bytes"])) and kept[2] == f"{int(numbers['outstanding_count']):,}", f"{lines}, {numbers}")
    check_next(lines[2], "busy.xht")


def growing():
    lines = record("leak.xht", "leak", 12)
    expect(len(lines) == 3 and lines[0].startswith("peak: ") and lines[0].endswith("from kept_by_it"), f"{lines}")
    expect(re.match(r"leaked_by_it grows by [\d.]+ KiB a second \(95 % interval: ", lines[1]), f"{lines}")
    expect("-requireFrames" in lines[2] and "leaked_by_it" in lines[2], f"{lines}")
    check_next(lines[2], "leak.xht")


def detached():
    """What a program that goes on has is not called never freed."""
    program = subprocess.Popen(["./answer", "leak", "60"])
    try:
        run = subprocess.run([XHEAP, "record", "-o", "detached.xht", "-p", str(program.pid), "--duration", "1s"], stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
    finally:
        program.kill()
        program.wait()
    said = xheap("report", "detached.xht")
    expect(run.returncode == 0 and re.search(r"\nxheap: live at the end: .* of it from leaked_by_it\n", run.stderr), run.stderr)
    expect("\nLive at the end: " in said and "answer!leaked_by_it has 100 % of the bytes that are live at the end" in said, said)


def narrow():
    """A name is cut, and the numbers are not."""
    os.environ["COLUMNS"] = "80"
    try:
        lines = record("long.xht", "long", 1.5)
    finally:
        os.environ.pop("COLUMNS")
    expect(len(lines) == 3 and max(map(len, lines)) <= 80 - len("xheap: "), f"{lines}")
    expect(" with_a_" in lines[0] and "97.7 KiB in " in lines[0], f"{lines}")


def check_counts(line, trace):
    """What the logger counted is what the trace has."""
    counts = re.fullmatch(r"([\d,]+) blocks? allocated, ([\d,]+) reallocated, ([\d,]+) freed", line)
    events = info(trace)["events"]
    expect(counts and [int(count.replace(",", "")) for count in counts.groups()] == [events[kind] for kind in ("alloc", "realloc", "free")],
           f"{line}: {events}")


def refused():
    """The reason, counts and the command: where calls are most of the work, and where a file is not the whole of one recording."""
    lines = record("calls.xht", "busy", 0, 1000000, options=["--index=never"])
    expect(len(lines) == 3, f"more than a tenth is spent: {lines}")
    expect(re.fullmatch(r"the peak is left to the report: it would take about \d+ ms, which is more than (this run is worth|a tenth of the recording's processor time) \(\d+ ms\)", lines[0]), f"{lines}")
    check_counts(lines[1], "calls.xht")
    check_next(lines[2], "calls.xht")
    for words in (("--quiet",), ("--file-mode", "newfile", "--max-file", "4M")):
        name = "more.%d.xht" if "newfile" in words else "more.xht"
        lines = record(name, "busy", 0.3, options=words)
        expect(not any(line.startswith(("peak: ", "never freed: ")) for line in lines), f"{words}: {lines}")
        expect(("--quiet" in words) == (not lines), f"{words}: {lines}")
        expect("--quiet" in words or "the peak is left to the report: the trace is not one file of this recording alone" in lines, f"{words}: {lines}")


def short():
    """Of a run below a second, few events are read again, and many are not, however much of a tenth that would be. On a busy machine the answer may be late, or a run longer."""
    found = set()
    for attempt in range(20):
        lines = record("short.xht", "busy", 0.3, 100)
        expect(len(lines) == 3 and lines[0].startswith(("peak: ", "the peak is left to the report: it took more than this run is worth")), f"{lines}")
        check_next(lines[2], "short.xht")
        found.add(lines[0].split(":")[0])
        if "peak" in found:
            break
    expect("peak" in found, "no run had an answer")
    for attempt in range(20):
        lines = record("short.xht", "busy", 0.3, 20000)
        if info("short.xht")["duration_us"] < 900000:
            expect(len(lines) == 3 and re.fullmatch(r"the peak is left to the report: it would take about \d+ ms, which is more than this run is worth \(\d+ ms\)", lines[0]), f"{lines}")
            check_counts(lines[1], "short.xht")
            return check_next(lines[2], "short.xht")
    print("not shown: no run took less than a second")


def with_index():
    """The index makes the answer cheap, and its place is said; the answer makes none."""
    os.environ |= {"XDG_CACHE_HOME": os.path.abspath("cache"), "XHEAP_INDEX_EVENTS": "1"}
    try:
        expect(len(record("plain.xht", "busy", 1.5, options=("--index", "never"))) == 3 and not os.path.exists("cache/xheap/indexes"), "an index for an answer")
        lines = record("indexed.xht", "busy", 1, options=("--index",))
    finally:
        os.environ.pop("XDG_CACHE_HOME")
        os.environ.pop("XHEAP_INDEX_EVENTS")
    expect(len(lines) == 4 and re.fullmatch(r"the trace has an index, .* in .*/cache/xheap/indexes/ \(xheap clean removes it\)", lines[0]), f"{lines}")
    expect(lines[1].startswith("peak: ") and info("indexed.xht")["complete"], f"{lines}")


def nothing():
    """A program that makes no call that is kept, and one that cannot be found."""
    run = subprocess.run([XHEAP, "record", "-o", "true.xht", "/bin/true"], stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 0 and run.stderr.splitlines()[-1] == "xheap: next: xheap report true.xht", run.stderr)
    run = subprocess.run([XHEAP, "record", "-o", "none.xht", "/no/program"], stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 2 and "next" not in run.stderr, run.stderr)


def names():
    """The last line can be typed as it is, whatever the trace is called; of a trace that is gone there is none."""
    for name in ("plain.xht", "a b'c.xht", "back\\slash.xht", "line\nfeed'.xht", "./-dash.xht", "\udcff.xht"):
        run = subprocess.run([XHEAP, "record", "-o", name, "/bin/true"], stderr=subprocess.PIPE, text=True)
        said = run.stderr.splitlines()[-1].removeprefix("xheap: next: ")
        expect(said.isprintable() and said.startswith("xheap report "), f"{name!r}: {run.stderr}")
        typed = subprocess.run(["bash", "-c", said], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, PATH=f"{os.path.dirname(XHEAP)}:{os.environ['PATH']}"))
        expect(typed.returncode == 0, f"{said}: {typed.stdout}")
    os.makedirs("gone", exist_ok=True)
    run = subprocess.run([XHEAP, "record", "-o", "gone/x.xht", "rm", "-r", "gone"], stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 0 and " is gone: " in run.stderr and "next" not in run.stderr, run.stderr)


build()
sys.exit(run_tests(answers, growing, detached, narrow, refused, short, with_index, nothing, names))
