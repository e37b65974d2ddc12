#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sessions from the shell: start, update, query, sessions, flush, stop, launch, with processes that run."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

from live import LONG_SECONDS, PROGRAMS, XHEAP, dump, expect, info, is_whole, regions, run_tests, stop_session, told, wait_for, xheap

PROGRAM = os.path.join(PROGRAMS, "attached")
NAME = f"test{os.getpid()}"


def target(*words):
    """A program that runs. It makes few calls: a trace that grows faster than it is read would never be read."""
    process = subprocess.Popen([PROGRAM, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for("the program", lambda: os.readlink(f"/proc/{process.pid}/exe") == os.path.realpath(PROGRAM))
    return process


def end(process):
    out, _ = process.communicate("", timeout=LONG_SECONDS)
    expect(process.returncode == 0, f"{process.args}: status {process.returncode}: {out}")


def query(name):
    return told("query", name)


def events(name):
    return {row["pid"]: row["events"] for row in query(name)["targets"]}


def wait_until_recorded(name, count=1):
    """Until each target has so many events more."""
    before = events(name)
    wait_for(f"{count} events of each of {before.keys()}", lambda: all(now >= before.get(pid, 0) + count for pid, now in events(name).items()))


def on_terminal(columns, *words):
    """What the command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    subprocess.run([XHEAP, *words], stdin=subprocess.DEVNULL, stdout=theirs, check=True)
    os.close(theirs)
    text = b""
    # It comes in pieces, and an error is the end.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 1 << 16):
            text += piece
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


def check_threads(name, trace):
    """What is told of threads adds up to what is told of their process."""
    state = told("query", name, "-threads")
    for row in state["targets"]:
        threads, earlier = row["thread_rows"], earlier_blocks(name, trace, row["pid"])
        expect(len(threads) == row["threads"] > 0 and all(thread["name"] for thread in threads), f"threads: {row}")
        rest = row["events"] - sum(thread["events"] for thread in threads)
        # The trace may have those of another time that it was attached to, too.
        expect(0 <= rest <= earlier, f"{rest} events of no thread, {earlier} earlier blocks: {row}")
        for one, none in [(thread, 0) for thread in threads] + [(row, rest)]:
            stacks = sum(one[f"{end}_stacks"] for end in ("whole", "truncated", "unwindless"))
            # Stacks were not asked for all the time.
            expect(0 < stacks <= one["events"] - none and one["whole_stacks"] > 0, f"{stacks} stacks of {one['events']} events, {none} without: {one}")
        expect(row["events_per_second"] > 0 and row["cpu_us"] > 0 and state["logger_bytes"] > 1 << 16, f"no rate, no cost: {row}")
        expect(row["pause_us"] > 0, f"how long it stood is not told: {row}")
    text = xheap("query", name, "--threads")
    narrow = on_terminal(60, "query", name, "--threads")
    # The path of the trace may be of any length.
    expect(max(len(line) for line in narrow.splitlines() if " records into " not in line) <= 100 and max(len(line) for line in narrow.splitlines() if line.split()[:1] == [str(state["targets"][0]["pid"])]) <= 60,
           f"too wide for a terminal of 60 columns: {narrow}")
    expect("columns left out: " in narrow and "left out" not in text, f"which columns are missing: {narrow}")
    expect(all(str(thread["tid"]) in text for row in state["targets"] for thread in row["thread_rows"]), f"threads are not told: {text}")


def earlier_blocks(name, trace, pid):
    xheap("flush", name)
    return sum(row["action"] == "Earlier" and row["pid"] == str(pid) for row in dump(trace))


def pids(name):
    return {row["pid"] for row in query(name)["targets"]}


def check_sessions():
    one, two, three = target("seldom"), target("seldom", 2), target("idle")
    name = NAME
    # A session without a process waits for some.
    xheap("start", name, "-o", "s.xht", "-p", "0")
    expect(query(name)["targets"] == [], "it has targets from the start")
    expect(name in xheap("sessions"), "it is not listed")
    expect("already" in xheap("start", name, "-o", "other.xht", status=2), "a name is given twice")
    expect(not os.path.exists("other.xht"), "a trace of nothing is left")
    # Sets of processes.
    xheap("update", name, "--add-pid", one.pid)
    expect(pids(name) == {one.pid}, f"{pids(name)}")
    xheap("update", name, "-p", f"{two.pid},{three.pid}")
    expect(pids(name) == {two.pid, three.pid}, f"a set is not replaced: {pids(name)}")
    xheap("update", name, "--add-pid", f"{one.pid},4194303", status=2)
    expect(pids(name) == {two.pid, three.pid}, f"not all or nothing: {pids(name)}")
    xheap("update", name, "--add-pid", one.pid)
    xheap("update", name, "--remove-pid", three.pid)
    expect(pids(name) == {one.pid, two.pid}, f"{pids(name)}")
    # One that cannot be let go of: who was before it comes back, who was added goes.
    stiff, four = target("vfork"), target("seldom")
    xheap("update", name, "--add-pid", stiff.pid)
    everybody = {one.pid, two.pid, stiff.pid}
    said = xheap("update", name, "--remove-pid", f"{one.pid},{os.getpid()}", "--add-pid", four.pid, status=2)
    expect("not recorded" in said and pids(name) == everybody, f"not all or nothing: {said}{pids(name)}")
    said = xheap("update", name, "--add-pid", f"{one.pid},4194303", status=2)
    expect(pids(name) == everybody, f"who was there before went with who did not come: {said}{pids(name)}")
    stiff.stdin.write("x")
    stiff.stdin.flush()
    wait_for("the child that is waited for", lambda: pathlib.Path(f"/proc/{stiff.pid}/task/{stiff.pid}/children").read_text())
    said = xheap("update", name, "--remove-pid", f"{one.pid},{stiff.pid}", "--add-pid", four.pid, "--on-full", "drop", status=2)
    expect("did not stop" in said, f"why not is not told: {said}")
    expect(pids(name) == everybody and query(name)["on_full"] == "wait", f"not all or nothing: {pids(name)}")
    wait_until_recorded(name)
    end(stiff)
    end(four)
    # A process is in one session at most.
    said = xheap("start", name + "b", "-o", "b.xht", "-p", one.pid, status=2)
    expect(name in said, f"the other session is not named: {said}")
    expect(f"{name}b" not in xheap("sessions"), "a session that failed is there")
    # Options while it runs.
    wait_until_recorded(name)
    xheap("update", name, "--stackwalk", "none", "--on-full", "drop")
    expect(query(name)["on_full"] == "drop", "an option was not changed")
    wait_until_recorded(name)
    xheap("update", name, "--stackwalk", "all", "--on-full", "wait")
    # Launched into it.
    xheap("launch", name, "--", "sh", "-c", "exit 7", status=7)
    xheap("launch", name, "/nowhere", status=2)
    wait_until_recorded(name, 100)
    state = query(name)
    expect(state["events"] > 100 and state["lost_events"] == 0, f"{state}")
    expect(all(row["events"] > 0 for row in state["targets"]), f"no events of a target: {state['targets']}")
    check_threads(name, "s.xht")
    # What is flushed can be read.
    xheap("flush", name)
    flushed = info("s.xht")
    expect(sum(flushed["events"].values()) > 100 and not flushed["complete"], "nothing can be read of a session that runs")
    expect("s.xht: not ended" in xheap("info", "s.xht"), "a trace that is being written is called cut")
    said = xheap("report", "s.xht")
    expect("  the trace is being written: this is what it has up to now\n" in said and "cut" not in said, said)
    for words in ("dump", "s.xht", "-processes"), ("view", "s.xht", "--html", "s.html"):
        said = xheap(*words)
        expect("xheap: s.xht is being written: this is what it has up to now\n" in said and "is cut" not in said, f"{words}: {said}")
    totals = told("heap", "-session", name, "-totals")["totals"]
    expect(totals["total_count"] > 50, f"a running session is not answered about: {totals}")
    # An export has what was recorded up to it.
    xheap("export", "-session", name, "-format", "speedscope", "-o", "s.json")
    exported = json.loads(pathlib.Path("s.json").read_text())
    count = sum(sum(profile["weights"]) for profile in exported["profiles"] if profile["name"] == "total blocks")
    later = told("heap", "-session", name, "-totals")["totals"]
    expect(totals["total_count"] <= count <= later["total_count"], f"{count} blocks exported, between {totals} and {later}")
    expect("live" in xheap("top", name, "-s", "st") and name in xheap("report", "-session", name), "no view of a running session")
    # The target's end is no end of the session.
    end(two)
    wait_for("end of a process that ended", lambda: pids(name) == {one.pid})
    xheap("stop", name)
    expect("no session" in xheap("query", name, status=2), "a stopped session is found")
    done = info("s.xht")
    expect(is_whole(done), "the trace is cut")
    expect({one.pid, two.pid, three.pid} <= {process["pid"] for process in done["processes"]}, "processes are missing")
    # A logger that dies leaves its targets running, and its name free.
    xheap("start", name, "-o", "d.xht", "-p", one.pid)
    wait_until_recorded(name)
    os.kill(query(name)["logger_pid"], signal.SIGKILL)
    wait_for("word that the logger is dead", lambda: "gone" in xheap("query", name, status=None))
    xheap("query", name, status=2)
    expect("gone" in xheap("sessions"), "a dead logger is not told in the list")
    said = xheap("start", f"{name}.next", "-o", "next.xht", "-p", one.pid, status=2)
    expect(f"by {name}, whose logger is gone: xheap recover" in said, f"an attach beside a dead logger: {said}")
    xheap("recover", "d.xht")
    end(one)
    four = target("seldom")
    xheap("start", name, "-o", "e.xht", "-p", four.pid)
    xheap("stop", name)
    end(four)
    end(three)
    # Wrong words.
    for words in (("start",), ("start", "a/b"), ("start", "x", "ls"), ("start", "x", "-p", "no"), ("update", name), ("query",), ("stop", "nobody"),
                  ("flush", "nobody"), ("launch", name), ("launch", "nobody", "ls"), ("sessions", "x"), ("top",), ("top", "nobody"), ("top", name, "-s", "x"), ("heap", "-session", "nobody"), ("export", "-session", "nobody", "-format", "folded"), ("query", name, "--format", "x"),
                  ("stop", name, "x"), ("start", "x", "--duration", "1s")):
        said = xheap(*words, status=2)
        expect(said.startswith("xheap: "), f"{words}: {said}")
    expect(re.search("no sessions", xheap("sessions")) or name not in xheap("sessions"), "a session is left")


def check_end_signal():
    """SIGTERM ends a session as stop does: its processes run on, its trace is complete, its name is free. So it ends the recording of `record`, which says
    why, whether that has attached or has started the program."""
    process, trace = target("seldom"), "signal.xht"
    xheap("start", NAME, "-o", trace, "-p", process.pid)
    wait_until_recorded(NAME)
    os.kill(query(NAME)["logger_pid"], signal.SIGTERM)
    wait_for("the end of the session", lambda: NAME not in xheap("sessions"))
    expect(is_whole(info(trace)) and info(trace)["complete"], "the trace is not complete")
    expect(process.poll() is None and not regions(process.pid), "the process was not detached from")
    trace = "signal_attached.xht"
    recorder = subprocess.Popen([XHEAP, "record", "-o", trace, "-p", str(process.pid)], stderr=subprocess.PIPE, text=True)
    said = signal_logger_of(recorder)
    expect(recorder.returncode == 0 and "SIGTERM from process" in said and "detached from" in said, f"status {recorder.returncode}: {said}")
    expect(is_whole(info(trace)), "the trace of record -p is cut")
    end(process)
    trace = "signal_started.xht"
    recorder = subprocess.Popen([XHEAP, "record", "-o", trace, "--", PROGRAM, "seldom"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = signal_logger_of(recorder, "")
    expect(recorder.returncode == 0 and "SIGTERM from process" in said, f"status {recorder.returncode}: {said}")
    expect(is_whole(info(trace)), "the trace of record is cut")


def events_of(trace):
    """0 while the file is not there or has no header yet."""
    said = subprocess.run([XHEAP, "info", trace, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(said.returncode == 0 or "is empty" in said.stderr or not os.path.exists(trace), f"info {trace}: {said.stderr}")
    return sum(json.loads(said.stdout)["events"].values()) if said.returncode == 0 else 0


def signal_logger_of(recorder, input_text=None):
    """Send the logger SIGTERM when it records. The program ends after that, at the end of its input."""
    def logger():
        children = pathlib.Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()
        return next((int(pid) for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text() == "xheap-logger\n"), None)
    wait_for("the logger", logger)
    pid = logger()
    wait_for("events", lambda: events_of(recorder.args[3]) > 0)
    os.kill(pid, signal.SIGTERM)
    # `record` waits for it when the program has ended.
    wait_for("the end of the logger", lambda: not os.path.exists(f"/proc/{pid}") or pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z")
    return recorder.communicate(input_text, timeout=LONG_SECONDS)[1]


def sessions():
    try:
        check_sessions()
        check_end_signal()
    finally:
        # A session without targets waits for ever.
        stop_session(NAME)
        stop_session(f"{NAME}b")


sys.exit(run_tests(sessions))
