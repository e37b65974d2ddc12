#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each single failure of xheap-init, of what it starts and of what they need: the real init runs in any case, and whatever holds process 1 is ended."""
import subprocess
import sys

from autologger.first_root import LOGGER, boot, need_namespaces, start
from live import PROGRAMS, XHEAP, expect, info, is_whole, run_tests

DIRECTORIES = ["proc", "sys", "run", "dev/shm"]
STATIC = f"cp '{PROGRAMS}/denied' opt/xheap/denied\nrm sbin/init\ncp '{PROGRAMS}/denied' sbin/init\n"
# An init that waits until it is recorded.
WAITING = """cat > etc/init <<'INIT'
#!/bin/sh
for i in $(seq 1000); do
  /opt/xheap/xheap query first --format json | grep -q '"pid": 1[,]' && break
done
/opt/xheap/xheap autologger stop
exit 7
INIT
chmod 755 etc/init
"""
# The command under another name, and a script in its place.
INSTEAD = """touch opt/xheap/real
mount --move opt/xheap/xheap opt/xheap/real 2>/dev/null || mount --bind '{xheap}' opt/xheap/real
umount opt/xheap/xheap 2>/dev/null || true
cat > opt/xheap/xheap <<'COMMAND'
{script}
COMMAND
chmod 755 opt/xheap/xheap
"""


def runs_init(name, run):
    """The static init says that it is process 1, with all words."""
    expect(run.returncode == 7 and "init: 1 /sbin/init one two words\n" in run.stdout, f"{name}: status {run.returncode}: {run.stdout}")


def calls():
    """Each system call of the first program fails, one after the other; so it does for the command and the logger."""
    names = subprocess.run([f"{PROGRAMS}/denied", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    expect(len(names) > 10, names)
    for name in names:
        run, _ = start(f"call.{name}", LOGGER + STATIC, before=f"/opt/xheap/denied {name}")
        runs_init(name, run)
    return f"{len(names)} calls"


def mounts():
    """Each of the four places cannot be mounted, and all of them."""
    for place in DIRECTORIES:
        others = " ".join(other for other in DIRECTORIES if other != place)
        name = place.replace("/", ".")
        run, _ = start(f"mount.{name}", LOGGER + STATIC + f"touch {place}\n", directories=others + " out")
        runs_init(place, run)
    run, _ = start("mount.all", LOGGER + STATIC + "".join(f"touch {place}\n" for place in DIRECTORIES), directories="out")
    runs_init("all", run)


def full():
    """A /run without room, and one without a free name: the session lies in /dev/shm. If that is full, too, there is none."""
    for name, options, fill in (("room", "size=8k", "dd if=/dev/zero of={place}/fill bs=4k count=9 2>/dev/null"), ("names", "nr_inodes=2", "touch {place}/fill")):
        fills = [f"mount -t tmpfs -o {options} tmpfs {place}\n{fill} || true\n".replace("{place}", place) for place in ("run", "dev/shm")]
        _, out = boot(f"full.{name}", LOGGER + fills[0])
        first = info(out / "first.xht")["processes"][0]
        expect(first["pid"] == 1 and first["events"] > 0, f"{name}: {first}")
        run, _ = start(f"both.{name}", LOGGER + STATIC + "".join(fills))
        runs_init(f"both {name}", run)


def memory():
    """Without memory for the command, and without memory for its logger."""
    for kilobytes in (2000, 30000, 60000):
        run, _ = start(f"memory.{kilobytes}", LOGGER + STATIC, before=f"/usr/bin/prlimit --as={kilobytes * 1024}")
        runs_init(f"{kilobytes} KB", run)


def logger():
    """The command runs, but its logger cannot be executed, is killed, or stands still while process 1 executes the real init."""
    lacking = INSTEAD.replace("{script}", "#!/bin/sh\nulimit -n 3; exec /opt/xheap/real \"$@\"")
    find = "for p in /proc/[0-9]*; do grep -aq '[s]tart.first' $p/cmdline && kill -{signal} ${{p#/proc/}}; done"
    script = "#!/bin/sh\n[ $2 = run ] || exec /opt/xheap/real \"$@\"\n/opt/xheap/real \"$@\"\n" + find + "\nexit 0"
    boot("descriptors", LOGGER + lacking.replace("{xheap}", XHEAP))
    recover = "sed -i 's,^exit 7,/opt/xheap/real recover /out/first.xht >> /out/init.log 2>\\&1; exit 7,' sbin/init\n"
    for signal in ("KILL", "STOP"):
        _, out = boot(f"logger.{signal}", LOGGER + recover + INSTEAD.replace("{script}", script.replace("{signal}", signal)).replace("{xheap}", XHEAP))
        facts = info(out / "first.xht")
        expect(is_whole(facts), f"what was recorded can be recovered: {facts['complete']}, {(out / 'init.log').read_text()}")


def links():
    """An init that is xheap-init itself is passed over."""
    boot("link", "mv sbin/init etc/init; sed -i 's,$0,/sbin/init,' etc/init; ln -s ../opt/xheap/xheap-init sbin/init\n")


def unusable():
    """The logger cannot take process 1 at an exec that fails; it attaches to the init that runs instead."""
    run, out = start("unusable", LOGGER + WAITING + "echo '#!/nowhere' > sbin/init\n")
    expect(run.returncode == 7, run)
    first = info(out / "first.xht")["processes"][0]
    expect(first["pid"] == 1 and first["events"] > 0, first)


need_namespaces()
sys.exit(run_tests(calls, mounts, full, memory, logger, links, unusable))
