#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares logs of calls (calls.h) with `xheap dump --events --format csv`, event by event.

usage: compare.py [--order exact|contains|unordered|finished] [--before STAMP] [--unlogged N] [--cut PERCENT] [--stacks STACKS.csv] LOGS [DUMP.csv]

Without a dump the logs are only checked against themselves: no call is lost, and no address is handed out twice.

exact      per process and thread both have the same events in the same order
contains   the log's events are a subsequence of the dump's (for logs that do not see the library's own calls)
unordered  the same events, in any order (a signal handler may run between the log's stamp and the recorder's)
--stacks (a `xheap dump --stacks --format csv`) also holds the stacks that the oracle unwound (stacks.c) against those of the
trace: image and offset of every frame from the allocator's caller on, unless the trace says that it is truncated.

finished   each call that the log saw return (before STAMP of its clock) is in the dump, in order: for what was killed
"""
import argparse
import collections
import csv
import glob
import mmap
import os
import struct
import sys

HEADER = struct.Struct("<IIQQQQII")
RECORD = struct.Struct("<IHHIIQQQQQQ")
HEADER_BYTES, NAMES_AT, NAME_BYTES, NAMES = 4096, HEADER.size, 32, 64
PATH_AT = NAMES_AT + NAME_BYTES * NAMES
ENTERED, RETURNED = 1, 2
LARGEST = (1 << 64) - 1
CUT = (0, 0)
NOT_DONE = 0xffffffff  # index of a stack whose thread ended in the middle
# Functions that share an entry in some libraries, so that the recorder can know only one of the names.
SAME = {"aligned_alloc": "memalign", "cfree": "free", "_Znwm": "operator new", "_ZdlPv": "operator delete", "_ZdlPvm": "operator delete"}
OWN = ("VALGRIND_", "_PyObject_Arena")  # functions of the program that the log does not know
PYTHON_OFFSET = 1 << 48  # and higher: frames that are no places in files
FREES = {"free", "cfree", "free_sized", "free_aligned_sized", "operator delete"}

# Parameters by function, as the dump's args column has them; the log has their values in the same order.
PARAMETERS = {"malloc": ("size",), "calloc": ("count", "size"), "realloc": ("pointer", "size"),
              "reallocarray": ("pointer", "count", "size"), "free": ("pointer",), "memalign": ("alignment", "size"),
              "posix_memalign": ("memptr", "alignment", "size"), "valloc": ("size",), "pvalloc": ("size",)}
POINTERS = {"pointer", "memptr"}

# A call: what it ended, what it began (0: nothing), the size asked for, and whether it returned. What follows the point is
# known in other forms on both sides: arguments are values in a log and text in a dump, a stack is frames or an id.
Call = collections.namedtuple("Call", "function ended begun size failed returned point arguments error usable stack",
                              defaults=(None, 0, 0, None))


class Log:
    """One file: the calls of an executed image and of what it forked, by pid, then by thread."""

    def __init__(self, path, before=1 << 62):
        self.path, self.before = path, before
        self.processes = collections.defaultdict(lambda: collections.defaultdict(list))
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            magic, count, capacity, reserved, _, self.start, self.pid, self.second = HEADER.unpack_from(data)
            if magic != 0x4C4C4143:
                raise SystemExit(f"compare: {path}: not a log")
            self.names = [text(data, NAMES_AT + i * NAME_BYTES, NAME_BYTES) for i in range(count)]
            self.image = text(data, PATH_AT, 1024)
            self.lost = max(0, reserved - capacity)
            stacks = read_log_stacks(str(path)[:-len("calls")] + "stacks")
            for index in range(min(reserved, capacity)):
                record = RECORD.unpack_from(data, HEADER_BYTES + index * RECORD.size)
                if record[0] in (ENTERED, RETURNED):
                    self.add(record, stacks.get(index))
        for threads in self.processes.values():
            for calls in threads.values():
                calls.sort(key=lambda call: call.point)

    def add(self, record, stack):
        state, function, error, pid, tid, entered, returned, first, second, third, result = record
        name = self.names[function]
        call = make_call(SAME.get(name, name), first, second, third, result,
                         state == RETURNED and returned < self.before, entered, returned)
        if call:
            call = call._replace(arguments=(first, second, third), error=error, stack=stack)
            self.processes[pid][tid].append(call)


def read_log_stacks(path):
    """Frames (hash of the image's name, offset), innermost first, by the call's index; CUT where the unwinder had no table to go on."""
    stacks = {}
    if not os.path.exists(path):
        return stacks
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at, end = 8, 8 + struct.unpack_from("<Q", data)[0]
        while at < end:
            index, count = struct.unpack_from("<II", data, at)
            if not index and not count:  # its thread ended before it was begun
                at += 8
                continue
            is_cut, count = count >> 31, count & 0x7fffffff
            if index != NOT_DONE:
                stacks[index] = list(struct.iter_unpack("<QQ", data[at + 8:at + 8 + count * 16])) + [CUT] * is_cut
            at += 8 + count * 16
    return stacks


def text(data, at, size):
    return data[at:at + size].split(b"\0", 1)[0].decode(errors="replace")


def size_of(name, first, second, third):
    """A product that overflows is more than there is: as a trace has it, the largest number."""
    if name in ("malloc", "valloc", "pvalloc", "operator new"):
        return first
    if name == "calloc":
        return min(first * second, LARGEST)
    if name == "reallocarray":
        return min(second * third, LARGEST)
    if name == "posix_memalign":
        return third
    return second


def make_call(name, first, second, third, result, returned, entered, end):
    point = end if returned else 1 << 62
    size = size_of(name, first, second, third)
    if name in FREES:
        return Call(name, first, 0, 0, False, returned, entered) if first else None
    old = first if name in ("realloc", "reallocarray") else 0
    # realloc(p, 0) that frees returns NULL without an error.
    if old and size == 0 and returned and not result:
        return Call(name, old, 0, 0, False, returned, entered)
    failed = returned and not result
    return Call(name, 0 if failed else old, result, size, failed, returned, point)


def read_dump(path):
    """The dump's processes: pid and, by thread, calls; in the order of their ids."""
    processes = {}
    number = lambda value: int(value, 0) if value else 0
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            # What a library tells Valgrind, as GLib does of its types, the log does not have: it is no allocator's function.
            if row["action"] not in ("Alloc", "ReAlloc", "Free") or row["function"].startswith(OWN):
                continue
            process = processes.setdefault(number(row["process"]), (number(row["pid"]), collections.defaultdict(list)))
            name = SAME.get(row["function"], row["function"])
            address, previous, size = number(row["address"]), number(row["previous_address"]), number(row["size"])
            if row["action"] == "Free":
                if not address:
                    continue
                call = Call(name, address, 0, 0, False, True, 0)
            else:
                call = Call(name, previous if address else 0, address, size, not address, True, 0)
            call = call._replace(arguments=row["args"], usable=number(row["usable"]), stack=number(row["stack_id"]),
                                 error=int(row["result"]) if row["result"].isdigit() else 0)
            process[1][number(row["tid"])].append(call)
    return [processes[key] for key in sorted(processes)]


def key(call):
    return call[:5]


def show(call):
    if call is None:
        return "nothing"
    return (f"{call.function} ended={call.ended:#x} begun={call.begun:#x} size={call.size}"
            f"{' failed' if call.failed else ''}{'' if call.returned else ' (did not return)'}")


def optional(call):
    """A call that did not return may be in the dump (it had, or it is known to be in flight) or not."""
    return not call.returned


def same_unfinished(call, event):
    return call.function == event.function and call.ended == event.ended and (call.begun == 0 or call.begun == event.begun)


def arguments_text(call):
    """The arguments as a dump has them; None where the dump has another function's."""
    names = PARAMETERS.get(call.function)
    if not names:
        return None
    return ";".join(f"{name}={value:#x}" if name in POINTERS else f"{name}={value}"
                    for name, value in zip(names, call.arguments))


def differ_details(call, event):
    """What else must agree of a call and its event."""
    expected = arguments_text(call)
    if expected and event.arguments and event.arguments != expected:
        return f"arguments {expected}, in the trace {event.arguments}"
    if call.failed and call.error != event.error:
        return f"error {call.error}, in the trace {event.error}"
    if call.begun and event.usable and event.usable < call.size:
        return f"usable size {event.usable} of {call.size} bytes"
    return STACKS.differ(call.stack, event.stack) if STACKS and call.stack is not None else None


class Stacks:
    """The trace's stacks, and which image of the trace is which image of the log."""

    def __init__(self, path):
        self.nodes, self.checked, self.truncated, self.cut = {}, 0, 0, 0
        self.evaluations = set()  # frames of the log in whose place Python frames were
        self.images = {}  # of this process: the log knows the program itself by an empty name
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                self.nodes[int(row["stack_id"])] = (int(row["parent_id"]), row["image"], PYTHON_OFFSET if row.get("kind") == "python" else int(row["offset"] or "0", 0))

    def frames(self, node):
        """Innermost first, as the log has them."""
        frames = []
        while node in self.nodes:
            node, image, offset = self.nodes[node]
            frames.append((image, offset))
        return frames

    def without_evaluations(self, logged, traced):
        """Python frames stand in the place of evaluations by the interpreter (live/target/python_frames compares them): both are left out. An evaluation whose frame is
        only being made has none: it is known by its offset, which is one of the interpreter's loop."""
        if not any(offset == PYTHON_OFFSET for _, offset in traced) and not self.evaluations:
            return logged, traced
        kept, native, i, at, is_replaced = [], [], 0, 0, False
        while at < len(logged) and (i < len(traced) or is_replaced):
            image, offset = traced[i] if i < len(traced) else ("", -1)
            if offset == PYTHON_OFFSET:
                is_replaced = True
                i += 1
            elif logged[at][1] == offset:
                kept.append(logged[at])
                native.append(traced[i])
                i, at, is_replaced = i + 1, at + 1, False
            elif is_replaced or logged[at] in self.evaluations:
                self.evaluations.add(logged[at])
                at += 1
            else:
                break
        return kept + logged[at:], native + traced[i:]

    def differ(self, logged, node):
        traced = self.frames(node)
        while traced and os.path.basename(traced[0][0]) == "oracle.so":
            traced.pop(0)
        is_truncated = bool(traced) and not traced[-1][0]
        if is_truncated:
            self.truncated += 1
            traced.pop()
            logged = logged[:len(traced)]
        self.checked += 1
        logged, traced = self.without_evaluations(logged, traced)
        if logged and logged[-1] == CUT:
            logged = logged[:-1]
            self.cut += len(traced) > len(logged)
            traced = traced[:len(logged)]
        if len(traced) != len(logged):
            return f"stack of {len(logged)} frames, in the trace {len(traced)}\n{self.show(logged, traced)}"
        for (image, offset), (path, place) in zip(logged, traced):
            if offset != place or self.images.setdefault(image, path) != path:
                return f"stacks differ\n{self.show(logged, traced)}"
        return None

    @staticmethod
    def show(logged, traced):
        lines = []
        for index in range(max(len(logged), len(traced))):
            ours = f"{logged[index][0]:016x}+{logged[index][1]:#x}" if index < len(logged) else ""
            theirs = f"{traced[index][0]}+{traced[index][1]:#x}" if index < len(traced) else ""
            lines.append(f"  {ours:32} {theirs}")
        return "\n".join(lines[:40])


STACKS = None


def differ_exact(calls, events):
    at = 0
    for index, call in enumerate(calls):
        event = events[at] if at < len(events) else None
        if event is not None and key(call) == key(event):
            at += 1
            reason = differ_details(call, event)
            if reason:
                return f"call {index}: {show(call)}: {reason}"
        elif optional(call):
            if event is not None and same_unfinished(call, event) and not any(
                    key(later) == key(event) for later in calls[index + 1:index + 3]):
                at += 1
        else:
            return f"call {index}: log has {show(call)}, trace has {show(event)}"
    if at < len(events):
        return f"after {len(calls)} calls the trace has {len(events) - at} more: {show(events[at])}"
    return None


def differ_contains(calls, events):
    at = 0
    for index, call in enumerate(calls):
        begin = at
        while at < len(events) and key(events[at]) != key(call):
            at += 1
        if at == len(events):
            if not optional(call):
                return f"call {index}: log has {show(call)}, not in the trace after its event {begin}"
            at = begin
        else:
            reason = differ_details(call, events[at])
            if reason and optional(call):
                at = begin  # another call's event
                continue
            if reason:
                return f"call {index}: {show(call)}: {reason}"
            at += 1
    return None


def differ_unordered(calls, events):
    logged = collections.Counter(key(call) for call in calls if call.returned)
    traced = collections.Counter(key(event) for event in events)
    for call, count in (logged - traced).items():
        return f"{count} times in the log only: {show(Call(*call, True, 0))}"
    extra = traced - logged
    for call in calls:
        if optional(call):
            match = next((event for event in extra if same_unfinished(call, Call(*event, True, 0))), None)
            if match:
                extra[match] -= 1
                extra += collections.Counter()
    for event, count in extra.items():
        return f"{count} times in the trace only: {show(Call(*event, True, 0))}"
    return None


# A call of a killed process that the log did not see return may still have been recorded: events behind the last
# one of the log are no error.
ORDERS = {"exact": differ_exact, "contains": differ_contains, "unordered": differ_unordered, "finished": differ_contains}


def differ_process(order, pid, threads, traced):
    if STACKS:
        STACKS.images = {}
    for tid, calls in threads.items():
        reason = ORDERS[order](calls, traced.get(tid, []))
        if reason:
            return f"pid {pid} thread {tid}: {reason}"
    if order not in ("contains", "finished"):
        for tid in traced:
            if tid not in threads:
                return f"pid {pid} thread {tid}: the trace has {len(traced[tid])} events, the log none"
    return None


def compare(logs, processes, order, unlogged):
    """Generations of a pid are matched in the order in which they were executed."""
    traced = collections.defaultdict(list)
    for pid, threads in processes:
        traced[pid].append(threads)
    current, failures, checked, events = {}, [], 0, 0
    for log in logs:
        for pid, threads in log.processes.items():
            if not any(call.returned for calls in threads.values() for call in calls):
                continue
            if log.second and pid in current:
                reason = differ_process("contains", pid, threads, current[pid])
            elif traced[pid]:
                current[pid] = traced[pid].pop(0)
                reason = differ_process(order, pid, threads, current[pid])
            else:
                reason = f"pid {pid} is not in the trace"
            checked += 1
            events += sum(map(len, threads.values()))
            if reason:
                failures.append(f"{log.image}: {reason}")
    left = [(pid, threads) for pid, rest in traced.items() for threads in rest]
    if len(left) > unlogged:
        pid, threads = left[0]
        failures.append(f"{len(left)} processes with events in the trace only, as pid {pid} with "
                        f"{sum(map(len, threads.values()))} events")
    return failures, checked, events


def check_log(log):
    """What must hold of a log by itself: an address that is handed out is not live."""
    if log.lost:
        return f"{log.lost} calls did not fit"
    for pid, threads in log.processes.items():
        live = set()
        merged = sorted((call for calls in threads.values() for call in calls), key=lambda call: call.point)
        # The old block of a realloc ends somewhere between entry and return, so only the simple kinds are held to it.
        if any(call.function.startswith("realloc") for call in merged) and len(threads) > 1:
            continue
        for call in merged:
            if not call.returned:
                continue
            live.discard(call.ended)
            if call.begun and call.begun in live:
                return f"pid {pid}: {call.begun:#x} handed out twice"
            if call.begun:
                live.add(call.begun)
    return None


def main():
    global STACKS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--order", choices=ORDERS, default="exact")
    parser.add_argument("--before", type=int, default=1 << 62, help="calls that returned later need not be in the dump")
    parser.add_argument("--unlogged", type=int, default=0, help="processes that only the trace has")
    parser.add_argument("--cut", type=int, default=1, help="percent of the stacks that may be truncated in the dump")
    parser.add_argument("--stacks")
    parser.add_argument("logs")
    parser.add_argument("dump", nargs="?")
    options = parser.parse_args()
    logs = sorted((Log(path, options.before) for path in glob.glob(os.path.join(options.logs, "*.calls"))), key=lambda log: log.start)
    if not logs:
        sys.exit(f"compare: no logs in {options.logs}")
    failures = [f"{log.image}: {reason}" for log in logs if (reason := check_log(log))]
    if options.stacks:
        STACKS = Stacks(options.stacks)
    checked = events = 0
    if options.dump:
        more, checked, events = compare(logs, read_dump(options.dump), options.order, options.unlogged)
        failures += more
    else:
        checked = sum(len(log.processes) for log in logs)
        events = sum(len(calls) for log in logs for threads in log.processes.values() for calls in threads.values())
    for failure in failures[:20]:
        print(failure)
    if STACKS:
        print(f"{STACKS.checked} stacks compared, {STACKS.truncated} of them truncated, {STACKS.cut} as far as there are tables")
        if STACKS.checked == 0 or STACKS.truncated * 100 > STACKS.checked * options.cut:
            failures.append("stacks: too few to say anything")
            print(failures[-1])
    print(f"{checked} processes, {events} calls, {len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
