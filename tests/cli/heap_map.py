#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap heap -map against the blocks that `xheap dump` lists: which pages are how full, and what adds up."""
import collections
import csv
import io
import json
import os
import pathlib
import subprocess
import sys

PAGE = 4096
WORDS = ("little", "quarter", "half", "full")
ROOT = pathlib.Path(os.environ["SOURCE"])
MAKE_TRACE = pathlib.Path(os.environ["BUILD"]) / "tests/golden/make_trace"


def run(*words):
    return subprocess.run([os.environ["XHEAP"], *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout


def read_blocks(path):
    pids = {row["process"]: row["pid"] for row in map(json.loads, run("dump", path, "-processes", "-format", "json").splitlines())}
    rows = [json.loads(line) for line in run("dump", path, "-allocations", "-noIndex", "-format", "json").splitlines()]
    return [(pids[row["process"]], int(row["address"], 16), row["size"], row.get("birth_ns"), row.get("end_ns"), row["end_kind"]) for row in rows]


def pages_of(blocks, at):
    """By pid and page: bytes of live blocks, or none where a block lay before."""
    live, touched = collections.Counter(), set()
    for pid, address, size, birth, end, kind in blocks:
        if birth is not None and birth > at:
            continue
        pages = range(address // PAGE, (address + max(size, 1) - 1) // PAGE + 1)
        touched.update((pid, page) for page in pages)
        if kind == "open" or end > at:
            for page in pages:
                live[pid, page] += min(address + size, (page + 1) * PAGE) - max(address, page * PAGE)
    return live, touched


def check(path, blocks, at):
    rows = list(csv.DictReader(io.StringIO(run("heap", path, "-map", "-at", f"{at}ns", "-format", "csv", "-noIndex", "-top", 10 ** 9))))
    live, touched = pages_of(blocks, at)
    found = {}
    for row in rows:
        first = int(row["address"], 16) // PAGE
        for page in range(first, first + int(row["pages"])):
            assert (int(row["pid"]), page) not in found, f"{path} {at}: page {page:x} twice"
            found[int(row["pid"]), page] = row["fullness"]
    for key, bytes_ in live.items():
        wanted = WORDS[min(bytes_ * 4 // PAGE, 3)]
        assert found.get(key) == wanted, f"{path} {at}: page {key[1]:x} with {bytes_} bytes is {found.get(key)}, not {wanted}"
    for key in touched - set(live):
        assert found.get(key) == "none", f"{path} {at}: page {key[1]:x} is {found.get(key)}, and nothing lives there"
    totals = json.loads(run("heap", path, "-totals", "-at", f"{at}ns", "-format", "json", "-noIndex"))["totals"]
    assert sum(int(row["live_bytes"]) for row in rows) == totals["outstanding_bytes"], f"{path} {at}: other bytes than -totals"
    answer = json.loads(run("heap", path, "-map", "-at", f"{at}ns", "-format", "json", "-noIndex"))
    columns = rows[0] if rows else {}
    assert [{key: str(run.get(key, "")) for key in columns} for run in answer["runs"]] == rows, f"{path} {at}: JSON has other runs than CSV"
    assert answer["live_bytes"] == totals["outstanding_bytes"] == sum(row["live_bytes"] for row in answer["fullness"]), f"{path} {at}: other bytes in JSON"
    assert {row["fullness"]: row["pages"] for row in answer["fullness"] if row["pages"]} == collections.Counter(found.values()), f"{path} {at}: other pages in JSON"
    blocks = sum(int(row["live_blocks"]) for row in rows if row["fullness"] == "little")
    for keepers in (answer["keepers"], answer["keeper_stacks"]):
        assert sum(row["live_blocks"] for row in keepers) == blocks, f"{path} {at}: other blocks of keepers"
    assert sum(row["pages"] for row in answer["keepers"]) == sum(word == "little" for word in found.values()), f"{path} {at}: other keepers"
    text = run("heap", path, "-map", "-at", f"{at}ns", "-noIndex", "-top", 10 ** 9)
    signs = collections.Counter(sign for line in text.splitlines() if line[:16].strip() and "  " in line[2:] and set(line[18:]) <= set("#+-._ ") for sign in line[18:])
    assert signs["#"] == sum(word == "full" for word in found.values()), f"{path} {at}: other signs than pages\n{text}"


def main():
    paths = [ROOT / f"tests/golden/traces/{name}.xht" for name in ("c", "rust", "processes", "libstdcxx")]
    subprocess.run([MAKE_TRACE, "forks", "forks.xht"], check=True)
    paths.append(pathlib.Path("forks.xht"))
    for path in paths:
        blocks = read_blocks(path)
        last = max((end or birth or 0) for _, _, _, birth, end, _ in blocks)
        for share in (0.2, 0.5, 0.8):
            check(path, blocks, int(last * share))
    print(f"{len(paths)} traces")


sys.exit(main())
