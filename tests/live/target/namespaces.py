#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets in other namespaces: with pids of their own, other mounts, another root, another user. Each must be traced, whole, by the
pid that we see, and go on as it would alone."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import urllib.request

from live import LONG_SECONDS, PROGRAMS, XHEAP, expect, is_reading, run_tests, wait_for

TRACE = os.path.abspath("namespaces.xht")
OUTER = ["unshare", "--user", "--map-root-user"]
SKIP = 77


def record(*command):
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    return subprocess.run([XHEAP, "record", "-o", TRACE, "--", *map(str, command)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)


def rows(what):
    done = subprocess.run([XHEAP, "dump", TRACE, what, "--format", "json"], stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def events_by_image():
    images = {row["process"]: os.path.basename(row["image"]) for row in rows("--processes")}
    counts = {}
    for row in rows("--events"):
        image = images[row["process"]]
        counts[image] = counts.get(image, 0) + 1
    return counts


def check(done, output, images):
    expect(done.returncode == 0 and done.stdout == output, f"{done.returncode} {done.stdout!r}\n{done.stderr}")
    expect("untraced" not in done.stderr and "hooked" not in done.stderr, f"something ran untraced: {done.stderr}")
    counts = events_by_image()
    for image in images:
        expect(counts.get(image, 0) > 0, f"no events of {image}: {counts}")
    for row in rows("--processes"):
        expect(row["end"] in ("exit", "exec", "signal"), f"end not known: {row}")
    return counts


def test_pids():
    """The children of a shell that is number 1, and one that it kills."""
    done = record(*OUTER, "--pid", "--fork", "--mount-proc", "sh", "-c",
                  f"'{PROGRAMS}/churn'; ('{PROGRAMS}/churn'); sh -c 'kill -9 $$'; echo $$")
    check(done, "ok\nok\n1\n", [os.path.basename(os.path.realpath("/bin/sh")), "churn"])
    processes = rows("--processes")
    expect(all(row["pid"] > 1 for row in processes), f"pids are not ours: {processes}")
    expect(any(row["end"] == "signal" and row["status"] == 9 for row in processes), f"nobody was killed: {processes}")
    images = {(row["pid"], row["exec_generation"]): row for row in processes}
    for (pid, generation), row in images.items():
        before = images.get((pid, generation - 1))
        if before and before["end"] == "exec":
            expect(before["end_ns"] <= row["start_ns"], f"an image ends after its successor begins: {before} {row}")


def test_threads():
    """More threads, one after the other, than there are places: those of dead ones must come free."""
    done = record(*OUTER, "--pid", "--fork", "--mount-proc", f"{PROGRAMS}/threads", "short", "3000")
    check(done, done.stdout, ["threads"])
    expect("found no room" not in done.stderr, f"calls found no room: {done.stderr}")


def test_mounts():
    """Where regions lie, something else lies there."""
    done = record(*OUTER, "--mount", "sh", "-c", f"mount -t tmpfs none /dev/shm && '{PROGRAMS}/churn'")
    check(done, "ok\n", ["churn"])


def libraries(program):
    words = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    return [word for word in words if word.startswith("/")]


def test_root():
    """Behind another root, without /proc and without the region's path; links there mean what they mean inside."""
    root = pathlib.Path("root")
    (root / "usr/bin").mkdir(parents=True)
    (root / "bin").symlink_to("/usr/bin")
    for program in ("/bin/sh", f"{PROGRAMS}/churn"):
        shutil.copy(program, root / "usr/bin" / pathlib.Path(program).name)
        for library in libraries(program):
            (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, root / library[1:])
    done = record(*OUTER, "chroot", root, "/bin/sh", "-c", "/bin/churn; :")
    check(done, "ok\n", ["sh", "churn"])


HOLDING = """#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noipa)) static void hold_block(void) { kept = malloc(4242); __asm__(""); }
int main(void) { for (;;) { hold_block(); usleep(1000); } }
"""


def symbols_of(trace):
    done = subprocess.run([XHEAP, "heap", trace, "-frames", "-size", "4242", "4243", "--format", "json"], stdout=subprocess.PIPE, check=True, text=True, timeout=LONG_SECONDS)
    return {row["frame"].get("symbol") for row in json.loads(done.stdout)["actions"][0]["rows"]}


def see_page(session, text):
    """Wait until the page of a session that records has the text."""
    server = subprocess.Popen([XHEAP, "view", "--no-open", "--session", session], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=os.environ | {"XDG_CACHE_HOME": os.path.abspath("empty")})
    try:
        origin, token = re.search(r"(http://\S+)#token=(\S+)", server.stdout.readline()).groups()
        asked = urllib.request.Request(f"{origin}live?trace=0&seen=0", headers={"X-Xheap-Token": token})
        wait_for(f"{text} in the page", lambda: text in urllib.request.urlopen(asked, timeout=LONG_SECONDS).read())
    finally:
        server.kill()
        server.wait()


def test_names():
    """Names are those of the file that a process behind another root sees, while it runs; xheap symbols keeps them. What lies there in its place later is neither waited for nor believed."""
    root = pathlib.Path("named")
    inside = root / "usr/bin/holding"
    inside.parent.mkdir(parents=True)
    pathlib.Path("holding.c").write_text(HOLDING)
    subprocess.run(["cc", "-g", "-O1", "-o", inside, "holding.c"], check=True)
    for library in libraries(inside):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    # Only there this file is at this path, as in a container.
    os.mkdir("elsewhere")
    script = 'mount --bind "$1" elsewhere && exec chroot elsewhere /usr/bin/holding'
    process = subprocess.Popen([*OUTER, "--mount", "sh", "-c", script, "-", root], stdin=subprocess.DEVNULL)
    try:
        wait_for("the program", lambda: os.readlink(f"/proc/{process.pid}/exe").endswith("/holding"))
        subprocess.run([XHEAP, "record", "-q", "-o", TRACE, "-p", str(process.pid), "--duration", "1s"], check=True, stderr=subprocess.DEVNULL)
        expect(symbols_of(TRACE) == {"hold_block"}, f"while it runs: {symbols_of(TRACE)}")
        subprocess.run([XHEAP, "start", "named", "-q", "-o", "named.xht", "-p", str(process.pid)], check=True, stderr=subprocess.DEVNULL)
        see_page("named", b'"hold_block"')
        subprocess.run([XHEAP, "stop", "named", "-q"], check=True)
        shutil.copy(TRACE, "kept.xht")
        subprocess.run([XHEAP, "symbols", "-noCache", "kept.xht"], check=True, stderr=subprocess.DEVNULL)
        inside.unlink()
        for kind in ("pipe", "another program"):
            if kind == "pipe":
                os.mkfifo(inside)
            else:
                inside.unlink()
                subprocess.run(["cc", "-g", "-O2", "-o", inside, "holding.c"], check=True)
            expect("hold_block" not in symbols_of(TRACE), f"{kind}: {symbols_of(TRACE)}")
    finally:
        process.kill()
        process.wait()
    expect(symbols_of("kept.xht") == {"hold_block"}, f"kept: {symbols_of('kept.xht')}")


def test_descriptors():
    """None of ours stays open, also when the region had to be handed over."""
    script = "exec python3 -c 'import os; print(sorted(map(int, os.listdir(\"/proc/self/fd\")))[:-1])'"
    command = [*OUTER, "--mount", "sh", "-c", f"mount -t tmpfs none /dev/shm && {script}"]
    alone = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    done = record(*command)
    expect(done.stdout == alone.stdout, f"{done.stdout!r}, alone {alone.stdout!r}\n{done.stderr}")


def inner_children():
    return [row for row in rows("--processes") if "forked_from" in row and "inner" in row["image"]]


def on_one_processor(*command):
    """So the logger seldom runs while one of many that come and go does."""
    return ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]


def test_same_pids():
    """Children that are each the first of a pid namespace have the same pid to themselves, and another one to us."""
    for count, command in ((5, [*OUTER, f"{PROGRAMS}/inner", 5]), (100, on_one_processor(*OUTER, f"{PROGRAMS}/inner", 100))):
        check_same_pids(record(*command), count)


def check_same_pids(done, count):
    expect(done.returncode == 0 and done.stdout == f"{count} good\n", f"{done.returncode} {done.stdout!r}\n{done.stderr}")
    children = inner_children()
    expect(len(children) == count and len({row["pid"] for row in children}) == count, f"processes: {children}")
    expect(min(row["pid"] for row in children) > 1, f"pids are not ours: {children}")
    expect(all(row["end"] == "exit" and row["status"] == 0 for row in children), f"ends: {children}")
    events = {}
    for row in rows("--events"):
        events[row["process"]] = events.get(row["process"], 0) + 1
    found = {events.get(row["id"] if "id" in row else row["process"]) for row in children}
    expect(len(found) == 1 and min(found) > 2000, f"events: {events}")


def test_unknown_pids():
    """A logger that runs only when these children have ended does not know their pids: no pid is shown, not the one that they had for themselves."""
    name = f"unknown{os.getpid()}"
    environment = {**os.environ, "XHEAP_RUNTIME_DIR": os.path.abspath("runtime")}
    os.mkdir("runtime", 0o700)

    def xheap(*words):
        return subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, env=environment).stdout

    pathlib.Path(TRACE).unlink(missing_ok=True)
    xheap("start", name, "-o", TRACE)
    target = subprocess.Popen([XHEAP, "launch", name, "--", *OUTER, f"{PROGRAMS}/inner", "5", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=environment)
    logger = json.loads(xheap("query", name, "--format", "json"))["logger_pid"]
    try:
        # Its libraries are loaded, and so hooked, when it reads its input: the loader asks the logger, which does not answer any more soon.
        wait_for("inner that reads its input", lambda: any(row["command"] == f"{PROGRAMS}/inner 5 wait" and is_reading(row["pid"])
                                                           for row in json.loads(xheap("query", name, "--format", "json"))["targets"]))
        os.kill(logger, signal.SIGSTOP)
        said = target.communicate("go\n", timeout=LONG_SECONDS)[0]
    finally:
        os.kill(logger, signal.SIGCONT)
        target.kill()
        xheap("stop", name)
    children = inner_children()
    expect(said == "5 good\n" and len(children) == 5 and not any("pid" in row for row in children), f"{said!r}: {children}")
    text = subprocess.run([XHEAP, "info", TRACE], stdout=subprocess.PIPE, check=True, text=True).stdout
    expect(sum(line.split()[1:2] == ["-"] for line in text.splitlines()) == 5, f"info: {text}")


def test_proc_of_others():
    """Without a /proc of its own, the command says so, and runs nothing."""
    for how, reason in ((["--pid", "--fork"], "another pid namespace"), (["--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"], "not mounted")):
        done = subprocess.run([*OUTER, *how, XHEAP, "record", "-o", TRACE, "--", "echo", "ran"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
        expect(done.returncode == 2 and not done.stdout and reason in done.stderr, f"{done.returncode} {done.stdout!r}: {done.stderr}")


allowed = subprocess.run([*OUTER, "--pid", "--fork", "--mount-proc", "true"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
if allowed.returncode:
    print(f"no namespaces here: {allowed.stderr.strip()}")
    sys.exit(SKIP)
sys.exit(run_tests(test_pids, test_threads, test_mounts, test_root, test_names, test_descriptors, test_same_pids, test_unknown_pids, test_proc_of_others))
