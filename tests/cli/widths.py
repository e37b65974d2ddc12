#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No line of a text is wider than the terminal, whatever the names in the trace are; numbers stay whole, columns that are left out are named, and the same
trace has the same short names each time.

An independent count of columns (Python's tables of Unicode) measures the lines.
"""
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import termios
import struct
import fcntl
import unicodedata

XHEAP, BUILD, SOURCE = os.environ["XHEAP"], os.environ["BUILD"], pathlib.Path(os.environ["SOURCE"])
WIDTHS = [*range(40, 104), *range(104, 300, 14), 299, 300]
TABLES = ("-stacks", "-frames", "-tree", "-callers", "*", "-image", "-heaps", "-chains")
SPLITS = ("process", "thread", "heap", "size", "class")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?: [KMGTPE]?i?B\b)?")
HOSTILE = [
    "f" * 5000, "x" * 390, "配列" * 300, "naïve::größe(int)", "a" + "\u0308" * 3000, "🚀::launch()", "\x1b[31mred\x1b[0m", "tab\there", "",
    "(" * 300, "<" * 300, "operator<<<<<<", "std::vector<" * 60 + ">" * 60 + "::push_back(int)", "{lambda()#1}", " ",
    "f(int)", "f(char)", "f(long)", "void f<int>(int)", "a b c d e f g h i j k l m n o p q r s t u v w x y z" * 9, "\u202eabc", "\xad", "한글::이름(int)", "m::make::{{closure}}", "<T as core::fmt::Display>::fmt", "f()::{lambda()#1}::operator()() const",
]


def columns(text):
    wide = {"W": 2, "F": 2}
    return sum(0 if unicodedata.category(c) in ("Mn", "Me", "Cf") and c != "\xad" or 0x1160 <= ord(c) < 0x1200 else wide.get(unicodedata.east_asian_width(c), 1) for c in text)


def expect(condition, what):
    if not condition:
        sys.exit(what)


def xheap(*words, **environment):
    run = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, **environment))
    expect(run.returncode == 0, f"{words}: status {run.returncode}: {run.stderr.decode(errors='replace')}")
    return run.stdout.decode()


def check_lines(words, width, text):
    for line in text.splitlines():
        expect(columns(line) <= width, f"{words} at {width}: {columns(line)} columns: {line}")


def make_traces():
    names = [line.split("\t")[0] for line in (SOURCE / "tests/unit/short_names.txt").read_text().splitlines()]
    lines = [name.replace("\n", " ") + ("\tserver.cpp\t%d" % n if n % 2 else "\t" + "long/" * 100 + "a-file-with-a-long-name-in-a-directory.cc\t4000000000")
             for n, name in enumerate(HOSTILE + names[:40])]
    subprocess.run([f"{BUILD}/tests/golden/make_names", "names.xht"], input="\n".join(lines).encode(), check=True)
    for name in ("plain", "forks", "losses", "earlier", "untraced"):
        subprocess.run([f"{BUILD}/tests/golden/make_trace", name, f"{name}.xht"], check=True)


def check_widths():
    """Each width on the trace with hostile names, and some widths on the others."""
    for width in WIDTHS:
        locale = "C" if width % 5 == 0 else "C.UTF-8"
        for words in (("heap", "names.xht", *TABLES, "-top", 40, "-by", SPLITS[width % len(SPLITS)] if width % 2 else "process"), ("info", "names.xht"), *([("report", "names.xht")] * (width % 3 == 0))):
            if "heap" in words and words[-1] == "heap":
                words = words[:-2]
            check_lines(words, width, xheap(*words, "-width", width, LC_ALL=locale))
        if width % 6 == 0 or width < 46:
            by = () if width % 2 else ("-by", "process")
            words = ("diff", "names.xht", "plain.xht", *(("--", "forks.xht") if width % 4 else ()), "-stacks", "st", "-frames", "sp", "-tree", "-image", "stc", *by)
            check_lines(words, width, xheap(*words, "-width", width, LC_ALL=locale))
    for width in (40, 53, 80, 100):
        for name in ("plain", "forks", "losses", "earlier", "untraced"):
            for words in (("heap", f"{name}.xht", *TABLES), ("info", f"{name}.xht"), ("report", f"{name}.xht")):
                check_lines(words, width, xheap(*words, "-width", width))


def check_budgets():
    """A budget whose limits have long names, and are exceeded, uncertain or match nothing."""
    name = "f" * 5000
    pathlib.Path("tight.budget").write_text(f'bytes <= 1\nblocks in "=names!{name}" <= 0\npeak in * except nothing <= 1\noutstanding in {"x::" * 100}y <= 3\n'
                                            'temporary <= 999,999,999\nblocks thread "a b" process nobody <= 3\n')
    for width in (40, 41, 57, 80, 100, 222, 300):
        for more in ((), ("--strict", "--top", "9"), ("--allFrames",)):
            for traces in (("names.xht",), ("plain.xht", "losses.xht")):
                words = (XHEAP, "check", *traces, "--budget", "tight.budget", "--width", str(width), *more)
                run = subprocess.run(words, stdout=subprocess.PIPE, text=True)
                expect(run.returncode == 1 and "failed: 6 limits" in run.stdout, f"{words}: status {run.returncode}: {run.stdout}")
                check_lines(words, width, run.stdout)


def numbers_of(text):
    """The totals and the numbers of the rows, without those in names."""
    return NUMBER.findall(re.split(r"\n\n", text)[1])


def check_numbers():
    """What is left out is named, and the width that the line names shows it."""
    whole = xheap("heap", "plain.xht", "-frames", "-width", 300)
    expect("columns left out" not in whole, "columns are left out of 300")
    for width in (40, 60, 80, 100):
        text = xheap("heap", "plain.xht", "-frames", "-width", width)
        expect(numbers_of(text) == numbers_of(whole) or width < 60, f"{width}: other numbers in the totals: {text}")
        flat = " ".join(text.split())
        told = re.search(r".*columns left out: (.*?); -width (\d+) shows them", flat)
        expect(told, f"{width}: no word about columns: {text}")
        shown = xheap("heap", "plain.xht", "-frames", "-width", told[2])
        expect("columns left out" not in shown, f"-width {told[2]} does not show them: {shown}")
        titles = re.split(r" {2,}", next(line for line in shown.splitlines() if "outstanding" in line and "total" in line).strip())
        left = told[1].split(", ")
        now = re.split(r" {2,}", next(line for line in text.splitlines() if re.match(r" +outstanding +", line) and "frame" in line).strip())
        expect(len(now) + len(left) == len(titles), f"{width}: {now} and {left} are not {titles}")


def check_whole():
    """-fullNames prints all of a name, and JSON has both forms."""
    text = xheap("heap", "names.xht", "-frames", "-fullNames", "-width", 40)
    expect("f" * 5000 in text and "columns left out" not in text, "-fullNames has not the whole name")
    # A quarter of the functions are in an image that is called like the library of C++, which is culled.
    culling = ("-noDefaultCull", "-cullLists", "allocators")
    rows = json.loads(xheap("heap", "names.xht", "-frames", *culling, "-format", "json"))["actions"][0]["rows"]
    pairs = {row["frame"]["symbol"]: row["frame"]["short"] for row in rows if "short" in row["frame"]}
    expect(len(pairs) > 20 and pairs["f" * 5000] == "f" * 5000, "JSON has not both names")
    by_image = [(row["frame"]["image"], row["frame"]["short"]) for row in rows if "short" in row["frame"]]
    expect(len(set(by_image)) == len(by_image), "two functions of an image have one short name")
    alike = {symbol: pairs[symbol] for symbol in ("f(char)", "f(int)", "f(long)", "void f<int>(int)")}
    expect([*alike.values()] == ["f", "f#2", "f#3", "f<>"], f"functions that read alike are {alike}")
    again = json.loads(xheap("heap", "names.xht", "-frames", "st", *culling, "-format", "json"))["actions"][0]["rows"]
    expect(pairs == {row["frame"]["symbol"]: row["frame"]["short"] for row in again if "short" in row["frame"]}, "the short names depend on the order of rows")


def on_terminal(width, *words):
    """What the command prints on a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen([XHEAP, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=dict(os.environ, PAGER="cat", TERM="dumb"))
    os.close(theirs)
    seen = b""
    try:
        while more := os.read(ours, 1 << 16):
            seen += more
    except OSError:
        pass
    process.wait()
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


def check_sources_of_width():
    """A terminal, COLUMNS, a pipe, a file, and refused widths."""
    words = ("heap", "names.xht", "-frames")
    for width in (40, 77, 130):
        expect(on_terminal(width, *words) == xheap(*words, "-width", width), f"a terminal of {width} columns has other lines")
        expect(xheap(*words, COLUMNS=str(width)) == xheap(*words, "-width", width), f"COLUMNS={width} has other lines")
    for columns_word, width in (("", 100), ("7", 40), ("9999", 300), ("x", 100)):
        expect(xheap(*words, COLUMNS=columns_word) == xheap(*words, "-width", width), f"COLUMNS={columns_word}")
    expect(on_terminal(12, *words) == xheap(*words, "-width", 40), "a terminal of 12 columns")
    xheap(*words, "-o", "saved.txt")
    expect(pathlib.Path("saved.txt").read_text() == xheap(*words), "a file has other lines than a pipe")
    for bad in ("39", "301", "0", "-1", "x", ""):
        run = subprocess.run([XHEAP, *words, "-width", bad], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect(run.returncode == 2 and "-width" in run.stderr and not run.stdout, f"-width {bad}: {run}")


if __name__ == "__main__":
    os.environ.pop("COLUMNS", None)
    make_traces()
    check_widths()
    check_budgets()
    check_numbers()
    check_whole()
    check_sources_of_width()
