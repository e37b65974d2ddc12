#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Autologgers: their files, values that are refused, what they start with, and traces whose directory comes later."""
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys

from live import PROGRAMS, XHEAP, expect, run_tests, runs, told, wait_for, wait_until_begun, xheap

GUID = "{222962ab-6180-4b88-a825-346b75f2a24a}"
ROOT = pathlib.Path("root").absolute()
FILES, STATE, TRACES = (ROOT / path for path in ("etc/xheap/autologger.d", "var/lib/xheap/autologger", "var/lib/xheap/traces"))
REFUSED = (
    (["--Guid", "{00000000-0000-0000-0000-000000000000}"], "only {222962ab"), (["--BufferSize", "1024"], "1 to 1023 KB"),
    (["--BufferSize", "0"], "1 to 1023 KB"), (["--BufferSize", "64K"], "not a number"), (["--MaximumBuffers", "1"], "2 to 65536"),
    (["--MinimumBuffers", "9", "--MaximumBuffers", "8"], "less than MinimumBuffers"), (["--FileMax", "17"], "0 to 16"),
    (["--FileCounter", "1"], "by itself"), (["--Status", "0"], "by itself"), (["--EnableFlags", "1"], "error 1004"),
    (["--LogFileMode", "0x8"], "NEWFILE"), (["--LogFileMode", "NEWFILE"], "NEWFILE"), (["--LogFileMode", "0x10000"], "not known"),
    (["--LogFileMode", "SEQUENTIAL+CIRCULAR"], "exclude"), (["--LogFileMode", "0x402"], "exclude"), (["--LogFileMode", "BUFFERING+REAL_TIME"], "exclude"),
    (["--LogFileMode", "APPEND"], "BufferSize"), (["--LogFileMode", "APPEND", "--BufferSize", "64", "--FileMax", "2"], "FileMax"),
    (["--LogFileMode", "CIRCULAR", "--MaxFileSize", "0"], "MaxFileSize"), (["--LogFileMode", "SOMETHING"], "no mode"),
    (["--FileName", "relative.xht"], "absolute"), (["--FileName", "/nowhere/at/all.xht"], "No such file"), (["--FileName", "/" + "x" * 1025], "1024"),
    (["--FlushTimer", "61"], "0 to 60"), (["--ClockType", "0"], "1 to 3"), (["--ClockType", "4"], "1 to 3"), (["--Boot", "1", "--Start", "0"], "Start = 1"),
    (["--StackWalkingFilter", "20 10 00"], "four"), (["--StackWalkingFilter", "25 10 00 00"], "0x1025"), (["--StackWalkingFilter", "0x1019"], "0x1019"),
    (["--StackWalkingFilter", "HeapWalk"], "HeapWalk"), (["--StackWalkingFilter", ","], "no id"))


def listed():
    return {row["name"]: row for row in json.loads(xheap("autologger", "list", "--format", "json"))}


def allocate(session):
    xheap("launch", session, "--", "ls", "/")


def values():
    """Every refusal of the issue, each with its reason and status 2, and nothing is written."""
    for words, reason in REFUSED:
        said = xheap("autologger", "add", "bad", *words, status=2)
        expect(reason in said, f"{words}: {said}")
    expect(not (FILES / "bad.conf").exists(), "a refused file was written")
    xheap("autologger", "add", "../bad", status=2)
    xheap("autologger", "remove", "bad", status=2)
    for mode in ("EVENT_TRACE_REAL_TIME", "REAL_TIME_MODES", "+", "MODE", "_MODE"):
        said = xheap("autologger", "add", "other", "--LogFileMode", mode, status=0 if mode == "EVENT_TRACE_REAL_TIME" else 2)
        expect(("no mode" in said) == (mode != "EVENT_TRACE_REAL_TIME"), said)
    xheap("autologger", "remove", "other")
    said = xheap("autologger", "add", "good", "--bufferSIZE", "0x20", "--StackWalkingFilter", "62 02 00 00, 21 10 00 00", "--LogFileMode", "EVENT_TRACE_REAL_TIME_MODE+event_trace_file_mode_sequential")
    expect("becomes 64 KB" in said and "0x0262" in said, said)
    text = (FILES / "good.conf").read_text()
    expect(f"Guid = {GUID}\n" in text and "Start = 1\n" in text and "BufferSize = 0x20\n" in text, text)
    expect(stat.S_IMODE((FILES / "good.conf").stat().st_mode) == 0o644, "mode of the file")
    xheap("autologger", "run", "good")
    state = json.loads(xheap("query", "good", "--format", "json"))
    state = state[0] if isinstance(state, list) else state
    expect(state["buffer_size"] == 65536 and state["flush_timer_us"] == 100000, state)
    allocate("good")
    xheap("autologger", "stop", "good")
    options = xheap("info", TRACES / "good.xht")
    expect("HeapAlloc" in options and "HeapFree" not in options, options)
    xheap("autologger", "disable", "good")
    expect(listed()["good"]["values"]["Start"] == "0", "disable")
    xheap("autologger", "enable", "good")
    expect(listed()["good"]["values"]["Start"] == "1", "enable")
    xheap("autologger", "remove", "--all")
    expect(not listed(), "remove --all")


def limited():
    """At MaxFileSize the recording ends, which list and show say; later calls are counted."""
    xheap("autologger", "add", "limited", "--MaxFileSize", "1")
    xheap("autologger", "run", "limited")
    expect(not listed()["limited"]["recording_ended"], listed())
    # Sizes at random, or the events take few bytes.
    program = "import random; x = {}\nfor i in range(150000): x[random.getrandbits(12)] = 'x' * random.getrandbits(12)"
    xheap("launch", "limited", "--", "env", "PYTHONMALLOC=malloc", sys.executable, "-S", "-c", program)
    row = wait_for("end", lambda: listed()["limited"]["recording_ended"] and listed()["limited"])
    expect(row["running"] and row["status"] == 0, row)
    expect("  ended  " in xheap("autologger", "list") and "its recording has ended" in xheap("autologger", "show", "limited"), xheap("autologger", "list"))
    with open("/dev/full", "w") as output:
        run = subprocess.run([XHEAP, "autologger", "list"], stdout=output, stderr=subprocess.PIPE, text=True)
    expect((run.returncode, run.stderr) == (2, "xheap: cannot write the output: No space left on device\n"), run)
    xheap("autologger", "stop", "limited")
    trace = TRACES / "limited.xht"
    facts = json.loads(xheap("info", trace, "-format", "json"))
    expect(trace.stat().st_size <= 1 << 20 and facts["event_count"] and facts["ended_early"][0]["calls_after"], facts)
    xheap("autologger", "remove", "limited")


def edited():
    """disable and enable change Start in a file that was edited by hand, and nothing else; Boot has no effect without Start."""
    text = f"# Mine: Start = 1\n[AutoLogger]\n Guid={GUID}\n\tstart: %s ; not always\n\n; next\nBoot = 1\nFileMax = 2\r\nBufferSize = 65\nMaximumBuffers = 2"
    file = FILES / "mine.conf"
    file.write_text(text % "0x1", newline="")
    xheap("autologger", "disable", "mine")
    expect(file.read_bytes().decode() == text % "0", file.read_text())
    row = listed()["mine"]
    expect(row["valid"] and (row["values"]["Start"], row["values"]["Boot"]) == ("0", "1"), row)
    xheap("autologger", "run", "--boot")
    expect(not listed()["mine"]["running"], "it was started")
    xheap("autologger", "enable", "--all")
    expect(file.read_bytes().decode() == text % "1", file.read_text())
    said = xheap("autologger", "show", "mine")
    expect("BufferSize = 65 becomes 68 KB, whole pages" in said and f"MaximumBuffers = 2 becomes {2 * os.sysconf('SC_NPROCESSORS_ONLN')}" in said, said)
    xheap("autologger", "run", "mine")
    state = json.loads(xheap("query", "mine", "--format", "json"))
    state = state[0] if isinstance(state, list) else state
    expect((state["buffer_size"], state["max_buffers"]) == (68 << 10, 2 * os.sysconf("SC_NPROCESSORS_ONLN")), state)
    xheap("autologger", "stop", "mine")
    xheap("autologger", "remove", "mine")


def damaged():
    """Files with mistakes are named in Status, with file and line; the other sessions start all the same."""
    xheap("autologger", "add", "whole")
    head = f"[autologger]\nGuid = {GUID}\n"
    files = {"line": (head + "Start = 1\nnonsense\n", 87), "unknown": (head + "Start = 1\nEnabled = 1\n", 87), "nostart": (head, 87),
             "flags": (head + "Start = 1\nEnableFlags = 2\n", 1004), "other": (head + "Start = 1\n", 5), "empty": ("", 87),
             "section": ("[other]\nStart = 1\n", 87), "long": (head + "Start = 1\nFileName = /" + "x" * 5000 + "\n", None), "bytes": ("\0\377\n" * 50, 87)}
    for name, (text, _) in files.items():
        (FILES / f"{name}.conf").write_text(text, encoding="latin-1")
    (FILES / "other.conf").chmod(0o666)
    (FILES / "-bad name.conf").write_text(head)
    (FILES / "link.conf").symlink_to("whole.conf")
    xheap("autologger", "run", status=2)
    rows = listed()
    for name, (_, number) in files.items():
        row = rows[name]
        expect(not row["running"] and not row["valid"] and row["status"] and number in (None, row["status"]), row)
        expect(f"{name}.conf" in row["error"], row)
        status = (STATE / f"{name}.status").read_text()
        expect(f"Status={row['status']}\n" in status, status)
    expect("line.conf:4" in rows["line"]["error"], rows["line"])
    expect("others may write" in rows["other"]["error"], rows["other"])
    expect(not rows["link"]["valid"] and not rows["-bad name"]["valid"], rows)
    expect(rows["whole"]["running"] and rows["whole"]["status"] == 0, rows["whole"])
    xheap("autologger", "stop")
    expect(not listed()["whole"]["running"], "stop")
    xheap("autologger", "remove", "--all", status=None)


def written(length):
    """A path of so many bytes, whose directory is there."""
    path = str(pathlib.Path("long").absolute())
    while length - len(path) > 200:
        path += "/" + "d" * 90
    os.makedirs(path, exist_ok=True)
    return pathlib.Path(path + "/" + "n" * (length - len(path) - 5) + ".xht")


def long_names():
    """FileName of up to 1,024 bytes, written by `add` and by hand: `show`, `list` and the session have the same path."""
    names = [written(length) for length in (189, 190, 198, 199, 200, 399, 1023, 1024)]
    for number, name in enumerate(names):
        if number % 2:
            xheap("autologger", "add", "long", "--FileName", name)
        else:
            (FILES / "long.conf").write_bytes(f"\ufeff; by hand\r\n  [AutoLogger]\r\n\tguid : {GUID} ; the heap provider\r\n\r\n Start=1\r\n # {'c' * 300}\r\n  FileName\t=  {name} \t".encode())
        row = listed()["long"]
        expect(row["valid"] and row["file"] == str(name), f"{len(str(name))}: {row}")
        expect(f"  FileName = {name}\n" in xheap("autologger", "show", "long"), xheap("autologger", "show", "long"))
        xheap("autologger", "run", "long")
        expect(listed()["long"]["running"] and listed()["long"]["status"] == 0, listed()["long"])
        allocate("long")
        xheap("autologger", "stop", "long")
        expect(len(told("info", name)["processes"]) == 1, name)
    (FILES / "long.conf").write_text(f"[autologger]\nGuid = {GUID}\nStart = 1\n# {'c' * 9000}\nFlushTimer = 1\n")
    row = listed()["long"]
    expect("long.conf:4" in row["error"] and "8191 bytes" in row["error"] and row["values"]["FlushTimer"] == "1", row)
    # A value that its file could not give back is refused.
    place = pathlib.Path("long").absolute()
    for name, reason in (("a\nStart = 0", "control"), ("a ;b", "comment"), ("a ", "blank"), ("a\x1b[2J", "control")):
        said = xheap("autologger", "add", "odd", "--FileName", f"{place}/{name}", status=2)
        expect(reason in said and not (FILES / "odd.conf").exists(), said)
    for name in ("a;b", "a#b", "a = [b]", "\u00e4 : \u4e2d"):
        xheap("autologger", "add", "odd", "--FileName", f"{place}/{name}")
        expect(listed()["odd"]["file"] == f"{place}/{name}", listed()["odd"])
    xheap("autologger", "remove", "--all")


def appended():
    """APPEND goes on in a file with equal buffers, and refuses one with others."""
    xheap("autologger", "add", "more", "--LogFileMode", "APPEND", "--BufferSize", "64")
    for _ in range(2):
        xheap("autologger", "run", "more")
        allocate("more")
        xheap("autologger", "stop", "more")
    trace = json.loads(xheap("info", TRACES / "more.xht", "-format", "json"))
    expect(len(trace["processes"]) == 2, trace["processes"])
    xheap("autologger", "add", "more", "--LogFileMode", "APPEND", "--BufferSize", "128")
    said = xheap("autologger", "run", "more", status=2)
    expect("equal BufferSize" in said and listed()["more"]["status"] == 87, said)
    xheap("autologger", "remove", "more")


def generations():
    """FileMax = 3 keeps the three newest of five traces."""
    xheap("autologger", "add", "three", "--FileMax", "3")
    newest = {}
    for number in range(1, 6):
        xheap("autologger", "run", "three")
        for _ in range(number):
            allocate("three")
        xheap("autologger", "stop", "three")
        expect(f"FileCounter = {(number - 1) % 3 + 1}\n" in xheap("autologger", "show", "three"), "FileCounter")
        files = sorted(TRACES.glob("three.xht*"))
        expect([file.name for file in files] == [f"three.xht.{n:04}" for n in range(1, min(number, 3) + 1)], files)
        newest[f"three.xht.{(number - 1) % 3 + 1:04}"] = number
    for file in files:
        processes = json.loads(xheap("info", file, "-format", "json"))["processes"]
        expect(len(processes) == newest[file.name], f"{file}: {len(processes)} processes, not {newest[file.name]}")
    xheap("autologger", "remove", "three")


def running():
    """Registered processes that run already are attached to; others are not, nor those of another session's option."""
    images = ROOT / "etc/xheap/image.d"
    images.mkdir(parents=True, exist_ok=True)
    own, other = (pathlib.Path(name).absolute() for name in ("registered", "unregistered"))
    for path in (own, other):
        shutil.copy(f"{PROGRAMS}/attached", path)
    (images / "own.conf").write_text("[image]\nImage = registered\n")
    processes = [subprocess.Popen([path, "count"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) for path in (own, other)]
    try:
        for process in processes:
            wait_until_begun(process)
        xheap("autologger", "add", "running")
        xheap("autologger", "run", "running")
        state = json.loads(xheap("query", "running", "--format", "json"))
        state = state[0] if isinstance(state, list) else state
        expect([target["pid"] for target in state["targets"]] == [processes[0].pid], (state["targets"], processes[0].pid))
        xheap("autologger", "stop", "running")
    finally:
        for process in processes:
            process.kill()
            process.wait()
        (images / "own.conf").unlink()
        xheap("autologger", "remove", "running", status=None)


def late():
    """Events of before the directory is there are in the trace; a session that ends before leaves them to recover."""
    place = pathlib.Path("late").absolute()
    place.mkdir()
    xheap("autologger", "add", "late", "--FileName", place / "below.xht", "--FlushTimer", "1")
    place.rmdir()
    xheap("autologger", "run", "late")
    expect(listed()["late"]["status"] == 0, "a missing directory is no error of the start")
    allocate("late")
    place.mkdir()
    wait_for("trace", (place / "below.xht").exists)
    allocate("late")
    xheap("autologger", "stop", "late")
    processes = json.loads(xheap("info", place / "below.xht", "-format", "json"))["processes"]
    expect(len(processes) == 2, processes)
    (place / "below.xht").unlink()
    place.rmdir()
    xheap("autologger", "run", "late")
    allocate("late")
    said = xheap("autologger", "stop", "late", status=2)
    expect("recover" in said, said)
    place.mkdir()
    xheap("recover", place / "below.xht")
    processes = json.loads(xheap("info", place / "below.xht", "-format", "json"))["processes"]
    expect(len(processes) == 1, processes)
    # A full memory ends the recording; what came later is counted.
    (place / "below.xht").unlink()
    place.rmdir()
    xheap("start", "full", "-o", place / "below.xht", "--late-file", "--max-file", "64K")
    xheap("launch", "full", "--", "env", "PYTHONMALLOC=malloc", sys.executable, "-S", "-c", "[str(i) * 3 for i in range(9999)]")
    place.mkdir()
    xheap("stop", "full", status=None)
    trace = place / "below.xht"
    expect(trace.stat().st_size <= 64 << 10, f"{trace.stat().st_size} bytes")
    facts = json.loads(xheap("info", trace, "-format", "json"))
    expect(facts["ended_early"][0]["calls_after"] > 0 and facts["event_count"] > 0, facts)
    xheap("autologger", "remove", "late")


def stopped():
    """When stop has failed, no logger is left that keeps recover from the session."""
    place = pathlib.Path("stopped").absolute()
    for _ in range(12):
        xheap("start", "stopped", "-o", place / "trace.xht", "--late-file")
        xheap("launch", "stopped", "--", "true")
        state = told("query", "stopped")
        xheap("stop", "stopped", status=2)
        expect(not runs(state["logger_pid"]), "the logger runs")
        place.mkdir()
        xheap("recover", place / "trace.xht")
        shutil.rmtree(place)


def killed():
    """The next start completes what a killed logger has left, and does not replace it."""
    xheap("autologger", "add", "killed")
    xheap("autologger", "run", "killed")
    allocate("killed")
    state = json.loads(xheap("query", "killed", "--format", "json"))
    logger = (state[0] if isinstance(state, list) else state)["logger_pid"]
    os.kill(logger, signal.SIGKILL)
    wait_for("its end", lambda: not listed()["killed"]["running"])
    said = xheap("autologger", "run", "killed")
    expect("killed.xht.earlier has the events of an earlier session" in said, said)
    allocate("killed")
    allocate("killed")
    xheap("autologger", "stop", "killed")
    for name, count in (("killed.xht.earlier", 1), ("killed.xht", 2)):
        facts = json.loads(xheap("info", TRACES / name, "-format", "json"))
        expect(len(facts["processes"]) == count and all(row["events"] for row in facts["processes"]), f"{name}: {facts['processes']}")
    xheap("autologger", "remove", "killed")


def kill_logger(name, process):
    """Kill the logger of a session that records the process. The session's directory."""
    xheap("update", name, "-p", process.pid)
    wait_for("events", lambda: any(target["pid"] == process.pid and target["events"] for target in told("query", name)["targets"]))
    state = told("query", name)
    os.kill(state["logger_pid"], signal.SIGKILL)
    wait_for("its end", lambda: "gone" in xheap("query", name, status=None))
    return next(path.parent for path in pathlib.Path(os.environ["XHEAP_RUNTIME_DIR"]).rglob("session") if f"pid={state['logger_pid']}\n" in path.read_text())


def replaced():
    """The trace of a later session is never changed by what an earlier one has left, which gets a file of its own."""
    trace, rest = (pathlib.Path(name).absolute() for name in ("replaced.xht", "rest.xht"))
    targets = [subprocess.Popen([f"{PROGRAMS}/attached", "seldom"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) for _ in range(2)]

    def pids(path):
        return [process["pid"] for process in told("info", path)["processes"] if process["events"]]

    try:
        for target in targets:
            wait_until_begun(target)
        one, two = targets
        for words in ([], ["--file-mode", "circular", "--max-file", "1M"], ["--file-mode", "flight"]):
            xheap("start", "one", "-o", trace, *words)
            kill_logger("one", one)
            xheap("start", "two", "-o", trace, "-p", two.pid)
            wait_for("events", lambda: xheap("flush", "two") is not None and pids(trace) == [two.pid])
            shutil.rmtree(kill_logger("two", two))
            before = trace.read_bytes()
            said = xheap("recover", status=2)
            expect("later session" in said and trace.read_bytes() == before, f"{words}: {said}")
            # The name of the trace means the trace that is there.
            said = xheap("recover", trace)
            expect("from the file alone" in said and pids(trace) == [two.pid] and "unfinished" in told("info", trace), f"{words}: {said}: {told('info', trace)}")
            before = trace.read_bytes()
            said = xheap("recover", trace, status=2)
            expect("is whole" in said, f"{words}: {said}")
            xheap("recover", "-o", rest)
            facts = told("info", rest)
            # The logger may have been killed before it had read the heaps.
            expect(pids(rest) == [one.pid] and facts["complete"] == ("flight" in words and "earlier_missing" not in facts), f"{words}: {facts}")
            expect(trace.read_bytes() == before, words)
        # So does the next start of an autologger.
        xheap("autologger", "add", "late", "--FileName", trace)
        xheap("autologger", "run", "late")
        kill_logger("late", one)
        xheap("start", "two", "-o", trace)
        xheap("stop", "two")
        said = xheap("autologger", "run", "late")
        expect("replaced.xht.earlier has the events of an earlier session" in said and pids(f"{trace}.earlier") == [one.pid], said)
        xheap("autologger", "stop", "late")
    finally:
        for target in targets:
            target.kill()
            target.wait()
        xheap("autologger", "remove", "late", status=None)


os.environ["XHEAP_IMAGE_ROOT"] = str(ROOT)
FILES.mkdir(parents=True)
sys.exit(run_tests(values, limited, edited, damaged, long_names, appended, generations, running, late, stopped, killed, replaced))
