#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap export: each figure that a format can hold, stack by stack, is that of xheap heap. The readers here share no code with the writers."""
import collections
import gzip
import json
import os
import pathlib
import subprocess
import sys

XHEAP, BUILD, SOURCE = os.environ["XHEAP"], os.environ["BUILD"], pathlib.Path(os.environ["SOURCE"])
TRACES = SOURCE / "tests/golden/traces"
FIGURES = ["total_count", "total_bytes", "outstanding_count", "outstanding_bytes", "peak_count", "peak_bytes"]


def expect(condition, what):
    if not condition:
        sys.exit(what)


def xheap(*words, status=0):
    run = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect(run.returncode == status, f"{words}: {run.returncode}: {run.stderr.decode()}")
    return run


# ---- what is right ----

def text_of(frame):
    return frame.get("symbol") or (f"{frame['image']}+{frame['offset']}" if "image" in frame else frame.get("mark", "[no image]"))


def figures_of_heap(trace, figures, options):
    """By figure: the number of each stack, whose frames are from outside in."""
    report = json.loads(xheap("heap", trace, "-stacks", "-top", 1 << 40, "-format", "json", *options).stdout)
    found = {figure: collections.Counter() for figure in figures}
    for row in report["actions"][0]["rows"]:
        outer = [row[by] for by in ("process", "thread", "size") if by in row]
        stack = tuple(outer + [text_of(frame) for frame in reversed(row["stack"])] or ["[no stack]"])
        for figure in figures:
            found[figure][stack] += row.get(figure, 0)
    return found, report["totals"]


# ---- pprof ----

def fields(data):
    """A message of protocol buffers: (field, number or bytes)."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            expect(key & 7 == 2, f"type {key & 7} of a field")
            size = number()
            yield key >> 3, data[at:at + size]
            at += size
    expect(at == len(data), "a message is cut")


def numbers(data):
    return [value for _, value in fields(b"".join(b"\x00" + digit for digit in digits(data)))]


def digits(data):
    begin = 0
    for i, byte in enumerate(data):
        if byte < 128:
            yield data[begin:i + 1]
            begin = i + 1


def read_pprof(data):
    profile = collections.defaultdict(list)
    for field, value in fields(gzip.decompress(data)):
        profile[field].append(value)
    strings = [text.decode() for text in profile[6]]
    expect(strings[0] == "", "the first string is not empty")
    types = [strings[dict(fields(value))[1]] for value in profile[1]]
    functions = {message[1]: strings[message[2]] for message in map(dict, map(fields, profile[5]))}
    mappings = {message[1]: message for message in map(dict, map(fields, profile[3]))}
    locations = {}
    for value in profile[4]:
        message = collections.defaultdict(list)
        for field, part in fields(value):
            message[field].append(part)
        expect(message.get(2, [None])[0] in (None, *mappings), "a location has no mapping")
        locations[message[1][0]] = [functions[dict(fields(line))[1]] for line in message[4]]
    expect(all(mapping[2] < mapping[3] and strings[mapping[5]] for mapping in mappings.values()), "a mapping is empty")
    expect(strings[profile[14][0]] == types[-1] == "inuse_space", "the default is not inuse_space")
    found = [collections.Counter() for _ in types]
    labels = set()
    for value in profile[2]:
        sample = collections.defaultdict(list)
        for field, part in fields(value):
            sample[field].append(part)
        outer = []
        for label in map(dict, map(fields, sample[3])):
            labels.add(strings[label[1]])
            outer += [strings[label[2]]] if 2 in label else []
        stack = [name for location in numbers(sample[1][0]) for name in locations[location]]
        for counter, part in zip(found, numbers(sample[2][0]), strict=True):
            counter[tuple(outer + stack[::-1])] += part
    expect(types == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"], f"sample types {types}")
    return dict(zip(FIGURES, found)), labels


# ---- folded ----

def read_folded(data):
    found = collections.Counter()
    for line in data.decode().splitlines():
        stack, number = line.rsplit(" ", 1)
        found[tuple(frame.split("!", 1)[-1] for frame in stack.split(";"))] += int(number)
    return {"outstanding_bytes": found}, set()


# By format: its reader, the figures that it holds, and the options of xheap heap that show its frames.
FORMATS = {
    "pprof": (read_pprof, FIGURES[:4], ["-lines"]),
    "folded": (read_folded, ["outstanding_bytes"], ["-noDefaultCull"]),
}
OPTIONS = (
    [], ["-range", "0", "10ms"], ["-size", "100", "5000"], ["-by", "process"], ["-by", "thread"], ["-by", "size"], ["-at", "5ms"], ["-requireFrames", "main"],
    ["-cullFrames", "main"],
)


def check_format(name, trace, options):
    read, figures, shown = FORMATS[name]
    run = xheap("export", trace, "-format", name, *options)
    found, labels = read(run.stdout)
    wanted, totals = figures_of_heap(trace, figures, shown + options)
    by = options[1] if options[:1] == ["-by"] else None
    expect(name != "pprof" or labels == {"bytes", *([by] if by else []), *{"process": ["pid"], "thread": ["pid", "tid"]}.get(by, [])}, f"{trace.name}: labels {labels}")
    expect(list(found) == figures, f"{name}: figures {list(found)}")
    for figure in figures:
        expect(sum(found[figure].values()) == totals[figure], f"{name} {trace.name} {options}: {figure} {sum(found[figure].values())}, not {totals[figure]}")
        different = {stack: (found[figure][stack], wanted[figure][stack]) for stack in found[figure] | wanted[figure] if found[figure][stack] != wanted[figure][stack]}
        expect(not different, f"{name} {trace.name} {options}: {figure} of {len(different)} stacks: {list(different.items())[:2]}")
    said = run.stderr.decode().splitlines()
    expect(len([line for line in said if f"{name} has no " in line]) == (name != "folded"), f"{name}: {said}")


def check_words():
    trace = TRACES / "c.xht"
    for words, wanted in ((["export", trace], "-format is missing"), (["export", trace, "-format", "flame"], "pprof"),
                          (["heap", trace, "-format", "pprof"], "xheap export -format pprof"), (["export", trace, "-format", "pprof", "-o", trace], "one of the files")):
        expect(wanted in xheap(*words, status=2).stderr.decode(), f"{words} does not say {wanted!r}")
    expect(not xheap("export", trace, "-format", "pprof", "-o", "out.pb.gz").stdout and pathlib.Path("out.pb.gz").read_bytes()[:2] == b"\x1f\x8b", "-o: no profile")
    full = xheap("export", trace, "-format", "pprof", "-o", "/dev/full", status=2).stderr.decode()
    expect("No space left" in full and "has no" not in full, full)


def main():
    check_words()
    for name in FORMATS:
        for trace in (TRACES / "libstdcxx.xht", TRACES / "processes.xht", TRACES / "rust.xht"):
            for options in OPTIONS if trace.name == "processes.xht" else OPTIONS[:1]:
                # A number at the end of a folded frame would be one of the line.
                if (name, *options) != ("folded", "-by", "thread"):
                    check_format(name, trace, options)
    print(f"{len(FORMATS)} formats")


main()
