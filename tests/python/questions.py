#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fifty questions, answered by dx, by the library's plans, through Arrow by DuckDB and polars, and outside of xheap by what xheap dump prints: all answers are equal. Consumers
take rows whole: pandas and pyarrow have as many, and pyarrow finds nothing wrong with them."""
import collections
import importlib.util
import json
import sys
import threading

import packages
from package import OLDER, TRACES, SKIP, expect, finish, same, unpack, xheap

unpack()
if not packages.use() or not all(map(importlib.util.find_spec, ("duckdb", "polars", "pyarrow", "pandas"))):
    print("there is no duckdb, polars, pyarrow or pandas: tests/python/packages.py installs them")
    sys.exit(SKIP)
import duckdb  # noqa: E402
import pandas  # noqa: E402
import polars  # noqa: E402
import pyarrow  # noqa: E402
from polars import col as pl  # noqa: E402

import xheap as package  # noqa: E402
from xheap import col, count  # noqa: E402

FILES = [OLDER / "threads.xht", OLDER / "reallocs.xht", TRACES / "libcxx.xht", TRACES / "processes.xht"]
BLOCKS, CALLS = "@$cursession.TTD.Data.Allocations()", "@$cursession.TTD.Data.Heap()"

# A condition: for dx, SQL, polars, a plan, and of a row of dump.
OF_BLOCKS = {
    "all": ("true", "true", polars.lit(True), col("size") >= 0, lambda row: True),
    "above 100 bytes": ("b.Size > 100", "size > 100", pl("size") > 100, col("size") > 100, lambda row: row["size"] > 100),
    "of a power of two": ("(b.Size & (b.Size - 1)) == 0", "size & (size - 1)::ubigint = 0 and size > 0", ((pl("size") & (pl("size") - 1)) == 0) & (pl("size") > 0),
                          ((col("size") & (col("size") - 1)) == 0) & (col("size") > 0), lambda row: not row["size"] & row["size"] - 1),
    "freed": ('b.End == "free"', "end_kind = 'free'", pl("end_kind") == "free", col("end_kind") == "free", lambda row: row["end_kind"] == "free"),
    "not freed": ("b.IsOutstanding", "end_kind in ('exit', 'open')", pl("end_kind").is_in(["exit", "open"]), col("end_kind").is_in(["exit", "open"]),
                  lambda row: row["end_kind"] in ("exit", "open")),
    "resized": ('b.End == "realloc"', "end_kind = 'realloc'", pl("end_kind") == "realloc", col("end_kind") == "realloc", lambda row: row["end_kind"] == "realloc"),
    "gone within 50 us": ('b.Lifetime < 50000 && b.End == "free"', "lifetime_ns < 50000 and end_kind = 'free'", (pl("lifetime_ns") < 50000) & (pl("end_kind") == "free"),
                          (col("lifetime_ns") < "50us") & (col("end_kind") == "free"), lambda row: row["lifetime_ns"] < 50000 and row["end_kind"] == "free"),
    "small and kept": ("b.Size < 64 && b.IsOutstanding", "size < 64 and end_kind in ('exit', 'open')", (pl("size") < 64) & pl("end_kind").is_in(["exit", "open"]),
                       (col("size") < 64) & col("end_kind").is_in(["exit", "open"]), lambda row: row["size"] < 64 and row["end_kind"] in ("exit", "open")),
    "at an odd place": ("(b.Address >> 4) % 2 == 1", "(address >> 4) % 2 = 1", pl("address") // 16 % 2 == 1, (col("address") >> 4) % 2 == 1,
                        lambda row: (int(row["address"], 16) >> 4) % 2 == 1),
    "of malloc": ('b.Function.EndsWith("malloc")', "function = 'malloc'", pl("function") == "malloc", col("function") == "malloc", lambda row: row["function"] == "malloc"),
}
OF_CALLS = {
    "all": ("true", "true", polars.lit(True), col("seq") >= 0, lambda row: True),
    "Alloc": ('b.Action == "Alloc"', "action = 'Alloc'", pl("action") == "Alloc", col("action") == "Alloc", lambda row: row["action"] == "Alloc"),
    "Free": ('b.Action == "Free"', "action = 'Free'", pl("action") == "Free", col("action") == "Free", lambda row: row["action"] == "Free"),
    "ReAlloc": ('b.Action == "ReAlloc"', "action = 'ReAlloc'", pl("action") == "ReAlloc", col("action") == "ReAlloc", lambda row: row["action"] == "ReAlloc"),
    "long ones": ("b.Duration > 500", "duration_ns > 500", pl("duration_ns") > 500, col("duration_ns") > 500, lambda row: row.get("duration_ns", 0) > 500),
    "late ones": ("b.Index >= 20", "seq >= 20", pl("seq") >= 20, col("seq") >= 20, lambda row: row["seq"] >= 20),
    "large ones": ('b.Size >= 1024 && b.Action != "Free"', "size >= 1024 and action <> 'Free'", (pl("size") >= 1024) & (pl("action") != "Free"),
                   (col("size") >= 1024) & (col("action") != "Free"), lambda row: row.get("size", 0) >= 1024 and row["action"] != "Free"),
    "of the first thread": ("b.Thread.UniqueId == 0", "thread_id = 0", pl("thread_id") == 0, col("thread_id") == 0, None),
}
# A key of groups: for dx, SQL, polars, a plan, and of a row of dump. Groups are compared by their counts and sums, and by their keys where all have the same.
KEYS = {
    ("blocks", "end"): ("b.End", "end_kind", pl("end_kind").cast(str), "end_kind", lambda row: row["end_kind"]),
    ("blocks", "heap"): ("b.Heap", "heap", pl("heap"), "heap", lambda row: row.get("heap") and int(row["heap"], 16)),
    ("blocks", "size / 32"): ("b.Size / 32", "size // 32", pl("size") // 32, (col("size") // 32).named("key"), lambda row: row["size"] // 32),
    ("blocks", "size % 7"): ("b.Size % 7", "size % 7", pl("size") % 7, (col("size") % 7).named("key"), lambda row: row["size"] % 7),
    ("blocks", "thread"): ("b.Thread.UniqueId", "thread_id", pl("thread_id"), "thread_id", None),
    ("calls", "action"): ("b.Action", "action", pl("action").cast(str), "action", lambda row: row["action"]),
    ("calls", "heap"): ("b.Heap", "heap", pl("heap"), "heap", lambda row: row.get("heap") and int(row["heap"], 16)),
    ("calls", "duration / 256"): ("b.Duration / 256", "duration_ns // 256", pl("duration_ns") // 256, (col("duration_ns").as_number() // 256).named("key"),
                                  lambda row: row["duration_ns"] // 256),
}
# A number: the largest, or the smallest five of it.
ORDERS = {
    ("blocks", "size"): ("b.Size", "size", lambda row: row["size"]),
    ("blocks", "lifetime"): ("b.Lifetime", "lifetime_ns", lambda row: row["lifetime_ns"]),
    ("blocks", "address"): ("b.Address", "address", lambda row: int(row["address"], 16)),
    ("calls", "duration"): ("b.Duration", "duration_ns", lambda row: row["duration_ns"]),
}


def number(value):
    """dx writes addresses as texts."""
    return int(value, 16) if isinstance(value, str) and value.startswith("0x") else value


class Asked:
    """A trace, and all ways to ask about it."""

    def __init__(self, path):
        self.path, self.trace, self.questions = path, package.open(path), 0
        functions = {row.id: row.name for row in self.trace.table("function")}
        self.rows = {"blocks": self.dumped("-allocations"), "calls": self.dumped("-events")}
        # What dump does not have of a block: the function that its call has.
        called = {row.id: functions.get(row.function_id) for row in self.trace.allocations(columns=["id", "function_id"])}
        births = {(row["time_ns"], row["tid"], row["address"]): row["function"] for row in self.rows["calls"] if row["action"] in ("Alloc", "ReAlloc")}
        for row in self.rows["blocks"]:
            row["function"] = births[row["birth_ns"], row["tid"], row["address"]]
            same(f"{path}: the function of block {row['id']}", called[row["id"]], row["function"])
        self.frames = {"blocks": polars.DataFrame(self.trace.allocations()), "calls": polars.DataFrame(self.trace.events())}

    def dumped(self, what):
        return [json.loads(line) for line in xheap("dump", self.path, what, "-format", "json").splitlines()]

    def check(self, what, answers):
        self.questions += 1
        wanted = answers.pop("dump") if answers.get("dump", 0) is not None else answers.pop("dump") or answers["dx"]
        for way, answer in answers.items():
            same(f"{self.path}: {what}: {way}", answer, wanted)

    def ask_conditions(self):
        for of, conditions, collection, table in (("blocks", OF_BLOCKS, BLOCKS, "allocation"), ("calls", OF_CALLS, CALLS, "event")):
            for name, (dx, sql, expression, condition, passes) in conditions.items():
                chosen = passes and [row for row in self.rows[of] if passes(row)]
                frame = self.frames[of].filter(expression)
                self.check(f"count of {of}, {name}", {
                    "dx": self.trace.dx(f"{collection}.Where(b => {dx}).Count()"), "polars": frame.height,
                    "SQL": self.trace.sql(f"select count(*) from {table} where {sql}").fetchall()[0][0], "plan": self.trace.query(count(), where=condition, table=table).table()[0].count,
                    "dump": chosen if chosen is None else len(chosen)})
                # Only these calls ask for bytes.
                asking = ('b.Action == "Alloc" || b.Action == "ReAlloc"', "action in ('Alloc', 'ReAlloc')", pl("action").is_in(["Alloc", "ReAlloc"]),
                          col("action").is_in(["Alloc", "ReAlloc"])) if of == "calls" else ("true", "true", polars.lit(True), col("size") >= 0)
                self.check(f"bytes of {of}, {name}", {
                    "dx": self.trace.dx(f"{collection}.Where(b => {asking[0]}).Where(b => {dx}).Sum(b => b.Size)"),
                    "SQL": int(self.trace.sql(f"select coalesce(sum(size), 0) from {table} where {sql} and {asking[1]}").fetchall()[0][0]),
                    "polars": frame.filter(asking[2])["size"].sum(),
                    "plan": self.trace.query(col("size").sum(), where=condition & asking[3], table=table).table()[0].sum_size,
                    "dump": chosen if chosen is None else sum(row.get("size", 0) for row in chosen if row.get("action") in (None, "Alloc", "ReAlloc"))})

    def ask_groups(self):
        for (of, name), (dx, sql, key, column, find) in KEYS.items():
            table, collection = ("allocation", BLOCKS) if of == "blocks" else ("event", CALLS)
            groups = collections.Counter(find(row) for row in self.rows[of]) if find else None
            answer = self.trace.dx(f"{collection}.GroupBy(b => {dx}).Select(g => g.Count())")
            self.check(f"{of} by {name}", {
                "dx": {number(row.index): row.value for row in answer},
                "SQL": dict(self.trace.sql(f"select {sql}, count(*) from {table} group by all").fetchall()),
                "polars": dict(self.frames[of].group_by(key.alias("key")).len().rows()),
                "plan": {row[0]: row.count for row in self.trace.query(count(), by=column, table=table)},
                "dump": groups and dict(groups)})

    def ask_orders(self):
        for (of, name), (dx, column, find) in ORDERS.items():
            table, collection = ("allocation", BLOCKS) if of == "blocks" else ("event", CALLS)
            values = sorted(find(row) for row in self.rows[of])
            for which, by, minus, order in (("largest", "OrderByDescending", "-", "desc"), ("smallest", "OrderBy", "", "asc")):
                self.check(f"{of}: {which} {name}", {
                    "dx": [number(row.value) for row in self.trace.dx(f"{collection}.{by}(b => {dx}).Select(b => {dx}).Take(5)")],
                    "SQL": [row[0] for row in self.trace.sql(f"select {column} from {table} order by {column} {order} limit 5").fetchall()],
                    "polars": self.frames[of][column].sort(descending=minus == "-").head(5).to_list(),
                    "plan": [row[0] for row in self.trace.query(column, order=minus + column, limit=5, table=table)],
                    "dump": values[::-1][:5] if minus else values[:5]})

    def ask_joins(self):
        blocks, rows = self.frames["blocks"], self.rows["blocks"]
        previous = blocks.join(blocks.select("id", pl("size").alias("size_before")), left_on="previous_id", right_on="id")
        sizes = {row["id"]: row["size"] for row in rows}
        self.check("blocks that a realloc made larger", {
            "dx": self.trace.dx(f"{BLOCKS}.Where(b => b.IsRealloc).Where(b => b.Previous.Size < b.Size).Count()"),
            "SQL": self.trace.sql("select count(*) from allocation a join allocation b on a.previous_id = b.id where b.size < a.size").fetchall()[0][0],
            "polars": previous.filter(pl("size_before") < pl("size")).height,
            "dump": sum(sizes[row["previous_id"]] < row["size"] for row in rows if "previous_id" in row)})
        texts = {row["stack_id"]: row["stack"] for row in self.dumped_stacks()}
        whole = self.trace.allocations(columns=["function", "stack", "size"])
        connection = duckdb.connect()
        connection.register("whole", whole)
        sums = collections.Counter()
        for row in rows:
            sums[row["function"], texts.get(row.get("stack_id"), "")] += row["size"]
        # The innermost frame of dx is the function.
        self.check("bytes by function and whole stack, the most first", {
            "dx": sorted((row.Bytes for row in self.trace.dx(f"{BLOCKS}.GroupBy(b => b.Stack).Select(g => new {{ Bytes = g.Sum(b => b.Size) }})")), reverse=True),
            "SQL": [int(row[0]) for row in connection.sql("select sum(size) as bytes from whole group by function, stack order by bytes desc").fetchall()],
            "polars": polars.DataFrame(whole).group_by("function", "stack").agg(pl("size").sum()).sort("size", descending=True)["size"].to_list(),
            "dump": sorted(sums.values(), reverse=True)})

    def dumped_stacks(self):
        return [json.loads(line) for line in xheap("dump", self.path, "-stacks", "-wholeStacks", "-format", "json").splitlines()]

    def check_consumers(self):
        for name in ("allocation", "event", "stack", "frame", "function", "thread", "process", "heap", "image"):
            rows = self.trace.table(name)
            table = pyarrow.table(rows)
            table.validate(full=True)
            plain = list(rows)
            same(f"{self.path}: {name}: rows of pyarrow", table.num_rows, len(plain))
            same(f"{self.path}: {name}: rows of polars", polars.DataFrame(rows).height, len(plain))
            same(f"{self.path}: {name}: rows of pandas", len(pandas.DataFrame.from_arrow(rows)), len(plain))
            same(f"{self.path}: {name}: values", [tuple(row.values()) for row in table.to_pylist()], [tuple(row) for row in plain])
        relation = self.trace.sql("select id, size from allocation where size > 50")
        same(f"{self.path}: a relation twice", relation.fetchall(), relation.fetchall())
        same(f"{self.path}: a relation of a relation", self.trace.sql("select id, size from allocation").filter("size > 50").fetchall(), relation.fetchall())
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.trace.sql("select count(*) from allocation").fetchall())) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        same(f"{self.path}: threads that ask", answers, [[(len(self.rows["blocks"]),)]] * 3)
        self.trace.sql("select function, size, birth_ns from allocation order by id").write_parquet("blocks.parquet")
        same(f"{self.path}: Parquet", duckdb.sql("select size from 'blocks.parquet'").fetchall(), [(row["size"],) for row in self.rows["blocks"]])


def main():
    for path in FILES:
        asked = Asked(path)
        asked.ask_conditions()
        asked.ask_groups()
        asked.ask_orders()
        asked.ask_joins()
        asked.check_consumers()
        expect(asked.questions >= 50, f"{asked.questions} questions are not fifty")
        # Streams outlive their trace, and what they are made of.
        rows = asked.trace.allocations()
        reader = pyarrow.RecordBatchReader.from_stream(rows)
        relation = asked.trace.sql("select count(*) from allocation")
        asked.trace.close()
        for work in lambda: asked.trace.sql("select 1"), relation.fetchall:
            try:
                work()
                expect(False, f"{path}: SQL over a closed trace")
            except Exception as error:
                expect("is closed" in str(error), f"{path}: SQL over a closed trace: {error}")
        del rows
        same(f"{path}: rows of a closed trace", sum(batch.num_rows for batch in reader), len(asked.rows["blocks"]))
    print(f"{len(FILES)} traces, {asked.questions} questions")
    finish()


main()
