#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""As many processes as one start takes come at once, and one more is refused by a message that names the limit."""
import subprocess

from live import expect, run_tests, stop_session, told, xheap

MOST, NAME = 256, "crowdstart"


def run_sleepers(count):
    return [subprocess.Popen(["sleep", "1000000"]) for _ in range(count)]


def most_at_once():
    sleepers = run_sleepers(MOST)
    try:
        xheap("start", NAME, "-o", "crowd.xht", "-p", ",".join(str(sleeper.pid) for sleeper in sleepers))
        expect(len(told("query", NAME)["targets"]) == MOST, "not all that were named are targets")
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
        stop_session(NAME)


def too_many():
    said = xheap("start", NAME, "-o", "crowd.xht", "-p", ",".join(str(1 << 21 | number) for number in range(MOST + 1)), status=2)
    expect(f"more than {MOST}" in said and len(said) < 200, said[:300])


if __name__ == "__main__":
    raise SystemExit(run_tests(most_at_once, too_many))
