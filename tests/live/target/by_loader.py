#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that is started by its loader (`ld-linux-x86-64.so.2 ./prog`), as bundles and wrappers do, is recorded as one that is started directly: every call from the first one
after relocation on, under its own name. What a loader does without a program is as untraced.

usage: by_loader.py [TEST...]
"""
import os
import re
import shutil
import struct
import subprocess
import sys

from live import LONG_SECONDS, PROGRAMS, SOURCE, XHEAP, dump, expect, info, loader_of, run_tests, stop_session, told, xheap
from target.placement import fill_last_page

TRACE = "by_loader.xht"
SLOT, SLOTS = struct.Struct("<6q64s16x"), 16384     # counter.c
LIFECYCLE = f"{PROGRAMS}/lifecycle"                 # allocates before main and after it
LOW = f"{PROGRAMS}/placement_low"                   # at a fixed address
LOADER = loader_of(LIFECYCLE)
ACTIONS = ("Alloc", "ReAlloc", "Free")


def run(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS, **more)
    return done.returncode, done.stdout, done.stderr


def record(*command, quiet=("-q", "-q"), **more):
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    return run(XHEAP, "record", *quiet, "-o", TRACE, "--", *command, **more)


def calls(process):
    rows = [row for row in dump(TRACE) if row["process"] == str(process)]
    return tuple(sum(row["action"] == action for row in rows) for action in ACTIONS)


def process_of(path):
    """The process whose image is the file: one that was recorded, with events."""
    facts = info(TRACE)
    found = [process for process in facts["processes"] if os.path.basename(process["image"]) == os.path.basename(path)]
    expect(len(found) == 1 and found[0]["events"], f"{path}: not one process with events: {facts['processes']}")
    return found[0]


def expect_as_untraced(*command, **more):
    untraced, traced = ([re.sub("0x[0-9a-f]+", "ADDRESS", str(part)) for part in parts] for parts in (run(*command, **more), record(*command, **more)))
    expect(traced == untraced, f"{command}: {traced} traced, {untraced} untraced")
    return traced


def expect_as_direct(program, *words, command, **more):
    """The command starts the program: the same calls, of a process with the same name, and whole stacks."""
    record(program, *words)
    expected, path = calls(0), info(TRACE)["processes"][0]["image"]
    expect_as_untraced(*command, **more)
    process = process_of(program)
    found = calls(process["id"])
    expect(found == expected and sum(found), f"{command}: {found} {ACTIONS}, {expected} directly")
    name = os.path.basename
    expect(name(process["image"]) == name(path) and os.path.exists(process["image"]), f"{command}: the process is {process['image']}, directly {path}")
    facts = info(TRACE)
    expect(facts["complete"] and facts["whole_stacks"] == facts["event_count"], f"{command}: {facts}")
    return process


def counting():
    """The library that counts calls. It is copied here, since the loader's list has blanks between its names."""
    return shutil.copy(f"{PROGRAMS}/counter.so", "counter.so") and "./counter.so"


def ways():
    """With each option before a program; by a loader that was copied and renamed."""
    shutil.copy(LOADER, "copied")
    shutil.copy(LIFECYCLE, "here")
    for options in ([], ["--inhibit-cache"], ["--argv0", "another name"], ["--library-path", "/lib:/usr/lib"], ["--inhibit-rpath", ""],
                    ["--preload", counting(), "--argv0", "x"]):
        expect_as_direct(LIFECYCLE, command=[LOADER, *options, LIFECYCLE])
    expect_as_direct(LIFECYCLE, command=["./copied", LIFECYCLE])
    expect_as_direct("./here", command=[LOADER, "./here"])
    expect_as_direct(LOW, "null", "0", "0", command=[LOADER, LOW, "null", "0", "0"])


def starts():
    """As a child, through exec and posix_spawn, by descriptor, under another name."""
    for script in ('"$0" "$1"; true', 'exec "$0" "$1"', '("$0" "$1") | cat'):
        expect_as_direct(LIFECYCLE, command=["sh", "-c", script, LOADER, LIFECYCLE])
    expect_as_direct(LIFECYCLE, command=["setarch", "-R", LOADER, LIFECYCLE])
    if shutil.which("bash"):
        expect_as_direct(LIFECYCLE, command=["bash", "-c", 'exec -a other "$0" "$1"', LOADER, LIFECYCLE])
    for text in ("os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)", "subprocess.run(words)",
                 "os.execve(os.open(words[0], os.O_RDONLY), words, os.environ)"):
        expect_as_direct(LIFECYCLE, command=["/usr/bin/python3", "-c", f"import os, subprocess, sys; words = sys.argv[1:]; {text}", LOADER, LIFECYCLE])


def counter():
    """Each call that a counter sees which the loader preloads."""
    for program, *words in ([LIFECYCLE], [LOW, "null", "0", "0"], [f"{PROGRAMS}/dlerrors"], [shutil.which("ls"), "-l", "/"]):
        with open("counts", "wb") as file:
            file.truncate(SLOT.size * SLOTS)
        status = record(f"{PROGRAMS}/with", "COUNTS=counts", LOADER, "--preload", counting(), program, *words)[0]
        with open("counts", "rb") as file:
            counted = SLOT.unpack(file.read(SLOT.size))[1:4]
        found = calls(process_of(program)["id"])
        expect(status == 0 and found == counted and sum(counted), f"{program}: status {status}, recorded {found}, counted {counted}")


def own_allocators():
    """A program's own allocator, where the program lies at fixed addresses, low and high, too."""
    source = SOURCE / "tests/live/programs/own_malloc.c"
    for options in (["-pie", "-fPIE"], ["-no-pie"], ["-no-pie", "-Wl,-Ttext-segment=0x7c400000"], ["-pie", "-fPIE", "-Wl,--no-dynamic-linker"]):
        said = run("gcc", "-g", "-fno-builtin", "-DOWN_UNLOGGED", source, source.with_name("own_allocator.c"), "-o", "own", *options)
        if said[0]:
            return f"skipped: gcc does not build it: {said[2].splitlines()[:1]}"
        # Without the name of a loader it cannot be executed itself.
        if "-Wl,--no-dynamic-linker" not in options:
            expect_as_direct("./own", command=[LOADER, "./own"])
            expected = calls(process_of("own")["id"])
            # With no spare bytes behind the code. Executed itself, it may find no room near a heap that begins beside it.
            fill_last_page("own", "own_full")
        for name in ("own", "own_full"):
            expect_as_untraced(LOADER, f"./{name}")
            found = calls(process_of(name)["id"])
            expect(found == expected, f"{options}: {name}: {found} by its loader, {expected} directly")


def tables():
    """Whole stacks also of a program whose linker made no search table for unwinding."""
    with open("tables.c", "w") as file:
        file.write("#include <stdlib.h>\n#include <string.h>\n"
                   "__attribute__((noipa)) void *inner(int size) { char room[100]; memset(room, size, 100); return malloc((size_t)size + room[3] % 2); }\n"
                   "__attribute__((noipa)) void outer(int size) { char room[size]; memset(room, 1, (size_t)size); free(inner(size + room[3])); }\n"
                   "int main(void) { for (int i = 100; i < 200; i++) outer(i); return 0; }\n")
    if run("gcc", "-O2", "-fomit-frame-pointer", "-Wl,--no-eh-frame-hdr", "tables.c", "-o", "without_table")[0]:
        return "skipped: gcc does not build it"
    expect_as_direct("./without_table", command=[LOADER, "./without_table"])
    if os.geteuid():
        return "skipped below another root directory: only root may change it"
    os.makedirs("jail", exist_ok=True)
    for file in (LOADER, next(line.split()[2] for line in run(LOADER, "--list", "./without_table")[1].splitlines() if "=> /" in line), "without_table"):
        shutil.copy(file, "jail")
    expect_as_direct("./without_table", command=["chroot", "jail", f"/{os.path.basename(LOADER)}", "--library-path", "/", "/without_table"])


def bundle():
    """A loader and libraries of its own, started by a script: no file of the machine's libraries is used."""
    shutil.rmtree("bundle", ignore_errors=True)
    os.makedirs("bundle/lib")
    os.makedirs("bundle/bin")
    shutil.copy(LIFECYCLE, "bundle/bin/app")
    shutil.copy(LOADER, "bundle/lib/loader")
    for line in run(LOADER, "--list", LIFECYCLE)[1].splitlines():
        if "=> /" in line:
            shutil.copy(line.split()[2], "bundle/lib")
    with open("bundle/AppRun", "w") as file:
        file.write('#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\n'
                   'exec "$here/lib/loader" --inhibit-cache --library-path "$here/lib" --argv0 "$0" "$here/bin/app" "$@"\n')
    os.chmod("bundle/AppRun", 0o755)
    process = expect_as_direct("bundle/bin/app", command=["bundle/AppRun"])
    paths = [row["path"] for row in dump(TRACE, "-images") if row["process"] == str(process["id"]) and row["path"].startswith("/")]
    outside = [path for path in paths if not path.startswith(os.path.abspath("bundle") + "/")]
    expect(os.path.abspath("bundle/bin/app") in paths and not outside, f"images: {paths}")


def sessions():
    """In a session: launched, and attached to while it runs."""
    shown = [f"{PROGRAMS}/placement_pie", "show"]
    try:
        xheap("start", "by_loader", "-o", TRACE)
        xheap("launch", "by_loader", "--", LOADER, LIFECYCLE)
    finally:
        stop_session("by_loader")
    process_of(LIFECYCLE)
    with subprocess.Popen([LOADER, *shown], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        recording = subprocess.Popen([XHEAP, "record", "-o", TRACE, "-p", str(process.pid)], stderr=subprocess.PIPE, text=True)
        expect("paused for" in recording.stderr.readline(), "not attached")
        process.communicate(b"x", timeout=LONG_SECONDS)
        recording.communicate(timeout=LONG_SECONDS)
    process_of(shown[0])


def names():
    """Symbols of the program, and a report that knows it."""
    record(LOADER, LOW, "null", "0", "0")
    rows = told("heap", TRACE, "-stacks", "-allFrames")["actions"][0]["rows"]
    expect(any(frame.get("symbol") == "main" and frame["image"] == "placement_low" for row in rows for frame in row["stack"]), f"main is in no stack: {rows[:3]}")


def no_program():
    """What loaders do by themselves, and what they complain of."""
    for words in (["--list", LIFECYCLE], ["--verify", LIFECYCLE], ["--help"], ["--version"], ["--list-tunables"], [], ["./missing"], ["missing"], ["--library-path"],
                  ["--unknown", LIFECYCLE], ["/etc/passwd"], ["/"]):
        expect_as_untraced(LOADER, *words)
        facts = info(TRACE)
        expect(facts["complete"] and not facts["event_count"], f"{words}: {facts}")


def static_programs():
    """A loader executes them: refused as a command, and named as a child, which goes on."""
    for kind in ("static", "static_pie"):
        program = f"{PROGRAMS}/placement_{kind}"
        status, said, why = record(LOADER, program, "null", "0", "0")
        expect(status == 2 and not said and "static" in why and program in why, f"{kind}: status {status}: {said}{why}")
        expect_as_untraced("sh", "-c", '"$@"; echo $?', "sh", LOADER, program, "null", "0", "0")
        facts = info(TRACE)
        expect(not facts["complete"] and any("static" in process.get("note", "") for process in facts["processes"]), f"{kind}: {facts}")


def relative():
    """Loaders and interpreters of scripts with a relative path, from another directory than the logger's."""
    os.makedirs("relative", exist_ok=True)
    shutil.copy(LOADER, "relative/loader")
    if run("gcc", SOURCE / "tests/live/programs/standing.c", "-o", "relative/program", "-Wl,--dynamic-linker=./loader")[0]:
        return "skipped: gcc links no program with a relative loader"
    shutil.copy("/bin/sh", "relative/shell")
    with open("relative/script", "w") as file:
        file.write("#!./shell\necho script\n")
    os.chmod("relative/script", 0o755)
    for name in ("program", "script"):
        expect_as_untraced("sh", "-c", f"cd relative && ./{name} </dev/null; true")
        facts = info(TRACE)
        expect(facts["complete"] and len(facts["processes"]) == 2, f"{name}: {facts}")


def musl():
    """musl's loader is the library with the allocator, too."""
    if not shutil.which("musl-gcc"):
        return "skipped: there is no musl-gcc"
    with open("musl.c", "w") as file:
        file.write("#include <stdlib.h>\nint main(void) { for (int i = 0; i < 99; i++) free(malloc(5000)); return 3; }\n")
    run("musl-gcc", "-g", "musl.c", "-o", "on_musl")
    loader = loader_of("on_musl")
    record("./on_musl")
    expected = calls(0)
    for options in ([], ["--argv0", "x"], ["--library-path=/lib"], ["--"]):
        expect_as_untraced(loader, *options, "./on_musl")
        found = calls(process_of("on_musl")["id"])
        expect(found == expected and found[0] >= 99, f"{options}: {found}, directly {expected}")
    for words in (["--list", "./on_musl"], ["./missing"], []):
        expect_as_untraced(loader, *words)


if __name__ == "__main__":
    sys.exit(run_tests(ways, starts, counter, own_allocators, tables, bundle, sessions, names, no_program, static_programs, relative, musl))
