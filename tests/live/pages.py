# SPDX-License-Identifier: MIT
"""What a page of xheap view gets: the bytes of cells, and the data of a file that opens without a server (viewer/README.md)."""
import base64
import collections
import gzip
import json
import re
import struct

CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i64": "q"}


def decode_cells(body):
    """The head and the columns of cells."""
    if body[:8] != b"XHCELLS1":
        raise AssertionError(body[:8])
    length, = struct.unpack_from("<I", body, 8)
    head = json.loads(body[16:16 + length])
    columns = {}
    for row in head["columns"]:
        columns[row["name"]] = struct.unpack_from(f"<{row['count']}{CODES[row['type']]}", body, 16 + length + row["at"])
    return head, columns


def data_of(page):
    """The bytes in the page."""
    return gzip.decompress(base64.b64decode(re.search(r'id="data">([A-Za-z0-9+/=]*)</script>', page)[1]))


def traces_of(page):
    """Of each trace in the page its facts, and its cells."""
    data, at, found = data_of(page), 4, []
    for _ in range(struct.unpack_from("<I", data)[0]):
        facts, cells = struct.unpack_from("<II", data, at)
        at = (at + 8 + 7) // 8 * 8
        text = data[at:at + facts]
        at = (at + facts + 7) // 8 * 8
        found.append((json.loads(text), data[at:at + cells]))
        at += cells
    if at != len(data):
        raise AssertionError(f"{at} of {len(data)} bytes are {len(found)} traces")
    return found


def live_of(facts, cells):
    """What lives at each bound, by process and stack, which is frames from inside out."""
    head, columns = decode_cells(cells)
    count, live = len(head["bounds"]), collections.defaultdict(lambda: [0] * len(head["bounds"]))

    def stack(node):
        image, _, full = head["functions"][columns["function"][node]][:3]
        frame = image + ("!" if image and not full.startswith("+") else "") + full
        return (frame, *(stack(columns["parent"][node] - 1) if columns["parent"][node] else ()))

    for node, thread, birth, end, size in zip(*(columns[key] for key in ("node", "thread", "birth", "end", "bytes"))):
        for bound in range(birth, min(end, count)):
            live[facts["processes"][facts["threads"][thread]["process"]]["name"], stack(node)][bound] += size
    return live
