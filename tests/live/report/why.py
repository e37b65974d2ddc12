#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`xheap why -p` of stopped processes: the classes sum to the kernel's smaps to the byte, little is unknown, and what malloc_trim(0) returns is predicted.

programs   programs that are installed, blocked where they have built something: under glibc, and with other allocators in its place
shapes     one program whose blocks, threads and frees are told: what a trim returns
pinners    the same with blocks that keep pages: their stack is named first
others     the same with a forked child, with huge pages, and with other allocators
attached   the same, recorded from then on
running    a program that goes on while it is read: the sum is near that of smaps; which reading an answer is about
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from live import SOAK, SOURCE, XHEAP, attach, expect, run_tests, stop_session, wait_for, xheap

NAME = f"why-{os.getpid()}"
KIB, MIB = 1 << 10, 1 << 20
UNKNOWN_PERCENT = 5
REST_SECONDS = 1  # without processor time: then a program waits for its input
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
ALLOCATORS = {name: path for name, path in {"jemalloc": f"{LIBRARIES}/libjemalloc.so.2", "mimalloc": f"{LIBRARIES}/libmimalloc.so.2.0",
                                            "tcmalloc": f"{LIBRARIES}/libtcmalloc_minimal.so.4"}.items() if os.path.exists(path)}

# A thread of it waits for SIGUSR2, trims, and stops the process.
TRIMMER = """
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static void *trim(void *set) {
	int number;
	while (!sigwait(set, &number)) { malloc_trim(0); close(open("trimmed", O_CREAT | O_WRONLY, 0600)); kill(getpid(), SIGSTOP); }
	return set; }
__attribute__((constructor)) static void begin(void) {
	static sigset_t set;
	pthread_t thread;
	sigemptyset(&set); sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, 0);
	pthread_create(&thread, 0, trim, &set); }
"""

# What each word builds, in the threads that are asked for; then the process stops.
SHAPES = """
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
static size_t least, most, count, keep, pin;
static pthread_barrier_t built;
OUT static void *request(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
OUT static void *remember(size_t n) { char *p = malloc(n); memset(p, 2, n); return p; }
static void *work(void *number) {
	void **all = malloc(count * sizeof(*all));
	uint32_t seed = 7 + (uintptr_t)number;
	for (size_t i = 0; i < count; i++) {
		seed = seed * 1664525 + 1013904223;
		all[i] = request(least + (seed >> 8) % (most - least + 1));
		if (pin && i % keep == 0) remember(pin); }
	for (size_t i = 0; i < count; i++) if (pin || !keep || i % keep) free(all[i]);
	pthread_barrier_wait(&built);
	pause();
	return all; }
/* LEAST and MOST bytes, COUNT of blocks, one of KEEP stays, bytes of a PIN, THREADS, and letters: f fork, h huge pages, e free all in the main thread at last */
int main(int words, char **word) {
	pthread_t thread;
	size_t threads = atoi(word[6]);
	least = atoi(word[1]), most = atoi(word[2]), count = atoi(word[3]), keep = atoi(word[4]), pin = atoi(word[5]);
	pthread_barrier_init(&built, NULL, threads + 1);
	for (size_t i = 0; i < threads; i++) pthread_create(&thread, NULL, work, (void *)(i + 1));
	if (strchr(word[7], 'h')) {
		char *huge = aligned_alloc(1 << 21, 16 << 20);
		madvise(huge, 16 << 20, MADV_HUGEPAGE);
		memset(huge, 3, 12 << 20); }
	if (!threads) { pthread_barrier_destroy(&built); pthread_barrier_init(&built, NULL, 1); }
	if (!threads) {
		pthread_create(&thread, NULL, (void *(*)(void *))pause, NULL);
		void **all = malloc(count * sizeof(*all));
		for (size_t i = 0; i < count; i++) { all[i] = request(least + i * 2654435761u % (most - least + 1)); if (pin && i % keep == 0) remember(pin); }
		for (size_t i = 0; i < count; i++) if (pin || !keep || i % keep) free(all[i]); }
	else pthread_barrier_wait(&built);
	if (strchr(word[7], 'f') && fork() == 0) { remember(1 << 20); printf("%d\\n", getpid()); fflush(stdout); kill(getpid(), SIGSTOP); pause(); }
	if (!strchr(word[7], 'f')) { printf("%d\\n", getpid()); fflush(stdout); }
	kill(getpid(), SIGSTOP);
	for (;;) pause(); }
"""
# Small blocks, large ones, those with pages of their own, many and few that stay; one thread and several arenas.
TRIMMED = (("16", "900", "60000", "50", "0", "0", "-"), ("16", "4000", "20000", "10", "0", "0", "-"), ("2000", "9000", "8000", "7", "0", "0", "-"),
           ("32", "64", "200000", "500", "0", "0", "-"), ("5000", "60000", "1500", "5", "0", "0", "-"), ("16", "900", "60000", "0", "0", "0", "-"),
           ("16", "900", "20000", "50", "0", "4", "-"), ("1000", "3000", "6000", "0", "0", "8", "-"), ("100", "20000", "3000", "20", "0", "3", "-"),
           ("16", "300000", "900", "9", "0", "2", "-"))
PINNERS = (("1000", "1000", "30000", "8", "40", "0", "-"), ("500", "500", "60000", "16", "16", "0", "-"), ("3000", "3000", "10000", "3", "100", "0", "-"),
           ("200", "200", "100000", "32", "24", "0", "-"), ("5000", "5000", "6000", "2", "300", "0", "-"), ("1500", "1500", "5000", "4", "64", "4", "-"),
           ("900", "900", "30000", "12", "150", "0", "-"), ("2048", "2048", "5000", "2", "32", "2", "-"), ("700", "1400", "20000", "6", "48", "0", "-"),
           ("4000", "8000", "5000", "2", "200", "3", "-"))

PYTHON = "import os,time; d = {i: 'x' * (i % 900) for i in range(60000)}; [d.pop(i) for i in list(d) if i % 40]; time.sleep(1000)"
PERL = "my %h = map { $_ => 'x' x ($_ % 700) } 1 .. 60000; delete @h{grep { $_ % 30 } keys %h}; sleep 1000"
AWK = "BEGIN { for (i = 0; i < 60000; i++) a[i] = sprintf(\"%0*d\", i % 300, i); for (i = 0; i < 60000; i++) if (i % 20) delete a[i]; getline < \"-\" }"
SHELL = "for i in {1..20000}; do a[i]=$i-some-longer-text; done; for i in {1..19000}; do unset \"a[i]\"; done; read"
SQL = "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000) insert into t select i, hex(randomblob(i % 100)) from n; delete from t where a % 9;"
# Each blocks at last, most of them for want of input.
COMMANDS = {
    "python3": ("python3", "-c", PYTHON), "python3, malloc": ("env", "PYTHONMALLOC=malloc", "python3", "-c", PYTHON), "perl": ("perl", "-e", PERL), "gawk": ("gawk", AWK), "mawk": ("mawk", AWK),
    "bash": ("bash", "-c", SHELL), "zsh": ("zsh", "-fc", SHELL), "sort": ("sort",), "bc": ("bc", "-q"), "sed": ("sed", "$!N;s/a/b/"), "jq": ("jq", "."), "sqlite3": ("sqlite3", ":memory:"),
    "xz": ("xz", "-9", "-c"), "zstd": ("zstd", "-19", "-c"), "gzip": ("gzip", "-c"), "gdb": ("gdb", "-q", "-nx", "python3"), "node": ("node", "-e", "let a = []; for (let i = 0; i < 200000; i++) a.push({i}); setTimeout(() => a, 1e9)"),
    "vim": ("vim", "-es"), "git": ("git", f"--git-dir={SOURCE}/.git", "cat-file", "--batch"), "make": ("make", "-f", "-"), "xmllint": ("xmllint", "-")}
# It unblocks all signals.
NOT_TRIMMED = {"node"}
INPUT = {"sort": b"some line of a file\n" * 50000, "sqlite3": SQL.encode(), "jq": b"[" + b'{"a": [1, 2, "three"]},' * 20000, "bc": b"2^9999\n" * 20, "xz": os.urandom(1 << 20), "zstd": os.urandom(1 << 20),
         "xmllint": b"<a>" + b"<b c='d'>e</b>" * 5000}


# ---- processes ----

def build():
    for name, text, more in (("trimmer.so", TRIMMER, ("-shared", "-fPIC")), ("shapes", SHAPES, ())):
        source = pathlib.Path(name).with_suffix(".c")
        source.write_text(text)
        subprocess.run([os.environ.get("CC", "cc"), "-w", "-O2", "-pthread", "-Wl,--build-id", *more, "-o", name, source], check=True)


def state(pid):
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]


def wait_until_stopped(pid):
    wait_for(f"stop of {pid}", lambda: state(pid) == "T")


def smaps(pid):
    """Rss, AnonHugePages, Swap."""
    sums = dict.fromkeys(("Rss", "AnonHugePages", "Swap"), 0)
    for line in open(f"/proc/{pid}/smaps"):
        key, _, value = line.partition(":")
        if key in sums:
            sums[key] += int(value.split()[0]) * KIB
    return sums


def why(pid, *words):
    return json.loads(xheap("why", "-p", pid, "-format", "json", *words))


def account(pid, who):
    """The answer about a stopped process, whose sums hold."""
    answer, truth = why(pid), smaps(pid)
    for part, name in ((answer, "all"), *((row, "a heap") for row in answer["heaps"]), *((row, "a mapping") for row in answer["mappings"])):
        expect(sum(part["classes"].values()) == part["resident_bytes"], f"{who}: the classes of {name} are not {part['resident_bytes']}: {part['classes']}")
    expect(sum(row["resident_bytes"] for row in answer["heaps"]) == answer["resident_bytes"], f"{who}: the heaps are not all")
    expect(answer["resident_bytes"] == truth["Rss"], f"{who}: {answer['resident_bytes']} bytes, {truth['Rss']} in smaps")
    expect(answer.get("huge_bytes", truth["AnonHugePages"]) >= truth["AnonHugePages"] and answer["swapped_bytes"] == truth["Swap"], f"{who}: {answer}, and in smaps {truth}")
    return answer


def unknown_percent(answer):
    return 100 * answer["classes"]["unknown"] / answer["resident_bytes"]


class Launched:
    """A command in a session, from its begin to its end, which comes with that of the context."""

    def __init__(self, command, preload=(), given=b"", output=subprocess.DEVNULL):
        xheap("start", NAME, "-o", "why.xht")
        # What is given comes first; then there is nothing to read.
        self.process = subprocess.Popen([XHEAP, "launch", NAME, "env", "LD_PRELOAD=" + " ".join(map(os.path.abspath, preload)), *command],
                                        stdin=subprocess.PIPE, stdout=output, stderr=subprocess.DEVNULL, start_new_session=True)
        self.feeder = threading.Thread(target=self.feed, args=(given,), daemon=True)
        self.feeder.start()

    def feed(self, given):
        try:
            self.process.stdin.write(given)
            self.process.stdin.flush()
        except OSError:
            pass

    def pid(self):
        """Of the command, which is the child of `xheap launch`."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return int(wait_for("child", file.read).split()[0])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.feeder.join()
        stop_session(NAME)


def wait_until_blocked(launched, pid):
    """Until it has used no processor time for a while, since what it waits for does not come."""
    def times():
        return sum(map(int, open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[11:13]))

    def is_blocked():
        before = times()
        time.sleep(REST_SECONDS)
        return before == times() and state(pid) == "S" and not launched.feeder.is_alive()
    wait_for("rest", is_blocked)
    os.kill(pid, signal.SIGSTOP)
    wait_until_stopped(pid)


def check_trim(pid, answer, who):
    """What a trim returns is within a tenth, or 64 KiB, of what was said."""
    before = smaps(pid)["Rss"]
    if os.path.exists("trimmed"):
        os.unlink("trimmed")
    os.kill(pid, signal.SIGUSR2)
    os.kill(pid, signal.SIGCONT)
    wait_for("trim", lambda: os.path.exists("trimmed"))
    wait_until_stopped(pid)
    returned, predicted = before - smaps(pid)["Rss"], answer["classes"]["trimmable"]
    expect(abs(returned - predicted) <= max(64 * KIB, returned / 10), f"{who}: malloc_trim(0) returned {returned} bytes, {predicted} were predicted: {answer['classes']}")
    return f"{returned / MIB:.2f} of {predicted / MIB:.2f} MiB"


# ---- tests ----

def shape(words, allocator=None):
    """The first line that it writes is the pid of the process that is asked about, which stops."""
    return Launched([os.path.abspath("shapes"), *words], ["trimmer.so", *([ALLOCATORS[allocator]] if allocator else [])], output=subprocess.PIPE)


def shapes():
    said = []
    for words in TRIMMED:
        with shape(words) as launched:
            pid = int(launched.process.stdout.readline())
            wait_until_stopped(pid)
            answer = account(pid, words)
            expect(unknown_percent(answer) <= UNKNOWN_PERCENT, f"{words}: unknown: {answer['classes']}")
            said.append(check_trim(pid, answer, words))
    return "trimmed " + ", ".join(said)


def pinners():
    """The seeded one is the first stack, and most of the pages are its."""
    for words in PINNERS:
        with shape(words) as launched:
            pid = int(launched.process.stdout.readline())
            wait_until_stopped(pid)
            answer = account(pid, words)
            first = answer["pinned"]["stacks"][0]
            expect(any(frame.get("symbol") == "remember" for frame in first["stack"]), f"{words}: {first}")
            of_it = sum(row["page_bytes"] for row in answer["pinned"]["stacks"] if any(frame.get("symbol") == "remember" for frame in row["stack"]))
            expect(of_it * 10 >= answer["pinned"]["page_bytes"] * 9, f"{words}: {answer['pinned']}")
    return f"{len(PINNERS)}"


def others():
    """A forked child, huge pages, and other allocators."""
    said = []
    for words, allocator in (((*TRIMMED[0][:-1], "f"), None), ((*TRIMMED[0][:-1], "h"), None), *((words, name) for name in ALLOCATORS for words in (TRIMMED[0], TRIMMED[6], (*TRIMMED[1][:-1], "f")))):
        with shape(words, allocator) as launched:
            pid = int(launched.process.stdout.readline())
            wait_until_stopped(pid)
            answer = account(pid, (words, allocator))
            expect(unknown_percent(answer) <= UNKNOWN_PERCENT, f"{words}, {allocator}: unknown: {answer['classes']}")
            kept = answer["classes"]["other_allocators"]
            expect(bool(allocator) == (kept > 0), f"{words}, {allocator}: {kept} bytes are kept by other allocators")
            if "h" in words[-1] and "[never]" not in open("/sys/kernel/mm/transparent_hugepage/enabled").read():
                expect(answer["huge_bytes"] >= 8 * MIB, f"{answer['huge_bytes']} bytes in huge pages")
            said.append(f"{unknown_percent(answer):.2f}")
    return f"unknown: {', '.join(said)} %"


def attached():
    """Blocks from before the attach are found, and count."""
    words = TRIMMED[6]
    program = subprocess.Popen([os.path.abspath("shapes"), *words], stdout=subprocess.PIPE, env={**os.environ, "LD_PRELOAD": os.path.abspath("trimmer.so")})
    try:
        pid = int(program.stdout.readline())
        wait_until_stopped(pid)
        os.kill(pid, signal.SIGCONT)
        attach("start", NAME, "-o", "why.xht", "-p", pid)
        # The first question waits for the search of these blocks.
        expect(why(pid)["classes"]["live"] >= MIB // 4, "blocks from before the attach are missing")
        os.kill(pid, signal.SIGSTOP)
        wait_until_stopped(pid)
        answer = account(pid, "attached")
        expect(answer["classes"]["live"] >= MIB // 4, f"{answer['classes']}")
        said = xheap("why", "-p", pid, "-top", 100)
        expect("    [before the trace]\n    allocated before the attach, so their stacks are unknown: xheap record from the start has them\n" in said, said)
        expect(re.search(r"KiB image data or code  0x[0-9a-f]+ anonymous\n", said) and " files  0x" not in said, said)
        return "trimmed " + check_trim(pid, answer, "attached")
    finally:
        program.kill()
        program.communicate()
        stop_session(NAME)


def running():
    """The sum is near that of smaps before and after; a trace has readings at its maxima and behind them."""
    with Launched(("perl", "-e", "while (1) { my @a = map { 'x' x ($_ % 999) } 1 .. 20000; sleep 1; }"), output=subprocess.DEVNULL) as launched:
        pid = launched.pid()
        wait_for("growth", lambda: smaps(pid)["Rss"] > 16 * MIB)
        before, answer, after = smaps(pid)["Rss"], why(pid), smaps(pid)["Rss"]
        changed = abs(after - before)
        expect(min(before, after) * 0.98 - changed <= answer["resident_bytes"] <= max(before, after) * 1.02 + changed, f"{answer['resident_bytes']}, {before} before and {after} after")
        expect(sum(answer["classes"].values()) == answer["resident_bytes"], f"{answer['classes']}")
        # Each question makes a reading.
        last, peak = (json.loads(xheap("why", "-session", NAME, "-at", at, "-format", "json")) for at in ("end", "peak"))
        expect(peak["resident_bytes"] >= last["resident_bytes"] and last["at_us"] > answer["at_us"], f"{peak['resident_bytes']} at {peak['at_us']}, {last['resident_bytes']} at {last['at_us']}")
        near = json.loads(xheap("why", "-session", NAME, "-at", answer["at_us"], "-format", "json"))
        # Calls that were under way at the first look are in the trace at the second.
        same = [near[key] == answer[key] for key in ("at_us", "resident_bytes")]
        expect(all(same), f"at {answer['at_us']}: {near['at_us']}, {near['resident_bytes']} of {answer['resident_bytes']}")
        return f"{answer['reading_count']} readings"


def programs():
    said = []
    cases = [(name, None) for name in COMMANDS] + ([(name, allocator) for name in ("perl", "python3, malloc", "gawk", "sqlite3") for allocator in ALLOCATORS] if SOAK else [])
    for name, allocator in cases if SOAK else cases[:6]:
        command = COMMANDS[name]
        if not all(shutil.which(word) for word in command[:1]):
            said.append(f"{name} is not here")
            continue
        with Launched(command, ["trimmer.so", *([ALLOCATORS[allocator]] if allocator else [])], INPUT.get(name, b"")) as launched:
            pid = launched.pid()
            wait_until_blocked(launched, pid)
            answer = account(pid, name)
            said.append(f"{name}{', ' + allocator if allocator else ''}: {answer['resident_bytes'] / MIB:.0f} MiB, unknown {unknown_percent(answer):.1f} %" + ("" if allocator or name in NOT_TRIMMED else ", trimmed " + check_trim(pid, answer, name)))
    return "; ".join(said)


build()
sys.exit(run_tests(shapes, pinners, others, attached, running, programs))
