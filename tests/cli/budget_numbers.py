#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the figures of `xheap check` against a slow model that reads nothing but `xheap dump --format csv`, and against `xheap heap` with the same filter.

usage: budget_numbers.py [FILE...]    without FILE: on traces that make_trace writes, and on one of a real program

A budget of SELECTIONS (60) random selections, each with a limit for every number; SEED (0) begins the chance.
"""
import json
import os
import pathlib
import random
import subprocess
import sys

import filters_check
from filters_check import MARKS, Model, find_peak, is_live_at, matches
from model_check import XHEAP, run

SELECTIONS = int(os.environ.get("SELECTIONS", "60"))
SEED = int(os.environ.get("SEED", "0"))
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMITS = {"total_bytes": ("bytes", ""), "total_count": ("blocks", ""), "peak_bytes": ("peak", ""), "peak_count": ("peak", " blocks"),
          "outstanding_bytes": ("outstanding", " B"), "outstanding_count": ("outstanding", " blocks"), "temporary_count": ("temporary", ""),
          "realloc_count": ("reallocs", " blocks")}
ASKED_OF_HEAP = 12  # selections of a trace that `xheap heap` can be asked for, too


class Whole:
    """The question without a filter, as filters_check.sums() has it."""
    by, is_row = None, True

    def __init__(self, model):
        self.range = (0, model.duration)


def is_cut(block):
    return not block.frames or block.frames[-1] in MARKS


class Selection:
    def __init__(self, model, chance):
        self.model, self.lists = model, {}
        self.innermost = sorted({self.self_of(block) for block in model.blocks} - {""})
        for selector, choices, part in (("in", model.frames, 0.5), ("self", self.innermost, 0.4), ("except", model.frames, 0.3),
                                        ("thread", self.threads(), 0.3), ("process", self.processes(), 0.3)):
            if choices and chance.random() < part:
                picked = [self.pattern(chance, chance.choice(choices)) for _ in range(chance.randrange(1, 4))]
                self.lists[selector] = [pattern for pattern in picked if pattern] or ["nowhere"]

    def self_of(self, block):
        frames = self.model.cull(block.frames, tuple(self.model.default_cull), True)
        return frames[0] if frames else ""

    def threads(self):
        return sorted({str(block.thread[1]) for block in self.model.blocks})

    def processes(self):
        rows = self.model.processes.values()
        return sorted({row["pid"] for row in rows} | {pathlib.Path(row["image"]).name for row in rows})

    @staticmethod
    def pattern(chance, frame):
        image, bang, symbol = frame.partition("!")
        choices = [frame] + ([symbol, image + "!", "*" + symbol[1:], symbol[:-1] + "?"] if bang else [image.partition("+0x")[0] + "!"] if "+0x" in frame else [])
        pattern = chance.choice(choices)
        return pattern if "[" not in pattern and ";" not in pattern else None

    def words(self, chance):
        """As a budget has them: in any order, quoted or not."""
        parts = list(self.lists.items())
        chance.shuffle(parts)
        return " ".join(" ".join([selector, *(f'"{word}"' if chance.random() < 0.5 or " " in word else word for word in words)]) for selector, words in parts)

    def passes(self, block, is_wide):
        """is_wide: a stack that is cut may have any frame further out."""
        def some(name, frames):
            return any(matches(pattern, frame) for pattern in self.lists[name] for frame in frames)
        process = self.model.processes[block.process]
        own = self.self_of(block)
        return (("in" not in self.lists or some("in", block.frames) or (is_wide and is_cut(block))) and ("self" not in self.lists or (own and some("self", [own]))) and
                ("except" not in self.lists or not some("except", block.frames)) and
                ("thread" not in self.lists or str(block.thread[1]) in self.lists["thread"]) and
                ("process" not in self.lists or bool({process["pid"], pathlib.Path(process["image"]).name} & set(self.lists["process"]))))

    def numbers(self, is_wide=False):
        blocks = [block for block in self.model.blocks if not block.is_nested and self.passes(block, is_wide)]
        peak, peak_at = find_peak(blocks, (0, self.model.duration))
        found = dict(zip(filters_check.NUMBERS, filters_check.sums(Whole(self.model), blocks, peak_at)))
        found["peak_bytes"], found["peak_count"] = peak, sum(is_live_at(block, peak_at) for block in blocks) if peak else found["peak_count"]
        return found

    def question(self):
        """The same for `xheap heap`; None: it has no such filter."""
        if not self.lists.keys() <= {"in", "thread"}:
            return None
        return [word for selector, option in (("in", "-requireFrames"), ("thread", "-threads")) if selector in self.lists for word in (option, *self.lists[selector])]


def check(path, chance, problems):
    model = Model(path)
    selections = {}
    for _ in range(SELECTIONS):
        selection = Selection(model, chance)
        selections.setdefault(tuple(sorted((name, tuple(sorted(set(words)))) for name, words in selection.lists.items())), selection)
    selections = list(selections.values())
    limits = [(selection, number) for selection in selections for number in LIMITS]
    chance.shuffle(limits)
    with open("all.budget", "w") as file:
        for selection, number in limits:
            word, unit = LIMITS[number]
            file.write(f"{word} {selection.words(chance)} <= 0{unit}\n")
    answer = subprocess.run([XHEAP, "check", path, "--budget", "all.budget", "--format", "json", "--top", "0", "--allow-incomplete"], stdout=subprocess.PIPE, text=True)
    if answer.returncode not in (0, 1):
        sys.exit(f"{path}: status {answer.returncode}")
    found = json.loads(answer.stdout)["limits"]
    wanted = {id(selection): selection.numbers() for selection in selections}
    possible = {id(selection): selection.numbers(True) for selection in selections}
    for (selection, number), limit in zip(limits, found, strict=True):
        expected, most = wanted[id(selection)][number], possible[id(selection)][number]
        state = "over" if expected else "uncertain" if most else "ok"
        if limit["number"] != number or limit["figures"] != [expected] or limit["state"] != state or limit.get("possible", expected) != max(most, expected):
            problems.append(f"{path}: {limit['limit']}: {limit['state']} with {limit['figures']} of {limit['number']}, up to {limit.get('possible')}, "
                            f"not {state} with {expected} of {number}, up to {most}")
    asked = 0
    for selection in selections:
        question = selection.question()
        if question is None or asked == ASKED_OF_HEAP:
            continue
        reply = subprocess.run([XHEAP, "heap", path, "-totals", "-format", "json", *question], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if reply.returncode:  # no frame matches: no numbers
            continue
        asked += 1
        totals = json.loads(reply.stdout)["totals"]
        for number in LIMITS:
            if wanted[id(selection)][number] != totals[number]:
                problems.append(f"{path}: {question}: heap says {totals[number]} of {number}, not {wanted[id(selection)][number]}")
    doubtful = sum(limit["state"] == "uncertain" for limit in found)
    some = sum(any(numbers.values()) for numbers in wanted.values())
    print(f"{path}: {len(limits)} limits, {some} of {len(selections)} selections have blocks, {doubtful} limits are uncertain, {asked} asked of heap")
    return some


def check_as_heap(name, problems):
    """Traces that the model does not know: blocks from before, losses, samples, sums in place of blocks. Their figures are those of heap."""
    path = str(ROOT / "tests/older" / f"{name}.xht")
    report = json.loads(run("heap", path, "-frames", "-inclusive", "st", "-top", "3", "-format", "json"))["actions"][0]["rows"]
    frames = [filters_check.frame_text(row["frame"]) for row in report]
    tid = json.loads(run("heap", path, "-frames", "-by", "thread", "-top", "1", "-format", "json"))["actions"][0]["rows"][0]["thread"].split("thread ")[1].split()[0]
    questions = [(f'in "{frame}"', ["-requireFrames", frame]) for frame in frames if "[" not in frame]
    questions += [("", [])] if name == "kept" else [("", []), (f"thread {tid}", ["-threads", tid]), (f"in * thread {tid}", ["-requireFrames", "*", "-threads", tid])]
    unknown = {"sampled": ("temporary_count",), "kept": ("peak_bytes", "peak_count")}.get(name, ())
    numbers = [number for number in LIMITS if number not in unknown]
    with open("older.budget", "w") as file:
        for words, _ in questions:
            for number in numbers:
                file.write(f"{LIMITS[number][0]} {words} <= 0{LIMITS[number][1]}\n")
    answer = subprocess.run([XHEAP, "check", path, "--budget", "older.budget", "--format", "json", "--top", "0"], stdout=subprocess.PIPE, text=True)
    if answer.returncode != 1:
        problems.append(f"{path}: status {answer.returncode}")
        return
    limits = iter(json.loads(answer.stdout)["limits"])
    for words, filters in questions:
        totals = json.loads(run("heap", path, "-totals", "-format", "json", *filters))["totals"]
        for number in numbers:
            limit = next(limits)
            if limit["number"] != number or limit["figures"] != [totals[number]]:
                problems.append(f"{path}: {limit['limit']}: {limit['figures']} of {limit['number']}, not {totals[number]} of {number}")
    print(f"{name}: {len(questions)} selections, as heap has them")


def main():
    chance, problems, paths = random.Random(SEED), [], sys.argv[1:]
    if not paths:
        make = os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
        for scene, seed in [("plain", "0"), ("forks", "0"), ("nested", "0"), ("random", "1"), ("random", "2")]:
            paths.append(f"{scene}{seed}.xht")
            subprocess.run([make, scene, paths[-1], seed, "400"], check=True)
        subprocess.run([XHEAP, "record", "-q", "-o", "real.xht", "sh", "-c", "for i in 1 2; do env true; done | cat"], check=True)
        paths.append("real.xht")
    some = sum(check(path, chance, problems) for path in paths)
    for name in () if sys.argv[1:] else ("attached", "losses", "sampled", "kept", "circular", "annotated"):
        check_as_heap(name, problems)
    for problem in problems[:20]:
        print("  " + problem)
    if not some:
        sys.exit("no selection had a block")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
