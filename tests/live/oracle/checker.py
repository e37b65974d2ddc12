#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the checker: a dump made of the oracle's own log agrees with it, and any fault put into it is found."""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

import compare
from live import PROGRAMS, SOURCE, for_preload

COLUMNS = ("seq,time_ns,duration_ns,process,pid,tid,action,function,heap,address,previous_address,size,usable,args,"
           "result,stack_id").split(",")


STACK_COLUMNS = ("stack_id", "parent_id", "image", "offset")


def make_row(call, pid, tid):
    action = "Free" if call.ended and not call.begun and not call.failed else "ReAlloc" if call.ended else "Alloc"
    address = call.ended if action == "Free" else call.begun
    return {"process": 0, "pid": pid, "tid": tid, "action": action, "function": call.function,
            "address": hex(address) if address else "", "size": call.size,
            "previous_address": hex(call.ended) if action == "ReAlloc" else ""}


def make_rows(log):
    return [make_row(call, pid, tid) for pid, threads in log.processes.items() for tid, calls in threads.items()
            for call in calls]


def make_nodes(log, rows):
    """The log's stacks as a trace has them, and each row's among them."""
    nodes, ids = [], {}
    calls = [call for threads in log.processes.values() for calls in threads.values() for call in calls]
    for call, row in zip(calls, rows):
        node = 0
        for image, offset in reversed(call.stack):
            if (node, image, offset) not in ids:
                ids[node, image, offset] = len(nodes) + 1
                nodes.append({"stack_id": len(nodes) + 1, "parent_id": node, "image": f"image {image}", "offset": hex(offset)})
            node = ids[node, image, offset]
        row["stack_id"] = node
    return nodes


def write_rows(path, columns, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def differs(logs, rows, order, scratch, nodes=()):
    command = [SOURCE / "tests/live/compare.py", "--order", order, logs, write_rows(scratch / "dump.csv", COLUMNS, rows)]
    if nodes:
        command[1:1] = ["--stacks", write_rows(scratch / "stacks.csv", STACK_COLUMNS, nodes)]
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


def truncate(rows, nodes):
    """Every stack without its outermost frame, and marked so."""
    for node in nodes:
        if not node["parent_id"]:
            node.update(image="", offset="")


def node_of(rows, nodes, index):
    return nodes[rows[index]["stack_id"] - 1]


def exchange(rows, nodes):
    other = next(row for row in rows if row["stack_id"] != rows[100]["stack_id"])
    rows[100]["stack_id"], other["stack_id"] = other["stack_id"], rows[100]["stack_id"]


STACK_FAULTS = {
    "a frame has another place": lambda rows, nodes: node_of(rows, nodes, 90).update(offset="0x123"),
    "a frame has another image": lambda rows, nodes: node_of(rows, nodes, 90).update(image="image 1"),
    "the outer frames are missing": lambda rows, nodes: node_of(rows, nodes, 90).update(parent_id=0),
    "the innermost frame is missing": lambda rows, nodes: rows[90].update(stack_id=node_of(rows, nodes, 90)["parent_id"]),
    "a stack is missing": lambda rows, nodes: rows[90].update(stack_id=0),
    "a call has the stack of another": exchange,
    "hardly a stack is whole": truncate,
}


def run_logged(program, logs, **settings):
    """Its log, and the rows of a trace that agrees with it."""
    logs.mkdir()
    subprocess.run([f"{PROGRAMS}/{program}", "3", "300"], env=dict(os.environ, CALL_LOG=str(logs), **settings),
                   stdout=subprocess.DEVNULL, check=True)
    log = compare.Log(next(logs.glob("*.calls")))
    return log, make_rows(log)


def check_stacks(scratch):
    logs = scratch / "logs-of-stacks"
    log, rows = run_logged("churn", logs, CALL_STACKS="1", LD_PRELOAD=for_preload("oracle.so"))
    nodes = make_nodes(log, rows)
    failed = ["stacks: finds faults where none are"] if differs(logs, rows, "exact", scratch, nodes) else []
    for what, change in STACK_FAULTS.items():
        changed = [dict(row) for row in rows], [dict(node) for node in nodes]
        change(*changed)
        if not differs(logs, changed[0], "exact", scratch, changed[1]):
            failed.append(f"stacks: does not find that {what}")
    return failed


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        logs = scratch / "logs"
        _, rows = run_logged("churn_wrapped", logs)
        failed = [f"{order}: finds faults where none are" for order in compare.ORDERS if differs(logs, rows, order, scratch)]
        for what, (change, orders) in FAULTS.items():
            changed = [dict(row) for row in rows]
            change(changed)
            failed += [f"{order}: does not find that {what}" for order in orders
                       if not differs(logs, changed, order, scratch)]
        failed += check_stacks(scratch)
    print("\n".join(failed) or f"{len(rows)} events, {len(FAULTS) + len(STACK_FAULTS)} faults found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
