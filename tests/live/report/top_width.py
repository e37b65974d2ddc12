#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What xheap top shows: no line is wider than the terminal, whatever the functions of the program are called; rows begin with the program's own code; rates are
those of the trace; a terminal of any size gets no more lines than it has, and keys work. Of a large session, what is followed is what heap says, and what cannot
be followed is counted."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import unicodedata

from live import XHEAP, expect, run_tests, stop_session, told, wait_for, xheap

NAME = f"top{os.getpid()}"
LONG = "配列" * 20 + "_function_with_a_name_that_is_long" * 12
SOURCE = f"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void *{LONG}(size_t n) {{ void *p = malloc(n); __asm__ volatile("" : : "r"(p)); return p; }}
__attribute__((noinline)) char *short_one(const char *text) {{ char *p = strdup(text); __asm__ volatile("" : : "r"(p)); return p; }}
__attribute__((noinline)) void *large_one(void) {{ void *p = malloc(30 << 20); __asm__ volatile("" : : "r"(p)); return p; }}
__attribute__((noinline)) void churn(void) {{ for (int i = 0; i < 2000; i++) {{ void *p = malloc(64); __asm__ volatile("" : : "r"(p)); free(p); }} }}
int main(void) {{
	large_one();
	for (int i = 0; i < 100; i++) {{ {LONG}(1000); short_one("a text"); churn(); }}
	puts("made");
	fflush(stdout);
	return getchar() == 'x';
}}
"""
# Many calls, of two functions: PAIRS of a call and a free, and what is kept; fork: of a process that has forked.
MANY = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void *kept_by_it(size_t n) { void *p = malloc(n); __asm__ volatile("" : : "r"(p)); return p; }
__attribute__((noinline)) void *freed_by_it(size_t n) { void *p = malloc(n); __asm__ volatile("" : : "r"(p)); return p; }
int main(int count, char **arguments) {
	if (!strcmp(arguments[1], "fork")) {
		if (fork() == 0) {
			free(freed_by_it(1));
			_exit(0);
		}
		wait(NULL);
	}
	for (long i = 0; i < atol(arguments[2]); i++) {
		free(freed_by_it(100));
		if (i % 1000 == 0)
			kept_by_it(5000);
	}
	puts("made");
	fflush(stdout);
	return getchar() == 'x';
}
"""
PAIRS = 1300000
KEYS = ("so", "soc", "st", "stc", "src", "sp", "spc", "stt", "sg", "sr", "sn")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def columns(text):
    return sum({"W": 2, "F": 2}.get(unicodedata.east_asian_width(c), 1) for c in text)


class Session:
    """A session whose program has made all of its calls and stays."""

    def __enter__(self):
        with open("names.c", "w") as file:
            file.write(SOURCE)
        subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-fno-builtin", "-o", "names", "names.c"], check=True)
        xheap("start", NAME, "-o", "names.xht")
        self.program = subprocess.Popen([XHEAP, "launch", NAME, "--", "./names"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        expect(self.program.stdout.readline() == "made\n", "the program did not begin")
        return self

    def __exit__(self, *_):
        os.environ.pop("COLUMNS", None)
        self.program.communicate("\n")
        stop_session(NAME)


def lines_fit():
    with Session():
        for width in (40, 41, 66, 80, 100, 140, 300):
            os.environ["COLUMNS"] = str(width)
            for key in KEYS if width in (40, 80) else KEYS[:1]:
                text = xheap("top", NAME, "-count", "1", "-s", key)
                widest = max(map(columns, text.splitlines()))
                expect(widest <= width, f"{widest} columns of {width}: {text}")
            text = xheap("top", NAME, "-count", "1")
            expect("short_one" in text or width < 60, f"at {width} no function of the program: {text}")
            expect("strdup" not in text.split("short_one")[0].splitlines()[-1], f"at {width} a row begins with the library: {text}")
            expect("growth/s" in text or width < 60, f"at {width} no growth: {text}")


def number(text):
    """As text_count() and text_bytes() write it."""
    value, _, unit = text.partition(" ")
    return float(value.replace(",", "")) * UNITS.get(unit.removesuffix("/s"), 1)


def rows_of(text):
    """The rows by their first functions, with the cells of their columns by title."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.endswith("  stack"))
    ends = [(match[0], match.end()) for match in re.finditer(r"(in )?\S+( at the peak| count| size)*", lines[head])]
    found = {}
    for line in lines[head + 1:]:
        start, cells = 0, {}
        for title, end in ends[:-1]:
            cells[title] = line[start:end].strip()
            start = end
        found[line[start:].split()[0]] = cells
    return found


def rates():
    """With all of the time as the last one, a rate is the sum by the time; with a time in which nothing was called it is nothing."""
    os.environ["COLUMNS"] = "200"
    with Session():
        text = xheap("top", NAME, "-s", "sg", "-interval", "86400")
        seconds = re.search(r"in the last ([\d.]+) (ms|s):", text)
        seconds = float(seconds[1]) / (1000 if seconds[2] == "ms" else 1)
        rows = rows_of(text)
        expect(list(rows)[0] == "large_one" and "churn" in rows, f"by growth: {text}")
        for name, calls, size, growth in (("churn", 200000, 200000 * 64, 0), ("large_one", 1, 30 << 20, 30 << 20), ("short_one", 100, 700, 700)):
            for title, sum_ in (("calls/s", calls), ("size/s", size), ("growth/s", growth)):
                found = number(rows[name][title].lstrip("+"))
                expect(abs(found - sum_ / seconds) <= 1.1 + 0.06 * sum_ / seconds, f"{name}, {title}: {found}, not {sum_} in {seconds} s: {text}")
        expect(rows["large_one"]["growth/s"].startswith("+"), text)

        def is_idle():
            text = xheap("top", NAME, "-interval", "1")
            cells = rows_of(text)
            return all((row["calls/s"], row["growth/s"], row["size/s"]) == ("0", "0 B", "0 B") for row in cells.values()) and len(cells) > 2
        wait_for("rates of nothing", is_idle)
        return f"{len(rows)} rows"


def chart():
    """From the lowest to the highest value, in block characters or, where the locale has none, in ASCII."""
    os.environ["COLUMNS"] = "80"
    with Session():
        text = xheap("top", NAME)
        expect(re.search(r"live over .*, from (30\.0|30\.1) MiB to 30\.1 MiB", text) and "█" in text, text)
        before = os.environ.get("LC_ALL")
        os.environ["LC_ALL"] = "C"
        try:
            text = xheap("top", NAME)
        finally:
            os.environ.pop("LC_ALL") if before is None else os.environ.update(LC_ALL=before)
        drawing = text.split("live over")[1].split("outstanding")[0]
        expect("#" in drawing and drawing.isascii(), text)


def screen_of(rows, columns_, keys):
    """What a terminal of this size gets, until the command ends by q."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.pop("COLUMNS", None)
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns_, 0, 0))
        os.execv(XHEAP, [XHEAP, "top", NAME, "-interval", "600"])
    got, shown = b"", 0
    until = time.monotonic() + 60
    try:
        while time.monotonic() < until and select.select([terminal], [], [], 60)[0]:
            got += os.read(terminal, 65536)
            if got.count(b"\x1b[J") > shown:
                shown += 1
                os.write(terminal, keys[shown - 1:shown].encode() if shown <= len(keys) else b"q")
    except OSError:  # the command has ended
        pass
    os.close(terminal)
    expect(os.waitpid(pid, 0)[1] == 0, "top failed")
    return got.decode()


def terminals():
    with Session():
        for rows, width in ((24, 80), (10, 40), (3, 60), (50, 200)):
            text = screen_of(rows, width, "ss")
            pictures = text.split("\x1b[H")[1:]
            expect(len(pictures) == 3, f"{len(pictures)} pictures: {text!r}")
            for picture, order in zip(pictures, ("outstanding size", "outstanding count", "total size")):
                lines = picture.partition("\x1b[J")[0].replace("\x1b[K", "").replace("\r", "").split("\n")
                expect(len(lines) <= rows, f"{len(lines)} lines of {rows}: {lines}")
                expect(max(map(columns, lines)) <= width, f"wider than {width}: {lines}")
                expect(f"by {order}" in lines[0] or width == 40, f"not by {order}: {lines[0]}")


class Many:
    """A session of more events than are matched anew, whose program stays."""

    def __init__(self, *how, options=()):
        self.how, self.options = how, options

    def __enter__(self):
        os.environ["COLUMNS"] = "220"
        with open("many.c", "w") as file:
            file.write(MANY)
        subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-fno-builtin", "-o", "many", "many.c"], check=True)
        xheap("start", NAME, "-o", "many.xht", *self.options)
        self.program = subprocess.Popen([XHEAP, "launch", NAME, "--", "./many", *self.how, str(PAIRS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        expect(self.program.stdout.readline() == "made\n", "the program did not begin")
        return self

    def __exit__(self, *_):
        os.environ.pop("COLUMNS", None)
        self.program.communicate("\n")
        stop_session(NAME)


def counts_of(text, reason):
    """The events by kind of a picture without stacks."""
    expect(f"no stacks: {reason}" in text and f"xheap report -session {NAME}" in text and "  stack\n" not in text, f"not counted for this reason: {text}")
    expect(" 0 lost;" in text and "./many" in text and "resident" in text, text)
    return {kind: number(text_) for kind, text_ in re.findall(r"(alloc|realloc|free) ([\d,]+)", text)}


def counted():
    """One view of it, and views of what cannot be followed: the kinds are those of the trace."""
    for how, options, more, reason in (("plain", (), ("-count", "1"), "too many events to match for one view"),
                                       ("plain", ("--file-mode", "circular", "--max-file", "1G"), (), "its file is not one that only grows")):
        with Many(how, options=options):
            if more:
                counts = counts_of(xheap("top", NAME, *more), reason)
            else:
                views = subprocess.Popen([XHEAP, "top", NAME, "-interval", "1", "-count", "86400"], stdout=subprocess.PIPE, text=True)
                seen = ""
                while reason not in seen:
                    line = views.stdout.readline()
                    expect(line, f"top has ended: {seen}")
                    seen += line
                views.kill()
                views.communicate()
                counts = counts_of(xheap("top", NAME, "-count", "1"), "")
            expect(counts["free"] >= PAIRS and counts["alloc"] >= PAIRS * 1.001, f"{how}: {counts}")
        events = {kind: count for kind, count in told("info", "many.xht")["events"].items() if count}
        expect(all(events[kind] >= count for kind, count in counts.items()), f"{how}: {events}, {counts}")


def check_followed(how, freed):
    with Many(how):
        events = told("query", NAME)["events"]
        views, seen = subprocess.Popen([XHEAP, "top", NAME, "-interval", "1", "-count", "86400", "-s", "sp"], stdout=subprocess.PIPE, text=True), []
        while not any(f"; {events:,} of the events are matched" in line for line in seen) or not any("  stack" in line for line in seen[-3:]):
            line = views.stdout.readline()
            expect(line, f"top has ended: {seen}")
            seen = seen + [line] if not line.startswith(f"{NAME}: ") else [line]
        seen += [views.stdout.readline() for _ in range(2)]
        views.kill()
        views.communicate()
        text = "".join(seen)
        rows = rows_of(text)
        expect(set(rows) >= {"freed_by_it", "kept_by_it"}, text)
        kept = PAIRS // 1000
        expect(number(rows["kept_by_it"]["blocks"]) == kept and number(rows["kept_by_it"]["in blocks"]) == kept, text)
        expect(rows["freed_by_it"]["outstanding"] == "0 B" and number(rows["freed_by_it"]["in blocks"]) == freed, text)
        expect(all(row["size at the peak"] == "-" for row in rows.values()), text)
        expect(re.search(r"live over .*, from [\d.]+ (?:[KM]i)?B to [\d.]+ MiB", text), text)


def followed():
    """When all is matched, its rows are those of heap, also of processes that fork; the peaks of stacks are not known."""
    check_followed("plain", PAIRS)
    check_followed("fork", PAIRS + 1)


sys.exit(run_tests(lines_fit, rates, chart, terminals, counted, followed))
