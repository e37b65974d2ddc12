#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What dx does with little memory, and when it is interrupted: sorting and groups of plans go to the disk, other operators say what they lack and where, Ctrl-C ends a plan."""
import os
import pathlib
import signal
import subprocess
import sys

BUILD, XHEAP = pathlib.Path(os.environ["BUILD"]), os.environ["XHEAP"]
HEAP, BLOCKS = "@$cursession.TTD.Data.Heap()", "@$cursession.TTD.Data.Allocations()"
TICKS = os.sysconf("SC_CLK_TCK")
failures = []
# Of these every element fits, and all of them do not.
ORDERS = (".OrderBy(h => h.Size).Select(h => h.Index)", ".OrderByDescending(h => h.Function).ThenBy(h => h.Index % 7).Select(h => h.Index)", ".OrderBy(h => h.Parameters.Count()).Select(h => h.Index)",
          ".Select(h => new { A = h.Action, B = new { T = h.TimeStart, S = h.Stack } }).OrderBy(r => r.B.S).ThenByDescending(r => r.A)",
          ".OrderBy(h => h.Stack).Select(h => h.Index)", ".OrderBy(h => h.Index % 10, (a, b) => a < b ? 1 : a > b ? -1 : 0).Select(h => h.Index)", ".OrderByDescending(h => h.Size / 0).Select(h => h.Index)")
# Of more blocks than are read at a time: with calls that are read beside each other, and without.
BLOCK_ORDERS = (".OrderBy(b => b.Size).Select(b => b.FreeEvent.Index)", ".OrderByDescending(b => b.Lifetime).Where(b => b.TimeStart != b.TimeEnd).Select(b => b.Address)")
# Groups of plans, and their keys: as many as events, and each of them several times.
GROUPS = (".GroupBy(h => h.Index).Select(g => new { N = g.Count(), S = g.Sum(h => h.Size) })", ".GroupBy(h => h.Index % 9000).Select(g => new { N = g.Count(), L = g.Min(h => h.Size), M = g.Max(h => h.Duration) })",
          ".GroupBy(h => new { I = h.Index * 10 / 11, S = h.Stack }).Select(g => new { I = g.First().Index, A = g.Average(h => h.Size) })",
          ".GroupBy(h => new { I = h.Index % 8000, T = h.Thread.Id }).Select(g => new { F = g.First().TimeStart, S = g.Sum(h => h.Size) })",
          ".GroupBy(h => h.Index % 9000).Select(g => new { N = g.Count(), S = g.Sum(h => h.Size) }).OrderByDescending(x => x.S / 100).ThenBy(x => x.N).Where(x => x.S > 0)")
# Those of the interpreter: keys without a translation, several elements of a group, an absent key among others.
INTERPRETED = (".GroupBy(h => h.TimeStart).Select(g => new { K = g.Key, N = g.Count(), F = g.First(h => h.Index > 100), M = g.Max(h => h.TimeEnd) })",
               ".Select(h => h.Index).GroupBy(i => i % 7001).Select(g => new { N = g.Count(), A = g.Average(i => i * 0.1), L = g.Min(i => i) })",
               ".Select(h => h.Index).GroupBy(i => i < 9000 ? i % 6000 : null).Select(g => new { N = g.Count(), S = g.Sum(i => i), A = g.Any(i => i > 9500) })",
               '.GroupBy(h => "" + h.Index % 6007).Select(g => g.Max(h => "" + h.Index))',
               ".GroupBy(h => h.TimeStart).Select(g => new { K = g.Key, L = g.Last().Index, N = g.Count() })", '.GroupBy(h => h.Index < 9000 ? "" + h.Index % 6007 : null).Select(g => g.OrderBy(h => h.Size).Last().Index)',
               # A group that lies in a file of its own, and is gone through twice.
               ".GroupBy(h => h.Index > 300).Flatten().Select(h => h.Index)", ".GroupBy(h => h.Index > 300).Select(g => g.Concat(g)).Flatten().Select(h => h.Index)")
# The operator, and what is asked. Collections in an order cannot be written.
LIMITED = (("Distinct", ".Distinct().Count()"), ("Distinct", ".Select(h => new { I = h.Index, S = h.Stack }).Distinct().Count()"), ("Union", f".Union({HEAP}).Count()"),
           ("Intersect", f".Intersect({HEAP}).Count()"), ("Except", f".Skip(1).Except({HEAP}).Count()"),
           ("Join", f".Join({HEAP}, a => a.Index, b => b.Index, (a, b) => a.Size).Count()"), ("Aggregate", '.Aggregate("", (a, h) => a + h.Stack)'),
           ("OrderBy", ".Select(h => h.Parameters).OrderBy(p => p.Count()).Count()"), ("OrderByDescending", ".Select(h => h.Parameters).OrderByDescending(p => p.Count()).Count()"))


def ask(trace, query, *words):
    return subprocess.run([XHEAP, "dx", trace, *words, query], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check(is_good, what):
    if not is_good:
        failures.append(what)


def check_orders():
    for query in [HEAP + query for query in ORDERS] + [BLOCKS + query for query in BLOCK_ORDERS]:
        answers = {(done.returncode, done.stdout, done.stderr) for words in (("1M",), ("2M", "-noPlan"), ("7M", "-noPlan"), ("4G",))
                   for done in (ask("events.xht", query, "-r2", "-format", "csv", "-memory", *words),)}
        status, rows, said = answers.pop()
        check(not answers and not status and rows.count("\n") > 3000, f"{query}: other rows with less memory: {status} {said} {[len(other[1]) for other in answers]}")
    done = ask("events.xht", HEAP + ".OrderBy(h => h.Size)", "-explain", "-memory", "1M")
    check("no plan: calls in an order need Take() behind it" in done.stdout, f"too many passes: {done.stdout[-300:]} {done.stderr}")
    done = subprocess.run([XHEAP, "dx", "events.xht", "-memory", "4M", "-noPlan", HEAP + ORDERS[2]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, TMPDIR="/no/such/directory"))
    check(done.returncode == 2 and "OrderBy: the temporary file for sorting: No such file or directory" in done.stderr, f"no place to sort: {done.returncode} {done.stderr}")


def check_groups():
    for query in GROUPS:
        answers = {(done.returncode, done.stdout, done.stderr) for words in (("1M",), ("4G",), ("4G", "-noPlan"))
                   for done in (ask("events.xht", HEAP + query, "-r2", "-format", "csv", "-memory", *words),)}
        status, rows, said = answers.pop()
        check(not answers and not status and rows.count("\n") > 3000, f"{query}: other groups with less memory: {status} {said} {[len(other[1]) for other in answers]}")
        done = subprocess.run([XHEAP, "dx", "events.xht", "-memory", "1M", HEAP + query], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, TMPDIR="/no/such/directory"))
        check(done.returncode == 2 and "group: the temporary file for sorting: No such file or directory" in done.stderr, f"{query}: no place for groups: {done.returncode} {done.stderr}")


def check_interpreted():
    for query in INTERPRETED:
        answers = {(done.returncode, done.stdout, done.stderr) for words in (("1M",), ("1M", "-noPlan"), ("7M", "-noPlan"), ("4G",), ("4G", "-noPlan"))
                   for done in (ask("events.xht", HEAP + query, "-r2", "-format", "csv", "-memory", *words),)}
        status, rows, said = answers.pop()
        check(not answers and not status and rows.count("\n") > 3000, f"{query}: other groups with less memory: {status} {said} {[(other[0], len(other[1]), other[2]) for other in answers]}")
        done = subprocess.run([XHEAP, "dx", "events.xht", "-memory", "1M", HEAP + query], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, TMPDIR="/no/such/directory"))
        check(done.returncode == 2 and "GroupBy: the temporary file for sorting: No such file or directory" in done.stderr, f"{query}: no place for groups: {done.returncode} {done.stderr}")


def check_limits():
    for name, query in LIMITED:
        for words in ((), ("-noPlan",)):
            done = ask("events.xht", HEAP + query, "-memory", "1M", *words)
            lines = done.stderr.splitlines()
            place = (HEAP + query).index(f".{name}(") + 1
            check(done.returncode == 2 and len(lines) == 3 and lines[0].startswith(f"xheap: dx: column {place + 1}: {name}: ") and "memory" in lines[0] and
                  lines[2].index("^") == 4 + place, f"{query} {words}: {done.returncode} {lines}")


def processor_seconds(pid):
    """Of all threads of a process, up to now."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def check_interrupt():
    query = HEAP + ".OrderByDescending(h => h.Size).Select(h => h.Index).First()"
    begin = os.times()
    whole = ask("many.xht", query, "-memory", "16M")
    needed = sum(os.times()[2:4]) - sum(begin[2:4])
    check(whole.returncode == 0, f"{query}: {whole.stderr}")
    running = subprocess.Popen([XHEAP, "dx", "many.xht", "-memory", "16M", query], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and processor_seconds(running.pid) < needed / 4:
        os.sched_yield()
    running.send_signal(signal.SIGINT)
    _, said = running.communicate()
    used = sum(os.times()[2:4]) - sum(begin[2:4]) - needed
    check(running.returncode == -signal.SIGINT and not said, f"an interrupted plan: status {running.returncode}: {said}")
    check(used < needed * 3 / 4, f"an interrupted plan went on: {used:.2f} s of the processor of {needed:.2f}")


def main():
    for name, events in (("events", "10000"), ("many", "1000000")):
        subprocess.run([BUILD / "tests/golden/make_trace", "random", f"{name}.xht", "3", events], check=True)
    check_orders()
    check_groups()
    check_interpreted()
    check_limits()
    check_interrupt()
    print("\n".join(failures[:10]) or "orders and groups spill, limits name their operators, an interrupt ends a plan")
    return bool(failures)


sys.exit(main())
