#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The quick starts of docs/autologger.md, typed line by line as root in a machine of its own (machine.py): what the lines are said to do comes of them, and the
last ones undo everything. Its table of options is true.

usage: quick_starts.py        SOAK=1: services run for the default time of boottrace
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

from live import SOAK, SOURCE, expect, info, run_tests, xheap
from boot.machine import END, REBOOT, Machine, blocks_of, why_not

PAGE = SOURCE / "docs/autologger.md"
TITLES = ("Trace the boot", "Compare ten starts of a service before and after a change", "Undo everything")
NGINX = "[Service]\nType=notify\nEnvironmentFile=/mnt/count\nStandardOutput=append:/mnt/log/nginx\nExecStart=/usr/local/bin/tests/live/serving $COUNT\n[Install]\nWantedBy=multi-user.target\n"
SCENARIOS = ("trace boot", "trace hibernate", "standby", "shutdown", "rebootCycle")
# The documented options, each with a value, and the documented scenarios.
DOCUMENTED = {**dict.fromkeys(SCENARIOS, ""), "numRuns": "2", "resultPath": "{results}", "runTag": "x", "preTraceCmd": "true",
              "callBack": "true", "remove": "", "postBootDelay": "120", "stackWalk": "HeapAlloc", "traceFlags": "BASE", "noTraceFlagsInFileName": "", "wakeupDelay": "60",
              "prepSystem": "", "noPrepReboot": "", "verboseReadyBoot": "", "noPopups": "", "leavePremerged": ""}
STATE = "{ find /etc/xheap /var/lib/xheap -type f -not -name '*.xht'; xheap sessions; systemctl is-enabled xheap-autologger.service xheap-boottrace.service; } > /mnt/%s 2>/dev/null\n"
CHANGE = "(change something)"


def lines_of(title):
    """What a reader types: the lines of the first block below the heading."""
    text = PAGE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    block = re.search(r"((?:^    .+\n)+)", text, re.MULTILINE)
    expect(block, f"{PAGE.name} has no lines below {title}")
    return [line.strip() for line in block[1].splitlines()]


def typed(lines):
    """A shell's commands for the lines: each says that it is done, or that it failed."""
    script = ""
    for line in lines:
        expect(line == CHANGE or line.startswith("# "), f"{line}: neither typed by root nor a remark")
        command = "echo COUNT=140 > /mnt/count" if line == CHANGE else line[2:]
        if "boottrace -trace service" in command and not SOAK:
            command += " -postBootDelay 0"
        script += f"echo {shlex.quote('> ' + line)}\n{command} || echo 'failed: status' $?\n"
    return script


def quick_starts():
    first, compare, undo = (lines_of(title) for title in TITLES)
    expect("# reboot" in first, first)
    at = first.index("# reboot")
    machine = Machine("typed", {"nginx.service": NGINX}, early=())
    (machine.out / "count").write_text("COUNT=100\n")
    begin = "reboot() { systemctl reboot; }\ncd /mnt\n"
    machine.start(begin + STATE % "before" + typed(first[:at + 1]) + "sleep 100\n", status=REBOOT)
    machine.start(begin + typed(first[at + 1:]) + "cp /var/lib/xheap/traces/boot.xht /mnt\n" + typed(compare) + typed(undo) + STATE % "after" + END)
    said = machine.said()
    expect("failed" not in said, said)
    facts = info(machine.out / "boot.xht")
    expect(any(process["pid"] == 1 for process in facts["processes"]), facts["processes"])
    report = said.partition("> # xheap report")[2].partition("\n> ")[0]
    expect("boot.xht" in report and "systemd" in report, report)
    expect(len(machine.oracle("nginx")) == 20, machine.oracle("nginx"))
    for number, (pid, blocks) in enumerate(machine.oracle("nginx")):
        trace = machine.out / f"service-nginx.service_{'before' if number < 10 else 'after'}_{number % 10 + 1}.xht"
        expect(blocks_of(trace, "serving") == {pid: blocks} and blocks == (100 if number < 10 else 140), f"{trace}: not {pid}: {blocks}")
    expect("From tag before (10 runs) to tag after (10 runs):" in said, said)
    states = [(machine.out / name).read_text() for name in ("before", "after")]
    expect(states[0] == states[1], "\n--\n".join(states))
    return f"{len(first) + len(compare) + len(undo)} lines"


def command():
    """The line for a command, which needs neither root nor services."""
    line = re.search(r"`(xheap boottrace -trace command [^`]*) CMD`", PAGE.read_text())
    expect(line, "no line for a command")
    machine = Machine("command", early=())
    machine.start(f"cd /mnt; chmod 777 /mnt; setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'HOME=/tmp {line[1]} ls /' || echo failed\n" + END)
    said = machine.said()
    expect("failed" not in said and "10 runs in /mnt" in said, said)
    expect(len(list(machine.out.glob("command_before_*.xht"))) == 10, sorted(machine.out.iterdir()))


def options():
    """The table of boottrace's options: every documented one has a row, which is true."""
    results = pathlib.Path("options").absolute()
    results.mkdir()
    table = PAGE.read_text().partition("\n## Options of boottrace\n")[2]
    rows = {}
    for line in re.findall(r"^\| (`-.*) \| (.*) \|$", table, re.MULTILINE):
        rows.update(dict.fromkeys(re.findall(r"`-?([^`]+)`", line[0]), line[1]))
    missing = set(DOCUMENTED) - set(rows)
    expect(not missing, f"no row for {missing}")
    for name, value in DOCUMENTED.items():
        if name == "remove":
            xheap("boottrace", "-remove", env=dict(os.environ, XHEAP_IMAGE_ROOT=str(results)))
            continue
        words = ["-trace", name.removeprefix("trace "), "-resultPath", "/"]
        if name not in SCENARIOS:
            words = [f"-{name}", *value.format(results=results).split(), "-trace", "command", "--", "true"]
        # Nobody allows the restart.
        is_refused = rows[name].startswith("refused") or name == "trace boot"
        said = xheap("boottrace", *words, status=2 if is_refused else 0, cwd=results, stdin=subprocess.DEVNULL)
        expect(not is_refused or said.startswith("xheap: boottrace: "), f"{words}: {said}")
        expect((name == "trace boot") == ("-yes allows it" in said), said)
    return f"{len(DOCUMENTED)} options"


reason = why_not()
if reason:
    options()
    print(reason)
    sys.exit(77)
sys.exit(run_tests(options, quick_starts, command))
