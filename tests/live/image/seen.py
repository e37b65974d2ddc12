#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/image-options.md says about which starts are seen: each row of its table, for a PATH and for a NAME. The table here is that of the page,
with what proves each row."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from image.lab import FILES, ROOT, Watching, clear, enter, listed, prepare, register, run, wait_until_in_force
from live import PROGRAMS, XHEAP, expect, loader_of, run_tests, strace_is_here, wait_for, xheap

PAGE = pathlib.Path(os.environ["SOURCE"], "docs/image-options.md")
SERVED, PERL = os.path.join(PROGRAMS, "served"), FILES / "perl"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
SESSION, LINKS = "seen", FILES / "programs"
MANY_STARTS = 50
USUAL_PATH = os.environ["PATH"]
MOUNTED = []   # what is to be unmounted, in the order of its mounts


class Unable(Exception):
    """The machine lacks what the row needs."""


def copy(path, source=SERVED):
    path.parent.mkdir(exist_ok=True, parents=True)
    shutil.copy(source, path)
    return path


def start(*command, **more):
    done = run(*command, cwd="/", **more)
    expect(done.returncode == 0, f"{done}")
    return done


def mount(*words):
    done = run("mount", *words)
    if done.returncode:
        raise Unable(done.stderr.strip())
    MOUNTED.append(words[-1])


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Unable(f"there is no {program}")


# Each is begun before the options are read, and goes on when they are in force. It gives the counts that its starts leave.

def by_programs(kind, place, name):
    file = copy(place / name)
    yield
    commands = (["sh", "-c", f"{file}; true"], ["sh", "-c", f"exec {file}"], ["su", "-s", "/bin/sh", "nobody", "-c", file], ["sh", "-lc", file], ["env", file],
                [sys.executable, "-c", f"import os; raise SystemExit(os.waitpid(os.posix_spawn({str(file)!r}, ['x'], os.environ), 0)[1])"],
                [sys.executable, "-c", f"import subprocess; raise SystemExit(subprocess.run([{str(file)!r}]).returncode)"],
                [sys.executable, "-c", f"import os, threading, time; threading.Thread(target=os.execv, args=({str(file)!r}, ['x'])).start(); time.sleep(60)"])
    for command in commands:
        start(*command)
    yield {"traced": len(commands)}


def static(kind, place, name):
    if subprocess.run(["cc", "-static", "-o", place / name, os.path.join(os.environ["SOURCE"], "tests/live/programs/served.c")], stderr=subprocess.DEVNULL).returncode:
        raise Unable("no static program can be linked")
    yield
    start(place / name)
    yield {"traced": 1}


def hard_link(kind, place, name):
    file = copy(place / name)
    os.link(file, place / "other")
    copy(place / "second")
    (place / "in").mkdir()
    os.link(place / "second", place / "in" / name)
    yield
    start(place / "other")
    if kind == "path":
        yield {"traced": 1}
    start(place / "in" / name)
    yield {"traced": 1}


def symbolic_link(kind, place, name):
    file = copy(place / name)
    copy(place / "second")
    (place / "in").mkdir()
    (place / "other").symlink_to(file)
    (place / "in" / name).symlink_to(place / "second")
    (LINKS / name).symlink_to(copy(place / "third"))
    yield
    start(place / "other")
    start(place / "in" / name)
    start(LINKS / name)
    yield {"traced": 1 if kind == "path" else 2}


def bind_mount(kind, place, name):
    copy(place / name)
    (place / "bound").mkdir()
    yield
    mount("--bind", place, place / "bound")
    start(place / "bound" / name)
    yield {"traced": 1}


def replaced(kind, place, name):
    file = copy(place / name)
    yield
    for _ in range(2):
        copy(place / "new").rename(file)
        start(file)
    yield {"traced": 2}


def of_tmpfs(kind, place, name):
    mount("-t", "tmpfs", "-o", "size=4m,mode=755", "own", place)
    copy(place / name)
    yield
    start(place / name)
    yield {"traced": 1}


def overlay_on(place):
    for directory in ("lower", "upper", "work", "over"):
        (place / directory).mkdir(exist_ok=True)
    mount("-t", "overlay", "-o", f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work", "own", place / "over")


def overlay(kind, place, name):
    copy(place / "lower" / name)
    overlay_on(place)
    yield
    start(place / "over" / name)
    yield {"traced": 1}


overlay.path = "lower/{}"


def overlay_later(kind, place, name):
    copy(place / "lower" / name)
    yield
    overlay_on(place)
    start(place / "over" / name)
    yield {"traced": 1}


overlay_later.path = "lower/{}"


def overlay_upper(kind, place, name):
    (place / "lower").mkdir()
    overlay_on(place)
    copy(place / "over" / name)
    yield
    start(place / "over" / name)
    yield {"traced": 1}


overlay_upper.path = "over/{}"


def mounted_later(kind, place, name):
    yield
    mount("-t", "tmpfs", "-o", "size=4m,mode=755", "own", place)
    copy(place / name)
    yield until_traced(kind, place / name if kind == "path" else name, lambda: start(place / name))


def until_traced(kind, image, starting):
    """Start it until it is recorded: from then on each start is."""
    def is_traced():
        starting()
        return counts(image).get("traced")
    wait_for("a start that is recorded", is_traced)
    wait_for_counts(kind)
    before = counts(image)["traced"]
    starting()
    return {"traced": before + 1}


def fence(kind):
    """Another program, registered as the others are: with a NAME, more would be seen of a PATH."""
    return FILES / "path-fence" if kind == "path" else "name-fence"


def wait_for_counts(kind):
    """Until all starts so far are counted: what comes later is counted later."""
    before = counts(fence(kind)).get("traced", 0)
    start(FILES / fence(kind))
    wait_for("a count of another start", lambda: counts(fence(kind)).get("traced", 0) > before)


def hidden(kind, place, name):
    """A shell in a mount namespace of its own starts a program of a file system that only it sees, for each line that it reads."""
    inner = f"mount -t tmpfs -o size=4m,mode=755 own {place} && cp {shlex.quote(str(SERVED))} {place}/{name} && while read line; do {place}/{name}; done"
    shell = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", inner], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def one():
        shell.stdin.write("\n")
        expect(shell.stdout.readline().endswith(" 0\n"), "the program of the other mount namespace did not start")
    one()
    yield
    if kind == "path":
        one()
        yield {}
    try:
        yield until_traced(kind, name, one)
    finally:
        shell.communicate()


def script(kind, place, name):
    (place / name).write_text(f"#!{PERL}\nexit 0;\n")
    (place / name).chmod(0o755)
    yield
    start(place / name)
    yield {"traced": 1}


def interpreter(kind, place, name):
    files = [copy(place / name, PERL), copy(place / f"{name}.plain", PERL)]
    for file in files:
        (place / f"{file.name}.script").write_text(f"#!{file}\nexit 0;\n")
        (place / f"{file.name}.script").chmod(0o755)
    register(files[1])
    yield
    start(place / f"{name}.script")
    if kind == "path":
        start(place / f"{name}.plain.script")
        wait_for("a count of a script's start", lambda: counts(files[1]) == {"of_scripts": 1})
    yield {"traced": 1}


interpreter.options = ["--scripts"]


def by_loader(kind, place, name):
    file = copy(place / name)
    yield
    start(loader_of(file), file)
    yield {}


def by_script(kind, place, name):
    file = copy(place / "bin" / name)
    (place / name).write_text(f"#!/bin/sh\nexec {loader_of(file)} --argv0 {name} {file}\n")
    (place / name).chmod(0o755)
    yield
    start(place / name)
    yield {"traced": 1}


def own_loader(kind, place, name):
    file = copy(place / "bin" / f"{name}.program")
    loader = copy(place / (f"{name}.d/ld-linux-x86-64.so.2" if kind == "path" else name), loader_of(file))
    yield
    start(loader, "--inhibit-cache", file)
    yield {"traced": 1}


own_loader.path = "{}.d/ld-linux-x86-64.so.2"


def namespaces(kind, place, name):
    file = copy(place / name)
    yield
    for command in (["unshare", "--user", "--map-root-user"], ["unshare", "--pid", "--fork"], ["unshare", "--mount"], [*NOBODY, "--no-new-privs"]):
        start(*command, file)
    yield {"traced": 4}


def rootless(kind, place, name):
    needs("bwrap")
    file = copy(place / name)
    yield
    start(*NOBODY, "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", file)
    yield {"traced": 1}


def rootless_overlay(kind, place, name):
    """An ordinary user mounts the overlay in namespaces of its own, and changes its root to it."""
    copy(place / "lower" / name)
    (place / "room").mkdir()
    (place / "room").chmod(0o777)
    inner = (f"cd {place}/room && mount -t tmpfs own . && cd {place}/room && mkdir upper work over && mount -t overlay -o lowerdir={place}/lower,upperdir=upper,workdir=work,userxattr own over"
             f" && cd over && mkdir lib64 lib usr && mount --rbind /usr usr && mount --rbind /lib lib && mount --rbind /lib64 lib64 && exec chroot . /{name}")
    command = [*NOBODY, "unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-c", inner]
    tried = run(*command)
    if tried.returncode:
        raise Unable(f"an ordinary user cannot mount an overlay: {tried.stderr.strip()}")
    yield
    start(*command)
    yield {"traced": 1}


rootless_overlay.path = "lower/{}"


def nspawn(kind, place, name):
    needs("systemd-nspawn")
    copy(place / "tree/mnt" / name)
    tree = place / "tree"
    for directory in ("etc", "proc", "sys", "dev", "run", "tmp", "root", "usr"):
        (tree / directory).mkdir()
    for link in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{link}"):
            (tree / link).symlink_to(os.readlink(f"/{link}"))
    (tree / "etc/os-release").write_text("")
    mount("--bind", "/usr", tree / "usr")
    command = ["systemd-nspawn", "-q", "--register=no", "--keep-unit", "-D", tree, "--as-pid2"]
    tried = run(*command, "/usr/bin/true")
    if tried.returncode:
        raise Unable(f"systemd-nspawn does not begin: {tried.stderr.strip()}")
    yield
    start(*command, f"/mnt/{name}")
    yield {"traced": 1}


nspawn.path = "tree/mnt/{}"


def fuse(kind, place, name):
    needs("fuse-overlayfs")
    copy(place / "lower" / name)
    (place / "over").mkdir()
    done = run("fuse-overlayfs", "-o", f"lowerdir={place}/lower", place / "over")
    if done.returncode:
        raise Unable(done.stderr.strip())
    MOUNTED.append(place / "over")
    yield
    start(place / "over" / name)
    yield {"traced": 1} if kind == "path" else {}


fuse.path = "over/{}"


def privileged(kind, place, name):
    file = copy(place / name)
    setgid, capable = copy(place / "in" / name), copy(place / "and" / name)
    yield
    file.chmod(0o4755)
    start(file)
    file.chmod(0o2755)
    start(file)
    if kind == "path":
        yield {"privileged": 2}
    setgid.chmod(0o2755)
    start(setgid)
    needs("setcap")
    start("setcap", "cap_net_raw+ep", capable)
    start(capable)
    yield {"privileged": 4}


def privileged_interpreter(kind, place, name):
    interpreter, script = copy(place / "interpreter"), place / name
    script.write_text(f"#!{interpreter}\n")
    script.chmod(0o755)
    yield
    for mode in (0o4755, 0o2755):
        interpreter.chmod(mode)
        start(*NOBODY, "sh", "-c", f"{script}; true")
    yield {"privileged": 2}


def debugged(kind, place, name):
    file = copy(place / name)
    if not strace_is_here():
        raise Unable("there is no strace")
    yield
    start("strace", "-o", ROOT / "strace.out", file)
    yield {"cannot_be_traced": 1}


def followed(kind, place, name):
    """Once each, also through an overlay whose layer is watched, too."""
    overlay_on(place)
    file = copy(place / "lower" / name)
    yield
    start(XHEAP, "record", "-q", "-o", ROOT / f"{name}.xht", "sh", "-c", f"{file}; for i in $(seq {MANY_STARTS}); do {place}/over/{name}; done")
    yield {"followed": 1 + MANY_STARTS}


followed.path = "lower/{}"


TABLE = {
    "by a shell, `sh -c`, `su`, a login shell, `env`, `posix_spawn`, vfork, a thread that is not the first": ("recorded", "recorded", by_programs),
    "a static program": ("recorded", "recorded", static),
    "through a hard link": ("recorded", "under the name of the link only", hard_link),
    "through a symbolic link": ("recorded", "recorded, under the name of the file, or of a link in a directory of programs", symbolic_link),
    "through a bind mount": ("recorded", "recorded", bind_mount),
    "of a file that was replaced by a rename": ("recorded from its first start", "recorded", replaced),
    "on a tmpfs": ("recorded", "recorded", of_tmpfs),
    "through an overlay, of a file below it": ("recorded", "recorded", overlay),
    "through an overlay that is mounted later, of a file below it": ("recorded", "recorded", overlay_later),
    "through an overlay, of a file that was made there": ("recorded", "recorded", overlay_upper),
    "on a file system that is mounted later": ("recorded, once the keeper has noticed the mount", "recorded, once the keeper has noticed the mount", mounted_later),
    "on a file system that only another mount namespace has": ("not seen", "recorded, from the next search on; one takes place every two seconds", hidden),
    "of a `#!` script that is registered itself": ("recorded", "recorded", script),
    "of a script whose interpreter is registered": ("recorded with `--scripts`; without it not a start, and counted as `of scripts`", "recorded", interpreter),
    "by its loader (`ld-linux-x86-64.so.2 FILE`)": ("not seen: the executed file is the loader", "the same", by_loader),
    "of a `#!` script that is registered, and executes the loader": ("recorded", "recorded", by_script),
    "of a bundle's own loader that is registered itself": ("recorded", "recorded, unless it has the name of the machine's loader", own_loader),
    "in a user, pid or mount namespace; without new privileges": ("recorded", "recorded", namespaces),
    "in a rootless container, through a bind mount": ("recorded", "recorded", rootless),
    "in a rootless container, through an overlay of its own": ("recorded", "recorded", rootless_overlay),
    "in a container of `systemd-nspawn`": ("recorded", "recorded", nspawn),
    "on nfs, cifs, ceph and fuse": ("recorded", "not seen: opening them might wait for a server", fuse),
    "setuid, setgid, file capabilities": ("left alone without `--privileged`", "the same", privileged),
    "of a registered script whose interpreter is setuid, setgid or has file capabilities": ("left alone without `--privileged`", "the same", privileged_interpreter),
    "by a program that a session records already": ("followed: that session goes on with it", "the same", followed),
    "by a debugger or strace": ("untraced, counted", "the same", debugged),
}


def counts(image):
    row = listed()[1].get(str(image))
    return {outcome: count for outcome, count in row["starts"].items() if count} if row else {}


def is_as_expected(found, expected):
    return all(count == expected.get(outcome, 0) for outcome, count in {**dict.fromkeys(expected, 0), **found}.items())


def page():
    """The page has the rows that are proved here, and no others."""
    text = re.search(r"^\| start \| a PATH \| a NAME \|\n\|[- |]+\n((?:\|.*\n)+)", PAGE.read_text(), re.M)
    expect(text, f"{PAGE} has no table")
    rows = {start: (path, name) for start, path, name in (line.strip("| \n").split(" | ") for line in text[1].splitlines())}
    for row in sorted(set(rows) | set(TABLE)):
        expect(rows.get(row) == TABLE.get(row, ())[:2], f"{row}: {rows.get(row)} in the page, {TABLE.get(row, ())[:2]} is proved")


def prove(kind):
    """Start what each row says, and compare the counts. All starts go to one session."""
    clear()
    rows, unable = [], {}
    LINKS.mkdir(exist_ok=True)
    for number, (text, (_, _, function)) in enumerate(TABLE.items()):
        name = f"{kind}{number}"
        place = FILES / f"{name}.d"
        place.mkdir()
        running = function(kind, place, name)
        try:
            next(running)
        except Unable as lacking:
            unable[text] = lacking
            continue
        image = place / getattr(function, "path", "{}").format(name) if kind == "path" else name
        register(image, *(getattr(function, "options", []) if kind == "path" else []))
        rows.append((text, image, running))
    copy(FILES / fence(kind))
    register(fence(kind))
    failures = []
    with Watching("--deadline", "10000"):
        wait_until_in_force()
        for text, image, running in rows:
            try:
                expected = next(running)
                wait_for(f"counts of {text}", lambda: sum(counts(image).values()) >= sum(expected.values()))
                if not expected:
                    wait_for_counts(kind)
                found = counts(image)
                if not is_as_expected(found, expected):
                    failures.append(f"{text}: {found}, not {expected}: {listed()[1][str(image)]['last_reason']}")
            except Unable as lacking:
                unable[text] = lacking
            finally:
                running.close()
    expect(not failures, "; ".join(failures))
    return f"{len(rows) - len(unable)} rows" + "".join(f"; skipped: {text}: {why}" for text, why in unable.items())


def with_session(kind):
    os.environ["PATH"] = f"{LINKS}:{USUAL_PATH}"
    xheap("start", SESSION, "-p", "0", "-o", f"{kind}.xht")
    try:
        return prove(kind)
    finally:
        xheap("stop", SESSION)
        while MOUNTED:
            subprocess.run(["umount", "-l", MOUNTED.pop()], stderr=subprocess.DEVNULL)


def paths():
    """Each row for a PATH."""
    return with_session("path")


def names():
    """Each row for a NAME."""
    return with_session("name")


enter()
prepare()
sys.exit(run_tests(page, paths, names))
