#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An allocator that still sets itself up is not asked anything: LeakSanitizer alone, allocators of initialisers, programs that count the questions.

usage: initialisers.py [TEST...]
"""
import os
import shutil
import subprocess
import sys

from live import XHEAP, dump, expect, run_tests

TRACE = os.path.abspath("initialisers.xht")
LEAKING = "#include <stdlib.h>\nint main(void) { free(malloc(3)); return 7; }\n"
INITIALISED = """#include <stdlib.h>
void *volatile kept;
__attribute__((constructor)) static void before(void) { kept = malloc(1111); }
int main(void) { kept = malloc(2222); return 0; }
"""
# An allocator of the program's own, which can tell that somebody asked it something.
COUNTING = """#include <stddef.h>
#include <unistd.h>
static char room[1 << 20] __attribute__((aligned(16)));
static size_t used;
static unsigned questions;
__attribute__((noipa)) void *malloc(size_t size) { void *block = room + used; used += (size + 15) & ~15ul; return block; }
__attribute__((noipa)) void free(void *block) { (void)block; }
__attribute__((noipa)) size_t malloc_usable_size(void *block) { questions++; return block ? 16 : 0; }
int main(void) { for (int i = 0; i < 100; i++) free(malloc(10)); return questions ? 1 : 7; }
"""


def build(name, text, compiler, *options):
    """The program's path, or None with the reason printed."""
    source = f"{name}.c"
    with open(source, "w") as file:
        file.write(text)
    if not shutil.which(compiler):
        print(f"skipped: {name}: there is no {compiler}")
        return None
    run = subprocess.run([compiler, "-g", source, "-o", name, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        print(f"skipped: {name}: {compiler} {' '.join(options)} does not build it: {run.stdout.splitlines()[-1:]}")
        return None
    return os.path.abspath(name)


def outcome(*command, **more):
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    return run.returncode, run.stdout


def record(program, **more):
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    return outcome(XHEAP, "record", "-q", "-o", TRACE, "--", program, **more)


def sizes():
    """The usable size by the size that was asked for."""
    return {row["size"]: row["usable"] for row in dump(TRACE) if row["action"] == "Alloc"}


def leak_sanitizer():
    tried = 0
    for compiler in ("gcc", "clang"):
        for name, options in (("dynamic", []), ("static", ["-static-liblsan"] if compiler == "gcc" else ["-static-libsan"])):
            program = build(f"lsan_{compiler}_{name}", LEAKING, compiler, "-fsanitize=leak", *options)
            if not program:
                continue
            untraced, traced = outcome(program), record(program)
            expect(untraced == traced, f"{program}: {traced} traced, {untraced} untraced")
            tried += 1
    return f"{tried} programs"


def an_allocator_of_the_program_s_own():
    program = build("counting", COUNTING, "gcc")
    expect(outcome(program)[0] == record(program)[0] == 7, "malloc_usable_size was called")
    expect(set(sizes().values()) == {""}, f"usable sizes that nobody told: {sizes()}")


def known_allocators():
    """They are asked as soon as main has begun."""
    tried = []
    for name, compiler, options in (("jemalloc", "gcc", ["-ljemalloc"]), ("mimalloc", "gcc", ["-lmimalloc"]), ("tcmalloc", "gcc", ["-ltcmalloc_minimal"]),
                                    ("musl", "musl-gcc", [])):
        program = build(name, INITIALISED, compiler, "-fno-builtin", "-Wl,--no-as-needed", *options)
        if not program:
            continue
        expect(record(program)[0] == 0, name)
        found = sizes()
        expect(found["1111"] == "", f"{name}: asked before main: {found['1111']}")
        expect(found["2222"] and int(found["2222"]) >= 2222, f"{name}: not asked after main: {found['2222']}")
        tried.append(name)
    return ", ".join(tried)


def unknown_sizes_are_counted():
    """What is not known is in no sum of what allocators round up."""
    program = build("counting", COUNTING, "gcc")
    record(program)
    shown = subprocess.run([XHEAP, "report", TRACE, "-width", "300"], stdout=subprocess.PIPE, text=True, check=True).stdout
    expect("rounded up by 0 B (0 %; not known of 1 block)" in shown, shown)


sys.exit(run_tests(leak_sanitizer, an_allocator_of_the_program_s_own, known_allocators, unknown_sizes_are_counted))
