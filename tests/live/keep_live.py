#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Long runs: what is folded against the same recording that is not, and against programs that leak what is known without xheap.

`leaking` forgets blocks by one of three functions: block n of thread t has 100,000 + 16 n + t bytes, and the function n mod 3 forgets it."""
import collections
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

XHEAP, BUILD, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["BUILD"]), pathlib.Path(os.environ["SOURCE"])
IS_SOAK = bool(os.environ.get("SOAK"))
LEAKING = BUILD / "tests/live/leaking"
LEAK_FIRST, LEAK_STEP, THREADS = 100000, 16, 3
FORGETS = ["forget_first", "forget_second", "forget_third"]
MIB = 1 << 20
failed = 0


def complain(text):
    global failed
    print(text)
    failed += 1


def expect(condition, text):
    if not condition:
        complain(text)


def xheap(*words, status=0):
    run = subprocess.run([XHEAP, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200)
    if run.returncode != status:
        complain(f"{words}: status {run.returncode}, not {status}: {run.stdout[-500:]}{run.stderr[-500:]}")
    return run.stdout, run.stderr


def read(*words):
    return json.loads(xheap(*words)[0])


def heap(trace, *words):
    return read("heap", trace, *words, "-format", "json")


def totals(trace):
    return heap(trace, "-totals")["totals"]


# ---- folded by hand: everything is the same ----

QUESTIONS = [["-stacks", "so", "-frames", "st", "-image", "st", "-tree", "so"], ["-stacks", "sp", "-frames", "spc"], ["-stacks", "stt", "-by", "thread"],
             ["-frames", "-inclusive", "-by", "process"], ["-callers", "leaking!touch", "src", "-by", "heap"]]
# The peak of a part in folded time is not known.
PARTS = [["-requireFrames", "leaking!forget_first"], ["-size", "100000", "10000000"], ["-closed"], ["-lifetime", "0", "100s"], ["-pids", "PID"]]


def without(answer, *keys):
    """What does not depend on where the file is, and which medians are only known by their class."""
    for key in ("trace", "folded", *keys):
        answer.pop(key, None)
    for action in answer["actions"]:
        for row in action["rows"]:
            row.get("lifetime_us", {}).pop("median", None)
            for frame in row.get("stack", []):
                # Of several places in a function that make one row, one is told.
                frame.pop("offset", None), frame.pop("line", None)
            if "peak" in keys:
                row.pop("peak_bytes", None), row.pop("peak_count", None)
            if "threads" in keys:
                row.pop("threads", None)
    if "peak" in keys:
        for key in ("peak_bytes", "peak_count", "peak_at_us", "peak_from_us"):
            answer["totals"].pop(key, None)
    return answer


def check_same(full, folded, questions, *keys):
    for words in questions:
        words = [str(read("info", full, "-format", "json")["processes"][0]["pid"]) if word == "PID" else word for word in words]
        one, other = without(heap(full, *words), *keys), without(heap(folded, *words), *keys)
        if one != other:
            complain(f"{folded}: {words}: {first_difference(one, other)}")


def first_difference(one, other, where=""):
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            if one.get(key) != other.get(key):
                return first_difference(one.get(key), other.get(key), f"{where}.{key}")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (left, right) in enumerate(zip(one, other)):
            if left != right:
                return first_difference(left, right, f"{where}[{i}]")
    return f"{where}: {str(one)[:300]} in the whole, {str(other)[:300]} in the folded"


def fold(full, shares):
    """The trace folded again and again, up to these shares of its time."""
    duration_ns = read("info", full, "-format", "json")["duration_us"] * 1000
    before = full
    for number, share in enumerate(shares):
        path = f"{full}.{number}"
        xheap("--fold", path, int(duration_ns * share), 1, before)
        before = path
        yield path


def check_folding():
    xheap("record", "-q", "-o", "whole.xht", LEAKING, 40000, THREADS, 0)
    for path in fold("whole.xht", (0.3, 0.31, 0.8, 2)):
        check_same("whole.xht", path, QUESTIONS)
        check_same("whole.xht", path, PARTS, "peak")
    last = heap(path, "-stacks")
    expect(last["folded"]["events"] > 30000 and not last["unknown_frees"] and not last["order_conflicts"], f"{path}: {last['folded']}")
    check_medians("whole.xht", path)
    check_refusals(path)
    subprocess.run(["cc", "-std=c11", "-O2", "-D_GNU_SOURCE", "-I", SOURCE / "include", SOURCE / "tests/live/programs/annotated.c", "-o", "annotated", "-pthread"], check=True)
    for program in ("forks server", "forks threads", "execs chain 40", "family glibc", "churn 4", "./annotated threads 8", "./annotated fork"):
        name = f"{pathlib.Path(program.split()[0]).name}.{program.split()[1]}.xht"
        subprocess.run([XHEAP, "record", "-q", "-o", name, *program.split()], stdout=subprocess.DEVNULL, timeout=100, check=True,
                       env={**os.environ, "PATH": f"{BUILD / 'tests/live'}:{os.environ['PATH']}"})
        expect(read("info", name, "-format", "json")["event_count"] > 5, f"{name} is no test")
        for path in fold(name, (0.4, 0.999)):
            check_same(name, path, [["-stacks", "so", "-frames", "sp"], ["-by", "process"]])


def check_crowded():
    """More threads times stacks than there may be sums: those of threads that have ended become sums of all of them."""
    xheap("record", "-q", "-o", "crowded.xht", BUILD / "tests/live/crowded", 1600, 250)
    thread = read("info", "crowded.xht", "-format", "json")["processes"][0]["pid"]
    for path in fold("crowded.xht", (0.95, 2)):
        folded = heap(path, "-totals")["folded"]
        expect(0 < folded["sums_of_several_threads"] <= folded["sums"] < 1 << 18, f"{path}: {folded}")
        check_same("crowded.xht", path, [["-stacks", "so", "-frames", "st"], ["-stacks", "sp"], ["-by", "process"], ["-by", "heap"]], "threads")
        check_same("crowded.xht", path, [["-pids", thread]], "threads", "peak")
        for words in (["-by", "thread"], ["-threads", thread]):
            error = xheap("heap", path, *words, status=2)[1]
            expect("many threads" in error and "-pids" in error, f"{path}: {words}: {error}")


def check_medians(full, folded):
    one, other = heap(full, "-stacks", "-by", "thread"), heap(folded, "-stacks", "-by", "thread")
    for whole, sums in zip(one["actions"][0]["rows"], other["actions"][0]["rows"]):
        exact, told = whole["lifetime_us"]["median"], sums["lifetime_us"]["median"]
        expect(abs(exact - told) <= exact / 15 + 0.02, f"a median lifetime of {exact} us is told as {told}")


REFUSED = [(["-by", "size"], "-by"), (["-by", "time"], "-by"), (["-chains"], "-chains"), (["-requireFreeFrames", "leaking!touch"], "-requireFreeFrames"),
           (["-size", "0", "1000"], "-size"), (["-lifetime", "0", "10us"], "-lifetime"), (["-range", "SOME", "MORE"], "-range"),
           (["-window", "AIFI", "SOME", "MORE"], "-window"), (["-stacks", "sp", "-closed"], "sp")]


def check_refusals(trace):
    duration_us = read("info", trace, "-format", "json")["duration_us"]
    for words, what in REFUSED:
        words = [{"SOME": str(duration_us / 3), "MORE": str(duration_us / 2)}.get(word, word) for word in words]
        said = xheap("heap", trace, *words, status=2)[1]
        expect(f"{trace}: {what}" in said and "folded" in said and said.count("\n") == 1, f"{words}: {said}")
    xheap("heap", trace, "-size", "0", "1G")
    _, said = xheap("dump", trace, "-allocations", "-format", "csv")
    expect("events are folded" in said, f"dump -allocations does not tell that some are folded: {said}")


# ---- recorded so ----

def leaks(trace):
    """By thread, the leaked blocks that are there: number, time, function, tid."""
    rows = csv.DictReader(xheap("dump", trace, "-allocations", "-size", LEAK_FIRST, 1 << 30, "-requireFrames", "leaking!work", "-format", "csv")[0].splitlines())
    found = collections.defaultdict(list)
    for row in rows:
        if row["end_kind"] in ("open", "exit"):
            number, thread = divmod(int(row["size"]) - LEAK_FIRST, LEAK_STEP)
            found[thread].append((number, float(row["birth_ns"]), row["stack_id"], row["tid"]))
    return found


def check_leaks(trace, count=None):
    """Every leaked block, of each thread in order, with time, thread and the function that forgot it."""
    found = leaks(trace)
    if count is not None:
        expect(sum(map(len, found.values())) == count, f"{trace}: {sum(map(len, found.values()))} leaked blocks, not {count}")
    functions = stack_functions(trace)
    for thread, blocks in found.items():
        blocks.sort()
        expect([number for number, *_ in blocks] == list(range(len(blocks))), f"{trace}: blocks of thread {thread} are missing")
        expect(all(one[1] < other[1] for one, other in zip(blocks, blocks[1:])), f"{trace}: thread {thread}: times are not in order")
        expect(len({tid for *_, tid in blocks}) == 1, f"{trace}: blocks of thread {thread} are told as of others")
        for number, _, stack, _ in blocks:
            if FORGETS[number % 3] not in functions.get(stack, ""):
                return complain(f"{trace}: block {number} of thread {thread}: stack {stack} is {functions.get(stack)}")
    return found


def stack_functions(trace):
    """Of each stack the function that called the allocator."""
    rows = csv.DictReader(xheap("dump", trace, "-stacks", "-format", "csv")[0].splitlines())
    return {row["stack_id"]: row["stack"].split(";")[0] for row in rows}


def leaked(output):
    return int(output.split()[1])


def record(trace, *words, limit=MIB):
    run = subprocess.run([XHEAP, "record", "-q", "-o", trace, "--keep", "live", "--max-file", str(limit), "--flush-timer", "100ms", str(LEAKING),
                          *map(str, words)], stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    return leaked(run.stdout)


def check_recording():
    words = (250000, THREADS, 300)
    count = record("kept.xht", *words)
    run = subprocess.run([XHEAP, "record", "-q", "-o", "all.xht", str(LEAKING), *map(str, words)], stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    expect(count == leaked(run.stdout), "leaking does not do the same twice")
    kept, whole = totals("kept.xht"), totals("all.xht")
    for key in ("total_count", "total_bytes", "outstanding_count", "outstanding_bytes", "realloc_count", "temporary_count", "open_count"):
        expect(kept[key] == whole[key], f"{key}: {kept[key]} with --keep live, {whole[key]} else")
    facts, other = read("info", "kept.xht", "-format", "json"), read("info", "all.xht", "-format", "json")
    expect(facts["events"] == other["events"] and facts["event_count"] == other["event_count"], f"events: {facts['events']}, {other['events']}")
    expect(facts.get("folded", {}).get("events", 0) > facts["event_count"] / 4, f"only this is folded: {facts.get('folded')}")
    expect(facts["complete"] and "dropped" not in facts and not facts["lost_events"], f"kept.xht: {facts.get('dropped')}, {facts['lost_events']} lost")
    # The window, once more while something is folded, and what was in buffers.
    expect(os.path.getsize("kept.xht") < 5 * MIB and not os.path.exists("kept.xht.pieces"), f"kept.xht has {os.path.getsize('kept.xht')} bytes, or its pieces are left")
    check_leaks("kept.xht", count)
    check_leaks("all.xht", count)


# ---- sessions ----

class Session:
    """A program that leaks until it is told to end, in a session of its own."""

    def __init__(self, name, *options, rounds=1 << 40, limit=MIB):
        self.name, self.trace = name, f"{name}.xht"
        xheap("start", name, "-o", self.trace, "--keep", "live", "--max-file", limit, "--flush-timer", "100ms", *options)
        self.process = subprocess.Popen([XHEAP, "launch", name, "--", str(LEAKING), str(rounds), str(THREADS), "200"], stdout=subprocess.PIPE, text=True)

    def state(self):
        return read("query", self.name, "--format", "json")

    def wait_until_folded(self, bytes_before=0):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            state = self.state()
            if state.get("folded_bytes", 0) and state.get("folded_until_us", 0) > bytes_before:
                return state
            time.sleep(0.1)
        complain(f"{self.name}: nothing is folded: {state}")
        return state

    def end(self):
        for target in self.state()["targets"]:
            os.kill(target["pid"], signal.SIGTERM)
        self.process.wait()


def check_session():
    session = Session("keeping")
    state = session.wait_until_folded()
    expect(state["file_mode"] == "keep-live" and state["dropped_events"] == 0, f"keeping: {state}")
    looked = heap_of_session("keeping")
    expect(looked["folded"]["events"] > 0 and not looked["unknown_frees"], f"a look: {looked.get('folded')}, {looked['unknown_frees']} unknown frees")
    xheap("flush", "keeping")
    flushed = totals("keeping.xht")
    check_leaks("keeping.xht")
    session.wait_until_folded(state["folded_until_us"] + 1)
    session.end()
    xheap("stop", "keeping")
    after = totals("keeping.xht")
    expect(after["total_count"] > flushed["total_count"] and after["outstanding_count"] >= flushed["outstanding_count"] - 64 * THREADS, "the flushed file has more than the last")
    found = check_leaks("keeping.xht")
    expect(sum(map(len, found.values())) > 50, "few blocks were leaked")
    expect(not os.path.exists("keeping.xht.pieces"), "pieces are left of a session that ended")


def heap_of_session(name):
    run = subprocess.run([XHEAP, "heap", "-session", name, "-totals", "-format", "json"], stdout=subprocess.PIPE, text=True, timeout=100, check=True)
    return json.loads(run.stdout)


def check_killed(is_restarted):
    """The logger is killed at any moment, and recovered; is_restarted: its directory in memory is gone, too."""
    name = "restarted" if is_restarted else "killed"
    session = Session(name)
    session.wait_until_folded()
    time.sleep(0.05 * (os.getpid() % 7))
    logger = session.state()["logger_pid"]
    pids = [target["pid"] for target in session.state()["targets"]]
    os.kill(logger, signal.SIGKILL)
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    session.process.wait()
    said = xheap("start", "another", "-o", session.trace, "--keep", "live", status=2)[1]
    expect("xheap recover" in said, f"a session over the remains of another: {said}")
    if is_restarted:
        directories = pathlib.Path("restarted.copy.xht.pieces")
        shutil.copytree(f"{session.trace}.pieces", directories)
        xheap("recover", directories)
        expect(os.path.exists("restarted.copy.xht") and not directories.exists(), "recover of pieces alone left them")
        check_whole("restarted.copy.xht")
    # By that of its session, as another one may be there.
    xheap("recover", f"{session.trace}.pieces")
    check_whole(session.trace)
    expect(not os.path.exists(f"{session.trace}.pieces"), "pieces are left of what was recovered")


def check_whole(trace):
    answer = heap(trace, "-totals")
    expect("dropped" not in answer and not answer["order_conflicts"] and not answer["unknown_frees"] and answer["folded"]["events"] > 0,
           f"{trace}: {answer.get('dropped')}, {answer['order_conflicts']} conflicts, {answer['unknown_frees']} unknown frees")
    expect(sum(map(len, check_leaks(trace).values())) > 10, f"{trace}: few blocks")


def check_merged():
    record("one.xht", 100000, 2, 100)
    record("two.xht", 100000, 2, 100)
    xheap("merge", "one.xht", "two.xht", "-o", "both.xht")
    one, two, both = totals("one.xht"), totals("two.xht"), totals("both.xht")
    for key in ("total_count", "total_bytes", "outstanding_count", "outstanding_bytes", "realloc_count", "temporary_count"):
        expect(one[key] + two[key] == both[key], f"{key} of merged traces: {one[key]} + {two[key]} is not {both[key]}")


def check_full_disk():
    """Nothing is folded without room, nor written out: the program goes on, what is there is said, and made where there is room."""
    disk = pathlib.Path("disk")
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "none", disk], stderr=subprocess.DEVNULL).returncode:
        print("no small disk can be mounted here")
        return
    try:
        run = subprocess.run([XHEAP, "record", "-o", "disk/full.xht", "--keep", "live", "--max-file", "16M", "--flush-timer", "100ms", str(LEAKING), "1000000",
                              str(THREADS), "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
        expect(run.returncode == 0 and leaked(run.stdout) > 1000, f"the program on a full disk: {run.returncode} {run.stdout}")
        expect("No space left" in run.stderr and "xheap recover -o FILE" in run.stderr, f"a full disk is said so: {run.stderr}")
        xheap("recover", "-o", "made.xht", "disk/full.xht.pieces")
    finally:
        subprocess.run(["umount", disk], check=True)
    answer = heap("made.xht", "-totals")
    expect(answer["lost_events"] > 0 and answer["totals"]["total_count"] > 100000 and not answer["order_conflicts"], f"made.xht: {answer['totals']}")
    found = check_leaks("made.xht")
    expect(sum(map(len, found.values())) > 500, "few blocks are in what was made of a full disk")


# ---- a day of redis, as fast as it goes ----

REDIS_SECONDS = 1200 if IS_SOAK else 8
REDIS_WINDOW = 4 * MIB
REDIS_LEAKED_ROUNDS, REDIS_PAUSE_US = (3000000, 20000) if IS_SOAK else (60000, 10000)


def directory_bytes(path):
    """Files may go while they are looked at."""
    total = 0
    for name in os.listdir(path) if os.path.isdir(path) else []:
        try:
            total += os.stat(os.path.join(path, name)).st_size
        except FileNotFoundError:
            pass
    return total


def redis(socket, *words):
    return subprocess.run(["redis-cli", "-s", socket, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100).stdout


def check_redis():
    """redis under load, and beside it a program that leaks all the time: files stay as large as they are, and every leaked block is there."""
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        print("redis is not installed")
        return
    socket, name = os.path.abspath("redis.socket"), "redis"
    xheap("start", name, "-o", "redis.xht", "--keep", "live", "--max-file", REDIS_WINDOW)
    server = subprocess.Popen([XHEAP, "launch", name, "--", "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--daemonize", "no",
                               "--logfile", os.path.abspath("redis.log"), "--maxmemory", "20mb", "--maxmemory-policy", "allkeys-lru"])
    leaking = subprocess.Popen([XHEAP, "launch", name, "--", str(LEAKING), str(REDIS_LEAKED_ROUNDS), str(THREADS), str(REDIS_PAUSE_US), "3"],
                               stdout=subprocess.PIPE, text=True)
    for _ in range(200):
        if os.path.exists(socket):
            break
        time.sleep(0.1)
    end, sizes = time.monotonic() + REDIS_SECONDS, []
    while time.monotonic() < end:
        subprocess.run(["redis-benchmark", "-s", socket, "-q", "-n", "20000", "-c", "10", "-r", "100000", "-d", "200", "-t", "set,get,lpush,lpop,sadd,hset"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        sizes.append(directory_bytes("redis.xht.pieces"))
    count = leaked(leaking.communicate(timeout=600)[0])
    state = read("query", name, "--format", "json")
    redis(socket, "shutdown", "nosave")
    server.wait(timeout=100)
    xheap("stop", name)
    answer = heap("redis.xht", "-totals")
    print(f"{answer['totals']['total_count']} blocks, {answer['totals']['outstanding_count']} outstanding, {answer['folded']['events']} events folded; "
          f"pieces at most {max(sizes)} bytes, {state['folded_bytes']} folded, the file {os.path.getsize('redis.xht')}")
    expect("dropped" not in answer and not answer["lost_events"] and not answer["order_conflicts"], f"redis.xht: {answer.get('dropped')}")
    expect(answer["unknown_frees"] == 0, f"redis.xht: {answer['unknown_frees']} unknown frees")
    # Twice the window, what is folded, once more while it is made anew, and what was in buffers.
    expect(max(sizes) < 3 * REDIS_WINDOW + 4 * state["folded_bytes"], f"the pieces had {max(sizes)} bytes")
    expect(os.path.getsize("redis.xht") < 3 * REDIS_WINDOW + 2 * state["folded_bytes"], "the file is large")
    check_leaks("redis.xht", count)


def main():
    parts = {"folding": check_folding, "crowded": check_crowded, "recording": check_recording, "session": check_session, "killed": lambda: check_killed(False),
             "restarted": lambda: check_killed(True), "merged": check_merged, "full_disk": check_full_disk, "redis": check_redis}
    for name in sys.argv[1:] or parts:
        start = time.monotonic()
        parts[name]()
        print(f"{name}: {time.monotonic() - start:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
