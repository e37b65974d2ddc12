#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every pair of options of `report` and of `heap` works together, or is refused with a reason: exit status 0 and another answer than with one
of the two, or exit status 2 and one sentence. ALONE names options that change nothing here, with the reason."""
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD, XHEAP = os.environ["BUILD"], os.environ["XHEAP"]
FILTERS = {"-range": ("2us", "12us"), "-lifetime": ("0", "3us"), "-size": ("100", "900"), "-requireFrames": ("app+0x2000", "app+0x2001"), "-requireFreeFrames": ("app+0x1000",),
           "-pids": ("100", "300"), "-threads": ("100", "101", "300", "301"), "-heap": ("main arena",), "-window": ("AIFO", "0", "14us"), "-closed": (), "-innermost": ()}
LAYOUT = {"-width": ("50",), "-fullNames": (), "-allFrames": ()}
OPTIONS = {
    "report": {**FILTERS, "-top": ("1",), "-more": (), "-shortLived": ("2us",), "-noDefaultCull": (), "-format": ("json",), "-o": ("out",), **LAYOUT},
    "heap": {**FILTERS, "-stacks": ("st",), "-frames": ("stc",), "-inclusive": (), "-image": ("sp",), "-heaps": (), "-tree": ("so",), "-callers": ("app+0x1000",), "-chains": (), "-totals": (),
             "-by": ("process",), "-top": ("1",), "-cullFrames": ("app+0x3001",), "-cullLists": ("list",), "-noDefaultCull": (), "-lines": (), "-format": ("json",), "-o": ("out",), "-timing": (), "-reverse": (), "-defaultCull": (), **LAYOUT},
}
# What changes nothing by itself, and why.
ALONE = {"-noDefaultCull": "the trace has no functions that the list names", "-lines": "the trace has no lines", "-innermost": "no block of the trace lies in another one",
         "-heap": "all blocks are of one heap", "-timing": "it is printed on standard error", "-inclusive": "it says how -frames is meant", "-stacks": "it is what is shown anyway, in another order",
         "-image": "all code is of one image", "-totals": "each answer begins with them",
         "-fullNames": "the trace has no long names", "-allFrames": "the trace has no frames of libraries", "-defaultCull": "it is for -format folded", "-reverse": "it is for -format folded"}
# What changes nothing beside another option, and why.
BESIDE = {("-width", "-format"): "JSON has no width", ("-width", "-fullNames"): "lines with full names have any width", ("-more", "-allFrames"): "all frames take as many lines, too",
          ("-top", "-totals"): "totals have no rows", ("-cullFrames", "-totals"): "totals have no rows", ("-cullLists", "-totals"): "totals have no rows", ("-top", "-image"): "there is one image",
          ("-cullFrames", "-image"): "there is one image", ("-cullLists", "-image"): "there is one image", ("-cullFrames", "-heaps"): "heaps have no frames", ("-cullLists", "-heaps"): "heaps have no frames",
          ("-top", "-heaps"): "there is one heap", ("-top", "-callers"): "callers of the outermost function are one row", ("-closed", "-requireFreeFrames"): "blocks with a stack of their free are freed"}


def ask(command, trace, *options):
    words = [word for name, values in options for word in (name, *values)]
    if os.path.exists("out"):
        os.unlink("out")
    run = subprocess.run([XHEAP, command, trace, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    saved = pathlib.Path("out").read_text() if os.path.exists("out") else ""
    if any(name == "-o" for name, _ in options) and run.returncode == 0 and (run.stdout or not saved):
        return run.returncode, "", "the report is not in the file of -o"
    return run.returncode, saved + run.stdout, run.stderr


def is_beside(one, other):
    return (one, other) in BESIDE or (other, one) in BESIDE


def is_refused(status, answer, errors):
    """With one sentence that gives the reason."""
    return status == 2 and not answer and re.fullmatch(r"xheap: .{15,}\n", errors)


def judge(command, trace, pair, alone):
    """What is wrong with a pair; "" if nothing is."""
    status, answer, errors = ask(command, trace, *pair)
    words = f"{command} {' '.join(word for name, values in pair for word in (name, *values))}"
    if is_refused(status, answer, errors):
        return ""
    if status != 0 or not answer or errors and not any(name == "-timing" for name, _ in pair):
        return f"{words}: exit status {status}, {errors!r}"
    if any(name == "-format" for name, _ in pair):
        json.loads(answer)
    names = [name for name, _ in pair]
    for name, other in (names, names[::-1]):
        # The option has no effect beside the other one.
        if answer == alone[other] and name not in ALONE and name != "-o" and not is_beside(name, other):
            return f"{words}: {name} changes nothing"
    return ""


def check(command, trace):
    options = list(OPTIONS[command].items())
    _, plain, _ = ask(command, trace)
    alone, failures = {}, []
    for option in options:
        status, alone[option[0]], errors = ask(command, trace, option)
        if is_refused(status, alone[option[0]], errors):
            continue
        if status != 0:
            failures.append(f"{command} {option}: exit status {status}: {errors}")
        elif alone[option[0]] == plain and option[0] not in ALONE and option[0] != "-o":
            failures.append(f"{command} {option[0]} changes nothing")
    pairs = list(itertools.combinations(options, 2))
    failures += filter(None, (judge(command, trace, pair, alone) for pair in pairs))
    print(*failures, f"{command}: {len(pairs)} pairs", sep="\n")
    return len(failures)


def main():
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        os.environ.update(LC_ALL="C", XHEAP_INDEX_EVENTS="none")
        subprocess.run([os.path.join(BUILD, "tests/golden/make_trace"), "random", "random.xht", "1", "400"], check=True)
        pathlib.Path("list").write_text("app+0x3002\n")
        return bool(sum(check(command, "random.xht") for command in OPTIONS))


sys.exit(main())
