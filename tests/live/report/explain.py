#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `xheap explain` says about programs with a known fault, and about programs that end for other reasons: the right stacks, and no fault that is not there."""
import json
import os
import signal
import subprocess
import sys

from live import expect, run_tests, told, xheap

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
static void twice_thread(void) { char *p = make(3000), *q = make(3000); in_thread(p); drop_again(p); drop(q); }
static void twice_resized(void) { char *p = make(5000), *q = make(5000); drop(p); resize(p, 100000); drop(q); }
static void twice_reused(void) { char *p = make(5000), *q = make(5000); drop(p); p = make(5000); drop(p); drop_again(p); drop(q); }
static void inside(void) { char *p = make(5000); drop_again(p + 16); }
static void inside_odd(void) { char *p = make(500); drop_again(p + 3); }
static void inside_resized(void) { char *p = make(500); resize(p + 8, 1000); }
static void foreign_stack(void) { char own[64]; kept = own; drop_again(own + 16); }
static void foreign_data(void) { static long own[64]; drop_again(own + 2); }
static void beyond(void) { char *p = make(24), *q = make(1500); make(24); memset(p, 0x41, 40); drop_again(q); }
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
	TRIAL(twice_small), TRIAL(twice_large), TRIAL(twice_thread), TRIAL(twice_resized), TRIAL(twice_reused), TRIAL(inside), TRIAL(inside_odd),
	TRIAL(inside_resized), TRIAL(foreign_stack), TRIAL(foreign_data), TRIAL(beyond), TRIAL(none_abort), TRIAL(none_null), TRIAL(none_wild),
	TRIAL(none_divide), TRIAL(none_code), TRIAL(none_killed), TRIAL(none_asked), TRIAL(none_deep), TRIAL(none_deep_calls), TRIAL(none_empty), TRIAL(none_child)};
int main(int count, char **arguments) {
	(void)count;
	for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++)
		if (!strcmp(trials[i].name, arguments[1]))
			trials[i].run();
	return 0; }
"""
# The fault, the function that called the allocator, and those that allocated and freed the block; None: not known. A realloc that never returned has no address.
FAULTS = {
    "twice_small": ("double_free", "drop_again", "make", "drop"),
    "twice_large": ("double_free", "drop_again", "make", "drop"),
    "twice_thread": ("double_free", "drop_again", "make", "drop"),
    "twice_resized": ("damaged_heap", None, None, None),
    "twice_reused": ("double_free", "drop_again", "make", "drop"),
    "inside": ("interior_free", "drop_again", "make", None),
    "inside_odd": ("interior_free", "drop_again", "make", None),
    "inside_resized": ("damaged_heap", None, None, None),
    "foreign_stack": ("foreign_free", "drop_again", None, None),
    "foreign_data": ("foreign_free", "drop_again", None, None),
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
        expect((FAULTS[trial][1] or "realloc") in said and "SIG" in said.splitlines()[0], f"{trial}: {said}")
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
sys.exit(run_tests(faults, others, recordings, sampled, addresses))
