#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program whose heap is known by how it is made, and each line of docs/semantics.md's tables about it.

Sizes tell blocks apart: each role has its own. Blocks of 70001 and 70002 bytes, freed at once, mark the two ends of a window.
"""
import json
import os
import subprocess
import sys

from filters_check import CLASSES, Model, class_of

XHEAP = os.environ["XHEAP"]
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *volatile kept[64];
static int count;
static void many(int n, size_t size) { while (n--) kept[count++] = malloc(size); }
static void drop(int from, int n) { while (n--) free(kept[from++]); }
static void mark(size_t size) { void *volatile p = malloc(size); free(p); }

/* A child with blocks that it never frees: it says so by a byte, and goes on when it gets one. */
struct child { pid_t pid; int socket; };
static void stay(int socket, int n, size_t size)
{
	char byte = 0;
	many(n, size);
	if (write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 1)
		abort();
}
static void meet(const struct child *child)
{
	char byte;
	if (read(child->socket, &byte, 1) != 1)
		abort();
}
static void go_on(const struct child *child)
{
	if (write(child->socket, "", 1) != 1)
		abort();
}
/* With a next size, it executes the program anew, which has blocks of that size and stays, too. */
static struct child child_new(int n, size_t size, const char *next)
{
	int ends[2];
	char number[16];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		abort();
	snprintf(number, sizeof(number), "%d", ends[1]);
	struct child child = {fork(), ends[0]};
	if (!child.pid) {
		stay(ends[1], n, size);
		if (next)
			execl("/proc/self/exe", "known", number, next, NULL);
		_exit(next != NULL);
	}
	close(ends[1]);
	meet(&child);
	return child;
}
static void child_end(const struct child *child)
{
	int status;
	go_on(child);
	if (waitpid(child->pid, &status, 0) != child->pid || status)
		abort();
}

int main(int argc, char **argv)
{
	if (argc > 2) {
		stay(atoi(argv[1]), 2, (size_t)atoi(argv[2]));
		_exit(0);
	}
	if (argc > 1) {                         /* what was exec'ed */
		many(2, 6001);
		return 0;
	}
	struct child before = child_new(1, 7001, NULL), inside = child_new(2, 7002, NULL), after = child_new(3, 7003, NULL),
		     exec_before = child_new(4, 7004, "7014"), exec_inside = child_new(5, 7005, "7015");
	child_end(&before);
	go_on(&exec_before);
	meet(&exec_before);
	many(3, 1001);                          /* 0: freed inside */
	many(5, 1002);                          /* 3: freed after */
	many(7, 1003);                          /* 8: never freed */
	void *grown = malloc(500);
	mark(70001);
	many(2, 2001);                          /* 15: freed inside */
	many(4, 2002);                          /* 17: freed after */
	many(6, 2003);                          /* 21: never freed */
	drop(0, 3);
	drop(15, 2);
	child_end(&inside);
	go_on(&exec_inside);
	meet(&exec_inside);
	for (int i = 0; i < 9; i++)             /* temporary */
		mark(3001);
	grown = realloc(grown, 3002);           /* of a block begun before: a new allocation of its whole size */
	void *block = realloc(NULL, 3003);      /* an alloc */
	block = realloc(block, 200);            /* in place, or not: but a realloc of an existing block */
	if (realloc(block, (size_t)-1 / 2))     /* fails: the block lives on */
		return 1;
	free(realloc(block, 0));                /* glibc frees: a free */
	struct timespec time = {0, 30000000};
	void *volatile slow = malloc(3004);     /* lives for 30 ms */
	nanosleep(&time, NULL);
	free(slow);
	mark(70002);
	child_end(&after);
	child_end(&exec_before);
	child_end(&exec_inside);
	drop(3, 5);
	drop(17, 4);
	many(11, 4001);                         /* 27: alive when the child is forked */
	pid_t child = fork();
	if (!child) {
		drop(27, 4);                    /* its copies only */
		many(3, 5001);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	drop(27, 11);
	execl("/proc/self/exe", argv[0], "again", NULL);
	return 1;
}
"""
failed = 0


def report(*filters):
    run = subprocess.run([XHEAP, "heap", "known.xht", "-totals", "-format", "json", *map(str, filters)], stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"heap {filters}: status {run.returncode}")
    return json.loads(run.stdout)["totals"]


def expect(what, found, **numbers):
    global failed
    for name, number in numbers.items():
        if found[name] != number:
            print(f"{what}: {name} is {found[name]}, not {number}")
            failed += 1


def size(number):
    return "-size", number, number + 1


def main():
    with open("known.c", "w") as file:
        file.write(PROGRAM)
    subprocess.run([os.environ.get("CC", "cc"), "-w", "-O1", "-fno-builtin", "-o", "known", "known.c"], check=True)
    subprocess.run([XHEAP, "record", "-q", "-o", "known.xht", "./known"], check=True)
    rows = [line.split(",") for line in subprocess.run([XHEAP, "dump", "known.xht", "-allocations", "-format", "csv"],
                                                       stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n") if line]
    column = {name: i for i, name in enumerate(rows[0])}
    births = {row[column["size"]]: int(row[column["birth_ns"]]) for row in rows[1:]}
    window = (f"{births['70001']}ns", f"{births['70002']}ns")
    inside = ("-range", *window)

    expect("total", report(*size(1001)), total_count=3, total_bytes=3003, outstanding_count=0)
    expect("outstanding: never freed", report(*size(1003)), total_count=7, outstanding_count=7, outstanding_bytes=7021)
    expect("begun inside, freed after: outstanding", report(*inside, *size(2002)), total_count=4, outstanding_count=4)
    expect("begun inside, freed inside", report(*inside, *size(2001)), total_count=2, outstanding_count=0)
    expect("begun before, freed inside: in no column", report(*inside, *size(1001)), total_count=0, outstanding_count=0)
    expect("the range's ends belong to it", report(*inside, *size(70001)), total_count=1)
    expect("the range's ends belong to it", report(*inside, *size(70002)), total_count=1)
    expect("live at the peak counts what began before", report(*inside, *size(1002)), total_count=0, peak_count=5, peak_bytes=5010)
    expect("the peak is the earliest moment", report(*size(4001)), peak_count=11, peak_bytes=44011)
    expect("temporary", report(*size(3001)), total_count=9, temporary_count=9)
    expect("a block that lives is not temporary", report(*size(1001)), temporary_count=0)
    expect("realloc of a block begun before", report(*inside, *size(3002)), total_count=1, total_bytes=3002, realloc_count=1)
    expect("realloc(NULL, n) is an alloc", report(*size(3003)), total_count=1, realloc_count=0)
    expect("a failed realloc and realloc(p, 0)", report(*size(200)), total_count=1, realloc_count=1, outstanding_count=0)
    # 7000s: never freed by processes that ended (7001, by exec 7004) before, inside (7002, 7005) and after the window.
    for kind, sizes in {"AIFI": {2001: 2, 3001: 9, 3004: 1}, "AIFO": {2002: 4, 2003: 6, 7015: 2}, "AOFI": {1001: 3},
                        "AOFO": {1002: 5, 1003: 7, 7001: 0, 7002: 2, 7003: 3, 7004: 0, 7014: 2, 7005: 5}}.items():
        for number, blocks in sizes.items():
            expect(f"{kind} of {number}", report("-window", kind, *window, *size(number)), total_count=blocks)
            for other in set(CLASSES) - {kind}:
                expect(f"{other} of {number}", report("-window", other, *window, *size(number)), total_count=0)
    blocks = Model("known.xht").blocks
    for kind in CLASSES:
        chosen = [block for block in blocks if class_of(block, (births["70001"], births["70002"])) == kind]
        expect(f"{kind} by the events", report("-window", kind, *window), total_count=len(chosen), total_bytes=sum(block.size for block in chosen))
    expect("begun later: in no class", report("-window", "AIFO", *window, *size(4001)), total_count=0)
    expect("a lifetime", report(*size(3004), "-lifetime", "30ms", "10s"), total_count=1)
    expect("a lifetime is not cut by the range", report(*size(2002), *inside, "-lifetime", "30ms", "10s"), total_count=4)
    expect("an open block has its age", report(*size(1003), "-lifetime", "30ms", "10s"), total_count=7)
    expect("-closed leaves out what was not given back", report(*size(1003), "-closed"), total_count=0)
    expect("-closed", report(*size(1002), "-closed"), total_count=5)
    expect("a child's frees of inherited blocks are its copies'", report(*size(4001)), total_count=11, outstanding_count=0)
    expect("a child's own blocks", report(*size(5001)), total_count=3, outstanding_count=3)
    expect("what exec ended is outstanding", report(*size(2003)), outstanding_count=6, open_count=6) if "open_count" in report() else None
    expect("after exec", report(*size(6001)), total_count=2, outstanding_count=2)
    info = json.loads(subprocess.run([XHEAP, "info", "known.xht", "-format", "json"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    inherited = [process["inherited_count"] for process in info["processes"] if process.get("inherited_count")]
    if len(inherited) != 1 or inherited[0] < 7 + 6 + 11:
        print(f"inherited: {inherited}")
        return 1
    whole = report()
    for name in ("order_conflicts", "unknown_frees"):
        if json.loads(subprocess.run([XHEAP, "heap", "known.xht", "-totals", "-format", "json"], stdout=subprocess.PIPE, text=True).stdout)[name]:
            print(f"{name} of a program that has none")
            return 1
    print(f"{whole['total_count']} allocations, {failed} differences")
    return failed > 0


sys.exit(main())
