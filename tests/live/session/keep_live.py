#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Long runs: what is folded against the same recording that is not, and against programs that leak what is known without xheap.

`leaking` forgets blocks by one of three functions: block n of thread t has 50,000 + 16 n + t bytes, and the function n mod 3 forgets it."""
import collections
import concurrent.futures
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from live import LONG_SECONDS, PROGRAMS, SOAK, XHEAP, dump, expect, info, processor_ticks, run_tests, stop_session, told, wait_for, xheap

SOURCE = pathlib.Path(os.environ["SOURCE"])
LEAKING = os.path.join(PROGRAMS, "leaking")
LEAK_FIRST, LEAK_STEP, THREADS = 50000, 16, 3
FORGETS = ["forget_first", "forget_second", "forget_third"]
MIB = 1 << 20
COUNTS = ("total_count", "total_bytes", "outstanding_count", "outstanding_bytes", "realloc_count", "temporary_count")


def heap(trace, *words):
    return told("heap", trace, *words)


def totals(trace):
    return heap(trace, "-totals")["totals"]


def query(name):
    return told("query", name)


def run(*command, **more):
    """What the program prints, and how."""
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS, **more)
    expect(done.returncode == 0, f"{command}: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


# ---- folded by hand: everything is the same ----

QUESTIONS = [["-stacks", "so", "-frames", "st", "-image", "st", "-tree", "so"], ["-stacks", "sp", "-frames", "spc"], ["-stacks", "stt", "-by", "thread"],
             ["-frames", "-inclusive", "-by", "process"], ["-callers", "leaking!touch", "src", "-by", "heap"]]
# The peak of a part in folded time is not known.
PARTS = [["-requireFrames", "leaking!forget_first"], ["-size", str(LEAK_FIRST), "10000000"], ["-closed"], ["-lifetime", "0", "100s"], ["-pids", "PID"]]


PEAKS = ["peak_bytes", "peak_count", "peak_bytes_error", "peak_count_error"]


def without(answer, *keys):
    """What does not depend on where the file is, and which medians are only known by their class."""
    for key in ("trace", "folded", *keys):
        answer.pop(key, None)
    for action in answer["actions"]:
        for row in action["rows"]:
            row.get("lifetime_us", {}).pop("median", None)
            row.pop("thread_id", None)  # threads of which only sums are left have one of their own
            for frame in row.get("stack", []):
                # Of several places in a function that make one row, one is told.
                frame.pop("offset", None), frame.pop("line", None)
            if "peak" in keys:
                for key in PEAKS:
                    row.pop(key, None)
            if "threads" in keys:
                row.pop("threads", None)
    if "peak" in keys:
        for key in (*PEAKS, "peak_at_us", "peak_from_us"):
            answer["totals"].pop(key, None)
    return answer


def check_same(full, folded, questions, *keys):
    for words in questions:
        words = [str(info(full)["processes"][0]["pid"]) if word == "PID" else word for word in words]
        one, other = without(heap(full, *words), *keys), without(heap(folded, *words), *keys)
        expect(one == other, f"{folded}: {words}: {first_difference(one, other)}")


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


def fold_at(full, times_ns):
    """The trace folded again and again, up to these times."""
    before = full
    for number, time_ns in enumerate(times_ns):
        path = f"{full}.{number}"
        xheap("--fold", path, int(time_ns), 1, before)
        before = path
        yield path


def fold(full, shares):
    """Up to these shares of its time."""
    duration_ns = info(full)["duration_us"] * 1000
    return fold_at(full, [duration_ns * share for share in shares])


def folding():
    xheap("record", "-q", "-o", "whole.xht", LEAKING, 40000, THREADS, 0)
    for path in fold("whole.xht", (0.3, 0.31, 0.8, 2)):
        check_same("whole.xht", path, QUESTIONS)
        check_same("whole.xht", path, PARTS, "peak")
    last = heap(path, "-stacks")
    expect(last["folded"]["events"] > 30000 and not last["unknown_frees"] and not last["order_conflicts"], f"{path}: {last['folded']}")
    check_medians("whole.xht", path)
    check_refusals(path)
    run("cc", "-std=c11", "-O2", "-D_GNU_SOURCE", "-I", SOURCE / "include", SOURCE / "tests/live/programs/annotated.c", "-o", "annotated", "-pthread")
    for program in ("forks server", "forks threads", "execs chain 40", "family glibc", "churn 4", "./annotated threads 8", "./annotated fork"):
        name = f"{pathlib.Path(program.split()[0]).name}.{program.split()[1]}.xht"
        run(XHEAP, "record", "-q", "-o", name, *program.split(), env={**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"})
        expect(info(name)["event_count"] > 5, f"{name} is no test")
        for path in fold(name, (0.4, 0.999)):
            check_same(name, path, [["-stacks", "so", "-frames", "sp"], ["-by", "process"]])


SAMPLED_QUESTIONS = [["-stacks", "so", "-frames", "st", "-image", "st"], ["-stacks", "sp"], ["-by", "thread"], ["-by", "process"]]


def folding_samples():
    """Estimates and their errors are the same, whether blocks are in sums or not."""
    xheap("record", "-q", "-o", "sampled.xht", "--sample", "2K", LEAKING, 40000, THREADS, 0)
    for path in fold("sampled.xht", (0.3, 0.31, 0.8, 2)):
        check_same("sampled.xht", path, SAMPLED_QUESTIONS)
        check_same("sampled.xht", path, PARTS, "peak")
    expect(heap(path)["folded"]["events"] > 1000 and heap(path)["totals"]["total_bytes_error"] > 0, f"{path} is no test")


def folding_attached():
    """What was attached to, let go of, and attached to again, with blocks from before."""
    with Session("switched", keep=False, pause_us=5000) as session:
        for _ in range(2):
            session.attach()
            session.wait_until_read()
            wait_for("events", lambda count=session.events(): session.events() > count + 50000)
            session.detach()
        session.stop()
    # Nothing is folded while blocks from before are looked for: behind that, and in between.
    looked = sorted({int(row["time_ns"]) for row in dump("switched.xht") if row["action"] == "Earlier"})
    ends = [process["end_us"] * 1000 for process in info("switched.xht")["processes"]]
    expect(len(looked) == len(ends) == 2 and heap("switched.xht")["earlier"]["count"] > 100, "switched.xht is no test")
    for path in fold_at("switched.xht", (looked[0], (looked[0] + ends[0]) / 2, ends[0] + 1, (looked[1] + ends[1]) / 2, 2 * ends[1])):
        # A thread that was attached to twice is told twice by one name: rows that are the same else come in any order.
        check_same("switched.xht", path, [*(words for words in QUESTIONS if "thread" not in words), ["-by", "process"]])


def crowded():
    """More threads times stacks than there may be sums: those of threads that have ended become sums of all of them."""
    xheap("record", "-q", "-o", "crowded.xht", os.path.join(PROGRAMS, "crowded"), 1600, 250)
    thread = info("crowded.xht")["processes"][0]["pid"]
    for path in fold("crowded.xht", (0.95, 2)):
        folded = heap(path, "-totals")["folded"]
        expect(0 < folded["sums_of_several_threads"] <= folded["sums"] < 1 << 18, f"{path}: {folded}")
        check_same("crowded.xht", path, [["-stacks", "so", "-frames", "st"], ["-stacks", "sp"], ["-by", "process"], ["-by", "heap"]], "threads")
        check_same("crowded.xht", path, [["-pids", thread]], "threads", "peak")
        for words in (["-by", "thread"], ["-threads", thread]):
            error = xheap("heap", path, *words, status=2)
            expect("many threads" in error and "-pids" in error, f"{path}: {words}: {error}")


def check_medians(full, folded):
    one, other = heap(full, "-stacks", "-by", "thread"), heap(folded, "-stacks", "-by", "thread")
    for whole, sums in zip(one["actions"][0]["rows"], other["actions"][0]["rows"]):
        exact, estimate = whole["lifetime_us"]["median"], sums["lifetime_us"]["median"]
        expect(abs(exact - estimate) <= exact / 15 + 0.02, f"a median lifetime of {exact} us is told as {estimate}")


REFUSED = [(["-by", "size"], "-by"), (["-by", "time"], "-by"), (["-chains"], "-chains"), (["-requireFreeFrames", "leaking!touch"], "-requireFreeFrames"),
           (["-size", "0", "1000"], "-size"), (["-lifetime", "0", "10us"], "-lifetime"), (["-range", "SOME", "MORE"], "-range"),
           (["-window", "AIFI", "SOME", "MORE"], "-window"), (["-stacks", "sp", "-closed"], "sp")]


def check_refusals(trace):
    duration_us = info(trace)["duration_us"]
    for words, what in REFUSED:
        words = [{"SOME": str(duration_us / 3), "MORE": str(duration_us / 2)}.get(word, word) for word in words]
        said = xheap("heap", trace, *words, status=2)
        expect(f"{trace}: {what}" in said and "folded" in said and said.count("\n") == 1, f"{words}: {said}")
    xheap("heap", trace, "-size", "0", "1G")
    said = xheap("dump", trace, "-allocations", "-format", "csv")
    expect("events are folded" in said, f"dump -allocations does not tell that some are folded: {said}")


# ---- recorded so ----

def is_there(row):
    return row["end_kind"] in ("open", "exit", "alive when recording ended")


def leaks(trace):
    """By thread, the leaked blocks that are there: number, time, stack, tid."""
    found = collections.defaultdict(list)
    for row in dump(trace, "-allocations", "-size", LEAK_FIRST, 1 << 30, "-requireFrames", "leaking!work"):
        if is_there(row):
            number, thread = divmod(int(row["size"]) - LEAK_FIRST, LEAK_STEP)
            found[thread].append((number, float(row["birth_ns"]), row["stack_id"], row["tid"]))
    for blocks in found.values():
        blocks.sort()
    return found


def check_leaks(trace, count=None):
    """Every leaked block, of each thread in order, with time, thread and the function that forgot it."""
    found = leaks(trace)
    if count is not None:
        expect(sum(map(len, found.values())) == count, f"{trace}: {sum(map(len, found.values()))} leaked blocks, not {count}")
    functions = stack_functions(trace)
    for thread, blocks in found.items():
        expect([number for number, *_ in blocks] == list(range(blocks[0][0], blocks[0][0] + len(blocks))), f"{trace}: blocks of thread {thread} are missing")
        expect(all(one[1] < other[1] for one, other in zip(blocks, blocks[1:])), f"{trace}: thread {thread}: times are not in order")
        expect(len({tid for *_, tid in blocks}) == 1, f"{trace}: blocks of thread {thread} are told as of others")
        for number, _, stack, _ in blocks:
            expect(FORGETS[number % 3] in functions.get(stack, ""), f"{trace}: block {number} of thread {thread}: stack {stack} is {functions.get(stack)}")
    return found


def check_all_leaks(trace, count=None):
    """The same of a program that was recorded from its beginning."""
    found = check_leaks(trace, count)
    expect(all(blocks[0][0] == 0 for blocks in found.values()), f"{trace}: the first blocks are missing")
    return found


def stack_functions(trace):
    """Of each stack the function that called the allocator."""
    return {row["stack_id"]: row["frame"].split(";")[0] for row in dump(trace, "-stacks")}


def leaked(output):
    return int(output.split()[1])


# Folding may take longer on a machine that is busy with something else.
KEEPING = ["--keep", "live", "--max-file", MIB, "--flush-timer", "100ms", "--wait-limit", "60s"]


def record(trace, *words, how=KEEPING):
    return leaked(run(XHEAP, "record", "-q", "-o", trace, *how, LEAKING, *words))


def recording():
    words = (250000, THREADS, 300)
    count = record("kept.xht", *words)
    expect(count == record("all.xht", *words, how=()), "leaking does not do the same twice")
    kept, whole = totals("kept.xht"), totals("all.xht")
    for key in (*COUNTS, "open_count"):
        expect(kept[key] == whole[key], f"{key}: {kept[key]} with --keep live, {whole[key]} else")
    facts, other = info("kept.xht"), info("all.xht")
    expect(facts["events"] == other["events"] and facts["event_count"] == other["event_count"], f"events: {facts['events']}, {other['events']}")
    expect(facts.get("folded", {}).get("events", 0) > facts["event_count"] / 4, f"only this is folded: {facts.get('folded')}")
    expect(facts["complete"] and "dropped" not in facts and not facts["lost_events"], f"kept.xht: {facts.get('dropped')}, {facts['lost_events']} lost")
    # The window, once more while something is folded, and what was in buffers.
    expect(os.path.getsize("kept.xht") < 5 * MIB and not os.path.exists("kept.xht.pieces"), f"kept.xht has {os.path.getsize('kept.xht')} bytes, or its pieces are left")
    check_all_leaks("kept.xht", count)
    check_all_leaks("all.xht", count)
    sampling(words, count, whole)


def sampling(words, count, whole):
    """A sample of the same: what is large is in it as it is, all else is estimated as well as that is told. Of the few small blocks that are left
    at the end hardly one is in the sample."""
    expect(count == record("sample.xht", *words, how=[*KEEPING, "--sample", "2K"]), "a sampled program does something else")
    seen = heap("sample.xht")
    expect(seen["sample_bytes"] == 2048 and seen["folded"]["events"] > 100000, f"sample.xht: {seen.get('folded')}")
    expect(not seen["unknown_frees"] and not seen["order_conflicts"] and not seen["earlier"]["count"], f"sample.xht: {seen['unknown_frees']} unknown frees")
    for key in ("total_count", "total_bytes", "outstanding_count", "outstanding_bytes"):
        estimate, error = seen["totals"][key], seen["totals"][key + "_error"]
        expect(abs(estimate - whole[key]) <= 5 * error + 0.002 * whole[key], f"{key}: {estimate} (+- {error}) of {whole[key]}")
    check_all_leaks("sample.xht", count)


# ---- sessions ----

def wait_until_working(process):
    """Until it has had some time to leak."""
    wait_for("work", lambda: processor_ticks(process.pid) > 2)


class Session:
    """A program that leaks until it is told to end, and a session for it."""

    def __init__(self, name, *options, keep=True, pause_us=200):
        self.name, self.trace, self.process, self.earlier = name, f"{name}.xht", None, 0
        # Blocks that are so large that malloc maps them alone cannot all be found while there are ever more of them: none has come that far after a minute.
        self.program = [LEAKING, str(1 << 40), str(THREADS), str(pause_us), "1"]
        xheap("start", name, "-o", self.trace, *(KEEPING if keep else ()), *options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        stop_session(self.name)

    def run(self, *before):
        self.process = subprocess.Popen([*before, *self.program], stdout=subprocess.DEVNULL)

    def launch(self):
        self.run(XHEAP, "launch", self.name, "--")
        return self

    def attach(self):
        if not self.process:
            self.run()
            wait_until_working(self.process)
        xheap("update", self.name, "--add-pid", self.process.pid)

    def detach(self):
        xheap("update", self.name, "--remove-pid", self.process.pid)

    def stop(self):
        xheap("stop", self.name)

    def events(self):
        return query(self.name)["events"]

    def wait_until_read(self):
        """Until what was there before the attach is known."""
        def is_known():
            xheap("flush", self.name)
            return info(self.trace)["events"].get("earlier", 0) > self.earlier
        wait_for("blocks from before", is_known, 60, 0.2)
        self.earlier = info(self.trace)["events"]["earlier"]

    def wait_until_folded(self, after_us=0):
        """Until something is folded that was later than that."""
        def state_when_folded():
            state = query(self.name)
            return state.get("folded_bytes", 0) and state["folded_until_us"] > after_us and state
        return wait_for("folding", state_when_folded, 60, 0.1)

    def now_us(self):
        return told("heap", "-session", self.name, "-totals")["range"]["to_us"]

    def end(self):
        for target in query(self.name)["targets"]:
            os.kill(target["pid"], signal.SIGTERM)
        self.process.wait()


def session():
    with Session("keeping").launch() as keeping:
        state = keeping.wait_until_folded()
        expect(state["file_mode"] == "keep-live" and state["dropped_events"] == 0, f"keeping: {state}")
        looked = told("heap", "-session", "keeping", "-totals")
        expect(looked["folded"]["events"] > 0 and not looked["unknown_frees"], f"a look: {looked.get('folded')}, {looked['unknown_frees']} unknown frees")
        xheap("flush", "keeping")
        flushed = totals("keeping.xht")
        check_all_leaks("keeping.xht")
        keeping.wait_until_folded(state["folded_until_us"] + 1)
        keeping.end()
        # As what folds leaves it, when it is ended while it writes.
        pathlib.Path("keeping.xht.pieces/.xheap.1.0.new").touch()
        keeping.stop()
    after = totals("keeping.xht")
    expect(after["total_count"] > flushed["total_count"] and after["outstanding_count"] >= flushed["outstanding_count"] - 64 * THREADS, "the flushed file has more than the last")
    found = check_all_leaks("keeping.xht")
    expect(sum(map(len, found.values())) > 50, "few blocks were leaked")
    expect(not os.path.exists("keeping.xht.pieces"), "pieces are left of a session that ended")


def readings():
    """Two at a time look again and again, while pieces end and are folded: each look is of one moment, and none is older than the one before."""
    with Session("read", pause_us=1000).launch() as session, concurrent.futures.ThreadPoolExecutor(2) as readers:
        counts = list(readers.map(lambda _: [check_look() for _ in range(15)], range(2)))
        session.wait_until_folded()
        counts.append([check_look()])
        session.end()
        session.stop()
    expect(all(one <= other for seen in counts for one, other in zip(seen, seen[1:])), f"looks go back in time: {counts}")
    expect(max(max(seen) for seen in counts) == counts[-1][0], f"looks go back in time: {counts}")
    check_sound("read.xht")


def check_look():
    answer = told("heap", "-session", "read", "-totals")
    expect(not answer["unknown_frees"] and not answer["order_conflicts"] and "dropped" not in answer,
           f"a look: {answer['unknown_frees']} unknown frees, {answer['order_conflicts']} conflicts, {answer.get('dropped')}")
    return answer["totals"]["total_count"]


def earlier_leaks(trace):
    """By process, so many leaked blocks were found that were there before; their sizes are usable ones."""
    rows = [row for row in dump(trace, "-allocations", "-size", LEAK_FIRST, "max") if not row["birth_ns"] and is_there(row)]
    return collections.Counter(row["process"] for row in rows)


def leaked_counts(found):
    """All that was leaked up to the first one of each thread, and from there on."""
    return sum(blocks[0][0] for blocks in found.values()), sum(map(len, found.values()))


def at_once_count(found):
    """How many of them were forgotten by functions that make one call."""
    return sum(number % 3 != 2 for blocks in found.values() for number, *_ in blocks)


def check_sound(trace):
    answer = heap(trace, "-totals")
    expect("dropped" not in answer and not answer["order_conflicts"] and not answer["unknown_frees"] and not answer["lost_events"],
           f"{trace}: {answer.get('dropped')}, {answer['order_conflicts']} conflicts, {answer['unknown_frees']} unknown frees")
    return answer


def attached(*options):
    """Attached to, let go of, attached to again, with what was there before either time; then, of a sample, without."""
    has_earlier = not options
    with Session("attached", *options, pause_us=500) as session:
        session.attach()
        if has_earlier:
            session.wait_until_read()
        session.wait_until_folded()
        session.detach()
        # What was live when it was let go of is listed until that is folded.
        xheap("flush", "attached")
        found = check_leaks("attached.xht")
        (before, count), at_once = leaked_counts(found), at_once_count(found)
        told_earlier = check_sound("attached.xht")["earlier"]["count"]
        expect(sum(earlier_leaks("attached.xht").values()) == (before if has_earlier else 0), f"{earlier_leaks('attached.xht')} of {before} earlier leaked blocks")
        let_go_us = session.now_us()
        session.attach()
        if has_earlier:
            session.wait_until_read()
        session.wait_until_folded(max(let_go_us, session.now_us()))
        answer = told("heap", "-session", "attached", "-totals")
        expect(not answer["unknown_frees"] and not answer["order_conflicts"], f"a look: {answer['unknown_frees']} unknown frees")
        session.end()
        session.stop()
    answer = check_sound("attached.xht")
    found = check_leaks("attached.xht")
    (again, more), at_once_again = leaked_counts(found), at_once_count(found)
    expect(again > before + count and more > 10, f"{before} before, {count} while attached, then {again} before, {more} while attached")
    earlier = earlier_leaks("attached.xht")
    expect(earlier["1"] == (again if has_earlier else 0), f"{earlier} of {again} earlier leaked blocks")
    # Beside these there are what was in the places, and what was given back when it was being looked for.
    rest = answer["earlier"]["count"] - told_earlier - earlier["1"]
    expect(0 <= rest <= 65 * THREADS if has_earlier else not answer["earlier"]["count"], f"{answer['earlier']}, {told_earlier} of the first time, {earlier}")
    # What the end of the process or of the attach came between is left out: the last one of FORGETS has a small block first.
    frames = heap("attached.xht", *(word for name in FORGETS[:2] for word in ("-requireFrames", f"leaking!{name}")))["totals"]
    expect(frames["outstanding_count"] == at_once + at_once_again, f"{frames['outstanding_count']} blocks of {at_once} + {at_once_again} are outstanding")
    expect(answer["folded"]["until_us"] > let_go_us, f"{answer['folded']} is no test")


def attached_sample():
    attached("--sample", "2K")


def attached_record():
    """By record -p, which ends when it is told to."""
    process = subprocess.Popen([LEAKING, str(1 << 40), str(THREADS), "500", "1"], stdout=subprocess.DEVNULL)
    recorder = None
    try:
        wait_until_working(process)
        recorder = subprocess.Popen([XHEAP, "record", "-o", "given.xht", *map(str, KEEPING), "-p", str(process.pid)], stderr=subprocess.PIPE, text=True)
        said = ""
        while "blocks from before" not in said:
            line = recorder.stderr.readline()
            expect(line, f"record has ended: {said}")
            said += line
        wait_for("folding", lambda: list(pathlib.Path("given.xht.pieces").glob("folded.*")), 60, 0.1)
        recorder.send_signal(signal.SIGINT)
        said += recorder.communicate(timeout=LONG_SECONDS)[1]
    finally:
        for left in filter(None, (process, recorder)):
            left.kill()
            left.wait()
    answer = check_sound("given.xht")
    before, count = leaked_counts(check_leaks("given.xht"))
    expect(recorder.returncode == 0 and count > 5 and answer["folded"]["events"] > 10000, f"given.xht: {count} blocks, {answer['folded']}: {said}")
    expect(earlier_leaks("given.xht") == {"0": before}, f"{earlier_leaks('given.xht')} of {before} earlier leaked blocks")


def check_killed(name, is_restarted):
    """The logger is killed at any moment, and recovered; is_restarted: its directory in memory is gone, too."""
    with Session(name).launch() as session:
        session.wait_until_folded()
        time.sleep(0.05 * (os.getpid() % 7))
        state = query(name)
        os.kill(state["logger_pid"], signal.SIGKILL)
        for target in state["targets"]:
            os.kill(target["pid"], signal.SIGTERM)
        session.process.wait()
    said = xheap("start", "another", "-o", session.trace, "--keep", "live", status=2)
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


def killed():
    check_killed("killed", False)


def restarted():
    check_killed("restarted", True)


def check_whole(trace):
    expect(check_sound(trace)["folded"]["events"] > 0, f"{trace}: nothing is folded")
    expect(sum(map(len, check_all_leaks(trace).values())) > 10, f"{trace}: few blocks")


def merged():
    record("one.xht", 100000, 2, 100)
    record("two.xht", 100000, 2, 100)
    xheap("merge", "one.xht", "two.xht", "-o", "both.xht")
    one, two, both = totals("one.xht"), totals("two.xht"), totals("both.xht")
    for key in COUNTS:
        expect(one[key] + two[key] == both[key], f"{key} of merged traces: {one[key]} + {two[key]} is not {both[key]}")


def full_disk():
    """Nothing is folded without room, nor written out: the program goes on, what is there is said, and made where there is room."""
    disk = pathlib.Path("disk")
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "none", disk], stderr=subprocess.DEVNULL).returncode:
        return "no small disk can be mounted here"
    try:
        done = subprocess.run([XHEAP, "record", "-o", "disk/full.xht", "--keep", "live", "--max-file", "16M", "--flush-timer", "100ms", LEAKING, "1000000",
                               str(THREADS), "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
        expect(done.returncode == 0 and leaked(done.stdout) > 1000, f"the program on a full disk: {done.returncode} {done.stdout}")
        expect("No space left" in done.stderr and "xheap recover -o FILE" in done.stderr, f"a full disk is said so: {done.stderr}")
        xheap("recover", "-o", "made.xht", "disk/full.xht.pieces")
    finally:
        subprocess.run(["umount", disk], check=True)
    answer = heap("made.xht", "-totals")
    expect(not answer["complete"] and answer["totals"]["total_count"] > 100000 and not answer["order_conflicts"], f"made.xht: {answer}")
    expect(answer["lost_events"] > 0 or any(row["calls_after"] for row in answer["ended_early"]), f"what was not recorded is in no number: {answer}")
    expect(sum(map(len, check_all_leaks("made.xht").values())) > 500, "few blocks are in what was made of a full disk")
    return None


# ---- a day of redis, as fast as it goes ----

REDIS_SECONDS = 1200 if SOAK else 8
REDIS_WINDOW = 4 * MIB
REDIS_PAUSE_US = 20000 if SOAK else 10000


def directory_bytes(path):
    """Files may go while they are looked at."""
    total = 0
    for name in os.listdir(path) if os.path.isdir(path) else []:
        try:
            total += os.stat(os.path.join(path, name)).st_size
        except FileNotFoundError:
            pass
    return total


def redis():
    """redis under load, and beside it a program that leaks all the time: files stay as large as they are, and every leaked block is there."""
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        return "redis is not installed"
    socket, name = os.path.abspath("redis.socket"), "redis"
    # A busy machine may take longer than the usual limit to fold, and then this is not about losses.
    xheap("start", name, "-o", "redis.xht", "--keep", "live", "--max-file", REDIS_WINDOW, "--wait-limit", "60s")
    server = subprocess.Popen([XHEAP, "launch", name, "--", "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--daemonize", "no",
                               "--logfile", os.path.abspath("redis.log"), "--maxmemory", "20mb", "--maxmemory-policy", "allkeys-lru"])
    leaking = subprocess.Popen([XHEAP, "launch", name, "--", str(LEAKING), "0", str(THREADS), str(REDIS_PAUSE_US), "3"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for("socket of redis", lambda: os.path.exists(socket))
    end, sizes, folded = time.monotonic() + REDIS_SECONDS, [], 0
    # On a slow machine it takes longer until there is something to fold.
    while time.monotonic() < end or not folded:
        subprocess.run(["redis-benchmark", "-s", socket, "-q", "-n", "20000", "-c", "10", "-r", "100000", "-d", "200", "-t", "set,get,lpush,lpop,sadd,hset"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LONG_SECONDS)
        sizes.append(directory_bytes("redis.xht.pieces"))
        folded = max(folded, query(name).get("folded_bytes", 0))
    # It ends last: what is alive when its process ends has ended, and is folded later.
    count = leaked(leaking.communicate(timeout=LONG_SECONDS)[0])
    subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LONG_SECONDS)
    server.wait(timeout=LONG_SECONDS)
    xheap("stop", name)
    answer = heap("redis.xht", "-totals")
    said = (f"{answer['totals']['total_count']} blocks, {answer['totals']['outstanding_count']} outstanding, {answer['folded']['events']} events folded; "
            f"pieces at most {max(sizes)} bytes, {folded} folded, the file {os.path.getsize('redis.xht')}")
    expect("dropped" not in answer and not answer["lost_events"] and not answer["order_conflicts"], f"redis.xht: {answer.get('dropped')}")
    expect(answer["unknown_frees"] == 0, f"redis.xht: {answer['unknown_frees']} unknown frees")
    # Twice the window, what is folded, once more while it is made anew, and what was in buffers.
    expect(max(sizes) < 3 * REDIS_WINDOW + 4 * folded, f"the pieces had {max(sizes)} bytes, {folded} of them folded")
    expect(os.path.getsize("redis.xht") < 3 * REDIS_WINDOW + 2 * folded, "the file is large")
    check_all_leaks("redis.xht", count)
    return said


sys.exit(run_tests(folding, folding_samples, folding_attached, crowded, recording, session, readings, attached, attached_sample, attached_record,
                   killed, restarted, merged, full_disk, redis))
