#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library as its users have it: the examples of docs/xheap-api.md in C11 and C++17, and what the library may not do to its program."""
import os
import pathlib
import re
import subprocess
import sys

XHEAP, BUILD, SOURCE = os.path.realpath(os.environ["XHEAP"]), pathlib.Path(os.environ["BUILD"]).resolve(), pathlib.Path(os.environ["SOURCE"])
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LIBRARY = BUILD / "src/api"
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=str(LIBRARY), XHEAP=XHEAP)
PERL = ["perl", "-e", 'my %count; $count{$_ % 500} .= "line $_\\n" for 1 .. 5000;']
# Of the functions that end, print, or change what belongs to the whole program. _exit: of a forked child whose exec has failed.
FORBIDDEN = set("""exit abort quick_exit __assert_fail printf puts putchar vprintf __printf_chk __vprintf_chk perror psignal warn err stdout stderr signal sigaction
    sigprocmask atexit setlocale system popen chdir fchdir umask putenv setenv unsetenv alarm setitimer setuid setsid""".split())
failed = 0


def expect(condition, text):
    global failed
    if not condition:
        print(text)
        failed += 1


def run(*words, **more):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, env=ENVIRONMENT, **more)


def compile_as(language, source, program):
    compiler, standard = (os.environ.get("CC", "cc"), "-std=c11") if language == "c" else (os.environ.get("CXX", "c++"), "-std=c++17")
    made = run(compiler, standard, "-D_DEFAULT_SOURCE", *STRICT, "-I", SOURCE / "include", "-x", language, source, "-o", program, "-x", "none", "-L",
               LIBRARY, "-lxheap", "-pthread")
    expect(made.returncode == 0, f"{source} as {language}:\n{made.stderr}")
    return f"./{program}"


def examples():
    texts = re.findall(r"```c\n(.*?)```", (SOURCE / "docs/xheap-api.md").read_text(), re.S)
    expect(len(texts) == 2, f"{len(texts)} examples")
    for name, text in zip(("heaviest", "session"), texts):
        pathlib.Path(f"{name}.c").write_text(text)
    for language in "c", "c++":
        trace = f"example-{len(language)}.xht"
        session = run(compile_as(language, "session.c", f"session-{len(language)}"), trace, *PERL)
        expect(session.returncode == 0, f"the session in {language}: {session}")
        counts = re.fullmatch(r"(\d+) of (\d+) blocks were never given back\n", session.stdout)
        expect(counts and 500 < int(counts[1]) < int(counts[2]), f"its blocks: {session.stdout}")
        heaviest = run(compile_as(language, "heaviest.c", f"heaviest-{len(language)}"), trace)
        rows = re.findall(r"^(\d+) bytes in (\d+) blocks$", heaviest.stdout, re.M)
        known = run(XHEAP, "heap", trace, "-stacks", "sp", "-top", "10", "-format", "csv").stdout.splitlines()
        column = known[0].split(",").index("peak_bytes")
        expect(len(rows) == 10 and [row[0] for row in rows] == [line.split(",")[column] for line in known[1:]],
               f"the heaviest stacks are not those of xheap heap: {heaviest.stdout}")
        expect("\n    perl!main\n" in heaviest.stdout, "nor are there their frames")
        bad = run(f"./heaviest-{len(language)}", "heaviest.c")
        expect((bad.returncode, bad.stdout, bad.stderr) == (1, "", "heaviest.c is not a trace\n"), f"what is no trace: {bad}")
    bad = run("./session-1", "no.xht", "no-such-command")
    expect(bad.returncode == 1 and bad.stderr == "cannot run no-such-command: No such file or directory\n", f"what cannot be run: {bad}")


def promises():
    header = (SOURCE / "include/xheap/xheap.h").read_text()
    promised = set(re.findall(r"\b(xheap_[a-z_]+)\(", header))
    library = LIBRARY / "libxheap.so"
    there = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", library).stdout.splitlines() if " A " not in line}
    expect(not promised - there, f"the header has more than the library: {promised - there}")
    expect(not {name for name in there if name.startswith("xheap_")} - promised, f"the library has more than the header: {there - promised}")
    used = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--undefined-only", library).stdout.splitlines()}
    if not any(name.startswith(("__asan", "__tsan", "__ubsan")) for name in used):
        expect(not used & FORBIDDEN, f"the library uses {used & FORBIDDEN}")


def main():
    promises()
    examples()
    return failed > 0


sys.exit(main())
