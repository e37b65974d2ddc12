# SPDX-License-Identifier: MIT
"""Tells where the instructions that steps counted were executed: in which function of the recorder, or in which image."""
import collections
import os
import subprocess

RECORDER_MAPPING = "[anonymous]"  # mapped from outside, not from a file; what lies there begins as recorder.elf does
ROWS = 25


def functions_of(elf, offsets):
    """The innermost function, inlined or not, at each offset."""
    text = "".join(f"{offset:#x}\n" for offset in offsets)
    answer = subprocess.run(["addr2line", "-f", "-e", elf], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(zip(offsets, answer[::2]))


def by_place(path, elf):
    """Counts by function of the recorder or image, from a file that `steps --profile` wrote."""
    counts, inside = collections.Counter(), collections.Counter()
    with open(path) as file:
        for line in file:
            count, place = line.rstrip("\n").split(" ", 1)
            image, _, offset = place.rpartition("+")
            if image == RECORDER_MAPPING:
                inside[int(offset, 16)] += int(count)
            else:
                counts[os.path.basename(image) or "elsewhere"] += int(count)
    names = functions_of(elf, list(inside)) if os.path.exists(elf) else {}
    for offset, count in inside.items():
        counts["recorder: " + names.get(offset, "?")] += count
    return counts


def show(path, elf, events):
    for place, count in by_place(path, elf).most_common(ROWS):
        print(f"{count / events:10.1f}  {place}")
