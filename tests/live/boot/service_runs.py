#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap boottrace in a machine of its own (machine.py): starts of a service and of the machine, recorded and compared, beside the services' own counts;
and -remove, which leaves the machine as it was before."""
import csv
import json
import statistics
import sys

from live import expect, run_tests, told, xheap
from boot.machine import END, REBOOT, Machine, blocks_of, why_not

RUNS = 3
# serving.service makes as many blocks as /mnt/count says, and has made them when it is started.
SERVING = ("[Service]\nType=notify\nEnvironmentFile=/mnt/count\nStandardOutput=append:/mnt/log/serving\nExecStart=/usr/local/bin/tests/live/serving $COUNT\n")
# Else the recording may end, without a delay, while it still starts.
BOOTED = "[Unit]\nBefore=xheap-boottrace.service\n[Service]\nType=oneshot\nStandardOutput=append:/mnt/log/booted\nExecStart=/usr/local/bin/tests/live/served 250\n"
TRACE_SERVICE = "xheap boottrace -trace service:serving.service -resultPath /mnt -postBootDelay {delay} {more}"
TRACE_BOOT = "xheap boottrace -trace boot -resultPath /mnt -postBootDelay {delay} -numRuns {runs} {more} -yes"
# All that a boottrace may change.
STATE = ("{ find /etc/xheap /var/lib/xheap/autologger -type f; xheap sessions; systemctl is-enabled xheap-autologger.service xheap-boottrace.service;"
         " } > /mnt/%s 2>/dev/null\n")


NAMED = ("[Unit]\nDescription=%i\n[Service]\nType=notify\nStandardOutput=append:/mnt/log/named\nExecStart=/usr/local/bin/tests/live/serving 30\n"
         "[Install]\nAlias=other.service\n")


def names():
    """A unit without its suffix, an alias, an instance of a template; units that cannot be traced, with the reason."""
    machine = Machine("names", {"named.service": NAMED, "named@.service": NAMED, "broken.service": "[Service]\nType=oneshot\nExecStart=/bin/false\n",
                                "nothing.target": "[Unit]\nDescription=nothing\n"})
    (machine.disk / "units/other.service").symlink_to("named.service")
    run = "xheap boottrace -resultPath /mnt -postBootDelay 0 -trace service:"
    machine.start("".join(f"{run}{name} -runTag {tag}; echo {tag}: status $?\n" for tag, name in
                          (("a", "named"), ("b", "other.service"), ("c", "named@5"), ("d", "broken"), ("e", "nothing.target"), ("f", "absent"))) + STATE % "after" + END)
    said = machine.said()
    expect(all(f"{tag}: status 0" in said for tag in "abc") and all(f"{tag}: status 2" in said for tag in "def"), said)
    files = {path.name for path in machine.out.glob("*.xht")}
    expect(files == {"service-named.service_a_1.xht", "service-named.service_b_1.xht", "service-named@5.service_c_1.xht"} | {name for name in files if "broken" in name}, files)
    found = [blocks_of(machine.out / name, "serving") for name in sorted(files) if "broken" not in name]
    expect(sorted(row for blocks in found for row in blocks.items()) == sorted(machine.oracle("named")), f"{found}, not {machine.oracle('named')}")
    expect("nothing.target: systemd knows no program" in said and "absent.service: systemd knows no program" in said and "systemctl start broken.service: status 1" in said, said)
    expect("image.d/" not in (machine.out / "after").read_text(), (machine.out / "after").read_text())


def services():
    """Six starts of a service: a trace each, with its blocks and no other process; statistics and difference of both tags."""
    machine = Machine("services", {"serving.service": SERVING})
    script = STATE % "before"
    for tag, count in (("before", 100), ("after", 140)):
        script += f"echo COUNT={count} > /mnt/count\n" + TRACE_SERVICE.format(delay=0, more=f"-numRuns {RUNS} -runTag {tag} > /mnt/{tag}.txt") + " || echo failed\n"
    machine.start(script + STATE % "after" + END)
    expect("failed" not in machine.said(), machine.said())
    names = [f"service-serving.service_{tag}_{number}.xht" for tag in ("before", "after") for number in range(1, RUNS + 1)]
    expect(sorted(path.name for path in machine.out.glob("*.xht")) == sorted(names), sorted(machine.out.iterdir()))
    oracle = machine.oracle()
    expect([blocks for _, blocks in oracle] == [100] * RUNS + [140] * RUNS, oracle)
    for name, (pid, blocks) in zip(names, oracle):
        facts = told("info", machine.out / name)
        expect(len(facts["processes"]) == 1 and facts["complete"], facts)
        expect(blocks_of(machine.out / name, "serving") == {pid: blocks}, f"{name}: {blocks_of(machine.out / name, 'serving')}, not {pid}: {blocks}")
    for tag in ("before", "after"):
        rows = list(csv.DictReader((machine.out / f"service-serving.service_{tag}.csv").open()))
        expect([row["run"] for row in rows] == ["1", "2", "3"] and all(int(row["time_us"]) > 0 and row["status"] == "0" for row in rows), rows)
        counts = [json.loads(xheap("heap", machine.out / name, "-totals", "-format", "json"))["totals"]["total_count"] for name in names if f"_{tag}_" in name]
        line = next(line for line in (machine.out / f"{tag}.txt").read_text().splitlines() if line.startswith("  allocations"))
        expect(line.split()[1:4] == [str(int(statistics.median(counts))), str(min(counts)), str(max(counts))], f"{line}, not {counts}")
    said = (machine.out / "after.txt").read_text()
    expect(f"From tag before ({RUNS} runs) to tag after ({RUNS} runs):" in said and "service-serving.service, tag after: 3 runs" in said, said)
    states = [(machine.out / name).read_text() for name in ("before", "after")]
    expect(states[0] == states[1], "\n--\n".join(states))


def aborted():
    """A run that is interrupted, or killed, leaves what -remove resets; so does a restart in between. A second boottrace leaves the service of the first alone."""
    machine = Machine("aborted", {"serving.service": SERVING})
    (machine.out / "count").write_text("COUNT=10\n")
    begin = TRACE_SERVICE.format(delay="1000s", more="& one=$!; until systemctl is-active -q serving.service; do sleep 0.02; done\n")
    machine.start(STATE % "before" + begin + TRACE_SERVICE.format(delay=0, more="-runTag second") +
                  "; echo second: status $?, $(systemctl is-active serving.service)\n" + "kill -INT $one; wait $one; echo $? > /mnt/status\n" + STATE % "interrupted" +
                  begin + "kill -KILL $one; wait $one; xheap boottrace -remove || echo failed\n" + STATE % "killed" +
                  begin + "kill -KILL $one; systemctl reboot\n", status=REBOOT)
    machine.start("xheap boottrace -remove || echo failed\n" + STATE % "restarted" + END)
    expect("failed" not in machine.said(), machine.said())
    expect("is registered already" in machine.said() and "second: status 2, active\n" in machine.said() and not list(machine.out.glob("*_second*")), machine.said())
    expect((machine.out / "status").read_text().strip() in ("2", "130"), (machine.out / "status").read_text())
    before = (machine.out / "before").read_text()
    for name in ("interrupted", "killed", "restarted"):
        expect((machine.out / name).read_text() == before, f"{name}: {(machine.out / name).read_text()}\nbefore: {before}")


def boots():
    """Two recorded starts of the machine, then none: the traces have process 1 and the service, and nothing is left."""
    machine = Machine("boots", {"booted.service": BOOTED}, ["booted.service"], early=())
    begin = TRACE_BOOT.format(delay=0, runs=2, more="-runTag x -callBack 'touch /mnt/called'")
    machine.start(STATE % "before" + begin + "\n", status=REBOOT)
    machine.start("", status=REBOOT)
    machine.start("until [ -e /mnt/called ]; do sleep 0.02; done\n" + STATE % "after" + END)
    names = ["boot_x.csv", "boot_x.txt", "boot_x_1.xht", "boot_x_2.xht"]
    expect(sorted(path.name for path in machine.out.glob("boot*")) == names, (sorted(machine.out.iterdir()), machine.said()))
    oracle = machine.oracle("booted")
    for number, (pid, blocks) in zip((1, 2), oracle[1:]):
        facts = told("info", machine.out / f"boot_x_{number}.xht")
        expect("cut_offset" not in facts and any(process["pid"] == 1 for process in facts["processes"]), facts["processes"])
        made = blocks_of(machine.out / f"boot_x_{number}.xht", "served")
        expect(set(made) == {pid} and blocks - made[pid] <= facts["lost_events"], f"boot {number}: {made}, not {pid}: {blocks}; {facts['lost_events']} lost")
    said = (machine.out / "boot_x.txt").read_text()
    expect("boot, tag x: 2 runs" in said, said)
    expect("All runs allocated the same" in said or said.partition("furthest from it:")[2].strip(), f"the difference is missing: {said}")
    states = [(machine.out / name).read_text() for name in ("before", "after")]
    expect(states[0] == states[1], "\n--\n".join(states))


def removed():
    """-remove after a restart in between: the machine starts as ever, and no run follows."""
    machine = Machine("removed", early=())
    machine.start(STATE % "before" + TRACE_BOOT.format(delay="1000s", runs=9, more="") + "\n", status=REBOOT)
    machine.start("until systemctl is-active -q xheap-boottrace.service; do sleep 0.02; done\n"
                  "xheap sessions > /mnt/running; xheap boottrace -remove || echo failed\n" + STATE % "after" + END)
    expect("xheap-boottrace" in (machine.out / "running").read_text() and "failed" not in machine.said(), machine.said())
    machine.start(END)
    states = [(machine.out / name).read_text() for name in ("before", "after")]
    expect(states[0] == states[1], "\n--\n".join(states))


reason = why_not()
if reason:
    print(reason)
    sys.exit(77)
sys.exit(run_tests(services, names, aborted, boots, removed))
