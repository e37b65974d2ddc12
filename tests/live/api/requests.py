#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What programs tell Valgrind of their pools: programs/requests.c, compiled as users would, which counts what it tells and watches every register."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from live import LONG_SECONDS, attach

XHEAP, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["SOURCE"])
NUMBERS = ("total_count", "total_bytes", "outstanding_count", "outstanding_bytes")
WAYS = {"plain": ["cc", "-O2"], "slow": ["cc", "-O0", "-g"], "static": ["cc", "-O2", "-static"], "lto": ["cc", "-O3", "-flto"], "clang": ["clang", "-O2"],
        "clang-slow": ["clang", "-O0"]}
complaints = []


def expect(what, found, wanted):
    if found != wanted:
        complaints.append(f"{what}: {found}, expected {wanted}")


def run(*words, status=0):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONG_SECONDS)
    if done.returncode != status:
        raise SystemExit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def told(output):
    """The program's own count: of pools, of carved blocks, and its creations and destructions."""
    lines = dict(line.split(" ", 1) for line in output.splitlines() if line.split(" ")[0] in ("pools", "carved", "heaps"))
    return [tuple(map(int, lines[name].split())) for name in ("pools", "carved", "heaps")]


def seen(trace):
    report = json.loads(run(XHEAP, "heap", trace, "-heaps", "-format", "json"))
    rows = [row for row in report["actions"][0]["rows"] if row["name"].endswith("annotated")]
    for doubt in ("lost_events", "unknown_frees", "order_conflicts"):
        expect(f"{trace}: {doubt}", report[doubt], 0)
    kinds = json.loads(run(XHEAP, "info", trace, "-format", "json"))["events"]
    sums = [tuple(sum(row[number] for row in rows if (row["heap"] == "0x1") == is_carved) for number in NUMBERS) for is_carved in (False, True)]
    return [*sums, (kinds.get("create", 0), kinds.get("destroy", 0))]


def check_recorded(name):
    trace = f"{name}.xht"
    counted = told(run(XHEAP, "record", "-o", trace, "--", f"./{name}", "3", "200"))
    expect(f"{name}: what was recorded", seen(trace), counted)
    if name != "plain":
        return
    stacks = json.loads(run(XHEAP, "heap", trace, "-stacks", "-innermost", "-format", "json"))["actions"][0]["rows"]
    callers = {tuple(frame["symbol"] for frame in row["stack"] if frame.get("symbol")) for row in stacks}
    for symbol in ("pool_alloc", "leaf_change", "watched_request"):
        expect(f"{symbol} and its callers", [True for stack in callers if symbol in stack and "work" in stack][:1], [True])
    inside = [row for row in json.loads(run(XHEAP, "heap", trace, "-heaps", "-format", "json"))["actions"][0]["rows"] if row["name"].endswith("annotated")]
    expect("pools lie in malloc's blocks", all("inside" in row for row in inside), True)
    said = run(XHEAP, "record", "--check-stacks", "-o", "checked.xht", "--", "./plain", "2", "100")
    expect("stacks", "0 remembered stacks differed" in said, True)
    run(XHEAP, "record", "--sample", "1K", "-o", "sample.xht", "--", "./plain", "2", "500")
    report = json.loads(run(XHEAP, "heap", "sample.xht", "-heaps", "-format", "json"))
    expect("a sample's doubts", (report["unknown_frees"], report["order_conflicts"], report["annotated_blocks"] > 1000), (0, 0, True))


def check_attached():
    """Recorded from one line of input to the next; then threads that tell all the time, attached to and let go of again and again."""
    program = subprocess.Popen(["./plain", "2", "300", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def once():
        program.stdin.write("\n")
        program.stdin.flush()
        return told("".join(program.stdout.readline() for _ in range(3)))
    once()
    name = f"requests{os.getpid()}"
    run(XHEAP, "start", name, "-o", "attached.xht", "-p", program.pid)
    counted = once()
    run(XHEAP, "update", name, "--remove-pid", program.pid)
    once()
    run(XHEAP, "stop", name)
    expect("what was recorded while it was attached to", seen("attached.xht"), counted)
    program.communicate(timeout=LONG_SECONDS)
    expect("its end", program.returncode, 0)

    busy = subprocess.Popen(["./plain", "4", "100000000"], stdout=subprocess.DEVNULL)
    run(XHEAP, "start", name, "-o", "busy.xht", "--stackwalk", "none")
    for _ in range(20):
        attach("update", name, "--add-pid", busy.pid)
        time.sleep(0.02)
        run(XHEAP, "update", name, "--remove-pid", busy.pid)
    run(XHEAP, "stop", name)
    expect("it goes on", busy.poll(), None)
    busy.kill()
    busy.wait()


def check_valgrind():
    if not shutil.which("valgrind"):
        return
    counted = told(run("valgrind", "-q", "--error-exitcode=9", "./plain", "2", "5"))
    expect("under Valgrind", counted, told(run("./plain", "2", "5")))
    program = subprocess.Popen(["valgrind", "-q", "./plain", "1", "1", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    program.stdin.write("\n")
    program.stdin.flush()
    program.stdout.readline()
    said = run(XHEAP, "record", "-p", program.pid, "-o", "valgrind.xht", "--duration", "100ms", status=2)
    expect("who is run by Valgrind is refused", "Valgrind" in said, True)
    program.communicate("\n", timeout=LONG_SECONDS)
    expect("and goes on", program.returncode, 0)


def main():
    if not os.path.exists("/usr/include/valgrind/valgrind.h"):
        print("valgrind/valgrind.h is not there")
        return 77
    for name, compiler in WAYS.items():
        if not shutil.which(compiler[0]):
            continue
        run(*compiler, "-Wall", "-Werror", "-pthread", "-I", SOURCE / "tests/live/programs", SOURCE / "tests/live/programs/requests.c", "-o", name)
        check_recorded(name)
    check_attached()
    check_valgrind()
    print("\n".join(complaints))
    return len(complaints) > 0


if __name__ == "__main__":
    sys.exit(main())
