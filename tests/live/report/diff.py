#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `xheap diff` says about real programs: rebuilt ones, symbols on one side only, samples, sums, other programs, several runs."""
import os
import shutil
import subprocess
import sys

from live import expect, run_tests, told, xheap

NUMBERS = ("total_count", "total_bytes", "outstanding_count", "outstanding_bytes", "peak_bytes")
# Two versions: `grow` moved and calls from another line, `old` is gone, `fresh` is new, `kept` is as it was.
SOURCE = """
#include <stdlib.h>
#include <string.h>
#define OUT __attribute__((noinline)) static
#ifdef SECOND
OUT void *padding(void *p) { asm volatile(".zero 64, 0x90" ::: "memory"); return p; }
OUT void *fresh(void) { return malloc(70); }
#endif
OUT void *kept(void) { return malloc(50); }
OUT void *grow(size_t n) {
#ifdef SECOND
  padding(NULL);
#endif
  return calloc(1, n); }
#ifndef SECOND
OUT void *old(void) { return malloc(30); }
#endif
int main(int argc, char **argv) {
  void *volatile p = kept();
  int count = argc > 1 ? atoi(argv[1]) : 10;
  for (int i = 0; i < count; i++) p = grow(1000);
#ifdef SECOND
  p = fresh();
#else
  p = old();
#endif
  (void)p;
  return 0; }
"""


def build(name, *options, source="app.c", compiler=None):
    """The program `name`/app."""
    os.makedirs(name, exist_ok=True)
    subprocess.run([compiler or os.environ.get("CC", "cc"), "-g", "-O1", "-Wl,--build-id", *options, "-o", f"{name}/app", source], check=True)


def record(trace, *command, options=()):
    xheap("record", "-q", "-o", trace, *options, *command)
    return trace


def rows_of(report):
    found = {}
    for row in report["actions"][0]["rows"]:
        frame = row["frame"]
        found[frame.get("symbol", frame.get("offset"))] = row
    return found


def expect_sums(report):
    for name in NUMBERS:
        rows = sum(row["change"][name] for row in report["actions"][0]["rows"])
        expect(rows == report["totals"]["change"][name], f"{name}: rows add up to {rows}, the totals to {report['totals']['change'][name]}")


def versions():
    with open("app.c", "w") as file:
        file.write(SOURCE)
    build("one")
    build("two", "-DSECOND")
    return record("one.xht", "./one/app"), record("two.xht", "./two/app", "12")


def rebuilt():
    """Functions match by name wherever they are; one that was renamed is gone and new."""
    report = told("diff", *versions(), "-frames", "st")
    rows = rows_of(report)
    expect_sums(report)
    expect({"grow", "old", "fresh"} <= rows.keys() and "kept" not in rows, f"rows: {list(rows)}")
    expect(rows["grow"]["state"] == "both" and rows["grow"]["change"]["total_bytes"] == 2000, f"grow: {rows['grow']}")
    expect(rows["old"]["state"] == "gone" and rows["old"]["change"]["outstanding_bytes"] == -30, f"old: {rows['old']}")
    expect(rows["fresh"]["state"] == "new" and rows["fresh"]["change"]["outstanding_bytes"] == 70, f"fresh: {rows['fresh']}")
    stacks = told("diff", "one.xht", "two.xht", "-stacks", "st")
    expect_sums(stacks)
    expect(stacks["actions"][0]["matched_by_name"] > 0, f"stacks: {stacks['actions'][0]}")


def limits():
    """The exit status, of the total and of stacks."""
    one, two = versions()
    xheap("diff", one, two, "-totals", "st", "--fail-above", "1G")
    said = xheap("diff", one, two, "-totals", "st", "--fail-above", "1%", status=1)
    expect("total size grew from" in said, said)
    xheap("diff", two, one, "-totals", "st", "--fail-above", "1%")
    xheap("diff", one, two, "-totals", "st", "--fail-above", "1G", "--fail-frames", "grow")
    xheap("diff", one, two, "-totals", "stc", "--fail-above", "2", "--fail-frames", "grow")
    said = xheap("diff", one, two, "-totals", "stc", "--fail-above", "1", "--fail-frames", "grow", "missing", status=1)
    expect("grow" in said and "missing" in said, said)
    # A frame of one side only is a frame; one of neither is none.
    expect("fresh" in xheap("diff", one, two, "-requireFrames", "fresh", "-frames", "st"), "fresh")
    xheap("diff", one, two, "-requireFrames", "nothing_like_it", status=1)
    xheap("diff", one, two, "-callers", "nothing_like_it", status=1)
    expect("fresh" in xheap("diff", one, two, "-callers", "fresh", "st"), "the callers of a function of one side")


def symbols_on_one_side():
    """The same build-id: what one trace has the names of, the other one has, too."""
    if not shutil.which("strip"):
        return "not tried: there is no strip"
    one, _ = versions()
    shutil.copy("one.xht", "bare.xht")
    for first, second in ((one, "bare.xht"), ("bare.xht", one)):
        # The trace `one` has the symbols of its addresses, and the file has none.
        if not os.path.exists("one/app.full"):
            xheap("symbols", one)
            shutil.copy("one/app", "one/app.full")
            subprocess.run(["strip", "one/app"], check=True)
        report = told("diff", first, second, "-frames", "st")
        expect(not report["actions"][0]["rows"], f"{first} {second}: {rows_of(report).keys()}")
        lent = report["b" if first == one else "a"][0].get("lent_names", 0)
        expect(lent > 0, f"{first} {second}: {lent} names were lent")
    # The file is elsewhere: its names serve the copy at the recorded path, which has none.
    shutil.copy("one/app.full", "full_app")
    record("full.xht", "./full_app")
    report = told("diff", "full.xht", "bare.xht", "-frames", "st")
    expect(report["b"][0].get("lent_names", 0) > 0, f"another path: {report['b'][0]}")
    # Another build without symbols has no frame in common, which the report says.
    shutil.copy("two/app", "kept_app")
    subprocess.run(["strip", "two/app"], check=True)
    record("other.xht", "./two/app")
    report = told("diff", "bare.xht", "other.xht", "-frames", "st")
    expect(report["unmatched_images"] == ["app"] and not told("diff", "bare.xht", "bare.xht")["unmatched_images"], f"other builds: {report['unmatched_images']}")
    expect("other builds, without symbols, of app" in xheap("diff", "bare.xht", "other.xht"), "the text does not say that builds differ")
    # Without symbols on both sides, the same build-id matches by offset.
    record("again.xht", "./one/app", "11")
    report = told("diff", "bare.xht", "again.xht", "-frames", "st")
    part = report["actions"][0]
    expect(part["matched_by_offset"] >= 2 and not part["new"] and not part["gone"], f"by offset: {part}")
    expect([row["change"]["total_bytes"] for row in part["rows"]] == [1000], f"by offset: {part['rows']}")
    expect("matched by build-id and offset" in xheap("diff", "bare.xht", "again.xht", "-frames", "st"), "the text does not say so")


def cplusplus():
    """Templates and std::string: rows add up, a trace beside itself is empty."""
    with open("app.cc", "w") as file:
        file.write("#include <map>\n#include <string>\n#include <vector>\n"
                   "struct Server { std::map<int, std::string> names; void handle(int i) { names[i] = std::string(100 + i, 'x'); } };\n"
                   "int main(int argc, char **) { Server s; std::vector<std::string> all; for (int i = 0; i < 50 * argc; i++) { s.handle(i);\n"
                   "  all.push_back(std::string(40, 'y')); } return all.size() == 1; }\n")
    compiler = os.environ.get("CXX", "c++")
    if not shutil.which(compiler):
        return f"not tried: there is no {compiler}"
    build("cc", source="app.cc", compiler=compiler)
    one, two = record("c1.xht", "./cc/app"), record("c2.xht", "./cc/app", "more")
    for action in ("-stacks", "-frames", "-image"):
        report = told("diff", one, two, action, "st", "-noDefaultCull")
        expect_sums(report)
        expect(not report["actions"][0]["cut"] and report["totals"]["change"]["total_count"] >= 50, f"{action}: {report['totals']}")
    expect("no difference" in xheap("diff", one, one), "c1.xht differs from itself")
    windows = told("diff", f"{one}@..1ms", f"{one}@1ms..", "-stacks", "st")
    whole = told("heap", one, "-totals")["totals"]["total_count"]
    expect(windows["totals"]["a"]["total_count"] + windows["totals"]["b"]["total_count"] >= whole, f"windows: {windows['totals']}")


def rust():
    """Two builds have other hashes in their symbols: only the function that changed has a row."""
    if not shutil.which("rustc"):
        return "not tried: there is no rustc"
    with open("m.rs", "w") as file:
        file.write("use std::collections::HashMap;\n"
                   "#[inline(never)] fn index(n: usize) -> HashMap<usize, String> { (0..n).map(|i| (i, format!(\"name {i}\"))).collect() }\n"
                   "#[inline(never)] fn make(n: usize) -> Vec<Vec<u8>> { (0..n).map(|i| vec![0u8; i % 100 + EXTRA]).collect() }\n"
                   "const EXTRA: usize = if cfg!(second) { 20 } else { 10 };\n"
                   "fn main() { let a = make(500); let b = index(300); println!(\"{} {}\", a.len(), b.len()); }\n")
    for build in ("first", "second"):
        os.makedirs(f"rust/{build}", exist_ok=True)
        subprocess.run(["rustc", "-g", "-A", "warnings", "--cfg", build, "-C", f"metadata={build}", "-o", f"rust/{build}/m", "m.rs"], check=True)
        record(f"{build}.xht", f"rust/{build}/m")
    report = told("diff", "first.xht", "second.xht", "-stacks", "st")
    part = report["actions"][0]
    expect(len(part["rows"]) == 1 and not part["new"] and not part["gone"] and part["unchanged"] >= 4, f"rust: {part['row_count']} rows, {part['new']} new")
    expect(part["rows"][0]["change"]["total_bytes"] == 5000, f"rust: {part['rows'][0]['change']}")
    expect(any("make" in frame.get("symbol", "") for frame in part["rows"][0]["stack"]), f"rust: {part['rows'][0]['stack']}")


def versions_of_a_library():
    """Functions of libgrow.so.1.2 and of libgrow.so.2.0 are the same; if both traces have one of them, versions stay apart."""
    for name, text in (("lib.c", "#include <stdlib.h>\nvoid *lib_grow(int n) { return malloc(n); }\n"),
                       ("user.c", "void *lib_grow(int n); int main(int argc, char **v) { (void)v; for (int i = 0; i < argc; i++) lib_grow(100); return 0; }\n")):
        with open(name, "w") as file:
            file.write(text)
    compiler = os.environ.get("CC", "cc")
    for version, words in (("1.2", []), ("2.0", ["more"])):
        os.makedirs(version, exist_ok=True)
        library = f"./libgrow.so.{version}"
        subprocess.run([compiler, "-g", "-O1", "-fPIC", "-shared", "-o", library, "lib.c"], check=True)
        subprocess.run([compiler, "-g", "-O1", "-o", f"{version}/user", "user.c", library], check=True)
        record(f"lib{version}.xht", f"{version}/user", *words)
    report = told("diff", "lib1.2.xht", "lib2.0.xht", "-frames", "st")
    rows = [(row["frame"]["image"], row["state"], row["change"]["total_bytes"]) for row in report["actions"][0]["rows"]]
    expect(rows == [("libgrow.so", "both", 100)] and report["versioned_images"] == ["libgrow.so"], f"{rows} {report['versioned_images']}")
    expect("other versions of libgrow.so" in xheap("diff", "lib1.2.xht", "lib2.0.xht", "-requireFrames", "libgrow!"), "the text does not say so")
    report = told("diff", "lib1.2.xht", "lib1.2.xht", "lib2.0.xht", "--", "lib2.0.xht", "lib1.2.xht", "-image", "st")
    expect(report["versioned_images"] == ["libgrow.so"], f"{report['versioned_images']}")
    xheap("merge", "lib1.2.xht", "lib2.0.xht", "-o", "both.xht")
    report = told("diff", "both.xht", "lib2.0.xht", "-image", "st")
    rows = {row["image"]: row["state"] for row in report["actions"][0]["rows"]}
    expect(rows == {"libgrow.so.1.2": "gone"} and not report["versioned_images"], f"{rows} {report['versioned_images']}")


def other_names_of_a_program():
    """A build under another name has the functions of the first one; files of both names in one trace, or several programs, stay apart."""
    one, two = versions()
    shutil.copy("two/app", "app.new")
    new = record("new.xht", "./app.new", "12")
    report, wanted = told("diff", one, new, "-frames", "st"), told("diff", one, two, "-frames", "st")
    expect(report["matched_programs"] == ["app", "app.new"] and not report["different_programs"], f"{report['matched_programs']}")
    for part in (report, wanted):
        del part["b"], part["matched_programs"]
    expect(report == wanted, "another name makes other rows")
    expect("matched as one program: app, app.new" in xheap("diff", one, new), "the text does not say so")
    runs = told("diff", new, new, "--", one, two, "-frames", "st")
    expect(runs["matched_programs"] == ["app.new", "app"] and rows_of(runs)["grow"]["frame"]["image"] == "app.new", f"{runs['matched_programs']}")
    several = record("several.xht", "sh", "-c", "./one/app; ./one/app 5")
    report = told("diff", several, new, "-frames", "st")
    expect(not report["matched_programs"] and report["different_programs"], f"{report['matched_programs']}")


def samples_and_sums():
    """A sample beside an exact trace has errors; a trace with folded time has no stacks of frees, but a difference."""
    versions()
    exact = record("exact.xht", "./one/app", "3000")
    sample = record("sample.xht", "./one/app", "3000", options=("--sample", "4K"))
    report = told("diff", exact, sample, "-frames", "st")
    change = report["totals"]["change_error"]["total_bytes"]
    expect(change > 0 and "temporary_count" not in report["totals"]["change"], f"{report['totals']}")
    text = xheap("diff", exact, sample, "-frames", "st")
    expect("~" in text and "B:   a sample" not in text and "a sample, of one byte in" in text, text)
    # Three thousand blocks of a sample of one in four lie within five standard errors, whoever runs this.
    expect(abs(report["totals"]["change"]["total_bytes"]) < 5 * change, f"{report['totals']['change']} +- {change}")
    # A small block is seldom in a sample: that it is not there is no sign.
    gone = [row for row in report["actions"][0]["rows"] if row["state"] == "gone"]
    expect(all("total_bytes" in row["in_spread"] and "total_count" in row["in_spread"] for row in gone), f"gone: {gone}")
    xheap("diff", exact, sample, "-frames", "stt", status=2)
    kept = record("kept.xht", "./one/app", "3000", options=("--keep", "live"))
    report = told("diff", exact, kept, "-frames", "st")
    expect(not any(report["totals"]["change"].get(name) for name in NUMBERS[:4]), f"kept: {report['totals']['change']}")


def others():
    """Other programs, a missing file, one that is no trace, an empty one, 32 sources."""
    one, two = versions()
    record("true.xht", "true")
    record("pipe.xht", "sh", "-c", "true | env true")
    text = xheap("diff", one, "pipe.xht", "-stacks", "st")
    expect("different programs" in text, text)
    expect("different programs" not in xheap("diff", one, two), "two builds of one program are different programs")
    expect("no difference" in xheap("diff", "true.xht", "true.xht"), "true.xht")
    open("nothing.xht", "w").close()
    for words, reason in (((one, "missing.xht"), "missing.xht"), ((one, "app.c"), "app.c"), ((one, "nothing.xht"), "nothing.xht")):
        said = xheap("diff", *words, status=2)
        expect(reason in said, f"{words}: {said}")
    many = told("diff", *([one] * 16), "--", *([two] * 16), "-frames", "st")
    expect(many["totals"]["change"] == told("diff", one, two, "-totals")["totals"]["change"], f"32 sources: {many['totals']}")
    expect(not any(many["totals"]["change_error"].values()), "runs without a spread have one")
    os.rename(one, "a@1..2")
    expect(told("diff", "a@1..2", two, "-totals")["totals"]["change"]["total_count"], "a file with the name of a window")


def runs():
    """Runs that vary: a change inside their spread is marked, and is no growth."""
    versions()
    a = [record(f"a{count}.xht", "./one/app", str(count)) for count in (100, 140, 120)]
    b = [record(f"b{count}.xht", "./one/app", str(count)) for count in (110, 150, 130)]
    report = told("diff", *a, "--", *b, "-frames", "stc")
    row = rows_of(report)["grow"]
    expect((row["a"]["total_count"], row["b"]["total_count"], row["a_min"]["total_count"], row["b_max"]["total_count"]) == (120, 130, 100, 150), f"{row}")
    expect(row["a_deviation"]["total_count"] == 20 and "total_count" in row["in_spread"], f"{row}")
    xheap("diff", *a, "--", *b, "-frames", "stc", "--fail-above", "1%")
    xheap("diff", a[0], b[2], "-frames", "stc", "--fail-above", "1%", status=1)
    c = [record(f"c{count}.xht", "./one/app", str(count)) for count in (1000, 1040, 1020)]
    xheap("diff", *a, "--", *c, "-frames", "stc", "--fail-above", "1%", status=1)
    normalised = told("diff", a[0], c[0], "-normalise", "count", "-totals")
    expect(abs(normalised["totals"]["change"]["total_count"]) < 0.001, f"{normalised['totals']['change']}")
    factor = told("diff", a[0], a[0], "-normalise", "0.5", "-totals")["totals"]
    expect(factor["b"]["total_bytes"] * 2 == factor["a"]["total_bytes"], f"{factor}")


sys.exit(run_tests(rebuilt, limits, symbols_on_one_side, versions_of_a_library, other_names_of_a_program, cplusplus, rust, samples_and_sums, others, runs))
