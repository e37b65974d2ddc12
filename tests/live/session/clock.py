#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The clocks of a session: times must be those of the wall, also of a recording shorter than the rate takes to measure; one that is not to be
trusted is not taken."""
import json
import os
import subprocess
import sys
import time

XHEAP = os.environ["XHEAP"]
TRACE = os.path.abspath("clock.xht")
NAMES = {"monotonic": "monotonic_raw", "tsc": "tsc", "auto": None}
CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def dump(what):
    done = subprocess.run([XHEAP, "dump", TRACE, what, "--format", "json"], stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(clock, seconds):
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    begin = time.monotonic()
    subprocess.run([XHEAP, "record", "-q", "--clock", clock, "-o", TRACE, "--", "sh", "-c", f"sleep {seconds}; :"], check=True, stdin=subprocess.DEVNULL)
    wall = time.monotonic() - begin
    facts = json.loads(subprocess.run([XHEAP, "info", TRACE, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
    if NAMES[clock] and facts["clock"] != NAMES[clock]:
        return f"the clock is {facts['clock']}"
    processes, events = dump("--processes"), dump("--events")
    for row in processes:
        if not 0 <= row["start_ns"] <= row["end_ns"] <= wall * 1e9:
            return f"a process out of time: {row}, {wall} s"
    sleep = [row for row in processes if os.path.basename(row["image"]).startswith("sleep")]
    lived = (sleep[0]["end_ns"] - sleep[0]["start_ns"]) / 1e9 if sleep else 0
    if not seconds <= lived <= wall:
        return f"sleep {seconds} took {lived} s of {wall} s"
    return "no events" if not events else None


def elsewhere(*words):
    """As where the kernel goes by another clock."""
    with open("current", "w") as file:
        file.write("hpet\n")
    script = f'mount --bind current {CURRENT} && exec "$@"'
    return subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", XHEAP, "record", "-o", TRACE, *words, "--", "true"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


def check_trust():
    if not os.path.exists(CURRENT) or os.geteuid() != 0:
        return
    refused = elsewhere("--clock", "tsc")
    if refused.returncode != 2 or "hpet" not in refused.stderr:
        yield f"a counter that the kernel does not trust: status {refused.returncode}, {refused.stderr}"
    taken = elsewhere("--clock", "auto")
    facts = json.loads(subprocess.run([XHEAP, "info", TRACE, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
    if taken.returncode or facts["clock"] != "monotonic_raw":
        yield f"where the counter is not trusted the clock is {facts['clock']}, status {taken.returncode}"


# prctl(PR_SET_TSC, PR_TSC_SIGSEGV), then many blocks; it ends at once, as an interpreter may read the clock at its end.
FORBIDDEN = """
import ctypes, os
c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
c.free.argtypes = [ctypes.c_void_p]
assert c.prctl(26, 2, 0, 0, 0) == 0
for i in range(5000):
    c.free(c.malloc(7777))
os._exit(7)
"""


def check_forbidden(clock):
    """A program that may not read the counter any more."""
    done = subprocess.run([XHEAP, "record", "-q", "--clock", clock, "-o", TRACE, "--", "/usr/bin/python3", "-S", "-c", FORBIDDEN],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 7:
        return f"status {done.returncode}, {done.stderr}"
    sizes = [row["size"] for row in dump("--events") if row["action"] == "Alloc"]
    return f"{sizes.count(7777)} of 5000 blocks" if sizes.count(7777) != 5000 else None


def main():
    failed = 0
    wrong = subprocess.run([XHEAP, "record", "--clock", "sundial", "true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for why in [*check_trust(), *([] if wrong.returncode == 2 else [f"--clock sundial: status {wrong.returncode}"])]:
        failed += 1
        print(why)
    can_tsc = subprocess.run([XHEAP, "record", "-q", "--clock", "tsc", "-o", TRACE, "true"], stderr=subprocess.DEVNULL).returncode == 0
    for clock in NAMES if can_tsc else [name for name in NAMES if name != "tsc"]:
        why = check_forbidden(clock)
        if why:
            failed += 1
            print(f"--clock {clock}, the counter forbidden: {why}")
        for seconds in (0.001, 0.3):
            why = check(clock, seconds)
            if why:
                failed += 1
                print(f"--clock {clock}, sleep {seconds}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
