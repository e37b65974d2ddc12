# SPDX-License-Identifier: MIT
"""A machine for tests: a real systemd as process 1 of namespaces of its own, over a copy-on-write view of this machine's files. Its disk is a directory that
lasts from start to start: systemd's units, /etc/xheap, /var/lib/xheap, and /mnt for what the test reads. All other changes are gone at its end, as is /run."""
import os
import pathlib
import shutil
import subprocess
import sys
import time

from live import BUILD, PATIENCE, SOURCE, dump_each, expect, told, wait_for

SYSTEMD = next((path for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd") if os.path.exists(path)), None)
LIMIT_S = 60 * PATIENCE
PLACE, PRIVATE = pathlib.Path("place").absolute(), "XHEAP_TEST_MACHINE"
GUID = "{222962ab-6180-4b88-a825-346b75f2a24a}"
SERVED_BYTES = 777  # programs/served.c, serving.c
# Units of this machine that no test needs.
MASKED = """systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service systemd-tmpfiles-clean.timer systemd-sysusers.service systemd-firstboot.service
systemd-machine-id-commit.service systemd-random-seed.service systemd-update-utmp.service systemd-journald.service systemd-journald.socket
systemd-journald-dev-log.socket systemd-journald-audit.socket systemd-journal-flush.service systemd-binfmt.service systemd-sysctl.service
systemd-modules-load.service kmod-static-nodes.service systemd-repart.service systemd-pcrphase.service systemd-pcrphase-sysinit.service dbus.socket
systemd-initctl.socket systemd-udevd.service systemd-udev-trigger.service systemd-remount-fs.service dev-hugepages.mount dev-mqueue.mount
sys-fs-fuse-connections.mount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount proc-sys-fs-binfmt_misc.automount
systemd-ask-password-console.path cryptsetup.target integritysetup.target veritysetup.target""".split()
# Machines beside each other must not share their cgroups: each systemd ends what is in those of its services. Cgroups of ended machines are removed, and no others: a
# service of a running machine has an empty one for a moment, and cannot start without it.
OWN_CGROUP = """set -e
mount --make-rprivate /
mount -t cgroup2 cgroup2 {place}
for old in {place}/xheap-machine.*; do
    [ -e "/proc/${{old##*.}}" ] || ! grep -q "populated 0" "$old/cgroup.events" || find "$old" -depth -type d -exec rmdir {{}} + || true
done 2>/dev/null
own={place}/xheap-machine.$$ tries=0
until mkdir -p $own && echo $$ > $own/cgroup.procs; do tries=$((tries + 1)); [ $tries -lt 100 ]; done
umount {place}
exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child sh -c "$1"
"""
# {disk}: units, etc, var and out; {build}: xheap in place. All file systems are the machine's own, overlays included: its watcher marks them whole, and
# marks on one of this machine would see what others start here. Layers have the names that the machine has for them, but for those of its root; what lies
# below the lowest one is not in its table.
SETUP = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs {place}
cd {place}
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir={place}/upper,workdir={place}/work root
cd root
mkdir -p etc/systemd/system etc/xheap var/lib/xheap opt/xheap usr/local/bin mnt old
ln -sf {systemd} sbin/init
mount --bind {disk}/units etc/systemd/system
mount --bind {disk}/etc etc/xheap
mount --bind {disk}/var var/lib/xheap
mount --bind {disk}/out mnt
mkdir layers
mount -t tmpfs -o mode=755 tmpfs layers
mkdir layers/own layers/own.work layers/built
mount --bind '{build}' layers/built
chroot . mount -t overlay overlay -o lowerdir=/layers/built,upperdir=/layers/own,workdir=/layers/own.work /opt/xheap
umount layers/built
mount --bind opt/xheap usr/local/bin
mount -t tmpfs -o mode=755 tmpfs usr/lib/systemd/system/multi-user.target.wants
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/shm dev/pts
mknod -m 666 dev/null c 1 3; mknod -m 666 dev/zero c 1 5; mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8; mknod -m 666 dev/urandom c 1 9; mknod -m 666 dev/tty c 5 0
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
{more}
pivot_root . old
umount -l /old
cd /
exec env -i container=xheap-test PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin {first} --system --unit=multi-user.target --log-target=console --log-level=info --show-status=no < /dev/null
"""
TARGET = "[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\nWants={wants}\n"
# The last of each start: a shell's commands in /mnt/run.sh.
RUN = ("[Unit]\nDefaultDependencies=no\nAfter=basic.target\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\nStandardOutput=append:/mnt/said\nStandardError=append:/mnt/said\n"
       "Environment=HOME=/root\nExecStart=/bin/sh /mnt/run.sh\n")
EARLY = ("xheap-autologger.service", "xheap-images.service")
REBOOT, POWEROFF = -1, -2  # the signals by which the kernel ends process 1 of a namespace
EXIT = 7
END = f"systemctl --no-block exit {EXIT}\n"


def in_namespaces(script):
    """The command that runs a shell's script in namespaces and a cgroup of its own, and ends with this process."""
    return ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "sh", "-c", OWN_CGROUP.format(place=PLACE), "sh", script]


class Machine:
    """units: {name: text}; wants: those of the target; early: services of xheap that begin before sysinit.target; etc: {path below /etc/xheap: text}."""

    def __init__(self, name, units=None, wants=(), early=EARLY, etc=None, first=SYSTEMD):
        self.base = pathlib.Path(name).absolute()
        self.first = first
        self.disk = self.base / "disk"
        self.out, self.etc = self.disk / "out", self.disk / "etc"
        for part in ("units", "etc", "var", "out/log"):
            (self.disk / part).mkdir(parents=True)
        self.out.chmod(0o755)
        self.starts = 0
        for unit in MASKED:
            (self.disk / "units" / unit).symlink_to("/dev/null")
        units = {"run.service": RUN, "multi-user.target": TARGET.format(wants=" ".join([*wants, "run.service"])), **(units or {})}
        for unit, text in units.items():
            (self.disk / "units" / unit).write_text(text)
        for path in (SOURCE / "service").glob("xheap-*.service.in"):
            (self.disk / "units" / path.stem).write_text(path.read_text().replace("@bindir@", "/usr/local/bin"))
        for unit in early:
            self.enable(unit, "sysinit.target")
        for path, text in (etc or {}).items():
            (self.etc / path).parent.mkdir(exist_ok=True)
            (self.etc / path).write_text(text)

    def enable(self, unit, target):
        (self.disk / "units" / f"{target}.wants").mkdir(exist_ok=True)
        (self.disk / "units" / f"{target}.wants" / unit).symlink_to(f"../{unit}")

    def begin(self, script=END, more=""):
        """Switch it on. Its console is in self.console."""
        (self.out / "run.sh").write_text(script)
        PLACE.mkdir(exist_ok=True)
        self.starts += 1
        self.console = self.base / f"console.{self.starts}"
        setup = SETUP.format(place=PLACE, disk=self.disk, build=BUILD, systemd=SYSTEMD, first=self.first, more=more)
        self.began = time.monotonic()
        with open(self.console, "w") as console:
            self.process = subprocess.Popen(in_namespaces(setup), stdout=console, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        return self.process

    def end(self, status=EXIT):
        """Wait until it has switched itself off, in this way. The seconds that it was on, and its console's text."""
        try:
            got = self.process.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            got = "none in time"
        text = self.console.read_text(errors="replace")
        expect(got == status, f"{self.base.name}, start {self.starts}: status {got}, not {status}: {text[-4000:]}{self.said()[-2000:]}")
        return time.monotonic() - self.began, text

    def start(self, script=END, status=EXIT, more=""):
        self.begin(script, more)
        return self.end(status)

    def cut(self):
        """Cut its power: the disk is as it is at this moment. Does nothing if it has switched itself off."""
        first = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        pids = first.read_text().split() if first.exists() else []
        self.process.kill()
        self.process.wait()
        for pid in pids:
            wait_for(f"end of process {pid}", lambda: not os.path.exists(f"/proc/{pid}/cgroup"))

    def said(self):
        """What the commands of run.sh have said, at all starts."""
        said = self.out / "said"
        return said.read_text(errors="replace") if said.exists() else ""

    def oracle(self, only=None):
        """[(pid, blocks)], as the services have counted."""
        paths = sorted((self.out / "log").iterdir()) if only is None else [self.out / "log" / only]
        return [tuple(map(int, line.split())) for path in paths for line in path.read_text().splitlines()]


def blocks_of(trace, *names):
    """{pid: blocks of SERVED_BYTES} of the processes of these programs."""
    wanted = {str(process["id"]): process["pid"] for process in told("info", trace)["processes"] if os.path.basename(process["image"]) in names}
    made = dict.fromkeys(wanted.values(), 0)
    for row in dump_each(trace):
        if row["process"] in wanted and row["action"] != "Free" and row["size"] == str(SERVED_BYTES):
            made[wanted[row["process"]]] += 1
    return made


def why_not():
    """Why there can be no machine here; "" if there can. Then the working directory is a file system of this test's own."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.geteuid() or not SYSTEMD or not all(map(shutil.which, ("unshare", "pivot_root", "setpriv"))):
        return "a boot needs root, systemd, unshare, setpriv and pivot_root"
    if not os.environ.get(PRIVATE):
        if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
            return "a boot needs a mount namespace of its own"
        os.environ[PRIVATE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    PLACE.mkdir(exist_ok=True)
    disks = PLACE.parent / "disks"
    disks.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "test", disks], check=True)
    os.chdir(disks)
    for part in ("units", "etc", "var", "out"):
        (PLACE.parent / "tried" / part).mkdir(parents=True, exist_ok=True)
    script = SETUP.split("{more}")[0].format(place=PLACE, disk=PLACE.parent / "tried", build=BUILD, systemd=SYSTEMD)
    tried = subprocess.run(in_namespaces(script), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return "" if tried.returncode == 0 else f"namespaces for a boot cannot be made: {tried.stdout.strip()}"
