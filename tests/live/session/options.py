#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the options of a session promise, each with a process that runs: what is recorded, what is told, and what is adjusted."""
import collections
import os
import subprocess
import sys

from live import PROGRAMS, XHEAP, dump, expect, info, is_reading, is_whole, run_tests, stop_session, told, wait_for, wait_until_begun, xheap

NAME = f"options{os.getpid()}"
TRACE = "options.xht"
FAMILY = ["sh", "-c", "read line; sh -c 'exit 0'; sh -c 'exit 0'"]


# Some thousand calls a second: on a busy machine steps take long, and all events are read at once.
CALLS, MANY_CALLS = ((os.path.join(PROGRAMS, "attached"), how) for how in ("often", "count"))


class Recorded:
    """A process in a session of its own."""

    def __init__(self, *options, command=CALLS, trace=TRACE):
        self.options, self.command, self.trace, self.flushed = options, command, trace, None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        wait_until_begun(self.process)
        try:
            self.said = xheap("start", NAME, *(["-o", self.trace] if self.trace else []), "-p", self.process.pid, *self.options)
        except Exception:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def __exit__(self, *_):
        stop_session(NAME)
        self.process.kill()
        self.process.wait()

    def state(self):
        return told("query", NAME)

    def events(self):
        return self.state()["events"]

    def is_idle(self):
        """Whether it has worked and waits for its input again, and the blocks from before are read: they come together."""
        xheap("flush", NAME)
        before, facts = self.flushed, info(self.trace)
        self.flushed = facts["event_count"]
        return facts["event_count"] > 5000 and facts["events"]["earlier"] > 1000 and is_reading(self.process.pid) and self.flushed == before

    def go_on(self):
        more = self.events() + 2000
        wait_for("events", lambda: self.events() > more)

    def go_on_for(self, us):
        """Until there are events of so much later."""
        def now_us():
            xheap("flush", NAME)
            return info(self.trace)["duration_us"]
        until_us = now_us() + us
        wait_for("later events", lambda: now_us() > until_us)

    def stop(self):
        xheap("stop", NAME)
        return self.trace


def with_stacks(rows):
    """By kind, how many events have a stack, and how many have none."""
    counts = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        counts[row["action"]][row["stack_id"] in ("", "0")] += 1
    return counts


def stacks_by_kind():
    """Said at the start, and changed while the process runs."""
    with Recorded("--stackwalk", "HeapAlloc") as recorded:
        recorded.go_on()
        xheap("flush", NAME)
        first = with_stacks(dump(TRACE))
        xheap("update", NAME, "--stackwalk", "HeapFree")
        recorded.go_on()
        changed_ns = max(int(row["time_ns"]) for row in dump(TRACE))
        xheap("update", NAME, "--stackwalk", "none")
        recorded.go_on_for(900000)
        recorded.stop()
    rows = dump(TRACE)
    # Calls that were under way when it was changed are of either kind.
    ends = sorted(int(row["time_ns"]) for row in rows if row["action"] == "Free" and row["stack_id"] not in ("", "0"))
    second = with_stacks(row for row in rows if ends[0] < int(row["time_ns"]) < ends[-1])
    last = with_stacks(row for row in rows if int(row["time_ns"]) > ends[-1] + 10000000)
    expect(first["Alloc"][0] > 500 and first["Alloc"][1] == 0 and first["Free"][0] == 0 and first["Free"][1] > 500, f"HeapAlloc: {dict(first)}")
    expect(second["Free"][0] > 500 and second["Free"][1] <= 1 and second["Alloc"][0] <= 1 and second["Alloc"][1] > 500, f"HeapFree: {dict(second)}")
    expect(last["Alloc"][0] == last["Free"][0] == 0 and last["Alloc"][1] > 500, f"none: {dict(last)}")
    expect(changed_ns < ends[-1], "there is no time in between")


def depth():
    with Recorded("--stack-depth", "2") as recorded:
        recorded.go_on()
        recorded.stop()
    stacks = [row["stack"].split(";") for row in dump(TRACE, "-stacks", "-wholeStacks")]
    deepest = max(len([frame for frame in stack if frame != "[truncated]"]) for stack in stacks)
    expect(deepest == 2 and info(TRACE)["truncated_stacks"] > 500, f"{deepest} frames, {info(TRACE)['truncated_stacks']} stacks truncated")


def durations():
    seen = {}
    for option in ([], ["--no-duration"]):
        with Recorded(*option) as recorded:
            recorded.go_on()
            recorded.stop()
        seen[bool(option)] = sum(row["duration_ns"] not in ("", "0") for row in dump(TRACE) if row["action"] != "Earlier")
    expect(seen[False] > 500 and seen[True] == 0, f"events with durations: {seen[False]}, without: {seen[True]}")


def buffers():
    """What does not go together is adjusted, and told; what makes no sense is refused with the reason."""
    with Recorded("--buffer-size", "128K", "--min-buffers", "50", "--max-buffers", "20") as recorded:
        state = recorded.state()
        expect((state["buffer_size"], state["min_buffers"]) == (131072, 50) and state["max_buffers"] >= 50 <= state["buffers"], f"{state}")
    for options in (["--buffer-size", "1K"], ["--buffer-size", "2M"], ["--min-buffers", "1"], ["--max-buffers", "100000"], ["--wait-limit", "x"],
                    ["--on-full", "stop"], ["--stackwalk", "HeapNothing"], ["--stack-depth", "0"], ["--clock", "sun"], ["--max-file", "1"]):
        said = xheap("start", NAME, "-o", "refused.xht", *options, status=2)
        expect(said.startswith("xheap: ") and options[0] in said and not os.path.exists("refused.xht"), f"{options}: {said}")


def flush_timer():
    """What is older is in the file, without anybody asking."""
    def written():
        return sum(info(TRACE)["events"].values()) if os.path.exists(TRACE) and os.path.getsize(TRACE) else 0
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    command = ["/usr/bin/python3", "-c", "import ctypes, sys\nc = ctypes.CDLL(None)\nfor i in range(50): c.malloc(1000 + i)\nsys.stdin.readline()\n"]
    with Recorded("--flush-timer", "50ms", command=("sh", "-c", "read line; exec \"$@\"", "-", *command)) as recorded:
        recorded.process.stdin.write("\n")
        recorded.process.stdin.flush()
        wait_for("event in the file", lambda: written() > 50)
        expect(recorded.state()["flush_timer_us"] == 50000, f"{recorded.state()['flush_timer_us']}")


def greatest_size():
    """A sequential file ends as it is, whole; the process goes on, and how much came later is told: it is no loss."""
    with Recorded("--max-file", "128K", command=MANY_CALLS) as recorded:
        wait_for("end of recording", lambda: "error" in recorded.state() or recorded.state().get("calls_after_end", 0) > 0, 60)
        expect(recorded.process.poll() is None, "the process has ended")
        said = xheap("stop", NAME, status=0)
    facts = info(TRACE)
    expect("has reached its greatest size, 131072 bytes" in said, said)
    expect(is_whole(facts) and facts["size_bytes"] <= 128 << 10 and facts["lost_events"] == 0, f"{facts['size_bytes']} bytes, {facts['lost_events']} lost")
    # It is as it should be, but not all that there was.
    expect(not facts["complete"] and facts["ended_early"][0]["calls_after"] > 0, f"complete: {facts['complete']}, {facts['ended_early']}")
    for words in (("info", TRACE), ("heap", TRACE, "-totals"), ("report", TRACE)):
        # The report wraps its lines.
        first = " ".join(" ".join(xheap(*words).splitlines()[:3 if words[0] == "report" else 1]).split())
        expect("not complete: recording ended at " in first, f"{words}: {first}")


def children():
    for options, expected in (([], 3), (["--no-follow"], 1)):
        with Recorded(*options, command=FAMILY) as recorded:
            recorded.process.communicate("\n", timeout=60)
            recorded.stop()
        traced = [row for row in info(TRACE)["processes"] if not row.get("note")]
        expect(sum(row["exec_generation"] > 0 for row in traced) == (2 if expected == 3 else 0), f"{options}: {[(row['pid'], row.get('exec_generation')) for row in traced]}")


def listed():
    with Recorded() as recorded:
        rows = [row for row in told("sessions") if row["name"] == NAME]
        expect(len(rows) == 1 and rows[0]["alive"] and rows[0]["logger_pid"] == recorded.state()["logger_pid"], f"{rows}")
        expect([target["pid"] for target in rows[0]["targets"]] == [recorded.process.pid], f"{rows}")
        expect(rows[0]["file"] == os.path.abspath(TRACE), f"{rows[0]['file']}")


def environment():
    """Nothing of ours is in that of what is launched, nor are there descriptors."""
    code = "import os; print(sorted(os.environ.items()), sorted(os.listdir('/proc/self/fd')))"
    command = ["/usr/bin/python3", "-c", code]
    plain = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    with Recorded():
        launched = subprocess.run([XHEAP, "launch", NAME, "--", *command], stdout=subprocess.PIPE, text=True, check=True).stdout
    expect(launched == plain, f"{launched} {plain}")


BUSY_THEN_IDLE = """
import sys
sys.stdin.readline()
kept = [str(i) * (i % 50) for i in range(5000)]
sys.stdin.readline()
"""


def live_answers():
    """What is asked of a session that goes on is answered as its file does it."""
    questions = (["-totals"], ["-stacks", "so"], ["-frames", "st", "-by", "thread"], ["-tree", "sp", "-size", "16", "200"])
    with Recorded(command=["env", "PYTHONMALLOC=malloc", "/usr/bin/python3", "-c", BUSY_THEN_IDLE]) as recorded:
        recorded.process.stdin.write("\n")
        recorded.process.stdin.flush()
        wait_for("end of its work", recorded.is_idle)
        live = [told("heap", "-session", NAME, *words) for words in questions]
        xheap("flush", NAME)
        written = [told("heap", TRACE, *words) for words in questions]
    for words, one, other in zip(questions, live, written):
        for answer in (one, other):
            answer.pop("trace")
        expect(one == other and one["totals"]["total_count"] > 4000, f"{words}: {str(one)[:600]} live, {str(other)[:600]} written")


def default_file():
    with Recorded(trace=None):
        xheap("stop", NAME)
    expect(info(f"xheap.{NAME}.xht")["complete"], "the file by default")


sys.exit(run_tests(stacks_by_kind, depth, durations, buffers, flush_timer, greatest_size, children, listed, environment, live_answers, default_file))
