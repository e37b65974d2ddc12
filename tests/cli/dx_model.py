#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Questions of dx, answered a second time from the rows of xheap dump, by code that shares nothing with it: over traces of real programs and random ones."""
import collections
import csv
import io
import json
import os
import pathlib
import subprocess
import sys

SOURCE, BUILD = pathlib.Path(os.environ["SOURCE"]), pathlib.Path(os.environ["BUILD"])
XHEAP = os.environ["XHEAP"]
OBJECTS = {"Alloc", "ReAlloc", "Free", "Create", "Destroy", "Lock", "Unlock", "Protect"}
HEAP = "@$cursession.TTD.Data.Heap()"
BLOCKS = "@$cursession.TTD.Data.Allocations()"
REAL = ("c", "processes", "rust", "libstdcxx", "python")
failures, asked = [], 0


def run(*words):
    done = subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: status {done.returncode}: {done.stderr}")
    return done.stdout


def plain(value):
    """A value of the JSON: elements without their indices, addresses as numbers."""
    if isinstance(value, list):
        return [plain(element["value"]) for element in value]
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return int(value, 16) if isinstance(value, str) and value.startswith("0x") else value


class Trace:
    def __init__(self, path):
        self.path = path
        self.events = [row for row in self.rows("-events") if row["action"] in OBJECTS]
        self.blocks = [row for row in self.rows("-allocations") if row["birth_ns"] != ""]

    def rows(self, subject):
        return list(csv.DictReader(io.StringIO(run("dump", self.path, subject, "-format", "csv"))))

    def ask(self, query):
        return json.loads(run("dx", self.path, "-format", "json", "-r2", query)).get("result")

    def expect(self, query, wanted):
        global asked
        asked += 1
        found = plain(self.ask(query))
        if found != wanted:
            failures.append(f"{self.path}: {query}:\n  dx:    {str(found)[:300]}\n  model: {str(wanted)[:300]}")


def size(row):
    return int(row["size"]) if row["action"] in ("Alloc", "ReAlloc") and row["size"] != "" else None


def number(text, base=10):
    return int(text, base) if text != "" else 0


def ask_events(trace):
    events = trace.events
    sized = [row for row in events if size(row) is not None]
    counts = collections.Counter(row["action"] for row in events)
    trace.expect(f"{HEAP}.Count()", len(events))
    for action in sorted(OBJECTS):
        trace.expect(f'{HEAP}.Count(h => h.Action == "{action}")', counts[action])
    trace.expect(f"{HEAP}.Sum(h => h.Size)", sum(map(size, sized)))
    if sized:
        trace.expect(f"{HEAP}.Max(h => h.Size)", max(map(size, sized)))
        trace.expect(f"{HEAP}.OrderByDescending(h => h.Size).Where(h => h.Size >= 0).Take(7).Select(h => h.Index)",
                     [int(row["seq"]) for row in sorted(sized, key=lambda row: -size(row))[:7]])
    trace.expect(f"{HEAP}.Where(h => h.Size > 100 && h.Size <= 1000).Count()", sum(100 < size(row) <= 1000 for row in sized))
    trace.expect(f"{HEAP}.Where(h => h.Size > 64).Select(h => h.Index).Take(20)", [int(row["seq"]) for row in sized if size(row) > 64][:20])
    by_size = collections.Counter(map(size, sized))
    best = sorted(by_size.items(), key=lambda pair: (-pair[1], pair[0]))[:5]
    trace.expect(f"{HEAP}.Where(h => h.Size >= 0).GroupBy(h => h.Size).Select(g => new {{ Size = g.First().Size, Count = g.Count() }})"
                 ".OrderByDescending(p => p.Count).ThenBy(p => p.Size).Take(5)", [{"Size": key, "Count": count} for key, count in best])
    trace.expect(f"{HEAP}.Select(h => h.Address).Where(a => a > 0).Distinct().Count()",
                 len({row["address"] for row in events if row["action"] in ("Alloc", "ReAlloc", "Free") and row["address"] not in ("", "0x0")}))
    tids = collections.Counter((row["process"], row["tid"]) for row in events)
    trace.expect(f"{HEAP}.GroupBy(h => h.Thread.UniqueId).Select(g => g.Count()).OrderByDescending(n => n)", sorted(tids.values(), reverse=True))
    trace.expect(f"{HEAP}.Where(h => h.PreviousAddress != h.Address && h.PreviousAddress > 0).Count()",
                 sum(row["action"] == "ReAlloc" and row["previous_address"] not in ("", row["address"]) for row in events))
    trace.expect(f"{HEAP}.GroupBy(h => h.Function).Select(g => new {{ F = g.First().Function, N = g.Count() }}).OrderBy(p => p.F)",
                 [{"F": name, "N": count} for name, count in sorted(collections.Counter(row["function"] for row in events).items())])
    trace.expect(f"{HEAP}.Where(h => h.Duration >= 500).Count()", sum(row["duration_ns"] != "" and int(row["duration_ns"]) >= 500 for row in events))
    trace.expect(f"@$cursession.TTD.Data.SlowCalls(500).Count()", sum(row["duration_ns"] != "" and int(row["duration_ns"]) >= 500 for row in events))
    trace.expect(f"{HEAP}.Skip(3).Take(9).Select(h => h.Parameters)",
                 [[int(word.partition("=")[2], 0) for word in row["args"].split(";")] for row in events[3:12]])


def ask_addresses(trace):
    for row in trace.events[5:len(trace.events):max(1, len(trace.events) // 3)]:
        if row["address"] in ("", "0x0"):
            continue
        address = int(row["address"], 16) + (3 if size(row) and size(row) > 3 else 0)
        wanted = [other for other in trace.events if other["action"] in ("Alloc", "ReAlloc", "Free") and other["address"] not in ("", "0x0") and
                  int(other["address"], 16) <= address < int(other["address"], 16) + max(size(other) or 1, 1)]
        wanted.sort(key=lambda other: int(other["process"]))
        trace.expect(f"@$cursession.TTD.Utility.GetHeapAddress({address}).Select(h => h.Index)", [int(other["seq"]) for other in wanted])


def ask_blocks(trace):
    blocks = trace.blocks
    open_ones = [row for row in blocks if row["end_kind"] in ("exit", "open")]
    trace.expect(f"{BLOCKS}.Count()", len(blocks))
    trace.expect(f"{BLOCKS}.Sum(b => b.Size)", sum(int(row["size"]) for row in blocks))
    trace.expect(f"{BLOCKS}.Where(b => b.IsOutstanding).Sum(b => b.Size)", sum(int(row["size"]) for row in open_ones))
    trace.expect("@$cursession.TTD.Data.Leaks().Sum(s => s.Bytes)", sum(int(row["size"]) for row in open_ones))
    trace.expect("@$cursession.TTD.Data.MostFrequent().Sum(s => s.Count)", len(blocks))
    trace.expect("@$cursession.TTD.Data.FreedByOtherThread().Count()", sum(row["free_tid"] not in ("", row["tid"]) for row in blocks))
    largest = sorted(blocks, key=lambda row: (-int(row["size"]), int(row["id"])))[:6]
    trace.expect("@$cursession.TTD.Data.Largest(6).Select(b => b.Index)", [int(row["id"]) for row in largest])
    longest = sorted(blocks, key=lambda row: (-max(number(row["lifetime_ns"]), 0), int(row["id"])))[:6]
    trace.expect("@$cursession.TTD.Data.Longest(6).Select(b => b.Index)", [int(row["id"]) for row in longest])
    times = sorted(int(row["birth_ns"]) for row in blocks)
    for at in {times[len(times) // 3], times[-1]} if times else ():
        # A position behind all points of the nanosecond.
        live = [row for row in blocks if int(row["birth_ns"]) <= at and (row["end_ns"] == "" or int(row["end_ns"]) > at)]
        earlier = [row for row in trace.rows("-allocations") if row["birth_ns"] == "" and (row["end_ns"] == "" or int(row["end_ns"]) > at)]
        trace.expect(f'@$cursession.TTD.Data.Live(@$position("{at:X}:FFFFFFFF")).Sum(b => b.Size)', sum(int(row["size"]) for row in live + earlier))


def check_positions(trace):
    """A call begins before it ends; the exact points of a nanosecond are numbered from 1 without a gap, but for those of rows that are no objects."""
    found = trace.ask(f"{HEAP}.Select(h => new {{ S = h.TimeStart, E = h.TimeEnd, A = h.Action, SX = h.TimeStart.IsExact, EX = h.TimeEnd.IsExact }})")
    points = collections.defaultdict(set)
    for row, element in zip(trace.events, found):
        event = element["value"]
        start, end = (tuple(int(part, 16) for part in event[key].split(":")) for key in "SE")
        point = end if row["action"] in ("Alloc", "ReAlloc") else start
        if start > end or point[0] != int(row["time_ns"]):
            failures.append(f"{trace.path}: seq {row['seq']}: {event} is not the call at {row['time_ns']} ns")
        exact = {position for position, is_exact in ((start, event["SX"]), (end, event["EX"])) if is_exact}
        for sequence, step in exact:
            if step in points[sequence]:
                failures.append(f"{trace.path}: two points are {sequence:X}:{step:X}")
            points[sequence].add(step)
    gaps = sum(max(steps) != len(steps) for steps in points.values())
    rows = run("dump", trace.path, "-events", "-format", "csv").count("\n") - 1
    if len(found) != len(trace.events) or (gaps and rows == len(trace.events)):
        failures.append(f"{trace.path}: {len(found)} objects of {len(trace.events)} events; {gaps} nanoseconds with missing steps")


def main():
    paths = [path for path in (SOURCE / "tests/golden/traces" / f"{name}.xht" for name in REAL) if path.exists()]
    for kind, words in (("plain", ()), ("forks", ()), ("nested", ()), ("random", ("7", "2000"))):
        subprocess.run([BUILD / "tests/golden/make_trace", kind, f"{kind}.xht", *words], check=True)
        paths.append(pathlib.Path(f"{kind}.xht"))
    if len(paths) < 7:
        failures.append(f"only {len(paths)} traces were found")
    for path in paths:
        trace = Trace(path)
        if path.name != "nested.xht":
            ask_events(trace)
            ask_addresses(trace)
            ask_blocks(trace)
        check_positions(trace) if path.name != "nested.xht" else None
    print("\n".join(failures[:10]) or f"{asked} questions over {len(paths)} traces have the same answers")
    return bool(failures)


sys.exit(main())
