#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process that gains privileges by its exec is left alone and keeps them, whatever the way: by an image option, and by sessions that follow execs."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

from image.lab import FILES, Watching, clear, enter, listed, prepare, register, run, usual_places, wait_for_starts, wait_until_in_force
from live import PROGRAMS, XHEAP, expect, info, run_tests, wait_for

NOBODY, GROUP = 65534, 64019
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
# setpriv keeps its capabilities until it executes something; the shell has none.
BY_NOBODY = [*AS_NOBODY, "sh", "-c", '"$@"; true', "sh"]
CAP_NET_RAW, EFFECTIVE, REVISION_2 = 13, 1, 0x02000000
MAGIC = "XHEAP-TEST"
HANDLERS = FILES / "handlers"


def program(name):
    shutil.copy(os.path.join(PROGRAMS, "privileges"), FILES / name)
    return FILES / name


def of_user(name):
    program(name).chmod(0o4755)
    return FILES / name


def of_group(name):
    os.chown(program(name), 0, GROUP)
    (FILES / name).chmod(0o2755)
    return FILES / name


def with_capabilities(name):
    os.setxattr(program(name), "security.capability", struct.pack("<IIIII", REVISION_2 | EFFECTIVE, 1 << CAP_NET_RAW, 0, 0, 0))
    return FILES / name


def unreadable(name):
    of_user(name).chmod(0o4711)
    return FILES / name


def text(name, line):
    (FILES / name).write_text(line + "\n")
    (FILES / name).chmod(0o755)
    return FILES / name


KINDS = {"user": of_user, "group": of_group, "capabilities": with_capabilities}
WAYS = {kind: make for kind, make in KINDS.items()}
WAYS |= {f"interpreter-{kind}": lambda name, make=make: text(name, f"#!{make('of-' + name)}") for kind, make in KINDS.items()}
WAYS["unreadable-user"] = lambda name: text(name, f"#!{unreadable('of-' + name)}")
GAINED = {"user": {"user": 0}, "group": {"group": GROUP}, "capabilities": {"capabilities": 1 << CAP_NET_RAW}}
MISC = "misc-user"


def misc(name):
    """A file that the kernel executes by a setuid program, which a line of binfmt_misc names. A user namespace has lines of its own."""
    of_user(f"of-{name}")
    HANDLERS.mkdir(exist_ok=True)
    return text(name, MAGIC)


def has_misc():
    """Whether a user namespace has lines of its own here, so that the machine's are not touched."""
    HANDLERS.mkdir(exist_ok=True)
    done = run("unshare", "-Urm", "sh", "-c", f"mount -t binfmt_misc none {HANDLERS} && echo ':test:M::{MAGIC}::/bin/true:' > {HANDLERS}/register")
    return not done.returncode


def in_namespace(*command):
    """Run the command as root of a user namespace that has the same numbers of users, and its own line of binfmt_misc."""
    line = f":test:M::{MAGIC}::{FILES}/of-{MISC}:"
    script = f"echo ready && read go && mount -t binfmt_misc none {HANDLERS} && echo '{line}' > {HANDLERS}/register && exec \"$@\" <&-"
    process = subprocess.Popen(["unshare", "-Um", "sh", "-c", script, "sh", *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(process.stdout.readline() == "ready\n", "no namespace")
    for numbers in ("uid_map", "gid_map"):
        pathlib.Path(f"/proc/{process.pid}/{numbers}").write_text("0 0 65536")
    output, errors = process.communicate("go\n")
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def start(way, before=(), by=BY_NOBODY):
    command = [*before, *by, FILES / way]
    done = in_namespace(*command) if way == MISC else run(*command)
    expect(done.returncode == 0, f"{way}: {done}")
    return json.loads(done.stdout), done.stderr


def expect_gained(way, got, regions):
    gained = GAINED[way.rpartition("-")[2]]
    expect(gained.items() <= got.items() and got["secure"], f"{way}: it has lost {gained}: {got}")
    expect(got["regions"] == regions, f"{way}: {got['regions']} regions are mapped: {got}")


def ways():
    made = dict(WAYS) | ({MISC: misc} if has_misc() else {})
    for way, make in made.items():
        make(way)
    return list(made)


def said(found):
    return None if MISC in found else "all but binfmt_misc, of which this kernel has none for a user namespace"


def options():
    """By an option; with Privileged = yes it is recorded, as all that it executes."""
    clear()
    found = ways()
    shutil.copy("/bin/sh", FILES / "starter")
    shutil.copy("/bin/sh", FILES / "trusted-starter")
    register("trusted-starter", "--privileged")
    register("starter")
    for way in found:
        register(way)
    with Watching():
        wait_until_in_force()
        for way in found:
            expect_gained(way, start(way)[0], 0)
            row = wait_for_starts(way, 1)
            expect(row["starts"]["privileged"] == 1 and row["untraced"] == 1, f"{way}: {row}")
            # With all capabilities still, which it could use itself.
            if way != "capabilities" and way != "interpreter-capabilities":
                expect_gained(way, start(way, by=AS_NOBODY)[0], 0)
                expect(wait_for_starts(way, 2)["starts"]["privileged"] == 2, f"{way}, with capabilities: {listed()[1][way]}")
    clear()
    register("trusted-starter", "--privileged")
    register("starter")
    for way in found:
        register(way, "--privileged")
    with Watching():
        wait_until_in_force()
        for way in found:
            expect_gained(way, start(way)[0], 1)
            row = wait_for_starts(way, 1)
            expect(row["traced"] == 1 and not row["untraced"], f"{way}, allowed: {row}")
    clear()
    register("trusted-starter", "--privileged")
    register("starter")
    with Watching():
        wait_until_in_force()
        for count, way in enumerate(found, 1):
            # A recorded process executes such a file unrecorded in any case: its format is unknown.
            for starter, regions in (("starter", 0), ("trusted-starter", way != MISC)):
                expect_gained(way, start(way, by=[*BY_NOBODY, FILES / starter, "-c", '"$0"; true'])[0], regions)
                row = wait_for_starts(starter, count)
                expect(row["traced"] == count, f"{starter}: {row}")
    return said(found)


def followed():
    """In a recording of root's: each is named, with the reason."""
    found = ways()
    for way in found:
        got, errors = start(way, before=[XHEAP, "record", "-o", f"{way}.xht", "--"])
        expect_gained(way, got, 0)
        reason = "neither an ELF program" if way == MISC else "its exec "
        expect(f"{way}) runs untraced: " in errors and reason in errors, f"{way} is not named: {errors}")
        expect("untraced_processes" in info(f"{way}.xht"), f"{way} is not listed: {info(f'{way}.xht')}")
    return said(found)


def followed_by_user():
    """In a recording of the user's, whose tracer the kernel would not give them."""
    found, folder = ways(), pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="xheap-privileges."))
    folder.chmod(0o777)
    try:
        for way in found:
            got, errors = start(way, by=[*AS_NOBODY, XHEAP, "record", "-o", folder / f"{way}.xht", "--", "sh", "-c", '"$0"; true'])
            expect_gained(way, got, 0)
            expect("runs untraced: " in errors, f"{way} is not named: {errors}")
    finally:
        shutil.rmtree(folder)
    return said(found)


def session_of_user():
    """A user's session that an option allows: its tracer would keep the kernel from giving privileges, so it leaves the start alone."""
    clear()
    found, folder = ways(), pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="xheap-privileges."))
    folder.chmod(0o777)
    for way in found:
        register(way, "--privileged", "--session", f"{NOBODY}/mine")
    try:
        with usual_places(), Watching():
            wait_until_in_force()
            done = run(*AS_NOBODY, XHEAP, "start", "mine", "-p", "0", "-o", folder / "mine.xht")
            expect(done.returncode == 0, f"{done}")
            wait_for("the session", lambda: listed()[0]["sessions"] == 1)
            for way in found:
                expect_gained(way, start(way)[0], 0)
                row = wait_for_starts(way, 1)
                expect(row["starts"]["privileged"] == 1, f"{way}: {row}")
            run(*AS_NOBODY, XHEAP, "stop", "mine")
    finally:
        shutil.rmtree(folder)
    return said(found)


if __name__ == "__main__":
    enter()
    prepare()
    sys.exit(run_tests(options, followed, followed_by_user, session_of_user))
