#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Merged traces hold what their parts held, by one clock; what does not go together is refused and leaves nothing."""
import csv
import json
import os
import subprocess
import sys

XHEAP = os.environ["XHEAP"]
failed = 0


def xheap(*words, status=0):
    run = subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == status, f"{words}: status {run.returncode}: {run.stderr}")
    return run.stdout + run.stderr


def expect(condition, text):
    global failed
    if not condition:
        print(text)
        failed += 1


def info(trace):
    return json.loads(xheap("info", trace, "-format", "json"))


def events(trace):
    run = subprocess.run([XHEAP, "dump", trace, "-events", "-format", "csv"], stdout=subprocess.PIPE, text=True, check=True)
    return list(csv.DictReader(run.stdout.splitlines()))


def what(row):
    return tuple(row[name] for name in ("pid", "tid", "action", "function", "heap", "address", "previous_address", "size", "usable", "args", "result"))


def on_full_disk():
    """What was there before stays, and nothing comes beside it."""
    os.mkdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", "small"], stderr=subprocess.DEVNULL).returncode:
        print("not tried: no small disk can be made")
        return
    try:
        for before in (None, "as it was"):
            if before:
                with open("small/no.xht", "w") as file:
                    file.write(before)
            said = xheap("merge", "a.xht", "b.xht", "-o", "small/no.xht", status=2)
            expect("No space left" in said, said)
            expect(os.listdir("small") == (["no.xht"] if before else []), f"left behind: {os.listdir('small')}")
        with open("small/no.xht") as file:
            expect(file.read() == before, "what was there before was changed")
    finally:
        subprocess.run(["umount", "small"], check=True)


def main():
    # Two at a time, so that their times overlap.
    wait = "import os, pathlib, time\ndef wait(name):\n    while not os.path.exists(name):\n        time.sleep(0.01)\n"
    programs = {"a.xht": wait + "[str(i) * 9 for i in range(3000)]; pathlib.Path('begun').touch(); wait('done'); [str(i) * 5 for i in range(3000)]",
                "b.xht": wait + "wait('begun'); x = [str(i) * 7 for i in range(9000)]; pathlib.Path('done').touch()"}
    running = [subprocess.Popen([XHEAP, "record", "-q", "-o", name, "python3", "-c", program]) for name, program in programs.items()]
    for process in running:
        expect(process.wait() == 0, "record failed")
    expect("2 traces" in xheap("merge", "b.xht", "a.xht", "-o", "both.xht"), "nothing is told")
    both = info("both.xht")
    parts = [info(name) for name in programs]
    expect(both["complete"], "the merged trace is not complete")
    # Each option is there once; a value of the other recording that differs has a place of its own.
    keys = []
    told = json.loads(xheap("info", "both.xht", "-format", "json"), object_pairs_hook=lambda pairs: keys.append([key for key, _ in pairs]) or dict(pairs))
    twice = [key for names in keys for key in set(names) if names.count(key) > 1]
    expect(not twice, f"keys that occur twice in one object: {twice}")
    commands = [json.loads(xheap("info", name, "-format", "json"))["options"].get("command") for name in ("a.xht", "b.xht")]
    if commands[0] != commands[1]:
        expect({told["options"]["command"], *told["other_options"]["command"]} == set(commands), f"{commands}: {told['options']} {told.get('other_options')}")
    text = [line.split(None, 1)[-1] for line in xheap("info", "both.xht").splitlines() if "=" in line]
    expect(len(text) == len(set(text)), f"an option occurs twice: {text}")
    for kind in both["events"]:
        expect(both["events"][kind] == sum(part["events"].get(kind, 0) for part in parts), f"{kind}: {both['events']}, of {parts}")
    expect(len(both["processes"]) == sum(len(part["processes"]) for part in parts), "processes are missing")
    merged = events("both.xht")
    expected = [row for name in programs for row in events(name)]
    expect(sorted(map(what, merged)) == sorted(map(what, expected)), "events differ")
    expect(all(int(a["time_ns"]) <= int(b["time_ns"]) for a, b in zip(merged, merged[1:])), "events are not in the order of time")
    # Each part's times moved by one amount, at least one part's by nothing.
    moved = []
    for name in programs:
        rows = events(name)
        pids = {row["pid"] for row in rows}
        own = [row for row in merged if row["pid"] in pids]
        differences = {int(a["time_ns"]) - int(b["time_ns"]) for a, b in zip(own, rows)}
        expect(max(differences) - min(differences) < 100000, f"{name}: times moved by {min(differences)} to {max(differences)} ns")
        moved.append(min(differences))
    expect(min(map(abs, moved)) < 1000 and max(moved) < 2000000000, f"parts moved by {moved} ns")
    interleaved = [row["pid"] for row in merged]
    expect(sum(a != b for a, b in zip(interleaved, interleaved[1:])) > 1, "they do not overlap")
    # Reports add up; so does a merge of merges.
    totals = [json.loads(xheap("heap", name, "-totals", "-format", "json"))["totals"] for name in ("both.xht", *programs)]
    for name in ("total_count", "total_bytes", "outstanding_count", "realloc_count"):
        expect(totals[0][name] == totals[1][name] + totals[2][name], f"{name}: {[total[name] for total in totals]}")
    xheap("record", "-q", "-o", "c.xht", "ls")
    xheap("merge", "both.xht", "c.xht", "-o", "three.xht")
    expect(len(info("three.xht")["processes"]) == len(both["processes"]) + 1, "a merge of merges")
    # Refused.
    # Times of another clock, or of another machine, do not go together.
    xheap("record", "-q", "-o", "m.xht", "--clock", "monotonic", "ls")
    subprocess.run([os.path.join(os.environ["BUILD"], "tests/golden/make_trace"), "plain", "other.xht"], check=True)
    others = [(("a.xht", "other.xht", "-o", "no.xht"), "has the clock")]
    if info("a.xht")["clock"] == "tsc":
        others = [(("a.xht", "m.xht", "-o", "no.xht"), "has the clock"), (("a.xht", "other.xht", "-o", "no.xht"), "of another machine")]
    with open("cut.xht", "wb") as file:
        file.write(open("c.xht", "rb").read()[:-200])
    for words, reason in ((("a.xht", "a.xht", "-o", "no.xht"), "same trace"), (("both.xht", "a.xht", "-o", "no.xht"), "same trace"),
                          (("a.xht", "cut.xht", "-o", "no.xht"), "not complete"), (("a.xht", "-o", "no.xht"), "two traces"),
                          (("a.xht", "b.xht"), "-o OUT is missing"), (("a.xht", "b.xht", "-o", "a.xht"), "one of the files that are read"),
                          (("a.xht", "nothing.xht", "-o", "no.xht"), "cannot open"), (("a.xht", "b.xht", "-o", "/nowhere/no.xht"), "cannot write"),
                          (("a.xht", "/etc/passwd", "-o", "no.xht"), "not a trace"), *others):
        said = xheap("merge", *words, status=2)
        expect(reason in said, f"{words}: {said}")
    on_full_disk()
    expect(not os.path.exists("no.xht") and not [name for name in os.listdir(".") if name.endswith(".new")], "something is left behind")
    return failed > 0


sys.exit(main())
