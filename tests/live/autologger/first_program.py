#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap-init as process 1 of a namespace of its own: the real init runs whatever fails, and is recorded from its beginning if nothing does."""
import json
import os
import sys

from autologger.first_root import LOGGER, ROOT, boot, need_namespaces, start
from live import PROGRAMS, dump_each, expect, info, run_tests, xheap

def replaced(content, mode="755"):
    return f"umount opt/xheap/xheap; cat > opt/xheap/xheap <<'COMMAND'\n{content}\nCOMMAND\nchmod {mode} opt/xheap/xheap\n"


def recorded():
    """The real init's first heap call is in the trace, and what is missing was mounted."""
    lines, out = boot("recorded", LOGGER)
    log = (out / "init.log").read_text() if (out / "init.log").exists() else ""
    expect(lines == ["proc", "sys", "run", "shm"], (lines, log))
    expect((out / "first.xht").exists(), (os.listdir(out), log))
    facts = json.loads(xheap("info", out / "first.xht", "-format", "json"))
    first = facts["processes"][0]
    expect(first["pid"] == 1 and first["command"].startswith("/bin/sh /sbin/init one"), first)
    counted = json.loads(xheap("info", out / "first.xht", "-format", "json"))["event_count"]
    expect(counted > 0 and not [process for process in facts["processes"] if process.get("events", 0) == 0 and process["pid"] == 1], facts["processes"])
    names = {os.path.basename(process["image"]) for process in facts["processes"]}
    expect({"grep", "mountpoint"} <= names, names)


def never_waits():
    """While the logger stands still, process 1 drops events as soon as its buffers are full; they are counted, and it has not waited.

    The logger has children of its name, with higher numbers, which read files for it."""
    blocks = 2000000
    init = f"""cp '{PROGRAMS}/denied' opt/xheap/denied
cat > sbin/init <<'INIT'
#!/bin/sh
for p in /proc/[0-9]*; do
  pid=${{{{p#/proc/}}}}
  grep -aq [s]tart.first $p/cmdline && {{{{ [ -z "$logger" ] || [ $pid -lt $logger ]; }}}} && logger=$pid
done
exec /opt/xheap/denied stopping $logger {blocks} /bin/sh -c "/opt/xheap/xheap autologger stop; echo over >> /out/init; exit 7"
INIT
chmod 755 sbin/init
"""
    run, out = start("waits", LOGGER + init)
    expect(run.returncode == 7, run)
    facts = info(out / "first.xht")
    first = [process["id"] for process in facts["processes"] if process["pid"] == 1]
    expect(facts["lost_events"] > 0 and {gap["process"] for gap in facts["gaps"]} <= set(first) and facts["cost"]["waits"] == 0, (facts["gaps"], facts["cost"]["waits"]))
    made = sum(row["action"] == "Alloc" and row["size"] == "777" for row in dump_each(out / "first.xht"))
    lost = sum(gap["events"].get("alloc", 0) for gap in facts["gaps"])
    expect(made + lost == blocks, f"{made} blocks and {lost} lost ones, not {blocks}")
    return f"{lost} blocks lost"


def without_sessions():
    lines, _ = boot("plain")
    expect(lines == ["proc", "sys", "run", "shm"], lines)


def failures():
    """Each failure of the first program, and of what it runs."""
    for name, extra in (("missing", "umount opt/xheap/xheap; rm opt/xheap/xheap\n"), ("directory", "umount opt/xheap/xheap; rm opt/xheap/xheap; mkdir opt/xheap/xheap\n"),
                        ("mode", replaced("", "644")), ("format", replaced("\1\2\3")), ("status", replaced("#!/bin/sh\nexit 2")),
                        ("crash", replaced("#!/bin/sh\nkill -SEGV $$")), ("loader", replaced("#!/nowhere/sh")),
                        ("damaged", LOGGER + "echo nonsense >> etc/xheap/autologger.d/first.conf\n"),
                        ("place", LOGGER.replace("/out/first.xht", "/nowhere/first.xht")),
                        ("readonly", LOGGER + "mount -o remount,ro {root}\n".replace("{root}", str(ROOT)))):
        boot(name, extra)
    lines, _ = boot("mounts", "mount -o remount,ro {root}\n".replace("{root}", str(ROOT)), directories="out")
    expect(lines == [], f"nothing can be mounted: {lines}")


def hangs():
    """What hangs is given up after its limit, also when it ignores signals or is stopped."""
    boot("hangs", replaced("#!/bin/sh\n[ $2 = run ] || exit 0\ntrap '' TERM INT HUP\nsleep 1000"))
    boot("stopped", replaced("#!/bin/sh\n[ $2 = run ] || exit 0\nkill -STOP $$"))


def others():
    """Without /sbin/init the next one runs; a process other than 1 only becomes init."""
    _, out = boot("next", "mv sbin/init etc/init; sed -i 's,$0,/sbin/init,' etc/init\n")
    _, out = boot("unusable", "cp sbin/init etc/init; sed -i 's,$0,/sbin/init,' etc/init; echo '#!/nowhere' > sbin/init\n")


need_namespaces()
sys.exit(run_tests(recorded, never_waits, without_sessions, failures, hangs, others))
