#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `xheap explain` says about programs with a known fault, and about programs that end for other reasons: the right stacks, and no fault that is not there."""
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys

from live import LONG_SECONDS, SOURCE as SOURCE_TREE, expect, run_tests, stop_session, told, wait_for, xheap

SOURCE = """
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
static void *volatile kept;
OUT static char *make(size_t n) { char *p = malloc(n); memset(p, 1, n); kept = p; return p; }
OUT static void drop(void *p) { free(p); __asm__(""); }
OUT static void drop_again(void *p) { free(p); __asm__("nop"); }
OUT static void *resize(void *p, size_t n) { kept = realloc(p, n); return kept; }
static void *thread_drop(void *p) { drop(p); return NULL; }
static void in_thread(void *p) { pthread_t t; pthread_create(&t, NULL, thread_drop, p); pthread_join(t, NULL); }
/* ---- faults ---- */
static void twice_small(void) { char *p = make(24); drop(p); drop_again(p); }
static void twice_large(void) { char *p = make(5000), *q = make(5000); drop(p); drop_again(p); drop(q); }
static void twice_mapped(void) { char *p = make(1 << 20); drop(p); drop_again(p); }
static void twice_thread(void) { char *p = make(3000), *q = make(3000); in_thread(p); drop_again(p); drop(q); }
static void twice_resized(void) { char *p = make(5000), *q = make(5000); drop(p); resize(p, 100000); drop(q); }
static void twice_reused(void) { char *p = make(5000), *q = make(5000); drop(p); p = make(5000); drop(p); drop_again(p); drop(q); }
static void inside(void) { char *p = make(5000); drop_again(p + 16); }
static void inside_odd(void) { char *p = make(500); drop_again(p + 3); }
static void inside_resized(void) { char *p = make(500); resize(p + 8, 1000); }
static void foreign_stack(void) { char own[64]; kept = own; drop_again(own + 16); }
static void foreign_data(void) { static long own[64]; drop_again(own + 2); }
static void foreign_wild(void) { drop_again((void *)0x123456789010); }
static void beyond(void) { char *p = make(24), *q = make(1500); make(24); memset(p, 0x41, 40); drop_again(q); }
static void past(int is_twice) { char *p = make(5000); for (int i = 0; i < 1500000; i++) { kept = malloc(i % 900 + 1); free(kept); } make(6000); drop(p); if (is_twice) drop_again(p); abort(); }
static void past1(void) { past(0); }
static void past2(void) { past(1); }
/* ---- no faults of the heap ---- */
static void none_abort(void) { char *p = make(100); drop(p); abort(); }
static void none_null(void) { char *p = make(100); drop(p); *(volatile int *)0 = 1; }
static void none_wild(void) { make(100); *(volatile int *)0x10 = 1; }
static void none_divide(void) { volatile int zero = 0; make(100); kept = (void *)(long)(100 / zero); }
static void none_code(void) { make(100); __builtin_trap(); }
static void none_killed(void) { make(100); kill(getpid(), SIGKILL); }
static void none_asked(void) { make(100); kill(getpid(), SIGTERM); }
OUT static int deep(int n) { volatile char room[1000]; room[0] = (char)n; return deep(n + 1) + room[0]; }
static void none_deep(void) { make(100); kept = (void *)(long)deep(0); }
OUT static int deep_calls(int n) { volatile char room[1000]; char *p = make(64); room[0] = (char)n; int found = deep_calls(n + 1) + room[0]; drop(p); return found; }
static void none_deep_calls(void) { kept = (void *)(long)deep_calls(0); }
static void none_empty(void) { free(NULL); kept = realloc(NULL, 50); drop(kept); abort(); }
static void none_child(void) { char *p = make(100); if (!fork()) { drop(p); _exit(0); } wait(NULL); drop(p); abort(); }
#define TRIAL(name) {#name, name}
static const struct { const char *name; void (*run)(void); } trials[] = {
	TRIAL(twice_small), TRIAL(twice_large), TRIAL(twice_mapped), TRIAL(twice_thread), TRIAL(twice_resized), TRIAL(twice_reused), TRIAL(inside), TRIAL(inside_odd),
	TRIAL(inside_resized), TRIAL(foreign_stack), TRIAL(foreign_data), TRIAL(foreign_wild), TRIAL(beyond), TRIAL(past1), TRIAL(past2), TRIAL(none_abort), TRIAL(none_null), TRIAL(none_wild),
	TRIAL(none_divide), TRIAL(none_code), TRIAL(none_killed), TRIAL(none_asked), TRIAL(none_deep), TRIAL(none_deep_calls), TRIAL(none_empty), TRIAL(none_child)};
int main(int count, char **arguments) {
	(void)count;
	for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++)
		if (!strcmp(trials[i].name, arguments[1]))
			trials[i].run();
	return 0; }
"""
USES_SOURCE = """
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#define OUT __attribute__((noipa))
struct shape { virtual ~shape() {} virtual int area() { return 1; } long rest[4]; };
struct square : shape { int area() override { return 2; } };
struct node { node *next; long value; char text[40]; };
typedef void (*callback)(int);
struct holder { callback run; long rest[9]; };
OUT shape *make_shape() { return new square; }
OUT void drop_shape(shape *s) { delete s; __asm__("nop"); }
OUT int use_shape(shape *s) { return s->area() + 1; }
OUT node *make_node() { node *n = (node *)malloc(sizeof(node)); n->next = n; n->value = 7; return n; }
OUT node *make_other() { node *n = (node *)malloc(sizeof(node)); memset(n, 0x71, sizeof(node)); return n; }
OUT void drop_node(node *n) { free(n); __asm__("nop"); }
OUT long use_node(node *n) { return n->next->value; }
OUT char *make_large() { char *p = (char *)malloc(1 << 20); memset(p, 1, 1 << 20); return p; }
OUT void drop_large(char *p) { free(p); __asm__("nop; nop"); }
OUT int use_large(char *p) { return p[5000]; }
OUT void nothing(int) {}
OUT holder *make_holder() { holder *h = (holder *)malloc(sizeof(holder)); h->run = nothing; return h; }
OUT void drop_holder(holder *h) { free(h); __asm__("nop; nop; nop"); }
OUT void use_holder(holder *h) { h->run(1); __asm__("nop"); }
int main(int, char **words) {
	std::string k = words[1];
	if (k == "virtual") { shape *s = make_shape(); drop_shape(s); return use_shape(s); }
	if (k == "list") { node *m = make_node(), *n = make_node(); drop_node(m); drop_node(n); return use_node(n); }
	if (k == "large") { char *p = make_large(); drop_large(p); return use_large(p); }
	if (k == "called") { holder *m = make_holder(), *h = make_holder(); drop_holder(m); drop_holder(h); use_holder(h); }
	if (k == "thread") { shape *s = make_shape(); std::thread([&] { drop_shape(s); }).join(); return use_shape(s); }
	if (k == "poisoned") { node *n = make_node(); drop_node(n); memset(n, 0x6b, 40); return use_node(n); }
	if (k == "again") { node *n = make_node(); drop_node(n); make_other(); return use_node(n); }
	if (k == "null") { node *n = make_node(); drop_node(n); return *(volatile int *)0; }
	if (k == "wild") { node *n = make_node(); drop_node(n); return *(volatile int *)0x123456789000; }
	if (k == "abort") { shape *s = make_shape(); drop_shape(s); abort(); }
	if (k == "wrong") { node *n = make_node(); n->next = (node *)0x4141414141414141; return use_node(n); }
	if (k == "stale") { shape *s = make_shape(); drop_shape(s); node *n = make_node(); n->next = (node *)0x414141414141; return use_node(n) + (long)s; }
	return 0; }
"""
MEMORY_SOURCE = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
static void *volatile kept;
static char *tiles[1000];
static int tile_count;
OUT static char *load_tile(void) { char *p = malloc(1 << 20); __asm__(""); if (p) { tiles[tile_count++ % 1000] = p; usleep(1000); } return p; }
OUT static void *regrow(void *p) { kept = realloc(p, 1 << 30); return kept; }
OUT static void clean(void) { kept = malloc(50); free(kept); }
/* HOW: as many tiles as there is room for, and then */
int main(int count, char **arguments) {
	const char *how = arguments[count - 1];
	if (!strcmp(how, "realloc")) { usleep(300000); if (!regrow(malloc(77))) abort(); return 0; }
	while (load_tile()) ;
	clean();
	if (!strcmp(how, "abort")) abort();
	if (!strcmp(how, "null")) *(volatile char *)0 = 1;
	if (!strcmp(how, "exit")) exit(3);
	if (!strcmp(how, "later")) { usleep(1500000); abort(); }
	if (!strcmp(how, "without")) { free(tiles[0]); if (!load_tile()) return 4; abort(); }
	if (!strcmp(how, "many")) { for (int i = 0; i < 100; i++) clean(); abort(); }
	return 0; }
"""
# The fault, the function that called the allocator, and those that allocated and freed the block; None: not known. A realloc that never returned has no stack, nor has a
# free of memory that is not there.
FAULTS = {
    "twice_small": ("double_free", "drop_again", "make", "drop"),
    "twice_large": ("double_free", "drop_again", "make", "drop"),
    "twice_mapped": ("double_free", None, "make", "drop"),
    "twice_thread": ("double_free", "drop_again", "make", "drop"),
    "twice_resized": ("double_free", None, "make", "drop"),
    "twice_reused": ("double_free", "drop_again", "make", "drop"),
    "inside": ("interior_free", "drop_again", "make", None),
    "inside_odd": ("interior_free", "drop_again", "make", None),
    "inside_resized": ("interior_free", None, "make", None),
    "foreign_stack": ("foreign_free", "drop_again", None, None),
    "foreign_data": ("foreign_free", "drop_again", None, None),
    "foreign_wild": ("foreign_free", None, None, None),
    "beyond": ("damaged_heap", "drop_again", "make", None),
}
OTHERS = ("none_abort", "none_null", "none_wild", "none_divide", "none_code", "none_killed", "none_asked", "none_deep", "none_deep_calls", "none_empty", "none_child")


def build():
    with open("faults.c", "w") as file:
        file.write(SOURCE)
    subprocess.run([os.environ.get("CC", "cc"), "-w", "-O2", "-pthread", "-fno-optimize-sibling-calls", "-fno-builtin-malloc", "-fno-builtin-free", "-Wl,--build-id", "-o", "faults", "faults.c"],
                   check=True)


def record(trial):
    """The answer about the trial, and how it ended: by a signal below 0."""
    run = subprocess.run([os.environ["XHEAP"], "record", "-q", "-o", f"{trial}.xht", "./faults", trial], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return run.returncode


def functions(point):
    return [frame.get("symbol") for frame in point["stack"]]


def check_call(trial, call):
    fault, caller, maker, dropper = FAULTS[trial]
    expect(call["fault"] == fault, f"{trial}: {call['fault']}, not {fault}")
    expect(call["certainty"] == ("likely" if fault == "damaged_heap" else "certain"), f"{trial}: {call['certainty']}")
    expect(not caller or functions(call)[1] == caller, f"{trial}: called by {functions(call)}")
    block = call.get("block")
    expect(bool(block) == bool(maker), f"{trial}: the block {block}")
    if maker:
        expect(functions(block["allocated"])[1] == maker, f"{trial}: allocated by {functions(block['allocated'])}")
    if dropper:
        expect(functions(block["ended"])[1] == dropper, f"{trial}: freed by {functions(block['ended'])}")


def faults():
    """Each that ends its program is named with its stacks; most of them do."""
    crashed = 0
    for trial in FAULTS:
        status = record(trial)
        if status in (0, 2):
            continue
        crashed += 1
        answer = told("explain", f"{trial}.xht")["of_end"]
        expect(answer["calls"], f"{trial}: ended with {status}, and no call is named: {answer}")
        check_call(trial, answer["calls"][0])
        said = xheap("explain", f"{trial}.xht")
        expect((FAULTS[trial][1] or "the process ended") in said and "SIG" in said.splitlines()[0], f"{trial}: {said}")
        said = xheap("report", f"{trial}.xht")
        expect(("  double frees: 1 (" in said) == (FAULTS[trial][0] == "double_free") and ("double frees" in said) + ("unknown frees" in said) < 2, f"{trial}: {said}")
    expect(crashed >= len(FAULTS) * 3 // 4, f"only {crashed} of {len(FAULTS)} end their program")
    return f"{crashed} of {len(FAULTS)}"


def others():
    """No fault of the heap is found where there is none; a call that was under way is shown."""
    for trial in OTHERS:
        status = record(trial)
        expect(status not in (0, 2), f"{trial}: status {status}")
        answer = told("explain", f"{trial}.xht")["of_end"]
        wrong = [call for call in answer["calls"] if call["fault"] != "none"]
        expect(not wrong and not answer["earlier_faults"], f"{trial}: {wrong or answer}")
        expect(answer["signal"] == {"none_killed": signal.SIGKILL, "none_asked": signal.SIGTERM}.get(trial, answer["signal"]), f"{trial}: {answer}")
        said = xheap("explain", f"{trial}.xht")
        expect("certain:" not in said and "likely:" not in said, f"{trial}: {said}")
    return f"{len(OTHERS)}"


# Which of these an allocator takes differs.
SURVIVED = ("twice_small", "twice_large", "twice_thread", "twice_reused", "inside")


def record_limited(how):
    """How a program that gets 400 MB ends, and the last lines of the recording."""
    run = subprocess.run(["sh", "-c", "ulimit -v 400000 && exec \"$@\"", "sh", os.environ["XHEAP"], "record", "-o", f"memory_{how}.xht", "./memory", how], stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True)
    return run.returncode, run.stderr


def without_memory():
    """A call that failed for want of memory just before the program failed is named, and none that it went on after."""
    if "__asan" in subprocess.run(["nm", "-D", os.environ["XHEAP"]], stdout=subprocess.PIPE, text=True).stdout:
        return "not tried: a sanitizer needs more address space than the limit leaves"
    pathlib.Path("memory.c").write_text(MEMORY_SOURCE)
    subprocess.run([os.environ.get("CC", "cc"), "-w", "-g", "-O1", "-fno-builtin", "-o", "memory", "memory.c"], check=True)
    limit = "; the limit RLIMIT_AS (ulimit -v) is 390.6 MiB"
    for how, function, caller, size, end in (("abort", "malloc", "load_tile", "1.0 MiB", "by SIGABRT"), ("null", "malloc", "load_tile", "1.0 MiB", "by SIGSEGV"),
                                             ("exit", "malloc", "load_tile", "1.0 MiB", "with exit 3"), ("realloc", "realloc", "regrow", "1.0 GiB", "by SIGABRT")):
        status, said = record_limited(how)
        line = f"likely: {function} of {size} failed for want of memory{limit}"
        expect(status and f" ended {end}; {line}\nxheap:   called by {caller}\n" in said, f"{how}: status {status}: {said}")
        trace = f"memory_{how}.xht"
        call = told("explain", trace)["of_end"]["calls"][0]
        expect((call["fault"], call["certainty"], call["under_way"], call["function"]) == ("no_memory", "likely", False, function), f"{how}: {call}")
        expect(call["size"] == (1 << 30 if how == "realloc" else 1 << 20) and functions(call)[1] == caller, f"{how}: {call}")
        said = xheap("explain", trace)
        expect(f"\n{line}\n" in said and f"!{caller}" in said and "no cause" not in said, f"{how}: {said}")
        said = " ".join(xheap("report", trace).split())
        expect(f"; {line}; why: xheap explain" in said, f"{how}: {said}")
    for how in ("later", "without", "many"):
        status, said = record_limited(how)
        expect(status not in (0, 4) and "ended by SIGABRT; the heap calls show no cause" in said, f"{how}: status {status}: {said}")
        expect(not told("explain", f"memory_{how}.xht")["of_end"]["calls"] and "want of memory" not in xheap("report", f"memory_{how}.xht"), how)
    status, said = record_limited("well")
    expect(status == 0 and "want of memory" not in said and "want of memory" not in xheap("report", "memory_well.xht"), f"well: status {status}: {said}")
    return "4 ends, 4 others"


def survived():
    """Wrong frees that an allocator takes without a word are likely, with their stacks."""
    tried = 0
    for library in sorted(pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("lib*malloc.so.[24]")):
        for trial in SURVIVED:
            trace = f"{library.name}.{trial}.xht"
            run = subprocess.run([os.environ["XHEAP"], "record", "-q", "-o", trace, "env", f"LD_PRELOAD={library}", "./faults", trial], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if run.returncode:
                continue
            call = told("explain", trace)["of_end"]["calls"][0]
            expect(call["certainty"] == "likely" and not call["under_way"], f"{library.name}: {trial}: {call}")
            fault, caller, maker, dropper = FAULTS[trial]
            expect(call["fault"] == fault and caller in functions(call) and maker in functions(call["block"]["allocated"]), f"{library.name}: {trial}: {call}")
            expect(not dropper or dropper in functions(call["block"]["ended"]), f"{library.name}: {trial}: {call}")
            tried += 1
    return f"{tried}"


def dropped():
    """A flight recorder has no allocation any more: two frees in a row are still one too many, and one is nothing that is known to be wrong."""
    for again, fault in (("2", "double_free"), ("1", "none")):
        subprocess.run([os.environ["XHEAP"], "record", "-q", "-o", "flight.xht", "--file-mode", "flight", "--max-file", "1M", "--trigger", "crash", "./faults", f"past{again}"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        expect("dropped" in told("info", "flight.xht"), "nothing was dropped")
        calls = told("explain", "flight.xht")["of_end"]["calls"]
        if fault == "none":
            expect(not calls, f"{calls}")
            continue
        expect((calls[0]["fault"], calls[0]["certainty"]) == (fault, "likely") and calls[0]["under_way"], f"{calls}")
        expect("drop_again" in functions(calls[0]) and any(call.get("freed_again") and "drop" in functions(call) for call in calls), f"{calls}")


def recordings():
    """The last lines of xheap record are the first ones of the answer, of a crash only."""
    for trial, lines in (("twice_large", ["  called by drop_again", "  allocated by make", "  freed by drop"]), ("inside", ["  called by drop_again", "  allocated by make"]),
                         ("foreign_data", ["  called by drop_again"]), ("none_null", [])):
        run = subprocess.run([os.environ["XHEAP"], "record", "-o", "last.xht", "./faults", trial], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = [line.removeprefix("xheap: ") for line in run.stderr.splitlines() if line.startswith("xheap: ")]
        expect(said[-1] == "next: xheap explain last.xht", f"{trial}: {said}")
        told_line = said[-2 - len(lines)]
        expect(said[-1 - len(lines):-1] == lines and " ended by SIG" in told_line, f"{trial}: {said}")
        expect(("certain: " in told_line) == bool(lines), f"{trial}: {told_line}")
    killed = subprocess.run([os.environ["XHEAP"], "record", "-o", "last.xht", "./faults", "none_killed"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    expect("next: xheap report last.xht" in killed and "ended by" not in killed, killed)


def with_core(trial):
    """The answer about the core of a trial."""
    expect(run_with_core(trial, "uses") not in (0, 2), f"{trial} has not crashed")
    return told("explain", f"{trial}.core", "-trace", f"{trial}.xht")["of_end"]


def run_with_core(trial, program):
    """How the trial of a program ends; its core is TRIAL.core then."""
    if not is_core_here():
        print("cores do not go to the directory of the process: /proc/sys/kernel/core_pattern")
        sys.exit(77)
    status = subprocess.run(["sh", "-c", "ulimit -c unlimited && exec \"$@\"", "sh", os.environ["XHEAP"], "record", "-q", "-o", f"{trial}.xht", f"./{program}", trial],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    cores = list(pathlib.Path(".").glob("core*"))
    expect(len(cores) == 1, f"{trial}: status {status}, and the cores {cores}")
    for core in cores:
        core.rename(f"{trial}.core")
    return status


def is_core_here():
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    return pattern.startswith("core") and "/" not in pattern


# The function that used the block, and those that allocated and freed it; how sure it is.
USES = {"virtual": ("use_shape", "make_shape", "drop_shape", "likely"), "list": ("use_node", "make_node", "drop_node", "likely"),
        "large": ("use_large", "make_large", "drop_large", "likely"), "called": ("use_holder", "make_holder", "drop_holder", "likely"),
        "thread": ("use_shape", "make_shape", "drop_shape", "likely"), "poisoned": ("use_node", "make_node", "drop_node", "likely"),
        "again": ("use_node", "make_other", "drop_other", "unknown")}
NO_USES = ("null", "wild", "abort", "wrong", "stale")


def uses():
    """Freed blocks that are used: the three stacks, from the core."""
    pathlib.Path("uses.cc").write_text(USES_SOURCE)
    subprocess.run(["c++", "-w", "-O2", "-pthread", "-Wl,--build-id", "-fno-optimize-sibling-calls", "-o", "uses", "uses.cc"], check=True)
    for trial, (user, maker, dropper, certainty) in USES.items():
        core = with_core(trial)["core"]
        use = core.get("use_after_free")
        expect(use, f"{trial}: no use is found: {core}")
        expect(use["certainty"] == certainty, f"{trial}: {use['certainty']}")
        expect(any(user in frame.get("symbol", "") for frame in core["stack"][:2]), f"{trial}: used by {core['stack']}")
        expect(any(maker in (name or "") for name in functions(use["block"]["allocated"])), f"{trial}: allocated by {functions(use['block']['allocated'])}")
        freed = use["earlier_block" if certainty == "unknown" else "block"]
        expect(certainty == "unknown" or any(dropper in (name or "") for name in functions(freed["ended"])), f"{trial}: freed by {functions(freed['ended'])}")
        expect(freed["end"] == "free", f"{trial}: {freed}")
        expect(any(pointer["block"]["id"] == use["block"]["id"] for pointer in core["pointers"]), f"{trial}: no pointer to the block: {core['pointers']}")
        expect("a use of a freed block" in xheap("explain", f"{trial}.core", "-trace", f"{trial}.xht"), trial)
    for trial in NO_USES:
        answer = with_core(trial)
        expect("use_after_free" not in answer["core"] and not answer["calls"], f"{trial}: {answer}")
    return f"{len(USES)} uses, {len(NO_USES)} others"


def cores():
    """Cores of others, and damaged ones, are refused or read as far as they go; nothing is read from where a core says."""
    pathlib.Path("fixed.cc").write_text(USES_SOURCE)
    subprocess.run(["c++", "-w", "-O2", "-pthread", "-no-pie", "-o", "fixed", "fixed.cc"], check=True)
    subprocess.run(["c++", "-w", "-O2", "-pthread", "-o", "moved", "fixed.cc"], check=True)
    for trial, program in (("null", "fixed"), ("large", "fixed"), ("virtual", "moved")):
        run_with_core(trial, program)
    refused = {"is of process": ("null.core", "-trace", "large.xht"), "is of no process": ("virtual.core", "-trace", "large.xht"),
               "needs the trace": ("virtual.core",), "-pid": ("virtual.core", "-trace", "virtual.xht", "-pid", "1"), "one core": ("virtual.core", "null.core")}
    for said, words in refused.items():
        reason = xheap("explain", *words, status=2)
        expect(said in reason, f"{words} is refused by {reason}, not by {said}")
    run_with_core("beyond", "faults")
    wholes = {trial: pathlib.Path(f"{trial}.core").read_bytes() for trial in ("virtual", "beyond")}
    address = told("explain", "virtual.core", "-trace", "virtual.xht")["of_end"]["core"]["pointers"][0]["value"]
    expect(told("explain", "virtual.core", "-trace", "virtual.xht", address)["of_address"]["state"] == "freed", "an address beside a core")
    chance = random.Random(1)
    statuses = collections.Counter()
    for i in range(60):
        trial = "beyond" if i % 4 == 0 else "virtual"
        changed = bytearray(wholes[trial])
        if i % 3 == 0:
            del changed[chance.randrange(64, len(changed)):]
        for _ in range(1 + i % 7):
            at = chance.randrange(18, 6000 if i % 2 else min(len(changed), 600))
            if at + 8 < len(changed):
                changed[at:at + chance.choice((1, 4, 8))] = chance.randbytes(8)[:chance.choice((1, 4, 8))]
        pathlib.Path("changed.core").write_bytes(changed)
        run = subprocess.run([os.environ["XHEAP"], "explain", "changed.core", "-trace", f"{trial}.xht", "-noIndex"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=100)
        expect(run.returncode in (0, 2), f"core {i}: status {run.returncode}: {run.stderr}")
        statuses[run.returncode] += 1
    return f"statuses {dict(statuses)}"


# Finds the pid of a program by its name; asks about the address in a variable of the program's.
GDB_SOURCE = """
#include <stdlib.h>
#include <unistd.h>
char *volatile asked;
__attribute__((noipa)) static char *make(void) { return malloc(77); }
int main(int count, char **words) { asked = make(); free(make()); if (count > 1) abort(); for (;;) pause(); }
"""


def gdb(*words):
    """What gdb says with the command of xheap's."""
    path = os.path.dirname(os.environ["XHEAP"]) + ":" + os.environ["PATH"]
    run = subprocess.run(["gdb", "-nx", "-batch", "-ex", f"source {SOURCE_TREE}/gdb/xheap.py", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=LONG_SECONDS, env={**os.environ, "PATH": path})
    return run.stdout


def in_gdb():
    """The command of gdb asks about a core and about a process that a session records."""
    if not shutil.which("gdb") or "yes" not in subprocess.run(["gdb", "-nx", "-batch", "-ex", "python print('yes')"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout:
        return "gdb is not here, or has no Python"
    pathlib.Path("asked.c").write_text(GDB_SOURCE)
    subprocess.run([os.environ.get("CC", "cc"), "-w", "-g", "-O1", "-Wl,--build-id", "-o", "asked", "asked.c"], check=True)
    expect("no process and no core" in gdb("-ex", "xheap who 1"), "without a program")
    expect("Usage" in gdb("-ex", "xheap who"), "without an address")
    if is_core_here():
        run_with_core("crash", "asked")
        said = gdb("-ex", "xheap who asked crash.xht", "./asked", "crash.core")
        expect("byte 0 of a block of 77 B" in said and "asked!make" in said, said)
        said = gdb("-ex", "xheap who asked+80 crash.xht", "./asked", "crash.core")
        expect("in the usable rest" in said, said)
        expect("needs the trace" in gdb("-ex", "xheap who asked", "./asked", "crash.core"), "a core without a trace")
        record("twice_large")
        expect("crash.core is of " in gdb("-ex", "xheap who asked twice_large.xht", "./asked", "crash.core"), "a core of another program")
    name = f"explain-{os.getpid()}"
    xheap("start", name, "-o", "live.xht")
    program = subprocess.Popen([os.environ["XHEAP"], "launch", name, "./asked"])
    try:
        children = f"/proc/{program.pid}/task/{program.pid}/children"
        pid = int(wait_for("program", lambda: open(children).read()).split()[0])
        wait_for("block", lambda: "pause" in open(f"/proc/{pid}/wchan").read() or open(f"/proc/{pid}/syscall").read().startswith("34 "))
        said = gdb("-p", str(pid), "-ex", "xheap who asked")
        expect("live: byte 0 of a block of 77 B" in said and "asked!make" in said, said)
        os.kill(pid, signal.SIGKILL)
    finally:
        program.wait()
        stop_session(name)
    return "as it should be"


def sampled():
    """In a sample, and after an attach that lacks blocks, nothing is certain."""
    subprocess.run([os.environ["XHEAP"], "record", "-q", "-o", "sample.xht", "--sample", "1", "./faults", "twice_large"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    calls = told("explain", "sample.xht")["of_end"]["calls"]
    expect(all(call.get("certainty") != "certain" for call in calls), f"{calls}")


def addresses():
    """Each block of a trace is found by its first and its last byte, with the stacks that xheap dump has."""
    record("twice_thread")
    rows = [json.loads(line) for line in xheap("dump", "twice_thread.xht", "-allocations", "-format", "json").splitlines()]
    for row in rows:
        for offset in (0, row["size"] - 1):
            answer = told("explain", "twice_thread.xht", hex(int(row["address"], 16) + offset), "-at", f"{row['birth_ns'] + 1}ns")["of_address"]
            block = answer["block"]
            expect(answer["state"] == "live" and answer["offset"] == offset and block["id"] == row["id"], f"{row}: {answer}")
            expect(block["end"] == row["end_kind"] and block["allocated"]["tid"] == row["tid"], f"{row}: {answer}")
            expect(block.get("ended", {}).get("tid") == row.get("free_tid"), f"{row}: {answer}")
    return f"{len(rows)} blocks"


build()
LINES = """#include <stdlib.h>
__attribute__((noipa)) static char *make(int n) { return malloc(n); }
__attribute__((noipa)) static void drop(char *p) { free(p); __asm__(""); }
__attribute__((noipa)) static void handle(int k) {
  char *p = make(300 + k); // allocated
  if (k == 7) drop(p); // freed
  __asm__ volatile("" ::: "memory");
  drop(p); // again
  __asm__("");
}
int main(void) { for (int i = 0; i < 9; i++) handle(i); return 0; }
"""


def lines():
    """Each call of one function has its own line."""
    pathlib.Path("lines.c").write_text(LINES)
    subprocess.run(["cc", "-O2", "-g", "-o", "lines", "lines.c"], check=True)
    xheap("record", "-q", "-o", "lines.xht", "./lines", status=None)
    at = {word: 1 + next(i for i, line in enumerate(LINES.splitlines()) if line.endswith(f"// {word}")) for word in ("allocated", "freed", "again")}
    found = [int(line) for line in re.findall(r"^    (?:lines!)?handle  lines.c:(\d+)$", xheap("explain", "lines.xht"), re.MULTILINE)]
    expect(found == [at["again"], at["allocated"], at["freed"]], f"{at}: {xheap('explain', 'lines.xht')}")


sys.exit(run_tests(faults, others, lines, without_memory, survived, dropped, recordings, uses, cores, in_gdb, sampled, addresses))
