#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The service files: what systemd thinks of them, and that what they keep has its reason beside it. tests/live/boot/image_service.py runs them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE, BUILD = pathlib.Path(os.environ["SOURCE"]), pathlib.Path(os.environ["BUILD"]).resolve()
SKIP = 77
# The most exposure that `systemd-analyze security` may find, of 10. Loggers run without a filter of system calls.
TIGHT, WITH_LOGGERS = 5.0, 7.5
MOST = {"xheap-autologger": WITH_LOGGERS, "xheap-images": WITH_LOGGERS, "xheap-autologger-end": TIGHT, "xheap-boottrace": TIGHT, "xheap-push": TIGHT}
# What each of them has.
ALL = {("NoNewPrivileges", "yes"), ("DevicePolicy", "closed")}
# systemd makes a filter of system calls for each of these.
FILTERS = ("SystemCall", "Restrict", "LockPersonality", "MemoryDenyWriteExecute", "PrivateDevices", "ProtectClock", "ProtectHostname", "ProtectKernel")


def expect(condition, what):
    if not condition:
        sys.exit(what)


def analyze(*words):
    done = subprocess.run(["systemd-analyze", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def settings(text):
    return re.findall(r"^([A-Za-z]+)=(.*)", text, re.M)


def check_text(name, text):
    comments = " ".join(re.findall(r"^# (.*)", text, re.M))
    kept = [word for key, value in settings(text) if key == "CapabilityBoundingSet" for word in value.split()]
    expect(("CapabilityBoundingSet", "") in settings(text) or kept, f"{name}: it keeps every capability")
    for capability in kept:
        expect(re.search(rf"\b{capability.removeprefix('CAP_')}: \w+", comments), f"{name}: no reason beside {capability}")
    expect(ALL <= set(settings(text)), f"{name}: not all of {ALL}")
    filters = [key for key, _ in settings(text) if key.startswith(FILTERS)]
    expect(not filters or MOST[name] == TIGHT, f"{name}: loggers cannot read filters of targets with {filters}")
    expect("# Open, as " in text, f"{name}: no reason for what is left open")


def check(name, path, text):
    # By a name without a blank, as where programs are installed.
    programs = path.parent.absolute() / "programs"
    if not programs.is_symlink():
        programs.symlink_to(BUILD)
    path.write_text(text.replace("@bindir@", str(programs)))
    status, said = analyze("verify", "--man=no", "--recursive-errors=no", path)
    expect(not status and name not in said, f"{name}: {said}")
    status, said = analyze("security", "--offline=true", "--no-pager", f"--threshold={MOST[name] * 10:.0f}", path)
    last = said.strip().splitlines()[-1]
    expect(not status, f"{name}: more than {MOST[name]}: {last}")
    print(last)


def main():
    units = {path.name.removesuffix(".service.in"): path.read_text() for path in (SOURCE / "service").iterdir()}
    expect(set(units) == set(MOST), f"units: {sorted(units)}, with a limit: {sorted(MOST)}")
    for name, text in units.items():
        check_text(name, text)
    if not shutil.which("systemd-analyze") or "--offline" not in analyze("--help")[1]:
        print("skipped: systemd-analyze security --offline is not here")
        sys.exit(SKIP)
    for name, text in units.items():
        check(name, pathlib.Path(f"{name}.service").absolute(), text)


main()
