#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Findings of report are of functions: each has the sum of its stacks, also where one of them alone has much of it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from live import dump, expect, run_tests, xheap

PROGRAM = """#include <stdlib.h>
volatile int made;
__attribute__((noinline)) void *node_make(int size) { void *volatile node = malloc(size); made++; return node; }
%s
__attribute__((noinline)) void *table_make(int size) { void *volatile table = malloc(size); made++; return table; }
int main(void) { %s return 0; }
"""


def record(name, table, after="table_make(TABLE);"):
    """Of fewer than ten callers: a function with more of them is a wrapper, and culled."""
    function = "__attribute__((noinline)) void {}(void) {{ {} made++; }}\n"
    kinds = [f"parse{i}" for i in range(5)]
    made = "".join(function.format(kind, "node_make(10000);") for kind in kinds)
    made += "".join(function.format(f"read{i}", " ".join(f"{kind}();" for kind in kinds)) for i in range(4))
    with open(f"{name}.c", "w") as file:
        file.write(PROGRAM % (made, " ".join(f"read{i}();" for i in range(4)) + after))
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-g", f"-DTABLE={table}", "-o", name, f"{name}.c"], check=True)
    xheap("record", "-q", "-o", f"{name}.xht", f"./{name}")
    return " ".join(xheap("report", f"{name}.xht").split())


def several_stacks():
    said = record("spread", 1000)
    expect("spread!node_make holds 99 % of the peak: 195.3 KiB in 20 blocks, by 20 stacks together. xheap heap spread.xht -callers 'spread!node_make' sp -top 3" in said, said)


def one_stack():
    said = record("single", 400000)
    expect("single!table_make holds 66 % of the peak: 390.6 KiB in 1 block. xheap heap single.xht -stacks sp -top 3" in said, said)
    line = 1 + next(i for i, text in enumerate(PROGRAM.splitlines()) if "*table_make" in text)
    line += len(pathlib.Path("single.c").read_text().splitlines()) - len(PROGRAM.splitlines())
    expect(f"66 % 1 block single!table_make single.c:{line} < main" in said, said)


def large_and_small_stacks():
    """Of 195.3 KiB and 97.6 KiB by stacks of node_make, and 97.6 KiB of table_make."""
    said = record("mixed", 100000, "node_make(TABLE); table_make(TABLE);")
    expect("mixed!node_make holds 75 % of the peak: 293.0 KiB in 21 blocks, by 21 stacks together." in said, said)
    expect("mixed!node_make has 75 % of the bytes that are never freed: 293.0 KiB in 21 blocks, by 21 stacks together." in said, said)
    rows = xheap("heap", "mixed.xht", "-callers", "mixed!node_make", "sp", "-top", "1")
    expect(rows.splitlines()[-1].split()[:4] == ["293.0", "KiB", "21", "293.0"], rows)


def short_lived_of_several_stacks():
    """1,500 blocks by three stacks of table_make, of which each has fewer than the 700 of node_make."""
    loops = ["table_make"] * 3 + ["node_make"]
    functions = [f"__attribute__((noinline)) void loop{i}(int n) {{ while (n--) free({make}(16)); made++; }}" for i, make in enumerate(loops)]
    with open("loops.c", "w") as file:
        file.write(PROGRAM.replace("int main", "\n".join(functions) + "\nint main") % ("", "loop0(500); loop1(500); loop2(500); loop3(700);"))
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-g", "-o", "loops", "loops.c"], check=True)
    xheap("record", "-q", "-o", "loops.xht", "./loops")
    said = " ".join(xheap("report", "loops.xht", "-shortLived", "1s").split())
    expect("1,500 of them are from loops!table_make, the most from one function." in said, said)


def without_name():
    """A function without a name has its named caller below its first stack, also where it has no line of its own."""
    made = "static __attribute__((noinline)) void *node_make(int size) { void *volatile node = malloc(size); made++; return node; }\n"
    calls = "".join(f"__attribute__((noinline)) void load{i}(void) {{ node_make({size}); made++; }}\n" for i, size in enumerate((300000, 200000)))
    with open("stripped.c", "w") as file:
        file.write("#include <stdlib.h>\nvolatile int made;\n" + made + calls + "int main(void) { load0(); load1(); return 0; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-s", "-rdynamic", "-o", "stripped", "stripped.c"], check=True)
    xheap("record", "-q", "-o", "stripped.xht", "./stripped")
    said = " ".join(xheap("report", "stripped.xht").split())
    found = re.search(r"293\.0 KiB 60 % 1 block (stripped\+0x\w+) < load0 < main no name here; the named caller with the most, 60 %: stripped!load0 195", said)
    expect(found, said)
    expect(said.count("no name here") == 1 and f"{found[1]} holds 100 % of the peak" in said, said)


def package():
    """The package of a stripped library of Debian's is known, not how that of its symbols is called."""
    if not shutil.which("sqlite3") or not shutil.which("dpkg-query"):
        return "sqlite3 or dpkg-query is not installed"
    query = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 9000) insert into t select hex(randomblob(500)) from c;"
    xheap("record", "-q", "-o", "lite.xht", "sqlite3", ":memory:", f"create table t(a); {query}")
    said = " ".join(xheap("report", "lite.xht").split())
    image = re.search(r"(\S+)\+0x\w+ holds \d+ % of the peak", said)
    if not image:
        return "this sqlite3 has symbols"
    path = next(row["path"] for row in dump("lite.xht", "-images") if row["path"].endswith("/" + image[1]))
    owner = subprocess.run(["dpkg-query", "-S", path], stdout=subprocess.PIPE, text=True, check=False).stdout.split(":")[0]
    expect(not owner or f"no name here (debug symbols of {owner} have it)" in said, f"{owner}: {said}")


def of_a_library():
    """-frames has a row of a library's function (of Rust's namespace test), which report adds to its caller, and says so."""
    with open("table.c", "w") as file:
        file.write(PROGRAM.replace("int main", 'void *core_make(int size) __asm__("_ZN4test4makeEi");\n'
                                   "__attribute__((noinline)) void *core_make(int size) { void *volatile core = malloc(size); made++; return core; }\nint main")
                   % ("", "core_make(200000); table_make(100000);"))
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-g", "-o", "table", "table.c"], check=True)
    xheap("record", "-q", "-o", "table.xht", "./table")
    note = "  table!test::make is of a library: report adds it to the function of yours that called it\n"
    rows = xheap("heap", "table.xht", "-frames", "sp")
    expect(note in rows, rows)
    for words in ("-frames -requireFrames table_make", "-frames -allFrames", "-frames -inclusive"):
        expect(note not in xheap("heap", "table.xht", *words.split()), words)
    said = " ".join(xheap("report", "table.xht").split())
    expect("table!main holds 66 % of the peak: 195.3 KiB in 1 block." in said, said)


def of_many():
    """Python's own library is culled, also where it loads modules. A note's name is still there when other names have come; how many have is by chance."""
    if not os.path.exists("/usr/bin/python3"):
        return "python3 is not installed"
    for modules in ("asyncio", "asyncio, http.server", "unittest.mock", "http.server, json", "decimal"):
        with open("modules.py", "w") as file:
            file.write(f"import {modules}\n")
        xheap("record", "-q", "--python-objects", "-o", "modules.xht", "/usr/bin/python3", "modules.py")
        rows = xheap("heap", "modules.xht", "-heap", "python objects", "-frames", "-width", "200")
        first = rows.split("frame\n", 1)[1].splitlines()[0]
        expect(first.endswith("modules.py!<module>"), rows[:2000])
        for sort in ("so", "st"):
            rows = xheap("heap", "modules.xht", "-frames", sort, "-width", "200")
            for name in re.findall(r"^  (.*) is of a library: report adds it", rows, re.MULTILINE):
                expect(name.startswith("<frozen importlib") and f" {name}\n" in rows, f"{name}: {rows[:2000]}")


def commands():
    """A name with blanks, or too long for the line, is one word of the command beneath a finding, which has the same sum."""
    calls = "".join(f"void call{i}(void) {{ core_make(100000, 0, 0, 0, 0, 0); made++; }}\n" for i in range(3))
    with open("words.c", "w") as file:
        file.write(PROGRAM.replace("int main", 'void *core_make(int, const char *, unsigned long, double, long, int) __asm__("_ZN3app4makeEiPKcmdli");\n'
                                   "__attribute__((noinline)) void *core_make(int size, const char *a, unsigned long b, double c, long d, int e) { void *volatile core = malloc(size); made++; return core; }\n"
                                   f"{calls}int main") % ("", "call0(); call1(); call2();"))
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-fno-inline", "-g", "-o", "words", "words.c"], check=True)
    xheap("record", "-q", "-o", "words.xht", "./words")
    for width in (40, 60, 80, 200):
        lines = re.findall(r"holds 100 %[\s\S]*?^ {6}(xheap heap (?:.*\\\n)*.*)$", xheap("report", "words.xht", "-width", width), re.MULTILINE)
        expect(len(lines) == 1 and "'words!app::make(int,?char" in lines[0], f"{width}: {lines}")
        rows = subprocess.run(["sh", "-c", lines[0].replace("xheap", os.environ["XHEAP"], 1)], stdout=subprocess.PIPE, text=True, check=True).stdout
        expect("293.0 KiB" in rows[rows.index("Callers"):].splitlines()[3], f"{width}: {lines[0]}: {rows}")


INLINED = """#include <string>
#include <vector>
struct row { std::string text; std::vector<long> numbers; };
static std::vector<row *> kept;
__attribute__((noipa)) void observe(int i) {
  row *made = new row;
  made->text = std::string("a text that is not short, and its number: ") + std::to_string(i);
  made->numbers.resize(2000); // most
  kept.push_back(made);
}
int main() { for (int i = 0; i < 500; i++) observe(i); }
"""


def lines_around_inlined():
    """Bytes that a library's code takes, which the compiler has put into a function, are those of the function's line."""
    with open("rows.cc", "w") as file:
        file.write(INLINED)
    subprocess.run([os.environ.get("CXX", "c++"), "-O2", "-g", "-o", "rows", "rows.cc"], check=True)
    xheap("record", "-q", "-o", "rows.xht", "./rows")
    most = 1 + next(i for i, line in enumerate(INLINED.splitlines()) if line.endswith("// most"))
    said = xheap("report", "rows.xht")
    expect(re.search(rf"  rows!observe  rows.cc:{most}$", said, re.MULTILINE), said)


sys.exit(run_tests(several_stacks, lines_around_inlined, one_stack, without_name, package, short_lived_of_several_stacks, large_and_small_stacks, of_a_library, of_many, commands))
