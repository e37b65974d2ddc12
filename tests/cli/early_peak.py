#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a terminal, report shows the peak of a large trace while it surveys all blocks, in one line that goes when the report comes; elsewhere only the report is there."""
import os
import pty
import subprocess
import sys

XHEAP = os.environ["XHEAP"]
MAKING = "for _ in range(2): kept = [str(number) for number in range(%d)]"


def record(name, count):
    subprocess.run([XHEAP, "record", "--index", "never", "-q", "-o", name, "/usr/bin/python3", "-c", MAKING % count], env=dict(os.environ, PYTHONMALLOC="malloc"), check=True)


def on_terminal(*words):
    pid, terminal = pty.fork()
    if not pid:
        os.execve(XHEAP, [XHEAP, *words], dict(os.environ, PAGER="cat", TERM="dumb"))
    said = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        said += part
    os.waitpid(pid, 0)
    return said.decode()


def main():
    record("large.xht", 350000)
    record("small.xht", 1000)
    subprocess.run([XHEAP, "heap", "large.xht", "-totals"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    said = on_terminal("report", "large.xht")
    before, cleared, after = said.partition("\r\033[K")
    if not cleared or not before.startswith("\rpeak: ") or "\n" in before or "Peak: " not in after:
        sys.exit(f"no line with the peak before the report: {said[:500]!r}")
    for words in (("report", "small.xht"), ("report", "large.xht", "-format", "json")):
        said = on_terminal(*words)
        if "\rpeak: " in said:
            sys.exit(f"{words}: {said[:500]!r}")
    run = subprocess.run([XHEAP, "report", "large.xht"], capture_output=True, text=True, check=True)
    if "\rpeak: " in run.stdout + run.stderr or "Peak: " not in run.stdout:
        sys.exit(f"not on a terminal: {run.stderr} {run.stdout[:300]}")


main()
