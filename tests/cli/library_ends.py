#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No call of the library ends the program that makes it: memory_try() stands on each way from a call to what gives up or ends a process, as its code shows. Calls by pointers are not followed; what programs call by pointers is listed."""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()
LIBRARY = BUILD / "src/api/libxheap.so"
ENDS = re.compile(r"(memory_exhausted|__assert_fail|abort|exit|_Exit|quick_exit|pthread_exit|raise|err|errx)(@.*)?")
# The child of a fork, which has a copy of the program.
CHILD = {("suspended_create", "_exit")}
BOUNDARY = "memory_try"
# Members of Arrow's structs, which programs call.
BY_POINTER = ["stream_get_schema", "stream_get_next", "stream_get_last_error", "stream_release", "array_free", "schema_free"]


def run(*words):
    return subprocess.run([*map(str, words)], stdout=subprocess.PIPE, text=True, check=True).stdout


def graph():
    """By the address of a function: its name, and the addresses that it calls or jumps to. A piece that the compiler moved away is one of them."""
    names, calls, at = {}, collections.defaultdict(set), None
    for line in run("objdump", "-d", "--no-show-raw-insn", LIBRARY).splitlines():
        if head := re.match(r"([0-9a-f]+) <(.+)>:$", line):
            at = int(head[1], 16)
            names[at] = head[2].removesuffix("@plt")
        elif to := re.search(r"\s(?:call|j\w+)\s+([0-9a-f]+) <([^>+]+)>$", line):
            calls[at].add(int(to[1], 16))
        elif to := re.search(r"\s(?:call|jmp)\s+\*0x[0-9a-f]+\(%rip\)\s+# [0-9a-f]+ <([^>+@]+)@", line):
            # A function of another library, by its place in the table of addresses.
            names[-hash(to[1])] = to[1]
            calls[at].add(-hash(to[1]))
    return names, calls


def ways_out(names, calls, start):
    """The ways from a function to one that ends the process, each as the names on it."""
    before, waiting = {start: None}, [start]
    for at in waiting:
        for to in calls[at] - before.keys():
            before[to] = at
            if ENDS.fullmatch(names.get(to, "")):
                if (names[at], names[to]) not in CHILD:
                    way = [names[to]]
                    while (to := before[to]) is not None:
                        way.append(names[to])
                    yield " < ".join(way)
            elif names.get(to) != BOUNDARY:
                waiting.append(to)


def main():
    options = {row["name"]: row["value"] for row in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())}
    if options["b_sanitize"] != "none" or options["b_lto"]:
        print("skipped: a sanitizer ends processes, too" if options["b_sanitize"] != "none" else "skipped: functions are no longer apart")
        sys.exit(77)
    names, calls = graph()
    of_api = {int(line.split()[0], 16) for line in run("nm", "-D", "--defined-only", LIBRARY).splitlines() if " T " in line}
    by_name = {name: address for address, name in names.items()}
    found = sorted({way for start in [*of_api, *(by_name[name] for name in BY_POINTER)] for way in ways_out(names, calls, start)})
    print("\n".join(found))
    # What is looked for is there, and is found from where no boundary is.
    control = list(ways_out(names, calls, by_name["memory_zeroed"]))
    if len(of_api) < 50 or not control or by_name[BOUNDARY] not in calls[by_name["api_run"]]:
        sys.exit(f"{len(of_api)} calls, {len(names)} functions; from memory_zeroed(): {control}")
    sys.exit(1 if found else 0)


main()
