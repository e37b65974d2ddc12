#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recording that ends before the program does: the file is as large as it may be, or its disk is full. Every call is in the trace or in a number of
it, by process; who reads the trace is told when and why; and the file is filled."""
import pathlib
import subprocess

from live import PROGRAMS, XHEAP, dump, expect, info, is_whole, kill, run_tests, told, wait_for, xheap

PROGRAM = f"{PROGRAMS}/ends_early"
ROUNDS, KEPT_BYTES = 60000, 4242
KIB = 1 << 10
LIMITS = 64 * KIB, 300 * KIB, 1024 * KIB
DENSE, DENSE_LIMITS = f"{PROGRAMS}/dense", (64 * KIB, 1024 * KIB, 64 << 20)
ALIVE = "alive when recording ended"


def record(trace, *options, rounds=ROUNDS, words=()):
    """What it says."""
    return xheap("record", "-o", trace, *options, "--", PROGRAM, rounds, *words)


def calls_of_all(rounds, words=()):
    """Without an end."""
    record("whole.xht", rounds=rounds, words=words)
    facts = info("whole.xht")
    expect(facts["complete"] and "ended_early" not in facts, f"{facts}")
    return facts["event_count"]


def check(trace, expected, reason, said):
    """All calls are somewhere, and every report says so. Of each process, by id, how many came after."""
    facts = info(trace)
    expect(is_whole(facts) and not facts["complete"], f"{trace}: complete {facts['complete']}")
    expect(facts["lost_events"] == 0 and facts["gaps"] == [], f"{trace}: {facts['lost_events']} lost: an end is no loss")
    (end,) = facts["ended_early"]
    after = {row["process"]: row["calls"] for row in end["processes"]}
    expect(end["calls_after"] == sum(after.values()), f"{end}")
    expect(facts["event_count"] + end["calls_after"] == expected, f"{facts['event_count']} + {end['calls_after']} calls, not {expected}")
    expect(reason in end["reason"] and 0 < end["at_us"] <= facts["duration_us"], f"{end}")
    expect(f"{end['calls_after']:,} later calls were not recorded" in said, said)
    for words in (["info", trace], ["heap", trace, "-totals"], ["heap", trace, "-stacks"], ["report", trace], ["dump", trace, "-allocations"]):
        # A dump says it apart from its rows.
        lines = [line for line in xheap(*words).splitlines() if words[0] != "dump" or line.startswith("xheap: ")]
        # A report breaks its lines.
        first = " ".join(line.strip() for line in lines[:4])
        expect("recording ended at" in first and reason in first, f"{words}: {first}")
    expect(told("heap", trace, "-totals")["ended_early"] == facts["ended_early"], "heap tells another end than info")
    return after


def check_kept(trace):
    """The block that is held, of a thread that does nothing else for long, is there."""
    (kept,) = [row for row in dump(trace, "-allocations") if row["size"] == str(KEPT_BYTES) and row["process"] == "0"]
    expect(kept["end_kind"] == ALIVE, f"the block that is held: {kept}")


def limits():
    """Calls before and after, and the file is filled."""
    expected = calls_of_all(ROUNDS * 4)
    for limit in LIMITS:
        said = record("limit.xht", "--max-file", limit, rounds=ROUNDS * 4)
        check_filled("limit.xht", limit)
        after = check("limit.xht", expected, "greatest size", said)
        check_kept("limit.xht")
        # Of each process: the end may come before the child is forked, or while it runs.
        recorded = {row["id"]: row["events"] for row in info("limit.xht")["processes"]}
        expect(recorded.get(1, 0) + after[1] == 2 * ROUNDS * 4, f"{recorded}, {after} later: the child made {2 * ROUNDS * 4} calls")


def check_filled(trace, limit):
    size = pathlib.Path(trace).stat().st_size
    expect(limit - max(4 * KIB, limit // 50) <= size <= limit, f"{trace}: {size} bytes of {limit}")


def dense():
    """Calls that take 16 bytes each, up to 64 MiB, in a file of its own and in one that is gone on with."""
    xheap("record", "-o", "dense.xht", "--", DENSE, 0)
    others = info("dense.xht")["event_count"]
    for limit in DENSE_LIMITS:
        # Of what is there already the limit has less left.
        for mode, before in ("sequential", 0), ("append", 2000 + others):
            rounds = limit // 12
            if before:
                xheap("record", "-o", "dense.xht", "--", DENSE, 2000)
            said = xheap("record", "-o", "dense.xht", "--file-mode", mode, "--max-file", limit, "--", DENSE, rounds)
            check_filled("dense.xht", limit)
            facts = info("dense.xht")
            (end,) = facts["ended_early"]
            made = before + others + rounds // 4 * 4
            expect(facts["event_count"] + end["calls_after"] == made, f"{mode}, {limit}: {facts['event_count']} + {end['calls_after']} calls, not {made}")
            expect(facts["lost_events"] == 0 and not facts["complete"] and "greatest size" in end["reason"], f"{mode}, {limit}: {facts['lost_events']} lost, {end}")
            expect(said.count("greatest size") == 1 and said.count("recording ended") == 1, said)


def processes():
    """One that is executed later counts as a process of its own, and so does the child that it forks."""
    expected = calls_of_all(ROUNDS, ["exec"])
    after = check("limit.xht", expected, "greatest size", record("limit.xht", "--max-file", "64K", words=["exec"]))
    expect(len(after) == 4 and after[1] == 2 * ROUNDS and after[3] == 2 * ROUNDS and after[2] >= 8 * ROUNDS, f"{after}")


def full_disk():
    disk = pathlib.Path("disk")
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk], stderr=subprocess.DEVNULL).returncode:
        return "not tried: no file system may be mounted here"
    try:
        check("disk/full.xht", calls_of_all(ROUNDS * 4), "No space left on device", record("disk/full.xht", rounds=ROUNDS * 4))
    finally:
        subprocess.run(["umount", disk], check=True)
    return None


def session():
    """One that goes on when its file is full tells so, and counts."""
    name = "endsearly"
    xheap("start", name, "-o", "session.xht", "--max-file", "64K")
    xheap("launch", name, "--", PROGRAM, ROUNDS * 4)
    state = told("query", name)
    expect(state["calls_after_end"] > 0 and state["lost_events"] == 0, f"{state}")
    expect("recording has ended" in xheap("query", name), "a session that records no more does not tell")
    xheap("stop", name, status=None)
    (end,) = info("session.xht")["ended_early"]
    expect(end["calls_after"] == state["calls_after_end"], f"{end} {state}")


def killed():
    """The logger is killed when recording has ended: when the program has made all of its calls, and in the midst of them. Whoever recovers the trace says
    the same that the logger would have."""
    expected, name = calls_of_all(ROUNDS * 4), "endskilled"
    for is_early in (False, True):
        xheap("start", name, "-o", "killed.xht", "--max-file", "64K")
        with subprocess.Popen([XHEAP, "launch", name, "--", PROGRAM, str(ROUNDS * 4)]) as program:
            if not is_early:
                program.wait()
            state = wait_for("calls after the end", lambda: (state := told("query", name)).get("calls_after_end") and state)
            kill(state["logger_pid"])
        said = xheap("recover", "killed.xht")
        expect("events are lost" not in said, said)
        after = check("killed.xht", expected, "greatest size", said)
        expect(is_early or sum(after.values()) == state["calls_after_end"], f"{after} {state}")
        expect(pathlib.Path("killed.xht").stat().st_size <= 64 * KIB, "what was recovered is larger than the file may be")


if __name__ == "__main__":
    raise SystemExit(run_tests(limits, dense, processes, full_disk, session, killed))
