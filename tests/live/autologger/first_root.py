# SPDX-License-Identifier: MIT
"""A small root for xheap-init as process 1 of a namespace of its own."""
import os
import pathlib
import shutil
import subprocess
import sys

from live import BUILD, XHEAP, expect

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
cp '{init}' opt/xheap/xheap-init
touch opt/xheap/xheap
mount --bind '{xheap}' opt/xheap/xheap
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
exec env -i MARK=mark PATH=/usr/bin:/bin unshare --pid --fork --kill-child $chroot {root} {before} /opt/xheap/xheap-init one "two words"
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



def start(name, extra="", directories="proc sys run dev/shm out", before=""):
    """Run it. before: words of a command that becomes xheap-init."""
    out = pathlib.Path(f"out.{name}").absolute()
    out.mkdir()
    ROOT.mkdir(exist_ok=True)
    script = SETUP.format(root=ROOT, out=out, out_inside="out", init=f"{BUILD}/xheap-init", xheap=XHEAP, extra=extra.format(root=ROOT), directories=directories,
                          before=before)
    run = subprocess.run(["unshare", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                         stdin=subprocess.DEVNULL)
    return run, out


def boot(name, extra="", directories="proc sys run dev/shm out"):
    """Lines that the real init has written, and the status of process 1."""
    run, out = start(name, extra, directories)
    written = out / "init"
    expect(written.exists(), f"{name}: the real init did not run: {run.stdout}")
    lines = written.read_text().splitlines()
    expect(lines[0] == "1 /sbin/init one two words [mark]", f"{name}: {lines}")
    expect(run.returncode == 7, f"{name}: status {run.returncode}: {run.stdout}")
    return lines[1:], out


def need_namespaces():
    if os.geteuid() or not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL).returncode:
        print("namespaces cannot be made here, by root and unshare")
        sys.exit(77)
