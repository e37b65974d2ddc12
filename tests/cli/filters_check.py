#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the filters, splits and actions of `xheap heap` against a slow model that reads nothing but `xheap dump --format csv`.

usage: filters_check.py [FILE...]     without FILE: on traces that make_trace writes (small ones, so that thousands of questions take seconds: of forks,
                                      contradictory stamps, heaps in heaps, merged, folded), on those of a real program, and on a sample

COMBINATIONS (2000) reports with random conjunctions of filters; each row's numbers, lifetimes, threads, processes and what only its action tells must be what
the model works out for the same words. SEED (0) begins the chance.
"""
import collections
import fnmatch
import json
import math
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
COMBINATIONS = int(os.environ.get("COMBINATIONS", "2000"))
SEED = int(os.environ.get("SEED", "0"))
PAGE_BYTES = 4096
LIST_SHARE = 0.1  # of the questions that are asked of the list of allocations, too
OVERHEAD = "[pool overhead]"
ACTIONS = ["-stacks", "-stacks", "-frames", "-image", "-frames -inclusive", "-tree", "-callers", "-heaps", "-chains", "-totals"]
INCLUSIVE = "-frames -inclusive", "-tree", "-callers"
SORTS = {"so": "outstanding_bytes", "soc": "outstanding_count", "st": "total_bytes", "stc": "total_count", "src": "realloc_count", "sp": "peak_bytes",
         "spc": "peak_count", "stt": "temporary_count"}
EXTRA = {"-heaps": ["outstanding_usable_bytes", "extent_bytes", "outstanding_extent_bytes"],
         "-chains": ["chain_count", "step_count", "step_count_max", "factor_max", "copied_bytes"]}
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
        rows = list(report["actions"][0]["rows"])
        if "sample_bytes" not in report:
            rows += json.loads(run("heap", path, "-stacks", "-innermost", "-noDefaultCull", "--format", "json", "-top", "1000000000"))["actions"][0]["rows"]
        self.entries = {row["stack"][0]["symbol"]: frame_text(row["stack"][0]) for row in rows if row["stack"]}
        # These traces have one allocator.
        self.allocator = next(iter(self.entries.values()), "?").partition("!")[0]
        self.duration = round(report["range"]["to_us"] * 1000)
        self.sample_bytes = report.get("sample_bytes", 0)
        self.blocks, last, self.conflicts = self.read_blocks()
        model_check.finish(self.blocks, self.processes, last, self.duration)
        for block in self.blocks:
            block.frames = [self.entries.get(block.function, "?!" + block.function)] + stacks[block.stack] if block.stack else []
            block.free_frames = None
            if block.is_given_back and block.end_stack:
                block.free_frames = [f"{self.allocator}!{block.end_function}"] + stacks[block.end_stack]
        self.has_nests = any(block.is_nested for block in self.blocks)
        self.culled = {}
        self.frames = sorted({frame for block in self.blocks for frame in block.frames[1:]})
        self.free_frames = sorted({frame for block in self.blocks for frame in (block.free_frames or [])[1:]})
        self.default_cull = [line for line in (ROOT / "cull/default.txt").read_text().splitlines() if line and line[0] != "#"]
        self.known = {}

    def read_blocks(self):
        names = {row["function"] for row in table(self.path, "--events")}
        if any(name.startswith("xheap_heap_") for name in names):
            return *model_check.read_nests(self.path), 0
        points, last = model_check.read_points(self.path)
        blocks, conflicts, _ = model_check.match(points, self.processes)
        return blocks, last, conflicts

    def is_culled(self, patterns, frame):
        key = (patterns, frame)
        if key not in self.known:
            self.known[key] = any(matches(pattern, frame) for pattern in patterns)
        return self.known[key]

    def cull(self, frames, patterns, with_entries):
        """What is left; when nothing is, the outermost real frame (with the mark behind it)."""
        key = (tuple(frames), patterns, with_entries)
        if key not in self.culled:
            self.culled[key] = self.cull_anew(frames, patterns, with_entries)
        return self.culled[key]

    def cull_anew(self, frames, patterns, with_entries):
        at = 0
        while at < len(frames) and frames[at] not in MARKS and ((with_entries and at == 0) or self.is_culled(patterns, frames[at])):
            at += 1
        if at == len(frames) or frames[at] in MARKS:
            at = max(at - 1, 0)
        return frames[at:]


def class_of(block, window):
    is_inside = block.birth >= window[0]
    if block.birth > window[1] or (block.end is not None and block.end < window[0]):
        return None
    is_freed = block.is_given_back and window[0] <= block.end <= window[1]
    return ("AI" if is_inside else "AO") + ("FI" if is_freed else "FO")


class Words:
    """Random words for a report, and what they mean."""

    def __init__(self, model, chance):
        self.model, self.words, self.tests = model, [], []
        self.range, self.by, self.cull, self.with_entries = (0, model.duration), None, (), True
        self.is_innermost, self.has_heap, self.has_range, self.blockwise = False, False, False, []
        self.top, self.sort = None, None
        self.action = chance.choice([action for action in ACTIONS if not (model.sample_bytes and action == "-chains")])
        self.words += self.action.split()
        self.function = chance.choice(model.frames) if model.frames else "none"
        if self.action == "-callers":
            self.words.append(self.function)
        if self.action != "-totals" and chance.random() < 0.3:
            self.add_top(chance)
        first = len(self.words)
        for add in (self.add_range, self.add_size, self.add_lifetime, self.add_closed, self.add_threads, self.add_pids, self.add_required,
                    self.add_required_of_free, self.add_window, self.add_heap):
            if chance.random() < 0.25:
                add(chance)
        self.filter_words = self.words[first:]
        for add in (self.add_by, self.add_cull, self.add_no_default) + ((self.add_innermost,) if model.has_nests else ()):
            if chance.random() < 0.4:
                add(chance)
        if self.with_entries:
            self.cull += tuple(model.default_cull)

    def moments(self, chance):
        times = [block.birth for block in chance.choices(self.model.blocks, k=1)] + [chance.randrange(self.model.duration + 1)]
        return sorted(times)

    def add_range(self, chance):
        self.range, self.has_range = tuple(self.moments(chance)), True
        self.words += ["-range", f"{self.range[0]}ns", f"{self.range[1]}ns"]

    def add_top(self, chance):
        """The sort key is a word of the action, the rows are cut behind its last one."""
        self.sort = chance.choice([key for key in SORTS if not (self.model.sample_bytes and key == "stt")])
        self.words.append(self.sort)
        if self.action not in ("-tree", "-callers"):
            self.top = chance.randrange(1, 8)

    def add_innermost(self, _):
        self.words.append("-innermost")
        self.is_innermost = True

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
        self.blockwise.append(self.tests[-1])

    def add_pids(self, chance):
        pid = self.model.processes[chance.choice(self.model.blocks).process]["pid"]
        self.words += ["-pids", pid]
        self.tests.append(lambda block: self.model.processes[block.process]["pid"] == pid)
        self.blockwise.append(self.tests[-1])

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
        wanted, window = chance.sample(CLASSES, chance.choice((1, 1, 2, 3))), self.moments(chance)
        self.words += ["-window", "+".join(wanted).lower(), f"{window[0]}ns", f"{window[1]}ns"]
        self.tests.append(lambda block: class_of(block, window) in wanted)

    def add_heap(self, chance):
        heap = chance.choice(self.model.blocks).heap
        if heap:
            self.words += ["-heap", heap]
            self.tests.append(lambda block: block.heap == heap)
            self.has_heap = True

    def add_by(self, chance):
        if self.action == "-totals":  # it has no rows to split
            return
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

    def has_overhead(self):
        """Of all that there is, what blocks with others in them have besides is told; filters that everything passes are none."""
        is_all = all(test in self.blockwise and all(map(test, self.model.blocks)) for test in self.tests)
        return self.model.has_nests and self.is_innermost and is_all and not self.has_range and self.by in (None, "process")

    def is_counted(self, block):
        """Whether nesting leaves it in the totals."""
        if self.is_innermost:
            return not block.has_nested
        return self.has_heap or not block.is_nested

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
        if self.action in ("-stacks", "-chains"):
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


def is_in_row(words, block):
    first, last = words.range
    return first <= block.birth <= last or (words.by == "class" and words.is_row and class_of(block, words.range) is not None)


def is_outstanding(words, block):
    return not block.is_given_back or block.end > words.range[1]


def is_live_at(block, moment):
    return block.birth <= moment and (block.end is None or block.end > moment)


def sums(words, blocks, peak_at):
    numbers = dict.fromkeys(NUMBERS, 0)
    for block in blocks:
        if is_live_at(block, peak_at):
            numbers["peak_count"] += 1
            numbers["peak_bytes"] += block.size
        if not is_in_row(words, block):
            continue
        numbers["total_count"] += 1
        numbers["total_bytes"] += block.size
        if is_outstanding(words, block):
            numbers["outstanding_count"] += 1
            numbers["outstanding_bytes"] += block.size
        numbers["realloc_count"] += block.is_realloc
        numbers["realloc_moved_count"] += block.is_moved
        numbers["temporary_count"] += block.is_temporary
        numbers["open_count"] += not block.is_given_back
    return tuple(numbers.values())


# ---- what only one action tells ----

def pages(blocks):
    found = set()
    for block in blocks:
        found.update(range(block.address // PAGE_BYTES, (block.address + max(block.usable, block.size, 1) - 1) // PAGE_BYTES + 1))
    return len(found) * PAGE_BYTES


def heap_extra(words, blocks):
    counted = [block for block in blocks if is_in_row(words, block)]
    left = [block for block in counted if is_outstanding(words, block)]
    return sum(max(block.usable, block.size) for block in left), pages(counted), pages(left)


def chain_extra(words, blocks):
    """Of blocks that came from a realloc and that none has taken."""
    count = steps = steps_max = factor_max = copied = 0
    for last in blocks:
        if not last.is_realloc or last.is_taken or not is_in_row(words, last):
            continue
        length, block = 0, last
        while block.previous:
            copied += min(block.previous.size, block.size) if block.is_moved else 0
            block = block.previous
            length += 1
        count, steps, steps_max = count + 1, steps + length, max(steps_max, length)
        factor_max = max(factor_max, last.size * 1000 // block.size if block.size else 0)
    return count, steps, steps_max, factor_max, copied


def details(words, blocks):
    """Of a row: lifetimes, threads and processes; None where no block is counted."""
    counted = [block for block in blocks if is_in_row(words, block)]
    if not counted or words.action in INCLUSIVE:
        return None
    lives = [block.lifetime for block in counted]
    return (min(lives), int(statistics.median(lives)), max(lives)), len({block.thread for block in counted}), len({block.process for block in counted})


def expected_row(words, blocks, peak_at):
    extra = heap_extra(words, blocks) if words.action == "-heaps" else chain_extra(words, blocks) if words.action == "-chains" else ()
    return sums(words, blocks, peak_at), details(words, blocks), extra


def overhead_row(words, blocks, peak_at):
    """What is left of blocks when those that lie in them are taken out."""
    outstanding = [0, 0]
    peak = [0, 0]
    for block in blocks:
        count, size = int(block.has_nested), (block.size if block.has_nested else 0) - (block.size if block.is_nested else 0)
        for total, is_part in ((outstanding, is_outstanding(words, block)), (peak, is_live_at(block, peak_at))):
            total[0] += count * is_part
            total[1] += size * is_part
    return 0, 0, *outstanding, 0, 0, 0, 0, *peak


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


# ---- the report ----

def row_key(words, row, path):
    """What the report calls the group; path: of a tree, the frames around the row."""
    if words.action in ("-stacks", "-chains"):
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


def found_row(words, row):
    lives = row.get("lifetime_us")
    told = (tuple(round(lives[name] * 1000) for name in ("min", "median", "max")), row["threads"], row["processes"]) if lives else None
    extra = tuple(round(row[name] * 1000) if name == "factor_max" else row[name] for name in EXTRA.get(words.action, ()))
    return tuple(row[name] for name in NUMBERS), told, extra


class Rows(collections.defaultdict):
    """By group. An arena and what it maps apart are two heaps of one handle, as are those of two processes, and a handle is all that `dump` tells of a heap:
    such rows are added up, without details."""

    def __init__(self, words):
        super().__init__(list)
        self.words, self.places, self.is_vague = words, {}, False

    def add(self, key, row):
        words, made = self.words, found_row(self.words, row)
        part = None
        if words.by == "heap" and "heap" in row:
            part = (key, re.search(r"0x[0-9a-f]+|\[no heap\]", row["heap"]).group())
        elif words.action == "-heaps":
            part = (key, row.get("process_id"), row.get("thread_id"), row.get(words.by) if words.by != "process" else None)
        if part in self.places and part is not None:
            at = self.places[part]
            before = self[key][at]
            self[key][at] = tuple(map(sum, zip(before[0], made[0]))), None, ()
            self.is_vague = True
        else:
            self.places[part] = len(self[key])
            self[key].append(made)


def expected_rows(words, blocks, peak_at, counted):
    """By group, a row for each part of the split."""
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for block in counted:
        for key in words.groups(block):
            groups[key][words.split(block)].append(block)
    wanted = collections.defaultdict(list)
    for key, splits in groups.items():
        for split, members in splits.items():
            row = expected_row(words, members, peak_at)
            numbers = dict(zip(NUMBERS, row[0]))
            if (numbers["total_count"] or numbers["peak_count"]) and (words.action != "-chains" or numbers["realloc_count"]):
                wanted[key].append(row)
    if words.has_overhead() and words.action not in ("-heaps", "-chains", "-callers"):
        row = overhead_row(words, blocks, peak_at)
        if any(row):
            wanted[OVERHEAD].append((row, None, ()))
    return wanted


def compare_cut(words, part, wanted):
    """The first rows by the key; which of several that are equal is not asked."""
    at = NUMBERS.index(SORTS[words.sort])
    values = sorted((row[0][at] for rows in wanted.values() for row in rows), reverse=True)
    shown = [row[SORTS[words.sort]] for row in part["rows"]]
    if part["row_count"] != len(values) or part["cut"] != max(len(values) - words.top, 0) or shown != values[:words.top]:
        return f"-top {words.top}: {part['row_count']} rows, {part['cut']} cut, {shown}; by the events {len(values)} rows, {values[:words.top]}"
    return None


def compare(words, report, blocks):
    words.is_row = False
    has_overhead = words.has_overhead()
    counted = [block for block in blocks if words.is_counted(block)]
    outermost = [block for block in blocks if not block.is_nested] if has_overhead else counted
    peak, peak_at = find_peak(outermost, words.range)
    totals = sums(words, counted, peak_at)
    if has_overhead:
        totals = tuple(map(sum, zip(totals, overhead_row(words, blocks, peak_at))))
    for name, value in zip(NUMBERS, totals):
        if report["totals"][name] != value:
            return f"totals: {name}: the report says {report['totals'][name]}, the events {value}"
    if report["totals"]["peak_bytes"] != peak or round(report["totals"]["peak_at_us"] * 1000) != peak_at:
        return f"the peak: {report['totals']['peak_bytes']} at {report['totals']['peak_at_us']}, by the events {peak} at {peak_at}"
    if words.action == "-totals":
        return None
    words.is_row = True
    wanted = expected_rows(words, blocks, peak_at, blocks if words.action == "-heaps" else counted)
    part = report["actions"][0]
    found, path = Rows(words), []
    for row in part["rows"]:
        found.add(row_key(words, row, path), row)
    if words.top and not found.is_vague and words.action != "-heaps" and words.by != "heap":
        return compare_cut(words, part, wanted)
    if words.top:
        return None
    for key in sorted(set(wanted) | set(found), key=str):
        one, other = sorted(wanted[key], key=str), sorted(found[key], key=str)
        if found.is_vague:
            one, other = sorted(row[0] for row in one), sorted(row[0] for row in other)
        if one != other:
            return f"{key}: the report says {other}, the events {one}"
    return None


def compare_list(path, words, blocks):
    """`dump -allocations` takes the same filters, and lists what lies in other blocks, too."""
    first, last = words.range
    wanted = collections.Counter((block.process, block.address, block.size, block.birth, block.end if block.is_given_back else None)
                                 for block in blocks if not words.has_range or first <= block.birth <= last)
    rows = table(path, "-allocations", *words.filter_words)
    found = collections.Counter((int(row["process"]), int(row["address"], 16), int(row["size"]), int(row["birth_ns"]),
                                 int(row["end_ns"]) if row["end_kind"] not in ("open", "exit") else None) for row in rows)
    if wanted != found:
        return f"dump -allocations: {list((found - wanted).items())[:3]} too many, {list((wanted - found).items())[:3]} missing"
    return None


# ---- samples ----

def compare_sample(words, report, blocks):
    """Each recorded block stands for as many as its chance says, rounded one way or the other; errors are those of the whole weights."""
    words.is_row = False
    least, most, recorded = collections.Counter(), collections.Counter(), 0
    for block in blocks:
        if not is_in_row(words, block):
            continue
        count = -1 / math.expm1(-max(block.size, 1) / words.model.sample_bytes)
        recorded += 1
        for name, value, is_part in (("total_count", count, True), ("total_bytes", count * block.size, True),
                                     ("outstanding_count", count, is_outstanding(words, block)),
                                     ("outstanding_bytes", count * block.size, is_outstanding(words, block))):
            least[name] += is_part * math.floor(value - 1e-6)
            most[name] += is_part * math.ceil(value + 1e-6)
    for name in ("total_count", "total_bytes", "outstanding_count", "outstanding_bytes"):
        if not least[name] <= report["totals"][name] <= most[name]:
            return f"totals: {name}: {report['totals'][name]}, by the events from {least[name]} to {most[name]}"
    if report["totals"]["recorded_count"] != recorded:
        return f"recorded: {report['totals']['recorded_count']}, by the events {recorded}"
    if words.action in INCLUSIVE + ("-totals", "-heaps") or words.top or words.by == "class":
        return None
    for name in ("total_count", "outstanding_bytes", "recorded_count", "peak_bytes"):
        total = sum(row[name] for row in report["actions"][0]["rows"])
        if total != report["totals"][name]:
            return f"{name}: rows add up to {total}, the total is {report['totals'][name]}"
    return None


# ---- folded ----

def compare_folded(words, report, blocks):
    """What is told of a folded trace is what the whole one tells, but for the peak, and details that are known about."""
    words.is_row = False
    if words.has_range and words.by == "time":
        return None
    totals = sums(words, blocks, -1)
    exact = [name for name in NUMBERS if not name.startswith("peak")]
    for name, value in zip(NUMBERS, totals):
        if name in exact and report["totals"][name] != value:
            return f"totals: {name}: the folded report says {report['totals'][name]}, the events of the whole trace {value}"
    if words.action in ("-totals", "-heaps") or words.top:
        return None
    words.is_row = True
    wanted, found, path = collections.Counter(), collections.Counter(), []
    for block in blocks:
        for key in words.groups(block):
            for name, value in zip(NUMBERS, sums(words, [block], -1)):
                wanted[key, name] += value
    for row in report["actions"][0]["rows"]:
        key = row_key(words, row, path)
        for name in exact:
            found[key, name] += row[name]
    for key, name in set(wanted) | set(found):
        if name in exact and wanted[key, name] != found[key, name]:
            return f"{key}: {name}: the folded report says {found[key, name]}, the events of the whole trace {wanted[key, name]}"
    return None


# ---- all of it ----

def ask(path, words):
    command = [XHEAP, "heap", path, *words.words, "-format", "json", "-top", str(words.top or 1000000000)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check(path, count, seed, folded=None):
    """folded: the same trace folded, which is asked in its place."""
    model, chance, problems = Model(path), random.Random(f"{SEED}.{seed}"), []
    kept = refused = 0
    judge = compare_sample if model.sample_bytes else compare_folded if folded else compare
    for _ in range(count):
        words = Words(model, chance)
        done = ask(folded or path, words)
        if done.returncode == 1 and words.action == "-callers" and "matches no frame" in done.stderr:
            continue
        if done.returncode == 2 and folded and ("folded" in done.stderr or "not known" in done.stderr):
            refused += 1
            continue
        if done.returncode:
            problems.append(f"{' '.join(words.words)}: status {done.returncode}: {done.stderr.strip()}")
            continue
        blocks = [block for block in model.blocks if words.passes(block)]
        kept += len(blocks) > 0
        problem = judge(words, json.loads(done.stdout), blocks)
        if not folded and not problem and chance.random() < LIST_SHARE:
            problem = compare_list(path, words, blocks)
        if problem:
            problems.append(f"{' '.join(words.words)}: {problem}")
    print(f"{folded or path}: {len(model.blocks)} allocations, {count} reports, {kept} with something in them, {refused} refused, {len(problems)} differ")
    return problems


def make_traces():
    """What is checked: a trace, the share of the questions, and the same trace folded or None."""
    make = os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
    made = {"plain.xht": ("plain",), "forks.xht": ("forks",), "random.xht": ("random", SEED + 1, 1200), "more.xht": ("random", SEED + 2, 800),
            "nested.xht": ("nested", SEED + 1, 700), "large.xht": ("random", SEED + 3, 12000)}
    for path, words in made.items():
        subprocess.run([make, words[0], path, *map(str, words[1:])], check=True)
    run("merge", "plain.xht", "forks.xht", "more.xht", "-o", "merged.xht")
    middle = int(list(table("random.xht", "--events"))[600]["time_ns"])
    subprocess.run([XHEAP, "--fold", "folded.xht", str(middle), "1", "random.xht"], check=True)
    program = "sort -u <(seq 300) | xargs -n 100 echo | sed 's/1/one/g'; for i in 1 2 3; do (x=$(seq 50); echo ${#x}); done"
    for path, options in (("shell.xht", ()), ("sample.xht", ("--sample", "300"))):
        subprocess.run([XHEAP, "record", "-q", *options, "-o", path, "--", "bash", "-c", program], stdout=subprocess.DEVNULL, check=True)
    return [("plain.xht", 0.1, None), ("forks.xht", 0.08, None), ("random.xht", 0.27, None), ("nested.xht", 0.2, None), ("merged.xht", 0.14, None),
            ("random.xht", 0.11, "folded.xht"), ("shell.xht", 0.02, None), ("sample.xht", 0.07, None), ("large.xht", 0.002, None)]


def main():
    traces = [(path, 1 / len(sys.argv[1:]), None) for path in sys.argv[1:]] or make_traces()
    problems = [f"{folded or path}: {problem}" for i, (path, share, folded) in enumerate(traces)
                for problem in check(path, math.ceil(COMBINATIONS * share), i, folded)]
    for problem in problems[:20]:
        print("  " + problem[:2000])
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
