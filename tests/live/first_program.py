#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap-init as process 1 of a namespace of its own: the real init runs whatever fails, and is recorded from its beginning if nothing does."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from live import BUILD, XHEAP, expect, run_tests, xheap

ROOT = pathlib.Path("root").absolute()
SETUP = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs {root}
cd {root}
mkdir -p usr etc var opt/xheap root tmp dev {directories}
chmod 755 . etc var opt
mount --rbind /usr usr
for name in bin lib lib64; do [ -L /$name ] && ln -s usr/$name $name || {{ mkdir $name; mount --bind /$name $name; }}; done
mkdir sbin
for name in null zero urandom kmsg; do touch dev/$name; done
for name in null zero urandom; do mount --bind /dev/$name dev/$name; done
mkdir -p etc/xheap/autologger.d {out}
mount --bind {out} {out_inside}
cp {init} opt/xheap/xheap-init
touch opt/xheap/xheap
mount --bind {xheap} opt/xheap/xheap
cat > sbin/init <<'INIT'
#!/bin/sh
echo "$$ $0 $* [$MARK]" > /out/init
[ -d /proc/1 ] && grep -q . /proc/1/stat && echo proc >> /out/init
mountpoint -q /sys && echo sys >> /out/init
mountpoint -q /run && echo run >> /out/init
mountpoint -q /dev/shm && echo shm >> /out/init
/opt/xheap/xheap autologger stop >> /out/init.log 2>&1
exit 7
INIT
chmod 755 sbin/init
{extra}
chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
exec env -i MARK=mark PATH=/usr/bin:/bin unshare --pid --fork --kill-child $chroot {root} /opt/xheap/xheap-init one "two words"
"""
LOGGER = """cat > etc/xheap/autologger.d/first.conf <<'CONF'
[autologger]
Guid = {{222962ab-6180-4b88-a825-346b75f2a24a}}
Start = 1
Boot = 1
AllProcesses = 1
FileName = /out/first.xht
CONF
"""


def boot(name, extra="", directories="proc sys run dev/shm out"):
    """Lines that the real init has written, and the status of process 1."""
    out = pathlib.Path(f"out.{name}").absolute()
    out.mkdir()
    ROOT.mkdir(exist_ok=True)
    script = SETUP.format(root=ROOT, out=out, out_inside="out", init=f"{BUILD}/xheap-init", xheap=XHEAP, extra=extra.format(), directories=directories)
    run = subprocess.run(["unshare", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                         stdin=subprocess.DEVNULL)
    written = out / "init"
    expect(written.exists(), f"{name}: the real init did not run: {run.stdout}")
    lines = written.read_text().splitlines()
    expect(lines[0] == "1 /sbin/init one two words [mark]", f"{name}: {lines}")
    expect(run.returncode == 7, f"{name}: status {run.returncode}: {run.stdout}")
    return lines[1:], out


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


if os.geteuid() or not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL).returncode:
    print("namespaces cannot be made here, by root and unshare")
    sys.exit(77)
sys.exit(run_tests(recorded, without_sessions, failures, hangs, others))
