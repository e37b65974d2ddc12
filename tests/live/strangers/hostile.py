#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A logger whose targets write into what they share with it, beside targets whose every call is counted.

fuzzed     each target damages what it shares in another way: at random, and next to sense (programs/hostile.c)
rounds     one session through all rounds, as root with targets of nobody's too: what the logger holds does not grow
held       a target announces an exec that it never makes, as often as it can
as_logger  a target announces an exec as the logger's
leased     a target's thread is in an exec of a script whose interpreter somebody does not let go, another one announces an exec
sampled    a target sets options that the session does not have
usage: hostile.py [NAME...]        ROUNDS=N, SEED=N: other rounds; SOAK=1: 1,000 of each

A failure names the seed of its round: SEED=THAT ROUNDS=1 repeats it.
"""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time

from live import LONG_SECONDS, PROGRAMS, SOAK, XHEAP, Failure, attach, dump, expect, info, is_whole, run_tests, stop_session, told, wait_for, xheap

CALLS = 200                      # of each honest target in each round; each is given back
SEED = int(os.environ.get("SEED", "0"))
SETTLED_ROUND = 20               # from then on the logger's memory is compared
ROUND_BYTES, SLACK_KIB = 64 << 10, 32 << 10   # of it, for rows and stacks that each round adds, and for what a moment needs
HOSTILE = os.path.join(PROGRAMS, "hostile")
CLONE_NEWNS = 0x20000
KINDS = ("header", "slots", "buffers", "records", "messages", "rows", "everything")


def rounds_of(few):
    return int(os.environ.get("ROUNDS", "1000" if SOAK else few))


def name_of(test):
    return f"hostile-{test}-{os.getpid()}"


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


class Honest:
    """A program that makes CALLS allocations when it is asked to, and gives each back."""

    def __init__(self, *before):
        self.process = subprocess.Popen([*before, os.path.join(PROGRAMS, "exact"), str(CALLS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.asked = self.waiting = 0
        expect(self.process.stdout.read(1) == b"r", "an honest target did not begin")

    def ask(self):
        self.process.stdin.write(b"x")
        self.asked += 1
        self.waiting += 1

    def answered(self):
        while self.waiting:
            ready, _, _ = select.select([self.process.stdout], [], [], LONG_SECONDS)
            expect(ready and self.process.stdout.read(1) == b".", f"an honest target stands still, or is damaged, at {self.asked}")
            self.waiting -= 1

    def end(self):
        self.process.stdin.close()
        expect(self.process.wait(timeout=LONG_SECONDS) == 0, "an honest target found its blocks changed")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Session:
    """Two honest targets, one attached to and one launched, in a session to which hostile ones come."""

    def __init__(self, test, *options):
        self.name, self.trace = name_of(test), f"{test}.xht"
        attached = Honest()
        attach("start", self.name, "-o", self.trace, "-p", attached.process.pid, *options)
        self.honest = [attached, Honest(XHEAP, "launch", self.name, "--")]
        # They make no call until they are asked to: what is recorded of them by now was before, or is their start's.
        wait_for("the block of the attached one's thread", lambda: self.events_of(told("query", self.name), attached.process.pid))
        state = told("query", self.name)
        self.logger = state["logger_pid"]
        self.pids = [attached.process.pid, next(row["pid"] for row in state["targets"] if row["pid"] != attached.process.pid)]
        self.before = [self.events_of(state, pid) for pid in self.pids]

    @staticmethod
    def events_of(state, pid):
        return next((row["events"] for row in state["targets"] if row["pid"] == pid), None)

    def check_counts(self, where):
        state = told("query", self.name)
        for honest, pid, before in zip(self.honest, self.pids, self.before):
            row = next((row for row in state["targets"] if row["pid"] == pid), None)
            expect(row is not None, f"{where}: {pid} is not recorded any more: {state}")
            expected = before + 2 * CALLS * honest.asked
            expect(row["events"] == expected and row["lost_events"] == 0, f"{where}: {expected} calls of {pid}, recorded: {row}")

    def ask(self):
        for honest in self.honest:
            honest.ask()

    def answered(self):
        for honest in self.honest:
            honest.answered()

    def check_logger(self, where):
        expect(state_of(self.logger) not in ("Z", "X", "gone"), f"{where}: the logger ended")

    def held_alone(self):
        """As held(), when there are no targets but the honest ones."""
        wait_for("the end of other targets", lambda: len([row for row in told("query", self.name)["targets"] if row["pid"] not in self.pids]) == 0)
        time.sleep(0.1)
        return self.held()

    def held(self):
        """The logger's descriptors, and its anonymous memory in KiB. A child that it has asked something stays for the next question, one of a kind, with
        a pidfd and a socket; when it begins, and whether it has ended, is chance."""
        place = pathlib.Path(f"/proc/{self.logger}")
        children = " ".join(path.read_text() for path in place.glob("task/*/children")).split()
        count = len(os.listdir(place / "fd")) - sum(1 if state_of(pid) == "Z" else 2 for pid in children)
        return count, int((place / "status").read_text().split("RssAnon:")[1].split()[0])

    def end(self):
        self.check_counts("at the end")
        xheap("stop", self.name)
        for honest in self.honest:
            honest.end()
        facts = info(self.trace)
        expect(is_whole(facts), f"the trace is cut: {facts}")
        for honest, pid, before in zip(self.honest, self.pids, self.before):
            rows = [row for row in facts["processes"] if row.get("pid") == pid and os.path.basename(row["image"]) == "exact"]
            expect(len(rows) == 1 and rows[0]["events"] == before + 2 * CALLS * honest.asked, f"{honest.asked} times {CALLS} of {pid} in the trace: {rows}")
        return facts

    def kill(self):
        for honest in self.honest:
            honest.kill()
        stop_session(self.name)


class Hostile:
    """One hostile target, from its launch to its end."""

    def __init__(self, session, words, user=(), path=HOSTILE):
        self.words = words
        self.process = subprocess.Popen([XHEAP, "launch", session.name, "--", *user, path, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, start_new_session=True)

    def wait(self, seconds):
        """Its end; one that waits for nothing, or whose recorder it has damaged so that it stands still, is ended. Whether it ended by itself."""
        try:
            self.process.wait(timeout=seconds)
            return True
        except subprocess.TimeoutExpired:
            return False

    def kill(self, session):
        """All that it is by now: what has left the command that launched it, too."""
        honest = set(session.pids)
        for row in told("query", session.name)["targets"]:
            if row["pid"] and row["pid"] not in honest and pathlib.Path(f"/proc/{row['pid']}").exists() and is_hostile(row["pid"]):
                os.kill(row["pid"], 9)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def is_hostile(pid):
    try:
        return b"hostile" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def fuzzed():
    session, count, by_itself = Session("fuzzed"), rounds_of("20"), 0
    try:
        for number in range(count):
            seed = SEED + number
            kind, where = KINDS[seed % len(KINDS)], f"SEED={seed}"
            hostile = Hostile(session, [kind, str(seed)])
            session.ask()
            by_itself += hostile.wait(5) and hostile.process.returncode == 0
            session.answered()
            hostile.kill(session)
            session.check_logger(where)
            if number % 10 == 9 or count < 10:
                session.check_counts(where)
        facts = session.end()
    finally:
        session.kill()
    expect(by_itself or count < len(KINDS), "no hostile target came to its end: they do not write what they should")
    return f"{count} rounds, {by_itself} ended by themselves, {facts['event_count']} events, {facts['lost_events']} lost"


class Place:
    """Where the session's memory lies: a small file system of its own, which a target can fill, where we may mount one."""

    def __init__(self):
        self.path = os.path.abspath("place")
        os.mkdir(self.path)
        # In a namespace of our own, so that it goes with us, however we end.
        is_separate = os.geteuid() == 0 and ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0 and subprocess.run(["mount", "--make-rprivate", "/"], check=False).returncode == 0
        self.is_mounted = is_separate and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "tmpfs", self.path],
                                                     stderr=subprocess.DEVNULL).returncode == 0
        self.before = os.environ["XHEAP_RUNTIME_DIR"]
        if self.is_mounted:
            os.environ["XHEAP_RUNTIME_DIR"] = self.path

    def end(self):
        os.environ["XHEAP_RUNTIME_DIR"] = self.before
        if self.is_mounted:
            subprocess.run(["umount", "-l", self.path], check=False)


def race(session, seed, user, path):
    """It is attached to, and looks for the descriptor by which its memory becomes shared."""
    process = subprocess.Popen([*user, path, "race", str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    try:
        wait_for("a program", lambda: os.readlink(f"/proc/{process.pid}/exe").endswith("/hostile"))
        attach("update", session.name, "--add-pid", process.pid)
        process.stdin.write(b"x" * 20)
        ready, _, _ = select.select([process.stdout], [], [], 0.05)
        expect(not ready, "a target has got hold of the descriptor of what is shared")
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def one_round(session, seed, place, users):
    """A hostile target of each kind in turn, of each user in turn."""
    kinds = [[kind, str(seed)] for kind in KINDS] + [["cut", str((0, 4096, 1 << 20, -1)[seed % 4])], ["relative", str(seed)], ["race", str(seed)]]
    if place.is_mounted:
        kinds.append(["fill", os.path.join(place.path, "filler")])
    words, (user, path) = kinds[seed % len(kinds)], users[seed // len(kinds) % len(users)]
    if words[0] == "fill":
        user, path = users[0]    # who may write there
    session.ask()
    if words[0] == "race":
        race(session, seed, user, path)
    else:
        hostile = Hostile(session, words, user, path)
        if words[0] in ("cut", "fill"):
            ready, _, _ = select.select([hostile.process.stdout], [], [], LONG_SECONDS)
            expect(ready, f"{words}: nothing is told")
        else:
            hostile.wait(5)
        session.ask()
        session.answered()
        hostile.kill(session)
    session.answered()


def rounds():
    """The logger holds no more after many of them than after a few."""
    count = rounds_of("60")
    place = Place()
    shutil.copy(HOSTILE, "hostile")
    own = os.path.abspath("hostile")
    users = [((), own)]
    if os.geteuid() == 0:
        users.append((("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"), own))
    session = settled = None
    try:
        session = Session("rounds")
        for number in range(count):
            where = f"SEED={SEED + number}"
            try:
                one_round(session, SEED + number, place, users)
            except Failure as failure:
                raise Failure(f"{where}: {failure}") from failure
            session.check_logger(where)
            if number % 20 == 19:
                session.check_counts(where)
            if number == SETTLED_ROUND or (SOAK and number % 100 == 99):
                print(f"  round {number}: {session.held()[0]} descriptors, {session.held()[1]} KiB", flush=True)
            if number == SETTLED_ROUND:
                settled = session.held_alone()
        if settled:
            # What was held for the last ones is given back a moment later on a busy machine.
            wait_for(f"the logger to have no more than {settled[0]} descriptors, as after round {SETTLED_ROUND}", lambda: session.held()[0] <= settled[0])
        last = session.held_alone()
        # A sanitizer keeps what was freed.
        is_sanitized = "libasan" in pathlib.Path(f"/proc/{session.logger}/maps").read_text()
        facts = session.end()
    finally:
        if session:
            session.kill()
        place.end()
    if settled:
        most = settled[1] + (ROUND_BYTES * (count - SETTLED_ROUND) >> 10) + SLACK_KIB
        expect(last[1] <= most or is_sanitized, f"the logger had {settled[1]} KiB after round {SETTLED_ROUND}, {last[1]} KiB at the end, more than {most}")
    left_out = "" if place.is_mounted else "; no tmpfs may be mounted here: nobody filled one"
    left_out += "" if len(users) > 1 else "; not root: no other user"
    return f"{count} rounds, {session.honest[0].asked * CALLS * 4} calls of honest targets, descriptors {settled and settled[0]} and {last[0]}, " \
           f"memory {settled and settled[1]} and {last[1]} KiB, {facts['event_count']} events{left_out}"


def held():
    """Announcing an exec again and again takes no thread of the logger's each time, keeps no other target, and no recording from ending."""
    session = Session("held")
    try:
        hostile = Hostile(session, ["announce", "2000"])
        ready, _, _ = select.select([hostile.process.stdout], [], [], LONG_SECONDS)
        expect(ready and hostile.process.stdout.read(10) == b"announced\n", "it did not come to announce anything")
        pid = next(row["pid"] for row in told("query", session.name)["targets"] if row["pid"] not in session.pids)
        threads = len(os.listdir(f"/proc/{session.logger}/task"))
        expect(threads < 10, f"the logger has {threads} threads")
        # One that ends is removed meanwhile.
        place = pathlib.Path(os.environ["XHEAP_RUNTIME_DIR"])
        before = len(list(place.rglob("region.*.info")))
        xheap("launch", session.name, "--", "/bin/true")
        wait_for("the end of another target", lambda: len(list(place.rglob("region.*.info"))) == before)
        session.ask()
        session.answered()
        session.end()
        expect(is_hostile(pid), "the target ended with the recording")
        os.kill(pid, 9)
        hostile.process.wait()
    finally:
        session.kill()


def as_logger():
    """An exec that is announced as the logger's is not waited for."""
    session = Session("as-logger")
    try:
        before = session.held_alone()[0]
        hostile = Hostile(session, ["announce", "3", str(session.logger)])
        ready, _, _ = select.select([hostile.process.stdout], [], [], LONG_SECONDS)
        expect(ready and hostile.process.stdout.read(10) == b"announced\n", "it did not come to announce anything")
        hostile.kill(session)
        wait_for(f"the logger to have {before} descriptors again", lambda: session.held()[0] <= before)
        session.ask()
        session.answered()
        session.end()
    finally:
        session.kill()


def is_breaking():
    """Whether somebody waits for a lease of ours."""
    own = str(os.getpid())
    return any("BREAKING" in line and own in line.split() for line in open("/proc/locks"))


def leased():
    """The kernel lets nobody trace a process that waits in an exec, nor stops a thread there. The recording ends before the lease does, with many such
    processes, too."""
    for kind, count in (("exec", 1), ("announced", 1), ("exec", 14)):
        end_leased(kind, count)


def end_leased(kind, count):
    session = Session(f"leased-{kind}")
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    shutil.copy("/bin/true", "interpreter")
    pathlib.Path("script").write_text(f"#!{os.path.abspath('interpreter')}\n")
    os.chmod("script", 0o755)
    hostile, pids, file = [], [], os.open("interpreter", os.O_RDONLY)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        hostile += [Hostile(session, [kind, os.path.abspath("script")]) for _ in range(count)]
        wait_for("targets", lambda: len(told("query", session.name)["targets"]) == len(session.pids) + count)
        pids += [row["pid"] for row in told("query", session.name)["targets"] if row["pid"] not in session.pids]
        wait_for("an exec that waits", is_breaking)
        for each in hostile:
            ready, _, _ = select.select([each.process.stdout], [], [], LONG_SECONDS)
            expect(ready and each.process.stdout.read(10) == b"announced\n", "it did not come to announce anything")
        session.ask()
        session.answered()
        session.end()
        expect(is_breaking(), f"{kind}, {count}: the recording ended only after the exec")
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.close(file)
        for each in hostile if pids else []:
            each.process.wait()
        session.kill()


def sampled():
    """What one process of a region sets is no reason for another one to use memory that only sessions that sample have: all is recorded as before."""
    xheap("record", "-q", "-o", "sampled.xht", "--", HOSTILE, "sample", 1000)
    calls = sum(row["action"] == "Alloc" and row["size"] == "777" for row in dump("sampled.xht"))
    expect(calls == 1000, f"of 1000 calls {calls} are recorded")


sys.exit(run_tests(fuzzed, rounds, held, as_logger, leased, sampled))
