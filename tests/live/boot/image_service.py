#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap-images.service under a real systemd, in a machine of its own (machine.py): enabled, started, restarted, killed, without its command, and undone; and the
quick starts of docs/image-options.md, typed line by line. Marks are on files of the machine's own tmpfs only."""
import json
import pathlib
import re
import shlex
import sys

from live import SOURCE, dump_each, expect, run_tests, told
from boot.machine import END, REBOOT, SERVED_BYTES, Machine, why_not

PAGE = SOURCE / "docs/image-options.md"
# Names are watched on the machine's tmpfs only: all else is this machine's. Its program lies there, too.
BELOW = "[Service]\nExecStart=\nExecStart=/run/bin/xheap-images --below /run --deadline 10000\n"
# What a process of the service may do: a device that anybody can open elsewhere, and the kernel's lines about each of them.
TRIES = "[Service]\nExecStartPre=-/bin/sh -c 'for device in /run/fuse; do : < $device && echo opened; done >> /mnt/devices'\n"
LIMITS = "for pid in $(cat /sys/fs/cgroup/system.slice/xheap-images.service/cgroup.procs); do cat /proc/$pid/status; done > /mnt/limits\n"
WORKER = "[Service]\nType=oneshot\nStandardOutput=append:/mnt/log/{name}\nExecStart=/run/bin/{name} {count}\n"
PREPARE = ("mkdir -p /run/bin /mnt/lists; cp /usr/local/bin/xheap-images /run/bin/; for name in worker nginx test-parser; do cp /usr/local/bin/tests/live/served /run/bin/$name; done\n"
           "cp /usr/local/bin/tests/live/served /usr/bin/protoc\n"
           "check() { \"$@\" || echo failed: \"$@\"; }\n"
           "until_true() { for i in $(seq 1000); do \"$@\" && return; sleep 0.05; done; echo failed: \"$@\"; }\n"
           "in_force() { xheap image list --format json | grep -q '\"in_force\": *1'; }\n"
           "traced() { xheap image list --format json | grep -q \"\\\"traced\\\": *$1[,}]\"; }\n"
           "listed() { xheap image list --format json > /mnt/lists/$1; }\n"
           "ours() { for comm in /proc/[0-9]*/comm; do grep -l '^xheap-' $comm 2>/dev/null; done | grep -q .; }\n"
           "nobody() { ! ours; }\n")
UNIT_FILES = "find /etc/systemd/system -name 'xheap-images*' -type l; find /etc/xheap -type f"
SCRIPT = PREPARE + f"""
systemctl is-enabled xheap-images.service
check systemctl enable --now xheap-images.service
check systemctl is-active xheap-images.service
check xheap image add /run/bin/worker
until_true in_force
check systemctl start worker.service
until_true traced 1
listed first
{LIMITS}mknod -m 666 /run/fuse c 10 229
(: < /run/fuse) && touch /mnt/has_device
check systemctl restart xheap-images.service
check in_force
check systemctl start worker.service
until_true traced 2
kill -KILL $(systemctl show -P MainPID xheap-images.service)
check systemctl start worker.service
until_true systemctl is-active -q xheap-images.service
until_true in_force
check systemctl start worker.service
traced_or_more() {{ traced 3 || traced 4; }}
until_true traced_or_more
listed killed
check systemctl reload xheap-images.service
mv /run/bin/xheap-images /run/bin/away
systemctl restart xheap-images.service
check systemctl start worker.service
mv /run/bin/away /run/bin/xheap-images
systemctl reset-failed xheap-images.service
check systemctl start xheap-images.service
until_true in_force
listed back
systemctl reboot
"""
AFTER_BOOT = PREPARE + f"""
until_true systemctl is-active -q xheap-images.service
until_true in_force
check systemctl start worker.service
until_true traced 1
check xheap image remove --all
check systemctl disable --now xheap-images.service
until_true nobody
check systemctl start worker.service
systemctl is-enabled xheap-images.service
systemctl is-active xheap-images.service
{{ {UNIT_FILES}; }} > /mnt/left
xheap image list > /mnt/lists/last
""" + END


def machine_of(name, units, more=""):
    machine = Machine(name, units, early=())
    (machine.disk / "units/xheap-images.service.d").mkdir()
    (machine.disk / "units/xheap-images.service.d/below.conf").write_text(BELOW + more)
    return machine


def check_limits(machine):
    """Watcher, guardian, keeper and loggers have what the unit leaves them, and no filter: one of its own keeps a logger from reading those of targets."""
    unit = (SOURCE / "service/xheap-images.service.in").read_text()
    numbers = dict(re.findall(r"#define (CAP_\w+)\s+(\d+)$", pathlib.Path("/usr/include/linux/capability.h").read_text(), re.M))
    own = int(re.search(r"CapBnd:\s+(\w+)", pathlib.Path("/proc/self/status").read_text())[1], 16)
    kept = own & sum(1 << int(numbers[name]) for name in re.search("^CapabilityBoundingSet=(.*)", unit, re.M)[1].split())
    facts = [dict(re.findall(r"^(\w+):\t(.*)", "Name:" + text, re.M)) for text in (machine.out / "limits").read_text().split("Name:")[1:]]
    expect(len(facts) > 3, f"processes of the service: {facts}")
    for row in facts:
        # Loggers give up more. What parses files of users has no capability, and a filter.
        bound, effective = int(row["CapBnd"], 16), int(row["CapEff"], 16)
        expect(not (bound | effective) & ~kept and row["NoNewPrivs"] == "1" and (row["Seccomp"] == "0" or not effective), f"{kept:x}: {row}")
    expect(any(int(row["CapEff"], 16) == kept for row in facts), f"nobody has {kept:x}: {facts}")
    if (machine.out / "has_device").exists():
        expect((machine.out / "devices").read_text() == "", "the service has opened a device")


def blocks_in(traces):
    """{pid: blocks} of all processes in the traces."""
    made = {}
    for trace in traces:
        pids = {str(process["id"]): process["pid"] for process in told("info", trace)["processes"]}
        made.update({pid: 0 for pid in pids.values()})
        for row in dump_each(trace):
            if row["action"] != "Free" and row["size"] == str(SERVED_BYTES):
                made[pids[row["process"]]] += 1
    return made


def service():
    """Enabled, started, restarted, killed, without its command, after a restart of the machine, and undone: nothing is left, and no start fails."""
    machine = machine_of("service", {"worker.service": WORKER.format(name="worker", count=70)}, TRIES)
    machine.start(SCRIPT, status=REBOOT)
    lists = {path.name: json.loads(path.read_text()) for path in (machine.out / "lists").iterdir()}
    machine.start(AFTER_BOOT)
    said = machine.said()
    expect("\nfailed:" not in said, said)
    expect(said.split()[0] == "disabled" and said.split()[-2:] == ["disabled", "inactive"], said)
    check_limits(machine)
    gaps = [gap["why"] for gap in lists["killed"]["intervals"]]
    expect("it was killed" in gaps, f"{lists['killed']}")
    expect(lists["back"]["intervals"][-1]["to_ns"] > lists["killed"]["intervals"][-1]["to_ns"], f"the time without the command is not listed: {lists['back']}")
    oracle = machine.oracle("worker")
    expect(len(oracle) == 7, f"{oracle}")
    made = blocks_in((machine.disk / "var/traces").glob("worker*.xht"))
    expect(4 <= len(made) and set(made.values()) == {70}, f"{made}, started were {oracle}")
    expect((machine.out / "left").read_text() == "", f"left: {(machine.out / 'left').read_text()}")
    expect("no image is registered" in (machine.out / "lists/last").read_text(), (machine.out / "lists/last").read_text())
    return f"{len(made)} of {len(oracle)} starts recorded, the others while nobody watched"


def lines_of(title):
    """What a reader types below a line of the quick starts."""
    text = PAGE.read_text().partition("\n## Quick starts\n")[2].partition("\n## ")[0]
    block = re.search(rf"^{re.escape(title)}.*:\n\n((?:    .+\n)+)", text, re.M)
    expect(block, f"{PAGE.name} has no quick start {title}")
    lines = [line.strip() for line in block[1].splitlines()]
    expect(all(line.startswith("# ") for line in lines), f"{lines}")
    return [line[2:] for line in lines]


def typed(lines, between=None):
    """A shell's commands: each line, that it is done or failed, and what has to happen before the next one."""
    between = between or {}
    return "".join(f"echo {shlex.quote('> ' + line)}\n{line} || echo failed: status $?\n{between.get(line, '')}" for line in lines)


def quick_starts():
    """Each line works as the page says, in the page's order, and the last ones undo everything."""
    first, second, third, fourth, undo = (lines_of(title) for title in ("Trace a service from its start", "Trace whatever runs this tool during the next two hours",
                                                                        "Trace the tenth start of this test", "Trace everything that a service executes", "Undo everything"))
    backup = "[Service]\nType=oneshot\nExecStart=/bin/sh -c '/run/bin/worker 31 >> /mnt/log/backup; /run/bin/worker 32 >> /mnt/log/backup'\n"
    machine = machine_of("typed", {"backup.service": backup, "nginx.service": WORKER.format(name="nginx", count=110) + "[Install]\nWantedBy=multi-user.target\n"})
    script = PREPARE + typed(first, {line: "until_true traced 1\n" for line in first if line.startswith("systemctl restart")})
    script += typed(second) + "for count in 21 22 23; do /usr/bin/protoc $count >> /mnt/log/protoc; done\nuntil_true traced 3\n"
    script += typed(third) + "for count in $(seq 41 55); do /run/bin/test-parser $count >> /mnt/log/test-parser; done\n"
    script += "selected() { xheap image list | grep -q 'test-parser: on, 1 traced, 0 untraced, 14 not selected'; }\nuntil_true selected\nxheap image list\nxheap image show /usr/bin/protoc\n"
    script += typed(fourth) + "until_true traced 1\nxheap image list\n"
    script += typed(undo) + "until_true nobody\ncp -r /root/traces /mnt/own\n" + f"{{ {UNIT_FILES}; }} > /mnt/left\n" + END
    machine.start(script)
    said = machine.said()
    expect("\nfailed:" not in said, said)
    traces = machine.disk / "var/traces"
    (pid, blocks), = machine.oracle("nginx")
    expect(blocks_in(traces.glob("nginx*.xht")) == {pid: blocks}, f"{blocks_in(traces.glob('nginx*.xht'))}, not {pid}: {blocks}")
    report = said.partition("> xheap report")[2].partition("\n> ")[0]
    expect(f"{SERVED_BYTES * blocks // 2:,}" in report or "bytes" in report.lower(), report)
    for pid, blocks in machine.oracle("protoc"):
        expect(blocks_in([machine.out / f"own/{pid}.xht"]) == {pid: blocks}, f"{pid}: {blocks}")
    oracle = machine.oracle("test-parser")
    expect(blocks_in(traces.glob("test-parser*.xht")) == dict([oracle[9]]), f"{blocks_in(traces.glob('test-parser*.xht'))}, not the tenth of {oracle}")
    expect("Until = " in said, said)
    made = blocks_in(traces.glob("backup*.xht"))
    expect(dict(machine.oracle("backup")).items() <= made.items(), f"{made}, not {machine.oracle('backup')}")
    expect((machine.out / "left").read_text() == "", f"left: {(machine.out / 'left').read_text()}")
    return f"{len([*first, *second, *third, *fourth, *undo])} lines typed"


reason = why_not()
if reason:
    print(reason)
    sys.exit(77)
sys.exit(run_tests(service, quick_starts))
