#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `xheap leaks` finds is what LeakSanitizer finds, by stack, blocks and bytes: in a program of its own for each way to lose a block or to keep it.

usage: leaks.py [TEST...]        SOAK=1: each of them in C and in C++, optimized and not
"""
import collections
import ctypes
import fcntl
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import time

from live import PROGRAMS, SOAK, SOURCE, XHEAP, expect, run_tests, stop_session, told, xheap

CODE = SOURCE / "tests/live/programs/leaking.cc"
TRIALS = re.findall(r"^TRIAL\((\w+)\)", CODE.read_text(), re.MULTILINE)
# What LeakSanitizer adds to the blocks and bytes of a trial, and why.
DIFFERENCES = {"by_mapping": (1, 100),     # memory that a program has mapped is no root there
               "nothing_in_it": (0, 1),    # a block of no bytes has one
               "child": (1, 130)}          # what a child inherited is counted in the parent and in the child


def build(name="leaking", *options):
    subprocess.run(["c++", "-w", "-g", "-pthread", "-fno-builtin", *options, "-o", name, CODE], check=True)
    return f"./{name}"


def sanitizer():
    library = subprocess.run(["gcc", "-print-file-name=liblsan.so"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    if not os.path.isabs(library):
        print("liblsan.so is not here")
        sys.exit(77)
    return library


def user_functions(names):
    """The functions of the program itself, from the one that allocates on."""
    return tuple(name for name in names if re.fullmatch(r"(own|trial)_\w+", name))


def of_sanitizer(program, trial, library):
    """What it reports: by state and functions, blocks and bytes."""
    run = subprocess.run([program, trial], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "LD_PRELOAD": library, "LSAN_OPTIONS": "fast_unwind_on_malloc=0:use_unaligned=0:report_objects=0"})
    expect("fatal" not in run.stderr.lower(), f"{trial}: {run.stderr}")
    found = collections.Counter(), collections.Counter()
    for state, size, count, frames in re.findall(r"(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:\n((?:    #.*\n)*)", run.stderr):
        key = ("lost" if state == "Direct" else "indirect", user_functions(re.findall(r" in (\S+)", frames)))
        found[0][key] += int(count)
        found[1][key] += int(size)
    return found


def of_answer(answer):
    found = collections.Counter(), collections.Counter()
    for process in answer["processes"]:
        for row in process["rows"]:
            if row["state"] in ("lost", "indirect"):
                key = (row["state"], user_functions(frame.get("symbol", "") for frame in row["stack"]))
                found[0][key] += row["count"]
                found[1][key] += row["bytes"]
    return found


def look(*words):
    """The answer of --at-end, and its status."""
    run = subprocess.run([XHEAP, "leaks", "--at-end", "-format", "json", "-top", "1000", "--", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode in (0, 1), f"{words}: status {run.returncode}: {run.stderr}")
    return json.loads(run.stdout[run.stdout.index("{"):]), run.returncode


def as_sanitizer():
    """--at-end finds the same as LeakSanitizer in the same program."""
    library = sanitizer()
    lost, wrong = 0, []
    for options in (("-O0",), ("-O2",)) if SOAK else (("-O1",),):
        program = build("leaking", *options)
        for trial in TRIALS:
            answer, status = look(program, trial)
            ours, theirs = of_answer(answer), of_sanitizer(program, trial, library)
            for key in [("lost", ("own_block", f"trial_{trial}"))] if trial in DIFFERENCES else []:
                for numbers, more in zip(theirs, DIFFERENCES[trial]):
                    numbers[key] -= more
            if [+numbers for numbers in ours] != [+numbers for numbers in theirs]:
                wrong.append(f"{trial} {options}: LeakSanitizer has {theirs}, and this answer {ours}")
            expect(status == (1 if ours[0] else 0), f"{trial}: status {status} with {ours}")
            lost += bool(ours[0])
    expect(not wrong, "\n".join(wrong))
    expect(lost >= 15, f"only {lost} of the programs lose anything")
    return f"{len(TRIALS)} programs, {lost} with lost blocks"


def cores():
    """A core has the same answer, where it has the memory; damaged ones, and those of others, are refused or read as far as they go."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if not pattern.startswith("core") or "/" in pattern:
        print("cores do not go to the directory of the process: /proc/sys/kernel/core_pattern")
        sys.exit(77)
    program = build("crashing", "-DCRASHING")
    for trial in ("tree", "some", "by_inside", "of_live_thread", "large"):
        subprocess.run(["sh", "-c", "ulimit -c unlimited && exec \"$@\"", "sh", XHEAP, "record", "-q", "-o", f"{trial}.xht", program, trial],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = sorted(pathlib.Path(".").glob("core*"))
        expect(found, f"{trial}: no core")
        found[-1].rename(f"{trial}.core")
        at_end, _ = look(build(), trial)
        ours, theirs = of_answer(answer_of(f"{trial}.core", "-trace", f"{trial}.xht")), of_answer({"processes": at_end["processes"][-1:]})
        expect(ours == theirs, f"{trial}: of the core {ours}, at the end {theirs}")
    for words, said in ((("tree.core", "-trace", "some.xht"), "is of"), (("tree.core",), "needs the trace"), (("tree.core", "some.core", "-trace", "tree.xht"), "one CORE"),
                        (("tree.xht", "-trace", "tree.xht"), "no core"), (("nothing.core", "-trace", "tree.xht"), "nothing.core"), ((), "missing")):
        reason = xheap("leaks", *words, status=2)
        expect(said in reason, f"{words} is refused by {reason}, not by {said}")
    whole, chance = pathlib.Path("tree.core").read_bytes(), random.Random(34)
    statuses = collections.Counter()
    # A table that says more than the file has: as of a file that was cut, none of it is read for hours.
    heads, count = struct.unpack_from("<Q", whole, 32)[0], struct.unpack_from("<H", whole, 56)[0]
    large = bytearray(whole)
    for head in (heads + 56 * i for i in range(count)):
        if struct.unpack_from("<II", large, head) == (1, 6):
            struct.pack_into("<QQ", large, head + 32, 1 << 44, 1 << 44)
    pathlib.Path("large.core").write_bytes(large)
    answer_of("large.core", "-trace", "tree.xht")
    for i in range(40):
        changed = bytearray(whole)
        if i % 3 == 0:
            del changed[chance.randrange(64, len(changed)):]
        for _ in range(1 + i % 7):
            at = chance.randrange(18, 6000 if i % 2 else min(len(changed), 600))
            if at + 8 < len(changed):
                changed[at:at + 8] = chance.randbytes(8)
        pathlib.Path("changed.core").write_bytes(changed)
        run = subprocess.run([XHEAP, "leaks", "changed.core", "-trace", "tree.xht", "-noIndex"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=100)
        expect(run.returncode in (0, 1, 2), f"core {i}: status {run.returncode}: {run.stderr}")
        statuses[run.returncode] += 1
    return f"statuses {dict(statuses)}"


def commands():
    """What cannot be looked at is said, with status 2; a status of the command is told; nothing is left behind; the trace stays where it is asked for."""
    program = build()
    for words, said in ((("--", "./no_such_program"), "no_such_program"), ((), "command is missing"), (("--", "sh", "-c", "kill -9 $$"), "did not end by itself"),
                        (("-p", "1", "--", program, "tree"), "leave out -p"), (("-session", "some", "--", program, "tree"), "leave out -p")):
        reason = xheap("leaks", "--at-end", *words, status=2)
        expect(said in reason, f"{words} is refused by {reason}, not by {said}")
    expect("there is no session" in xheap("leaks", "-session", "x" * 1000, status=2), "a long name of no session")
    # A process whose core cannot be written ends all the same, at once.
    os.makedirs("gone", exist_ok=True)
    began = os.times().elapsed
    relative = xheap("leaks", "--at-end", "--", program, "tree", status=2, env={**os.environ, "TMPDIR": "gone"})
    expect("not an absolute path" in relative, relative)
    reason = xheap("leaks", "--at-end", "--", "sh", "-c", f"rm -r gone/xheap-leaks.*; exec {program} tree", status=2, env={**os.environ, "TMPDIR": os.path.abspath("gone")})
    expect("cannot make" in reason and os.times().elapsed - began < 50, f"{os.times().elapsed - began} s: {reason}")
    said = xheap("leaks", "--at-end", "-trace", "kept.xht", "--", "sh", "-c", f"{program} tree; exit 7", status=1)
    expect("ended with status 7" in said and "trial_tree" in said, said)
    expect(len(told("info", "kept.xht")["processes"]) >= 2, "the trace has the processes")
    left = [name for name in os.listdir(os.environ.get("TMPDIR", "/tmp")) if name.startswith("xheap-leaks.") and os.stat(os.path.join(os.environ.get("TMPDIR", "/tmp"), name)).st_uid == os.getuid()]
    expect(not left or os.environ.get("TMPDIR") is None, f"left behind: {left}")
    shown = xheap("leaks", "--at-end", "-size", "500", "1K", "--", program, "tree", status=0)
    expect("trial_tree" not in shown, shown)
    for range, status in ((("0", "3600s"), 1), (("3600s", "7200s"), 0)):
        shown = xheap("leaks", "--at-end", "-range", *range, "--", program, "tree", status=status)
        expect("allocated from" in shown and ("trial_tree" in shown) == bool(status), shown)
    # All rows together, and what is left out, are the sums of all blocks but the reachable ones.
    answer = look(program, "tree")[0]["processes"][0]
    shown = xheap("leaks", "--at-end", "-top", "1", "--", program, "tree", status=1)
    rows = answer["rows"]
    if len(rows) > 1:
        left = sum(row["count"] for row in rows[1:])
        expect(re.search(rf"^[.][.][.] and {len(rows) - 1} more stacks? with .* in {left:,} blocks?: -top {len(rows)}$", shown, re.MULTILINE), shown)
    expect("reachable, in none of the rows" in shown and len(rows) > 1, shown)
    for words in (("-closed",), ("-requireFreeFrames", "main")):
        reason = xheap("leaks", "--at-end", *words, "--", program, "tree", status=2)
        expect("none of these is lost" in reason, reason)
    for trial, status in (("circle", 1), ("tree", 1), ("by_list", 0)):
        shown = xheap("leaks", "--at-end", "--", program, trial, status=status)
        expect(("\n  lost in circles: " in shown) == (trial == "circle"), shown)


SERVER = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
struct node { struct node *next; char room[56]; };
static struct node *cache[1024];
static volatile unsigned long turns;
OUT struct node *own_cached(void) { return calloc(1, sizeof(struct node)); }
OUT void own_lost(void) { memset(malloc(321), 0, 321); __asm__ volatile(""); }
static void *churn(void *number)
{
	unsigned long mine = (unsigned long)number;
	for (unsigned state = (unsigned)mine; ; turns++) {
		state = state * 1664525 + 1013904223;
		unsigned i = (state >> 8 & 255) + 256 * (unsigned)mine;
		struct node *one = own_cached();
		one->next = cache[i];
		while (one && state % 7 == 0) { struct node *next = one->next; free(one); one = next; }
		cache[i] = one;
		/* A list that moves while it is the only place of its blocks. */
		void **list = malloc(8);
		list[0] = own_cached();
		list = realloc(list, state % 5000 + 8);
		free(list[0]);
		free(list);
		if (state % 4 == 0) usleep(3000);
	}
	return NULL;
}
int main(void)
{
	char byte;
	pthread_t thread;
	for (unsigned long i = 0; i < 4; i++) pthread_create(&thread, NULL, churn, (void *)i);
	while (read(0, &byte, 1) == 1) { if (byte == 'l') own_lost(); if (write(1, &byte, 1) != 1) return 1; }
	return 0;
}
"""


def answer_of(*words):
    """Lost blocks or not."""
    run = subprocess.run([XHEAP, "leaks", *map(str, words), "-format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode in (0, 1), f"leaks {words}: status {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


def running():
    """Of a busy server, nothing is named but what it loses, at once; it goes on, and no call is lost."""
    pathlib.Path("server.c").write_text(SERVER)
    subprocess.run(["cc", "-O1", "-w", "-g", "-fno-builtin", "-pthread", "-o", "server", "server.c"], check=True)
    with subprocess.Popen(["./server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            def ask(letter):
                server.stdin.write(letter)
                server.stdin.flush()
                expect(server.stdout.read(1) == letter, "the server does not answer")
            unknown = xheap("leaks", "-p", server.pid, status=2)
            expect("is recorded by no session" in unknown, unknown)
            xheap("start", "lost", "-p", server.pid, "-o", "server.xht")
            pauses, seeded = [], 0
            for i in range(1000 if SOAK else 20):
                if i % 4 == 1:
                    ask(b"l")
                    seeded += 1
                answer = answer_of(*(("-p", server.pid) if i % 2 else ("-session", "lost")))["processes"][0]
                lost = [(row["count"], user_functions(frame.get("symbol", "") for frame in row["stack"])) for row in answer["rows"] if row["state"] in ("lost", "indirect") and not row["earlier"]]
                # Dead words of stacks, registers and blocks that nobody has written to may have the addresses of some.
                expect({functions for _, functions in lost} <= {("own_lost",)} and (seeded > 2) <= sum(count for count, _ in lost) <= seeded, f"look {i}, {seeded} are lost: {lost}")
                pauses.append(answer["pause_us"])
            stop_session("lost")
            ask(b"x")
        finally:
            stop_session("lost")
            server.kill()
    facts = told("info", "server.xht")
    expect(facts["lost_events"] == 0, f"{facts['lost_events']} events are lost")
    return f"{len(pauses)} looks, median pause {sorted(pauses)[len(pauses) // 2] / 1000:.1f} ms"


LARGE = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
enum { THREADS = 4, BLOCKS = 500, SLOTS = 2 << 20, BUSY_BYTES = 100 << 20 };
static void **slots;
OUT void *own_moved(void) { return calloc(1, 40); }
OUT void own_lost(void) { memset(malloc(321), 0, 321); __asm__ volatile(""); }
/* Each block has one pointer to it, which moves on and on through 16 MiB. */
static void *move(void *number)
{
	void **mine = slots + SLOTS * (unsigned long)number;
	static unsigned where[THREADS][BLOCKS];
	unsigned *at = where[(unsigned long)number], state = (unsigned)(unsigned long)number + 1;
	for (unsigned i = 0; i < BLOCKS; i++) mine[at[i] = i] = own_moved();
	for (;;) {
		state = state * 1664525 + 1013904223;
		unsigned i = (state >> 8) % BLOCKS, to = (state >> 4) % SLOTS;
		if (mine[to]) continue;
		mine[to] = mine[at[i]];
		mine[at[i]] = NULL;
		at[i] = to;
		if (state % 8 == 0) usleep(1000);
	}
	return NULL;
}
static void *write_on(void *memory) { for (int i = 0;; i++) memset(memory, i, BUSY_BYTES); return NULL; }
static void forbid_watching(void)
{
	struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {4, filter};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(3);
}
int main(int count, char **words)
{
	char byte;
	pthread_t thread;
	if (count > 1) forbid_watching();
	slots = malloc(THREADS * SLOTS * sizeof(*slots));
	memset(slots, 0, THREADS * SLOTS * sizeof(*slots));
	for (unsigned long i = 0; i < THREADS; i++) pthread_create(&thread, NULL, move, (void *)i);
	while (read(0, &byte, 1) == 1) {
		if (byte == 'l') own_lost();
		for (int i = 0; byte == 'b' && i < 2; i++) pthread_create(&thread, NULL, write_on, malloc(BUSY_BYTES));
		if (write(1, &byte, 1) != 1) return 1;
	}
	return 0;
}
"""


def kernel_watches():
    """Whether the kernel tells which pages a process writes to."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(323, 0o2004001)
    if fd < 0:
        return False
    try:
        fcntl.ioctl(fd, 0xC018AA3F, struct.pack("QQQ", 0xAA, 1 << 13 | 1 << 15, 0))
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def large():
    """A large server is copied while it runs: only what it loses is named, although nothing else stays where it is. What would be paused for long is, with -stop only."""
    pathlib.Path("large.c").write_text(LARGE)
    subprocess.run(["cc", "-O1", "-w", "-g", "-fno-builtin", "-pthread", "-o", "large", "large.c"], check=True)
    pauses, refused, is_watched = [], 0, kernel_watches()
    for words in ((), ("closed",)):
        with subprocess.Popen(["./large", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            try:
                def ask(letter):
                    server.stdin.write(letter)
                    server.stdin.flush()
                    expect(server.stdout.read(1) == letter, "the server does not answer")
                ask(b"x")
                xheap("start", "large", "-p", server.pid, "-o", "large.xht")
                for _ in range(8):
                    ask(b"l")
                files = os.listdir(f"/proc/{server.pid}/fd")
                for _ in range((100 if SOAK else 4) if is_watched and not words else 0):
                    process = answer_of("-p", server.pid)["processes"][0]
                    lost = [(row["count"], user_functions(frame.get("symbol", "") for frame in row["stack"])) for row in process["rows"] if row["state"] in ("lost", "indirect") and not row["earlier"]]
                    expect({functions for _, functions in lost} == {("own_lost",)} and 5 <= lost[0][0] <= 8, f"8 are lost: {lost}")
                    expect(process["sums"]["lost"]["count"] == lost[0][0], f"{process['sums']}, of which {lost} came before")
                    pauses.append(process["pause_us"])
                ask(b"b")
                # On a busy machine its threads may have no time to write much.
                run = subprocess.run([XHEAP, "leaks", "-p", str(server.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if run.returncode == 1 and is_watched and not words:
                    expect("own_lost" in run.stdout and "own_moved" not in run.stdout, run.stdout)
                else:
                    refused += run.returncode == 2
                    expect(run.returncode == 2 and "-stop allows it" in run.stdout and ("seccomp filter" in run.stdout if words else not is_watched or "has written" in run.stdout), run.stdout)
                shown = xheap("leaks", "-p", server.pid, "-stop", status=1)
                expect("own_lost" in shown and "were paused for" in shown and "own_moved" not in shown, shown)
                ask(b"x")
                expect(os.listdir(f"/proc/{server.pid}/fd") == files, "files are left open in the server")
                expect(" uw " not in pathlib.Path(f"/proc/{server.pid}/smaps").read_text(), "the server's writes are still watched")
            finally:
                stop_session("large")
                server.kill()
    return f"{len(pauses)} looks, {refused} of 2 refused, " + (f"median pause {sorted(pauses)[len(pauses) // 2] / 1000:.1f} ms" if pauses else "the kernel does not tell what is written")


def together():
    """Looks at one process that come at once come one after the other, and each has the right answer. One that waits when the session ends says so."""
    if not kernel_watches():
        print("the kernel does not tell what is written")
        sys.exit(77)
    pathlib.Path("large.c").write_text(LARGE)
    subprocess.run(["cc", "-O1", "-w", "-g", "-fno-builtin", "-pthread", "-o", "large", "large.c"], check=True)
    with subprocess.Popen(["./large"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            server.stdin.write(b"x")
            server.stdin.flush()
            server.stdout.read(1)
            xheap("start", "together", "-p", server.pid, "-o", "together.xht")
            runs = [subprocess.Popen([XHEAP, "leaks", "-p", str(server.pid), "-format", "json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(4)]
            for run in runs:
                shown = run.communicate(timeout=100)[0]
                # On a busy machine much may be written between two rounds.
                if run.returncode == 2 and "-stop allows it" in shown:
                    continue
                expect(run.returncode in (0, 1), f"status {run.returncode}: {shown}")
                sums = json.loads(shown)["processes"][0]["sums"]
                # A block or two may be from before the recording.
                expect(sums["lost"]["count"] + sums["indirect"]["count"] <= 3, sums)
            runs = [subprocess.Popen([XHEAP, "leaks", "-p", str(server.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(4)]
            stop_session("together")
            said = [run.communicate(timeout=100)[1] for run in runs]
            expect(all(run.returncode in (0, 1, 2) and bool(text) == (run.returncode == 2) for run, text in zip(runs, said)), said)
        finally:
            stop_session("together")
            server.kill()


HIDING = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
enum { BLOCKS = 20 };
static volatile uintptr_t hidden[2][BLOCKS];
static void *volatile shown[BLOCKS];
OUT void own_lost(void) { memset(malloc(321), 0, 321); }
OUT void own_hidden(int kind, int i) { void *block = calloc(1, 700); hidden[kind][i] = ~(uintptr_t)block; }
OUT void own_clean(void) { volatile char room[8000]; memset((char *)room, 0, sizeof(room)); }
int main(int count, char **words)
{
	char byte;
	for (int size = 16; size < 1000; size += 16) free(calloc(1, size));
	while (read(0, &byte, 1) == 1) {
		for (int i = 0; i < BLOCKS; i++) {
			if (byte == 'l') own_lost();
			if (byte == 'h') { own_hidden(0, i); own_hidden(1, i); }
			if (byte == 's') shown[i] = (void *)~hidden[0][i];
			if (byte == 'f') free((void *)~hidden[1][i]);
		}
		own_clean();
		if (byte == 'x') execv(words[0], words);
		if (write(1, &byte, 1) != 1) return 1;
	}
	return 0;
}
"""


def several():
    """Several looks say since when a block is lost. What is reachable later, or freed, is accused no more. Looks end with the process, or an interrupt, and the answer is that of the last one."""
    pathlib.Path("hiding.c").write_text(HIDING)
    subprocess.run(["cc", "-O1", "-w", "-g", "-fno-builtin", "-o", "hiding", "hiding.c"], check=True)
    os.makedirs("copies", exist_ok=True)
    with subprocess.Popen(["./hiding"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        def ask(letters):
            for letter in letters:
                server.stdin.write(letter.encode())
                server.stdin.flush()
                expect(server.stdout.read(1) == letter.encode(), "the server does not answer")

        def between(count, *steps, words=("-p", server.pid), format=None, every="1s", before=()):
            """Looks, with steps between them; the text, what is said beside it, and the status."""
            run = subprocess.Popen([*before, XHEAP, "leaks", *map(str, words), "-looks", str(count), "-every", every if steps else "100ms", *(["-format", format] if format else [])],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": os.path.abspath("copies")})
            told = []
            for step in steps:
                told.append(run.stderr.readline())
                expect(told[-1].startswith(f"xheap: look {len(told)} of {count}: "), "".join(told))
                step(run) if callable(step) else ask(step)
            shown = run.communicate(timeout=100)[0]
            expect(os.listdir("copies") == [], f"left: {os.listdir('copies')}")
            return shown, run.returncode

        def row(shown, function):
            """What a text has of a stack: its blocks, and the line beneath."""
            found = re.search(r"in (\d+) blocks?, lost, .*\n  (lost since .*)\n    \w+!" + function, shown)
            expect(found, f"{function}: {shown}")
            return int(found[1]), found[2]

        try:
            xheap("start", "hiding", "-p", server.pid, "-o", "hiding.xht")
            ask("lh")
            for words, said in ((("hiding.xht", "-trace", "hiding.xht", "-looks", "2"), "processes that run"), (("--at-end", "-looks", "2", "--", "true"), "processes that run"),
                                (("-p", server.pid, "-every", "1s"), "-every needs"), (("-p", server.pid, "-looks", "0"), "-looks")):
                reason = xheap("leaks", *words, status=2)
                expect(said in reason, f"{words} is refused by {reason}, not by {said}")
            # Stale words may keep one or two.
            shown, status = between(3, "s", "fl")
            blocks, since = row(shown, "own_lost")
            found = re.fullmatch(r"lost since look 1 of 3, for [\d.]+ s: (\d+) blocks; the others since later ones", since)
            expect(status == 1 and 38 <= blocks <= 40 and found and 18 <= int(found[1]) <= 20, f"{status}: {shown}")
            for words in ("reachable now", "freed since"):
                cleared = re.search(rf"  (\d+) blocks, .*, that an earlier look found lost: {words}, and not accused\n", shown)
                expect(cleared and 18 <= int(cleared[1]) <= 21, f"{words}: {shown}")
            expect(len(re.findall("!own_hidden", shown)) == 0, shown)
            answer, status = between(4, words=("-session", "hiding", "-size", "300", "400"), format="json")
            process = json.loads(answer)["processes"][0]
            expect(process["looks"]["count"] == 4 and process["looks"]["reachable"] == process["looks"]["freed"] == {"count": 0, "bytes": 0}, process["looks"])
            rows = [row for row in process["rows"] if row["state"] == "lost"]
            expect(len(rows) == 1 and rows[0]["since_look"] == 1 and rows[0]["since_us"] == process["looks"]["first_us"] < process["at_us"] and rows[0]["since_count"] == rows[0]["count"], rows)
            shown, status = between(1000, lambda run: run.send_signal(2))
            expect(status == 1 and "look 1, " in shown and "own_lost" in shown, f"{status}: {shown}")

            shown, status = between(2, lambda run: run.send_signal(1), before=("nohup",))
            expect(status == 1 and "look 2, " in shown, f"{status}: {shown}")

            def interrupt(run):
                """At any moment of the looks that follow, also while one of them is read."""
                time.sleep(random.random() * 0.3)
                run.send_signal(2)
            for _ in range(8):
                shown, status = between(1000, interrupt, every="100ms")
                expect(status == 1 and "own_lost" in shown, f"{status}: {shown}")

            def execute(run):
                """The process executes its file once more; what it had lost is gone, not freed."""
                server.stdin.write(b"x")
                ask("l")
            shown, status = between(2, execute)
            expect(status == 1 and "look 2, the first one at this process" in shown and "an earlier look" not in shown, f"{status}: {shown}")
            expect(row(shown, "own_lost")[1].startswith("lost since look 2 of 2"), shown)
            shown, status = between(1000, "", lambda run: server.kill())
            expect(status == 1 and "look 2, " in shown and row(shown, "own_lost")[1].startswith("lost since look 1 of 2"), f"{status}: {shown}")
        finally:
            stop_session("hiding")
            server.kill()


def coming_and_going():
    """Looks at a session do not end because one of its processes does."""
    with subprocess.Popen(["sh", "-c", "while :; do /bin/true; /bin/true; done"]) as shell:
        try:
            xheap("start", "coming", "-p", shell.pid, "-o", "coming.xht")
            run = subprocess.run([XHEAP, "leaks", "-session", "coming", "-looks", "40", "-every", "100ms", "-format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
            expect(run.returncode in (0, 1) and "look before" not in run.stderr, f"{run.returncode}: {run.stderr}")
            processes = {process["pid"]: process for process in json.loads(run.stdout)["processes"]}
            expect(processes[shell.pid]["looks"]["count"] == 40, processes)
        finally:
            stop_session("coming")
            shell.kill()


if __name__ == "__main__":
    raise SystemExit(run_tests(as_sanitizer, cores, commands, running, large, together, several, coming_and_going))
