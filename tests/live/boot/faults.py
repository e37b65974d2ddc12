#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Boots in which something is in the way of recording: services in every kind of sandbox, and loggers that are killed. Counts equal an oracle's, or
say what is missing; the machine boots."""
import os
import sys

from live import PATIENCE, dump_each, expect, info, run_tests
from boot.machine import END, GUID, SERVED_BYTES, Machine, why_not

INIT = "/opt/xheap/xheap-init"
SERVED = "[Unit]\nDefaultDependencies=no\nAfter={after}\n[Service]\nType=oneshot\nStandardOutput=append:/mnt/log/{name}\nExecStart=/opt/xheap/tests/live/served {count} 0\n{more}"
# Denied system calls end a process with SIGSYS. None of these is needed by the service, but by xheap.
KILLING = "SystemCallFilter=~madvise futex gettid getppid msync nanosleep faccessat prctl socketpair recvmsg\n"
# name: lines of [Service]
SANDBOXES = {
    "filter": "SystemCallFilter=@system-service\nNoNewPrivileges=yes\n",
    "killing": KILLING + "NoNewPrivileges=yes\n",
    "files": "ProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\nPrivateMounts=yes\nInaccessiblePaths=/srv\n",
    "hidden": "TemporaryFileSystem=/run /dev/shm /tmp\n",
    "kernel": "ProtectKernelTunables=yes\nProtectKernelModules=yes\nProtectControlGroups=yes\nProtectClock=yes\n",
    "proc": "ProtectProc=invisible\nProcSubset=pid\nUser=nobody\n",
    "memory": "MemoryDenyWriteExecute=yes\nLockPersonality=yes\nRestrictRealtime=yes\nSystemCallArchitectures=native\n",
    "families": "RestrictAddressFamilies=none\nRestrictNamespaces=yes\nPrivateNetwork=yes\n",
    "users": "PrivateUsers=yes\nUser=nobody\n",
    "dynamic": "DynamicUser=yes\nCapabilityBoundingSet=\n",
    "small": "LimitAS=120M\nSystemCallFilter=@system-service\n",
    "strictest": "DynamicUser=yes\nProtectSystem=strict\nProtectProc=invisible\nPrivateUsers=yes\nMemoryDenyWriteExecute=yes\nRestrictAddressFamilies=none\n"
                 "RestrictNamespaces=yes\nSystemCallArchitectures=native\nNoNewPrivileges=yes\nTemporaryFileSystem=/run /dev/shm\n" + KILLING,
}
COUNTS = {name: 100 + 10 * number for number, name in enumerate(SANDBOXES)}


def units(more=None, after="xheap-autologger.service xheap-images.service"):
    return {f"{name}.service": SERVED.format(name=name, count=COUNTS[name], more=lines, after=after) for name, lines in SANDBOXES.items()} | (more or {})


def until(count):
    """A service that does not run would be waited for: not for ever."""
    return f"for i in $(seq {100 * PATIENCE}); do [ $(cat /mnt/log/* 2>/dev/null | wc -l) -ge {count} ] && break; sleep 0.05; done\n"


def made_blocks(trace):
    """{pid: blocks} of the services, and the facts of the trace."""
    facts = info(trace)
    made = {}
    for row in dump_each(trace):
        if row["action"] != "Free" and row["size"] == str(SERVED_BYTES):
            made[row["process"]] = made.get(row["process"], 0) + 1
    pids = {process["pid"]: made.get(str(process["id"]), 0) for process in facts["processes"] if os.path.basename(process["image"]) == "served"}
    return pids, facts


def check_sandboxes(machine, trace):
    oracle = machine.oracle()
    expect(sorted(blocks for _, blocks in oracle) == sorted(COUNTS.values()), f"{oracle}: {machine.console.read_text()[-3000:]}")
    made, facts = made_blocks(machine.out / trace)
    names = {count: name for name, count in COUNTS.items()}
    wrong = {names[blocks]: made.get(pid) for pid, blocks in oracle if made.get(pid) != blocks}
    expect(not wrong, f"blocks of services: {wrong}")
    first = {process["id"] for process in facts["processes"] if process["pid"] == 1}
    expect(facts["missing_calls"] == sum(sum(gap["events"].values()) for gap in facts["gaps"] if gap["process"] in first), facts["gaps"])


def registered():
    """Each sandbox, by an image option."""
    etc = {"autologger.d/boot.conf": f"[autologger]\nGuid = {GUID}\nStart = 1\nFileName = /mnt/boot.xht\n", "image.d/served.conf": "[image]\nImage = served\nSession = boot\n"}
    machine = Machine("registered", units(), [f"{name}.service" for name in SANDBOXES], etc=etc)
    # A busy machine may need more than the usual tenth of a second for twelve at once.
    extra = machine.disk / "units/xheap-images.service.d"
    extra.mkdir()
    (extra / "deadline.conf").write_text("[Service]\nExecStart=\nExecStart=/usr/local/bin/xheap-images --deadline 10000\n")
    machine.start(until(len(SANDBOXES)) + END)
    check_sandboxes(machine, "boot.xht")


def everything():
    """Each sandbox, as a descendant of process 1."""
    etc = {"autologger.d/all.conf": f"[autologger]\nGuid = {GUID}\nStart = 1\nBoot = 1\nAllProcesses = 1\nFileName = /mnt/all.xht\nMaxFileSize = 0\n"}
    machine = Machine("everything", units(after=""), [f"{name}.service" for name in SANDBOXES], ["xheap-autologger.service"], etc, INIT)
    machine.start(until(len(SANDBOXES)) + END)
    check_sandboxes(machine, "all.xht")


def killed():
    """The logger is killed amid the boot. All services run; the next start of the session keeps what was recorded, which says that programs are missing."""
    etc = {"autologger.d/all.conf": f"[autologger]\nGuid = {GUID}\nStart = 1\nBoot = 1\nAllProcesses = 1\nFileName = /mnt/all.xht\nMaxFileSize = 0\n"}
    early = SERVED.format(name="early", count=77, more="", after="").replace("[Service]", "Before=killing-logger.service\n[Service]")
    kill = ("[Unit]\nDefaultDependencies=no\nAfter=early.service\nBefore=sysinit.target\n[Service]\nType=oneshot\nExecStart=/bin/sh -c "
            "'for p in /proc/[0-9]*; do grep -aq [s]tart.all $$p/cmdline && kill -KILL $${p#/proc/}; done; true'\n")
    more = {"early.service": early, "killing-logger.service": kill}
    later = {f"{name}.service": text for name, text in ((name, SERVED.format(name=name, count=COUNTS[name], more=SANDBOXES[name], after="killing-logger.service"))
                                                      for name in ("filter", "files", "dynamic"))}
    machine = Machine("killed", more | later, ["early.service", "killing-logger.service", *later], [], etc, INIT)
    machine.start(until(4) + "xheap autologger run; xheap launch all -- /opt/xheap/tests/live/served 55 0 >> /mnt/log/again\nxheap autologger stop\n" + END)
    oracle = dict(machine.oracle())
    expect(len(oracle) == 5, oracle)
    made, facts = made_blocks(machine.out / "all.xht.earlier")
    early_pid = next(pid for pid, blocks in oracle.items() if blocks == 77)
    expect(made.get(early_pid) == 77 and not facts["complete"], f"{made}, {oracle}")
    expect(facts["missing_calls"] > 0 or "untraced_execs" in facts, f"nothing says what is missing: {facts}")
    made, _ = made_blocks(machine.out / "all.xht")
    again = next(pid for pid, blocks in oracle.items() if blocks == 55)
    expect(made.get(again) == 55, f"{made}, {oracle}")
    return f"{facts['missing_calls']} calls missing, {facts.get('untraced_execs')}"


reason = why_not()
if reason:
    print(reason)
    sys.exit(77)
sys.exit(run_tests(registered, everything, killed))
