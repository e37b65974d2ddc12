#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the checker: a dump made of the oracle's own log agrees with it, and any fault put into it is found."""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", HERE.parent.parent / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import compare  # noqa: E402

COLUMNS = ("seq,time_ns,duration_ns,process,pid,tid,action,function,heap,address,previous_address,size,usable,args,"
           "result,stack_id").split(",")


def make_row(call, pid, tid):
    action = "Free" if call.ended and not call.begun and not call.failed else "ReAlloc" if call.ended else "Alloc"
    address = call.ended if action == "Free" else call.begun
    return {"process": 0, "pid": pid, "tid": tid, "action": action, "function": call.function,
            "address": hex(address) if address else "", "size": call.size,
            "previous_address": hex(call.ended) if action == "ReAlloc" else ""}


def make_rows(log):
    return [make_row(call, pid, tid) for pid, threads in log.processes.items() for tid, calls in threads.items()
            for call in calls]


def differs(logs, rows, order, scratch):
    dump = scratch / "dump.csv"
    with open(dump, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)
    command = [HERE / "compare.py", "--order", order, logs, dump]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode


def swap(rows):
    other = next(index for index in range(101, len(rows)) if rows[index]["tid"] == rows[100]["tid"]
                 and rows[index]["address"] != rows[100]["address"])
    rows[100], rows[other] = rows[other], rows[100]


# Each makes one fault, and names the orders that must find it.
FAULTS = {
    "an event is missing": (lambda rows: rows.pop(100), ("exact", "contains", "unordered", "finished")),
    "an event is there twice": (lambda rows: rows.insert(100, rows[100]), ("exact", "unordered")),
    "two events are swapped": (swap, ("exact", "contains", "finished")),
    "a size is wrong": (lambda rows: next(row for row in rows if row["action"] == "Alloc").update(size=12345678),
                        ("exact", "contains", "unordered", "finished")),
    "an address is wrong": (lambda rows: rows[50].update(address="0x10"), ("exact", "contains", "unordered", "finished")),
    "an event has another thread": (lambda rows: rows[70].update(tid=1), ("exact", "contains", "unordered", "finished")),
    "a function has another name": (lambda rows: rows[80].update(function="valloc"),
                                    ("exact", "contains", "unordered", "finished")),
    "a process is not in the log": (lambda rows: rows.append(dict(rows[0], process=9, pid=1)),
                                    ("exact", "contains", "unordered", "finished")),
}


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        logs = scratch / "logs"
        logs.mkdir()
        subprocess.run([BUILD / "tests/live/churn_wrapped", "3", "300"], env=dict(os.environ, CALL_LOG=str(logs)),
                       stdout=subprocess.DEVNULL, check=True)
        rows = make_rows(compare.Log(next(logs.glob("*.calls"))))
        failed = [f"{order}: finds faults where none are" for order in compare.ORDERS if differs(logs, rows, order, scratch)]
        for what, (change, orders) in FAULTS.items():
            changed = [dict(row) for row in rows]
            change(changed)
            failed += [f"{order}: does not find that {what}" for order in orders
                       if not differs(logs, changed, order, scratch)]
    print("\n".join(failed) or f"{len(rows)} events, {len(FAULTS)} faults found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
