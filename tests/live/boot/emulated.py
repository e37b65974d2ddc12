#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A whole boot of an emulated machine, with a kernel of its own: an initramfs, xheap-init by the kernel's command line, a real systemd with its services, and a
restart. Every process is recorded from the first instruction of systemd; what each service has counted is in the trace, or counted as lost.

It takes minutes, so `make soak` does it (SOAK=1). Needs qemu-system-x86_64, a static busybox and systemd; emulation.py has the kernel.

usage: emulated.py        SOAK=1
"""
import os
import pathlib
import sys
import tarfile

from boot.emulation import Missing, emulate, find_kernel, find_program, libraries
from live import BUILD, PROGRAMS, SOAK, SOURCE, XHEAP, expect, info, is_whole, run_tests
from boot.machine import GUID, MASKED, SYSTEMD, blocks_of

SKIP = 77
UNITS = pathlib.Path("/usr/lib/systemd/system")
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /new
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t tmpfs -o mode=755 root /new
for name in bin usr etc lib lib64 sbin; do [ ! -e /$name ] || /bin/busybox cp -a /$name /new/; done
/bin/busybox mkdir -p /new/proc /new/sys /new/run /new/dev /new/tmp /new/mnt/log /new/var/lib/xheap /new/root
/bin/busybox cp -a /dev/console /new/dev/
/bin/busybox mknod /new/dev/null c 1 3
/bin/busybox ln -s ../run /new/var/run
init=$(/bin/busybox sed -n 's/.* init=\\([^ ]*\\).*/\\1/p' /proc/cmdline)
/bin/busybox umount /proc
exec /bin/busybox switch_root /new "$init" --log-target=console --show-status=no
"""
SERVED = "[Service]\nType=oneshot\nStandardOutput=append:/mnt/log/{name}\nExecStart=/usr/bin/served {count} {status}\n{more}"
OWN = {
    "early.service": "[Unit]\nDefaultDependencies=no\nAfter=xheap-autologger.service\nBefore=sysinit.target\n" + SERVED.format(name="early", count=100, status=0, more=""),
    "timed.timer": "[Timer]\nOnActiveSec=0\nAccuracySec=1us\n",
    "timed.service": SERVED.format(name="timed", count=300, status=0, more=""),
    "failing.service": "[Unit]\nStartLimitBurst=3\nStartLimitIntervalSec=1000\n" +
                       SERVED.format(name="failing", count=600, status=1, more="Restart=on-failure\nRestartSec=0\n").replace("oneshot", "simple"),
    "busy.service": "[Service]\nType=notify\nTimeoutStartSec=300\nStandardOutput=append:/mnt/log/busy\nExecStart=/usr/bin/serving 100 5\n",
    "run.service": "[Unit]\nAfter=basic.target busy.service\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/bin/sh /etc/run.sh\n",
    # Stopped last: the trace is whole then.
    "export.service": "[Unit]\nDefaultDependencies=no\nBefore=xheap-autologger-end.service shutdown.target\nConflicts=shutdown.target\n[Service]\nType=oneshot\n"
                      "RemainAfterExit=yes\nTimeoutStopSec=infinity\nExecStart=/bin/busybox true\nExecStop=/bin/busybox sh -c 'stty -F /dev/ttyS1 raw; tar -cz -C /mnt . > /dev/ttyS1'\n",
    "multi-user.target": "[Unit]\nRequires=basic.target\nAfter=basic.target\nWants=early.service timed.timer failing.service busy.service run.service export.service\n",
}
STARTS = 5  # early, timed, failing three times
RUN = (f"until [ $(cat /mnt/log/early /mnt/log/timed /mnt/log/failing 2>/dev/null | wc -l) = {STARTS} ]; do sleep 0.2; done\n"
       "xheap autologger list > /mnt/list; xheap autologger show boot > /mnt/show; uname -r > /mnt/kernel; cat /proc/uptime > /mnt/uptime\nsystemctl reboot\n")
BOOT = f"[autologger]\nGuid = {GUID}\nStart = 1\nBoot = 1\nAllProcesses = 1\nFileName = /mnt/boot.xht\nMaxFileSize = 0\n"


def files():
    programs = {"/usr/lib/systemd/systemd": SYSTEMD, "/lib/systemd/systemd-shutdown": f"{os.path.dirname(SYSTEMD)}/systemd-shutdown",
                "/usr/bin/systemctl": find_program("systemctl"), "/bin/busybox": find_program("busybox"), "/bin/sh": find_program("dash"), "/usr/bin/xheap": XHEAP,
                "/usr/bin/xheap-images": f"{BUILD}/xheap-images", "/usr/bin/xheap-init": f"{BUILD}/xheap-init", "/usr/bin/served": f"{PROGRAMS}/served", "/usr/bin/serving": f"{PROGRAMS}/serving"}
    if libraries(programs["/bin/busybox"]):
        raise Missing("busybox is not static")
    for path in list(programs.values()):
        programs.update({library: library for library in libraries(path)})
    contents = {name: pathlib.Path(path).read_bytes() for name, path in programs.items()}
    contents.update({"/init": INIT.encode(), "/sbin/init": "/usr/lib/systemd/systemd", "/etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", "/etc/group": b"root:x:0:\n",
                     "/etc/machine-id": b"0123456789abcdef0123456789abcdef\n", "/etc/xheap/autologger.d/boot.conf": BOOT.encode(), "/etc/run.sh": RUN.encode(),
                     "/etc/systemd/system/default.target": "multi-user.target"})
    for name in ("cat", "wc", "sleep", "uname", "tar", "gzip", "stty"):
        contents[f"/usr/bin/{name}"] = "/bin/busybox"
    for path in UNITS.iterdir():
        if path.is_symlink():
            contents[str(path)] = os.readlink(path)
        elif path.is_file():
            contents[str(path)] = path.read_bytes()
    for name in MASKED:
        contents[f"/etc/systemd/system/{name}"] = "/dev/null"
    contents.update({f"/etc/systemd/system/{name}": text.encode() for name, text in OWN.items()})
    for path in (SOURCE / "service").glob("xheap-*.service.in"):
        contents[f"/etc/systemd/system/{path.stem}"] = path.read_text().replace("@bindir@", "/usr/bin").encode()
    contents["/etc/systemd/system/sysinit.target.wants/xheap-autologger.service"] = "../xheap-autologger.service"
    return contents


def emulated():
    folder = pathlib.Path("emulated").absolute()
    folder.mkdir()
    console = emulate(find_kernel(), folder, files(), append="init=/usr/bin/xheap-init systemd.log_target=console", memory_mib=1024)
    try:
        with tarfile.open(folder / "out.tar.gz") as tar:
            tar.extractall(folder / "out")
    except (tarfile.TarError, EOFError, OSError) as error:
        expect(False, f"the machine did not come to its end ({error}): {console[-4000:]}")
    out = folder / "out"
    show = (out / "show").read_text()
    expect("the kernel's command line has init=/usr/bin/xheap-init" in show and "the session runs" in show, show)
    facts = info(out / "boot.xht")
    expect(is_whole(facts), facts)
    first = facts["processes"][0]
    expect(first["pid"] == 1 and first["image"].endswith("/systemd") and first["events"] > 0, first)
    oracle = [tuple(map(int, line.split())) for path in sorted((out / "log").iterdir()) for line in path.read_text().splitlines()]
    expect(len(oracle) == STARTS + 1, oracle)
    found = blocks_of(out / "boot.xht", "served", "serving")
    for pid, blocks in oracle:
        expect(pid in found and 0 <= blocks - found[pid] <= facts["lost_events"], f"process {pid}: {found.get(pid)} of {blocks} blocks, {facts['lost_events']} events lost")
    return (f"Linux {(out / 'kernel').read_text().strip()}: up for {(out / 'uptime').read_text().split()[0]} s, {len(facts['processes'])} processes, "
            f"{facts['event_count']} events, {facts['lost_events']} lost")


if not SOAK:
    print("a machine is emulated for minutes: make soak, or SOAK=1")
    sys.exit(SKIP)
try:
    find_kernel()
    files()
except (Missing, OSError) as missing:
    print(f"a machine cannot be emulated: {missing}")
    sys.exit(SKIP)
sys.exit(run_tests(emulated))
