#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No name of a traced program, nor any word of the command line, steers a terminal, ends a line, turns text around or becomes a formula: names of files,
symbols, command lines and paths with escape sequences, line feeds, C1 controls, bidirectional overrides and bytes that are no UTF-8."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unicodedata
import xml.dom.minidom

XHEAP = os.environ["XHEAP"]
HOSTILE = b"=e\x1b[31mv\ni\rl\t\x7f \xc2\x9b5m\x9b7m \xe2\x80\xae\xe2\x81\xa6 \xff\xc0\x80 \xe2\x80\xa8 \xc3\xa4"
failed = []


def check(what, data, json_too=False):
    text = data.decode("utf-8", "surrogateescape")
    bad = [char for char in text if char != "\n" and (unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp"))]
    if bad:
        failed.append(f"{what}: {sorted(set(bad))!r} in {[line for line in text.splitlines() if any(char in line for char in bad)][:2]!r}")


def run(*words, status=None):
    done = subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    what = b" ".join(word if isinstance(word, bytes) else word.encode() for word in words[:4]).decode("utf-8", "backslashreplace")
    if status is not None and done.returncode != status:
        failed.append(f"{what}: status {done.returncode}: {done.stderr!r}")
    check(f"{what} on standard error", done.stderr)
    return what, done.stdout


def program():
    """A program with that name, which calls a function with that name, if it can be built here."""
    pathlib.Path("program.c").write_text("#include <stdlib.h>\nvoid *replaced_name(size_t size) { return malloc(size); }\n"
                                         "int main(void) { for (int i = 0; i < 9; i++) { void *volatile p = replaced_name(100 + i); if (i & 1) free(p); } return 0; }\n")
    built = subprocess.run(["cc", "-O0", "-g0", "-fno-builtin", "-o", "program", "program.c"]).returncode == 0
    if not built:
        shutil.copy("/bin/true", "program")
    data = pathlib.Path("program").read_bytes()
    # Of the same length, so that it can take its place in the table.
    pathlib.Path("program").write_bytes(data.replace(b"replaced_name", b"=\x1b[2J\n\xc2\x9b5m\xe2\x80\xae"[:13].ljust(13, b"x")))
    os.chmod("program", 0o755)
    os.rename("program", HOSTILE)


program()
trace = b"t" + HOSTILE + b".xht"
run("record", "-o", trace, "--", b"./" + HOSTILE, b"an" + HOSTILE, status=0)
shutil.copy(trace, "plain.xht")
questions = [("info",), ("report",), ("symbols",), ("dump", "-processes"), ("dump", "-stacks"), ("dump", "-events"), ("dump", "-allocations"), ("dump", "-images"),
             ("heap",), ("heap", "-stacks", "st"), ("heap", "-frames", "st"), ("heap", "-image"), ("heap", "-tree", "st"), ("heap", "-callers", "=*"),
             ("heap", "-inclusive"), ("heap", "-heaps"), ("heap", "-chains"), ("heap", "-by", "process"), ("heap", "-requireFrames", HOSTILE)]
for words in questions:
    for file in (trace, b"plain.xht"):
        for form in ("text", "csv", "json"):
            if form != "text" and words[0] not in ("info", "heap", "dump") or (form == "csv" and words[0] == "info"):
                continue
            what, data = run(words[0], file, *words[1:], *(() if words[0] in ("report", "symbols") else ("-format", form)))
            if form == "json" and data:
                for line in [data] if words[0] != "dump" else data.splitlines():
                    try:
                        json.loads(line.decode("utf-8"))
                    except ValueError as error:
                        failed.append(f"{what}: {error}")
                continue
            check(f"{what} as {form}", data)
            if form == "csv" and data:
                for row in csv.reader(io.StringIO(data.decode())):
                    wrong = [field for field in row if re.match(r"[=+@]|-[^0-9]", field)]
                    if wrong:
                        failed.append(f"{what}: a formula: {wrong}")
# A budget has no such names, but the stacks of its limits have.
pathlib.Path("tight.budget").write_text('bytes <= 1\nblocks in * <= 1\npeak self "=*" <= 1\n')
for more in ((), ("--github",), ("--junit", "suite.xml")):
    what, data = run("check", b"plain.xht", "--budget", "tight.budget", *more, status=1)
    check(f"{what} {more}", data)
what, data = run("check", trace, b"plain.xht", "--fail-above", "0%", "--by", "function", "--least", "0", status=0)
check(what, data)
what, data = run("check", trace, "--budget", "tight.budget", "--format", "json", status=1)
json.loads(data.decode("utf-8"))
xml.dom.minidom.parse("suite.xml")
run("check", b"plain.xht", "--budget", b"no" + HOSTILE, status=2)
for words in (("heap", trace, "-stacks", "st"), ("heap", trace, "-by", "process", "-reverse"), ("diff", trace, b"plain.xht")):
    # A frame has no separator, and a line no number but its own.
    what, data = run(*words, "-format", "folded", status=0)
    check(f"{what} as folded", data)
    for line in data.decode("utf-8", "surrogateescape").splitlines():
        stack = re.fullmatch(r"(.*?)(?: \d+){%d}" % (2 if words[0] == "diff" else 1), line)
        if not stack or re.search(r"\s[\d.]+$", stack[1]) or "" in stack[1].split(";"):
            failed.append(f"{what}: {line!r}")
for form in ("text", "csv", "json"):
    for words in (("-stacks", "st"), ("-tree",), ("-image",)):
        run("diff", trace, b"none@" + HOSTILE + b"..", *words, status=2)
        for sides in ((trace, b"plain.xht", "-range", "0", "1s", "-noDefaultCull"), (b"plain.xht@..1us", trace + b"@1us..")):
            what, data = run("diff", *sides, *words, "-format", form, status=0)
            json.loads(data.decode("utf-8")) if form == "json" else check(f"{what} as {form}", data)
for words in ((b"no" + HOSTILE,), ("heap", b"no" + HOSTILE), ("heap", b"-" + HOSTILE), ("record", "-o", b"no/" + HOSTILE, "true"), ("record", b"./no" + HOSTILE),
              ("start", HOSTILE, "-p", "0"), ("query", HOSTILE), ("stop", b"no" + HOSTILE), ("recover", b"no" + HOSTILE), ("merge", "-o", "x", b"no" + HOSTILE),
              ("record", "--buffer-size", HOSTILE, "true"), ("heap", b"plain.xht", "-requireFrames", HOSTILE, "-size", HOSTILE), ("help", HOSTILE)):
    run(*words)
for line in failed:
    print(line.encode("utf-8", "backslashreplace").decode())
sys.exit(bool(failed))
