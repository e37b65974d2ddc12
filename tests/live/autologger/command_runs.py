#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Boot traces: runs of a command, their statistics against a model, differences of tags, and the state between restarts."""
import csv
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys

from live import LONG_SECONDS, XHEAP, expect, run_tests, runs as runs_process, wait_for, xheap

ROOT = pathlib.Path("root").absolute()
STATE, FILES = ROOT / "var/lib/xheap/autologger", ROOT / "etc/xheap/autologger.d"
TOTALS = {"allocated": "total_bytes", "allocations": "total_count", "peak": "peak_bytes", "outstanding": "outstanding_bytes",
          "outstanding blocks": "outstanding_count"}
RESULTS = pathlib.Path("results").absolute()
# Allocates more at each run, and leaves it.
PROGRAM = "import sys, pathlib; n = pathlib.Path('n'); i = int(n.read_text()) + 1; n.write_text(str(i)); x = bytearray((1 << 20) * (40 if i == 6 else i % 2 + 1))"
RUN = ("--", sys.executable, "-S", "-c", PROGRAM)


def totals_of(trace):
    return json.loads(xheap("heap", trace, "-totals", "-format", "json"))["totals"]


def table_of(said):
    """{number: [median, least, most, apart, outliers]} as printed."""
    rows = {}
    for line in said.splitlines():
        cells = re.split(r" {2,}", line.strip())
        if line.startswith("  ") and len(cells) == 6 and cells[0] in {*TOTALS, "time"}:
            rows.setdefault(cells[0], cells[1:])
    return rows


def quantile(values, part):
    at = part * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def runs():
    """The numbers of each run are those of its trace; medians, extremes and outliers are those of a model."""
    pathlib.Path("n").write_text("0")
    RESULTS.mkdir()
    pathlib.Path("before").write_text("")
    said = xheap("boottrace", "-trace", "command", "-numRuns", "7", "-resultPath", RESULTS, "-runTag", "before", "-preTraceCmd", "echo x >>before",
                 "-callBack", "wc -l <before >after", *RUN)
    names = [f"command_before_{number}.xht" for number in range(1, 8)]
    expect(sorted(path.name for path in RESULTS.iterdir()) == sorted(["command_before.csv", *names]), list(RESULTS.iterdir()))
    expect(pathlib.Path("after").read_text() == "7\n", "-preTraceCmd runs before each run, -callBack after all")
    facts, table = [totals_of(RESULTS / name) for name in names], table_of(said)
    for title, key in TOTALS.items():
        values = sorted(fact[key] for fact in facts)
        low, high = quantile(values, 0.25), quantile(values, 0.75)
        outliers = [f"run {number}" for number, fact in enumerate(facts, 1)
                    if fact[key] < low - 1.5 * (high - low) or fact[key] > high + 1.5 * (high - low)]
        expect(table[title][4] == (", ".join(outliers) or "none"), f"{title}: {table[title]}, not {outliers}")
        if "bytes" not in key:
            wanted = [round(statistics.median(values) + 0.0001), values[0], values[-1], int(high - low + 0.5)]
            expect([int(cell.replace(",", "")) for cell in table[title][:4]] == wanted, f"{title}: {table[title]}, not {wanted}")
    expect("run 6" in table["allocated"][4], table)
    expect("to run 6, which is furthest from it" in said, said)
    times = [int(row["time_us"]) for row in csv.DictReader((RESULTS / "command_before.csv").open())]
    expect(len(times) == 7 and min(times) > 0, times)
    values = sorted(times)
    wanted = [statistics.median(values), values[0], values[-1], quantile(values, 0.75) - quantile(values, 0.25)]
    shown = [float(cell.split()[0]) * {"ns": 0.001, "us": 1, "ms": 1000, "s": 1000000}[cell.split()[1]] for cell in table["time"][:4]]
    expect(all(abs(cell - number) <= number / 100 + 1 for cell, number in zip(shown, wanted)), f"{table['time']}, not {wanted}")


def times():
    """The time of a run is that of its first process, whatever it executes; else that of the whole run."""
    for tag, words in (("exec", ("sh", "-c", "exec sleep 0.3")), ("twice", ("env", "sh", "-c", "exec sleep 0.3")), ("plain", ("sleep", "0.3"))):
        xheap("boottrace", "-trace", "command", "-resultPath", RESULTS, "-runTag", tag, "--", *words)
        (row,) = csv.DictReader((RESULTS / f"command_{tag}.csv").open())
        processes = json.loads(xheap("info", RESULTS / f"command_{tag}_1.xht", "-format", "json"))["processes"]
        ran_us = processes[-1]["end_us"] - processes[0]["start_us"]
        expect(processes[-1]["end"] == "exit" and ran_us >= 300000 and abs(int(row["time_us"]) - ran_us) <= 1, f"{tag}: {row}, not {ran_us}: {processes}")
        for file in RESULTS.glob(f"command_{tag}*"):
            file.unlink()


def tags():
    """Another tag is compared with the one before, as diff does; more runs than now are removed."""
    pathlib.Path("n").write_text("0")
    (RESULTS / "command_after_3.xht").write_bytes(b"of an earlier time")
    said = xheap("boottrace", "-trace", "command", "-numRuns", "2", "-resultPath", RESULTS, "-runTag", "after", *RUN)
    expect("From tag before (7 runs) to tag after (2 runs):" in said, said)
    sides = [sorted(map(str, RESULTS.glob(f"command_{tag}_*.xht"))) for tag in ("before", "after")]
    expect(len(sides[1]) == 2, sides)
    own = xheap("diff", *sides[0], "--", *sides[1], "-top", "10")
    expect(own.strip().splitlines()[-12:] == said.strip().splitlines()[-12:], f"{own}\n----\n{said}")


def at_once():
    """Two at once never write the same traces; a run without an end leaves no list that another tag is compared with."""
    place = pathlib.Path("at_once").absolute()
    place.mkdir()
    words = ["boottrace", "-trace", "command", "-resultPath", place, "-runTag"]
    one = subprocess.Popen([XHEAP, *words, "one", "-preTraceCmd", "touch began; until [ -e go ]; do sleep 0.02; done", "--", "true"], stdout=subprocess.DEVNULL)
    try:
        wait_for("the first", pathlib.Path("began").exists)
        said = xheap(*words, "one", "--", "true", status=2)
        expect("another boottrace writes" in said and "command_one.csv" in said, said)
        expect("1 run in" in xheap(*words, "two", "--", "true") and sorted(path.name for path in place.glob("*_one*")) == ["command_one.csv"], list(place.iterdir()))
    finally:
        pathlib.Path("go").touch()
        status = one.wait()
    expect(status == 0 and len(list(csv.DictReader((place / "command_one.csv").open()))) == 1, f"status {status}")
    xheap(*words, "three", "--", "/nowhere/program", status=2)
    expect(not (place / "command_three.csv").exists(), "an empty list stays")


def others():
    """Files that only have the name of a list, and removed traces, keep no comparison from being made, nor -callBack from its run."""
    place = pathlib.Path("others").absolute()
    place.mkdir()
    words = ["boottrace", "-trace", "command", "-resultPath", place, "-runTag"]
    for tag, count in (("a", 2), ("b", 1), ("c", 1)):
        xheap(*words, tag, "-numRuns", count, "--", "true")
    for name, text in (("x", "number,1\n"), ("empty", ""), ("y" * 200, "run,time_us,status\n1,2,0\n")):
        (place / f"command_{name}.csv").write_text(text)
    for name in ("a_1", "b_1"):
        (place / f"command_{name}.xht").unlink()
    said = xheap(*words, "d", "--", "true")
    expect(re.findall("From tag .*:", said) == [f"From tag {tag} (1 run) to tag d (1 run):" for tag in "ac"], said)
    expect("command_a_1.xht was removed" in said and "command_b_1.xht was removed" in said, said)
    (place / "command_c_1.xht").write_bytes(b"damaged")
    said = xheap(*words, "e", "-callBack", "echo called", "--", "true", status=2)
    expect("From tag d (1 run) to tag e (1 run):" in said and "\ncalled\n" in said, said)


def interrupted():
    """A signal ends the command and its recording, and then the boottrace: by name or by a terminal. The runs before are listed. With nohup, SIGHUP ends nothing."""
    place = pathlib.Path("interrupted").absolute()
    place.mkdir()
    # The second run waits.
    program = "[ -e second ] || { touch second; exit; }; echo $$ > pid.new; mv pid.new pid; exec sleep 1000"

    def wait_and_ask(number, to_group):
        one = subprocess.Popen([XHEAP, "boottrace", "-trace", "command", "-numRuns", "3", "-resultPath", place, "-runTag", "x", "--", "sh", "-c", program],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        pid = int(wait_for("second run", lambda: pathlib.Path("pid").exists() and pathlib.Path("pid").read_text()))
        (os.killpg if to_group else os.kill)(one.pid, number)
        try:
            said = one.communicate(timeout=LONG_SECONDS)[1]
            expect(one.returncode == 2 and "run 2 was interrupted" in said, f"{number}: {one.returncode}: {said}")
            expect(not runs_process(pid), f"{number}: the command goes on")
        finally:
            if runs_process(pid):
                os.killpg(one.pid, signal.SIGKILL)
            for name in ("pid", "second"):
                pathlib.Path(name).unlink(missing_ok=True)
        rows = list(csv.DictReader((place / "command_x.csv").open()))
        expect([row["run"] for row in rows] == ["1"], rows)

    for number, to_group in ((signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, True)):
        wait_and_ask(number, to_group)
    pathlib.Path("began").unlink(missing_ok=True)
    one = subprocess.Popen(["nohup", XHEAP, "boottrace", "-trace", "command", "-resultPath", place, "-runTag", "y", "--", "sh", "-c", "touch began; until [ -e go_on ]; do sleep 0.02; done"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for("run", pathlib.Path("began").exists)
    os.killpg(one.pid, signal.SIGHUP)
    pathlib.Path("go_on").touch()
    expect(one.wait() == 0, f"nohup: status {one.returncode}")


def incomplete():
    """A run whose recording ended before its command is named below the statistics."""
    said = xheap("boottrace", "-trace", "command", "-resultPath", RESULTS, "-runTag", "cut", "-numRuns", "2", "-max-file", "64K", "--", "env", "PYTHONMALLOC=malloc",
                 sys.executable, "-S", "-c", "[str(i) * 3 for i in range(30000)]")
    expect(len(re.findall("run [12] is not complete: recording ended at", said.partition("From run")[0])) == 2, said)
    for file in RESULTS.glob("command_cut*"):
        file.unlink()


def many_outliers():
    """Ten outliers are named, and the others are counted."""
    place = pathlib.Path("outliers").absolute()
    place.mkdir()
    said = xheap("boottrace", "-trace", "command", "-resultPath", place, "-numRuns", "60", "--", "sh", "-c", "n=$(cat m 2>/dev/null); echo $((n + 1)) > m; [ $((n % 5)) = 0 ] && exec seq 9 > /dev/null || :")
    expect(table_of(said)["allocations"][4] == ", ".join(f"run {number}" for number in range(1, 51, 5)) + " and 2 more", said[:2000])


def full():
    """Statistics that cannot be written are an error."""
    with open("/dev/full", "w") as output:
        run = subprocess.run([XHEAP, "boottrace", "-trace", "command", "-resultPath", RESULTS, "-runTag", "full", "--", "true"], stdout=output, stderr=subprocess.PIPE, text=True)
    expect((run.returncode, run.stderr) == (2, "xheap: cannot write the output: No space left on device\n"), run)


def refused():
    for words, reason in ((["-trace", "command"], "command is missing"), (["-trace", "standby"], "only command"), (["-trace", "service:"], "expected"),
                          (["-trace", "command", "-runTag", "a/b", "--", "ls"], "runTag"), (["-trace", "command", "-numRuns", "0", "--", "ls"], "numRuns"),
                          (["-trace", "command", "-resultPath", "/nowhere", "--", "ls"], "nowhere"), (["-trace", "command", "-prepSystem", "--", "ls"], "trained"),
                          (["-trace", "command", "-file-mode", "circular", "--", "ls"], "one trace"), (["-remove", "-trace", "boot"], "alone"), (["-remove", "-numRuns", "3"], "alone"),
                          (["-trace", "command", "-runTag", "a\x1b[31m", "--", "ls"], "-runTag a?[31m"), (["-trace", "boot", "-yes", "-preTraceCmd", "x" * 4096], "longer than 4095"),
                          (["-trace", "boot", "-yes", "-callBack", "x" * 4096], "longer than 4095"),
                          (["-trace", "boot", "-resultPath", "/"], "-yes"), (["-trace", "command", "-preTraceCmd", "exit 3", "--", "ls"], "status 3"),
                          (["-trace", "command", "--", "/nowhere/program"], "program"), (["-trace", "service:none.service"], "none.service")):
        environment = dict(os.environ, PATH=f"{pathlib.Path('bin').absolute()}:{os.environ['PATH']}")
        said = xheap("boottrace", *words, status=2, env=environment, stdin=0)
        expect(reason in said, f"{words}: {said}")
    # A mistyped command replaces nothing.
    pathlib.Path("typed").mkdir()
    words = ("boottrace", "-trace", "command", "-resultPath", "typed", "-runTag", "kept", "--")
    xheap(*words, "ls")
    before = {path.name: path.read_bytes() for path in pathlib.Path("typed").iterdir()}
    expect("lss: no such command" in xheap(*words, "lss", status=2), "it was run")
    expect(len(before) == 2 and before == {path.name: path.read_bytes() for path in pathlib.Path("typed").iterdir()}, before.keys())
    # A reader that has seen enough is no mistake.
    with open("typed/errors", "w") as errors:
        subprocess.run(f"'{XHEAP}' {' '.join(words)} true | true", shell=True, stderr=errors)
    expect(not pathlib.Path("typed/errors").read_text(), pathlib.Path("typed/errors").read_text())


def boots():
    """The state goes from restart to restart, by a systemctl of the test's own; -remove leaves nothing."""
    environment = dict(os.environ, PATH=f"{pathlib.Path('bin').absolute()}:{os.environ['PATH']}")
    results = pathlib.Path("boots").absolute()
    results.mkdir()
    if os.geteuid():
        return "boots are for root"
    said = xheap("boottrace", "-trace", "boot", "-resultPath", "/dev/shm", status=2, env=environment, stdin=subprocess.DEVNULL)
    expect("in memory" in said and "-yes allows it" in said and not (STATE / "boottrace.state").exists(), said)
    calls = pathlib.Path("systemctl.log")
    calls.write_text("")
    before = {path.name for path in FILES.iterdir()}
    (results / "boot_x_3.xht").write_bytes(b"of an earlier time")
    xheap("boottrace", "-trace", "boot", "-numRuns", "2", "-resultPath", results, "-runTag", "x", "-postBootDelay", "0", "-callBack", "echo > called", "-yes",
          env=environment)
    expect(calls.read_text().split("\n")[:3] == ["-q is-enabled xheap-autologger.service", "enable -q xheap-autologger.service xheap-boottrace.service", "reboot"], calls.read_text())
    said = xheap("boottrace", "-trace", "boot", "-yes", status=2, env=environment)
    expect("under way, run 1 of 2" in said, said)
    file = FILES / "xheap-boottrace.conf"
    for number in (1, 2):
        text = file.read_text()
        expect(f"FileName = {results}/boot_x_{number}.xht\n" in text and "AllProcesses = 1\n" in text, text)
        # This machine's own processes are left alone.
        file.write_text(text.replace("AllProcesses = 1\n", ""))
        xheap("autologger", "run", env=environment)
        xheap("launch", "xheap-boottrace", "--", "ls", "/")
        xheap("boottrace", "-continue", env=environment)
    expect(calls.read_text().count("reboot\n") == 2, calls.read_text())
    expect(sorted(path.name for path in results.iterdir()) == ["boot_x.csv", "boot_x.txt", "boot_x_1.xht", "boot_x_2.xht"], list(results.iterdir()))
    expect("boot, tag x: 2 runs" in (results / "boot_x.txt").read_text(), (results / "boot_x.txt").read_text())
    expect(pathlib.Path("called").exists(), "-callBack")
    expect({path.name for path in FILES.iterdir()} == before and not (STATE / "boottrace.state").exists(), "it is reset at the end")
    xheap("boottrace", "-trace", "boot", "-resultPath", results, "-yes", env=environment)
    xheap("boottrace", "-remove", env=environment)
    expect({path.name for path in FILES.iterdir()} == before and not (STATE / "boottrace.state").exists(), "-remove")
    xheap("boottrace", "-continue", env=environment)
    expect(calls.read_text().count("reboot\n") == 3, "after -remove nothing goes on")
    # So does a run that cannot be listed: the next start of the machine would go on with it.
    (results / "boot_z.csv").mkdir()
    xheap("boottrace", "-trace", "boot", "-numRuns", "2", "-resultPath", results, "-runTag", "z", "-postBootDelay", "0", "-yes", env=environment)
    file.write_text(file.read_text().replace("AllProcesses = 1\n", ""))
    xheap("autologger", "run", env=environment)
    said = xheap("boottrace", "-continue", status=2, env=environment)
    expect("boot_z.csv" in said and {path.name for path in FILES.iterdir()} == before and not (STATE / "boottrace.state").exists(), said)
    # A restart that fails resets everything, too.
    calls.write_text("fail\n")
    said = xheap("boottrace", "-trace", "boot", "-resultPath", results, "-yes", status=2, env=environment)
    expect("cannot be restarted" in said and not (STATE / "boottrace.state").exists(), said)


os.environ["XHEAP_IMAGE_ROOT"] = str(ROOT)
FILES.mkdir(parents=True)
pathlib.Path("bin").mkdir()
pathlib.Path("bin/systemctl").write_text('#!/bin/sh\ncase "$*" in\nshow*) exit 1 ;;\nesac\necho "$*" >> systemctl.log\n[ "$1" = reboot ] && grep -q fail systemctl.log && exit 1\nexit 0\n')
pathlib.Path("bin/systemctl").chmod(0o755)
sys.exit(run_tests(runs, times, tags, at_once, others, interrupted, incomplete, many_outliers, full, refused, boots))
