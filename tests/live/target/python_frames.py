#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Python functions are frames: each stack of a block that a Python program takes has the function and the line of each of its frames, as Python itself has them.

usage: python_frames.py [TEST...]"""
import bisect
import csv
import json
import operator
import os
import pathlib
import re
import subprocess
import sys

from live import PROGRAMS, SOAK, SOURCE, dump, dump_each, expect, info, run_tests, told, wait_for, xheap
from pythons import environment, has, interpreters

PROGRAM = SOURCE / "tests/live/programs/python_calls.py"
DAMAGED = SOURCE / "tests/live/programs/python_damaged.py"
TRACED = SOURCE / "tests/live/programs/python_traced.py"
DAMAGES, FIRST_SIZE = 100000 if SOAK else 1000, 1000000
COUNT, TRACED_COUNT = (30000, 150) if SOAK else (1500, 15)
MARKS = 1000000 if SOAK else 0  # of all versions together, at least


def stacks_of(trace):
    """Of a stack its frames, innermost first: path, name and line of Python's; None and the text of others."""
    xheap("dump", trace, "-stacks", "-format", "csv", "-o", "stacks.csv")
    known = {}
    with open("stacks.csv") as file:
        lines = csv.reader(file)
        columns = operator.itemgetter(*map(next(lines).index, ("stack_id", "parent_id", "frame", "image", "offset", "kind", "line")))
        rows = {row[0]: row[1:] for row in map(columns, lines)}

    def frame(name, path, offset, kind, line):
        is_python = kind == "python"
        expect(is_python == (path.startswith("<") or path.endswith(".py")) == (not offset), f"another kind: {path} {name}")
        return (path, name.split("!", 1)[1], int(line or 0)) if is_python else (None, name, 0)

    def frames(stack):
        found = []
        while stack not in ("", "0"):
            parent, *of = rows[stack]
            if stack not in known:
                known[stack] = frame(*of)
            found.append(known[stack])
            stack = parent
        return found
    return frames


def told_apart(frames):
    """The frames without those of code that is made, and gone again: of CPython up to 3.11, other code at the same address is not always told apart (docs/decisions/064-python-frames.md)."""
    return [frame for frame in map(tuple, frames) if not frame[0].startswith("<made")]


def check(trace, log, name, may_mistake=0):
    """Each block has the frames that Python saw, and no evaluation is left. So many may have other code that was made at the same address."""
    seen = {size: (kind, frames) for size, kind, frames in map(json.loads, pathlib.Path(log).read_text().splitlines())}
    found, of, wrong = 0, stacks_of(trace), []
    for row in dump_each(trace):
        if row["function"] not in ("memalign", "aligned_alloc") or int(row["size"]) not in seen:
            continue
        kind, frames = seen.pop(int(row["size"]))
        stack = of(row["stack_id"])
        python = [frame for frame in stack if frame[0]]
        found += 1
        if python != [tuple(frame) for frame in frames]:
            if may_mistake and told_apart(python) == told_apart(frames):
                may_mistake -= 1
            else:
                wrong.append((row["size"], frames, stack))
        elif kind != "greenlet" and any("EvalFrameDefault" in frame[1] for frame in stack if not frame[0]):
            wrong.append((row["size"], "an evaluation is left", stack))
    expect(not wrong, f"{name}: {len(wrong)} of {found} stacks are others, such as {wrong[:1]}")
    return found, len(seen)


def each_frame():
    """Of launched processes: blocks taken with the interpreter's lock and without, in C that numpy and sqlite call, in threads, generators, greenlets."""
    total, seed, without = 0, 0, set()
    while total < MARKS or not seed:
        seed += 1
        for (major, minor), path in sorted(interpreters().items()):
            xheap("record", "-q", "-o", "frames.xht", "--check-stacks", "--", path, PROGRAM, "log", COUNT, 100 * seed, env=environment(path))
            found, missing = check("frames.xht", "log", f"{path}, seed {100 * seed}", COUNT // 5000 if minor <= 11 else 0)
            # While greenlets copy their stacks, what the state names is another one's.
            lacking = info("frames.xht").get("pythonless_stacks", 0)
            expect(lacking <= (found / 10 if has(path, "greenlet") else 0), f"{path}: {lacking} stacks without Python frames")
            expect(found >= COUNT / 2 and not missing, f"{path}: {found} blocks found, {missing} not")
            without.update(f"{module} in {major}.{minor}" for module in ("greenlet", "numpy") if not has(path, module))
            total += found
    return f"{total} stacks of {len(interpreters())} versions" + "".join(f", without {name}" for name in sorted(without))


def of_objects():
    """Each object of many kinds, a block of its own, was made in the files and lines that tracemalloc saw, wherever in the interpreter that was."""
    total, paths = 0, [path for _, path in sorted(interpreters().items())]
    if not SOAK:
        paths = sorted({*paths[:1], *paths[len(paths) // 2:][:1], *paths[-1:]})
    for path in paths:
        xheap("record", "-q", "-o", "objects.xht", "--", path, TRACED, "log", TRACED_COUNT, env=environment(path, PYTHONMALLOC="malloc"))
        live = sorted((int(row["address"], 16), int(row["size"]), row["stack_id"]) for row in dump("objects.xht", "-allocations", "-window", "AIFO", 0, "100000s"))
        of, wrong, count = stacks_of("objects.xht"), [], 0
        for address, kind, frames in map(json.loads, pathlib.Path("log").read_text().splitlines()):
            begin, size, stack = live[bisect.bisect(live, (address, 1 << 64)) - 1]
            expect(begin <= address < begin + size, f"{path}: no block has the {kind} at {address:#x}")
            python = [[file, line] for file, _, line in of(stack) if file]
            wrong += [(kind, frames, python)] if python != frames else []
            count += 1
        expect(not wrong and count > 50 * TRACED_COUNT, f"{path}: {len(wrong)} of {count} objects have other frames, such as {wrong[:1]}")
        total += count
    return f"{total} objects of {len(paths)} versions"


def of_attached():
    """Of processes that ran before: the first blocks are from before the attach, all others have their frames."""
    for _, path in sorted(interpreters().items()):
        with subprocess.Popen([path, PROGRAM, "log", str(COUNT), "1", "recorded"], stdout=subprocess.DEVNULL, env=environment(path)) as process:
            wait_for("log", lambda: os.path.exists("log") and os.path.getsize("log"))
            xheap("start", "frames", "-q", "-o", "frames.xht", "-p", process.pid)
            pathlib.Path("recorded").touch()
            process.wait()
        xheap("stop", "frames", "-q")
        found, _ = check("frames.xht", "log", path)
        expect(found > 100, f"{path}: {found} blocks found")
        os.unlink("log")
        os.unlink("recorded")


def library_of(path):
    """The interpreter as a library."""
    ask = "import sysconfig; print(sysconfig.get_config_var('LIBDIR'), sysconfig.get_config_var('INSTSONAME'))"
    return os.path.join(*subprocess.run([path, "-c", ask], stdout=subprocess.PIPE, text=True, check=True).stdout.split())


def of_two():
    """Of two interpreters in one process both have frames; in a stack that has both, the one that runs, and it is counted."""
    paths = [path for _, path in sorted(interpreters().items()) if os.path.isfile(library_of(path)) and not library_of(path).endswith(".a")]
    if len(paths) < 2:
        return "not run: fewer than two libraries"
    for first, second in [*zip(paths, paths[1:]), (paths[-1], paths[0])]:
        xheap("record", "-q", "-o", "two.xht", "--", os.path.join(PROGRAMS, "pythons"), library_of(first), first, library_of(second), second)
        of, found = stacks_of("two.xht"), {}
        for row in dump_each("two.xht"):
            if row["function"] == "malloc" and int(row["size"]) in (*range(1000000, 1000101), *range(2000000, 2000101)):
                found.setdefault(int(row["size"]), []).append([(name, line) for file, name, line in of(row["stack_id"]) if file])
        for size in 1000000, 2000000:
            alone = [[("leaf", 2), ("alone", 5), ("<module>", line)] for line in (8, 10)]
            wrong = [stacks for i in range(100) for stacks in [found.get(size + i)] if stacks != alone]
            expect(not wrong, f"{first} and {second}: {len(wrong)} of 100 stacks are others, such as {wrong[:1]}")
            expect(found[size + 100] == [[("leaf", 2), ("<module>", 1)]], f"{first} and {second}: {found[size + 100]}")
        lacking = info("two.xht").get("pythonless_stacks", 0)
        expect(2 <= lacking < 100, f"{first} and {second}: {lacking} stacks without Python frames")
    return f"{len(paths)} pairs"


def damaged():
    """A word that the walk reads may be anything: the program goes on, and each of its blocks is in the trace."""
    for _, path in sorted(interpreters().items()):
        xheap("record", "-q", "-o", "damaged.xht", path, DAMAGED, os.path.join(PROGRAMS, "damage.so"), DAMAGES)
        facts = info("damaged.xht")
        expect(facts["complete"] and facts["pythonless_stacks"] > 0, f"{path}: {facts}")
        sizes = {int(row["size"]) for row in dump_each("damaged.xht") if row["function"] == "malloc"}
        expect(sizes >= set(range(FIRST_SIZE, FIRST_SIZE + DAMAGES)), f"{path}: blocks are missing")


SHOP = """
class Shop:
    def load(self, count):
        rows = []
        for i in range(count):
            rows.append(bytearray(3000 + i))
        return rows
def key(row):
    return bytearray(9000)
Shop().load(200).sort(key=key)
"""


def in_reports():
    """Names are whole, patterns match their last parts, and the interpreter's functions have nothing of what Python took."""
    pathlib.Path("shop.py").write_text(SHOP)
    for version, path in sorted(interpreters().items()):
        xheap("record", "-q", "-o", "shop.xht", path, "shop.py")
        load = "Shop.load" if version >= (3, 11) else "load"
        counts = {f"{row['frame']['image']}!{row['frame']['symbol']}": row["total_count"]
                  for row in told("heap", "shop.xht", "-frames", "-size", 3000, 3200)["actions"][0]["rows"]}
        expect(counts[f"shop.py!{load}"] >= 199, f"{path}: {counts}")
        expect(not any("python3" in name for name in counts), f"{path}: {counts}")
        frames = [frame for row in told("heap", "shop.xht", "-stacks", "-size", 3001, 3002)["actions"][0]["rows"] for frame in row["stack"]]
        expect(all((frame.get("kind") == "python") == (frame["image"] in ("shop.py",)) for frame in frames), f"{path}: {frames}")
        expect(all("offset" not in frame and any(frame.get("line") == 6 for frame in frames) for frame in frames if frame.get("kind") == "python"), f"{path}: {frames}")
        text = xheap("heap", "shop.xht", "-stacks", "-lines", "-requireFrames", "load", "-size", 3001, 3002)
        expect(f"shop.py!{load}  shop.py:6" in text and "<module>" in text and "EvalFrame" not in text, text)


ARENAS = """
import os, sys
def load(count):
    return [str(i) * 20 for i in range(count)]
rows = load(200000)
del rows
rows = load(100000)
sys.stderr.flush()
sys._debugmallocstats()
os._exit(0)
"""


def arenas():
    """What Python's allocator maps for objects are blocks with the Python stack that needed them: as many as the allocator itself says."""
    pathlib.Path("arenas.py").write_text(ARENAS)
    for version, path in sorted(interpreters().items()):
        run = subprocess.run([os.environ["XHEAP"], "record", "-q", "-o", "arenas.xht", path, "arenas.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
        said = {name: int(number.replace(",", "")) for name, number in re.findall(r"^# arenas (.*?) *= *([\d,]+)$", run.stderr, re.M)}
        size = 1 << (18 if version < (3, 10) else 20)
        # Stacks of Python's frames have smaller ones, from 3.11 on.
        rows = [row for row in dump_each("arenas.xht") if row["function"].startswith("_PyObject_Arena") and int(row["size"]) == size]
        taken, given = [row for row in rows if row["action"] == "Alloc"], [row for row in rows if row["action"] == "Free"]
        expect(len(taken) == said["allocated total"] and len(given) == said["reclaimed"] > 1, f"{path}: {said}, but {len(taken)} taken and {len(given)} given back")
        facts = told("heap", "arenas.xht", "-frames")
        own = sum(row["total_bytes"] for row in facts["actions"][0]["rows"] if row["frame"]["image"] == "arenas.py")
        expect(own > 0.8 * len(taken) * size and not facts["unknown_frees"] and not facts["order_conflicts"], f"{path}: {own} of {len(taken)} arenas")
        report = xheap("report", "arenas.xht", "-width", 120)
        # Which objects lie in them, only another run can say.
        expect(re.search(r"arenas\.py!\S+  arenas\.py:4$", "\n".join(report.splitlines()[:24]), re.M) and report.count("--python-objects") == 1, f"{path}: {report}")


if __name__ == "__main__":
    sys.exit(run_tests(each_frame, of_objects, of_attached, of_two, damaged, in_reports, arenas))
