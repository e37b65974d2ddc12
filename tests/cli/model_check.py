#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks `xheap heap` against a slow model of its own that reads nothing but `xheap dump --format csv`.

usage: model_check.py [FILE...]      without FILE: on traces that make_trace writes

Works out every number of every stack again: blocks are matched address by address instead of in one sweep, the peak is
found by sorting all boundaries, and each row's numbers are compared with those of `xheap heap -stacks --format json`.
"""
import collections
import csv
import io
import json
import os
import statistics
import subprocess
import sys

XHEAP = os.environ.get("XHEAP", "build/xheap")
SLACK_NS = 1000
NUMBERS = ["total_count", "total_bytes", "outstanding_count", "outstanding_bytes", "realloc_count", "realloc_moved_count",
           "temporary_count", "open_count", "peak_count", "peak_bytes"]


def run(*words):
    return subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, check=True, text=True, errors="surrogateescape").stdout


def table(path, what, *more):
    return csv.DictReader(io.StringIO(run("dump", path, what, "--format", "csv", *more)))


class Block:
    def __init__(self, process, thread, birth, size, stack, is_realloc, is_moved):
        self.process, self.thread, self.birth, self.size, self.stack = process, thread, birth, size, stack
        self.is_realloc, self.is_moved, self.is_temporary = is_realloc, is_moved, False
        self.end, self.is_given_back, self.end_stack, self.end_function = None, False, "", ""
        self.heap, self.function = "", ""
        self.address, self.usable = 0, size
        self.row, self.previous, self.is_taken = None, None, False  # the event; the block that a realloc made it of; whether a realloc took it
        self.is_nested = self.has_nested = False


def block_of(row):
    """The block that an event begins."""
    is_realloc = row["action"] == "ReAlloc" and bool(row["previous_address"])
    block = Block(int(row["process"]), (int(row["process"]), int(row["tid"])), int(row["time_ns"]), int(row["size"]), row["stack_id"], is_realloc,
                  is_realloc and row["previous_address"] != row["address"])
    block.heap, block.function, block.row = row["heap"], row["function"], row
    block.address, block.usable = int(row["address"], 16), int(row["usable"] or row["size"])
    return block


def read_points(path):
    """Points by (process, address), each (time, thread, place in thread, block or None for an end, is it a plain free, the event)."""
    points = collections.defaultdict(list)
    place = collections.Counter()
    last = collections.defaultdict(int)
    for row in table(path, "--events"):
        process, thread = int(row["process"]), (int(row["process"]), int(row["tid"]))
        time, action = int(row["time_ns"]), row["action"]
        place[thread] += 1
        last[process] = max(last[process], time)
        if row["result"] not in ("0", "in-flight"):
            continue
        if action == "Free" and row["address"]:
            points[process, row["address"]].append((time, thread, place[thread], None, True, row))
        if action == "ReAlloc" and row["previous_address"]:
            points[process, row["previous_address"]].append((time - int(row["duration_ns"]), thread, place[thread], None, False, row))
        if action in ("Alloc", "ReAlloc") and row["address"] and row["result"] == "0":
            block = block_of(row)
            points[process, row["address"]].append((time, thread, place[thread], block, False, row))
    return points, last


def repair(points, is_forked):
    """Two neighbours that are the wrong way round, by two threads and within the slack, change places."""
    points.sort(key=lambda point: (point[0], point[1], point[2], point[3] is not None))
    is_live = is_forked and points[0][3] is None
    for i in range(len(points) - 1):
        one, two = points[i], points[i + 1]
        is_wrong = (one[3] is not None) == is_live
        if is_wrong and (two[3] is not None) != (one[3] is not None) and one[1] != two[1] and two[0] - one[0] <= SLACK_NS:
            points[i], points[i + 1] = two, one
        is_live = points[i][3] is not None
    return points


def link(blocks, taken):
    """Which block each realloc took; taken: by the event's place in memory."""
    for block in blocks:
        block.previous = taken.get(id(block.row)) if block.is_realloc else None


def end(block, time, row, taken, is_own=True):
    """is_own: the event is about the block, and not about one that it lies in."""
    block.end, block.is_given_back = max(time, block.birth), True
    block.end_stack, block.end_function = row["stack_id"], row["function"]
    if is_own and row["action"] == "ReAlloc":
        block.is_taken = True
        taken[id(row)] = block


def match(points, processes):
    blocks, conflicts, unknown, taken = [], 0, 0, {}
    for (process, _), sequence in points.items():
        live = made_at = None
        was_seen = False
        for time, thread, place, block, is_free, row in repair(sequence, bool(processes[process]["forked_from"])):
            if block:
                if live:
                    live.end, live.is_given_back = block.birth, True
                    conflicts += 1
                live, made_at, was_seen = block, (thread, place), True
                blocks.append(block)
            elif live:
                end(live, time, row, taken)
                live.is_temporary = is_free and made_at == (thread, place - 1)
                live = None
            elif was_seen or not processes[process]["forked_from"]:
                unknown += 1
            else:
                was_seen = True
    link(blocks, taken)
    return blocks, conflicts, unknown


# ---- heaps that lie in blocks of others ----

class Nests:
    """Blocks of one process with annotated heaps, event by event, where times are in order and nothing is contradictory."""

    def __init__(self):
        self.blocks, self.taken = [], {}
        self.plain, self.annotated = {}, {}
        self.made = {}  # by thread and kind of heap: the block that its last event made

    def around(self, address):
        """The innermost live block that the address lies in."""
        holding = [block for block in self.annotated.values() if block.address <= address < block.address + block.size]
        if not holding:
            holding = [block for block in self.plain.values() if block.address <= address < block.address + block.size]
        return max(holding, key=lambda block: (block.address, block.birth), default=None)

    def begin(self, row, is_annotated):
        block = block_of(row)
        outer = self.around(block.address) if is_annotated else None
        if outer:
            block.is_nested = outer.has_nested = True
        if not is_annotated:
            for inner in self.annotated.values():
                if block.address <= inner.address < block.address + block.size:
                    inner.is_nested = block.has_nested = True
        (self.annotated if is_annotated else self.plain)[(block.heap if is_annotated else None), block.address] = block
        self.blocks.append(block)
        return block

    def finish(self, block, time, row, is_in_place=False, is_own=True):
        """It ends, and what lies in it with it."""
        kept = self.plain if self.plain.get((None, block.address)) is block else self.annotated
        kept.pop((None if kept is self.plain else block.heap, block.address))
        end(block, time, row, self.taken, is_own)
        for inner in [] if is_in_place or not block.has_nested else list(self.annotated.values()):
            if block.address <= inner.address < block.address + max(block.size, 1) and not inner.is_given_back:
                self.finish(inner, time, row, is_own=False)

    def take(self, row):
        is_annotated, time, action = row["function"].startswith("xheap_heap_"), int(row["time_ns"]), row["action"]
        key = (row["process"], row["tid"], is_annotated)
        live = self.annotated if is_annotated else self.plain
        heap = row["heap"] if is_annotated else None
        made = None
        if action == "Free":
            block = live.get((heap, int(row["address"], 16)))
            block.is_temporary = self.made.get(key) is block
            self.finish(block, time, row)
        elif action == "ReAlloc":
            block = live[heap, int(row["previous_address"], 16)]
            self.finish(block, time - int(row["duration_ns"]), row, row["previous_address"] == row["address"])
        elif action == "Destroy":
            for block in [block for block in self.annotated.values() if block.heap == row["heap"]]:
                if not block.is_given_back:
                    self.finish(block, time, row)
        if action in ("Alloc", "ReAlloc"):
            made = self.begin(row, is_annotated)
        self.made[key] = made


def read_nests(path):
    """The blocks, and the last time of each process."""
    nests, last = Nests(), collections.defaultdict(int)
    for row in table(path, "--events"):
        last[int(row["process"])] = max(last[int(row["process"])], int(row["time_ns"]))
        nests.take(row)
    link(nests.blocks, nests.taken)
    return nests.blocks, last


def finish(blocks, processes, last, duration):
    for block in blocks:
        if block.end is None:
            process = processes[block.process]
            block.end = max(int(process["end_ns"]), last[block.process]) if process["end_ns"] else None
        block.lifetime = (duration if block.end is None else block.end) - block.birth


def find_peak(blocks):
    changes = collections.Counter()
    for block in blocks:
        changes[block.birth] += block.size
        if block.end is not None:
            changes[block.end] -= block.size
    live = peak = peak_at = 0
    for time in sorted(changes):
        live += changes[time]
        if live > peak:
            peak, peak_at = live, time
    return peak, peak_at


def numbers_of(blocks, peak_at):
    sums = collections.Counter()
    for block in blocks:
        sums["total_count"] += 1
        sums["total_bytes"] += block.size
        sums["outstanding_count"] += not block.is_given_back
        sums["outstanding_bytes"] += 0 if block.is_given_back else block.size
        sums["open_count"] += not block.is_given_back
        sums["realloc_count"] += block.is_realloc
        sums["realloc_moved_count"] += block.is_moved
        sums["temporary_count"] += block.is_temporary
        if block.birth <= peak_at and (block.end is None or block.end > peak_at):
            sums["peak_count"] += 1
            sums["peak_bytes"] += block.size
    return {name: sums[name] for name in NUMBERS}


def frame_text(frame):
    if "image" not in frame:
        return frame["symbol"]
    return frame["image"] + ("!" + frame["symbol"] if "symbol" in frame else "+" + frame["offset"])


def compare(what, expected, found, problems):
    for name, value in expected.items():
        if found.get(name) != value:
            problems.append(f"{what}: {name}: the report says {found.get(name)}, the events {value}")


def check(path):
    report = json.loads(run("heap", path, "-stacks", "-noDefaultCull", "--format", "json", "-top", "1000000000"))
    processes = {int(row["process"]): row for row in table(path, "--processes")}
    names = {row["stack_id"]: row["stack"] for row in table(path, "--stacks", "--wholeStacks")}
    points, last = read_points(path)
    duration = round(report["range"]["to_us"] * 1000)
    problems = []
    if report["gaps"]:
        return ["has gaps, which this model does not know"]
    blocks, conflicts, unknown = match(points, processes)
    finish(blocks, processes, last, duration)
    peak, peak_at = find_peak(blocks)
    totals = numbers_of(blocks, peak_at)
    compare("totals", totals, report["totals"], problems)
    compare("trace", {"order_conflicts": conflicts, "unknown_frees": unknown}, report, problems)
    if report["totals"]["peak_bytes"] != peak:
        problems.append(f"peak: the report says {report['totals']['peak_bytes']}, the events {peak}")
    groups = collections.defaultdict(list)
    for block in blocks:
        groups[names[block.stack] if block.stack else ""].append(block)
    rows = collections.defaultdict(list)
    for row in report["actions"][0]["rows"]:
        rows[";".join(frame_text(frame) for frame in row["stack"][1:])].append(row)
    for stack in sorted(set(groups) | set(rows)):
        expected = numbers_of(groups[stack], peak_at)
        found = {name: sum(row[name] for row in rows[stack]) for name in NUMBERS}
        compare(stack or "[no stack]", expected, found, problems)
        if len(rows[stack]) == 1 and groups[stack]:
            lifetimes = [block.lifetime for block in groups[stack]]
            times = {"min": min(lifetimes), "median": int(statistics.median(lifetimes)), "max": max(lifetimes)}
            compare(stack, times, {name: round(rows[stack][0]["lifetime_us"][name] * 1000) for name in times}, problems)
            compare(stack, {"threads": len({block.thread for block in groups[stack]}),
                            "processes": len({block.process for block in groups[stack]})}, rows[stack][0], problems)
    print(f"{path}: {len(blocks)} allocations, {len(groups)} stacks, {conflicts} conflicts, {unknown} unknown frees,"
          f" {len(problems)} differences")
    return problems


def main():
    paths = sys.argv[1:]
    if not paths:
        make = os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
        for scene, seed in [("plain", "0"), ("forks", "0"), ("random", "1"), ("random", "2"), ("random", "3")]:
            paths.append(f"{scene}{seed}.xht")
            subprocess.run([make, scene, paths[-1], seed], check=True)
    problems = [problem for path in paths for problem in check(path)]
    for problem in problems[:20]:
        print("  " + problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
