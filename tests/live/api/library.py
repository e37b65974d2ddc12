#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library as its users have it: the examples of docs/xheap-api.md in C11 and C++17, and what the library may not do to its program."""
import collections
import csv
import errno
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

from live import LONG_SECONDS, is_reading, told, wait_for

XHEAP, BUILD, SOURCE = os.path.realpath(os.environ["XHEAP"]), pathlib.Path(os.environ["BUILD"]).resolve(), pathlib.Path(os.environ["SOURCE"])
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LIBRARY = BUILD / "src/api"
TARGET = BUILD / "tests/live/attached"
IMPORTED = subprocess.run(["nm", "-D", "--undefined-only", LIBRARY / "libxheap.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
# A library with a sanitizer in it needs a program that has it, too.
SANITIZER = ["-fsanitize=thread"] if "__tsan_" in IMPORTED else ["-fsanitize=address,undefined"] if "__asan_" in IMPORTED else []
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=str(LIBRARY), XHEAP=XHEAP)
PERL = ["perl", "-e", 'my %count; $count{$_ % 500} .= "line $_\\n" for 1 .. 5000;']
# Of the functions that end, print, or change what belongs to the whole program. _exit: of a forked child whose exec has failed.
STATES = ["lost", "indirect", "interior", "start"]      # in the order of enum xheap_reach
ENDS = ["free", "realloc", "destroy", "gap", "conflict", "exit", "open"]
FAULTS = ["none", "double_free", "interior_free", "foreign_free", "damaged_heap", "no_memory"]
CERTAINTIES = ["unknown", "likely", "certain"]
FORBIDDEN = set("""exit abort quick_exit __assert_fail printf puts putchar vprintf __printf_chk __vprintf_chk perror psignal warn err stdout stderr signal sigaction
    sigprocmask atexit setlocale system popen chdir fchdir umask putenv setenv unsetenv alarm setitimer setuid setsid""".split())
# A million calls of as many stacks: each bit of a number is one of two places that call.
MANY_STACKS = """#include <stdlib.h>
#include <unistd.h>
static void *volatile block;
__attribute__((noipa)) static void grow(int depth)
{
	if (!depth) {
		free(block = malloc(8));
		return;
	}
	grow(depth - 1);
	grow(depth - 1);
	block = NULL;
}
int main(void)
{
	char byte;
	grow(20);
	return read(0, &byte, 1) < 0;
}
"""
# Loses ten blocks, and ten to which those point, and keeps ten; then it waits.
LOSING = """#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
static void *volatile kept[10];
OUT static void *make(size_t size) { return calloc(1, size); }
OUT static void lose(void) { void *volatile *block = make(300); block[0] = make(40); }
OUT static void clean(void) { volatile char room[8000]; memset((char *)room, 0, sizeof(room)); }
int main(void)
{
	char byte;
	for (int i = 0; i < 10; i++) { lose(); kept[i] = make(50); }
	clean();
	return read(0, &byte, 1) < 0;
}
"""
CRASHING = """#include <stdlib.h>
#include <string.h>
#define OUT __attribute__((noipa))
OUT static void *make(size_t size) { return calloc(1, size); }
OUT static void give(void *block) { free(block); }
int main(int count, char **words)
{
	char *volatile block = make(40), *volatile other = make(2000), *volatile last = make(40);
	if (words[1][0] == 'd') { give(block); give(block); }
	if (words[1][0] == 'b') { memset(block, 'x', 64); give(other); make(4000); }
	if (words[1][0] == 'a') { *(void **)other = (void *)0x123456789abcdef; char *volatile *volatile after = (void *)last; after[2] = (void *)0x6b6b6b6b6b6b6b6b; give(last); *after[2] = 1; }
	return count;
}
"""
LOGGER_BYTES = 256 << 20         # three eighths of this are for stacks, of which a million need more
failed = 0


def expect(condition, text):
    global failed
    if not condition:
        print(text)
        failed += 1


def run(*words, **more):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS, env=ENVIRONMENT, **more)


def compile_as(language, source, program):
    compiler, standard = (os.environ.get("CC", "cc"), "-std=c11") if language == "c" else (os.environ.get("CXX", "c++"), "-std=c++17")
    made = run(compiler, standard, "-D_DEFAULT_SOURCE", *STRICT, *SANITIZER, "-g", "-I", SOURCE / "include", "-x", language, source, "-o", program, "-x", "none", "-L",
               LIBRARY, "-lxheap", "-pthread")
    expect(made.returncode == 0, f"{source} as {language}:\n{made.stderr}")
    return f"./{program}"


def examples():
    texts = re.findall(r"```c\n(.*?)```", (SOURCE / "docs/xheap-api.md").read_text(), re.S)
    expect(len(texts) == 3, f"{len(texts)} examples")
    for name, text in zip(("heaviest", "arrow", "session"), texts):
        pathlib.Path(f"{name}.c").write_text(text)
    for language in "c", "c++":
        trace = f"example-{len(language)}.xht"
        session = run(compile_as(language, "session.c", f"session-{len(language)}"), trace, *PERL)
        expect(session.returncode == 0, f"the session in {language}: {session}")
        counts = re.fullmatch(r"(\d+) of (\d+) blocks were never freed\n", session.stdout)
        expect(counts and 500 < int(counts[1]) < int(counts[2]), f"its blocks: {session.stdout}")
        heaviest = run(compile_as(language, "heaviest.c", f"heaviest-{len(language)}"), trace)
        rows = re.findall(r"^(\d+) bytes in (\d+) blocks$", heaviest.stdout, re.M)
        known = run(XHEAP, "heap", trace, "-stacks", "sp", "-top", "10", "-format", "csv").stdout.splitlines()
        column = known[0].split(",").index("peak_bytes")
        expect(len(rows) == 10 and [row[0] for row in rows] == [line.split(",")[column] for line in known[1:]],
               f"the heaviest stacks are not those of xheap heap: {heaviest.stdout}")
        expect("\n    perl!main\n" in heaviest.stdout, "nor are there their frames")
        arrow = run(compile_as(language, "arrow.c", f"arrow-{len(language)}"), trace)
        sums = collections.Counter()
        for row in rows_of(trace, "-events"):
            if row["action"] in ("Alloc", "ReAlloc") and row["address"] and row["result"] == "0":
                sums[row["function"]] += int(row["size"])
        expect(arrow.stdout.splitlines() == [f"{total} by {name}" for name, total in sums.most_common()], f"sums by function: {arrow.stdout}, not {sums}")
        bad = run(f"./heaviest-{len(language)}", "heaviest.c")
        expect((bad.returncode, bad.stdout, bad.stderr) == (1, "", "heaviest.c is not a trace\n"), f"what is no trace: {bad}")
    bad = run("./session-1", "no.xht", "no-such-command")
    expect(bad.returncode == 1 and bad.stderr == "cannot run no-such-command: No such file or directory\n", f"what cannot be run: {bad}")
    bare = run("env", "-u", "XHEAP", "PATH=/nowhere", "./session-1", "no.xht", *PERL)
    expect((bare.returncode, bare.stderr) == (1, "cannot run the command xheap: No such file or directory in PATH; XHEAP names its path\n"),
           f"without the command: {bare}")


# ---- what is read, against what the command prints ----

def rows_of(trace, what, *words):
    out = run(XHEAP, "dump", trace, what, "-format", "csv", *words)
    expect(out.returncode == 0, f"dump {trace} {what}: {out.stderr}")
    return list(csv.DictReader(out.stdout.splitlines()))


def same(what, seen, wanted):
    for i, (one, other) in enumerate(itertools.zip_longest(seen, wanted)):
        if one != other:
            expect(False, f"{what}: row {i} is {one}, not {other}")
            return


def event_line(row, number):
    address = lambda text: text if text != "0x0" else ""
    result = "0" if row["result"] == "in-flight" else row["result"]
    return ",".join([number, row["time_ns"], row["process"], row["pid"], row["tid"], row["action"], row["function"], address(row["heap"]), row["address"],
                     row["previous_address"], row["size"] or "0", row["usable"] or "0", row["stack_id"] or "0", result])


def events(program, trace):
    wanted = rows_of(trace, "-events")
    times = sorted(int(row["time_ns"]) for row in wanted)
    ranges = [(-2**63, 2**63 - 1), (times[len(times) // 3], times[len(times) * 2 // 3])]
    for (begin, end), (singles, batches) in itertools.product(ranges, [(1, 0), (3, 2)] if trace == "plain.xht" else [(0, 1)]):
        inside = [row for row in wanted if begin <= int(row["time_ns"]) <= end]
        seen = run(program, "events", trace, "time", begin, end, singles, batches).stdout.splitlines()
        same(f"events of {trace} from {begin} to {end}, {singles} and {batches} at a time", seen, [event_line(row, row["seq"]) for row in inside])
        seen = run(program, "events", trace, "file", begin, end, singles, batches).stdout.splitlines()
        same(f"events of {trace} as stored", sorted(seen), sorted(event_line(row, "-1") for row in inside))


ENDS = ["free", "realloc", "destroy", "gap", "conflict", "exit", "open"]


def allocation_line(row):
    return ",".join([row["id"], row["tid"], row["address"], row["size"], row["birth_ns"], row["end_ns"] or "-1", str(ENDS.index(row["end_kind"])),
                     row["free_tid"] or "-1", row["stack_id"] or "0", row["free_stack_id"] or "0", row["previous_id"] or "-1"])


def allocations(program, trace, frame):
    asked = itertools.product([(0, 2**64 - 1), (32, 512)], [[], [frame]], [(1, 0), (0, 1), (2, 1)])
    for (low, high), more, (singles, batches) in [((32, 512), [frame], (2, 1))] if trace == "real.xht" else asked:
        wanted = rows_of(trace, "-allocations", "-size", low, "max" if high == 2**64 - 1 else high, *(["-requireFrames", *more] if more else []))
        seen = run(program, "allocations", trace, low, high, singles, batches, *more).stdout.splitlines()
        same(f"allocations of {trace} from {low} to {high} {more}, {singles} and {batches} at a time", seen, map(allocation_line, wanted))


def reports(program, trace, frame):
    asked = [("", "", "", ""), ("stacks", "sp", "", ""), ("frames", "st", "", ""), ("frames-inclusive", "", "", ""), ("image", "", "process", ""),
             ("heaps", "", "", ""), ("tree", "sp", "", ""), ("callers", "", "", frame), ("chains", "", "", ""), ("totals", "", "", ""),
             ("frames", "", "size", ""), ("stacks", "", "thread", "")]
    for action, sort, by, callers in asked[::3] if trace == "real.xht" else asked:
        words = ["-callers", callers] if callers else ["-frames"] if action == "frames-inclusive" else ["-" + (action or "stacks")]
        words += ([sort] if sort else []) + (["-inclusive"] if action == "frames-inclusive" else []) + (["-by", by] if by else [])
        for kind in ["json"] if trace == "real.xht" else ["json", "csv", "text"]:
            wanted = run(XHEAP, "heap", trace, *words, "-size", 8, 100000, "-format", kind).stdout
            seen = run(program, "report", trace, action, sort, by, callers, kind, 8, 100000).stdout
            same(f"{trace} {words} as {kind}", seen.splitlines(), wanted.splitlines())
        if action == "totals":
            continue
        known = json.loads(run(XHEAP, "heap", trace, *words, "-format", "json").stdout)
        seen = run(program, "rows", trace, action, sort, by, callers).stdout.splitlines()
        rows = known["actions"][0]["rows"]
        expect(len(seen) == len(rows) + 1, f"{trace} {words}: {len(seen) - 1} rows, not {len(rows)}")
        for line, row in zip(seen, rows):
            numbers = ",".join(str(row[name]) for name in ("total_bytes", "outstanding_count", "peak_bytes", "temporary_count", "open_count"))
            expect(line.startswith(numbers + f",{row.get('depth', 0)},"), f"{trace} {words}: {line}, not {numbers}")
            expect(not by or f",{row[by]}," in line, f"{line} has no {by} {row.get(by)}")
        totals = known["totals"]
        expect(seen[-1] == f"totals {totals['total_bytes']},{totals['peak_bytes']},{known['actions'][0]['row_count']}", seen[-1])


def index(program):
    """What the command keeps for its next question is good for programs, too, as long as it is whole."""
    shutil.copy("random.xht", "indexed.xht")
    wanted = run(program, "allocations", "random.xht", 0, 2**64 - 1, 0, 1).stdout
    subprocess.run([XHEAP, "heap", "indexed.xht"], stdout=subprocess.DEVNULL, env=dict(ENVIRONMENT, XHEAP_INDEX_EVENTS="1"), check=True)
    kept, = pathlib.Path(os.environ["XDG_CACHE_HOME"], "xheap/indexes").glob("*.index")
    expect(run(program, "allocations", "indexed.xht", 0, 2**64 - 1, 0, 1).stdout == wanted, "allocations of an index are others")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:4096] + bytes(byte ^ 0x55 for byte in whole[4096:4160]) + whole[4160:])
    seen = run(program, "allocations", "indexed.xht", 0, 2**64 - 1, 0, 1).stdout
    expect(f"{kept} is damaged: remove it" in seen, f"a damaged index: {seen[-200:]}")
    stream = run(program, "stream", "indexed.xht").stdout
    expect(stream == f"{errno.EBADMSG}: the index {kept} is damaged: remove it\n", f"a damaged index by a stream: {stream}")
    kept.write_bytes(whole[:100])
    expect(run(program, "allocations", "indexed.xht", 0, 2**64 - 1, 0, 1).stdout == wanted, "an index that is cut is used")
    sizes = [int(line.split(",")[3]) for line in wanted.splitlines()]
    expect(run(program, "stream", "indexed.xht").stdout == f"{len(sizes)} rows, {sum(sizes)} bytes\n", "nor by a stream")


def stacks(program, trace):
    seen = run(program, "stacks", trace).stdout.splitlines()
    same(f"frames of {trace}", seen, [row["stack"] for row in rows_of(trace, "-stacks", "-wholeStacks")])
    alone = run(program, "stacks", trace, "alone").stdout
    expect("!" not in alone and "+0x" in alone, f"frames of {trace} without files: {alone}")


def resident(program):
    """The answer about resident memory, and its classes and stacks."""
    run(BUILD / "tests/golden/make_trace", "resident", "resident.xht")
    for pid, words in ((0, ()), (100, ("-pid", 100))):
        wanted = {kind: run(XHEAP, "why", "resident.xht", *words, "-top", 2**32 - 1, "-width", 100, "-format", kind).stdout for kind in ("text", "json")}
        for kind, text in wanted.items():
            same(f"why {words} as {kind}", run(program, "why", "resident.xht", kind, pid).stdout.splitlines(), text.splitlines())
        answer = json.loads(wanted["json"])
        rows = [f"{name},{count}" for name, count in answer["classes"].items()]
        rows += [f"stack {stack['live_bytes']},{stack['count']}" for stack in answer["stacks"]]
        seen = run(program, "why", "resident.xht", "classes", pid).stdout.splitlines()
        same(f"why {words}", [line.rsplit(",", 2)[0] if line.startswith("stack ") else line for line in seen], rows)
    refused = run(program, "why", "resident.xht", "text", 1)
    expect(refused.returncode == 1 and "no process has the pid 1" in refused.stdout + refused.stderr, f"{refused}")


def lost(program):
    """Lost blocks of a copy of a process that runs."""
    name, core = f"lost{os.getpid()}", os.path.abspath("lost.core")
    pathlib.Path("losing.c").write_text(LOSING)
    expect(run(os.environ.get("CC", "cc"), "-O1", "-fno-builtin", "losing.c", "-o", "losing").returncode == 0, "losing.c does not compile")
    expect(run(XHEAP, "start", name, "-o", "lost.xht").returncode == 0, "a session")
    with subprocess.Popen([XHEAP, "launch", name, "--", "./losing"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=ENVIRONMENT) as server:
        try:
            wait_for("a program that waits for its input", lambda: all_read(name, 1))
            pid = told("query", name)["targets"][0]["pid"]
            for path, said in (("lost.core", "not an absolute path"), ("/" + "x" * 9000, "too long"), ("/no/such/folder/core", "/no/such/folder/core")):
                refused = run(program, "copy", name, pid, path)
                expect(refused.returncode == 1 and said in refused.stdout, f"{path}: {refused}")
            time_ns, pause_ns = map(int, run(program, "copy", name, pid, core).stdout.split())
        finally:
            server.communicate(b"\n")
            run(XHEAP, "stop", name)
    for size in (0, 200):
        wanted = {kind: run(XHEAP, "leaks", core, "-trace", "lost.xht", *(("-size", size, "max") if size else ()), "-top", 2**32 - 1, "-width", 100, "-format", kind).stdout for kind in ("text", "json")}
        for kind, text in wanted.items():
            same(f"leaks of {size} bytes as {kind}", run(program, "leaks", "lost.xht", core, kind, size, 0, 0).stdout.splitlines(), text.splitlines())
        answer = json.loads(wanted["json"])["processes"][0]
        lines = run(program, "leaks", "lost.xht", core, "rows", size, time_ns, pause_ns).stdout.splitlines()
        same("the moment", lines[0], str(time_ns))
        same("the sums", lines[1:5], [f"{answer['sums'][state]['count']},{answer['sums'][state]['bytes']}" for state in STATES])
        same("the rows", [line.rsplit(",", 2)[0] for line in lines[5:]], [f"{STATES.index(row['state'])},{row['count']},{row['bytes']}" for row in answer["rows"]])
        expect(lines[1] == "10,3000", f"ten blocks are lost: {lines}")
    paused = json.loads(run(program, "leaks", "lost.xht", core, "json", 0, time_ns, pause_ns).stdout)["processes"][0]
    same("the pause", (paused["at_us"], paused["pause_us"]), (time_ns / 1000, pause_ns / 1000))
    for words, said in ((("real.xht", core), "is of"), (("lost.xht", "/dev/null"), "/dev/null")):
        refused = run(program, "leaks", *words, "text", 0, 0, 0)
        expect(refused.returncode == 1 and said in refused.stdout, f"{words}: {refused}")


def block_line(name, block, last):
    return f"{name} {block['id']},{block['address']},{block['size']},{int(bool(block.get('allocated', {}).get('stack')))},{ENDS.index(block['end'])},{last}"


def explained_lines(answer):
    """What rows of an explanation say, by its JSON."""
    of, end, core = answer.get("of_address", {}), answer.get("of_end", {}), answer.get("of_end", {}).get("core", {})
    lines = [f"{answer['process']},{end.get('under_way_count', 0)},{end.get('earlier_faults', 0)},{core.get('message', '')}"]
    if "block" in of:
        lines.append(block_line("block", of["block"], int(of["state"] == "live")))
    for use in (core.get(key) for key in ("use_after_free", "use_beyond")):
        if use:
            lines.append(block_line("used", use["block"], CERTAINTIES.index(use["certainty"])))
    if "damage" in core:
        lines.append(block_line("damaged", core["damage"]["block"], 0))
    for call in end.get("calls", []):
        thread = call.get("thread", 2**32 - 1)
        lines.append(f"call {FAULTS.index(call['fault'])},{CERTAINTIES.index(call.get('certainty', 'unknown'))},{int(call['under_way'])},{thread},"
                     f"{round(call['at_us'] * 1000)},{call.get('address', '0x0')}")
        if "block" in call:
            lines.append(block_line("of call", call["block"], int(call["state"] == "live")))
    return lines


def explained(program):
    """How a process ended, with and without its core, and what was at an address."""
    run(BUILD / "tests/golden/make_trace", "ended", "ended.xht")
    block = rows_of("ended.xht", "-allocations")[0]
    address, pid, at = block["address"], int(block["pid"]), f"{int(block['birth_ns']) + 1}ns"
    asked = [("ended.xht", None, None, None, 0), ("ended.xht", None, address, None, pid), ("ended.xht", None, address, at, pid)]
    pathlib.Path("crash.c").write_text(CRASHING)
    expect(run(os.environ.get("CC", "cc"), "-O1", "-w", "-fno-builtin", "crash.c", "-o", "crash").returncode == 0, "crash.c does not compile")
    writes_cores = not set("|/") & set(pathlib.Path("/proc/sys/kernel/core_pattern").read_text())
    for fault in ("double", "beyond", "after"):
        # A sanitizer in xheap would take the cores from its children, too.
        run("sh", "-c", f"ulimit -c unlimited; export ASAN_OPTIONS=$ASAN_OPTIONS:disable_coredump=0 TSAN_OPTIONS=$TSAN_OPTIONS:disable_coredump=0; exec {XHEAP} record -q -o {fault}.xht ./crash {fault}")
        cores = list(pathlib.Path(".").glob("core*")) if writes_cores else []
        expect(len(cores) == writes_cores, f"{fault}: cores {cores}")
        asked += [(f"{fault}.xht", cores[0].rename(f"{fault}.core") if cores else None, None, None, 0)]
    kinds = set()
    for trace, core, address, at, pid in asked:
        words = [*([core, "-trace"] if core else []), trace, *([address] if address else []), *(["-at", at] if at else []), *(["-pid", pid] if pid else [])]
        given = [core or "-", address or "-", at or "-", pid]
        wanted = {kind: run(XHEAP, "explain", *words, "-width", 100, "-format", kind).stdout for kind in ("text", "json")}
        for kind, text in wanted.items():
            same(f"explain {words} as {kind}", run(program, "explain", trace, kind, *given).stdout.splitlines(), text.splitlines())
        lines = run(program, "explain", trace, "rows", *given).stdout.splitlines()
        same(f"explain {words}", lines, explained_lines(json.loads(wanted["json"])))
        kinds.update(re.match(r"[a-z ]*", line)[0].strip() for line in lines)
    expect(kinds >= {"block", "call", "of call", *(("used", "damaged") if writes_cores else ())}, f"kinds of rows: {kinds}")
    for words, said in ((("real.xht", "-", "-", "-"), "ended by a signal"), (("plain.xht", "-", "1", "-"), "has ever been there"),
                        (("ended.xht", "-", "-", "1s"), "needs an address"), (("ended.xht", "/dev/null", "-", "-"), "/dev/null")):
        refused = run(program, "explain", words[0], "text", *words[1:], 0)
        expect(refused.returncode == 1 and said in refused.stdout, f"{words}: {refused}")


def library():
    shutil.copy(SOURCE / "tests/live/programs/api.c", "api.c")
    program = compile_as("c", "api.c", "api")
    expect(run(XHEAP, "record", "-o", "real.xht", *PERL).returncode == 0, "recording")
    for scene in "plain", "forks", "losses":
        run(BUILD / "tests/golden/make_trace", scene, f"{scene}.xht")
    run(BUILD / "tests/golden/make_trace", "random", "random.xht", 7)
    for trace in "plain.xht", "forks.xht", "losses.xht", "random.xht", "real.xht":
        events(program, trace)
    for trace, frame in ("plain.xht", "0x2000"), ("real.xht", "Perl_sv_grow"):
        if trace == "plain.xht":
            frame = re.search(r"[^;]+", rows_of(trace, "-stacks")[0]["frame"])[0]
        allocations(program, trace, frame)
        reports(program, trace, frame)
        stacks(program, trace)
    resident(program)
    lost(program)
    explained(program)
    index(program)
    modes = [("misuse", "real.xht", "."), ("threads", "real.xht"), ("sessions", os.path.abspath("session.xht"), TARGET)]
    # libdw has assertions of its own for want of memory, so it is tried without debug information. Sanitizers need more of it than can be refused.
    modes += [] if SANITIZER else [("memory", "random.xht")]
    for words in modes:
        checked = run(program, *words)
        expect(checked.returncode == 0 and checked.stdout.endswith("0 failed\n"), f"api {words}: {checked.returncode}, {checked.stdout}{checked.stderr}")
    info = json.loads(run(XHEAP, "info", "session.xht", "-format", "json").stdout)
    expect(info["complete"], "the session's trace is not whole")


def all_read(name, count):
    targets = told("query", name)["targets"]
    return len(targets) == count and all(is_reading(row["pid"]) for row in targets)


def limited():
    """A logger with little memory cannot keep all stacks of one target. The state says so of this target, and not of the other one."""
    if SANITIZER:
        print("not checked with a sanitizer, which needs more memory than the logger may have: is_limited")
        return
    name = f"limited{os.getpid()}"
    pathlib.Path("many.c").write_text(MANY_STACKS)
    expect(run(os.environ.get("CC", "cc"), "many.c", "-o", "many").returncode == 0, "many.c does not compile")
    started = run(XHEAP, "start", name, "-o", "limited.xht", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (LOGGER_BYTES, LOGGER_BYTES)))
    expect(started.returncode == 0, f"a session: {started.stderr}")
    commands = []
    try:
        for command in ("cat",), ("./many",):
            commands.append(subprocess.Popen([XHEAP, "launch", name, "--", *command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=ENVIRONMENT))
            wait_for(f"{command} that waits for its input", lambda: all_read(name, len(commands)))
            expect(run(XHEAP, "flush", name).returncode == 0, "a flush")
        wanted = sorted(f"{row['pid']} {int(row.get('limited', False))}" for row in told("query", name)["targets"])
        seen = sorted(run("./api", "targets", name).stdout.splitlines())
        same("limited targets", seen, wanted)
        expect(sorted(line.split()[1] for line in seen) == ["0", "1"], f"one of two targets should be limited: {seen}")
    finally:
        for command in commands:
            command.communicate(b"\n")
        run(XHEAP, "stop", name)


def promises():
    header = (SOURCE / "include/xheap/xheap.h").read_text()
    promised = set(re.findall(r"\b(xheap_[a-z_]+)\(", header))
    library = LIBRARY / "libxheap.so"
    there = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", library).stdout.splitlines() if " A " not in line}
    expect(not promised - there, f"the header has more than the library: {promised - there}")
    expect(not {name for name in there if name.startswith("xheap_")} - promised, f"the library has more than the header: {there - promised}")
    package = (BUILD / "meson-private/xheap.pc").read_text()
    expect("-lxheap" in package and "Requires" not in package, f"a program should need no other package: {package}")
    uninstalled = run("env", f"PKG_CONFIG_PATH={BUILD}/meson-uninstalled", "pkg-config", "--cflags", "--libs", "xheap").stdout.split()
    expect(uninstalled == [f"-I{SOURCE.resolve()}/include", f"-L{LIBRARY}", "-lxheap"], f"of a tree that is not installed: {uninstalled}")
    used = {line.split()[-1].split("@")[0] for line in IMPORTED.splitlines()}
    expect(SANITIZER or not used & FORBIDDEN, f"the library uses {used & FORBIDDEN}")


def main():
    promises()
    examples()
    library()
    limited()
    return failed > 0


sys.exit(main())
