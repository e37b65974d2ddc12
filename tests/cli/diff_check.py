#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks `xheap diff` and `-format folded` against a slow model that reads nothing but `xheap dump`.

Each round compares random traces, windows or runs with random filters, and expects of each stack, function and image the exact change of each number. The
changes of all rows add up to those of the totals; a trace beside itself has no difference; folded lines add up to the totals, in both directions, and read as
flamegraph.pl, inferno and speedscope read them.
"""
import collections
import csv
import fractions
import io
import json
import os
import random
import re
import subprocess
import sys

import filters_check
from filters_check import NUMBERS, SORTS, XHEAP, Model, frame_text

MAKE_TRACE = os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
ROUNDS = int(os.environ.get("ROUNDS", "40"))
ACTIONS = ("-stacks", "-frames", "-image")
KEYS = ("so", "soc", "st", "stc", "src", "sp", "spc", "stt")
KEY_NUMBERS = SORTS
ALL = ("-top", "1000000000")
# As speedscope reads a line, and as flamegraph.pl does: it takes two numbers for those of a difference.
SPEEDSCOPE, FLAMEGRAPH = re.compile(r"^(.*) (\d+)$"), re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")


def run(*words, status=0):
    done = subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="surrogateescape")
    if done.returncode != status:
        sys.exit(f"{words}: status {done.returncode}: {done.stderr}")
    return done.stdout


class Question:
    """What filters_check.sums() asks about: a window of a trace."""

    def __init__(self, window):
        self.range, self.by, self.is_row = window, None, True


class Source:
    """A trace or a window of one, with the filters of a round."""

    def __init__(self, model, window, passes):
        self.model, self.window = model, window
        whole = (0, model.duration)
        self.word = model.path if window == whole else f"{model.path}@{window[0]}ns..{window[1]}ns"
        question = Question(window)
        blocks = [block for block in model.blocks if not block.is_nested and passes(block)]
        _, peak_at = filters_check.find_peak(blocks, window)
        self.totals = filters_check.sums(question, blocks, peak_at)
        self.rows = {}
        for action in ACTIONS:
            groups = collections.defaultdict(list)
            for block in blocks:
                groups[self.group(action, block)].append(block)
            rows = {key: filters_check.sums(question, members, peak_at) for key, members in groups.items()}
            has = [NUMBERS.index("total_count"), NUMBERS.index("peak_count")]
            self.rows[action] = {key: row for key, row in rows.items() if any(row[i] for i in has)}

    def group(self, action, block):
        frames = self.model.cull(block.frames, tuple(self.model.default_cull), True)
        if action == "-stacks" or not frames:
            return ";".join(frames) or "[no stack]"
        return frames[0] if action == "-frames" else frames[0].partition("!")[0].partition("+0x")[0]


def key_of(action, row):
    if action == "-stacks":
        return ";".join(map(frame_text, row["stack"])) or "[no stack]"
    return frame_text(row["frame"]) if action == "-frames" else row["image"]


def mean(sources, rows):
    return tuple(fractions.Fraction(sum(values), len(sources)) for values in zip(*rows))


def side_rows(side, action):
    """By group: the means of a side."""
    keys = {key for source in side for key in source.rows[action]}
    nothing = (0,) * len(NUMBERS)
    return {key: mean(side, [source.rows[action].get(key, nothing) for source in side]) for key in keys}


def is_near(found, wanted, is_exact):
    return found == wanted if is_exact else abs(found - wanted) <= fractions.Fraction(1, 1000)


def compare_numbers(what, found, wanted, is_exact):
    for name, value in zip(NUMBERS, wanted):
        if not is_near(found[name], value, is_exact):
            sys.exit(f"{what}: {name}: the report says {found[name]}, the events {float(value)}")


def check_rows(what, action, report, sides, is_exact):
    """Each row has its change; rows that are not there did not change; all add up."""
    part = report["actions"][0]
    rows = [side_rows(side, action) for side in sides]
    nothing = (fractions.Fraction(0),) * len(NUMBERS)
    found = {key_of(action, row): row for row in part["rows"]}
    if len(found) != len(part["rows"]) or part["cut"]:
        sys.exit(f"{what}: rows of one name, or {part['cut']} rows are cut")
    counts = collections.Counter()
    for key in set(rows[0]) | set(rows[1]):
        one, other = rows[0].get(key, nothing), rows[1].get(key, nothing)
        state = "both" if key in rows[0] and key in rows[1] else "new" if key in rows[1] else "gone"
        counts[state] += 1
        counts["unchanged"] += one == other
        if (one == other) != (key not in found):
            sys.exit(f"{what}: {key}: {'no row' if key not in found else 'a row without a change'}")
        if key in found:
            row = found[key]
            compare_numbers(f"{what}: {key}: A", row["a"], one, is_exact)
            compare_numbers(f"{what}: {key}: B", row["b"], other, is_exact)
            compare_numbers(f"{what}: {key}", row["change"], [b - a for a, b in zip(one, other)], is_exact)
            if row["state"] != state:
                sys.exit(f"{what}: {key}: {row['state']}, not {state}")
    for key, value in (("new", part["new"]), ("gone", part["gone"]), ("unchanged", part["unchanged"])):
        if counts[key] != value:
            sys.exit(f"{what}: {value} rows are {key}, by the events {counts[key]}")
    if part["matched_by_name"] + part["matched_by_offset"] != counts["both"]:
        sys.exit(f"{what}: {part['matched_by_name']} and {part['matched_by_offset']} rows matched, by the events {counts['both']}")
    for name in NUMBERS:
        total, summed = report["totals"]["change"][name], sum(row["change"][name] for row in part["rows"])
        room = 0 if is_exact else fractions.Fraction(len(part["rows"]) + 1, 1000)
        if abs(total - summed) > room:
            sys.exit(f"{what}: {name}: the rows add up to {summed}, the totals to {total}")
    number = KEY_NUMBERS[part["sort"]]
    changes = [abs(row["change"][number]) for row in part["rows"]]
    if changes != sorted(changes, reverse=True):
        sys.exit(f"{what}: not in order: {changes}")


def check_csv(what, words, report, action):
    """The same rows and numbers."""
    rows = list(csv.DictReader(io.StringIO(run("diff", *words, "-format", "csv"))))
    part = report["actions"][0]
    told = [[str(row[side][name]) for name in NUMBERS for side in ("a", "b", "change")] for row in part["rows"]]
    found = [[str(json.loads(row[f"{name}_{side}"], parse_float=fractions.Fraction)) for name in NUMBERS for side in ("a", "b", "change")] for row in rows]
    if told != found:
        sys.exit(f"{what}: CSV has other numbers")
    if action == "-image" and [row["image"].lstrip("'") for row in rows] != [row["image"] for row in part["rows"]]:
        sys.exit(f"{what}: CSV has other images")


def folded(*words):
    """The lines as both kinds of readers see them: stack and numbers."""
    lines = run(*words, "-format", "folded").splitlines()
    columns = 2 if words[0] == "diff" else 1
    found = []
    for line in lines:
        numbers, rest = [], line
        for _ in range(columns):
            match = FLAMEGRAPH.match(rest)
            if not match:
                sys.exit(f"{words}: {line!r} has no number")
            rest, number = match.groups()
            numbers.insert(0, fractions.Fraction(number))
        if FLAMEGRAPH.match(rest) or "" in rest.split(";"):
            sys.exit(f"{words}: {line!r}: a number too many, or a frame without a name")
        if columns == 1 and SPEEDSCOPE.match(line).groups() != (rest, str(numbers[0])):
            sys.exit(f"{words}: {line!r} reads otherwise in speedscope")
        found.append((rest, *numbers))
    return found


def check_folded(what, source, filters, key):
    name = KEY_NUMBERS[key]
    window = [] if "@" not in source.word else ["-range", *(f"{time}ns" for time in source.window)]
    words = ["heap", source.model.path, *window, *filters, "-stacks", key]
    lines = folded(*words)
    total = source.totals[NUMBERS.index(name)]
    if sum(line[1] for line in lines) != total or any(not line[1] for line in lines):
        sys.exit(f"{what}: {key}: folded lines add up to {sum(line[1] for line in lines)}, by the events {total}")
    turned = [(";".join(reversed(stack.split(";"))), number) for stack, number in folded(*words, "-reverse")]
    if turned != lines or lines != sorted(lines, key=lambda line: [frame.encode() for frame in line[0].split(";")]):
        sys.exit(f"{what}: {key}: other lines when reversed, or not in order")
    # Whole stacks: each has its allocation function at its inner end.
    blocks = {";".join(frame.rpartition("!")[2] for frame in reversed(block.frames)) or "[no stack]" for block in source.model.blocks}
    if not {stack for stack, _ in lines} <= blocks:
        sys.exit(f"{what}: {key}: a stack that no event has")


def check_round(models, chance):
    def source():
        model = chance.choice(models)
        window = (0, model.duration)
        if chance.random() < 0.4:
            window = tuple(sorted(chance.randrange(model.duration + 1) for _ in range(2)))
        return Source(model, window, passes)

    filters, passes = [], lambda block: True
    if chance.random() < 0.4:
        low, high = sorted(chance.sample(range(1, 1200), 2))
        filters, passes = ["-size", str(low), str(high)], lambda block: low <= block.size < high
    runs = [chance.randrange(1, 4) if chance.random() < 0.3 else 1 for _ in range(2)]
    sides = [[source() for _ in range(count)] for count in runs]
    action, key = chance.choice(ACTIONS), chance.choice(KEYS)
    words = [source.word for source in sides[0]] + ["--"] + [source.word for source in sides[1]] + filters + [action, key, *ALL]
    what, is_exact = " ".join(words), runs == [1, 1]
    report = json.loads(run("diff", *words, "-format", "json"), parse_float=fractions.Fraction)
    for side, name in zip(sides, "ab"):
        compare_numbers(f"{what}: totals", report["totals"][name], mean(side, [source.totals for source in side]), is_exact)
    check_rows(what, action, report, sides, is_exact)
    check_csv(what, words, report, action)
    check_folded(what, sides[0][0], filters, key)
    lines = folded("diff", *words[:words.index(action)], "-stacks", key)
    for i, side in enumerate(sides):
        total = mean(side, [source.totals for source in side])[NUMBERS.index(KEY_NUMBERS[key])]
        room = 0 if is_exact else fractions.Fraction(len(lines) + 1, 1000)
        if abs(sum(line[1 + i] for line in lines) - total) > room:
            sys.exit(f"{what}: folded lines of {'AB'[i]} do not add up to {float(total)}")


def check_same(path):
    report = json.loads(run("diff", path, path, "-format", "json", "-tree", "-frames", "-image", "-stacks"))
    if any(report["totals"]["change"].values()) or any(part["rows"] for part in report["actions"]):
        sys.exit(f"{path}: it differs from itself")
    if "no difference" not in run("diff", path, path, "-tree", "--fail-above", "0"):
        sys.exit(f"{path}: it does not say that there is no difference")


def main():
    chance = random.Random(int(os.environ.get("SEED", "1")))
    models = []
    for scene, seed, calls in (("plain", 0, ""), ("forks", 0, ""), ("random", 1, 300), ("random", 2, 300), ("random", 3, 900), ("nested", 1, "")):
        path = f"{scene}{seed}.xht"
        subprocess.run([MAKE_TRACE, scene, path, str(seed), *([str(calls)] if calls else [])], check=True)
        models.append(Model(path))
        check_same(path)
    for _ in range(ROUNDS):
        check_round(models, chance)
    print(f"{ROUNDS} rounds")


main()
