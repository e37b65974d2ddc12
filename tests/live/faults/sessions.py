#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sessions when things go wrong: nothing recorded is lost, nobody gets in, the logger survives, and targets run on.

killed     targets, controllers and loggers are killed at random moments
nonsense   clients that do not speak the language
stranger   another user neither sees nor reaches a session
unanswered a program is executed when the logger does not answer any more
contended  a trace that is being written
unplaced   the trace's directory goes, its disk fills
hostile    a target that writes nonsense into what it shares with its logger
hostile_relative  a child that does so, beside its parent
cut        a target cuts the file that it shares with its logger
many       twenty targets at the highest rate: nothing is lost when they wait, and when they drop, what is lost is known
threads    a hundred of them
programs   servers and interpreters, joined as they run
usage: sessions.py [NAME...]        SOAK=1: hundreds of rounds in place of a few
"""
import array
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from live import LONG_SECONDS, PROGRAMS, SOAK, SOURCE, XHEAP, Failure, attach, check_counting, dump, expect, info, is_reading, is_whole, run_tests, runs, told, wait_for, xheap



def query(name):
    return told("query", name)


class Targets:
    """Busy programs that find out when something of theirs is disturbed. They rest a little, or a trace would grow faster than it is read."""

    def __init__(self, count, *words):
        self.all = [subprocess.Popen([os.path.join(PROGRAMS, "attached"), *(words or ("often", "2"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                    for _ in range(count)]
        for target in self.all:
            wait_for("a program", lambda: os.readlink(f"/proc/{target.pid}/exe").endswith("/attached"))

    def pids(self):
        return ",".join(str(target.pid) for target in self.all if target.poll() is None)

    def end(self):
        for target in self.all:
            if target.poll() is None:
                out, _ = target.communicate(timeout=LONG_SECONDS)
                expect(target.returncode == 0 and "bad 0" in out, f"a target ended with {target.returncode}: {out}")


def wait_until_counted(name, threads=2):
    """Until so many threads of each target have made calls that are recorded."""
    def are_counted():
        rows = told("query", name, "-threads")["targets"]
        return all(sum(thread["events"] > 4 for thread in row["thread_rows"]) >= threads for row in rows)
    wait_for("calls of all threads", are_counted)


def name_of(test):
    return f"fault-{test}-{os.getpid()}"


def killed():
    choose, rounds, name = random.Random(1), 200 if SOAK else 8, name_of("killed")
    for number in range(rounds):
        targets = Targets(3)
        trace = f"killed{number}.xht"
        attach("start", name, "-o", trace, "-p", targets.pids())
        wait_until_counted(name)
        time.sleep(choose.uniform(0, 0.3))
        victim = ("target", "controller", "logger")[number % 3]
        if victim == "target":
            targets.all[0].kill()
            targets.all.pop(0).wait()
        elif victim == "controller":
            more = Targets(1)
            controller = subprocess.Popen([XHEAP, "update", name, "--add-pid", more.pids()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(choose.uniform(0, 0.02))
            controller.kill()
            controller.wait()
            targets.all += more.all
        else:
            logger = query(name)["logger_pid"]
            os.kill(logger, signal.SIGKILL)
            wait_for("end of the logger", lambda: not runs(logger))
        time.sleep(choose.uniform(0, 0.2))
        if victim == "logger":
            xheap("recover", trace)
        else:
            expect(query(name)["lost_events"] == 0, "events were lost")
            xheap("stop", name)
        expect(check_counting(trace)[1] >= (4 if victim == "target" else 6), f"round {number}: threads are missing")
        expect(all(runs(target.pid) for target in targets.all), f"round {number}: a target ended with its {victim}")
        targets.end()
        os.unlink(trace)
    return f"{rounds} rounds"


def socket_of(name):
    """The session's socket, by its logger's descriptors."""
    logger = query(name)["logger_pid"]
    inodes = {os.readlink(link)[8:-1] for link in pathlib.Path(f"/proc/{logger}/fd").iterdir()
              if os.path.islink(link) and os.readlink(link).startswith("socket:[")}
    for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[6] in inodes and fields[7].startswith("/"):
            # It is made through the descriptor of its directory.
            folder = os.path.dirname(fields[7]).replace("/self/", f"/{logger}/")
            return os.path.join(os.path.realpath(folder), os.path.basename(fields[7]))
    raise Failure("the session has no socket")


def control_kinds():
    """The numbers of messages, by name."""
    text = (SOURCE / "src/session/control/control.h").read_text()
    names = re.findall(r"^\tCONTROL_(\w+)", re.search(r"enum control_kind \{(.*?)^\};", text, re.S | re.M).group(1), re.M)
    return {name: number for number, name in enumerate(names)}


KINDS = control_kinds()


def nonsense():
    choose, name, targets = random.Random(2), name_of("nonsense"), Targets(2)
    xheap("start", name, "-o", "nonsense.xht", "-p", targets.pids())
    path = socket_of(name)
    for number in range(2000 if SOAK else 200):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(0.05)
        try:
            client.connect(path)
            for _ in range(choose.randrange(4)):
                kind = choose.randrange(20) if choose.random() < 0.7 else choose.randrange(1 << 32)
                if kind == KINDS["STOP"]:  # to stop is no nonsense
                    continue
                size = choose.choice([0, 1, 3, 4, 15, 16, 100, 1144, 1143, 1145, 5000, choose.randrange(1200)])
                text = choose.choice([bytes(size), choose.randbytes(size), b"x" * size])
                pid = choose.choice([0, -1, 1, 2 ** 31 - 1, os.getpid()]).to_bytes(4, "little", signed=True)
                message = kind.to_bytes(4, "little") + (pid if kind != KINDS["ATTACH"] else bytes(4)) + text
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1]))] if choose.random() < 0.2 else []
                client.sendmsg([message], ancillary)
                if choose.random() < 0.3:
                    client.recv(2000)
        except OSError:
            pass  # it hung up on us
        client.close()
    # Many that say nothing.
    silent = []
    for _ in range(100):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(1)
        try:
            client.connect(path)
        except OSError:
            pass
        silent.append(client)
    for client in silent:
        client.close()
    state = query(name)
    expect({row["pid"] for row in state["targets"]} <= {target.pid for target in targets.all}, f"a stranger is recorded: {state}")
    xheap("stop", name)
    expect(is_whole(info("nonsense.xht")), "the trace is cut")
    check_counting("nonsense.xht")
    targets.end()
    return None


def stranger():
    if os.geteuid() != 0:
        return "not root: no other user to be"
    user, name, targets = pwd.getpwnam("nobody"), name_of("stranger"), Targets(1)
    xheap("start", name, "-o", "stranger.xht", "-p", targets.pids())
    path = socket_of(name)
    folder = tempfile.mkdtemp(dir="/tmp", prefix="xheap-stranger.")
    os.chmod(folder, 0o777)
    shutil.copy(XHEAP, os.path.join(folder, "xheap"))
    them = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": folder, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True,
            "env": dict(os.environ, XHEAP_RUNTIME_DIR="")}
    for words in (["query", name], ["stop", name], ["flush", name], ["update", name, "--add-pid", str(os.getpid())], ["launch", name, "true"], ["heap", "-session", name]):
        run = subprocess.run([os.path.join(folder, "xheap"), *words], timeout=LONG_SECONDS, **them)
        expect(run.returncode == 2, f"{words} of another user: {run.returncode} {run.stdout}")
    run = subprocess.run([os.path.join(folder, "xheap"), "sessions"], timeout=LONG_SECONDS, **them)
    expect(name not in run.stdout, f"another user's session is seen: {run.stdout}")
    code = f"import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.connect({path!r})"
    run = subprocess.run(["/usr/bin/python3", "-c", code], timeout=LONG_SECONDS, **them)
    expect("Permission denied" in run.stdout, f"another user connects: {run.stdout}")
    code = "import os, sys\nfor where, _, names in os.walk(sys.argv[1]):\n    for name in names:\n        open(os.path.join(where, name)).read(1)\n        print('read', name)"
    run = subprocess.run(["/usr/bin/python3", "-c", code, os.path.dirname(path)], timeout=LONG_SECONDS, **them)
    expect("read" not in run.stdout, f"another user reads: {run.stdout}")
    expect(query(name)["targets"], "the target is gone")
    xheap("stop", name)
    targets.end()
    place = os.environ.pop("XHEAP_RUNTIME_DIR", "")
    try:
        seen_by_root(name, [os.path.join(folder, "xheap")], them)
    finally:
        os.environ["XHEAP_RUNTIME_DIR"] = place
    shutil.rmtree(folder)
    return None


def seen_by_root(name, command, them):
    """Root sees the sessions of all, and may end them; none of another user takes the place of root's own."""
    run = subprocess.run([*command, "start", name, "-o", "theirs.xht", "-p", "0"], timeout=LONG_SECONDS, **them)
    expect(run.returncode == 0, f"a session of another user: {run.stdout}")
    whole = f"{them['user']}/{name}"
    try:
        xheap("query", name, status=2)
        rows = [row for row in told("sessions", "--all") if row["name"] == whole]
        expect(len(rows) == 1 and rows[0]["alive"] and rows[0]["file"].endswith("/theirs.xht"), f"root sees {rows}")
        expect(query(whole)["logger_pid"] == rows[0]["logger_pid"], "root cannot query it")
        expect("cannot be" in xheap("start", whole, "-p", "0", status=2), "root takes a name of another user's")
        # A way that leads to root's own session is no way to one of theirs.
        xheap("start", name, "-o", "ours.xht", "-p", "0")
        link = next(pathlib.Path("/dev/shm").glob(f"xheap-{them['user']}-*/{name}.session")).with_name(f"{name}lies.session")
        link.symlink_to(os.path.dirname(socket_of(name)))
        xheap("query", f"{them['user']}/{name}lies", status=2)
        link.unlink()
    finally:
        xheap("stop", whole, status=None)
        xheap("stop", name, status=None)
    run = subprocess.run([*command, "query", name], timeout=LONG_SECONDS, **them)
    expect(run.returncode == 2 and "no session" in run.stdout, f"what root has ended: {run.stdout}")


def unanswered():
    """A program is executed while nobody answers, and the logger is killed: the trace says that what was executed is not in it."""
    name = name_of("unanswered")
    xheap("start", name, "-o", "unanswered.xht", "-p", "0")
    shell = subprocess.Popen([XHEAP, "launch", name, "--", "sh", "-c", "read line; /bin/true; exit $?"], stdin=subprocess.PIPE)
    try:
        pid = wait_for("the shell", lambda: [row["pid"] for row in query(name)["targets"] if row["events"]])[0]
        logger = query(name)["logger_pid"]
        os.kill(logger, signal.SIGSTOP)
        shell.stdin.write(b"\n")
        shell.stdin.close()
        # It waits for the answer.
        wait_for("a child that waits", lambda: [child for child in children_of(pid)[1:] if state_of(child) == "S"])
        os.kill(logger, signal.SIGKILL)
        expect(shell.wait(timeout=LONG_SECONDS) == 0, f"the shell ended with {shell.returncode}")
    finally:
        shell.kill()
        shell.wait()
    xheap("recover", "unanswered.xht")
    facts = info("unanswered.xht")
    expect(facts.get("untraced_execs") and not facts["complete"], f"{facts}")


def elsewhere():
    """Without a name, recover takes only a session whose trace belongs into the present folder. It lists others, and changes nothing."""
    name = f"elsewhere_{os.getpid()}"
    os.mkdir("other")
    with subprocess.Popen(["sleep", "100"]) as target:
        try:
            xheap("start", name, "-o", "elsewhere.xht", "-p", str(target.pid))
            logger = query(name)["logger_pid"]
            os.kill(logger, signal.SIGKILL)
            wait_for("end of the logger", lambda: not runs(logger))
            before = pathlib.Path("elsewhere.xht").read_bytes() if os.path.exists("elsewhere.xht") else None
            run = subprocess.run([XHEAP, "recover"], cwd="other", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            after = pathlib.Path("elsewhere.xht").read_bytes() if os.path.exists("elsewhere.xht") else None
            expect(run.returncode == 2 and str(pathlib.Path("elsewhere.xht").absolute()) in run.stdout and before == after, f"in another folder: {run.returncode}: {run.stdout}")
            said = xheap("recover")
            expect("elsewhere.xht: " in said and f"process {logger}, is gone" in said, said)
            expect("nothing to recover" in xheap("recover", status=2), "the session is there again")
        finally:
            target.kill()


# After a line from its input: what nobody is asked about any more.
AFTER_DEATH = {"nothing": "pass", "untraced_execs": "os.execv('/bin/true', ['true'])", "unhooked": f"import ctypes; ctypes.CDLL('{PROGRAMS}/plugin_one.so')"}


def after_death():
    """The logger is killed; then a program executes another one, or loads code: the recovered trace says that it is not complete, and why. With
    `--no-follow` nobody wanted to be asked about execs."""
    for what, act in AFTER_DEATH.items():
        for options in ((), ("--no-follow",)):
            facts = killed_before(act, options)
            missing = [key for key in AFTER_DEATH if key in facts]
            wanted = [what] if what in missing_after(options) else []
            expect(missing == wanted and facts["complete"] == (not wanted), f"{what} {options}: {facts}")


def missing_after(options):
    return {"untraced_execs", "unhooked"} - ({"untraced_execs"} if options else set())


def killed_before(act, options):
    """What is recovered of a program that does this when the logger is gone."""
    name, trace = name_of("dead"), "dead.xht"
    pathlib.Path(trace).unlink(missing_ok=True)
    xheap("start", name, "-o", trace, "-p", "0", *options)
    program = subprocess.Popen([XHEAP, "launch", name, "--", sys.executable, "-c", f"import os, sys; sys.stdin.readline(); {act}"], stdin=subprocess.PIPE)
    try:
        pid = wait_for("the program", lambda: [row["pid"] for row in query(name)["targets"] if row["events"]])[0]
        wait_for("its wait for a line", lambda: is_reading(pid))
        logger = query(name)["logger_pid"]
        os.kill(logger, signal.SIGKILL)
        wait_for("end of the logger", lambda: not runs(logger))
        program.communicate(b"go\n", timeout=LONG_SECONDS)
        expect(program.returncode == 0, f"{act}: status {program.returncode}")
    finally:
        program.kill()
        program.wait()
    xheap("recover", trace)
    return info(trace)


def killed_in_search():
    """The logger is killed while it reads the heap of a process that it has attached to: the blocks are in the trace, or it says that they are not."""
    name, trace, count = name_of("search"), "search.xht", 1_000_000
    pathlib.Path(trace).unlink(missing_ok=True)
    code = f"import sys; blocks = [bytes(2) for _ in range({count})]; print('made', flush=True); sys.stdin.readline()"
    program = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONMALLOC": "malloc"})
    try:
        program.stdout.readline()
        xheap("start", name, "-o", trace, "-p", program.pid)
        logger = query(name)["logger_pid"]
        os.kill(logger, signal.SIGKILL)
        wait_for("end of the logger", lambda: not runs(logger))
    finally:
        program.communicate(b"go\n", timeout=LONG_SECONDS)
    xheap("recover", trace)
    facts = info(trace)
    is_known = facts["events"].get("earlier", 0) >= count
    expect(is_known != ("earlier_missing" in facts) and facts["complete"] == is_known, f"{facts}")


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def contended():
    """Who writes a trace keeps it."""
    targets, name = Targets(1), name_of("contended")
    attach("start", name, "-o", "held.xht", "-p", targets.pids())
    wait_until_counted(name)
    for words in (["record", "-o", "held.xht", "-p", str(os.getpid())], ["record", "-o", "held.xht", "--", "true"], ["start", name + "b", "-o", "held.xht", "-p", "0"]):
        expect("written by another session" in xheap(*words, status=2), f"{words}: not refused for what it is")
    xheap("stop", name)
    expect(is_whole(info("held.xht")) and check_counting("held.xht")[1] >= 2, "the trace is not whole")
    targets.end()


def unplaced():
    targets, name = Targets(2), name_of("unplaced")
    os.mkdir("away")
    attach("start", name, "-o", "away/a.xht", "-p", targets.pids())
    wait_until_counted(name)
    shutil.rmtree("away")
    before = query(name)["events"]
    wait_for("events after that", lambda: query(name)["events"] > before + 100)
    expect(query(name)["alive"], "the logger ended with its directory")
    xheap("flush", name, status=None)
    xheap("stop", name, status=None)
    expect(all(runs(target.pid) for target in targets.all), "a target ended with its trace's directory")
    said = None
    if os.geteuid() == 0:
        os.mkdir("small")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", "small"], stderr=subprocess.PIPE)
        if mounted.returncode == 0:
            try:
                xheap("start", name, "-o", "small/s.xht", "-p", "0")
                busy = [subprocess.Popen([XHEAP, "launch", name, "--", os.path.join(PROGRAMS, "churn"), "2", "400000"], stdout=subprocess.DEVNULL)
                        for _ in range(2)]
                for process in busy:
                    expect(process.wait(timeout=LONG_SECONDS) == 0, "a target ended badly on a full disk")
                expect("No space" in query(name).get("error", ""), f"a full disk is not told: {query(name)}")
                xheap("stop", name, status=None)
                seen = info("small/s.xht")
                expect(seen["event_count"] > 1000, f"nothing is left of before: {seen}")
            finally:
                subprocess.run(["umount", "small"], check=False)
        else:
            said = "no tmpfs may be mounted here: the full disk was left out"
    targets.end()
    return said


def hostile():
    name = name_of("hostile")
    for seed in range(100 if SOAK else 6):
        targets = Targets(1)
        attach("start", name, "-o", "hostile.xht", "-p", targets.pids())
        logger = query(name)["logger_pid"]
        bad = subprocess.Popen([os.path.join(PROGRAMS, "hostile"), "alone", str(seed)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        xheap("update", name, "--add-pid", bad.pid)
        try:
            bad.wait(timeout=15)
        except subprocess.TimeoutExpired:
            bad.kill()
            bad.wait()
        # What has been recorded of the other one does not depend on how long that took.
        wait_for("events of the other target", lambda: any(row["pid"] == targets.all[0].pid and row["events"] > 300 for row in query(name)["targets"]))
        expect(runs(logger), f"seed {seed}: the logger ended")
        state = query(name)
        xheap("stop", name)
        expect(is_whole(info("hostile.xht")), f"seed {seed}: the trace is cut")
        expect(any(row["pid"] == targets.all[0].pid and row["lost_events"] == 0 for row in state["targets"]), f"seed {seed}: {state['targets']}")
        sizes = [int(row["size"]) for row in dump("hostile.xht") if row["pid"] == str(targets.all[0].pid) and row["action"] == "Alloc"]
        expect(len(sizes) > 100, f"seed {seed}: {len(sizes)} events of the other target")
        targets.end()
    return None


def hostile_relative():
    """What a child writes into what it shares with its parent may cost events, and nothing else."""
    for seed in range(100 if SOAK else 6):
        run = subprocess.run([XHEAP, "record", "-q", "-o", "relative.xht", "--", os.path.join(PROGRAMS, "hostile"), "relative", str(seed)],
                             stdout=subprocess.PIPE, text=True, timeout=120)
        expect(run.returncode == 0 and run.stdout == "intact\n", f"seed {seed}: status {run.returncode}: {run.stdout}")
        expect(is_whole(info("relative.xht")), f"seed {seed}: the trace is cut")
    return None


def cut():
    """What is shared with one target is not there any more: it is said, what can be read of it is kept, and the others go on."""
    name = name_of("cut")
    for size in (0, 4096, 1 << 20, -1):
        for is_killed in (False, True):
            targets = Targets(1)
            attach("start", name, "-o", "cut.xht", "-p", targets.pids())
            logger = query(name)["logger_pid"]
            wait_for("events of the only target", lambda: query(name)["targets"][0]["events"] > 300)
            bad = subprocess.Popen([XHEAP, "launch", name, "--", os.path.join(PROGRAMS, "hostile"), "cut", str(size)], stdout=subprocess.PIPE, text=True)
            try:
                expect(bad.stdout.readline() == "cut\n", f"{size}: the file was not cut")
                pid = next(row["pid"] for row in query(name)["targets"] if row["pid"] != targets.all[0].pid)
                if is_killed:
                    os.kill(logger, signal.SIGKILL)
                    wait_for("the logger's end", lambda: not runs(logger))
                else:
                    before = next(row["events"] for row in query(name)["targets"] if row["pid"] == targets.all[0].pid)
                    wait_for("events of the other target", lambda: next(
                        row["events"] for row in query(name)["targets"] if row["pid"] == targets.all[0].pid) > before + 300)
                    expect(runs(logger), f"{size}: the logger ended")
            finally:
                os.kill(pid, signal.SIGKILL)
                bad.communicate()
            if is_killed:
                targets.end()
                xheap("recover", "cut.xht")
            else:
                xheap("stop", name)
            facts = info("cut.xht")
            expect(is_whole(facts), f"{size}: the trace is cut")
            if size >= 0:
                expect(not facts["complete"] and facts.get("damaged_memory"), f"{size}, {is_killed}: not said: {facts}")
            own = sum(row["pid"] == str(targets.all[0].pid) for row in dump("cut.xht"))
            expect(own > 100, f"{size}: {own} events of the other target")
            if not is_killed:
                targets.end()
    return None


def many():
    found = {}
    for mode in ("wait", "drop"):
        name, calls = name_of("many"), 60000
        xheap("start", name, "-o", "many.xht", "-p", "0", "--on-full", mode, "--buffer-size", "64K", "--min-buffers", "2", "--max-buffers", "4" if mode == "drop" else "64")
        started = [subprocess.Popen([XHEAP, "launch", name, "--", os.path.join(PROGRAMS, "churn"), "2", str(calls)], stdout=subprocess.DEVNULL)
                   for _ in range(20)]
        for process in started:
            expect(process.wait(timeout=LONG_SECONDS) == 0, "a target ended badly")
        state = query(name)
        xheap("stop", name)
        seen = info("many.xht")
        expect(len({process["pid"] for process in seen["processes"]}) >= 20, "targets are missing")
        if mode == "wait":
            expect(seen["lost_events"] == 0 and state["lost_events"] == 0, f"{seen['lost_events']} events lost when waiting")
        found[mode] = seen["event_count"], seen["lost_events"], seen["event_count"] + seen["lost_events"]
        os.unlink("many.xht")
    # The same programs make the same calls.
    expect(found["wait"][2] == found["drop"][2], f"events and losses do not add up: {found}")
    return f"wait: {found['wait'][0]} events, 0 lost; drop: {found['drop'][0]} and {found['drop'][1]} lost"


def threads():
    """A hundred threads, more than there are processors for."""
    name, targets = name_of("threads"), Targets(1, "seldom", "100")
    attach("start", name, "-o", "threads.xht", "-p", targets.pids())
    wait_until_counted(name, 100)
    state = query(name)
    xheap("stop", name)
    targets.end()
    expect(state["lost_events"] == 0, f"{state}")
    expect(check_counting("threads.xht")[1] >= 90, "threads are missing")


class Server:
    """A program that others ask, and what asks it."""

    def __init__(self, command, ask, pids=None):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)
        self.ask, self.find = ask, pids

    def pids(self):
        return self.find(self.process.pid) if self.find else [self.process.pid]


def children_of(pid):
    return [pid, *map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def asked(*command):
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONG_SECONDS)
    return run.returncode == 0 and run.stdout


def redis():
    path = os.path.abspath("redis.socket")
    return Server(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", "."],
                  lambda: asked("redis-benchmark", "-s", path, "-n", "20000", "-q", "-t", "set,get,lpush"))


def nginx():
    port, folder = free_port(), os.path.abspath("nginx")
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    pathlib.Path(folder, "index.html").write_text("hello\n" * 100)
    pathlib.Path(folder, "nginx.conf").write_text(
        f"worker_processes 2;\ndaemon off;\npid {folder}/pid;\nerror_log {folder}/errors;\nevents {{}}\n"
        f"http {{ access_log off; gzip on; gzip_types *; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;\n"
        f"uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n")

    def ask():
        ask_one = "import urllib.request\nfor i in range(200):\n    urllib.request.urlopen(urllib.request.Request('http://127.0.0.1:%d/', headers={'Accept-Encoding': 'gzip'})).read()" % port
        return asked("/usr/bin/python3", "-c", ask_one) is not False
    return Server(["nginx", "-p", folder, "-c", folder + "/nginx.conf"], ask, children_of)


BUSY = "import time\nwhile True:\n    x = [bytearray(1000 + i) for i in range(200)]\n    time.sleep(0.02)\n"


def busy_python(before="", *around):
    return Server([*around, "/usr/bin/python3", "-c", before + BUSY], lambda: True, children_of if around else None)


def programs():
    kinds = {"python": lambda: busy_python(),
             "children": lambda: busy_python("import os\nfor i in range(3):\n    if os.fork() == 0: break\n")}
    left_out = []
    for name, make in (("redis-server", redis), ("nginx", nginx)):
        if shutil.which(name):
            kinds[name] = make
        else:
            left_out.append(f"{name} is not installed")
    if os.geteuid() == 0:
        kinds["privileges dropped"] = lambda: busy_python("import os\nos.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\n")
        kinds["namespaces"] = lambda: busy_python("", "unshare", "--pid", "--fork", "--mount", "--mount-proc")
    else:
        left_out.append("not root: privileges cannot be dropped, nor namespaces made")
    servers, name = {kind: make() for kind, make in kinds.items()}, name_of("programs")
    try:
        for kind, server in servers.items():
            wait_for(f"{kind} untraced", lambda: runs(server.process.pid) and server.ask() is not False)
        xheap("start", name, "-o", "programs.xht", "-p", "0")
        joined = {}
        for kind, server in servers.items():
            joined[kind] = [pid for pid in server.pids() if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() != "unshare"]
            xheap("update", name, "--add-pid", ",".join(map(str, joined[kind])))
        for kind, server in servers.items():
            expect(server.ask() is not False, f"{kind} does not answer while it is recorded")
        wait_for("events of each", lambda: all(row["events"] > 100 for row in query(name)["targets"]))
        state = query(name)
        events = {row["pid"]: row["events"] for row in state["targets"]}
        for kind, pids in joined.items():
            expect(all(pid in events for pid in pids), f"{kind} is not recorded: {pids} {events}")
            expect(sum(events[pid] for pid in pids) > 100, f"{kind}: {[events[pid] for pid in pids]} events")
        xheap("stop", name)
        for kind, server in servers.items():
            expect(runs(server.process.pid) and server.ask() is not False, f"{kind} does not go on afterwards")
        seen = info("programs.xht")
        expect(is_whole(seen) and seen["lost_events"] == 0 and seen["truncated_stacks"] == 0, f"{seen['lost_events']} lost, {seen['truncated_stacks']} truncated")
    finally:
        for server in servers.values():
            # What a server has begun is in its group, as long as it does not leave it.
            os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait()
    return f"{len(servers)} kinds, {sum(events.values())} events" + "".join("; " + text for text in left_out)


def stop_what_is_left():
    for name in re.findall(rf"^(fault-\w+-{os.getpid()}):", xheap("sessions", status=None), re.MULTILINE):
        xheap("stop", name, status=None)


try:
    STATUS = run_tests(killed, nonsense, stranger, unanswered, elsewhere, after_death, killed_in_search, contended, unplaced, hostile, hostile_relative, cut, many, threads, programs)
finally:
    stop_what_is_left()
sys.exit(STATUS)
