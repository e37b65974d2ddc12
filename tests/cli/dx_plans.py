#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generated pipelines of dx have the same answers, to the byte, as plans and interpreted: -noPlan. Older traces of all kinds, and random ones."""
import os
import pathlib
import random
import subprocess
import sys

SOURCE, BUILD, XHEAP = pathlib.Path(os.environ["SOURCE"]), pathlib.Path(os.environ["BUILD"]), os.environ["XHEAP"]
QUERIES = int(os.environ.get("DX_PLANS_QUERIES", 60))
TRACES = ("reallocs", "annotated", "processes", "threads", "attached", "kept", "sampled", "circular", "forks", "cut")
TOTALS = ("Sum", "Average", "Min", "Max")
# Of all processes, of the first and of the last one.
DATA = ("@$cursession.TTD.Data.",) * 4 + ("@$curprocess.TTD.Data.", "@$cursession.Processes.Last().TTD.Data.")
NUMBERS = {"Heap": ("Size", "Address", "PreviousAddress", "Duration", "Usable", "Index", "Heap"), "Allocations": ("Size", "Address", "Usable", "Lifetime", "Index", "Heap")}
TEXTS = {"Heap": {"Action": ("Alloc", "Free", "ReAlloc", "Lock", "Create"), "Function": ("malloc", "free", "realloc", "nothing")},
         "Allocations": {"End": ("free", "open", "exit", "realloc"), "Function": ("malloc", "calloc", "nothing"), "FreeFunction": ("free", "realloc")}}
TRUTHS = {"Heap": ("true", "false"), "Allocations": ("x.IsOutstanding", "x.IsRealloc", "x.IsMoved", "x.IsTemporary", "x.IsNested")}
# Without a translation: the interpreter has them, beside parts that have one.
OTHERS = {"Heap": ("x.Size * 0.5 > 50", "x.TimeStart < x.TimeEnd", "x.Size"), "Allocations": ("x.IsMoved + x.Size > 3", "x.Stack != x.FreeStack")}
# Of one id; of some ids there may be errors, and no value.
IDS = {"Heap": ("x.Frames.Any(f => f.Function.Contains(\"main\"))", "x.Caller.Line > 5", "x.Stack[1].Function == \"main\"", "x.Caller.Image != null", "x.Frames.Count(x => x.Line > 3) > 1", "x.Thread.UniqueId > 2", 'x.Stack.Contains("main")', "x.Stack.Length % 2 == 0", 'x.Process.Name != ""', "x.Thread.UniqueId % x.Process.UniqueId == 0", "1000 / (x.Thread.UniqueId - 2) < 9",
                "x.Process.Parent.Id > 0", "x.Thread", 'x.Thread.Name == x.Process.Name'),
       "Allocations": ("x.Frames.Any(f => f.Function.Contains(\"main\"))", "x.Caller.Line > 5", "x.Stack[1].Function == \"main\"", "x.Caller.Image != null", "x.Frames.Count(x => x.Line > 3) > 1", "x.FreeThread.Id > 0", 'x.Stack != ""', 'x.FreeStack.Contains("main")', 'x.FreeStack == "main"', "x.FreeThread.UniqueId == x.FreeThread.Id % 7", 'x.Process.Name.Contains("a")',
                       "x.FreeThread.UniqueId != 2")}

# Keys of groups that are made of ids, beside plain members.
KEYS = {"Heap": ("x.Stack", "x.Caller", "x.Caller.Function", "x.Caller.Line", "x.Caller.Image == \"libc.so.6\"", "x.Frames.Count()", "x.Frames[1].Function", "x.Stack[1].Function", "x.Frames.Any(f => f.Function.Contains(\"main\"))", "x.Frames.Last()", "x.Thread", "x.Thread.Id", "x.Thread.Name", "x.Process", "x.Process.Id", "x.Process.Name", "x.Stack.Length", "x.Thread.Process.UniqueId"),
        "Allocations": ("x.Stack", "x.FreeStack[1].Function", "x.FreeFrames.Count(f => f.Line > 5)", "x.Frames.Select(f => f.Function).Contains(\"main\")", "x.Frames.First(f => f.Function != \"malloc\").Function", "x.Caller", "x.Caller.Function.Length", "x.FreeStack", "x.Thread", "x.Thread.UniqueId", "x.FreeThread", "x.FreeThread.Name", "x.Process.Id", "x.Process.Name", "x.Stack.Contains(\"main\")",
                        "x.Process.Parent.Id")}


class Maker:
    def __init__(self, seed):
        self.choose = random.Random(seed)
        self.source = self.choose.choice(("Heap", "Allocations"))

    def one(self, of):
        return self.choose.choice(of)

    def number(self):
        return self.one((0, 1, 7, 16, 24, 32, 100, 500, 1000, 4096, 100000, 1 << 40, (1 << 63) + 5, (1 << 64) - 1))

    def value(self, depth=2):
        """A member, or arithmetic, which may be an error of some elements."""
        if not depth or self.choose.random() < 0.6:
            return f"x.{self.one(NUMBERS[self.source])}"
        one, other = self.value(depth - 1), str(self.one((1, 2, 3, 5, 16, 60)))
        if self.choose.random() < 0.1:
            return f"(-{one})"
        if self.choose.random() < 0.3:
            other = self.value(depth - 1) if self.choose.random() < 0.7 else str(self.number())
        if self.choose.random() < 0.2:
            one, other = other, one
        return f"({one} {self.one(('+', '-', '*', '/', '/', '%', '&', '|', '^', '<<', '>>'))} {other})"

    def comparison(self):
        if self.choose.random() < 0.08:
            member = self.value(1)
            return self.one((f"{member} == null", f"null != {member}"))
        member, kind = self.value(), self.choose.random()
        other = self.value() if kind < 0.2 else self.one(("2 * 8", "4 * 1024", "-1", "10 - 12")) if kind < 0.3 else str(self.number())
        operator = self.one(("<", "<=", ">", ">=", "==", "!="))
        return f"{other} {operator} {member}" if self.choose.random() < 0.2 else f"{member} {operator} {other}"

    def condition(self, depth=2):
        kind = self.choose.random()
        if depth and kind < 0.35:
            return f"({self.condition(depth - 1)} {self.one(('&&', '||'))} {self.condition(depth - 1)})"
        if depth and kind < 0.42:
            return f"!({self.condition(depth - 1)})"
        if kind < 0.55:
            name, words = self.one(list(TEXTS[self.source].items()))
            return f'x.{name} {self.one(("==", "!="))} "{self.one(words)}"'
        if kind < 0.59:
            return self.one(IDS[self.source])
        if kind < 0.62:
            return self.one(TRUTHS[self.source])
        return self.one(OTHERS[self.source]) if kind < 0.66 else self.comparison()

    def member(self):
        return self.one(NUMBERS[self.source] + tuple(TEXTS[self.source]) + (("TimeStart", "TimeEnd", "IsOutstanding") if self.source == "Allocations" else ()))

    def order(self):
        steps = [f".{self.one(('OrderBy', 'OrderByDescending'))}(x => {self.value(1)})"]
        steps += [f".{self.one(('ThenBy', 'ThenByDescending'))}(x => {self.value(1)})" for _ in range(self.choose.randrange(3))]
        return "".join(steps)

    def key(self):
        if self.choose.random() < 0.2:
            return self.value()
        return self.one(KEYS[self.source]) if self.choose.random() < 0.5 else f"x.{self.member()}"

    def aggregate(self):
        calls = [f"g.{name}(x => {self.value()})" for name in ("Sum", "Average", "Min", "Max")]
        return self.one(("g.Count()", f"g.Count(x => {self.condition(1)})", "g.Any()", *calls))

    def computed(self, of):
        """What groups are ordered by: a sum, or something made of two."""
        one, other = self.one(of), self.one(of)
        return self.one((one, one, one, f"{one} / {other}", f"{one} + {other}", f"-{one}", f"{one} % 7"))

    def cuts(self):
        return "".join(f".{self.one(('Skip', 'Take', 'Take'))}({self.choose.randrange(30)})" for _ in range(self.choose.randrange(3)))

    def groups_steps(self, of, name):
        """Conditions and orders of groups, or of what is made of them."""
        text = ""
        for _ in range(self.choose.randrange(3)):
            if self.choose.random() < 0.3:
                text += f".Where({name} => {self.computed(of)} {self.one(('>', '<', '!='))} {self.choose.randrange(200)})"
                continue
            text += f".{self.one(('OrderBy', 'OrderByDescending', 'OrderByDescending'))}({name} => {self.computed(of)})"
            text += f".{self.one(('ThenBy', 'ThenByDescending'))}({name} => {self.computed(of)})" if self.choose.random() < 0.3 else ""
        return text

    def groups(self):
        key = self.key()
        shown = key
        if self.choose.random() < 0.2:
            keys = [key, self.key()]
            key, shown = "new { " + ", ".join(f"K{i} = {one}" for i, one in enumerate(keys)) + " }", self.one((*keys, "g.Key.K0", "g.Key.K1"))
        calls = [self.aggregate() for _ in range(self.choose.randrange(1, 4))]
        if self.choose.random() < 0.5:
            calls.append(self.one(("g.Key", shown.replace("x.", "g.First()."), shown.replace("x.", "g.First()."), f"g.First().{self.member()}")))
        text = f".GroupBy(x => {key})"
        if self.choose.random() < 0.1:
            return text + (self.groups_steps(calls[:1], "g") if "First" not in calls[0] and self.choose.random() < 0.5 else "") + self.cuts() + ".Count()"
        text += self.groups_steps([self.aggregate() for _ in range(2)], "g") if self.choose.random() < 0.4 else ""
        text += self.cuts() if self.choose.random() < 0.1 else ""
        if len(calls) == 1 and self.choose.random() < 0.7:
            return text + f".Select(g => {calls[0]})" + (self.groups_steps(["y"], "y") if self.choose.random() < 0.5 else "") + self.cuts()
        text += ".Select(g => new { " + ", ".join(f"C{i} = {call}" for i, call in enumerate(calls)) + " })"
        return text + self.groups_steps([f"y.C{i}" for i in range(len(calls))], "y") + self.cuts()

    def end(self):
        members = [self.member() for _ in range(self.choose.randrange(1, 5))]
        record = "new { " + ", ".join(f"M{i} = x.{name}" for i, name in enumerate(members)) + f", V = {self.value()} }}"
        # Objects are made of the rows; all members of many allocations would take long.
        shown = "" if self.source == "Heap" else ".Select(x => new { I = x.Index, S = x.Size, A = x.Address, T = x.TimeStart })"
        return self.one((shown, shown, f".Select(x => x.{members[0]})", f".Select(x => {record})", ".Count()", f".Count(x => {self.condition(1)})",
                         f".{self.one(TOTALS)}(x => {self.value()})", f".Select(x => {self.value()})", f".Select(x => {self.value()}).{self.one(TOTALS)}()", ".First()",
                         f".Select(x => {self.value(1)}).Distinct()"))

    def query(self):
        blocks = self.one(("Allocations",) * 5 + ("FreedByOtherThread",))
        text = self.one(DATA) + (f"Heap({self.one(('', 'true', 'false'))})" if self.source == "Heap" else f"{blocks}()")
        for _ in range(self.choose.randrange(4)):
            kind = self.choose.random()
            text += self.order() if kind < 0.4 else f".Where(x => {self.condition()})" if kind < 0.85 else f".{self.one(('Skip', 'Take'))}({self.choose.randrange(60)})"
        if self.choose.random() < 0.4:
            return text + self.groups()
        for _ in range(self.choose.randrange(3)):
            text += f".{self.one(('Skip', 'Take', 'Take'))}({self.choose.randrange(40)})"
        return text + self.end()


def ask(trace, queries, *words):
    with open("queries.txt", "w") as file:
        file.write("\n".join(queries) + "\n")
    done = subprocess.run([XHEAP, "dx", trace, "-f", "queries.txt", "-format", "json", "-c", "300", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def main():
    paths = [SOURCE / "tests/older" / f"{name}.xht" for name in TRACES]
    for seed in ("3", "5"):
        subprocess.run([BUILD / "tests/golden/make_trace", "random", f"random{seed}.xht", seed, "3000"], check=True)
        paths.append(pathlib.Path(f"random{seed}.xht"))
    failures, answered = [], 0
    for number, path in enumerate(paths):
        queries = [Maker(number * QUERIES + i).query() for i in range(QUERIES)]
        if ask(path, queries) != ask(path, queries, "-noPlan"):
            different = [query for query in queries if ask(path, [query]) != ask(path, [query], "-noPlan")]
            failures += [f"{path.name}: {query}" for query in different or ["all of them together"]]
        answered += ask(path, queries)[1].count('"result"')
    if answered < len(paths) * QUERIES * 3 // 4:
        failures.append(f"only {answered} of {len(paths) * QUERIES} queries have a result")
    print("\n".join(failures[:10]) or f"{answered} of {len(paths) * QUERIES} generated queries have results, and all answers are the same")
    return bool(failures)


sys.exit(main())
