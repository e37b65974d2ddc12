#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports of the package have the command's figures, for traces of all kinds; tables as text and as HTML; the command as python -m xheap."""
import json
import os
import subprocess
import sys

from package import OLDER, TRACES, expect, finish, raises, same, unpack, xheap

if not os.environ.get("UNPACKED"):
    unpack()
import xheap as package  # noqa: E402

ALL = sorted([*TRACES.glob("*.xht"), *OLDER.glob("*.xht")])
ACTIONS = {"stack": "-stacks", "function": "-frames", "image": "-image", "heap": "-heaps", "tree": "-tree", "chain": "-chains"}
PLAIN = TRACES / "libcxx.xht"
FILTERS = {
    "size": ((64, 128), ["-size", 64, 128]),
    "range": (("1ms", 21000000), ["-range", "1ms", "21ms"]),
    "lifetime": ((0, "10us"), ["-lifetime", 0, "10us"]),
    "window": (("AIFO", 0, "21.5ms"), ["-window", "AIFO", 0, "21.5ms"]),
    "function": (["*put*", "*handle*"], ["-requireFrames", "*put*", "*handle*"]),
    "freed_by": ("*~Entry*", ["-requireFreeFrames", "*~Entry*"]),
    "pid": (5472, ["-pids", 5472]),
    "tid": ([5472], ["-threads", 5472]),
    "heap": ("main arena", ["-heap", "main arena"]),
    "at": ("21.5ms", ["-at", "21.5ms"]),
    "closed": (True, ["-closed"]),
}


def figures(row):
    """What both have of a row: a value that an estimate has rounded is not the same one."""
    return {name: value for name, value in row.items() if isinstance(value, int) and not isinstance(value, bool)}


def check_heap(path, *words, **keywords):
    with package.open(path) as trace:
        for by, action in ACTIONS.items():
            try:
                answer = json.loads(xheap("heap", path, action, *words, "-format", "json"))["actions"][0]["rows"]
            except subprocess.CalledProcessError as error:
                raises(package.Error, [word for word in ("every event", "folded") if word in error.stderr], lambda by=by: trace.heap(by=by, **keywords), f"{path}: {by}: {error.stderr}")
                continue
            rows = [row._asdict() for row in trace.heap(by=by, **keywords)]
            expect(len(rows) == len(answer), f"{path}: {by}: {len(rows)} rows, not {len(answer)}")
            for seen, wanted in zip(rows, answer):
                wanted = figures(wanted)
                common = {name: value for name, value in figures(seen).items() if name in wanted}
                expect(common == {name: wanted[name] for name in common} and "total_bytes" in common, f"{path}: {by} {words}: {seen} {wanted}")


def check_info(path):
    with package.open(path) as trace:
        info, answer = trace.info, json.loads(xheap("info", path, "-format", "json"))
        for name in "event_count", "size_bytes", "clock", "host", "lost_events", "truncated_stacks":
            same(f"{path}: {name}", getattr(info, name), answer[name])
        same(f"{path}: complete", info.is_complete, answer["complete"])
        same(f"{path}: allocs", info.alloc_count, answer["events"]["alloc"])
        expect(f"{info.event_count:,}" in str(info) and "event_count" in info._repr_html_(), f"{path}: {info}")


def check_shown():
    with package.open(PLAIN) as trace:
        heap = trace.heap(by="function")
        same("first row", heap[0].outstanding_bytes, heap.rows[0].outstanding_bytes)
        same("columns", list(heap.as_dict()), list(heap.columns))
        same("a column", heap.as_dict()["total_bytes"], [row.total_bytes for row in heap])
        html = heap._repr_html_()
        expect(html.count("<tr>") == len(heap) + 1 and "Cache&lt;" in html and "Cache<" not in html, f"{html}")
        same("lines", len(str(heap).splitlines()), len(heap) + 2)
        expect("Frames by outstanding size" in heap.text, heap.text)
        same("totals", heap.totals["total_bytes"], sum(row.total_bytes for row in heap))
        same("sorted", [row.total_count for row in trace.heap(sort="total_count")], sorted((row.total_count for row in heap), reverse=True))
        same("top", len(trace.heap(top=2)), 2)
        same("split", {row.thread for row in trace.heap(split="thread")}, {"pid 5472 thread 5472 server"})
        same("callers", trace.heap(by="callers", callers_of="*put*")[0].depth, 0)
        same("report", trace.report().text.splitlines()[1:], xheap("report", PLAIN, "-width", 100).splitlines()[1:])
        same("report's peak", trace.report().json["totals"], json.loads(xheap("report", PLAIN, "-format", "json"))["totals"])
    for scene in ("resident", "ended"):
        subprocess.run([os.path.join(os.environ["BUILD"], "tests/golden/make_trace"), scene, f"{scene}.xht"], check=True)
    with package.open("resident.xht") as trace:
        same("why", trace.why(top=1).text.splitlines(), xheap("why", "resident.xht", "-top", 1, "-width", 100).splitlines())
        same("why at a time", trace.why(at="7us", pid=100).json["classes"], json.loads(xheap("why", "resident.xht", "-at", "7us", "-pid", 100, "-format", "json"))["classes"])
    with package.open("ended.xht") as trace:
        same("an end", trace.explain().text.splitlines(), xheap("explain", "ended.xht", "-width", 100).splitlines())
        block = json.loads(xheap("dump", "ended.xht", "-allocations", "-format", "json").splitlines()[0])
        same("an address", trace.explain(int(block["address"], 16), pid=block["pid"], at=f"{block['birth_ns'] + 1}ns").json["of_address"]["block"]["id"], block["id"])
    many = package.Table(["n", "class", "n n", "n_n"], [(i, "a\x1b[31m<b>" + "x" * 200, 1.5, None) for i in range(100)], "t")
    same("a name that Python has", many[0]._fields, ("n", "class_", "n_n", "n_n_"))
    expect("and 40 more" in str(many) and "and 40 more" in many._repr_html_() and "\x1b" not in str(many) + many._repr_html_(), "a long table")
    expect(max(map(len, str(many).splitlines())) < 150, "a wide cell")
    same("an empty table", (str(package.Table(["a"], [])), len(package.Table(["a"], []).as_dict())), ("a", 1))


def check_diff():
    other = TRACES / "libstdcxx.xht"
    for by, words in {"function": ["-frames"], "stack": ["-stacks"], "inclusive": ["-frames", "-inclusive"], "tree": ["-tree"], "image": ["-image"]}.items():
        rows = package.diff(PLAIN, other, by=by, sort="total_bytes")
        wanted = json.loads(xheap("diff", PLAIN, other, words[0], "st", *words[1:], "-format", "json"))["actions"][0]["rows"]
        same(f"diff {by}", [(row.state, row.total_bytes_a, row.total_bytes_b, row.total_bytes_change) for row in rows],
             [(row["state"], row["a"]["total_bytes"], row["b"]["total_bytes"], row["change"]["total_bytes"]) for row in wanted])
    os.symlink(other, "-totals")
    same("a path that looks like an option", len(package.diff("-totals", other)), 0)
    with package.open(PLAIN) as a, package.open(other) as b:
        wanted = json.loads(xheap("diff", PLAIN, other, "-frames", "-size", 64, 128, "-format", "json"))["actions"][0]["rows"]
        same("diff of open traces", len(package.diff(a, b, size=(64, 128))), len(wanted))


def check_dx():
    with package.open(PLAIN) as trace:
        heap = "@$cursession.TTD.Data.Heap()"
        same("a number", trace.dx(f"{heap}.Count()"), 5322)
        found = trace.dx(f"{heap}.Where(h => h.Size > 3000)")
        same("rows", [(row.index, row.Action, row.Size) for row in found], [(1944, "Alloc", 3072), (5263, "Alloc", 3072), (5320, "Alloc", 4000)])
        same("values", [row.value for row in trace.dx(f"{heap}.Select(h => h.Size).Take(3)")], [112, 64, 80])
        same("groups", dict(trace.dx(f"{heap}.GroupBy(h => h.Action).Select(g => g.Count())").rows), {"Alloc": 3173, "Free": 2149})
        raises(package.CommandError, ["column 14"], lambda: trace.dx("@$cursession.>"), "a query with a mistake")
        raises(package.Error, ["Nothing"], lambda: trace.dx("@$cursession.Nothing"), "a member that is not there")


def check_command():
    for words in ["version"], ["heap", str(PLAIN), "-totals", "-format", "json"]:
        run = subprocess.run([sys.executable, "-m", "xheap", *words], stdout=subprocess.PIPE, text=True)
        same(f"python -m xheap {words}", (run.returncode, run.stdout), (0, xheap(*words)))
    same("its exit status", subprocess.run([sys.executable, "-m", "xheap", "nosuch"], stderr=subprocess.DEVNULL).returncode, 2)


def check_export():
    with package.open(PLAIN) as trace:
        for format, words in {"folded": [], "pprof": [], "speedscope": []}.items():
            said = trace.export(format, f"by_package.{format}", size=(64, 128))
            expect(format == "folded" or f"{format} has no" in said and "xheap: " not in said, f"{format}: {said}")
            xheap("export", PLAIN, "-format", format, "-o", f"by_command.{format}", "-size", 64, 128, *words)
            same(f"export {format}", open(f"by_package.{format}", "rb").read(), open(f"by_command.{format}", "rb").read())


def check_words():
    """Filters as words of the command: an export has the same stacks. None is no bound."""
    with package.open(PLAIN) as trace:
        unbounded = {"size": [((None, 128), ["-size", 0, 128]), ((64, None), ["-size", 64, 2**64 - 1]), ("64", ["-size", 64, 65])],
                     "range": [((None, "21ms"), ["-range", 0, "21ms"]), (("20.5ms", None), ["-range", "20500us", "1000s"])],
                     "lifetime": [(("10us", None), ["-lifetime", "10us", "1000s"])]}
        for name, cases in {**{name: [case] for name, case in FILTERS.items()}, **unbounded}.items():
            for value, words in cases:
                trace.export("speedscope", "by_package", **{name: value})
                xheap("export", PLAIN, "-format", "speedscope", "-o", "by_command", *words)
                text = open("by_package").read()
                expect(text and text == open("by_command").read(), f"{name}={value!r}: not the stacks of {words}")
                same(f"{name}={value!r}: bytes of heap", trace.heap(by="total", **{name: value}).totals["total_bytes"],
                     json.loads(xheap("heap", PLAIN, "-totals", *words, "-format", "json"))["totals"]["total_bytes"])


def main():
    for path in ALL:
        check_info(path)
    for path in [PLAIN, TRACES / "python.xht", OLDER / "processes.xht", OLDER / "attached.xht", OLDER / "annotated.xht", OLDER / "kept.xht"]:
        check_heap(path)
    for name, (value, words) in FILTERS.items():
        check_heap(PLAIN, *words, **{name: value})
    check_shown()
    check_diff()
    check_dx()
    check_command()
    check_export()
    check_words()
    finish()


main()
