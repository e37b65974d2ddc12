#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`xheap recover -o OUT` leaves what it reads as it is, and OUT is there whole or not at all. So it can be done again, after it has failed too: the
shared memory has what it had."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

XHEAP = os.environ["XHEAP"]
WAIT_SECONDS = 100
ULIMIT_BYTES, MOST_LIMIT = 512, 20000


def expect(condition, what):
    if not condition:
        sys.exit(what)


def xheap(*words, limit=None):
    command = [XHEAP, *words] if limit is None else ["sh", "-c", f"ulimit -f {limit}; trap '' XFSZ; exec \"$@\"", "sh", XHEAP, *words]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=WAIT_SECONDS)


def wait_until(what, condition):
    until = time.monotonic() + WAIT_SECONDS
    while not condition():
        expect(time.monotonic() < until, f"not after {WAIT_SECONDS} s: {what}")
        time.sleep(0.01)


def regions_read():
    return {path.name: path.read_bytes() for path in pathlib.Path(os.environ["XHEAP_RUNTIME_DIR"]).glob("*/*/region.*")}


def events(trace):
    run = xheap("dump", trace, "-events", "-format", "csv")
    expect(run.returncode == 0, f"dump {trace}: {run.stdout}")
    return run.stdout.splitlines()


def logger_of(recorder):
    """The child that is no command."""
    for pid in pathlib.Path(f"/proc/{recorder}/task/{recorder}/children").read_text().split():
        if os.path.samefile(f"/proc/{pid}/exe", XHEAP):
            return int(pid)
    return None


def main():
    program = "import pathlib, sys; x = [str(i) * 9 for i in range(20000)]; pathlib.Path('ready').touch(); sys.stdin.read()"
    recorder = subprocess.Popen([XHEAP, "record", "-q", "-o", "r.xht", "--", sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                env=dict(os.environ, PYTHONMALLOC="malloc"))
    wait_until("the program", lambda: os.path.exists("ready"))
    logger = logger_of(recorder.pid)
    expect(logger, "no logger")
    os.kill(logger, signal.SIGKILL)
    recorder.stdin.close()
    recorder.wait()
    left = pathlib.Path("r.xht").read_bytes()
    os.link("r.xht", "other-name.xht")
    os.mkfifo("pipe.xht")
    pathlib.Path("out.xht").write_text("before")
    for name, reason in (("r.xht", "one of the files that are read"), ("other-name.xht", "one of the files that are read"), ("pipe.xht", "is no file")):
        run = xheap("recover", "-o", name, "r.xht")
        expect(run.returncode == 2 and reason in run.stdout, f"-o {name}: {run.returncode}: {run.stdout}")
    run = xheap("recover", "-o", "out.xht", "r.xht", limit=1)
    expect(run.returncode == 2 and pathlib.Path("out.xht").read_text() == "before", f"a full disk: {run.returncode}: {run.stdout}")
    expect(pathlib.Path("r.xht").read_bytes() == left, "the trace has changed")
    # Where all of the old trace finds room, and then some of what is in memory, and then all.
    regions, failed = regions_read(), 0
    first = len(left) // ULIMIT_BYTES
    for limit in range(first, MOST_LIMIT, first // 20 + 1):
        run = xheap("recover", "--keep", "-o", "kept.xht", "r.xht", limit=limit)
        expect(regions_read() == regions, f"the shared memory was changed by a recovery into {limit} blocks")
        if run.returncode == 0:
            break
        failed += 1
    expect(run.returncode == 0 and failed, f"{failed} failures, then: {run.stdout}")
    run = xheap("recover", "--keep", "-o", "out.xht", "r.xht")
    expect(run.returncode == 0 and "out.xht: " in run.stdout, f"recover: {run.returncode}: {run.stdout}")
    expect(pathlib.Path("r.xht").read_bytes() == left, "the trace has changed")
    expect(events("out.xht") == events("kept.xht"), "the second time there is something else")
    info = json.loads(xheap("info", "out.xht", "-format", "json").stdout)
    expect(info["events"]["alloc"] > 20000, f"{info['events']}")
    # In place: it goes on where it has failed.
    for limit in (first + 1, (first + os.path.getsize("out.xht") // ULIMIT_BYTES) // 2):
        run = xheap("recover", "r.xht", limit=limit)
        expect(run.returncode == 2, f"in place, with {limit} blocks: {run.stdout}")
    run = xheap("recover", "r.xht")
    expect(run.returncode == 0 and events("r.xht") == events("out.xht"), f"in place: {run.stdout}")
    # Nobody makes room for the calls of a process that goes on without its logger: some may be lost, the same in both.
    lost = info["lost_events"]
    info = json.loads(xheap("info", "r.xht", "-format", "json").stdout)
    expect("ended_early" not in info and info["lost_events"] == lost, f"in place: {lost} lost before, now {info}")
    names = [name for name in os.listdir(".") if name.endswith(".new")]
    expect(not names, f"left behind: {names}")


main()
