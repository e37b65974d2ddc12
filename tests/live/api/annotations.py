#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls of xheap/heap.h: the examples of the manual, and programs that make it hard, compiled as users would; all numbers are known by construction."""
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys

from live import LONG_SECONDS

XHEAP, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["SOURCE"])
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", SOURCE / "include", "-pthread", "-g"]
C11, CPP17 = ["cc", "-std=c11", "-D_GNU_SOURCE"], ["c++", "-x", "c++", "-std=c++17"]
complaints = []


def expect(what, found, wanted):
    if found != wanted:
        complaints.append(f"{what}: {found}, expected {wanted}")


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONG_SECONDS, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def build(name, compiler, *flags, source=None, strict=True):
    run(*compiler, *(STRICT if strict else STRICT[4:]), *flags, source or SOURCE / "docs/examples" / f"{name.split('.')[0]}.c", "-o", name)


def record(name, *arguments):
    trace = f"{name}.xht"
    pathlib.Path(trace).unlink(missing_ok=True)
    return trace, run(XHEAP, "record", "-o", trace, "--", f"./{name}", *arguments)


def report(trace, *options):
    found = json.loads(run(XHEAP, "heap", trace, *options, "-format", "json"))
    for doubt in ("lost_events", "unknown_frees", "order_conflicts"):
        expect(f"{trace} {doubt}", found[doubt], 0)
    return found


def rows_of(trace, *options):
    return report(trace, *options)["actions"][0]["rows"]


def heaps(trace):
    rows = {}
    for row in rows_of(trace, "-heaps"):
        rows.setdefault(row["name"], []).append(row)
    return rows


def kinds(trace):
    return {kind: count for kind, count in json.loads(run(XHEAP, "info", trace, "-format", "json"))["events"].items() if count}


def numbers(row, *names):
    return tuple(row[name] for name in names)


ALL = ("total_count", "total_bytes", "outstanding_count", "outstanding_bytes")


def check_sums(trace):
    """The inner view tells of the same bytes as the outer one, and its rows add up."""
    outer, inner = report(trace, "-stacks"), report(trace, "-stacks", "-innermost")
    for name in ("outstanding_bytes", "peak_bytes"):
        expect(f"{trace} -innermost {name}", inner["totals"][name], outer["totals"][name])
        expect(f"{trace} -innermost rows' {name}", sum(row[name] for row in inner["actions"][0]["rows"]), inner["totals"][name])
    return [row for row in inner["actions"][0]["rows"] if row["stack"] and row["stack"][0]["symbol"] == "[pool overhead]"]


def check_arena(name):
    trace, _ = record(name)
    rounds, = heaps(trace)["rounds"]
    expect("arena", numbers(rounds, *ALL), (300, 30000, 0, 0))
    expect("arena lies in malloc's", rounds["inside"], next(row["heap"] for heap in heaps(trace).values() for row in heap if "main arena" in row["name"] or
                                                            "allocator" in row["name"]))
    expect("arena by itself", numbers(report(trace, "-heap", "rounds")["totals"], "total_count", "peak_count", "peak_bytes"), (300, 100, 10000))
    expect("arena's overhead is none in the end", [numbers(row, "outstanding_bytes") for row in check_sums(trace)], [(0,)])
    found = kinds(trace)
    expect("arena's kinds", (found["create"], found["destroy"]), (1, 4))
    rows = rows_of(trace, "-stacks", "-heap", "rounds")
    expect("arena's callers", {frame["symbol"].split("(")[0] for row in rows for frame in row["stack"]} >= {"arena_alloc", "main"}, True)


def check_index(trace):
    """What is kept in an index is what was found."""
    questions = [("-stacks", "-heaps"), ("-stacks", "-innermost"), ("-stacks", "-heap", "objects"), ("-frames", "-by", "heap")]
    answers = [report(trace, *question) for question in questions]
    os.environ["XHEAP_INDEX_EVENTS"] = "1"
    for _ in range(2):
        for question, answer in zip(questions, answers):
            expect(f"{question} with an index", report(trace, *question), answer)
    del os.environ["XHEAP_INDEX_EVENTS"]
    expect("an index", len(list(pathlib.Path(os.environ["XDG_CACHE_HOME"], "xheap/indexes").glob("*.index"))) > 0, True)


def check_pool(name):
    trace, _ = record(name)
    cells, = heaps(trace)["cells"]
    expect("pool", numbers(cells, *ALL, "threads"), (200, 10000, 100, 6000, 2))
    overhead, = check_sums(trace)
    # A mutex, a pointer, and 256 cells of 64 bytes.
    expect("pool's overhead", numbers(overhead, "outstanding_count", "outstanding_bytes"), (1, 40 + 8 + 256 * 64 - 6000))
    found = kinds(trace)
    expect("pool's kinds", (found["lock"], found["unlock"], found["create"]), (300, 300, 1))


def check_slab(name):
    trace, _ = record(name)
    found = heaps(trace)
    (pages,), (objects,) = found["pages"], found["objects"]
    expect("slab's pages", numbers(pages, *ALL) + ("inside" in pages,), (2, 8192, 2, 8192, False))
    expect("slab's objects", numbers(objects, *ALL, "realloc_count", "realloc_moved_count"), (41, 40 * 128 + 100, 20, 19 * 128 + 100, 1, 0))
    expect("slab's objects lie in its pages", objects["inside"], pages["heap"])
    overhead, = check_sums(trace)
    expect("slab's overhead", numbers(overhead, "outstanding_count", "outstanding_bytes"), (2, 8192 - 19 * 128 - 100))
    check_index(trace)
    protect, = [row for row in csv.DictReader(run(XHEAP, "dump", trace, "--events", "--format", "csv").splitlines()) if row["action"] == "Protect"]
    expect("protect", (protect["size"], protect["args"].split(";")[-1], bool(protect["stack_id"])), ("4096", "protection=1", True))


def check_examples():
    checks = {"arena": check_arena, "pool": check_pool, "slab": check_slab}
    for name, check in checks.items():
        build(name, C11, "-O2")
        check(name)
        build(f"{name}.cpp", CPP17, "-O0")
        check(f"{name}.cpp")
    build("arena.off", C11, "-O2", "-DXHEAP_HEAP_OFF")
    plain, told = (report(record(name)[0], "-totals")["totals"] for name in ("arena.off", "arena"))
    expect("annotations change no total", {key: told[key] for key in told if key != "peak_at_us"}, {key: plain[key] for key in plain if key != "peak_at_us"})
    if shutil.which("clang"):
        for name, check in checks.items():
            build(f"{name}.clang", ["clang", "-std=c11", "-D_GNU_SOURCE"], "-O2")
            check(f"{name}.clang")
    # What notes tell stays when symbols go, however the linker was told to work.
    for way in (["-O2"], ["-O3", "-flto"], ["-Os", "-ffunction-sections", "-Wl,--gc-sections"], ["-O2", "-static"], ["-no-pie", "-fcf-protection=full"],
                ["-O2", "-DXHEAP_HEAP_OFF"]):
        build("slab.stripped", C11, *way)
        # Of a static program the allocator is found by symbols only, and without one it is not traced.
        run("strip", *(["--strip-debug"] if "-static" in way else []), "slab.stripped")
        trace, _ = record("slab.stripped")
        expect(f"stripped, {way}", kinds(trace).get("create", 0), 0 if "-DXHEAP_HEAP_OFF" in way else 2)


def check_threads():
    trace, _ = record("annotated", "threads", "8")
    found = heaps(trace)
    expect("threads' own", (sum(row["total_count"] for row in found["own"]), sum(row["total_bytes"] for row in found["own"]),
                            sum(row["temporary_count"] for row in found["own"]), {"inside" in row for row in found["own"]}),
           (8000, 8 * 499500, 8000, {True}))
    shared, = found["shared"]
    expect("threads' shared", numbers(shared, *ALL, "threads"), (800, 800 * 24, 800, 800 * 24, 8))
    expect("threads' blocks outside of others", "inside" in shared, False)


def check_fork():
    trace, _ = record("annotated", "fork")
    rows = sorted(heaps(trace)["family"], key=lambda row: row["process"])
    expect("fork", [numbers(row, *ALL) for row in rows], [(10, 240, 9, 216), (3, 72, 3, 72)])
    child, = [process for process in json.loads(run(XHEAP, "info", trace, "-format", "json"))["processes"] if process["id"] == 1]
    expect("fork, inherited", numbers(child, "inherited_count", "inherited_bytes"), (10, 240))


def check_renamed():
    trace, _ = record("annotated", "renamed")
    found = heaps(trace)
    for name in ("even", "odd"):
        expect(name, [numbers(row, *ALL) for row in found[name]], [(5000, 7500, 0, 0)])
    unnamed = [row for name, rows in found.items() if name.endswith("annotated") for row in rows]
    expect("without a name", [numbers(row, *ALL) for row in unnamed], [(1, 3, 1, 3)])


def check_many():
    """What finds no room is still recorded, and the report says so."""
    trace, _ = record("annotated", "many")
    found = report(trace, "-totals")
    # The C library's own blocks may be there, too.
    expect("many", found["totals"]["total_bytes"] >= 640000, True)
    named = sum(row["total_count"] for row in heaps(trace)["one of many"])
    missing = 40000 - named
    print(f"many: {named} heaps, {missing} without, told of: {found.get('events_without_heap')}")
    expect("many: told of", found.get("events_without_heap", 0) >= missing > 0 and named >= 4096, True)


def check_plugin():
    run("cc", "-std=c11", "-O2", *STRICT, "-shared", "-fPIC", SOURCE / "tests/live/programs/annotated_plugin.c", "-o", "annotated_plugin.so")
    trace, _ = record("annotated", "plugin", "./annotated_plugin.so")
    rows = heaps(trace)["plugin"]
    expect("plugin", (sum(row["total_count"] for row in rows), sum(row["outstanding_count"] for row in rows)), (12, 0))


def check_malloc():
    build("annotated_malloc", C11, "-O1", "-fno-builtin", source=SOURCE / "tests/live/programs/annotated_malloc.c")
    trace, _ = record("annotated_malloc")
    found = heaps(trace)
    beneath, = found["beneath malloc"]
    expect("beneath malloc", numbers(beneath, *ALL), (500, 500 * 64, 100, 6400))
    expect("malloc itself", numbers(report(trace)["totals"], *ALL), (500, 5000, 100, 1000))
    expect("beneath malloc, inside", "inside" in beneath, True)


def check_attach():
    program = subprocess.Popen(["./annotated", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect("attach", program.stdout.readline(), "ready\n")
    pathlib.Path("attached.xht").unlink(missing_ok=True)
    recorder = subprocess.Popen([XHEAP, "record", "-p", str(program.pid), "-o", "attached.xht"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in recorder.stdout:
        if "recording" in line or "traced" in line or "Ctrl-C" in line:
            break
    program.stdin.write("go\n")
    program.stdin.flush()
    expect("attach", program.stdout.readline(), "done\n")
    recorder.send_signal(2)
    recorder.communicate(timeout=LONG_SECONDS)
    program.stdin.write("end\n")
    program.stdin.close()
    expect("attached program", program.wait(timeout=LONG_SECONDS), 0)
    found = heaps("attached.xht")
    # Its name was told before.
    before = [row for name, rows in found.items() if name.endswith("annotated") for row in rows]
    expect("attached, before", [numbers(row, *ALL) for row in before], [(20, 480, 0, 0)])
    expect("attached, after", [numbers(row, *ALL) for row in found["after"]], [(1, 24, 1, 24)])


def check_jump():
    trace, said = record("annotated", "jump")
    count = int(said.splitlines()[0])
    signals = json.loads(run(XHEAP, "heap", trace, "-heap", "signals", "-format", "json"))
    expect("jump", (signals["lost_events"], signals["totals"]["total_count"]), (0, count + 1))


def check_sized():
    """Where a heap's memory lies, and how much there is of it, as the program says."""
    for name, compiler in (("sized", C11 + ["-O2"]), ("sized.unoptimised", C11 + ["-O0"]), ("sized.cpp", CPP17 + ["-O2"])):
        build(name, compiler, source=SOURCE / "tests/live/programs/annotated_sized.c")
        trace, said = record(name)
        rows = [row for row in csv.DictReader(run(XHEAP, "dump", trace, "--events", "--format", "csv").splitlines()) if row["action"] == "Create"]
        expect(f"{name}: creations", [row["args"] for row in rows], [line for line in said.splitlines() if line.startswith("heap=")])
        expect(f"{name}: function", {row["function"] for row in rows}, {"xheap_heap_create_sized"})
        expect(f"{name}: heaps", [(row["total_count"], row["outstanding_count"]) for row in heaps(trace)["large"]], [(1, 0)])


def check_kinds_of_stacks():
    run(XHEAP, "record", "-o", "kinds.xht", "--stackwalk", "HeapCreate+HeapDestroy", "--", "./arena")
    events = list(csv.DictReader(run(XHEAP, "dump", "kinds.xht", "--events", "--format", "csv").splitlines()))
    expect("stacks only where they were asked for", {row["action"] for row in events if row["stack_id"]}, {"Create", "Destroy"})


def main():
    check_examples()
    build("annotated", C11, "-O2", "-I", SOURCE / "tests/live/programs", source=SOURCE / "tests/live/programs/annotated.c", strict=False)
    for check in (check_threads, check_fork, check_renamed, check_many, check_plugin, check_malloc, check_attach, check_jump, check_sized, check_kinds_of_stacks):
        check()
    print("\n".join(complaints) or "all numbers are as they must be")
    return bool(complaints)


sys.exit(main())
