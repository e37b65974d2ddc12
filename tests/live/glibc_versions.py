#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Earlier blocks with other releases of glibc than the machine's: all are found (earlier.py), or it is told that none can be.

The libraries are Debian's packages, fetched once into the build's directory, and only unpacked there. Without network, apt or a compiler it skips.

usage: glibc_versions.py [SUITE...]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from live import BUILD, XHEAP, Failure

HERE = pathlib.Path(__file__).resolve().parent
MIRROR = "http://deb.debian.org/debian"
SUITES = sys.argv[1:] or ("bullseye", "trixie", "sid")
KNOWN = range(31, 42)            # 2.31 to 2.41: src/inject/glibc.c
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


def libraries(suite):
    folder = pathlib.Path(BUILD, "tests/glibc", suite)
    if not (folder / "root").is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        fetch(suite, folder)
    return next((folder / "root").rglob("libc.so.6")).parent


def build(folder, place):
    """The program and its oracle, linked with these libraries, where earlier.py looks for them."""
    wanted = [folder / name for name in ("libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2")]
    loader, starts = wanted[1], [run("cc", f"-print-file-name={name}").stdout.strip() for name in ("crt1.o", "crti.o", "crtn.o")]
    common = ["cc", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-nostdlib", f"-Wl,-rpath,{folder}"]
    place.mkdir(parents=True)
    for command in ([*common, "-o", place / "earlier", f"-Wl,--dynamic-linker,{loader}", *starts[:2], HERE / "programs/earlier.c", *wanted, "-lgcc", starts[2]],
                    [*common, "-shared", "-fPIC", "-o", place / "oracle.so", HERE / "oracle.c", HERE / "calls.c", *wanted, "-lgcc"]):
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


def check(suite):
    folder, top = libraries(suite), pathlib.Path(suite).resolve()
    number = int(re.search(rb"GNU C Library[^\n]* version 2\.(\d+)", (folder / "libc.so.6").read_bytes())[1])
    build(folder, top / "tests/live")
    if number not in KNOWN:
        return f"glibc 2.{number}: {check_skipped(top / 'tests/live', number)}"
    done = run(sys.executable, HERE / "earlier.py", "still", "busy", env=dict(os.environ, BUILD=str(top)))
    if done.returncode:
        raise Failure(f"glibc 2.{number}: {done.stdout}")
    return f"glibc 2.{number}: {'; '.join(done.stdout.splitlines())}"


def main():
    failed, tried = 0, 0
    for suite in SUITES:
        began = time.monotonic()
        try:
            said, tried = check(suite), tried + 1
        except Missing as missing:
            said = f"not tried: {missing}"
        except Failure as failure:
            said, failed, tried = str(failure), failed + 1, tried + 1
        print(f"{suite}: {said}, {time.monotonic() - began:.1f} s", flush=True)
    if not tried:
        print("no other glibc can be had here")
    return 1 if failed else 0 if tried else SKIP


sys.exit(main())
