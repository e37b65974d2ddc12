#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dx over live traces: parameters of every heap function as the callers logged them, the times of calls, and questions that a model of dump's rows answers, too.

usage: questions.py [TEST...]"""
import collections
import csv
import json
import os
import shutil
import subprocess
import sys

import compare
from live import LONG_SECONDS, PROGRAMS, SOAK, SOURCE, XHEAP, expect, for_preload, info, run_tests

PARAMETERS = os.path.join(PROGRAMS, "parameters")
WITH, OBJECTS = os.path.join(PROGRAMS, "with"), os.path.join(PROGRAMS, "objects")
PRELOADS = ("", "libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4")
FUNCTIONS_LEAST = 19
ALL = "@$cursession.TTD.Data.Heap(false)"


def record(trace, *command, settings=(), options=()):
    if os.path.exists(trace):
        os.unlink(trace)
    # The settings are the program's, not those of xheap.
    return subprocess.run([XHEAP, "record", "-q", *options, "-o", trace, "--", WITH, *(f"{name}={value}" for name, value in settings), *command],
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=True, timeout=LONG_SECONDS).stdout


def rows_of(trace, query):
    """The rows of an answer, one by one: of a million not all fit into memory."""
    with subprocess.Popen([XHEAP, "dx", trace, "-format", "csv", query + ",d"], stdout=subprocess.PIPE, text=True) as run:
        yield from csv.DictReader(run.stdout)
    expect(run.returncode == 0, f"{query}: status {run.returncode}")


PARAMETER_TEXT = 'h.Parameters.Aggregate("", (text, p) => text + " " + p.ToDisplayString("d"))'


def parameters_of(trace):
    """By thread: function and arguments of each call."""
    calls = collections.defaultdict(list)
    for row in rows_of(trace, f"{ALL}.Select(h => new {{ F = h.Function, T = h.Thread.Id, P = {PARAMETER_TEXT} }})"):
        calls[int(row["T"], 0)].append((row["F"], list(map(argument_of, row["P"].split()))))
    return calls


def argument_of(word):
    """A number, or a text: the name of a heap."""
    return int(word) if word.isdigit() else word


NAMES_MOST, NAME_BYTES = 255, 63


def recorded_name(word, names):
    """What docs/dx.md says of a heap's name: what is recorded of it, and how many a process has room for."""
    if word.isdigit():
        return int(word)
    name = "".join(letter if " " <= letter != "\x7f" else "?" for letter in word)[:NAME_BYTES]
    if len(names) < NAMES_MOST:
        names.add(name)
    return name if name in names else 0


def parameters_of_every_function():
    """As the program that made the calls has logged them. Functions at one address have one name in the trace."""
    seen = set()
    for preload in PRELOADS:
        if preload and not any(os.path.exists(os.path.join(folder, preload)) for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")):
            print(f"without {preload}")
            continue
        said = record("parameters.xht", PARAMETERS, "7", settings={"LD_PRELOAD": preload}.items() if preload else ())
        logged, heap_names = collections.defaultdict(list), set()
        for line in said.splitlines():
            tid, name, address, *arguments = line.split()
            logged[int(tid)].append((name, address, [recorded_name(argument, heap_names) for argument in arguments]))
        expect(len(heap_names) == NAMES_MOST, f"{len(heap_names)} heaps have names")
        found = parameters_of("parameters.xht")
        expect(len(logged) == 2, f"threads: {list(logged)}")
        for tid, calls in logged.items():
            # What the thread's start and end allocate lies around them.
            first = next((i for i in range(len(found[tid])) if found[tid][i][1] == calls[0][2]), None)
            expect(first is not None, f"thread {tid}: its first call {calls[0]} is not in the trace")
            called = found[tid][first:first + len(calls)]
            expect(len(called) == len(calls), f"thread {tid} of {preload}: {len(called)} of {len(calls)} calls")
            address_names = collections.defaultdict(set)
            for (name, arguments), (logged_name, address, logged_arguments) in zip(called, calls):
                expect(arguments == logged_arguments, f"{preload}: {name}{arguments}, called as {logged_name}{logged_arguments}")
                address_names[address if address != "(nil)" else logged_name].add(name)
                seen.add(logged_name)
            expect(all(len(shown) == 1 for shown in address_names.values()), f"{preload}: a function has several names: {dict(address_names)}")
    print(f"{len(seen)} functions: {' '.join(sorted(seen))}")
    expect(len(seen) >= FUNCTIONS_LEAST, f"only {len(seen)} functions were called")


def parameters_of_objects():
    """Of the functions of mimalloc's heaps, as their caller logged them."""
    if not os.path.exists(OBJECTS):
        print("programs/objects is not built: there is no mimalloc.h here (Debian: libmimalloc-dev)")
        return
    logged = collections.defaultdict(list)
    for line in record("objects.xht", OBJECTS, "2", "2000", "5").splitlines():
        tid, name, *arguments, _, _ = line.split()
        logged[int(tid)].append((name, list(map(int, arguments))))
    found = parameters_of("objects.xht")
    for tid, calls in logged.items():
        called = [call for call in found[tid] if call[0].startswith("mi_") or call[0] == "free"][:len(calls)]
        expect([arguments for _, arguments in called] == [arguments for _, arguments in calls], f"thread {tid}: " +
               str(next((pair for pair in zip(called, calls) if pair[0][1] != pair[1][1]), (len(called), len(calls)))))
    names = {name for calls in logged.values() for name, _ in calls}
    expect(len(names) >= 12, f"only {sorted(names)} were called")


def parameters_as_preloaded():
    """Of a real program with threads and a forked process, as the preloaded oracle logged them."""
    logs = os.path.abspath("logs")
    os.mkdir(logs)
    script = ("import os, threading, json\n"
              "def work(n): return [json.dumps({'k' * i: list(range(i % 50))}) for i in range(n)]\n"
              "threads = [threading.Thread(target=work, args=(200,)) for _ in range(3)]\n"
              "[t.start() for t in threads]; [t.join() for t in threads]\n"
              "pid = os.fork()\n"
              "work(100)\n"
              "os.waitpid(pid, 0) if pid else os._exit(0)\n")
    record("oracle.xht", "/usr/bin/python3", "-ISc", script, settings={"PYTHONMALLOC": "malloc", "CALL_LOG": logs, "LD_PRELOAD": for_preload("oracle.so")}.items())
    expect(info("oracle.xht")["complete"], "the trace is not complete")
    found = collections.defaultdict(list)
    for row in rows_of("oracle.xht", f"{ALL}.Select(h => new {{ F = h.Function, T = h.Thread.Id, O = h.Process.Id, P = {PARAMETER_TEXT} }})"):
        # Python's arenas have no symbol that a preloaded library could take over.
        if row["F"] in ("_PyObject_ArenaMmap", "_PyObject_ArenaMunmap"):
            continue
        found[int(row["O"], 0), int(row["T"], 0)].append((compare.SAME.get(row["F"], row["F"]), list(map(int, row["P"].split()))))
    logged = {}
    for name in os.listdir(logs):
        if name.endswith(".calls"):
            log = compare.Log(os.path.join(logs, name))
            expect(not log.lost, f"{name}: {log.lost} calls are not logged")
            for pid, threads in log.processes.items():
                for tid, calls in threads.items():
                    logged[pid, tid] = [(call.function, list(call.arguments[:len(compare.PARAMETERS[call.function])])) for call in calls]
    expect(len(logged) >= 5 and set(logged) == set(found), f"threads of the log: {sorted(logged)}, of the trace: {sorted(found)}")
    for key, calls in logged.items():
        expect(calls == found[key], f"process and thread {key}: {len(calls)} calls logged, {len(found[key])} in the trace; first difference: " +
               str(next((pair for pair in zip(calls, found[key]) if pair[0] != pair[1]), None)))
    print(f"{sum(map(len, logged.values()))} calls of {len(logged)} threads")


def address_of_functions():
    """FunctionAddress is what the program itself finds; ReturnAddress lies in an image that was mapped there."""
    script = ("import ctypes, json\n"
              "libc = ctypes.CDLL('libc.so.6')\n"
              "print(json.dumps({name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value for name in ('malloc', 'free', 'realloc', 'calloc')}))\n")
    wanted = json.loads(record("addresses.xht", "/usr/bin/python3", "-ISc", script))
    found = {}
    for row in rows_of("addresses.xht", '@$cursession.TTD.Calls("libc!*").GroupBy(c => c.Function).Select(g => new { F = g.First().Function, '
                                        "A = g.First().FunctionAddress, N = g.Select(c => c.FunctionAddress).Distinct().Count() })"):
        found[row["F"].partition("!")[2]] = int(row["A"], 0)
        expect(row["N"] == "1", f"several addresses: {row}")
    for name, address in wanted.items():
        expect(name not in found or found[name] == address, f"{name}: {found[name]:#x}, not {address:#x}")
    expect({"malloc", "free"} <= set(found), f"found: {found}")


# ---- the times of calls ----

def position(text):
    sequence, _, step = text.partition(":")
    return int(sequence, 16), int(step, 16)


SOAK_CALLS, CALLS = 3_000_000, 60_000
PYTHON = "import threading, json\ndef work(n):\n  for i in range(n): json.loads(json.dumps({str(k): [k] * 9 for k in range(i % 30)}))\n" \
         "ts = [threading.Thread(target=work, args=(COUNT,)) for _ in range(4)]\n[t.start() for t in ts]; [t.join() for t in ts]\n"


def programs(scale):
    """Real programs, and how often they do their work."""
    yield "python3", ["/usr/bin/python3", "-ISc", PYTHON.replace("COUNT", str(40 * scale))], {"PYTHONMALLOC": "malloc"}
    yield "perl", ["perl", "-e", f'my %h; push @{{$h{{$_ % 97}}}}, "x" x ($_ % 300) for 1..{1500 * scale}; print scalar(keys %h)'], {}
    yield "sqlite3", ["sqlite3", ":memory:", "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 from n where "
                      f"i<{200 * scale}) insert into t select i, printf('%d-%x', i, i*7919) from n; select count(*), max(b) from t where b > '5';"], {}
    yield "jq", ["jq", "-nc", f"[range({150 * scale}) | {{a: ., s: tostring}}] | group_by(.a % 7) | map(length)"], {}
    if SOAK:
        yield "g++", ["sh", "-c", f"for i in 1 2; do g++ -O1 -o source.o -c '{SOURCE}/tests/live/real/source.cc'; done"], {}


def check_order(trace):
    """Each call begins before it ends; the calls of a thread follow each other, or one of a signal handler lies in another. Return their number."""
    ends, last_point, count = {}, (-1, 0), 0
    for row in rows_of(trace, f"{ALL}.Select(h => new {{ A = h.Action, T = h.Thread.UniqueId, S = h.TimeStart, E = h.TimeEnd }})"):
        start, end = position(row["S"]), position(row["E"])
        point = end if row["A"] in ("Alloc", "ReAlloc") else start
        expect(start <= end, f"{trace}: {row}: it ends before it begins")
        expect(point > last_point, f"{trace}: {row}: its point is not behind {last_point}")
        previous = ends.get(row["T"], (-1, 0))
        expect(start >= previous, f"{trace}: {row}: the thread's call before ends at {previous}")
        ends[row["T"]] = end
        last_point = point
        count += 1
    return count, len(ends)


def times_of_calls():
    wanted, counts = SOAK_CALLS if SOAK else CALLS, {}
    for name, command, settings in programs(200 if SOAK else 10):
        if not shutil.which(command[0]):
            print(f"without {name}")
            continue
        record("times.xht", *command, settings=settings.items())
        facts = info("times.xht")
        expect(facts["complete"], f"{name}: not complete")
        counts[name] = check_order("times.xht")
    print("calls and threads: " + ", ".join(f"{name} {count} {threads}" for name, (count, threads) in counts.items()))
    expect(sum(count for count, _ in counts.values()) >= wanted, f"fewer than {wanted} calls: {counts}")
    expect(any(threads > 3 for _, threads in counts.values()), f"no program has threads: {counts}")


# ---- questions ----

FORKING = ("import os, threading, json\n"
           "def work(n): return [json.dumps({'k' * i: list(range(i % 50))}) for i in range(n)]\n"
           "kept = work(60)\n"
           "def child(n):\n"
           "  pid = os.fork()\n"
           "  if pid: return pid\n"
           "  del kept[:n]; work(n)\n"
           "  if n == 20:\n"
           "    grandchild = child(10); os.waitpid(grandchild, 0)\n"
           "  os._exit(0)\n"
           "pids = [child(n) for n in (20, 40)]\n"
           "threads = [threading.Thread(target=work, args=(50,)) for _ in range(3)]\n"
           "[t.start() for t in threads]; [t.join() for t in threads]\n"
           "[os.waitpid(pid, 0) for pid in pids]\n")
ASKED = {  # name: command, settings, and the least number of processes, forked processes and threads
    "python3": (["/usr/bin/python3", "-ISc", FORKING], {"PYTHONMALLOC": "malloc"}, (4, 3, 6)),
    "perl": (["perl", "-e", 'my @a = map { "x" x ($_ % 200) } 1..300; my $p = fork; if (!$p) { @a = @a[0..50]; my %h = map { $_ => "y" x $_ } 1..50; exit 0 } waitpid $p, 0; '
              'print `echo $p | sort`'], {}, (3, 1, 3)),
    "sh": (["sh", "-c", "seq 300 | sort -r | uniq | wc -l; expr 1 + 1"], {}, (4, 2, 4)),
    "jq": (["jq", "-nc", "[range(150) | {a: ., s: tostring}] | group_by(.a % 7) | map(length)"], {}, (1, 0, 1)),
    "sqlite3": (["sqlite3", ":memory:", "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 from n where i<200) "
                 "insert into t select i, printf('%d-%x', i, i*7919) from n; select count(*) from t"], {}, (1, 0, 1)),
}
QUESTIONS_LEAST = 50  # of each trace


def questions_over_programs():
    """As tests/cli/dx_model.py computes them from dump's rows."""
    sys.path.insert(0, str(SOURCE / "tests/cli"))
    import dx_model
    counts = {}
    for name, (command, settings, least) in ASKED.items():
        if not shutil.which(command[0]):
            print(f"without {name}")
            continue
        record("asked.xht", *command, settings=settings.items())
        facts = info("asked.xht")
        expect(facts["complete"], f"{name}: not complete")
        before = dx_model.asked
        trace = dx_model.ask_everything("asked.xht")
        expect(not dx_model.failures, f"{name}: " + "\n".join(dx_model.failures[:5]))
        found = (len(trace.processes), sum(row["forked_from"] != "" for row in trace.processes), sum(process["threads"] for process in facts["processes"]))
        expect(all(one >= other for one, other in zip(found, least)), f"{name}: processes, forked ones, threads: {found}, not {least}")
        counts[name] = dx_model.asked - before
        expect(counts[name] >= QUESTIONS_LEAST, f"{name}: {counts[name]} questions")
    print("questions: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    expect(len(counts) == 5, f"of five programs, only {list(counts)}")


sys.exit(run_tests(parameters_of_every_function, parameters_of_objects, parameters_as_preloaded, address_of_functions, times_of_calls, questions_over_programs))
