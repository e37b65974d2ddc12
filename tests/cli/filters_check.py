#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the filters, splits and actions of `xheap heap` against a slow model that reads nothing but `xheap dump --format csv`.

usage: filters_check.py [FILE...]     without FILE: on traces that make_trace writes, and on one of a real program

COMBINATIONS (200) reports with random filters; each row's numbers must be what the model works out for the same words.
"""
import collections
import fnmatch
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys

import model_check
from model_check import NUMBERS, XHEAP, frame_text, run, table

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MARKS = "[truncated]", "[no unwind data]"  # in place of the outer part of a stack
COMBINATIONS = int(os.environ.get("COMBINATIONS", "200"))
BY = ["process", "thread", "heap", "size", "lifetime", "time", "class"]
CLASSES = ["AIFI", "AIFO", "AOFI", "AOFO"]


def plain(symbol):
    """Enough of the rule for C names."""
    return re.sub(r"\(.*", "", symbol)


def matches(pattern, frame):
    """frame: a text as `dump --stacks` has it."""
    if re.search(r"\+0x[0-9a-f]+$", pattern) and "!" not in pattern:
        return frame.lower() == pattern.lower()
    image, bang, symbol = frame.partition("!")
    has_symbol = bool(bang)
    if not has_symbol:
        image = image.partition("+0x")[0] if "+0x" in frame else ""
    if "!" in pattern:
        wanted_image, wanted = pattern.split("!", 1)
    else:
        wanted_image, wanted = "", pattern
    if wanted_image:
        names = [image.lower(), image.lower().partition(".so")[0]]
        if not image or not any(fnmatch.fnmatchcase(name, wanted_image.lower()) for name in names):
            return False
    if not wanted:
        return True
    texts = [symbol, plain(symbol)] if has_symbol else [frame] if not image else []
    return any(fnmatch.fnmatchcase(text.lower(), wanted.lower().replace("[", "[[]")) for text in texts)


class Model:
    def __init__(self, path):
        self.path = path
        report = json.loads(run("heap", path, "-stacks", "-noDefaultCull", "--format", "json", "-top", "1000000000"))
        self.processes = {int(row["process"]): row for row in table(path, "--processes")}
        stacks = {row["stack_id"]: row["stack"].split(";") for row in table(path, "--stacks", "--wholeStacks")}
        self.entries = {row["stack"][0]["symbol"]: frame_text(row["stack"][0]) for row in report["actions"][0]["rows"] if row["stack"]}
        # These traces have one allocator.
        self.allocator = next(iter(self.entries.values()), "?").partition("!")[0]
        points, last = model_check.read_points(path)
        self.duration = round(report["range"]["to_us"] * 1000)
        self.blocks, _, _ = model_check.match(points, self.processes)
        model_check.finish(self.blocks, self.processes, last, self.duration)
        for block in self.blocks:
            block.frames = [self.entries.get(block.function, "?!" + block.function)] + stacks[block.stack] if block.stack else []
            block.free_frames = None
            if block.is_given_back and block.end_stack:
                block.free_frames = [f"{self.allocator}!{block.end_function}"] + stacks[block.end_stack]
        self.frames = sorted({frame for block in self.blocks for frame in block.frames[1:]})
        self.free_frames = sorted({frame for block in self.blocks for frame in (block.free_frames or [])[1:]})
        self.default_cull = [line for line in (ROOT / "cull/default.txt").read_text().splitlines() if line and line[0] != "#"]
        self.known = {}

    def is_culled(self, patterns, frame):
        key = (patterns, frame)
        if key not in self.known:
            self.known[key] = any(matches(pattern, frame) for pattern in patterns)
        return self.known[key]

    def cull(self, frames, patterns, with_entries):
        """What is left; when nothing is, the outermost real frame (with the mark behind it)."""
        at = 0
        while at < len(frames) and frames[at] not in MARKS and ((with_entries and at == 0) or self.is_culled(patterns, frames[at])):
            at += 1
        if at == len(frames) or frames[at] in MARKS:
            at = max(at - 1, 0)
        return frames[at:]


def class_of(block, window):
    is_inside = block.birth >= window[0]
    if block.birth > window[1] or (block.is_given_back and block.end < window[0]):
        return None
    is_freed = block.is_given_back and window[0] <= block.end <= window[1]
    return ("AI" if is_inside else "AO") + ("FI" if is_freed else "FO")


class Words:
    """Random words for a report, and what they mean."""

    def __init__(self, model, chance):
        self.model, self.words, self.tests = model, [], []
        self.range, self.by, self.cull, self.with_entries = (0, model.duration), None, (), True
        self.action = chance.choice(["-stacks", "-stacks", "-frames", "-image", "-frames -inclusive", "-tree", "-callers", "-heaps", "-totals"])
        self.words += self.action.split()
        self.function = chance.choice(model.frames) if model.frames else "none"
        if self.action == "-callers":
            self.words.append(self.function)
        for add in (self.add_range, self.add_size, self.add_lifetime, self.add_closed, self.add_threads, self.add_pids, self.add_required,
                    self.add_required_of_free, self.add_window, self.add_heap):
            if chance.random() < 0.25:
                add(chance)
        for add in (self.add_by, self.add_cull, self.add_no_default):
            if chance.random() < 0.4:
                add(chance)
        if self.with_entries:
            self.cull += tuple(model.default_cull)

    def moments(self, chance):
        times = [block.birth for block in chance.choices(self.model.blocks, k=1)] + [chance.randrange(self.model.duration + 1)]
        return sorted(times)

    def add_range(self, chance):
        self.range = tuple(self.moments(chance))
        self.words += ["-range", f"{self.range[0]}ns", f"{self.range[1]}ns"]

    def add_size(self, chance):
        low, high = sorted(block.size for block in chance.choices(self.model.blocks, k=2))
        self.words += ["-size", str(low), str(high)]
        self.tests.append(lambda block: low <= block.size < high)

    def add_lifetime(self, chance):
        low, high = sorted(block.lifetime for block in chance.choices(self.model.blocks, k=2))
        self.words += ["-lifetime", f"{low}ns", f"{high}ns"]
        self.tests.append(lambda block: low <= block.lifetime < high)

    def add_closed(self, _):
        self.words += ["-closed"]
        self.tests.append(lambda block: block.is_given_back)

    def add_threads(self, chance):
        tids = {chance.choice(self.model.blocks).thread[1] for _ in range(2)}
        self.words += ["-threads", *map(str, tids)]
        self.tests.append(lambda block: block.thread[1] in tids)

    def add_pids(self, chance):
        pid = self.model.processes[chance.choice(self.model.blocks).process]["pid"]
        self.words += ["-pids", pid]
        self.tests.append(lambda block: self.model.processes[block.process]["pid"] == pid)

    def pattern(self, chance, frames):
        frame = chance.choice(frames)
        image, bang, symbol = frame.partition("!")
        choices = [frame] + ([symbol, image + "!", "*" + symbol[1:]] if bang else [image.partition("+0x")[0] + "!"] if "+0x" in frame else [])
        pattern = chance.choice(choices)
        return pattern if "[" not in pattern and ";" not in pattern else None

    def add_required(self, chance):
        pattern = self.pattern(chance, self.model.frames) if self.model.frames else None
        if pattern:
            self.words += ["-requireFrames", pattern]
            self.tests.append(lambda block: any(matches(pattern, frame) for frame in block.frames))

    def add_required_of_free(self, chance):
        pattern = self.pattern(chance, self.model.free_frames) if self.model.free_frames else None
        if pattern:
            self.words += ["-requireFreeFrames", pattern]
            self.tests.append(lambda block: any(matches(pattern, frame) for frame in block.free_frames or []))

    def add_window(self, chance):
        wanted, window = chance.choice(CLASSES), self.moments(chance)
        self.words += ["-window", wanted.lower(), f"{window[0]}ns", f"{window[1]}ns"]
        self.tests.append(lambda block: class_of(block, window) == wanted)

    def add_heap(self, chance):
        heap = chance.choice(self.model.blocks).heap
        if heap:
            self.words += ["-heap", heap]
            self.tests.append(lambda block: block.heap == heap)

    def add_by(self, chance):
        self.by = chance.choice([by for by in BY if by != "heap" or self.action != "-heaps"])
        self.words += ["-by", self.by]

    def add_cull(self, chance):
        patterns = [self.pattern(chance, self.model.frames) for _ in range(2)] if self.model.frames else []
        patterns = [pattern for pattern in patterns if pattern]
        if patterns:
            self.words += ["-cullFrames", *patterns]
            self.cull += tuple(patterns)

    def add_no_default(self, _):
        self.words += ["-noDefaultCull"]
        self.with_entries = False

    def passes(self, block):
        return all(test(block) for test in self.tests)

    def split(self, block):
        if self.by is None:
            return None
        if self.by == "size":
            return block.size.bit_length()
        if self.by == "lifetime":
            return next((i for i in range(11) if block.lifetime < 10 ** (3 + i)), 11)
        if self.by == "time":
            length = self.range[1] - self.range[0] + 1
            return min(max(block.birth - self.range[0], 0) * 20 // length, 19)
        return {"process": block.process, "thread": block.thread, "heap": block.heap, "class": class_of(block, self.range)}[self.by]

    def groups(self, block):
        """The rows that the block is in."""
        if self.action == "-heaps":
            return [block.heap or None]
        if self.action == "-callers":
            at = next((i for i, frame in enumerate(block.frames) if matches(self.function, frame)), len(block.frames))
            return [";".join(block.frames[at:end]) for end in range(at + 1, len(block.frames) + 1)]
        frames = self.model.cull(block.frames, self.cull, self.with_entries)
        if self.action == "-stacks":
            return [";".join(frames)]
        if not frames:
            return ["[no stack]"]
        if self.action == "-frames":
            return [frames[0]]
        if self.action == "-image":
            image = frames[0].partition("!")[0] if "!" in frames[0] else frames[0].partition("+0x")[0]
            return [image]
        if self.action == "-frames -inclusive":
            return sorted(set(frames))
        return [";".join(frames[at:]) for at in range(len(frames))]


def sums(words, blocks, peak_at):
    numbers = collections.Counter({name: 0 for name in NUMBERS})
    first, last = words.range
    for block in blocks:
        if block.birth <= peak_at and (block.end is None or block.end > peak_at):
            numbers["peak_count"] += 1
            numbers["peak_bytes"] += block.size
        if not (first <= block.birth <= last or (words.by == "class" and words.is_row and class_of(block, words.range))):
            continue
        is_outstanding = not block.is_given_back or block.end > last
        numbers["total_count"] += 1
        numbers["total_bytes"] += block.size
        numbers["outstanding_count"] += is_outstanding
        numbers["outstanding_bytes"] += block.size * is_outstanding
        numbers["realloc_count"] += block.is_realloc
        numbers["realloc_moved_count"] += block.is_moved
        numbers["temporary_count"] += block.is_temporary
        numbers["open_count"] += not block.is_given_back
    return tuple(numbers[name] for name in NUMBERS)


def find_peak(blocks, window):
    """In the range; what began before it counts."""
    changes = collections.Counter()
    for block in blocks:
        changes[block.birth] += block.size
        if block.end is not None:
            changes[block.end] -= block.size
    live = sum(changes[time] for time in changes if time <= window[0])
    peak, peak_at = live, window[0]
    for time in sorted(time for time in changes if window[0] < time <= window[1]):
        live += changes[time]
        if live > peak:
            peak, peak_at = live, time
    return peak, peak_at


def row_key(words, row, path):
    """What the report calls the group; path: of a tree, the frames around the row."""
    if words.action == "-stacks":
        return ";".join(map(frame_text, row["stack"]))
    if words.action == "-image":
        return row["image"]
    if words.action == "-heaps":
        return row.get("heap")
    text = frame_text(row["frame"])
    if words.action not in ("-tree", "-callers"):
        return text
    del path[row["depth"]:]
    path.append(text)
    return ";".join(reversed(path) if words.action == "-tree" else path)


def add_row(words, row, key, found):
    """An arena and what it maps apart are two heaps with one handle, which is all that `dump` tells."""
    numbers = tuple(row[name] for name in NUMBERS)
    handle = re.search(r"0x[0-9a-f]+", row["heap"]) if words.by == "heap" and "heap" in row else None
    shared = (key, handle and handle.group()) if words.by == "heap" else (key, row.get(words.by)) if words.action == "-heaps" else None
    if shared is None:
        found[key].append(numbers)
    elif shared in found.places:
        at = found.places[shared]
        found[key][at] = tuple(map(sum, zip(found[key][at], numbers)))
    else:
        found.places[shared] = len(found[key])
        found[key].append(numbers)


class Rows(collections.defaultdict):
    def __init__(self):
        super().__init__(list)
        self.places = {}


def compare(words, report, blocks):
    words.is_row = False
    peak, peak_at = find_peak(blocks, words.range)
    expected = dict(zip(NUMBERS, sums(words, blocks, peak_at)))
    for name, value in expected.items():
        if report["totals"][name] != value:
            return f"totals: {name}: the report says {report['totals'][name]}, the events {value}"
    if words.action == "-totals":
        return None
    words.is_row = True
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for block in blocks:
        for key in words.groups(block):
            groups[key][words.split(block)].append(block)
    wanted, lifetimes = collections.defaultdict(list), {}
    for key, splits in groups.items():
        for split, members in splits.items():
            row = sums(words, members, peak_at)
            if row[0] or row[NUMBERS.index("peak_count")]:
                wanted[key].append(row)
                lives = [block.lifetime for block in members if words.range[0] <= block.birth <= words.range[1]]
                if words.by is None and lives:
                    lifetimes[key] = (min(lives), int(statistics.median(lives)), max(lives))
    found, path = Rows(), []
    for row in report["actions"][0]["rows"]:
        key = row_key(words, row, path)
        add_row(words, row, key, found)
        if words.action != "-heaps" and key in lifetimes and "lifetime_us" in row and len(found[key]) == 1:
            lives = tuple(round(row["lifetime_us"][name] * 1000) for name in ("min", "median", "max"))
            if lives != lifetimes[key]:
                return f"{key}: lifetimes {lives}, by the events {lifetimes[key]}"
    for key in sorted(set(wanted) | set(found), key=str):
        if sorted(wanted[key]) != sorted(found[key]):
            return f"{key}: the report says {sorted(found[key])}, the events {sorted(wanted[key])}"
    return None


def check(path, count, seed):
    model, chance, problems = Model(path), random.Random(seed), []
    kept = 0
    for _ in range(count):
        words = Words(model, chance)
        command = [XHEAP, "heap", path, *words.words, "-format", "json", "-top", "1000000000"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode == 1 and words.action == "-callers" and "matches no frame" in done.stderr:
            continue
        if done.returncode:
            problems.append(f"{' '.join(words.words)}: status {done.returncode}: {done.stderr.strip()}")
            continue
        blocks = [block for block in model.blocks if words.passes(block)]
        kept += len(blocks) > 0
        problem = compare(words, json.loads(done.stdout), blocks)
        if problem:
            problems.append(f"{' '.join(words.words)}: {problem}")
    print(f"{path}: {len(model.blocks)} allocations, {count} reports, {kept} with something in them, {len(problems)} differ")
    return problems


def main():
    paths = sys.argv[1:]
    if not paths:
        make = os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
        for scene, seed in (("plain", "0"), ("forks", "0"), ("random", "1")):
            paths.append(f"{scene}{seed}.xht")
            subprocess.run([make, scene, paths[-1], seed], check=True)
        program = "sort -u <(seq 300) | xargs -n 100 echo | sed 's/1/one/g'; for i in 1 2 3; do (x=$(seq 50); echo ${#x}); done"
        subprocess.run([XHEAP, "record", "-q", "-o", "shell.xht", "--", "bash", "-c", program], stdout=subprocess.DEVNULL, check=True)
        paths.append("shell.xht")
    each = -(-COMBINATIONS // len(paths))
    problems = [f"{path}: {problem}" for i, path in enumerate(paths) for problem in check(path, each, i)]
    for problem in problems[:20]:
        print("  " + problem[:2000])
    sys.exit(1 if problems else 0)


main()
