#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a trace by what docs/trace-format.md says, and nothing else, and finds the events that `xheap dump` prints."""
import csv
import io
import json
import os
import shutil
import struct
import subprocess
import sys

XHEAP = os.environ["XHEAP"]
KINDS = ["Alloc", "ReAlloc", "Free", "Create", "Destroy", "Lock", "Unlock", "Protect"]
U64 = (1 << 64) - 1


class Reading:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def optional(self):
        return self.number() - 1

    def bytes(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def text(self):
        return self.bytes(self.number()).decode()

    def is_over(self):
        return self.at >= len(self.data)


def unpacked(data):
    return subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout


def events_streams(payload):
    reading = Reading(payload)
    heads = [(reading.bytes(1)[0], reading.number(), reading.number()) for _ in range(reading.number())]
    streams = {}
    for number, raw, stored in heads:
        data = reading.bytes(stored)
        streams[number] = Reading(data if raw == stored else unpacked(data))
        assert len(streams[number].data) == raw
    return streams


class Places:
    """Where allocators take blocks from, and programs free them: what addresses are told by."""

    def __init__(self, address_of, births_of):
        self.address_of, self.births_of = address_of, births_of
        self.stacks, self.ends, self.cells, self.births = {}, {}, {}, []
        self.fresh = self.fresh_end = self.freed = self.last = 0

    def distance(self):
        number = self.address_of.number()
        return self.address_of.signed() if number & 1 else (number >> 2 ^ -(number >> 1 & 1)) * 16

    def read(self, how, is_free, usable):
        kind = cell_of(usable)
        if is_free:
            if how == 2:
                return self.freed + self.distance() & U64
            return self.births[self.last + (1 if how == 0 else self.births_of.signed())][0]
        end = self.ends.get(kind, 0)
        return (self.stacks[kind][-1][0] if how == 0 else self.fresh_end if how == 1 else end if how == 2
                else (end or self.fresh) + self.distance() & U64)

    def cell(self, address):
        return ((address >> 4) * 0x9e3779b97f4a7c15 & U64) >> 49

    def free(self, address):
        self.freed = address
        birth = self.cells.get(self.cell(address))
        if birth and birth[0] == address:
            del self.cells[self.cell(address)]
            self.last = birth[2]
            self.stacks.setdefault(cell_of(birth[1]), []).append(birth)

    def follow(self, how, is_free, address, usable, previous):
        if is_free:
            return self.free(address)
        if not address:
            return None
        kind, end = cell_of(usable), (address + usable + 15 & U64) & ~15
        if how == 0:
            self.stacks[kind].pop()
        else:
            self.fresh, self.fresh_end = address, end
        self.ends[kind] = end
        if previous and previous != address:
            self.free(previous)
        birth = (address, usable, len(self.births))
        self.births.append(birth)
        self.cells[self.cell(address)] = birth
        return None


def cell_of(size):
    return (((size + 7 & U64) >> 3) * 0x9e3779b97f4a7c15 & U64) >> 53


class Trace:
    def __init__(self, data):
        assert data[:8] == b"\x89XHT\r\n\x1a\n" and struct.unpack_from("<II", data, 8) == (1, 64)
        is_circular = struct.unpack_from("<Q", data, 32)[0] & 1
        offset, magic = struct.unpack_from("<Q8s", data, len(data) - 16)
        assert is_circular or magic == b"\x89XHT_END"
        self.data, self.processes, self.threads, self.events = data, {}, {}, []
        self.fold, self.sums, self.unwindless, self.whole = None, [], 0, 0
        self.segment = self.before = self.dropped = 0
        if is_circular:
            self.circular()
            return
        at = 64
        while at < len(data):
            is_footer = at == offset
            at = self.block(at)
        assert is_footer

    def circular(self):
        """Blocks by the numbers of their segments; the last one is the footer."""
        at, segments = 64, []
        while at < len(self.data):
            kind, _, head_bytes, payload_bytes = struct.unpack_from("<HHII", self.data, at + 4)
            if kind == 1:
                segments.append((struct.unpack_from("<I", self.data, at + 64)[0], []))
            if kind == 17:
                at += 56 + struct.unpack_from("<Q", self.data, at + 48)[0]
                continue
            segments[-1][1].append((at, kind))
            at += (48 + head_bytes + payload_bytes + 7) // 8 * 8
        blocks = [block for _, blocks in sorted(segments) for block in blocks]
        for at, _ in blocks:
            self.block(at)
        assert blocks[-1][1] == 14 and at + 48 <= len(self.data)

    def block(self, at):
        magic, kind, flags, head_bytes, payload_bytes, raw, count, place = struct.unpack_from("<4sHHIIIIQ", self.data, at)
        assert magic == b"XBLK" and at % 8 == 0
        head = self.data[at + 48:at + 48 + head_bytes]
        payload = self.data[at + 48 + head_bytes:at + 48 + head_bytes + payload_bytes]
        if flags & 2:
            payload = unpacked(payload)
            assert len(payload) == raw
        if kind == 1:
            self.segment = at
            self.shift, self.start, self.mult = struct.unpack_from("<IQQ", head, 20)
            before, _ = struct.unpack_from("<QQ", head, 48)
            self.dropped += before - self.before
            self.before = before
            self.entries, self.heaps, self.nodes, self.frames, self.next_frame = [], [], [None], [], 0
        assert place == at - self.segment
        self.rows(kind, Reading(payload), count) if kind != 11 else self.take(head, payload, count)
        return (at + 48 + head_bytes + payload_bytes + 7) // 8 * 8

    def rows(self, kind, reading, count):
        for _ in range(count):
            if kind == 3:
                key = reading.number()
                self.processes[key] = reading.number()
                reading.optional(), reading.optional(), reading.number(), reading.signed(), reading.number()
                reading.signed(), reading.signed(), reading.text(), reading.text(), reading.text()
            elif kind == 4:
                key = reading.number()
                self.threads[key] = (reading.number(), reading.number())
                reading.signed(), reading.signed(), reading.text()
            elif kind == 7:
                reading.optional(), reading.number()
                self.entries.append(reading.text())
            elif kind == 8:
                reading.optional()
                self.heaps.append(reading.number())
                reading.text()
            elif kind == 9:
                self.frames.append((reading.optional(), reading.number()))
            elif kind == 18:
                self.folded(reading)
            elif kind == 10:
                parent, back = len(self.nodes) - reading.number(), reading.number()
                self.nodes.append((parent, self.next_frame - back))
                assert parent >= 0 and 0 <= self.next_frame - back < len(self.frames)
                self.next_frame += back == 0
        if kind in (3, 4, 7, 8, 9, 10, 18):
            assert reading.is_over()

    def folded(self, reading):
        """What is in place of events: the numbers of the fold, and of each sum thread, blocks, bytes, whether they were given back."""
        kind = reading.number()
        if kind == 0:
            self.fold = {"until": self.ns(reading.signed()), "interval": reading.signed()}
            reading.signed(), reading.number()
            self.fold["events"] = reading.number()
            for _ in range(5):
                reading.number()
            self.fold["kinds"] = [reading.number() for _ in range(reading.number())]
            self.unwindless += self.fold["kinds"][31]
            self.whole += self.fold["kinds"][32]
            self.before += self.fold["events"]
        elif kind == 1:
            thread, _, node, _, flags = (reading.number() for _ in range(5))
            assert node < len(self.nodes)
            first, last = reading.signed(), reading.signed()
            reading.signed(), reading.signed()
            lives, sizes = (reading.number(), reading.number()), (reading.number(), reading.number())
            blocks, count, size = (reading.number() for _ in range(3))
            for _ in range(9):
                reading.number()
            classes = [(reading.number(), reading.number()) for _ in range(reading.number())]
            assert first <= last and lives[0] <= lives[1] and sizes[0] <= sizes[1] and sum(number for _, number in classes) == blocks
            assert sizes[0] * count <= size <= sizes[1] * count
            self.sums.append((thread, count, size, not flags & 1))
        else:
            assert kind == 2
            for _ in range(6):
                reading.number()

    def ns(self, ticks):
        return (ticks - self.start) * self.mult >> self.shift

    def stack_end(self, node):
        """"none", "cut", "unwindless" or "whole", by the outermost frame."""
        if node == 0:
            return "none"
        while self.nodes[node][0]:
            node = self.nodes[node][0]
        return {(-1, 1): "cut", (-1, 2): "unwindless"}.get(self.frames[self.nodes[node][1]], "whole")

    def take(self, head, payload, count):
        self.before += count
        process, thread, first, last = struct.unpack_from("<IIQQ", head)
        streams = events_streams(payload)
        empty = Reading(b"")
        stack, which, size_of, usable_of, time_of, rest = (streams.get(i, empty) for i in (3, 4, 5, 6, 8, 9))
        gaps, durations = ([streams.get(first + lane, empty) for lane in range(4)] for first in (11, 15))
        places = Places(streams.get(7, empty), streams.get(10, empty))
        descriptors, table = [], streams[1]
        while not table.is_over():
            kind, flags = table.bytes(2)
            descriptors.append((kind, flags, table.number(), table.optional()))
        cut = time_of.bytes(1)[0]
        seen, cells, expected, rows, nodes = {}, {}, 0, [], []
        for i in range(count):
            control = streams[2].bytes(1)[0]
            assert not control & 0x40
            node = stack.number() if control & 1 else expected
            j = seen.get(node)
            seen[node] = i
            before = rows[j] if j is not None else None
            # j + 1 may be this event itself: then its own node is what is expected next.
            nodes.append(node)
            expected = nodes[j + 1] if j is not None else 0
            number = which.number() if control & 2 else before["descriptor"]
            size = size_of.number() if control & 4 else before["size"] if before else 0
            cell = cell_of(size)
            if control & 8:
                cells[cell] = size + usable_of.signed() & U64
            kind, flags, entry, heap = descriptors[number]
            is_free, how = KINDS[kind] == "Free", control >> 4 & 3
            address = places.read(how, is_free, cells.get(cell, 0))
            lane = (node * 0x9e3779b1 & 0xffffffff) >> 30
            ticks = durations[lane].number()
            begin = end + gaps[lane].signed() if rows else None
            point = time_of.number() if begin is None else begin if is_free else begin + ticks
            end = point + ticks if is_free else point
            time, duration = point << cut, ticks << cut
            row = {"node": node, "descriptor": number, "size": size, "usable": cells.get(cell, 0), "address": address, "time": time,
                   "duration": duration, "previous": 0}
            for name in ("argument", "argument2", "result"):
                row[name] = before[name] if before else 0
            there = rest.bytes(1)[0] if control & 128 else 0
            if there & 1:
                row["previous"] = address + rest.signed() & U64
            if there & 2:
                row["argument"] = rest.number()
            if there & 4:
                row["argument2"] = rest.number()
            if there & 8:
                row["result"] = rest.signed()
            rows.append(row)
            places.follow(how, is_free, address, row["usable"], row["previous"])
            assert first <= time <= last and node < len(self.nodes)
            lasted = self.ns(time) - self.ns(time - duration) if KINDS[kind] == "ReAlloc" else duration * self.mult >> self.shift
            self.events.append((self.ns(time), lasted, self.processes[process], self.threads[thread][1], KINDS[kind],
                                self.entries[entry], address, row["previous"], size, row["usable"], row["result"], (flags, heap, row["argument"])))
        assert all(stream.is_over() for stream in streams.values())
        kinds, ends = struct.unpack_from("<I", head, 68)[0], [self.stack_end(node) for node in nodes]
        unwindless, whole = struct.unpack_from("<II", head, 72 + 4 * kinds)
        assert (ends.count("unwindless"), ends.count("whole")) == (unwindless, whole) and len(head) == 80 + 4 * kinds
        self.unwindless += unwindless
        self.whole += whole


def dumped(path):
    text = subprocess.run([XHEAP, "dump", path, "--format", "csv"], stdout=subprocess.PIPE, check=True, text=True).stdout
    number = lambda value: int(value, 0) if value and value != "in-flight" else 0
    for row in csv.DictReader(io.StringIO(text)):
        address = number(row["address"])
        yield (number(row["time_ns"]), number(row["duration_ns"]), number(row["pid"]), number(row["tid"]), row["action"], row["function"],
               address, number(row["previous_address"]), number(row["size"]), number(row["usable"]), number(row["result"]))


def main():
    if not shutil.which("zstd"):
        print("skipped: zstd is not installed")
        return 77
    program = "import threading; t = threading.Thread(target=lambda: [str(i) for i in range(2000)]); t.start(); t.join()"
    subprocess.run([XHEAP, "record", "-q", "-o", "a.xht", "--", "env", "PYTHONMALLOC=malloc", "/usr/bin/python3", "-c", program], check=True)
    with open("a.xht", "rb") as file:
        mine = sorted(event[:11] for event in Trace(file.read()).events)
    theirs = sorted(dumped("a.xht"))
    print(f"{len(mine)} events by the document, {len(theirs)} by xheap dump")
    for one, other in zip(mine, theirs):
        if one != other:
            print(f"{one}\n{other}")
            return 1
    if not len(mine) == len(theirs) > 10000:
        return 1
    return folded() or stack_ends()


def stack_ends():
    """How many stacks end at code without unwind data, and how many reach their start, in events and in what is folded."""
    program = os.path.join(os.environ["BUILD"], "tests/live/unwindless")
    if not os.path.exists(program):
        return 0
    subprocess.run([XHEAP, "record", "-q", "-o", "u.xht", "--", program, "1000"], check=True)
    middle = sorted(int(row["time_ns"]) for row in csv.DictReader(io.StringIO(
        subprocess.run([XHEAP, "dump", "u.xht", "--format", "csv"], stdout=subprocess.PIPE, check=True, text=True).stdout)))[4000]
    subprocess.run([XHEAP, "--fold", "v.xht", str(middle), "1", "u.xht"], check=True)
    for path, are_folded in (("u.xht", False), ("v.xht", True)):
        with open(path, "rb") as file:
            trace = Trace(file.read())
        facts = json.loads(subprocess.run([XHEAP, "info", path, "-format", "json"], stdout=subprocess.PIPE, check=True).stdout)
        print(f"{path}: {trace.unwindless} stacks without unwind data and {trace.whole} whole ones by the document, {facts['unwindless_stacks']} and "
              f"{facts['whole_stacks']} by xheap info, {len(trace.events)} of {facts['event_count']} events there")
        is_right = trace.unwindless == facts["unwindless_stacks"] == 2000 and trace.whole == facts["whole_stacks"] == facts["event_count"] - 2000
        if not is_right or (len(trace.events) < facts["event_count"]) != are_folded:
            return 1
    return 0


def folded():
    """A long run: what is folded and what is there make the whole."""
    program = "import random; r = random.Random(1); kept = [None] * 50\nfor i in range(120000): kept[r.randrange(50)] = bytes(r.randrange(3000))"
    subprocess.run([XHEAP, "record", "-q", "-o", "b.xht", "--keep", "live", "--max-file", "1M", "--flush-timer", "50ms", "--", "env", "PYTHONMALLOC=malloc",
                    "/usr/bin/python3", "-c", program], check=True)
    with open("b.xht", "rb") as file:
        trace = Trace(file.read())
    facts = json.loads(subprocess.run([XHEAP, "info", "b.xht", "-format", "json"], stdout=subprocess.PIPE, check=True).stdout)
    totals = json.loads(subprocess.run([XHEAP, "heap", "b.xht", "-totals", "-format", "json"], stdout=subprocess.PIPE, check=True).stdout)["totals"]
    begun = sum(event[4] in ("Alloc", "ReAlloc") and not event[11][0] & 3 for event in trace.events)
    print(f"{trace.fold['events']} events folded, {len(trace.events)} there, {trace.dropped} dropped; {facts['event_count']} by xheap info")
    print(f"{sum(count for _, count, _, _ in trace.sums)} blocks in sums, {begun} begun; {totals['total_count']} by xheap heap")
    is_whole = (trace.fold["events"] + len(trace.events) == facts["event_count"] and not trace.dropped and trace.fold["events"] > 100000 and
                trace.fold["events"] == facts["folded"]["events"] and sum(count for _, count, _, _ in trace.sums) + begun == totals["total_count"])
    return 0 if is_whole and sorted(event[:11] for event in trace.events) == sorted(dumped("b.xht")) else 1


if __name__ == "__main__":
    sys.exit(main())
