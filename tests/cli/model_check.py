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
            is_realloc = action == "ReAlloc" and bool(row["previous_address"])
            block = Block(process, thread, time, int(row["size"]), row["stack_id"], is_realloc,
                          is_realloc and row["previous_address"] != row["address"])
            block.heap, block.function = row["heap"], row["function"]
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


def match(points, processes):
    blocks, conflicts, unknown = [], 0, 0
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
                live.end, live.is_given_back = max(time, live.birth), True
                live.end_stack, live.end_function = row["stack_id"], row["function"]
                live.is_temporary = is_free and made_at == (thread, place - 1)
                live = None
            elif was_seen or not processes[process]["forked_from"]:
                unknown += 1
            else:
                was_seen = True
    return blocks, conflicts, unknown


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
