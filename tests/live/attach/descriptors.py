#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that looks for descriptors all the time, by several threads and by children of its own, sees none of ours however often it is attached to and
detached from: the region's file is open in it only while all its threads stand.

own       the program opens the region's file itself
other     it may not, since it is another user's: then the descriptor is handed over, by a pair of sockets
"""
import os
import pwd
import shutil
import subprocess

from live import LONG_SECONDS, PROGRAMS, attach, expect, info, is_whole, run_tests, stop_session, told, wait_for, xheap

NAME, ROUNDS = f"descriptors{os.getpid()}", 100


def rounds(**more):
    # Other users may not reach the checkout.
    shutil.copy(f"{PROGRAMS}/listing", "listing")
    program = subprocess.Popen(["./listing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, close_fds=True, **more)
    try:
        wait_for("a program", lambda: len(os.listdir(f"/proc/{program.pid}/task")) >= 5)
        xheap("start", NAME, "-o", "listing.xht", "-p", "0")
        for _ in range(ROUNDS):
            attach("update", NAME, "--add-pid", program.pid)
            attach("update", NAME, "--remove-pid", program.pid)
        logger = told("query", NAME)["logger_pid"]
        held = len(os.listdir(f"/proc/{logger}/fd"))
        xheap("stop", NAME)
        said, _ = program.communicate(timeout=LONG_SECONDS)
    finally:
        program.kill()
        program.wait()
        stop_session(NAME)
    expect(program.returncode == 0, f"status {program.returncode}")
    *looks, seen = said.strip().split(" ", 4)
    expect(seen == "-", f"a descriptor was seen: {seen}")
    expect(all(int(count) > 10 for count in looks), f"it has hardly looked: {looks}")
    expect(is_whole(info("listing.xht")), "the trace is not whole")
    expect(held < 40, f"the logger has {held} descriptors after {ROUNDS} rounds")
    return "looked {} times, probed {}, forked {}, executed {}".format(*looks)


def own():
    return rounds()


def other():
    if os.geteuid() != 0:
        return "not root: there is no other user to be"
    nobody = pwd.getpwnam("nobody")
    return rounds(user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])


if __name__ == "__main__":
    raise SystemExit(run_tests(own, other))
