#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options when the power goes at any step. Each command is ended before each of its calls that change files, and the tree that is left is used as
after a boot: each option is there with its old or its new values, or not at all; programs start, and are recorded exactly if their option is there."""
import os
import re
import shutil
import subprocess
import sys

from image.lab import FILES, OPTIONS, ROOT, Watching, clear, enter, listed, prepare, run
from live import XHEAP, expect, run_tests, strace_is_here, wait_for, xheap

PERL = FILES / "perl"
CALLS = ("mkdir", "mkdirat", "write", "fchmod", "fsync", "rename", "renameat", "renameat2", "unlink", "unlinkat", "ftruncate", "symlink", "link")
# What it says is no file.
COMMANDS = {"add": (["add", "perl", "--user", "root", "--sample", "64K"], {}),
            "add again": (["add", "perl", "--arguments", "*"], {"perl": {"Image": "perl", "TracingFlags": "0x1", "User": "root"}}),
            "disable": (["disable", "perl"], {"perl": {"Image": "perl", "TracingFlags": "0x1"}}),
            "enable": (["enable", "perl"], {"perl": {"Image": "perl", "TracingFlags": "0x1", "Enabled": "no"}}),
            "remove": (["remove", "perl"], {"perl": {"Image": "perl", "TracingFlags": "0x1"}, "sort": {"Image": "sort", "TracingFlags": "0x1"}}),
            "remove --all": (["remove", "--all"], {"perl": {"Image": "perl", "TracingFlags": "0x1"}, "sort": {"Image": "sort", "TracingFlags": "0x1"}})}


def set_options(options):
    shutil.rmtree(ROOT / "etc", ignore_errors=True)
    if options:
        OPTIONS.mkdir(parents=True)
    for name, values in options.items():
        (OPTIONS / f"{name}.conf").write_text("[image]\n" + "".join(f"{key} = {value}\n" for key, value in values.items()))


def options_now():
    """{image: values}; none is half there."""
    state, rows = listed()
    expect(not state["mistakes"], f"an option is half there: {state['mistakes']}")
    return {image: row["values"] for image, row in rows.items()}


def calls_of(command):
    """The calls of an undisturbed run that change files, in their order: [(name, number among those of its name, line)]."""
    run("strace", "-o", "calls", "-e", "trace=" + ",".join("?" + name for name in CALLS), XHEAP, "image", *command)
    seen, calls = {}, []
    for line in open("calls"):
        name = line.partition("(")[0]
        if name in CALLS:
            seen[name] = seen.get(name, 0) + 1
            calls.append((name, seen[name], line.strip()))
    return calls


def check_durable(command, calls):
    """What a rename puts in place is on the disk before, and its directory after, or the new name may have no content after a power loss."""
    names = [name for name, _, _ in calls]
    for index, name in enumerate(names):
        if name.startswith("rename"):
            expect("fsync" in names[:index] and "write" not in names[names.index("fsync"):index], f"{command}: renamed before it was written: {calls}")
        if name.startswith(("rename", "unlink")):
            expect("fsync" in names[index + 1:] or "ENOENT" in calls[index][2], f"{command}: the directory is not written: {calls}")


def changes():
    """Ended before each call of each command: every option has its old values or its new ones."""
    if not strace_is_here():
        return "skipped: there is no strace"
    clear()
    steps, outcomes = 0, {}
    for name, (command, before) in COMMANDS.items():
        set_options(before)
        old = options_now()
        calls = calls_of(command)
        check_durable(command, calls)
        new = options_now()
        expect(old != new and calls, f"{name} changes nothing")
        for call, number, line in calls:
            set_options(before)
            subprocess.run(["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}", XHEAP, "image", *command],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            now = options_now()
            for image in {*old, *new}:
                expect(now.get(image) in (old.get(image), new.get(image)), f"{name}, ended before {line}: {image} has {now.get(image)}, not {old.get(image)} or {new.get(image)}")
            outcomes.setdefault(name, set()).add(str(sorted(now.items())) == str(sorted(new.items())))
            # What is left keeps no later command from its work.
            xheap("image", *command, status=None)
            after = options_now()
            expect(after == new, f"{name}, ended before {line}, and again: {after}, not {new}")
            expect(not [path for path in OPTIONS.iterdir() if not path.name.endswith(".conf")], f"{name}, ended before {line}, and again: {list(OPTIONS.iterdir())}")
            steps += 1
    expect(all(False in found for found in outcomes.values()), f"no command was ended before its change: {outcomes}")
    return f"{len(COMMANDS)} commands, ended at {steps} steps"


def boots():
    """The trees that an ended command leaves, as a boot finds them: a program is recorded if its option is there, and starts in any case."""
    if not strace_is_here():
        return "skipped: there is no strace"
    for name, call in (("add", "fsync"), ("add", "renameat"), ("add again", "renameat"), ("remove", "unlinkat"), ("remove", "fsync")):
        clear()
        command, before = COMMANDS[name]
        set_options(before)
        subprocess.run(["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL", XHEAP, "image", *command],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        is_there = "perl" in options_now()
        with Watching("--deadline", "5000"):
            wait_for("options in force", lambda: listed()[0]["in_force"] or not listed()[1])
            expect(run(PERL, "-e", "exit 3").returncode == 3, f"{name}, ended before {call}: a program did not start")
            if is_there:
                wait_for("a traced start", lambda: listed()[1]["perl"]["traced"] == 1)
        expect(is_there == ((ROOT / "var/lib/xheap/traces").exists() and any((ROOT / "var/lib/xheap/traces").iterdir())), f"{name}, ended before {call}: {is_there}")


def upgrade():
    """The keeper's own files as another version, or a power loss, left them: cut at any place, or with anything in them."""
    clear()
    set_options({"perl": {"Image": "perl"}})
    place = ROOT / "run/xheap-images"
    with Watching("--deadline", "5000"):
        wait_for("options in force", lambda: listed()[0]["in_force"])
        run(PERL, "-e", "1")
        wait_for("a traced start", lambda: listed()[1]["perl"]["traced"] == 1)
    whole = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    expect("status" in whole and "life" in whole, f"{list(whole)}")
    cases = [("status", whole["status"][:len(whole["status"]) // 3]), ("status", b""), ("status", os.urandom(3000)), ("status", re.sub(rb"options=\d+", b"options=99999999", whole["status"])),
             ("status", re.sub(rb"intervals=\d+", b"intervals=18446744073709551615", whole["status"])), ("life", b""), ("life", whole["life"][:1000]), ("life", whole["life"] + b"x"),
             ("life", b"\xff" * len(whole["life"])), ("counts", b""), ("counts", b"\xff" * 9)]
    for name, content in cases:
        for other, text in whole.items():
            (place / other).write_bytes(text)
        (place / name).write_bytes(content)
        with Watching("--deadline", "5000"):
            wait_for("options in force", lambda: listed()[0]["in_force"])
            before = listed()[1]["perl"]["traced"]
            expect(run(PERL, "-e", "exit 3").returncode == 3, f"{name} of {len(content)} bytes: a program did not start")
            wait_for(f"a traced start with a {name} of {len(content)} bytes", lambda: listed()[1]["perl"]["traced"] != before)
    return f"{len(cases)} damaged files"


enter()
prepare()
sys.exit(run_tests(changes, boots, upgrade))
