#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attaches again and again to programs that never rest: no block from before is missing, whatever else the machine does.

leaking  3 threads, whose blocks tell which of them were asked for before
crowded  the same with 16 threads
server   mariadbd with clients: no reason is told why a block is missing, and no block is given back that is not known

usage: repeated.py [TEST...]      SOAK=1: a thousand rounds of the first, 200 of the others, with four busy loops per processor beside them
ROUNDS, LOOPS: other numbers of rounds, and of busy loops per processor"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from live import PROGRAMS, SOAK, Failure, attach, dump, expect, info, run_tests, told, wait_for

LEAKING = os.path.join(PROGRAMS, "leaking")
LEAK_FIRST, LEAK_STEP = 50000, 16
LEAKED_BYTES = 20 << 20
LOOPS = int(os.environ.get("LOOPS", 4 if SOAK else 0)) * len(os.sched_getaffinity(0))


def rounds(soak, check):
    return int(os.environ.get("ROUNDS", soak if SOAK else check))


class Loops:
    """Programs that take all the processors' time, until they are ended."""

    def __enter__(self):
        self.all = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(LOOPS)]

    def __exit__(self, *_):
        for loop in self.all:
            loop.kill()
            loop.wait()


def mapped_bytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def check_leaks(trace, threads):
    """The number of a thread's first leaked block that was recorded is how many it had leaked before."""
    first, found = {}, 0
    for row in dump(trace, "-allocations", "-size", LEAK_FIRST, "max"):
        number, thread = divmod(int(row["size"]) - LEAK_FIRST, LEAK_STEP)
        if row["birth_ns"]:
            first[thread] = min(first.get(thread, number), number)
        else:
            found += row["end_kind"] in ("exit", "open")
    expect(len(first) == threads, f"only {sorted(first)} of {threads} threads leaked while they were recorded")
    expect(found == sum(first.values()), f"{found} of {sum(first.values())} earlier leaked blocks")
    return found


def record(pid, trace, duration="500ms"):
    """How long the reading took, in ms."""
    said = attach("record", "-o", trace, "-p", pid, "--duration", duration)
    expect("not all blocks" not in said and info(trace)["complete"], said)
    return float(said.split(" from before the attach (")[1].split(") in ")[1].split()[0])


def leak_round(threads):
    process = subprocess.Popen([LEAKING, str(1 << 40), str(threads), "500"], stdout=subprocess.DEVNULL)
    try:
        at_first = mapped_bytes(process.pid)
        wait_for("leaks", lambda: mapped_bytes(process.pid) > at_first + (threads << 26) + LEAKED_BYTES, 60)
        # Until each thread has leaked something more, which a machine that is busy may take its time for.
        for duration in ("500ms", "2s", "10s"):
            took_ms = record(process.pid, "leaking.xht", duration)
            seen = {int(row["tid"]) for row in dump("leaking.xht", "-allocations", "-size", LEAK_FIRST, "max") if row["birth_ns"]}
            if len(seen) == threads:
                break
    finally:
        process.kill()
        process.wait()
    return check_leaks("leaking.xht", threads), took_ms


def leak_rounds(count, threads):
    found, took = [], []
    with Loops():
        for number in range(count):
            if SOAK and number:
                print(f"{number} of {count} attaches, {sum(found)} blocks, 0 missing", flush=True)
            try:
                blocks, took_ms = leak_round(threads)
            except Failure as failure:
                raise Failure(f"round {number} of {count}: {failure}")
            found.append(blocks)
            took.append(took_ms)
    return f"{count} attaches, {sum(found)} blocks, 0 missing, read within {max(took):.0f} ms at most, {sorted(took)[len(took) // 2]:.0f} ms as a rule"


def leaking():
    return leak_rounds(rounds(1000, 3), 3)


def crowded():
    return leak_rounds(rounds(200, 1), 16)


QUERIES = "".join(f"create or replace table t{i} (a int, b text); insert into t{i} select seq, repeat('x', seq % 500) from seq_1_to_300;"
                  f"select b, count(*) from t{i} group by b order by 2 limit 3;" for i in range(4))


def server():
    if not SOAK and "server" not in sys.argv:
        return "left out: SOAK=1"
    if not shutil.which("mariadbd"):
        return "left out: no mariadbd"
    folder = tempfile.mkdtemp(prefix="xheap-attaches.")
    os.chmod(folder, 0o755)
    for name in ("data", "run"):
        os.mkdir(os.path.join(folder, name))
    socket, log = os.path.join(folder, "run/socket"), open(os.path.join(folder, "log"), "w")
    own = ["--no-defaults", f"--datadir={folder}/data"]
    root = ["--user=root"] if os.geteuid() == 0 else []
    subprocess.run(["mariadb-install-db", *own, *root, "--auth-root-authentication-method=normal"], stdout=log, stderr=log, check=True, timeout=300)
    process = subprocess.Popen(["mariadbd", *own, *root, f"--socket={socket}", "--skip-networking", f"--pid-file={folder}/run/pid"], stdout=log, stderr=log)
    client = ["mariadb", "--no-defaults", "-u", "root", f"--socket={socket}"]

    def asks(text):
        return subprocess.run([*client, "-e", text], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).returncode == 0
    clients, took, earlier = [], [], 0
    try:
        wait_for("server", lambda: asks("create database if not exists test"), 120)
        clients = [subprocess.Popen(["sh", "-c", f"while :; do {' '.join(client)} -D {name} -e \"{QUERIES}\" >/dev/null 2>&1 || exit; done"],
                                    start_new_session=True) for name in ("test",) * 4]
        with Loops():
            for number in range(rounds(200, 2)):
                took.append(record(process.pid, "server.xht"))
                answer = told("heap", "server.xht", "-totals")
                expect(not answer["unknown_frees"] and not answer["order_conflicts"],
                       f"round {number}: {answer['unknown_frees']} unknown frees, {answer['order_conflicts']} conflicts")
                expect(answer["totals"]["total_count"] > 0 and answer["earlier"]["count"] > 1000, f"round {number}: {answer['totals']}")
                earlier += answer["earlier"]["count"]
    finally:
        for one in clients:
            os.killpg(one.pid, 9)
            one.wait()
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    return f"{len(took)} attaches, {earlier} blocks, 0 missing, read within {max(took):.0f} ms at most, {sorted(took)[len(took) // 2]:.0f} ms as a rule"


sys.exit(run_tests(leaking, crowded, server))
