#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Autologgers in a real systemd, as process 1 of namespaces of its own over a copy-on-write view of this machine's files. What each
service allocates is in the trace, whenever and as whomever it starts, and a shutdown leaves a whole trace."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from live import BUILD, XHEAP, dump_each, expect, run_tests, xheap

SYSTEMD = next((path for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd") if os.path.exists(path)), None)
SERVED_BYTES, RESTARTS = 777, 3
LIMIT_S = 240
PLACE = pathlib.Path("place").absolute()
UNITS = "/usr/lib/systemd/system"
GUID = "{222962ab-6180-4b88-a825-346b75f2a24a}"
# Units of this machine that the test does not need.
MASKED = """systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service systemd-tmpfiles-clean.timer systemd-sysusers.service systemd-firstboot.service
systemd-machine-id-commit.service systemd-random-seed.service systemd-update-utmp.service systemd-journald.service systemd-journald.socket
systemd-journald-dev-log.socket systemd-journald-audit.socket systemd-journal-flush.service systemd-binfmt.service systemd-sysctl.service
systemd-modules-load.service kmod-static-nodes.service systemd-repart.service systemd-pcrphase.service systemd-pcrphase-sysinit.service dbus.socket
systemd-initctl.socket systemd-udevd.service systemd-udev-trigger.service systemd-remount-fs.service dev-hugepages.mount dev-mqueue.mount
sys-fs-fuse-connections.mount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount proc-sys-fs-binfmt_misc.automount
systemd-ask-password-console.path cryptsetup.target integritysetup.target veritysetup.target""".split()
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
OVER = ("[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nTimeoutStartSec=120\n"
        f"ExecStart=/bin/sh -c 'until [ $(cat /mnt/log/* 2>/dev/null | wc -l) -ge {STARTS} ]; do sleep 0.05; done; "
        "/opt/xheap/xheap autologger list --format json > /mnt/list; /opt/xheap/xheap image list > /mnt/images; "
        "/opt/xheap/xheap image list --format json > /mnt/images.json; grep -a \"\" /proc/[0-9]*/cmdline > /mnt/named; cat /proc/uptime > /mnt/done; "
        "systemctl --no-block exit 7'\n")
TARGET = ("[Unit]\nRequires=basic.target\nAfter=basic.target\nWants=early.service asking.service timed.timer dynamic.service private.service failing.service over.service\n"
          "AllowIsolate=yes\n")
SETUP = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs {place}
cd {place}
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir={place}/upper,workdir={place}/work root
cd root
mkdir -p etc/systemd/system etc/xheap var/lib/xheap opt/xheap mnt old
mount -t tmpfs -o mode=755 tmpfs etc/systemd/system
mount -t tmpfs -o mode=755 tmpfs etc/xheap
mount -t tmpfs -o mode=755 tmpfs var/lib/xheap
cp -r {units}/. etc/systemd/system/
cp -r {files}/. etc/xheap/
mount --bind {build} opt/xheap
mount --bind {out} mnt
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/shm dev/pts
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p old
pivot_root . old
umount -l /old
cd /
exec env -i container=xheap-test PATH=/usr/sbin:/usr/bin:/sbin:/bin {first} --system --unit=test.target --log-target=console --log-level=info --show-status=no < /dev/null
"""


def write_units(units, early):
    units.mkdir(parents=True)
    for name in MASKED:
        (units / name).symlink_to("/dev/null")
    for name, (count, more, status, _) in SERVICES.items():
        head = EARLY if name == "early" else f"[Unit]\nStartLimitBurst={RESTARTS}\nStartLimitIntervalSec=1000\n"
        (units / f"{name}.service").write_text(head + SERVICE.format(name=name, count=count, status=status, more=more))
    for name, text in {**SOCKET, "over.service": OVER, "test.target": TARGET}.items():
        (units / name).write_text(text)
    for name in [*early, *(["xheap-autologger-end.service"] if early else [])]:
        text = pathlib.Path(BUILD, name).read_text()
        (units / name).write_text("\n".join(line.replace("=/usr/local/bin", "=/opt/xheap").replace("=-/usr/local/bin", "=-/opt/xheap") for line in text.split("\n")))
        (units / "sysinit.target.wants").mkdir(exist_ok=True)
        (units / "sysinit.target.wants" / name).symlink_to(f"../{name}")


def boot(name, files, early=("xheap-autologger.service", "xheap-images.service"), first=SYSTEMD):
    """Start systemd until its services have run; what it wrote, and the oracle's [(pid, blocks)]."""
    base = pathlib.Path(name).absolute()
    out, units, options = base / "out", base / "units", base / "files"
    (out / "log").mkdir(parents=True)
    out.chmod(0o755)
    write_units(units, early)
    options.mkdir()
    for path, text in files.items():
        (options / path).parent.mkdir(exist_ok=True)
        (options / path).write_text(text)
    PLACE.mkdir(exist_ok=True)
    script = SETUP.format(place=PLACE, units=units, files=options, build=BUILD, out=out, first=first)
    begin = time.monotonic()
    run = subprocess.run(["unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--fork", "--kill-child", "sh", "-c", script],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, errors="replace")
    taken = time.monotonic() - begin
    said = run.stdout[-6000:]
    expect((out / "done").exists(), f"{name}: the services did not run: {said}")
    expect(run.returncode == 7, f"{name}: status {run.returncode}: {said}")
    oracle = [tuple(map(int, line.split())) for path in sorted((out / "log").iterdir()) for line in path.read_text().splitlines()]
    expect(len(oracle) == STARTS, f"{name}: {oracle}")
    return out, oracle, taken, run.stdout


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
    expect(len([words for words in named if words[0] == "@xheap"]) >= 4, f"a shutdown kills logger, keeper, guardian and watcher last: {named}")
    expect([words for words in named if words[:3] == ["/opt/xheap/xheap", "image", "watch"]], f"the service follows: {named}")
    images = json.loads((out / "images.json").read_text())
    expect(images["early"] == 1 and not images["images"][0]["untraced"], images)
    return f"booted in {taken:.1f} s"


def can_run():
    if os.geteuid() or not SYSTEMD or not shutil.which("unshare") or not shutil.which("pivot_root", path=os.environ["PATH"]):
        return "a boot needs root, systemd, unshare and pivot_root"
    PLACE.mkdir(exist_ok=True)
    script = SETUP.format(place=PLACE, units=PLACE, files=PLACE, build=BUILD, out=PLACE, first="/bin/true #").split("cp -r")[0]
    tried = subprocess.run(["unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--fork", "sh", "-c", script + "mount -t proc proc proc; mount -t sysfs sysfs sys; mount -t cgroup2 cgroup2 sys/fs/cgroup"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return "" if tried.returncode == 0 else f"namespaces for a boot cannot be made: {tried.stdout.strip()}"


os.environ["PATH"] += ":/usr/sbin:/sbin"
reason = can_run()
if reason:
    print(reason)
    sys.exit(77)
sys.exit(run_tests(plain, registered, everything, before_init, watched_before))
