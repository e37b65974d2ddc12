# SPDX-License-Identifier: MIT
"""What live tests share: what is true or a Failure, waiting, asking xheap, a main that runs tests by name, and the program that counts."""
import csv
import functools
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.path.abspath(os.environ.get("BUILD", SOURCE / "build"))
XHEAP = os.environ.get("XHEAP", os.path.join(BUILD, "xheap"))
PROGRAMS = os.path.join(BUILD, "tests/live")
SOAK = bool(os.environ.get("SOAK"))
PATIENCE = 10                    # how many times longer things may take on a machine that is busy; the runner has limits in processor time
LONG_SECONDS = 200 * PATIENCE    # for what ends by itself
READ_CALL = "0"                  # as /proc has the numbers of system calls of x86-64
SMALLEST, SIZES = 1000, 60000    # programs/attached.c, count


class Failure(Exception):
    pass


def for_preload(name):
    """A library of the tests' as LD_PRELOAD takes it: a path without blanks and colons, which the checkout's may have. It is that of a link in the working directory."""
    link = os.path.abspath(name)
    if not os.path.islink(link):
        os.symlink(os.path.join(PROGRAMS, name), link)
    return link


def enter_mounts(mark, why_not):
    """Begin the program again in a mount namespace of its own, where the environment has `mark`; without the right to, say why and skip."""
    if os.environ.get(mark):
        return
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
        print(why_not)
        sys.exit(77)
    os.environ[mark] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def expect(condition, what):
    if not condition:
        raise Failure(what)


def wait_for(what, find, seconds=20, pause=0.02):
    """What find() finds, within so many seconds on a machine that does nothing else."""
    until = time.monotonic() + seconds * PATIENCE
    while time.monotonic() < until:
        found = find()
        if found:
            return found
        time.sleep(pause)
    raise Failure(f"no {what} after {seconds * PATIENCE} s")


def runs(pid):
    """Whether one of its threads does: the first one may end before others."""
    for task in glob.glob(f"/proc/{pid}/task/*/stat"):
        try:
            with open(task) as file:
                if file.read().rpartition(")")[2].split()[0] not in "ZX":
                    return True
        except OSError:
            pass
    return False


def kill(pid):
    """End it, and wait until it has ended: on a busy machine that takes a while."""
    os.kill(pid, signal.SIGKILL)
    wait_for(f"end of process {pid}", lambda: not runs(pid))


def regions(pid):
    """Rows of the process's mappings of regions. What paths hold besides, such as the name of a checkout, says nothing."""
    with open(f"/proc/{pid}/maps") as file:
        rows = [line.rstrip("\n").split(maxsplit=5) for line in file]
    return [row for row in rows if len(row) > 5 and os.path.basename(row[5]).startswith("region.")]


def is_reading(pid):
    """Whether a thread of the process waits for its standard input."""
    for task in glob.glob(f"/proc/{pid}/task/*/syscall"):
        try:
            call = open(task).read().split()
        except OSError:
            continue
        # All zeros are what an exec leaves.
        if call[:2] == [READ_CALL, "0x0"] and call[2] != "0x0":
            return True
    return False


def wait_until_begun(process):
    """Until the process waits for its standard input. Programs of these tests do that when all of their threads run."""
    def has_begun():
        expect(process.poll() is None, f"{process.args}: it has ended with status {process.returncode}")
        return is_reading(process.pid)
    wait_for(f"{process.args} that waits for its input", has_begun)


def processor_ticks(pid):
    """Processor time of the process so far."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def xheap(*words, status=0, **more):
    """What it prints, on both."""
    run = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS, **more)
    expect(status is None or run.returncode == status, f"{words}: status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def attach(*words):
    """As xheap(). Where a thread gets no processor for a second, it does not stop in time: that is tried again."""
    for _ in range(PATIENCE):
        run = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
        said = run.stdout + run.stderr
        if "did not stop within" not in said:
            break
    expect(run.returncode == 0 and "did not stop within" not in said, f"{words}: status {run.returncode}: {said}")
    return said


def told(*words):
    """Its answer in JSON."""
    run = subprocess.run([XHEAP, *map(str, words), "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
    expect(run.returncode == 0, f"{words}: status {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


def info(trace):
    return told("info", trace)


def same_index(kept, made):
    """Whether an index is another one with answers that it keeps: they lie behind its arrays, and the end of its head says where."""
    answers = 4 * 32 + 8  # HEAP_ANSWER_COUNT of struct heap_index_kept, and the checksum
    with open(kept, "rb") as one, open(made, "rb") as other:
        one, other = one.read(), other.read()
    head = int.from_bytes(other[8:12], "little") - answers
    return one[:head] == other[:head] and one[4096:len(other)] == other[4096:]


def is_whole(facts):
    """Whether the file has its end and can be read up to there; a complete trace is whole, and no call is missing in it."""
    expect(not facts["complete"] or "cut_offset" not in facts, f"complete, but cut: {facts}")
    return "cut_offset" not in facts


def dump(trace, what="-events", *words):
    run = subprocess.run([XHEAP, "dump", *map(str, (trace, what, *words)), "-format", "csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 0, f"dump {trace}: status {run.returncode}: {run.stderr}")
    return list(csv.DictReader(run.stdout.splitlines()))


def dump_each(trace):
    """The events one by one: of many not all fit into memory."""
    with subprocess.Popen([XHEAP, "dump", trace, "-events", "-format", "csv"], stdout=subprocess.PIPE, text=True) as run:
        yield from csv.DictReader(run.stdout)
    expect(run.returncode == 0, f"dump {trace}: status {run.returncode}")


def stop_session(name):
    """Should it be there: what a test that failed has left, too."""
    subprocess.run([XHEAP, "stop", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LONG_SECONDS)


def loader_of(program):
    """The path of the loader that the program names."""
    said = subprocess.run(["readelf", "-lW", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return said.partition("program interpreter: ")[2].partition("]")[0]


def strace_is_here():
    """Whether this may trace with it: not where another tracer, or a policy, forbids that."""
    return bool(shutil.which("strace")) and subprocess.run(["strace", "-o", "strace.out", "true"], stderr=subprocess.DEVNULL).returncode == 0


def check_counting(trace):
    """Each thread's sizes follow each other, and each block is given back before the next one. How many calls, of how many threads."""
    last, live, calls = {}, {}, 0
    for row in dump_each(trace):
        thread = row["process"], row["tid"]
        if row["action"] == "Earlier":
            continue
        if row["action"] == "Free":
            expect(thread not in live or live[thread] == row["address"], f"{thread} freed {row['address']}, not {live.get(thread)}")
            live.pop(thread, None)
            continue
        size = int(row["size"])
        if not SMALLEST <= size < SMALLEST + SIZES:
            continue
        expect(thread not in last or size == SMALLEST + (last[thread] - SMALLEST + 1) % SIZES, f"{thread}: {size} bytes follow {last.get(thread)}")
        expect(thread not in live, f"{thread}: a free is missing before {size} bytes")
        last[thread], live[thread] = size, row["address"]
        calls += 1
    return calls, len(last)


def followed_by(after):
    """Of a test: after() is called behind it, whatever becomes of it."""
    def wrap(test):
        @functools.wraps(test)
        def wrapped():
            try:
                return test()
            finally:
                after()
        return wrapped
    return wrap


def run_tests(*tests):
    """Those that are named on the command line, or all. The exit status."""
    failed = 0
    for name in set(sys.argv[1:]) - {test.__name__ for test in tests}:
        print(f"{name}: there is no such function")
        return 2
    for test in tests:
        if len(sys.argv) > 1 and test.__name__ not in sys.argv[1:]:
            continue
        began = time.monotonic()
        try:
            said = test()
            print(f"{test.__name__}: {said or 'as it should be'}, {time.monotonic() - began:.1f} s", flush=True)
        except (Failure, subprocess.SubprocessError, OSError) as failure:
            print(f"{test.__name__}: FAILED: {failure}", flush=True)
            failed += 1
    return failed > 0
