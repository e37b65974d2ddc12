#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plain rows of each table are those of xheap dump; questions have the sums that the rows give; filters, columns and orders; the same once more from a second stream."""
import collections
import json
import os

from package import OLDER, TRACES, expect, finish, raises, same, unpack, xheap

if not os.environ.get("UNPACKED"):
    unpack()
import xheap as package  # noqa: E402
from xheap import col, count, when  # noqa: E402

ALL = sorted([*TRACES.glob("*.xht"), *OLDER.glob("*.xht")])
PLAIN = TRACES / "libcxx.xht"
HEXADECIMAL = ("heap", "address", "previous_address")
NOT_COMMON = ("args", "stack")
# What dump writes where there is no value, and for blocks that were alive when recording ended, whatever the list has.
WRITTEN = {("result", "in-flight"): None}
ENDED_EARLY, ALIVE = OLDER / "ended_early.xht", "alive when recording ended"
# Rows are the blocks that heap counts: a block that lies in another one is none of them (docs/semantics.md, nested heaps).
NESTED = OLDER / "annotated.xht"


def dumped(path, *words):
    rows = [json.loads(line) for line in xheap("dump", path, *words, "-format", "json").splitlines()]
    known = [{name: int(value, 16) if name in HEXADECIMAL else WRITTEN.get((name, value), value) for name, value in row.items() if name not in NOT_COMMON} for row in rows]
    return [{name: value for name, value in row.items() if value is not None} for row in known]


def given(path, rows, wanted):
    """The rows, as dump has them: an absent value has no key."""
    names = {name for row in wanted for name in row}
    made = [{name: value for name, value in row._asdict().items() if name in names and value is not None} for row in rows]
    for row, other in zip(made, wanted):
        if path == ENDED_EARLY and other.get("end_kind") == ALIVE and row["end_kind"] in ("exit", "open"):
            row["end_kind"] = ALIVE
    return made


def differences(path, what, seen, wanted):
    wrong = [(one, other) for one, other in zip(seen, wanted) if one != other]
    expect(len(seen) == len(wanted) and not wrong, f"{path}: {what}: {len(seen)} rows, not {len(wanted)}; {len(wrong)} differ: {wrong[:2]}")


def check_dump(path):
    with package.open(path) as trace:
        for what, rows in {"-allocations": trace.allocations(), "-events": trace.events()}.items():
            wanted = dumped(path, what)
            if path == NESTED and what == "-allocations":
                outermost = {row.id for row in rows}
                expect(0 < len(outermost) < len(wanted), f"{path}: {len(outermost)} of {len(wanted)} blocks lie in no other one")
                wanted = [row for row in wanted if row["id"] in outermost]
            differences(path, what, given(path, rows, wanted), wanted)
        processes = dumped(path, "-processes")
        same(f"{path}: processes", sorted(row.pid for row in trace.table("process")), sorted(row["pid"] for row in processes))
        info = trace.info
        for name, length in {"thread": info.thread_count, "image": info.image_count, "heap": info.heap_count, "function": info.function_count,
                             "process": info.process_count}.items():
            rows = list(trace.table(name))
            same(f"{path}: ids of {name}", [row.id for row in rows], list(range(length)))
        stacks = {row.id: row for row in trace.stacks()}
        frames = {row.id for row in trace.table("frame")}
        expect(all(row.frame in frames and (row.parent is None or row.parent in stacks) for row in stacks.values()), f"{path}: a stack leads nowhere")


def check_stacks():
    """Whole stacks as texts are the names along the tree."""
    with package.open(PLAIN) as trace:
        names = {row.id: row.name for row in trace.table("frame")}
        stacks = {row.id: row for row in trace.stacks()}

        def whole(id):
            while id is not None:
                yield names[stacks[id].frame]
                id = stacks[id].parent
        rows = list(trace.allocations(columns=["stack_id", "stack"], size=(64, 128)))
        expect(len(rows) > 10, f"{len(rows)} rows")
        # A frame of several inlined functions is one of the tree.
        for row in rows:
            expect(row.stack.split(";")[-1] == list(whole(row.stack_id))[-1], f"{row}")


def check_callers():
    """The first function of the program's own code has what reports say of it."""
    with package.open(PLAIN) as trace:
        sums = collections.Counter()
        for row in trace.allocations(columns=["caller", "size", "stack"]):
            sums[row.caller] += row.size
            expect(row.caller in row.stack.split(";"), f"{row}")
        same("bytes by caller", dict(sums), {row.function: row.total_bytes for row in trace.heap(by="function")})
        for by in ("caller", ["size", "free_caller"], package.col("caller").named("x")):
            error = raises(package.InvalidError, ["several stacks have one caller", 'heap(by="function")', "stack_id"], lambda by=by: trace.query([count()], by=by), f"groups by {by}")
            expect("xheap_" not in str(error), f"a name of C: {error}")


def check_questions():
    with package.open(PLAIN) as trace:
        rows = list(trace.allocations())
        by = collections.Counter()
        for row in rows:
            by[row.function, row.end_kind] += row.size
        same("sums", {(row.function, row.end_kind): row.sum_size for row in trace.query([col("size").sum()], by=["function", "end_kind"])}, dict(by))
        same("largest", [row.size for row in trace.query("size", order="-size", limit=5, skip=1)], sorted((row.size for row in rows), reverse=True)[1:6])
        conditions = {
            "a size": (col("size") > 100, lambda row: row.size > 100),
            "turned": (100 < col("size"), lambda row: row.size > 100),
            "both": ((col("size") > 100) & (col("end_kind") == "free"), lambda row: row.size > 100 and row.end_kind == "free"),
            "either": ((col("size") < 20) | ~(col("end_kind") != "exit"), lambda row: row.size < 20 or row.end_kind == "exit"),
            "a time": (col("lifetime_ns") < "10us", lambda row: row.lifetime_ns < 10000),
            "times": (col("end_ns") - col("birth_ns") >= "1ms", lambda row: row.end_ns - row.birth_ns >= 10**6),
            "a function": (col("function") == "malloc", lambda row: row.function == "malloc"),
            "no function": (col("function") != "malloc", lambda row: row.function != "malloc"),
            "a function that there is not": (col("function") == "nosuch", lambda row: False),
            "absent": (col("free_tid").is_absent(), lambda row: row.free_tid is None),
            "if absent": (col("free_tid").if_absent(0) == 0, lambda row: row.free_tid is None),
            "one of": (col("size").is_in([24, 48]), lambda row: row.size in (24, 48)),
            "arithmetic": ((col("usable") - col("size")) * 2 + 1 > col("size") % 16, lambda row: (row.usable - row.size) * 2 + 1 > row.size % 16),
            "bits": ((col("address") & 0xff0) >> 4 == 1, lambda row: (row.address & 0xff0) >> 4 == 1),
            "a fact about each stack": (col("stack_id").lookup([stack % 3 for stack in range(trace.info.stack_count)]) == 1, lambda row: row.stack_id % 3 == 1),
            "a fact about some": (col("stack_id").lookup([1] * 40).is_absent(), lambda row: row.stack_id >= 40),
            "when": (when(col("size") > 100, col("size"), 0) > 200, lambda row: row.size > 200),
            "a number of a time": (col("lifetime_ns").as_number() // 1000 == 1, lambda row: row.lifetime_ns // 1000 == 1),
        }
        for what, (condition, passes) in conditions.items():
            same(what, [row.id for row in trace.query("id", where=condition)], [row.id for row in rows if passes(row)])
        totals = trace.query([count(), col("size").min(), col("size").max(), col("size").mean().named("mean")]).table()[0]
        sizes = [row.size for row in rows]
        same("totals", (totals.count, totals.min_size, totals.max_size), (len(rows), min(sizes), max(sizes)))
        expect(abs(totals.mean - sum(sizes) / len(sizes)) <= 1, f"a mean of {totals.mean}")
        same("events", [row.count for row in trace.query(count(), where=col("action") == "Free", table="event")], [2149])
        same("filters of a question", [row.count for row in trace.query(count(), size=(64, 128))], [len(list(trace.allocations(size=(64, 128))))])
        same("an expression", [row.twice for row in trace.query([(col("size") * 2).named("twice")], limit=3)], [row.size * 2 for row in rows[:3]])
        same("no rows", list(trace.query(["id"], where=col("size") > 1 << 40)), [])
        same("sums of no rows", [row.count for row in trace.query(count(), where=col("size") > 1 << 40)], [0])


def check_mistakes():
    with package.open(PLAIN) as trace:
        wrong = {
            "a column": (["allocations have no column 'sise'; the nearest is 'size'"], lambda: trace.allocations(columns=["id", "sise"])),
            "a column of nothing like it": (["events have no column 'xyzzy'"], lambda: trace.events(columns=["xyzzy"])),
            "a column of a question": (["no column 'lifetime_ms'", "'lifetime_ns'"], lambda: trace.query(["size", "lifetime_ms"])),
            "a column of a sum": (["no column 'sise'"], lambda: trace.query([col("sise").sum()], by="function")),
            "a column of a condition": (["no column 'sise'"], lambda: trace.query("size", where=(col("id") > 1) & (col("sise") > 1))),
            "a column of a group": (["no column 'functoin'", "'function'"], lambda: trace.query([count()], by="functoin")),
            "no columns": (["columns"], lambda: trace.allocations(columns=[])),
            "a text": (["columns"], lambda: trace.allocations(columns="size")),
            "a table": (["nosuch", "allocation"], lambda: trace.table("nosuch")),
            "a question's table": (["stack"], lambda: trace.query("id", table="stack")),
            "an order": (["nosuch", "size"], lambda: trace.query("size", order="nosuch")),
            "a word": (["nosuch", "end_kind"], lambda: list(trace.query("size", where=col("end_kind") == "nosuch"))),
            "a text for a number": (["'x'"], lambda: col("size") == "x"),
            "a number for a time": (["number", "time"], lambda: col("size") > col("end_ns")),
            "a truth": (["&"], lambda: trace.query("id", where=col("size") > 1 and col("size") < 3)),
            "a condition": (["where"], lambda: trace.query("id", where=col("size"))),
            "sums and columns": (["sum"], lambda: trace.query(["id", count()])),
            "a list": (["lookup"], lambda: col("stack_id").lookup([-1])),
            "a limit": (["limit"], lambda: trace.query("id", limit=-1)),
            "a filter": (["nosuch", "range"], lambda: trace.allocations(nosuch=1)),
            "a pair": (["size", "pair"], lambda: trace.allocations(size=(1, 2, 3))),
            "a time": (["10 minutes"], lambda: trace.allocations(range=("10 minutes", None))),
            "a time that is no whole number": (["1.5"], lambda: trace.allocations(range=(1.5, None))),
            "a window": (["AIFI"], lambda: trace.allocations(window=("X", 0, 1))),
            "a pid": (["pid"], lambda: trace.allocations(pid="x")),
            "no pids": (["pid", "empty"], lambda: trace.allocations(pid=[])),
            "a pattern": (["function"], lambda: trace.allocations(function="")),
            "the command's option": (["function"], lambda: trace.report(function="-o")),
        }
        for what, (words, work) in wrong.items():
            raises(package.InvalidError, words, work, what)


def main():
    for path in ALL:
        check_dump(path)
    check_stacks()
    check_callers()
    check_questions()
    check_mistakes()
    with package.open(PLAIN) as trace:
        rows = trace.allocations(columns=["size", "id"])
        same("columns", rows.columns, ("size", "id"))
        same("a second time", list(rows), list(rows))
        same("the first ones", [tuple(row) for row in rows.table(3)], [tuple(row) for row in list(rows)[:3]])
        same("as a table", len(rows.table()), 3173)
        expect("the first 60 rows" in str(rows) and len(str(rows).splitlines()) == 62, f"rows are shown by their first ones: {rows}")
        expect("first" not in str(trace.table("process")), "all rows are shown")
        raises(package.InvalidError, ["top"], lambda: rows.table(0), "no rows of a table")
        iterator = iter(rows)
        next(iterator)
        trace.close()
        same("the rest, of a closed trace", len(list(iterator)), 3172)
        raises(package.ClosedError, ["libcxx.xht is closed"], lambda: list(rows), "rows of a closed trace")
    finish()


main()
