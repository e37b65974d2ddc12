#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rows that are split by process, thread or heap tell whose they are: with ids, and with labels of which no two are alike, also where pids are."""
import collections
import csv
import io
import json
import os
import subprocess
import sys

XHEAP = os.environ["XHEAP"]
MAKE_TRACE = os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
IDS = {"process": ["process_id"], "thread": ["process_id", "thread_id"], "heap": ["process_id"], "size": []}


def xheap(*words):
    run = subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 0, f"{words}: {run.stderr}")
    return run.stdout


def expect(condition, what):
    if not condition:
        sys.exit(what)


def events_by_process(trace):
    counts = collections.Counter()
    for row in csv.DictReader(io.StringIO(xheap("dump", trace, "-allocations", "-format", "csv"))):
        counts[int(row["process"])] += 1
    return counts


def check_rows(trace, by):
    """Of JSON and CSV; labels and ids go together one to one."""
    rows = json.loads(xheap("heap", trace, "-image", "-by", by, "-format", "json"))["actions"][0]["rows"]
    table = list(csv.DictReader(io.StringIO(xheap("heap", trace, "-image", "-by", by, "-format", "csv"))))
    expect(len(rows) == len(table) > 1, f"{trace}: {len(rows)} rows by {by}, {len(table)} in CSV")
    for name in ("process_id", "thread_id"):
        expect((name in table[0]) == (name in IDS[by]), f"{trace}: CSV by {by}: {list(table[0])}")
    for row, line in zip(rows, table):
        expect(row[by] == line[by], f"{trace}: {row}, in CSV {line}")
        expect([str(row.get(name, "")) for name in IDS[by]] == [line[name] for name in IDS[by]], f"{trace}: {row}, in CSV {line}")
    labels = {row[by] for row in rows}
    if by in ("process", "thread"):
        ids = {row[IDS[by][-1]] for row in rows}
        pairs = {(row[by], row[IDS[by][-1]]) for row in rows}
        expect(len(labels) == len(ids) == len(pairs), f"{trace}: by {by}: {sorted(pairs)}")
    return rows


def check_trace(trace, processes):
    counts = events_by_process(trace)
    expect(len(counts) == processes, f"{trace}: {counts}")
    sums = collections.Counter()
    for row in check_rows(trace, "process"):
        sums[row["process_id"]] += row["total_count"]
    expect(sums == counts, f"{trace}: {sums} by process, {counts} in the list of allocations")
    for by in ("thread", "heap", "size"):
        check_rows(trace, by)
    text = xheap("heap", trace, "-image", "-by", "process")
    for row in json.loads(xheap("heap", trace, "-image", "-by", "process", "-format", "json"))["actions"][0]["rows"]:
        expect(f" {row['process']} " in text, f"{row['process']} is not in {text}")
    # Rows of heaps have the process's id under the split's name, once.
    for line in xheap("heap", trace, "-heaps", "-by", "process", "-format", "json").splitlines():
        expect(line.count('"process":') <= 1, f"a key that is there twice: {line}")


def main():
    # One pid, two images of the same name, and a child.
    program = "x=$(echo 1); exec bash -c 'x=$(echo 2); echo $x'"
    subprocess.run([XHEAP, "record", "-q", "-o", "exec.xht", "--", "bash", "-c", program], stdout=subprocess.DEVNULL, check=True)
    check_trace("exec.xht", 4)
    # Pids of a merged trace's parts are alike.
    for name in ("plain", "random"):
        subprocess.run([MAKE_TRACE, name, f"{name}.xht", "1"], check=True)
    xheap("merge", "plain.xht", "random.xht", "-o", "both.xht")
    check_trace("both.xht", 5)


main()
