#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The numbers of `xheap report` by a model over `xheap dump`: short-lived blocks, blocks that other threads free, the peak of each process, and growth.
Each command of a finding runs and names what its sentence names. No line is wider than asked for, and no screen has more than 40 lines."""
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile

BUILD, XHEAP = os.environ["BUILD"], os.environ["XHEAP"]
PARTS, WARM, YOUNG, OLD, HALF = 96, 12, 2, 16, 48
T_INTERVAL, T_RECENT = 2.201, 1.895
# Verdicts and the stacks that they are about, by the innermost frame.
GROWN = {"growing": {"0x2000": ("grows", 1), "0x3000": ("stopped", 1)}, "turns": {"0x6000": ("grows", 4)}}
failures = []


def expect(is_good, what):
    if not is_good:
        failures.append(what)


def run(*words):
    return subprocess.run([XHEAP, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def rows(trace, subject):
    return [json.loads(line) for line in run("dump", trace, f"-{subject}", "-format", "json").splitlines()]


# ---- growth ----

def part(time, begin, end):
    return -1 if time < begin else PARTS if time > end else min((time - begin) * PARTS // (end - begin), PARTS - 1)


def rate(numbers, first, count, quantile, seconds):
    length = (PARTS - first) // count
    batches = [sum(numbers[first + i * length:first + (i + 1) * length]) / (length * seconds) for i in range(count)]
    mean = sum(batches) / count
    apart = [batch - mean for batch in batches]
    own = sum(x * x for x in apart)
    more = sum(2 * (1 - lag / 3) * sum(a * b for a, b in zip(apart[lag:], apart)) for lag in (1, 2))
    error = math.sqrt((own + max(more, 0)) / (count - 1) / count)
    return {"mean": mean, "low": mean - quantile * error, "high": mean + quantile * error}


def grow(blocks, begin, end):
    """Of the blocks of a stack: bytes and count a second, the recent bytes, and survival."""
    size, count, ended, live = [0] * PARTS, [0] * PARTS, [0] * PARTS, [0] * PARTS
    for block in blocks:
        first = part(block["birth_ns"], begin, end)
        last = part(block["end_ns"], begin, end) if block["end_kind"] in ("free", "realloc") else PARTS
        if first == PARTS or last - first <= YOUNG:
            continue
        if first + YOUNG < PARTS:
            size[first + YOUNG] += block["size"]
            count[first + YOUNG] += 1
        if last < PARTS:
            size[last] -= block["size"]
            count[last] -= 1
            ended[last - first] += 1
        else:
            live[PARTS - 1 - first] += 1
    survival, risk = 1, sum(ended[OLD:]) + sum(live[OLD:])
    for age in range(OLD, PARTS):
        if risk < 5:
            break
        survival *= 1 - ended[age] / (risk - live[age] / 2) if risk > live[age] / 2 else 1
        risk -= ended[age] + live[age]
    seconds = (end - begin) / 1e9 / PARTS
    return {"bytes_per_second": rate(size, WARM, 12, T_INTERVAL, seconds), "blocks_per_second": rate(count, WARM, 12, T_INTERVAL, seconds),
            "recent_bytes_per_second": rate(size, HALF, 8, T_RECENT, seconds), "survival": survival if sum(live[OLD:]) >= 6 else None,
            "grown_bytes": sum(size[WARM:]), "grown_count": sum(count[WARM:])}


def is_near(one, other):
    if one is None or other is None:
        return one is None and other is None
    if isinstance(one, dict):
        return all(is_near(one[key], other[key]) for key in one)
    return abs(one - other) <= 0.002 + 1e-9 * abs(one)


def check_growth(trace, report, blocks, verdicts):
    texts = {row["stack_id"]: row for row in rows(trace, "allocations") if "stack_id" in row}
    by_stack = {}
    for block in blocks:
        by_stack.setdefault(block["stack_id"], []).append(block)
    paths = {stack: path_of(trace, stack) for stack in texts}
    for row in report["growth"]["rows"]:
        if row["by_realloc"]:
            continue
        path = [frame["offset"] for frame in row["stack"]]
        own = [stack for stack in texts if (paths[stack] == path if row["stack_count"] == 1 else paths[stack][0] == path[0])]
        expect(len(own) == row["stack_count"], f"{trace}: {row['stack_count']} stacks grow by {path[0]}, by the model {len(own)}")
        model = grow([block for stack in own for block in by_stack[stack]], round(row["from_us"] * 1000), round(row["to_us"] * 1000))
        for key, value in model.items():
            expect(is_near(value, row.get(key)), f"{trace}: growth of {row['stack'][0]['offset']}: {key} is {row.get(key)}, by the model {value}")
    said = {row["stack"][0]["offset"]: (row["verdict"], row["stack_count"]) for row in report["growth"]["rows"][::-1]}
    expect(verdicts.items() <= said.items(), f"{trace}: verdicts are {said}")
    return len(report["growth"]["rows"])


def path_of(trace, stack, known={}):
    """Its frames, the innermost first."""
    if trace not in known:
        known[trace] = {row["stack_id"]: row for row in rows(trace, "stacks")}
    row = known[trace][stack]
    return [row.get("offset"), *(path_of(trace, row["parent_id"]) if row["parent_id"] else [])]


# ---- all blocks ----

def check_totals(trace, report, blocks):
    freed = [block for block in blocks if block["end_kind"] in ("free", "realloc", "destroy")]
    short = [block for block in freed if block["lifetime_ns"] < report["short_lived_us"] * 1000]
    crossed = [block for block in freed if "free_tid" in block and block["free_tid"] != block["tid"]]
    for key, chosen in (("short_lived", short), ("freed_by_others", crossed)):
        expect(report["totals"][f"{key}_count"] == len(chosen), f"{trace}: {key}_count is {report['totals'][f'{key}_count']}, by the model {len(chosen)}")
        expect(report["totals"][f"{key}_bytes"] == sum(block["size"] for block in chosen), f"{trace}: {key}_bytes")


def check_processes(trace, report, blocks):
    for process in report["processes"]:
        changes = {}
        for block in blocks:
            if block["process"] == process["process"]:
                changes[block["birth_ns"]] = changes.get(block["birth_ns"], 0) + block["size"]
                if block["end_kind"] != "open":
                    changes[block["end_ns"]] = changes.get(block["end_ns"], 0) - block["size"]
        live = peak = 0
        for time in sorted(changes):
            live += changes[time]
            peak = max(peak, live)
        expect(process["peak_bytes"] == peak, f"{trace}: the peak of process {process['process']} is {process['peak_bytes']}, by the model {peak}")
    return len(report["processes"])


def check_findings(trace, report):
    for finding in report["findings"]:
        words = shlex.split(finding["command"])
        expect(words[0] == "xheap", finding["command"])
        shown = subprocess.run([XHEAP, *words[1:]], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        frames = [word for word in finding["text"].replace(",", " ").split() if "+0x" in word]
        expect(shown.returncode == 0 and not shown.stderr, f"{finding['command']}: exit status {shown.returncode}: {shown.stderr}")
        for frame in frames:
            expect(frame.rstrip(".:") in shown.stdout, f"{finding['command']}: {frame} is not in what it shows")
    return len(report["findings"])


def check_screen(trace):
    for width in (40, 80, 120, 300):
        lines = run("report", trace, "-width", str(width)).splitlines()
        expect(len(lines) <= 40 or width < 80, f"{trace}: {len(lines)} lines at {width} columns")
        wide = [line for line in lines if len(line) > width]
        expect(not wide, f"{trace}: wider than {width}: {wide[:3]}")
        firsts = [number for number, line in enumerate(lines) if line.startswith(("Peak:", "Growth:"))]
        expect(len(firsts) == 2 and firsts[1] < 24, f"{trace}: peak and growth are in lines {firsts} at {width} columns")


def main():
    os.environ.update(LC_ALL="C", XHEAP_INDEX_EVENTS="none")
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        counts = []
        for scene, calls in (("growing", 0), ("turns", 0), ("python_arenas", 0), ("random", 20000), ("forks", 0), ("plain", 0), ("earlier", 0), ("nested", 2000)):
            trace = f"{scene}.xht"
            subprocess.run([os.path.join(BUILD, "tests/golden/make_trace"), scene, trace, "1", str(calls)], check=True)
            report = json.loads(run("report", trace, "-format", "json", "-top", "20"))
            findings = check_findings(trace, report)
            check_screen(trace)
            grown = processes = 0
            # The model knows nothing of blocks in others and from before.
            if scene not in ("earlier", "nested"):
                blocks = rows(trace, "allocations")
                check_totals(trace, report, blocks)
                processes = check_processes(trace, report, blocks)
                grown = check_growth(trace, report, blocks, GROWN[scene]) if scene in GROWN else 0
            counts.append(f"{scene}: {findings} findings, {processes} processes, {grown} stacks by growth")
        print(*failures, *counts, sep="\n")
    return bool(failures)


sys.exit(main())
