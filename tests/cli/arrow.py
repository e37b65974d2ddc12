#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rows through Arrow's C stream interface in the programs that they are for: pyarrow finds them valid; pandas, polars and DuckDB have the values and the answers of
xheap dump and xheap heap. tests/unit/api_arrow has the rules of the interface."""
import collections
import csv
import ctypes
import json
import os
import pathlib
import subprocess
import sys

XHEAP, BUILD, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["BUILD"]).resolve(), pathlib.Path(os.environ["SOURCE"]).resolve()
sys.path.insert(0, str(SOURCE / "tests/python"))
import packages  # noqa: E402

GOLDEN = SOURCE / "tests/golden"
TABLES = "allocation event stack frame function thread process heap image".split()
NOTHING = 2**32 - 1
SKIP = 77


def expect(condition, what):
    if not condition:
        sys.exit(what)


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(done.returncode == 0, f"{words}: {done.returncode}: {done.stderr.strip()}")
    return done.stdout


# ---- the library ----

class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("system_error", ctypes.c_int32), ("text", ctypes.c_char * 512)]


class Query(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("table", ctypes.c_uint32), ("filter", ctypes.c_void_p), ("columns", ctypes.POINTER(ctypes.c_char_p)), ("column_count", ctypes.c_size_t),
                ("batch_rows", ctypes.c_uint32), ("plan", ctypes.c_void_p)]


class Stream(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")]


class Trace:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(BUILD / "src/api/libxheap.so"))
        self.handle = ctypes.c_void_p()
        for name in "column number time word apply lookup output key aggregate".split():
            getattr(self.library, f"xheap_plan_{name}").restype = ctypes.c_uint32
        self.call("xheap_trace_open", str(path).encode(), None, ctypes.byref(self.handle))

    def call(self, name, *words):
        error = Error()
        expect(getattr(self.library, name)(*words, ctypes.byref(error)) == 0, f"{name}: {error.text.decode()}")

    def read(self, table, *columns, batch_rows=0, plan=None):
        import pyarrow
        query, stream = Query(), Stream()
        self.library.xheap_query_init(ctypes.byref(query), ctypes.c_size_t(ctypes.sizeof(query)))
        query.table, query.batch_rows, query.plan = TABLES.index(table), batch_rows, plan
        query.columns, query.column_count = (ctypes.c_char_p * len(columns))(*[name.encode() for name in columns]), len(columns)
        self.call("xheap_query_arrow", self.handle, ctypes.byref(query), ctypes.byref(stream))
        return pyarrow.RecordBatchReader._import_from_c(ctypes.addressof(stream))

    def table(self, name, *columns, **more):
        rows = self.read(name, *columns, **more).read_all()
        rows.validate(full=True)
        return rows


def dumped(path, what, *words):
    return list(csv.DictReader(run(XHEAP, "dump", path, what, "-format", "csv", *words).splitlines()))


# ---- values ----

def as_dumped(name, value):
    if value is None:
        return {"result": "in-flight"}.get(name, "")
    return f"0x{value:x}" if name in ("heap", "address", "previous_address") else str(value)


def check_values(trace, path):
    for table, what in (("allocation", "-allocations"), ("event", "-events")):
        wanted = dumped(path, what)
        for batch_rows in (1, 1000, 0) if len(wanted) < 1000 else (0,):
            rows = trace.table(table, batch_rows=batch_rows)
            expect(rows.num_rows == len(wanted), f"{path.name}: {rows.num_rows} rows of {table}, not {len(wanted)}")
            for name in rows.column_names:
                if wanted and name in wanted[0]:
                    seen = [as_dumped(name, value) for value in rows[name].to_pylist()]
                    expect(seen == [row[name] for row in wanted], f"{path.name}: {table}.{name} is not that of dump")
            left = {"args"} if table == "event" else set()
            expect(not wanted or set(wanted[0]) - set(rows.column_names) == left, f"{table}: columns {rows.column_names} lack some of {list(wanted[0])}")


def check_stacks(trace, path):
    import duckdb
    stack, frame = trace.table("stack"), trace.table("frame")
    wanted = {int(row["stack_id"]): row["stack"] for row in dumped(path, "-stacks", "-wholeStacks")}
    texts = trace.table("stack", "id", "stack")
    seen = dict(zip(texts["id"].to_pylist(), texts["stack"].to_pylist()))
    expect({id: seen[id] for id in wanted} == wanted, f"{path.name}: stacks as texts are not those of dump")
    names = dict(zip(frame["id"].to_pylist(), frame["name"].to_pylist()))
    nodes = {id: (parent, names[of]) for id, parent, of in zip(*(stack[name].to_pylist() for name in ("id", "parent", "frame")))}
    expect(len(nodes) == stack.num_rows and len(names) == frame.num_rows, f"{path.name}: ids are not unique")
    for id, text in seen.items():
        found = []
        while id is not None:
            id, name = nodes[id]
            found.append(name)
        expect(";".join(found) == text, f"{path.name}: {found} is not {text}")
    if not wanted:
        return
    connection = duckdb.connect()
    connection.register("stack", stack)
    connection.register("frame", frame)
    rows = connection.execute("""with recursive walk(root, id, frame, depth) as (select id, parent, frame, 0 from stack union all
        select root, stack.parent, stack.frame, depth + 1 from walk join stack on stack.id = walk.id)
        select root, string_agg(name, ';' order by depth) from walk join frame on frame.id = walk.frame group by root""").fetchall()
    expect(dict(rows) == seen, f"{path.name}: stacks in DuckDB")


def check_answers(trace, path):
    """Bytes of the allocating functions and stacks, in polars, DuckDB and pandas, and by a plan."""
    import duckdb
    import pandas
    import polars
    totals = json.loads(run(XHEAP, "heap", path, "-totals", "-format", "json"))["totals"]
    rows = trace.table("allocation")
    began = polars.from_arrow(rows).filter(polars.col("birth_ns").is_not_null())
    expect((began["weight_bytes"].sum(), began["weight_count"].sum()) == (totals["total_bytes"], totals["total_count"]), f"{path.name}: sums in polars")
    wanted = collections.Counter()
    for stack, size, birth in zip(*(rows[name].to_pylist() for name in ("stack_id", "size", "birth_ns"))):
        wanted[stack] += size
    connection = duckdb.connect()
    connection.register("allocation", rows)
    seen = dict(connection.execute("select stack_id, sum(size) from allocation group by stack_id").fetchall())
    expect(seen == wanted, f"{path.name}: sums in DuckDB")
    frame = rows.to_pandas()
    expect(isinstance(frame["function"].dtype, pandas.CategoricalDtype) and int(frame["size"].sum()) == sum(wanted.values()), f"{path.name}: sums in pandas")
    library, plan = trace.library, ctypes.c_void_p()
    trace.call("xheap_plan_new", 0, ctypes.byref(plan))
    library.xheap_plan_key(plan, library.xheap_plan_column(plan, b"stack_id"), None)
    order = library.xheap_plan_aggregate(plan, b"sum", library.xheap_plan_column(plan, b"size"), b"bytes")
    library.xheap_plan_order(plan, order, 1)
    summed = trace.table("allocation", plan=plan)
    library.xheap_plan_free(plan)
    expect(dict(zip(summed["stack_id"].to_pylist(), summed["bytes"].to_pylist())) == wanted, f"{path.name}: sums of a plan")
    sizes = summed["bytes"].to_pylist()
    expect(sizes == sorted(sizes, reverse=True), f"{path.name}: the plan's order")


def check_one_reading(trace):
    import duckdb
    reader = trace.read("allocation")
    reader.read_all()
    connection = duckdb.connect()
    connection.register("reader", reader)
    for again in (reader.read_all, lambda: connection.execute("select count(*) from reader").fetchall()):
        try:
            seen = again()
        except Exception as error:
            expect("read once" in str(error), f"a second reading: {error}")
        else:
            sys.exit(f"a second reading gave {seen}")


def check_all():
    traces = [path for path in sorted((GOLDEN / "traces").glob("*.xht"))]
    for scene in "plain", "forks", "losses":
        run(BUILD / "tests/golden/make_trace", scene, f"{scene}.xht")
        traces.append(pathlib.Path(f"{scene}.xht"))
    for path in traces:
        trace = Trace(path)
        for name in TABLES:
            trace.table(name, batch_rows=7)
        check_values(trace, path)
        check_stacks(trace, path)
        check_answers(trace, path)
    check_one_reading(trace)


def main():
    imported = subprocess.run(["nm", "-D", "--undefined-only", BUILD / "src/api/libxheap.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
    if "__asan_" in imported or "__tsan_" in imported:
        print("skipped: a library with a sanitizer in it needs a program that has it, too")
        sys.exit(SKIP)
    if not packages.use():
        print("skipped: there are no pyarrow, polars, pandas and duckdb: tests/python/packages.py installs them")
        sys.exit(SKIP)
    check_all()


main()
