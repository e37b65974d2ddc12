#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A stack as text has the frames of the JSON, each once: in a line of its own or in a fold. It begins with the first frame of the user's own code, by a definition of
this test's own; -allFrames and -noDefaultCull print all frames in their order."""
import json
import os
import pathlib
import re
import subprocess
import sys

XHEAP, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["SOURCE"])
TRACES = sorted((SOURCE / "tests/golden/traces").glob("*.xht"))
FOLD = re.compile(r"\[(\d+) frames? of ([^\]]*)\]$")
LIBRARY = re.compile(r"(libc|libstdc\+\+|libc\+\+|ld-linux-x86-64|libgcc_s|libm)[.-]")
SPACES = ("std", "__gnu_cxx", "alloc", "core", "hashbrown")
STARTS = ("_start", "__libc_start_main", "start_thread", "__clone3")
ENVIRONMENT = dict(os.environ, XHEAP_DEBUG_PATH="", XHEAP_INDEX_EVENTS="none")
ENVIRONMENT.pop("DEBUGINFOD_URLS", None)


def expect(condition, what):
    if not condition:
        sys.exit(what)


def xheap(trace, *words):
    return subprocess.run([XHEAP, "heap", str(trace), *words], stdout=subprocess.PIPE, check=True, env=ENVIRONMENT).stdout.decode()


def is_library(frame):
    """By the image, or by the namespace of the short name; of an implementation in Rust by the type, or by the trait. None: the name does not say, since a
    trait of a library is implemented for a type of the user's, by the user or for all types."""
    image, symbol, short = frame.get("image", ""), frame.get("symbol", ""), frame.get("short", "")
    if LIBRARY.match(image) or symbol in STARTS:
        return True
    implementation = re.match(r"<(?:impl )?[&\[(]*(?:mut |dyn |\*const |\*mut )*([\w:]*)", symbol)
    if not implementation:
        return short.split("::")[0] in SPACES and "::" in short
    if "::" not in implementation[1] or implementation[1].split("::")[0] in SPACES:
        return True
    return None if any(f" as {space}::" in symbol for space in SPACES) else False


def stacks_of(text):
    """The lines of each stack, without what stands before them."""
    found = []
    for line in text.split("\n\nStacks by", 1)[1].splitlines():
        if not line.startswith("        ") or re.match(r"  +[~\d]", line):
            found.append([])
        else:
            found[-1].append(line[8:])
    return [lines for lines in found if lines]


def shown_name(line):
    return re.sub(r"( \[inlined\])?(  \S+)?$", "", line.strip()).split("!")[-1]


def names_of(frames):
    return [frame.get("short") or (f"{frame['image']}+{frame['offset']}" if "offset" in frame and "symbol" not in frame else frame.get("symbol")) for frame in frames]


def check_stack(trace, lines, frames):
    """Frames of the lines, with a number for each fold, in the order of the stack."""
    shown = [int(fold[1]) if (fold := FOLD.match(line.strip().removeprefix("via "))) else shown_name(line.strip().removeprefix("via ")) for line in lines]
    if len(lines) > 1 and lines[1].startswith("  via "):
        shown[0], shown[1] = shown[1], shown[0]
    names, at = names_of(frames), 0
    for item in shown:
        if isinstance(item, int):
            expect(False not in map(is_library, frames[at:at + item]), f"{trace}: a fold has frames of the user's: {lines} of {names}")
            at += item
        else:
            expect(at < len(names) and item == names[at], f"{trace}: {item} is not frame {at} of {names}: {lines}")
            at += 1
    expect(at == len(names), f"{trace}: {at} of {len(names)} frames: {lines}")
    sure = [i for i, frame in enumerate(frames) if is_library(frame) is False]
    if sure:
        begins = [names[i] for i, frame in enumerate(frames[:sure[0] + 1]) if not is_library(frame)]
        expect(shown_name(lines[0]) in begins, f"{trace}: begins with {lines[0]}, not with one of {begins}")
    return any(isinstance(item, int) for item in shown)


def check_callers(trace):
    """A line of callers that is too long lacks whole frames: the first one may be cut, all others are names of frames."""
    cut = 0
    names = {name for row in json.loads(xheap(trace, "-stacks", "-noDefaultCull", "-format", "json"))["actions"][0]["rows"] for name in names_of(row["stack"])}
    for width in (50, 80):
        text = subprocess.run([XHEAP, "report", str(trace), "-more", "-width", str(width)], stdout=subprocess.PIPE, check=True, env=ENVIRONMENT).stdout.decode()
        for line in text.splitlines():
            if not line.startswith(" " * 12 + "<"):
                continue
            expect(len(line) <= width, f"{trace} {width}: a line of {len(line)}: {line}")
            first, *others = line.strip().removeprefix("< ").split(" < ")
            ends = [frame for frame in (first, *others) if frame.endswith((" …", " ..."))]
            expect(len(ends) <= 1, f"{trace} {width}: two gaps: {line}")
            for frame in others:
                expect(frame.removesuffix(" …").removesuffix(" ...") in names, f"{trace} {width}: {frame} is no frame: {line}")
            cut += len(ends)
    return cut


def main():
    stacks = folded = 0
    expect(sum(map(check_callers, TRACES)) > 5, "too few lines of callers are cut")
    for trace in TRACES:
        rows = json.loads(xheap(trace, "-stacks", "-format", "json"))["actions"][0]["rows"]
        texts = stacks_of(xheap(trace, "-stacks", "-width", "300"))
        expect(len(rows) == len(texts), f"{trace}: {len(texts)} stacks of {len(rows)}")
        for lines, row in zip(texts, rows):
            folded += check_stack(trace.name, lines, row["stack"])
            stacks += 1
        for words in (("-allFrames",), ("-noDefaultCull",)):
            rows = json.loads(xheap(trace, "-stacks", *words[words == ("-allFrames",):], "-format", "json"))["actions"][0]["rows"]
            texts = stacks_of(xheap(trace, "-stacks", "-width", "300", *words))
            for lines, row in zip(texts, rows):
                expect([shown_name(line) for line in lines] == names_of(row["stack"]), f"{trace} {words}: {lines}")
    print(f"{stacks} stacks of {len(TRACES)} traces, {folded} with folds")
    expect(stacks > 100 and folded > 60, "too few stacks")


main()
