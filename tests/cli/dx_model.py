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
        self.all_blocks = self.rows("-allocations")
        self.blocks = [row for row in self.all_blocks if row["birth_ns"] != ""]
        self.processes = self.rows("-processes")

    def rows(self, subject):
        return list(csv.DictReader(io.StringIO(run("dump", self.path, subject, "-format", "csv"))))

    def ask(self, query, levels="-r2"):
        return json.loads(run("dx", self.path, "-format", "json", levels, query)).get("result")

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
        trace.expect(f"{HEAP}.Average(h => h.Size)", sum(map(size, sized)) / len(sized))
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
    freed = [row for row in trace.all_blocks if row["end_kind"] == "free"]
    trace.expect(f'{HEAP}.Where(h => h.Action == "Free").Sum(h => h.Block.Size)', sum(int(row["size"]) for row in freed if row["size"] != ""))
    trace.expect(f'{HEAP}.Count(h => h.Action == "Free" && h.Block && (h.Block.FreeEvent.Index != h.Index || h.Block.Address != h.Address))', 0)
    trace.expect(f'{HEAP}.Count(h => h.Action == "Alloc" && h.Freed && h.Freed != h.FreeEvent.TimeStart)', 0)
    totals = json.loads(run("heap", trace.path, "-format", "json", "-top", "1"))["totals"]
    is_sampled = bool(trace.all_blocks and trace.ask("@$cursession.TTD.Data.Allocations().Any(a => a.Weight > 0)"))
    if not is_sampled:  # sums of a sample are those of its blocks, and reports estimate
        trace.expect("@$cursession.TTD.Data.Peak().Bytes", totals["peak_bytes"])
        trace.expect("@$cursession.TTD.Data.Peak().Count", totals["peak_count"])
    trace.expect("@$cursession.TTD.Data.Peak().Position.Sequence", round(totals["peak_at_us"] * 1000))
    trace.expect("@$cursession.TTD.Data.Leaks().Sum(s => s.Bytes)", sum(int(row["size"]) for row in open_ones))
    trace.expect("@$cursession.TTD.Data.MostFrequent().Sum(s => s.Count)", len(blocks))
    trace.expect("@$cursession.TTD.Data.FreedByOtherThread().Count()", sum(row["free_tid"] not in ("", row["tid"]) for row in blocks))
    largest = sorted(blocks, key=lambda row: (-int(row["size"]), int(row["id"])))[:6]
    trace.expect("@$cursession.TTD.Data.Largest(6).Select(b => b.Index)", [int(row["id"]) for row in largest])
    longest = sorted(blocks, key=lambda row: (-max(number(row["lifetime_ns"]), 0), int(row["id"])))[:6]
    trace.expect("@$cursession.TTD.Data.Longest(6).Select(b => b.Index)", [int(row["id"]) for row in longest])
    ask_live(trace)
    ask_end(trace)


def touched(trace, process, until):
    """The addresses at which a process has ended or begun a block up to a time: its copies of these are gone."""
    found = set()
    for row in trace.events:
        if row["process"] != process or row["action"] not in ("Alloc", "ReAlloc", "Free"):
            continue
        if int(row["time_ns"]) <= until:
            found.add(row["address"])
        if row["action"] == "ReAlloc" and int(row["time_ns"]) - number(row["duration_ns"]) <= until:
            found.add(row["previous_address"])
    return found


def copies(trace, process, until):
    """What a forked process still has of its parents' blocks behind all points of a time: rows of the table."""
    row = trace.processes[int(process)]
    if row["forked_from"] == "" or int(row["start_ns"]) > until or (row["end_ns"] != "" and int(row["end_ns"]) <= until):
        return []
    return inherited(trace, process, until)


def inherited(trace, process, until):
    row = trace.processes[int(process)]
    if row["forked_from"] == "":
        return []
    start, parent = int(row["start_ns"]), row["forked_from"]
    found = inherited(trace, parent, start - 1)
    found += [block for block in trace.all_blocks if block["process"] == parent and number(block["birth_ns"]) < start and
              (block["end_ns"] == "" or int(block["end_ns"]) >= start)]
    gone = touched(trace, process, until)
    return [block for block in found if block["address"] not in gone]


def ask_live(trace):
    """At positions behind all points of a nanosecond: the blocks of all processes, and of each one alone; its own, and copies."""
    times = sorted(int(row["birth_ns"]) for row in trace.blocks)
    forked = [row["process"] for row in trace.processes if row["forked_from"] != ""]
    middles = [(int(trace.processes[int(process)]["start_ns"]) + number(trace.processes[int(process)]["end_ns"])) // 2 for process in forked[:3]]
    for at in sorted({times[len(times) // 3], times[-1], *middles}) if times else ():
        own = [row for row in trace.all_blocks if number(row["birth_ns"]) <= at and (row["end_ns"] == "" or int(row["end_ns"]) > at)]
        held = {process: copies(trace, process, at) for process in forked}
        everything = own + [row for rows in held.values() for row in rows]
        live = f'@$cursession.TTD.Data.Live(@$position("{at:X}:FFFFFFFF"))'
        trace.expect(f"{live}.Count()", len(everything))
        trace.expect(f"{live}.Sum(b => b.Size)", sum(int(row["size"]) for row in everything))
        trace.expect(f"{live}.Where(b => b.IsInherited).Select(b => new {{ A = b.Address, P = b.InheritedBy.UniqueId }})",
                     [{"A": int(row["address"], 16), "P": int(process)} for process in forked for row in sorted(held[process], key=lambda row: int(row["id"]))])
        for row in trace.processes[:4]:
            mine = [block for block in own if block["process"] == row["process"]] + held.get(row["process"], [])
            process = f'@$cursession.Processes.Single(p => p.UniqueId == {row["process"]})'
            trace.expect(f'{process}.TTD.Data.Live(@$position("{at:X}:FFFFFFFF")).Sum(b => b.Size)', sum(int(block["size"]) for block in mine))
    # Before all points of the nanosecond of its end, a forked process has all that it still has, and behind them nothing.
    for process in forked[:4]:
        end = trace.processes[int(process)]["end_ns"]
        if end == "":
            continue
        held = inherited(trace, process, int(end) - 1) + [row for row in trace.all_blocks if row["process"] == process and number(row["birth_ns"]) < int(end) and
                                                          (row["end_ns"] == "" or int(row["end_ns"]) >= int(end))]
        live = f'@$cursession.Processes.Single(p => p.UniqueId == {process}).TTD.Data.Live(@$position("{int(end):X}:'
        trace.expect(f'{live}0")).Count()', len(held))
        trace.expect(f'{live}FFFFFFFF")).Count()', 0)
    # Without a position, a process has what it never gave back, and copies.
    for number_of, row in enumerate(trace.processes[:4]):
        kept = [block for block in trace.all_blocks if block["process"] == str(number_of) and block["end_kind"] in ("exit", "open")]
        process = f"@$cursession.Processes.Single(p => p.UniqueId == {number_of})"
        trace.expect(f"new {{ N = {process}.TTD.Data.Live().Where(b => !b.IsInherited).Count(), B = {process}.Heap.Bytes }}",
                     {"N": len(kept), "B": sum(int(block["size"]) for block in kept)})


def ask_end(trace):
    """At the trace's end all calls are over, and processes that end then are still there: what has grown since the start is what they have."""
    duration = round(json.loads(run("info", trace.path, "-format", "json"))["duration_us"] * 1000)
    last = [row for row in trace.all_blocks if row["end_kind"] == "open" or (row["end_kind"] == "exit" and int(row["end_ns"]) >= duration)]
    first = [row for row in trace.all_blocks if row["birth_ns"] == "" or int(row["birth_ns"]) < 0]
    there = [str(number) for number, row in enumerate(trace.processes) if row["end_ns"] == "" or int(row["end_ns"]) >= duration]
    copied = [block for process in there for block in inherited(trace, process, duration)]
    live = "@$cursession.TTD.Data.Live(@$cursession.TTD.Lifetime.MaxPosition)"
    trace.expect(f"{live}.Count()", len(last + copied))
    trace.expect(f"{live}.Sum(b => b.Size)", sum(int(row["size"]) for row in last + copied))
    # At no position: what each process had at its end.
    own = [row for row in trace.all_blocks if row["end_kind"] in ("exit", "open")]
    trace.expect("@$cursession.TTD.Data.Live().Where(b => !b.IsInherited).Sum(b => b.Size)", sum(int(row["size"]) for row in own))
    trace.expect("@$cursession.TTD.Data.Live().Count() == @$cursession.Processes.Sum(p => p.TTD.Data.Live().Count())", True)
    trace.expect('@$cursession.TTD.Data.Growth(@$position("0:0")).Sum(s => s.Bytes)', sum(int(row["size"]) for row in last) - sum(int(row["size"]) for row in first))


def ask_processes(trace):
    """Of each process: its threads, its parent, its events and blocks; and the heaps, as the report of heaps has them."""
    threads = collections.defaultdict(set)
    for row in trace.events:
        threads[row["process"]].add(row["tid"])
    trace.expect("@$cursession.Processes.Select(p => p.UniqueId)", [int(row["process"]) for row in trace.processes])
    trace.expect("@$cursession.Processes.Where(p => p.ForkedFrom.UniqueId >= 0).Select(p => new { C = p.UniqueId, P = p.ForkedFrom.UniqueId })",
                 [{"C": int(row["process"]), "P": int(row["forked_from"])} for row in trace.processes if row["forked_from"] != ""])
    trace.expect("@$cursession.Processes.Select(p => p.TTD.Data.Heap().Count())", [sum(row["process"] == of["process"] for row in trace.events) for of in trace.processes])
    trace.expect("@$cursession.Processes.Select(p => p.TTD.Data.Allocations().Sum(b => b.Size))",
                 [sum(int(row["size"]) for row in trace.blocks if row["process"] == of["process"]) for of in trace.processes])
    trace.expect("@$cursession.Processes.Select(p => p.TTD.Data.Leaks().Sum(s => s.Count))",
                 [sum(row["process"] == of["process"] and row["end_kind"] in ("exit", "open") for row in trace.blocks) for of in trace.processes])
    # At its fork a process has what info counts, but for blocks that lie in others. Of what a forked parent itself had freed, the counts of info may be
    # one too many: the free of an address that was dead before its fork counts as one of a copy.
    counts = {row["id"]: row for row in json.loads(run("info", trace.path, "-format", "json"))["processes"]}
    for of in [row for row in trace.processes if row["forked_from"] != "" and trace.processes[int(row["forked_from"])]["forked_from"] == ""][:4]:
        inherited_blocks = (f'@$cursession.Processes.Single(p => p.UniqueId == {of["process"]}).TTD.Data.Live(@$position("{int(of["start_ns"]):X}:0"))'
                            ".Where(b => b.IsInherited && !b.IsNested)")
        trace.expect(f"{inherited_blocks}.Count()", counts[int(of["process"])].get("inherited_count", 0))
        trace.expect(f"{inherited_blocks}.Sum(b => b.Size)", counts[int(of["process"])].get("inherited_bytes", 0))
    for of in trace.processes[:6]:
        process = f'@$cursession.Processes.Single(p => p.UniqueId == {of["process"]})'
        trace.expect(f"{process}.TTD.Data.Heap().Select(h => h.Thread.Id).Distinct().OrderBy(t => t)", sorted(map(int, threads[of["process"]])))
        trace.expect(f'{process}.TTD.Calls("*!*").Where(c => c.ReturnValue > 0).Count()',
                     sum(row["process"] == of["process"] and row["action"] in ("Alloc", "ReAlloc") and row["address"] not in ("", "0x0") and
                         row["function"] != "posix_memalign" for row in trace.events))
    report = json.loads(run("heap", trace.path, "-heaps", "-by", "process", "-format", "json"))["actions"][0]["rows"]
    # An aggregated trace has no blocks of what ended, and the report no extents.
    if any("extent_bytes" not in row for row in report):
        return
    wanted = sorted((int(row["heap"], 16), row["name"], row["total_count"], row["total_bytes"], row["extent_bytes"])
                    for row in report if row["total_count"] and "heap" in row)
    found = [(int(heap["value"]["Handle"], 16), heap["value"]["Name"], heap["value"]["Count"], heap["value"]["Bytes"], heap["value"]["Extents"])
             for process in trace.ask("@$cursession.Processes.Select(p => new { H = p.Heaps })", "-r3") for heap in process["value"]["H"]]
    found = sorted(row for row in found if row[2])
    if found != wanted:
        failures.append(f"{trace.path}: heaps: {str(found)[:300]}\n  report: {str(wanted)[:300]}")


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


def check_blocks_positions(trace):
    """A block begins at the exact point of its call, and ends at that of the call that freed it."""
    begins, ends = {}, {}
    for element in trace.ask(f'{HEAP}.Where(h => h.Action != "Lock").Select(h => new {{ P = h.Process.UniqueId, K = h.Action, A = h.Address, O = h.PreviousAddress, '
                             "S = h.TimeStart, E = h.TimeEnd, I = h.Index })"):
        event = element.get("value", {})
        if event.get("K") in ("Alloc", "ReAlloc"):
            begins[event["P"], event["A"], event["E"]] = event["I"]
        if event.get("K") in ("Free", "ReAlloc"):
            ends[event["P"], event["A"] if event["K"] == "Free" else event["O"], event["S"]] = event["I"]
    for element in trace.ask(f"{BLOCKS}.Take(60).Select(b => new {{ P = b.Process.UniqueId, A = b.Address, S = b.TimeStart, E = b.TimeEnd, K = b.End, "
                             "EX = b.TimeEnd.IsExact, B = b.Event.Index, F = b.FreeEvent.Index })"):
        block = element["value"]
        wanted = ends[block["P"], block["A"], block["E"]] if block.get("EX") and block["K"] != "destroy" else None
        if block["B"] != begins[block["P"], block["A"], block["S"]] or (block["K"] != "destroy" and block.get("F") != wanted):
            failures.append(f"{trace.path}: {element}: begun by {begins[block['P'], block['A'], block['S']]}, ended by {wanted}")
    checked = 0
    for element in trace.ask(f"{BLOCKS}.Select(b => new {{ P = b.Process.UniqueId, A = b.Address, S = b.TimeStart, E = b.TimeEnd, K = b.End, "
                             "SX = b.TimeStart.IsExact, EX = b.TimeEnd.IsExact })"):
        block = element["value"]
        is_ended = block["K"] in ("free", "realloc")
        if not block["SX"] or (block["P"], block["A"], block["S"]) not in begins:
            failures.append(f"{trace.path}: {element}: no call returned it there")
        # If stamps contradict each other, an end is set, and not exact.
        if is_ended and block["EX"] and (block["P"], block["A"], block["E"]) not in ends:
            failures.append(f"{trace.path}: {element}: no call ended it there")
        if block["K"] not in ("free", "realloc", "destroy") and block.get("EX"):
            failures.append(f"{trace.path}: {element}: an end that is no call is exact")
        checked += is_ended and block["EX"]
    if trace.blocks and checked < len([row for row in trace.blocks if row["end_kind"] in ("free", "realloc")]) * 0.9:
        failures.append(f"{trace.path}: only {checked} ends of {len(trace.blocks)} blocks are exact")


def ask_everything(path):
    """All questions about one trace, which is returned."""
    trace = Trace(path)
    ask_events(trace)
    ask_addresses(trace)
    ask_blocks(trace)
    ask_processes(trace)
    check_positions(trace)
    check_blocks_positions(trace)
    return trace


# Members that every call has.
ALWAYS = {"Action", "Heap", "TimeStart", "TimeEnd", "Parameters", "Thread", "Process", "Function", "Stack", "Frames", "Index"}


def check_members():
    """Each action, and each member of a call: some call of the fixtures has it, and some has it not."""
    scenes, seen, actions, total = ("plain", "losses", "actions", "sampled"), collections.Counter(), set(), 0
    for scene in scenes:
        subprocess.run([BUILD / "tests/golden/make_trace", scene, f"{scene}.xht"], check=True)
        for element in json.loads(run("dx", f"{scene}.xht", "-format", "json", "-v", "-r1", "@$cursession.TTD.Data.Heap(false)"))["result"]:
            call = element["value"]
            if "Action" in call:
                actions.add(call["Action"])
                seen.update(call.keys())
                total += 1
    tables = subprocess.run([BUILD / "tests/golden/dx_tables", "markdown"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = {line.split("`")[1] for line in tables.splitlines() if line.startswith("| Heap |")}
    for name in sorted(names):
        if not seen[name] or (name not in ALWAYS and seen[name] == total):
            failures.append(f"{seen[name]} of {total} calls have {name}")
    if actions != OBJECTS:
        failures.append(f"no call is {OBJECTS - actions}")
    return len(names)


def check_events(path):
    """Blocks in an order of their own have their events found in batches; in the order of their beginnings, in windows of the trace. Both are the same."""
    calls = ".Select(b => new { I = b.Index, B = b.Event.Index, S = b.Event.TimeStart, T = b.Event.TimeEnd, F = b.FreeEvent.Index, K = b.FreeEvent.Action, \
D = b.FreeEvent.Duration, E = b.FreeEvent.TimeEnd, A = b.FreeEvent.Thread.UniqueId })"
    rows = run("dx", path, "-format", "csv", f"{BLOCKS}{calls}").splitlines()[1:]
    listed = {row.split(",")[1]: row.partition(",")[2] for row in rows}
    for order in ("OrderByDescending(b => b.Size)", "OrderBy(b => b.Lifetime).Take(500)", "OrderBy(b => b.Address).Take(10000)"):
        for row in run("dx", path, "-format", "csv", f"{BLOCKS}.{order}{calls}").splitlines()[1:]:
            if row.partition(",")[2] != listed[row.split(",")[1]]:
                failures.append(f"{path}: {order}: {row}, in the order of the trace {listed[row.split(',')[1]]}")
                break


def check_steps():
    """In a long trace the first steps are read around their points, and later ones are found in a list: both are the same. So are the
    calls of blocks, of which few are searched for in the trace, and many among all events."""
    subprocess.run([BUILD / "tests/golden/make_trace", "random", "long.xht", "7", "90000"], check=True)
    positions = ".Select(b => new { S = b.TimeStart, E = b.TimeEnd, X = b.TimeEnd.IsExact })"
    listed = run("dx", "long.xht", "-format", "csv", f"{BLOCKS}{positions}").splitlines()[1:]
    for first in (0, 5000, len(listed) - 25):
        read = run("dx", "long.xht", "-format", "csv", f"{BLOCKS}.Skip({first}).Take(25){positions}").splitlines()[1:]
        if read != listed[first:first + 25]:
            failures.append(f"long.xht: from {first} on: {read} read, {listed[first:first + 25]} in the list")
    calls = ".Select(b => new { B = b.Event.Index, S = b.Event.TimeStart, F = b.FreeEvent.Index, E = b.FreeEvent.TimeEnd, K = b.FreeEvent.Action })"
    kept = run("dx", "long.xht", "-format", "csv", f"{BLOCKS}.OrderBy(b => b.Address){calls}").splitlines()[1:]
    for first in (0, 5000, len(kept) - 5):
        read = run("dx", "long.xht", "-format", "csv", f"{BLOCKS}.OrderBy(b => b.Address).Skip({first}).Take(5){calls}").splitlines()[1:]
        if read != kept[first:first + 5]:
            failures.append(f"long.xht: from {first} on: {read} searched for, {kept[first:first + 5]} among all events")
    check_events("long.xht")
    later = sum(row.split(",")[2].rpartition(":")[2] not in ("0", "1") for row in listed)
    if later < 1000:
        failures.append(f"long.xht: only {later} ends are not the first point of their nanosecond")


def main():
    paths = [path for path in (SOURCE / "tests/golden/traces" / f"{name}.xht" for name in REAL) if path.exists()]
    for kind, words in (("plain", ()), ("forks", ()), ("together", ()), ("nested", ()), ("random", ("7", "2000"))):
        subprocess.run([BUILD / "tests/golden/make_trace", kind, f"{kind}.xht", *words], check=True)
        paths.append(pathlib.Path(f"{kind}.xht"))
    if len(paths) < 7:
        failures.append(f"only {len(paths)} traces were found")
    members = check_members()
    check_steps()
    for path in sorted((SOURCE / "tests/older").glob("*.xht")):
        check_events(path)
    for path in paths:
        if path.name != "nested.xht":
            ask_everything(path)
    print("\n".join(failures[:10]) or f"{asked} questions over {len(paths)} traces have the same answers; {members} members of calls")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
