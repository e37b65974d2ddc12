#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shutdowns under load (machine.py): services allocate until they are stopped, by exit, power-off and restart. The trace is whole, and it has every block that
the services have counted; a session with AllProcesses counts the calls that it dropped."""
import sys

from live import expect, info, is_whole, run_tests
from boot.machine import END, EXIT, GUID, POWEROFF, REBOOT, SYSTEMD, Machine, blocks_of, why_not

BUSY, ROUNDS = 3, 20
# Begins early, so that it is stopped late; ROUNDS blocks each millisecond.
SERVICE = ("[Unit]\nDefaultDependencies=no\nAfter=xheap-images.service xheap-autologger.service{after}\nConflicts=shutdown.target\nBefore=shutdown.target\n[Service]\n"
           "Type=notify\nStandardOutput=append:/mnt/log/busy%i\nExecStart=/usr/local/bin/tests/live/serving 100 {rounds}\n")
LOGGER = f"[autologger]\nGuid = {GUID}\nStart = 1\nFileName = /mnt/boot.xht\nMaxFileSize = 0\n"
IMAGE = {"image.d/serving.conf": "[image]\nImage = serving\nSession = boot\n"}


def machine_of(name, more, files, early, first=SYSTEMD):
    service = SERVICE.format(after="", rounds=ROUNDS)
    return Machine(name, {"busy@.service": service}, [f"busy@{number}.service" for number in range(BUSY)], early, {"autologger.d/boot.conf": LOGGER + more, **files}, first)


def loaded(how):
    """Wait until the services have allocated for a while, then shut down in this way."""
    return f"until [ $(systemctl is-active 'busy@0' 'busy@1' 'busy@2' | grep -cx active) = {BUSY} ]; do sleep 0.02; done\nsleep 0.3\n{how}\n"


def check(machine, seconds, can_drop):
    oracle = machine.oracle()
    expect(len(oracle) == BUSY, f"{oracle}: {machine.said()}")
    facts, found = info(machine.out / "boot.xht"), blocks_of(machine.out / "boot.xht", "serving")
    expect(is_whole(facts), facts)
    lacking = {pid: blocks - found.get(pid, 0) for pid, blocks in oracle if blocks != found.get(pid, 0)}
    expect(not lacking or (can_drop and all(0 < count <= facts["lost_events"] for count in lacking.values())),
           f"{lacking} blocks are missing of {oracle}, {facts['lost_events']} events lost")
    return f"{sum(blocks for _, blocks in oracle)} blocks, {facts['lost_events']} events lost, {seconds:.1f} s"


def shut_down(name, how, status, more="", files=IMAGE, early=("xheap-autologger.service", "xheap-images.service"), first=SYSTEMD, can_drop=False):
    machine = machine_of(name, more, files, early, first)
    seconds, _ = machine.start(loaded(how), status=status)
    return check(machine, seconds, can_drop)


def ended():
    return shut_down("ended", END, EXIT)


def powered_off():
    return shut_down("powered", "systemctl poweroff", POWEROFF)


def restarted():
    """Every process is recorded, from before systemd, and the machine restarts."""
    return shut_down("restarted", "systemctl reboot", REBOOT, "AllProcesses = 1\nBoot = 1\n", {}, ("xheap-autologger.service",), "/usr/local/bin/xheap-init", True)


reason = why_not()
if reason:
    print(reason)
    sys.exit(77)
sys.exit(run_tests(ended, powered_off, restarted))
