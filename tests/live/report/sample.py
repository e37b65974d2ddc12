#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Samples estimate what a program itself counts: without bias, with errors that are as large as they are said to be.

known    a program that counts its own blocks, recorded many times, each time another sample: for each of its sites and numbers the
         mean of the estimates is the truth, and they scatter as their standard errors say
pools    a program that counts what its annotated heaps hand out: each heap by itself is estimated as well, and none is in a total
whole    a sample of every byte holds every event, and nothing is estimated but as it is
python   an interpreter, sampled and whole: the totals agree within their errors; no free is unknown
refused  what a sample cannot tell, and what is no size
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from live import PROGRAMS, XHEAP

ROUNDS = 300 if os.environ.get("SOAK") else 30
NUMBERS = ("total_count", "total_bytes", "outstanding_count", "outstanding_bytes")
failed = 0


def expect(condition, text):
    global failed
    if not condition:
        print(text)
        failed += 1


def record(trace, options, command, **more):
    return subprocess.run([XHEAP, "record", "-q", "-o", trace, *options, "--", *command], stdout=subprocess.PIPE, check=True, text=True, **more).stdout


def report(trace, *words):
    return json.loads(subprocess.run([XHEAP, "heap", trace, "-format", "json", *words], stdout=subprocess.PIPE, check=True, text=True).stdout)


def site_of(row, names):
    return next((frame["symbol"] for frame in row["stack"] if frame.get("symbol") in names), None)


def check_sound(trace, seen):
    """What a sample must not make up."""
    for name in ("lost_events", "unknown_frees", "order_conflicts", "truncated_stacks", "unwatched_blocks"):
        expect(seen[name] == 0, f"{trace}: {name} {seen[name]}")


class Errors:
    """Of each site and number, how far off the estimates of many samples were."""

    def __init__(self):
        self.rounds = {}

    def add(self, name, truth, rows):
        for key in NUMBERS:
            off = sum(row[key] for row in rows) - truth[key]
            # Each estimate's own error follows the estimate; few blocks make both small, so all rounds are put together in the end.
            self.rounds.setdefault((name, key), []).append((off, sum(row[key + "_error"] ** 2 for row in rows), truth[key]))

    def judge(self):
        for (name, key), rounds in self.rounds.items():
            if not any(truth for _, _, truth in rounds):
                # Nothing of it is kept but the leaked.
                expect(all(error == 0 for error, _, _ in rounds), f"{name} {key}: estimates of nothing: {rounds}")
                continue
            off = sum(error for error, _, _ in rounds) / math.sqrt(sum(variance for _, variance, _ in rounds))
            expect(abs(off) < 4.5, f"{name} {key}: estimates are off by {off:.2f} standard errors of {len(rounds)} rounds")
            spread = sum(error * error for error, _, _ in rounds) / sum(variance for _, variance, _ in rounds)
            # Bounds of a mean of squares by Wilson and Hilferty, at 4.5 standard deviations; few rounds scatter. What is told leaves out that lots
            # are whole numbers: up to twice as much, for blocks about as large as a lot.
            part = 2 / (9 * len(rounds))
            least, most = max(0, 1 - part - 4.5 * math.sqrt(part)) ** 3, 2 * (1 - part + 4.5 * math.sqrt(part)) ** 3
            expect(least < spread < most, f"{name} {key}: the square of the errors is {spread:.2f} times what is told")


def known(directory):
    errors = Errors()
    for number in range(ROUNDS):
        trace = directory / f"known{number}.xht"
        truth = {}
        for line in record(trace, ["--sample", ("4K", "16K", "1000")[number % 3]], [f"{PROGRAMS}/sampled"]).splitlines():
            name, *numbers = line.split()
            truth[name] = dict(zip(NUMBERS, map(int, numbers)))
        seen = report(trace, "-stacks", "-top", "1000000")
        check_sound(trace, seen)
        for name in truth:
            errors.add(name, truth[name], [row for row in seen["actions"][0]["rows"] if site_of(row, truth) == name])
        trace.unlink()
    errors.judge()


def check_pools(trace, truths, seen, heaps):
    """What is said of one sample beside its numbers."""
    expect(seen["annotated_blocks"] > 100, f"{trace}: {seen['annotated_blocks']} blocks of annotated heaps are told to be in no total")
    inside = {row["name"]: "inside" in row for row in heaps}
    expect(inside["arenas"] and not any(inside[heap] for heap in ("cells", "grown", "kept")), f"{trace}: what heaps lie in: {inside}")
    for heap, name in truths:
        if heap == "-":
            continue
        rows = report(trace, "-stacks", "-top", "1000000", "-heap", heap)["actions"][0]["rows"]
        expect(all(site_of(row, {name}) for row in rows), f"{trace}: {heap} has blocks of others")
        expect(not any(site_of(row, {name}) for row in seen["actions"][0]["rows"]), f"{trace}: blocks of {heap} are in totals")
        expect(sum(row["total_bytes"] for row in rows) == sum(row["total_bytes"] for row in heaps if row["name"] == heap), f"{heap} by itself is another")
    run = subprocess.run([XHEAP, "heap", trace, "-innermost"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 2 and "-innermost needs every event" in run.stderr, f"-innermost: status {run.returncode}, {run.stderr}")
    text = subprocess.run([XHEAP, "heap", trace, "-width", "300"], stdout=subprocess.PIPE, text=True, check=True).stdout
    expect("in no total" in text, f"a report does not say what is in no total: {text}")


def pools(directory):
    errors = Errors()
    for number in range(ROUNDS):
        trace = directory / f"pools{number}.xht"
        said = record(trace, ["--sample", ("4K", "16K", "1000")[number % 3]], [f"{PROGRAMS}/sampled_pools"])
        truths = {(heap, name): dict(zip(NUMBERS, map(int, numbers))) for heap, name, *numbers in map(str.split, said.splitlines())}
        seen = report(trace, "-stacks", "-heaps", "-top", "1000000")
        check_sound(trace, seen)
        stacks, heaps = (action["rows"] for action in seen["actions"])
        for (heap, name), truth in truths.items():
            errors.add(name, truth, [row for row in heaps if row["name"] == heap] if heap != "-" else [row for row in stacks if site_of(row, {name})])
        if number == 0:
            check_pools(trace, truths, seen, heaps)
        trace.unlink()
    errors.judge()


def whole(directory):
    trace, full = directory / "one.xht", directory / "full.xht"
    truth = [line.split() for line in record(trace, ["--sample", "1"], [f"{PROGRAMS}/sampled"]).splitlines()]
    record(full, [], [f"{PROGRAMS}/sampled"])
    seen, of_all = report(trace, "-stacks", "-top", "1000000"), report(full, "-stacks", "-top", "1000000")
    check_sound(trace, seen)
    for name, *numbers in truth:
        for which, got in (("whole", of_all), ("sampled", seen)):
            rows = [row for row in got["actions"][0]["rows"] if site_of(row, {name})]
            for key, number in zip(NUMBERS, map(int, numbers)):
                found = sum(row[key] for row in rows)
                # One block in so many of a few bytes is left out: 1 - exp(-size).
                allowed = 0 if which == "whole" else 5 * math.sqrt(sum(row[key + "_error"] ** 2 for row in rows) + 1) + 1e-9 * number
                expect(abs(found - number) <= allowed, f"{name} {key}: {found} of {number} in the {which} trace")
    expect("temporary_count" in of_all["totals"] and "sample_bytes" not in of_all, "a whole trace is told to be a sample")
    expect("temporary_count" not in seen["totals"] and seen["sample_bytes"] == 1, "a sample is not told to be one")


def python(directory):
    script = "d = {}\nfor i in range(200000):\n    d[i] = str(i) * (i % 7)\n    if i % 3 == 0: del d[i]\nprint(len(d))"
    command = ["/usr/bin/python3", "-S", "-c", script]
    environment = dict(os.environ, PYTHONMALLOC="malloc", PYTHONHASHSEED="0")
    whole_trace, sampled = directory / "python.xht", directory / "python-sample.xht"
    outputs = [record(whole_trace, [], command, env=environment), record(sampled, ["--sample", "32K"], command, env=environment)]
    expect(outputs[0] == outputs[1], f"another output when sampled: {outputs}")
    truth, seen = report(whole_trace)["totals"], report(sampled)
    check_sound(sampled, seen)
    # Of the few small blocks that are left at the end hardly one is in the sample.
    for key in ("total_count", "total_bytes", "peak_bytes", "peak_count"):
        estimate, error = seen["totals"][key], seen["totals"][key + "_error"]
        # A peak is the most of many estimates: that is more than any one of them as a rule.
        allowed = 6 * error + 0.002 * truth[key]
        expect(abs(estimate - truth[key]) <= allowed, f"python {key}: {estimate} (+- {error}) of {truth[key]}")
    events = [json.loads(subprocess.run([XHEAP, "info", trace, "--format", "json"], stdout=subprocess.PIPE, check=True, text=True).stdout)["event_count"]
              for trace in (whole_trace, sampled)]
    expect(events[1] * 20 < events[0], f"a sample of {events[1]} events of {events[0]}")


def refused(directory):
    trace = directory / "refused.xht"
    record(trace, ["--sample", "64K"], ["true"])
    for words, why in ((["heap", trace, "-chains"], "-chains needs every event"), (["heap", trace, "-stacks", "stt"], "stt needs every event"),
                       (["record", "--sample", "0", "true"], "from 1 to 1024G"), (["record", "--sample", "2000G", "true"], "from 1 to 1024G"),
                       (["record", "--sample", "-1", "true"], "not a size")):
        run = subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=directory)
        expect(run.returncode == 2 and why in run.stderr, f"{words}: status {run.returncode}, {run.stderr}")
    text = subprocess.run([XHEAP, "heap", trace, "-width", "300"], stdout=subprocess.PIPE, text=True, check=True).stdout
    expect("a sample, of one byte in 64.0 KiB" in text.splitlines()[1], f"a report does not begin with what it is of: {text}")


def main():
    parts = (known, pools, whole, python, refused)
    for part in parts:
        if len(sys.argv) > 1 and part.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory(prefix="xheap-sample.") as directory:
            part(pathlib.Path(directory))
    return failed


if __name__ == "__main__":
    sys.exit(main() != 0)
