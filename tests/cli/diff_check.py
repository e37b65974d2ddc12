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
import functools
import io
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys

import filters_check
from filters_check import NUMBERS, SORTS, XHEAP, Model, frame_text

MAKE_TRACE = os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
MAKE_NAMES = os.path.join(os.environ["BUILD"], "tests/golden/make_names")
ROUNDS = int(os.environ.get("ROUNDS", "40"))
ACTIONS = ("-stacks", "-frames", "-image", "-tree", "-frames -inclusive")
INCLUSIVE = ACTIONS[3:]
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
    """A trace, or a window or a moment of one, with the filters of a round. A moment is all up to it, of blocks that live then."""

    def __init__(self, model, window, passes, is_moment=False):
        self.model, self.window = model, window
        self.word, self.options = model.path, []
        if is_moment:
            self.word, self.options = f"{model.path}@={window[1]}ns", ["-at", f"{window[1]}ns"]
        elif window != (0, model.duration):
            self.word, self.options = f"{model.path}@{window[0]}ns..{window[1]}ns", ["-range", *(f"{time}ns" for time in window)]
        question = Question(window)
        blocks = [block for block in model.blocks if not block.is_nested and passes(block)
                  and (not is_moment or filters_check.is_live_at(block, window[1]))]
        _, peak_at = filters_check.find_peak(blocks, window)
        self.totals = filters_check.sums(question, blocks, peak_at)
        self.rows = {}
        for action in ACTIONS:
            groups = collections.defaultdict(list)
            for block in blocks:
                for group in self.groups(action, block):
                    groups[group].append(block)
            rows = {key: filters_check.sums(question, members, peak_at) for key, members in groups.items()}
            has = [NUMBERS.index("total_count"), NUMBERS.index("peak_count")]
            self.rows[action] = {key: row for key, row in rows.items() if any(row[i] for i in has)}

    def groups(self, action, block):
        frames = self.model.cull(block.frames, tuple(self.model.default_cull), True)
        if action == "-stacks" or not frames:
            return [";".join(frames) or "[no stack]"]
        if action == "-tree":
            return [";".join(frames[at:]) for at in range(len(frames))]
        if action in INCLUSIVE:
            return sorted(set(frames))
        return [frames[0] if action == "-frames" else frames[0].partition("!")[0].partition("+0x")[0]]


def rows_by_key(action, rows):
    found, path = {}, []
    for row in rows:
        if action == "-stacks":
            key = ";".join(map(frame_text, row["stack"])) or "[no stack]"
        elif action == "-tree":
            del path[row["depth"]:]
            path.append(frame_text(row["frame"]))
            key = ";".join(reversed(path))
        else:
            key = row["image"] if action == "-image" else frame_text(row["frame"])
        found[key] = row
    return found


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


@functools.cache
def student_quantile(freedom):
    """Of 0.975, by integrating the density by Simpson's rule."""
    if freedom > 30:
        return 1.960
    scale = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)

    def chance(to, steps=2000):
        values = [scale * (1 + (to * i / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1)]
        return 0.5 + to / steps / 3 * (values[0] + values[-1] + 4 * sum(values[1::2]) + 2 * sum(values[2:-1:2]))
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) < 0.975 else (low, middle)
    return low


def check_spread(what, row, name, sides):
    """The deviations, the error of the change, and whether zero lies in its interval; sides: the numbers of all runs."""
    deviations = [statistics.stdev(values) if len(values) > 1 else 0.0 for values in sides]
    variances = [deviations[i if len(values) > 1 else 1 - i] ** 2 / len(values) for i, values in enumerate(sides)]
    error = math.sqrt(sum(variances))
    told = [float(row[f"{side}_deviation"][name]) for side in "ab"]
    if any(abs(one - other) > 0.001 for one, other in zip(told + [float(row["change_error"][name])], deviations + [error])):
        sys.exit(f"{what}: {name}: deviations {told} and error {row['change_error'][name]}, by the events {deviations} and {error}")
    for i, (values, side) in enumerate(zip(sides, "ab")):
        if (row[f"{side}_min"][name], row[f"{side}_max"][name]) != (min(values), max(values)):
            sys.exit(f"{what}: {name}: least and greatest of {side} are not {min(values)} and {max(values)}")
    if any(len(values) == 1 for values in sides):
        freedom = len(sides[0]) + len(sides[1]) - 2
    else:
        weighted = sum(variance ** 2 / (len(values) - 1) for variance, values in zip(variances, sides))
        freedom = int(sum(variances) ** 2 / weighted + 1e-9) if weighted else 99
    change, margin = abs(statistics.mean(sides[1]) - statistics.mean(sides[0])), error * student_quantile(max(freedom, 1))
    if abs(change - margin) > 0.002 * margin and (name in row["in_spread"]) != (0 < change <= margin):
        sys.exit(f"{what}: {name}: a change of {change} +- {margin} is {'' if name in row['in_spread'] else 'not '}in the spread")


def check_rows(what, action, report, sides, is_exact):
    """Each row has its change; rows that are not there did not change; all add up."""
    part = report["actions"][0]
    rows = [side_rows(side, action) for side in sides]
    nothing, nothing_of_run = (fractions.Fraction(0),) * len(NUMBERS), (0,) * len(NUMBERS)
    found = rows_by_key(action, part["rows"])
    if len(found) != len(part["rows"]) or part["cut"]:
        sys.exit(f"{what}: rows of one name, or {part['cut']} rows are cut")
    counts, shown_unchanged = collections.Counter(), 0
    for key in set(rows[0]) | set(rows[1]):
        one, other = rows[0].get(key, nothing), rows[1].get(key, nothing)
        state = "both" if key in rows[0] and key in rows[1] else "new" if key in rows[1] else "gone"
        counts[state] += 1
        counts["unchanged"] += one == other
        if one == other and key in found and action == "-tree":
            if not any(below.endswith(f";{key}") for below in found):
                sys.exit(f"{what}: {key}: a row without a change, and without rows beneath it")
            shown_unchanged += 1
        elif (one == other) != (key not in found):
            sys.exit(f"{what}: {key}: {'no row' if key not in found else 'a row without a change'}")
        if key in found:
            row = found[key]
            compare_numbers(f"{what}: {key}: A", row["a"], one, is_exact)
            compare_numbers(f"{what}: {key}: B", row["b"], other, is_exact)
            compare_numbers(f"{what}: {key}", row["change"], [b - a for a, b in zip(one, other)], is_exact)
            for i, name in enumerate(NUMBERS if not is_exact else ()):
                check_spread(f"{what}: {key}", row, name, [[source.rows[action].get(key, nothing_of_run)[i] for source in side] for side in sides])
            if row["state"] != state:
                sys.exit(f"{what}: {key}: {row['state']}, not {state}")
    for key, value in (("new", part["new"]), ("gone", part["gone"]), ("unchanged", part["unchanged"] + shown_unchanged)):
        if counts[key] != value:
            sys.exit(f"{what}: {value} rows are {key}, by the events {counts[key]}")
    if part["matched_by_name"] + part["matched_by_offset"] != counts["both"]:
        sys.exit(f"{what}: {part['matched_by_name']} and {part['matched_by_offset']} rows matched, by the events {counts['both']}")
    for name in () if action in INCLUSIVE else NUMBERS:
        total, summed = report["totals"]["change"][name], sum(row["change"][name] for row in part["rows"])
        room = 0 if is_exact else fractions.Fraction(len(part["rows"]) + 1, 1000)
        if abs(total - summed) > room:
            sys.exit(f"{what}: {name}: the rows add up to {summed}, the totals to {total}")
    number = KEY_NUMBERS[part["sort"]]
    changes = [abs(row["change"][number]) for row in part["rows"]]
    if changes != sorted(changes, reverse=True) and action != "-tree":
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
    words = ["heap", source.model.path, *source.options, *filters, "-stacks", key]
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
        elif chance.random() < 0.4:
            return Source(model, (0, chance.randrange(model.duration + 1)), passes, True)
        return Source(model, window, passes)

    filters, passes = [], lambda block: True
    if chance.random() < 0.4:
        low, high = sorted(chance.sample(range(1, 1200), 2))
        filters, passes = ["-size", str(low), str(high)], lambda block: low <= block.size < high
    runs = [chance.randrange(1, 4) if chance.random() < 0.3 else 1 for _ in range(2)]
    sides = [[source() for _ in range(count)] for count in runs]
    action, key = chance.choice(ACTIONS), chance.choice(KEYS)
    words = [source.word for source in sides[0]] + ["--"] + [source.word for source in sides[1]] + filters + [*action.split(), key, *ALL]
    what, is_exact = " ".join(words), runs == [1, 1]
    report = json.loads(run("diff", *words, "-format", "json"), parse_float=fractions.Fraction)
    for side, name in zip(sides, "ab"):
        compare_numbers(f"{what}: totals", report["totals"][name], mean(side, [source.totals for source in side]), is_exact)
    check_rows(what, action, report, sides, is_exact)
    check_csv(what, words, report, action)
    check_folded(what, sides[0][0], filters, key)
    lines = folded("diff", *words[:words.index(action.split()[0])], "-stacks", key)
    if is_exact:
        # As difffolded.pl joins the lines of both sides.
        joined = collections.defaultdict(lambda: [0, 0])
        for i, (source,) in enumerate(sides):
            for stack, number in folded("heap", source.model.path, *source.options, *filters, "-stacks", key):
                joined[stack][i] += number
        if {line[0]: list(line[1:]) for line in lines} != joined:
            sys.exit(f"{what}: folded lines are not those of both sides")
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


def check_hostile_names():
    """Functions whose names hold what separates frames and numbers."""
    names = ["a 5", "b;c", ";", " lead", "trail ", "7", "x 1.5", "# no comment", "f(int) 3 4", " ", "operator new 12 13", "_[w]", "<&>\"'", "a  b", "1.", "e 2."]
    subprocess.run([MAKE_NAMES, "names.xht"], input="\n".join(names).encode(), check=True)
    for words in ((), ("-reverse",), ("-fullNames",), ("-defaultCull", "-reverse"), ("-by", "size")):
        lines = folded("heap", "names.xht", "-stacks", "st", *words)
        total = json.loads(run("heap", "names.xht", "-totals", "-format", "json"))["totals"]["total_bytes"]
        if sum(line[1] for line in lines) != total or total == 0:
            sys.exit(f"hostile names {words}: the lines add up to {sum(line[1] for line in lines)}, the total is {total}")
    if len({frame for line in folded("heap", "names.xht", "-fullNames") for frame in line[0].split(";")}) < len(names) - 3:
        sys.exit("hostile names: too many read alike")
    folded("diff", "names.xht", "plain0.xht", "-fullNames")


def main():
    chance = random.Random(int(os.environ.get("SEED", "1")))
    models = []
    for scene, seed, calls in (("plain", 0, ""), ("forks", 0, ""), ("random", 1, 300), ("random", 2, 300), ("random", 3, 900), ("nested", 1, "")):
        path = f"{scene}{seed}.xht"
        subprocess.run([MAKE_TRACE, scene, path, str(seed), *([str(calls)] if calls else [])], check=True)
        models.append(Model(path))
        check_same(path)
    check_hostile_names()
    for _ in range(ROUNDS):
        check_round(models, chance)
    print(f"{ROUNDS} rounds")


main()
