#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Power cuts at random moments of a boot with a session (machine.py): the machine always boots again, from the disk as it was at the cut. What was flushed
before the cut is in the recovered trace, block by block; the rest is counted. Pages that never reached the disk (zeros, or a shorter file) are tried, too.

usage: power_cuts.py        ROUNDS=N, SEED=N; SOAK=1: 200 rounds in place of 20
"""
import os
import random
import shutil
import subprocess
import sys
import time

from live import SOAK, XHEAP, expect, is_whole, run_tests, told, wait_for
from boot.machine import END, GUID, Machine, blocks_of, why_not

ROUNDS = int(os.environ.get("ROUNDS", 200 if SOAK else 20))
SEED = int(os.environ.get("SEED", time.time_ns() % 1000000))
GENERATIONS, SERVED, BLOCKS = 3, 6, 1500
FILES = {"autologger.d/boot.conf": f"[autologger]\nGuid = {GUID}\nStart = 1\nFileName = /mnt/boot.xht\nMaxFileSize = 0\nFileMax = {GENERATIONS}\n",
         "image.d/served.conf": "[image]\nImage = served\nSession = boot\n", "image.d/serving.conf": "[image]\nImage = serving\nSession = boot\n"}
PROGRAMS = ("served", "serving")
# Keeps its blocks in a buffer that is not full.
SERVICE = (f"[Service]\nType=notify\nStandardOutput=null\nExecStart=/usr/local/bin/tests/live/serving {BLOCKS}\n"
           f"ExecStartPost=/bin/sh -c 'echo $MAINPID {BLOCKS} >> /mnt/log/served'\n")
# The end of a program flushes its session's buffers; the last program's are in memory only. Each second program is followed by a line of /mnt/flushed, when all before it has been flushed.
LOAD = (f"systemctl start serving.service; for n in $(seq {SERVED}); do /usr/local/bin/tests/live/served {BLOCKS} >> /mnt/log/served; lines=$(wc -l < /mnt/log/served); "
        "[ $((n % 2)) = 1 ] || { xheap flush boot && echo $lines >> /mnt/flushed; }; done; "
        "systemctl restart serving.service; sleep 0.1; xheap image list > /mnt/images 2>&1\n")


def traces(machine):
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in machine.out.glob("boot.xht.*")}


def begin(machine):
    """Forget the oracle of the last start. The traces as they are before this one."""
    for name in ("log/served", "flushed", "said"):
        (machine.out / name).write_text("")
    before = traces(machine)
    machine.begin(LOAD + END)
    return before


def new_trace(machine, before):
    new = [path for path, state in traces(machine).items() if before.get(path) != state]
    expect(len(new) <= 1 and len(traces(machine)) <= GENERATIONS, f"{new} are new, of {sorted(traces(machine))}")
    return new[0] if new else None


def recover(trace, out):
    """Recover it into another file, unless its session has ended it. The number of its events; None if it has no whole beginning."""
    run = subprocess.run([XHEAP, "recover", "-o", out, trace], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if "is whole" in run.stdout:
        shutil.copy(trace, out)
    else:
        expect(run.returncode in (0, 2) and run.stdout.strip(), f"status {run.returncode}: {run.stdout}")
    return told("info", out)["event_count"] if out.exists() else None


def damaged(trace, chance, folder):
    """The number of recovered events of a copy whose last pages did not reach the disk."""
    copy, out = folder / "copy.xht", folder / "copy.out.xht"
    data = bytearray(trace.read_bytes())
    at = chance.randrange(len(data) + 1)
    data[at:] = b"" if chance.random() < 0.5 else bytes(len(data) - at)
    copy.write_bytes(data)
    out.unlink(missing_ok=True)
    return recover(copy, out)


def judge(machine, before, chance):
    """(blocks that were made, those that are in no trace)."""
    oracle = machine.oracle("served")
    flushed = int(((machine.out / "flushed").read_text().split() or [0])[-1])
    made, trace = sum(blocks for _, blocks in oracle), new_trace(machine, before)
    if not trace:
        expect(not flushed, f"{flushed} programs were flushed, and there is no trace")
        return made, made
    recovered = machine.base / "recovered.xht"
    recovered.unlink(missing_ok=True)
    if recover(trace, recovered) is None:
        expect(not flushed, f"{flushed} programs were flushed, and there is nothing to recover")
        return made, made
    facts, found = told("info", recovered), blocks_of(recovered, *PROGRAMS)
    expect(is_whole(facts), facts)
    for number, (pid, blocks) in enumerate(oracle):
        expect(found.get(pid, 0) == blocks if number < flushed else found.get(pid, 0) <= blocks, f"{number} of {flushed} flushed: {found.get(pid, 0)} of {blocks} blocks")
    lost = made - sum(found.get(pid, 0) for pid, _ in oracle)
    expect(not lost or not facts["complete"], f"{lost} blocks are lost, and the trace is complete")
    less = damaged(trace, chance, machine.base)
    expect(less is None or less <= facts["event_count"], f"{less} events of {facts['event_count']}")
    return made, lost


def wait_for_moment(machine, chance, seconds):
    """Any moment of the boot, or the one after a program has run."""
    if chance.random() < 0.5:
        time.sleep(chance.random() * seconds)
        return
    lines = chance.randrange(1, SERVED + 3)
    wait_for(f"program {lines}", lambda: len(machine.oracle("served")) >= lines, pause=0.001)


def cuts():
    chance, machine = random.Random(SEED), Machine("cuts", {"serving.service": SERVICE}, etc=FILES)
    before, (seconds, _) = begin(machine), machine.end()
    made = lost = without = 0
    for number in range(ROUNDS):
        before = begin(machine)
        wait_for_moment(machine, chance, seconds)
        machine.cut()
        try:
            results = judge(machine, before, chance)
            made, lost, without = made + results[0], lost + results[1], without + (new_trace(machine, before) is None)
            before = begin(machine)
            seconds, _ = machine.end()
            trace = new_trace(machine, before)
            expect(trace and is_whole(told("info", trace)), f"{trace}: {machine.said()}")
            found, oracle = blocks_of(trace, *PROGRAMS), dict(machine.oracle("served"))
            expect(found == oracle, f"{found}, not {oracle}: {(machine.out / 'images').read_text()}")
        except Exception as failure:
            raise type(failure)(f"round {number}, SEED={SEED}: {failure}") from None
    return f"{ROUNDS} cuts, {without} before the trace began; of {made} blocks made until then {lost} were lost; seed {SEED}"


reason = why_not()
if reason:
    print(reason)
    sys.exit(77)
sys.exit(run_tests(cuts))
