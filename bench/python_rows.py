#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processor time of a trace's rows in Python: plain rows, polars and DuckDB where they are installed, and a question that the library computes.

usage: XHEAP=build/xheap PYTHONPATH=WHEEL-OR-FOLDER bench/python_rows.py TRACE
"""
import resource
import sys

import xheap

COLUMNS = ["id", "function", "size", "birth_ns", "end_ns", "end_kind"]


def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ways(trace):
    six = trace.allocations(columns=COLUMNS)
    yield "plain rows, six columns", lambda: sum(1 for _ in six)
    yield "plain rows, all columns", lambda: sum(1 for _ in trace.allocations())
    yield "a question: bytes by stack", lambda: len(list(trace.query(xheap.col("size").sum(), by="stack_id")))
    try:
        import polars
        yield "polars, six columns", lambda: polars.DataFrame(six).height
        yield "polars, all columns", lambda: polars.DataFrame(trace.allocations()).height
    except ImportError as missing:
        print(missing, file=sys.stderr)
    try:
        import duckdb  # noqa: F401
        yield "DuckDB: bytes by innermost frame", lambda: len(trace.sql(
            "select f.name, sum(a.size) from allocation a join stack s on s.id = a.stack_id join frame f on f.id = s.frame group by all").fetchall())
    except ImportError as missing:
        print(missing, file=sys.stderr)


def main():
    with xheap.open(sys.argv[1]) as trace:
        blocks = trace.query(xheap.count()).table()[0].count
        print(f"{blocks:,} blocks")
        for name, work in ways(trace):
            before = seconds()
            rows = work()
            took = seconds() - before
            print(f"{name:34} {rows:12,} rows  {took:6.2f} s  {blocks / took / 1e6:6.1f} million blocks a second")


main()
