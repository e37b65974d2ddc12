#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The documented calls: a program that uses them, compiled against the header and the library as a user would, in C and in C++."""
import csv
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile

from live import LONG_SECONDS

XHEAP, BUILD, SOURCE = os.environ["XHEAP"], pathlib.Path(os.environ["BUILD"]).resolve(), pathlib.Path(os.environ["SOURCE"])
FLAGS = ["-Wall", "-Wextra", "-Werror", "-I", SOURCE / "include", "-L", BUILD / "src/api", "-lxheap"]


def check_denied(environment):
    """What is told to a user whom the kernel forbids it; "" when that is right."""
    if os.geteuid() != 0:
        return ""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="xheap-denied.") as folder:
        os.chmod(folder, 0o777)
        for file in ("heaptrace", XHEAP, *(BUILD / "src/api").glob("libxheap.so*")):
            if os.path.isfile(file):
                shutil.copy(file, folder)
        environment = dict(environment, LD_LIBRARY_PATH=folder, XHEAP=f"{folder}/xheap", XHEAP_RUNTIME_DIR="")
        nobody = pwd.getpwnam("nobody")
        run = subprocess.run([f"{folder}/heaptrace", "denied", str(os.getpid()), folder], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, timeout=LONG_SECONDS, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    return "" if run.stdout == "0 failed\n" else run.stdout or str(run)


def main():
    source = SOURCE / "tests/live/programs/heaptrace.c"
    subprocess.run([os.environ.get("CC", "cc"), source, "-o", "heaptrace", *FLAGS], check=True)
    pathlib.Path("header.cc").write_text('#include <xheap/heaptrace.h>\nint main() { EVENT_TRACE_PROPERTIES p = {}; return (int)StopTrace(0, 0, &p) == 0; }\n')
    subprocess.run(["c++", "-std=c++11", "header.cc", "-o", "header", *FLAGS], check=True)
    exported = subprocess.run(["nm", "-D", "--defined-only", BUILD / "src/api/libxheap.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
    others = [line for line in exported.splitlines() if "XHEAP_0.1" not in line]
    if others:
        print(f"libxheap.so exports more than it promises: {others}")
        return 1
    environment = dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "src/api"), XHEAP=str(pathlib.Path(XHEAP).resolve()))
    run = subprocess.run(["./heaptrace", os.getcwd(), BUILD / "tests/live/attached"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, timeout=LONG_SECONDS)
    print(run.stdout)
    if run.returncode or run.stdout.strip() != "0 failed":
        return 1
    denied = check_denied(environment)
    if denied:
        print(f"a process of another user: {denied}")
        return 1
    rows = list(csv.DictReader(subprocess.run([XHEAP, "dump", "api.xht", "-events", "-format", "csv"], stdout=subprocess.PIPE, text=True,
                                              check=True).stdout.splitlines()))
    seen = [row for row in rows if row["size"] == "4002"]
    if len(seen) != 1 or seen[0]["stack_id"] in ("", "0"):
        print(f"the suspended process's call, with its stack: {seen}")
        return 1
    info = json.loads(subprocess.run([XHEAP, "info", "api.xht", "-format", "json"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    print(f"{len(rows)} events, complete: {info['complete']}")
    return not info["complete"]


sys.exit(main())
