#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Other releases of glibc than the machine's. Recording from a program's start is exact, and so are its stacks (check.py); attaching and letting go
harm nothing and miss nothing (attach/undisturbed.py); all earlier blocks are found (attach/earlier.py), or it is told that none can be. A program that its loader starts makes the same
calls. Crashes are explained as under the machine's (report/faults.py).

The libraries are Debian's packages, fetched once into the build's directory, and only unpacked there, or those in folders where somebody built or
unpacked others. Without network, apt or a compiler it skips.

usage: [GLIBC_FOLDERS=FOLDER:...] glibc_versions.py [SUITE|FOLDER...]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from live import BUILD, SOAK, SOURCE, XHEAP, Failure

HERE = SOURCE / "tests/live"
MIRROR = "http://deb.debian.org/debian"
# The oldest and the newest, and with SOAK=1 the one between them.
SUITES = ["bullseye", *(["trixie"] if SOAK else []), "sid"]
SOURCES = sys.argv[1:] or [*SUITES, *filter(None, os.environ.get("GLIBC_FOLDERS", "").split(":"))]
KNOWN = range(31, 44)            # 2.31 to 2.43: src/inject/glibc.c
FIND_OBJECT = 35                 # 2.35 and later have _dl_find_object()
PROGRAMS = ("earlier", "attached", "churn", "usable")
COMPILER = ["cc", "-w", "-g", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-fno-builtin", "-nostdlib"]
FETCH_SECONDS, SKIP = 30, 77


class Missing(Exception):
    """Why a version cannot be tried here."""


def run(*command, **more):
    return subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def apt(folder, *words, **more):
    """apt-get with lists of its own: nothing of the system's is changed."""
    options = {"Dir::State": folder / "state", "Dir::State::status": folder / "status", "Dir::Cache": folder / "cache",
               "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-", "Acquire::Languages": "none",
               "Acquire::http::Timeout": 5, "Acquire::Retries": 0, "APT::Sandbox::User": ""}
    try:
        done = run("apt-get", "-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}")), *words,
                   timeout=FETCH_SECONDS, **more)
    except subprocess.TimeoutExpired:
        raise Missing(f"apt-get {words[0]} takes longer than {FETCH_SECONDS} s") from None
    if done.returncode or re.search("^W: Failed to fetch", done.stdout, re.M):
        raise Missing(f"apt-get {words[0]}: {done.stdout.strip().splitlines()[-1:]}")


def fetch(suite, folder):
    for program in ("apt-get", "dpkg-deb", "cc"):
        if not shutil.which(program):
            raise Missing(f"no {program}")
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    # By its packages' checksums, as the lists have them; whose lists they are does not matter here.
    (folder / "sources.list").write_text(f"deb [trusted=yes] {MIRROR} {suite} main\n")
    apt(folder, "update")
    apt(folder, "download", "libc6:amd64", cwd=folder)
    package = next(folder.glob("libc6_*.deb"))
    done = run("dpkg-deb", "-x", package, folder / "unpacked")
    if done.returncode:
        raise Missing(f"{package.name} cannot be unpacked: {done.stdout}")
    (folder / "unpacked").rename(folder / "root")


def libraries(source):
    folder = pathlib.Path(source) if "/" in source else pathlib.Path(BUILD, "tests/glibc", source, "root")
    if "/" not in source and not folder.is_dir():
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.parent.mkdir(parents=True)
        fetch(source, folder.parent)
    library = next(folder.rglob("libc.so.6"), None)
    if not library:
        raise Missing(f"{folder} has no libc.so.6")
    return library.resolve().parent


def linking(folder):
    """How a program is linked with these libraries: the words before its source, and those behind."""
    loader = folder / "ld-linux-x86-64.so.2"
    # The last two are part of the first since 2.34.
    libraries = [folder / "libc.so.6", loader, *(folder / name for name in ("libpthread.so.0", "libdl.so.2") if (folder / name).exists())]
    starts = [run("cc", f"-print-file-name={name}").stdout.strip() for name in ("crt1.o", "crti.o", "crtn.o")]
    ends = [*libraries, "-lgcc", "-lgcc_eh"]
    return [*COMPILER, f"-Wl,-rpath,{folder}", f"-Wl,--dynamic-linker,{loader}", *starts[:2]], [*ends, starts[2]]


def build(folder, place, number):
    """The programs and their oracle, linked with these libraries, where the tests look for them."""
    before, behind = linking(folder)
    place.mkdir(parents=True)
    shutil.copy(pathlib.Path(BUILD, "tests/live/with"), place)
    commands = [[*before, "-o", place / name, HERE / f"programs/{name}.c", *behind] for name in PROGRAMS]
    parts = ["oracle", "calls", "stacks", *(["find_object"] if number < FIND_OBJECT else [])]
    commands.append([*COMPILER, "-shared", "-fPIC", f"-Wl,-rpath,{folder}", "-o", place / "oracle.so", *(HERE / f"{name}.c" for name in parts), *behind[:-1]])
    for command in commands:
        done = run(*command)
        if done.returncode:
            raise Missing(f"nothing can be linked with it here: {done.stdout.strip().splitlines()[-1:]}")


def check_skipped(place, number):
    target = subprocess.Popen([place / "earlier", "still", "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    done = run(XHEAP, "record", "-o", "skipped.xht", "-p", target.pid, "--duration", "300ms")
    target.communicate("\n", timeout=60)
    doubts = json.loads(subprocess.run([XHEAP, "heap", "skipped.xht", "-format", "json"], stdout=subprocess.PIPE, check=True).stdout)["earlier"]
    if done.returncode or target.returncode or "its C library is not glibc" not in done.stdout or not doubts.get("missing"):
        raise Failure(f"glibc 2.{number}: not told that blocks are missing: {done.stdout}{doubts}")
    if doubts["count"]:
        raise Failure(f"glibc 2.{number}: {doubts['count']} blocks of a heap that is not known")
    return "skipped, and said so"


def check_by_loader(folder, place, number):
    """Started by its loader, as a bundle does that brings a glibc of its own, a program makes the same calls."""
    seen = []
    for command in ([place / "usable"], [folder / "ld-linux-x86-64.so.2", "--library-path", folder, place / "usable"]):
        done = run(XHEAP, "record", "-o", "by_loader.xht", "--", *command)
        facts = json.loads(run(XHEAP, "info", "by_loader.xht", "-format", "json").stdout)
        seen.append((done.returncode, facts["complete"], facts["whole_stacks"], facts["events"], facts["processes"][0]["image"]))
    if seen[0] != seen[1] or seen[0][1] is not True or not seen[0][2]:
        raise Failure(f"glibc 2.{number}: directly {seen[0]}, by its loader {seen[1]}")
    return f"by its loader: {seen[0][2]} stacks"


def check_part(number, top, *command, **environment):
    """One of the tests, with these programs; what it says."""
    done = run(sys.executable, *command, env=dict(os.environ, BUILD=str(top), **environment), cwd=top)
    if done.returncode == SKIP:
        return [f"not tried: {done.stdout.strip()}"]
    if done.returncode:
        raise Failure(f"glibc 2.{number}: {done.stdout}")
    return done.stdout.splitlines()


def check(source):
    folder, top = libraries(source), pathlib.Path(source.strip("/").replace("/", "_")).resolve()
    number = int(re.search(rb"GNU C Library[^\n]* version 2\.(\d+)", (folder / "libc.so.6").read_bytes())[1])
    build(folder, top / "tests/live", number)
    said = [check_part(number, top, HERE / "check.py", "churn")[-1], *check_part(number, top, HERE / "attach/undisturbed.py", "counting", "children")]
    said.append(check_by_loader(folder, top / "tests/live", number))
    said += check_part(number, top, HERE / "report/faults.py", LINKING=json.dumps([[str(word) for word in words] for words in linking(folder)]))
    if number in KNOWN:
        said += check_part(number, top, HERE / "attach/earlier.py", "still", "usable", "stale", "unusual", "tuned", "busy", "brief", "forks")
    else:
        said.append(check_skipped(top / "tests/live", number))
    return "; ".join((f"glibc 2.{number}", *said))


def main():
    failed, tried = 0, 0
    for source in SOURCES:
        began = time.monotonic()
        try:
            said, tried = check(source), tried + 1
        except Missing as missing:
            said = f"not tried: {missing}"
        except Failure as failure:
            said, failed, tried = str(failure), failed + 1, tried + 1
        print(f"{source}: {said}, {time.monotonic() - began:.1f} s", flush=True)
    if not tried:
        print("no other glibc can be had here")
    return 1 if failed else 0 if tried else SKIP


sys.exit(main())
