#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Autologgers in a real systemd, as process 1 of namespaces of its own over a copy-on-write view of this machine's files. What each
service allocates is in the trace, whenever and as whomever it starts, and a shutdown leaves a whole trace."""
import json
import os
import sys

from live import dump_each, expect, run_tests, xheap
from boot.machine import EARLY as EARLY_SERVICES, END, GUID, SERVED_BYTES, SYSTEMD, Machine, why_not

RESTARTS = 3
EARLY = "[Unit]\nDefaultDependencies=no\nAfter=xheap-autologger.service xheap-images.service\nBefore=sysinit.target\n"
SERVICE = "[Service]\nType=oneshot\nStandardOutput=append:/mnt/log/{name}\nExecStart=/opt/xheap/tests/live/served {count} {status}\n{more}"
# name: (blocks, other lines of [Service], exit status, starts)
SERVICES = {"early": (100, "", 0, 1), "timed": (300, "", 0, 1), "dynamic": (400, "DynamicUser=yes\n", 0, 1),
            "private": (500, "PrivateMounts=yes\nPrivateTmp=yes\nSystemCallFilter=@system-service\nNoNewPrivileges=yes\n", 0, 1),
            "failing": (600, "Type=simple\nRestart=on-failure\nRestartSec=0\n", 1, RESTARTS)}
SOCKET = {"listening.socket": "[Unit]\nDefaultDependencies=no\n[Socket]\nListenStream=/run/listening\nAccept=yes\n",
          "listening@.service": SERVICE.format(name="listening", count=200, status=0, more=""),
          "asking.service": "[Unit]\nRequires=listening.socket\nAfter=listening.socket\n[Service]\nType=oneshot\n"
                            "ExecStart=/usr/bin/perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"/run/listening\")->read(my $x, 1)'\n",
          "timed.timer": "[Timer]\nOnActiveSec=0\nAccuracySec=1us\n"}
STARTS = sum(row[3] for row in SERVICES.values()) + 1
OVER = (f"until [ $(cat /mnt/log/* 2>/dev/null | wc -l) -ge {STARTS} ]; do sleep 0.05; done\n"
        "xheap autologger list --format json > /mnt/list; xheap image list > /mnt/images\n"
        "xheap image list --format json > /mnt/images.json; grep -a \"\" /proc/[0-9]*/cmdline > /mnt/named\n" + END)
WANTS = ("early.service", "asking.service", "timed.timer", "dynamic.service", "private.service", "failing.service")


def boot(name, files, early=EARLY_SERVICES, first=SYSTEMD):
    """Start systemd until its services have run; what it wrote, the oracle's [(pid, blocks)], seconds, and the console's text."""
    units = dict(SOCKET)
    for unit, (count, more, status, _) in SERVICES.items():
        head = EARLY if unit == "early" else f"[Unit]\nStartLimitBurst={RESTARTS}\nStartLimitIntervalSec=1000\n"
        units[f"{unit}.service"] = head + SERVICE.format(name=unit, count=count, status=status, more=more)
    machine = Machine(name, units, WANTS, early, files, first)
    taken, said = machine.start(OVER)
    oracle = machine.oracle()
    expect(len(oracle) == STARTS, f"{name}: {oracle}")
    return machine.out, oracle, taken, said


def check(out, oracle, said, trace):
    """Each start of the oracle is in the trace, with all of its blocks."""
    status = (out / "list").read_text() + (out / "images").read_text()
    expect((out / trace).exists(), f"no trace: {status}{said[-3000:]}")
    facts = json.loads(xheap("info", out / trace, "-format", "json"))
    found = {}
    for process in facts["processes"]:
        if os.path.basename(process["image"]) == "served":
            found[process["pid"]] = process
    expect({pid for pid, _ in oracle} <= set(found), f"{sorted(found)}, not {oracle}: {status}")
    made = {}
    for row in dump_each(out / trace):
        if row["action"] != "Free" and row["size"] == str(SERVED_BYTES):
            made[row["process"]] = made.get(row["process"], 0) + 1
    for pid, blocks in oracle:
        counted = made.get(str(found[pid]["id"]), 0)
        expect(counted == blocks, f"process {pid}: {counted} of {blocks} blocks")
    # Only process 1 drops events rather than waits.
    first = {process["id"] for process in facts["processes"] if process["pid"] == 1}
    dropped = sum(sum(gap["events"].values()) for gap in facts["gaps"] if gap["process"] in first)
    expect(facts["missing_calls"] == dropped, f"{facts['missing_calls']} calls are missing, {dropped} of process 1")
    return facts


def registered():
    """Start = 1, with an image option: early, by socket, by timer, dynamic user, private mounts with a filter, failing."""
    files = {"autologger.d/boot.conf": f"[autologger]\nGuid = {GUID}\nStart = 1\nFileName = /mnt/boot.xht\nMaxFileSize = 0\n",
             "autologger.d/bad.conf": f"[autologger]\nGuid = {GUID}\nStart = 1\nEnableFlags = 1\n",
             "image.d/served.conf": "[image]\nImage = served\nSession = boot\n"}
    out, oracle, taken, said = boot("registered", files)
    facts = check(out, oracle, said, "boot.xht")
    expect("cut" not in xheap("info", out / "boot.xht"), "a shutdown leaves a whole trace")
    listed = {row["name"]: row for row in json.loads((out / "list").read_text())}
    expect(listed["boot"]["running"] and listed["boot"]["status"] == 0 and listed["bad"]["status"] == 1004, listed)
    return f"booted in {taken:.1f} s"


def plain():
    """The same machine without xheap."""
    _, _, taken, _ = boot("plain", {}, early=())
    return f"booted in {taken:.1f} s"


def everything():
    """AllProcesses = 1: process 1 and all that it starts, without image options."""
    files = {"autologger.d/all.conf": f"[autologger]\nGuid = {GUID}\nStart = 1\nFileName = /mnt/all.xht\nMaxFileSize = 0\nAllProcesses = 1\n"}
    out, oracle, taken, said = boot("everything", files, early=("xheap-autologger.service",))
    facts = check(out, oracle, said, "all.xht")
    first = [process for process in facts["processes"] if process["pid"] == 1]
    expect(first and "systemd" in first[0]["image"] and first[0]["events"] > 0, [process["image"] for process in facts["processes"]])
    return f"booted in {taken:.1f} s, {len(facts['processes'])} processes"


def before_init():
    """Boot = 1: systemd is recorded from its first instruction."""
    files = {"autologger.d/first.conf": f"[autologger]\nGuid = {GUID}\nStart = 1\nBoot = 1\nFileName = /mnt/first.xht\nMaxFileSize = 0\nAllProcesses = 1\n"}
    out, oracle, taken, said = boot("before", files, early=("xheap-autologger.service",), first="/opt/xheap/xheap-init")
    facts = check(out, oracle, said, "first.xht")
    first = facts["processes"][0]
    expect(first["pid"] == 1 and "systemd" in os.path.realpath(first["image"]) and first["events"] > 0, first)
    return f"booted in {taken:.1f} s, {len(facts['processes'])} processes"


def watched_before():
    """Boot = 1 with an image option: the watcher begins before process 1, and its service follows it."""
    files = {"autologger.d/early.conf": f"[autologger]\nGuid = {GUID}\nStart = 1\nBoot = 1\nFileName = /mnt/early.xht\nMaxFileSize = 0\n",
             "image.d/served.conf": "[image]\nImage = served\nSession = early\n"}
    out, oracle, taken, said = boot("watched", files, first="/opt/xheap/xheap-init")
    check(out, oracle, said, "early.xht")
    named = [line.partition(":")[2].split("\0") for line in (out / "named").read_text(errors="replace").split("\n")]
    expect(len([words for words in named if words[0] == "@xheap-images"]) >= 3 and any(words[0] == "@xheap" for words in named), f"a shutdown kills logger, keeper, guardian and watcher last: {named}")
    expect([words for words in named if words[0].endswith("/xheap-images")], f"the service follows: {named}")
    images = json.loads((out / "images.json").read_text())
    expect(images["early"] == 1 and not images["images"][0]["untraced"], images)
    return f"booted in {taken:.1f} s"


reason = why_not()
if reason:
    print(reason)
    sys.exit(77)
sys.exit(run_tests(plain, registered, everything, before_init, watched_before))
