#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options beside strangers who mount: no file system of theirs keeps a start waiting, nothing of theirs is opened, and neither their mounts nor their
namespaces keep others from being watched. Every mark lies below a file system of this test's own, and each server ends by itself."""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time

from image.lab import FILES, OPTIONS, ROOT, Watching, clear, enter, listed, prepare, register, run, usual_places, wait_for_starts, wait_until_in_force
from live import LONG_SECONDS, PROGRAMS, XHEAP, expect, run_tests, told, wait_for

USER = 65534
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--pdeathsig", "KILL"]
IN_OWN_SPACE = ["unshare", "--mount", "--propagation", "private"]
IN_USERS_SPACE = [*AS_USER, "unshare", "--user", "--map-root-user", "--mount"]
STRANGER, DEVICE, PERL = os.path.join(PROGRAMS, "stranger"), FILES / "device", FILES / "perl"
LOADER = FILES / "ld-linux-of-user"
STARTS, MOUNTS, NAMESPACES = 1000, 12000, 256
BESIDE, IGNORED_MAX = FILES / "beside", 4096
FILES_BESIDE = IGNORED_MAX + 100
SKIPPED = "skipped: "


@contextlib.contextmanager
def shell(script, *how):
    """A shell in namespaces of its own that runs the script, says what it has to say, and stays until the end of the block."""
    process = subprocess.Popen([*how, "sh", "-c", f"{script} read line", "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open("shell.err", "w"), text=True)
    try:
        expect(process.stdout.readline() == "there\n", f"no namespaces: {open('shell.err').read()}")
        yield process
    finally:
        process.stdin.close()
        wait_for("the end of the namespaces", lambda: process.poll() is not None)


def serve(place, answered, file=PERL):
    """Shell text that mounts a FUSE file system with the one file `file`, whose open after so many is never answered."""
    return f"setpriv --pdeathsig KILL '{STRANGER}' serve {place} {DEVICE} {file} {answered} {LONG_SECONDS} > {place}.said & server=$!; until grep -qs serves {place}.said; do sleep 0.02; kill -0 $server || exit 1; done && "


def has_fuse():
    """Make the device as udev does."""
    if not DEVICE.exists() and subprocess.run(["mknod", "-m", "666", DEVICE, "c", "10", "229"], stderr=subprocess.DEVNULL).returncode:
        return False
    os.chmod(DEVICE, 0o666)
    try:
        os.close(os.open(DEVICE, os.O_RDWR))
        return True
    except OSError:
        return False


def has_namespaces():
    return not run(*IN_USERS_SPACE, "true").returncode


def rows():
    return told("image", "list")["not_watched"]


def row_at(place, **more):
    return next((row for row in rows() if row["place"] == str(place) and all(row[key] == value for key, value in more.items())), None)


def place_of_user(name):
    """A directory in which a user may mount."""
    place = FILES / name
    place.mkdir(exist_ok=True)
    place.chmod(0o777)
    return place


def start(program=PERL):
    done = run(program, "-e", "1")
    expect(done.returncode == 0 and not done.stderr, f"{program} did not start: {done}")


def see(program):
    """Start the program, and wait until that is traced or counted."""
    before = sum(listed()[1]["perl"]["starts"].values())
    start(program)
    wait_for_starts("perl", before + 1)


def silent():
    """A user executes a file of a FUSE server that stops to answer, through an overlay in a user namespace: starts elsewhere go on, and the watcher asks nothing of the server."""
    if not has_fuse() or not has_namespaces():
        return SKIPPED + "no FUSE file system, or no user namespaces, for ordinary users"
    clear()
    register("perl")
    place = place_of_user("silent")
    overlay = (f"mount -t tmpfs own {place} && mkdir {place}/fuse {place}/empty {place}/all && {serve(f'{place}/fuse', 1)}"
               f"mount -t overlay all -o lowerdir={place}/fuse:{place}/empty {place}/all && echo there && read line && {place}/all/file -e 1 && echo done;")
    with Watching():
        wait_until_in_force()
        before = listed()[0]
        with shell(overlay, *IN_USERS_SPACE) as process:
            row = wait_for("the user's file systems in the list", lambda: row_at(place, pid=process.pid))
            expect(f"of user {USER}" in row["why"], f"{row}")
            process.stdin.write("go on\n")
            process.stdin.flush()
            # The first open is that of the exec, and the second one nobody makes.
            expect(process.stdout.readline() == "done\n", f"the user's program did not run: {open('shell.err').read()}")
            for _ in range(STARTS):
                start()
            counted = wait_for_starts("perl", STARTS)
            state, _ = listed()
            expect(not pathlib.Path(f"/proc/{process.pid}/root{place}/fuse.unanswered").exists(), "somebody else has opened the user's file")
            expect(state["watcher"] == before["watcher"] and len(state["intervals"]) == len(before["intervals"]), f"the watcher has ended: {state}")
    return f"{counted['traced']} traced, {counted['untraced']} counted with a reason"


def layers():
    """An overlay is watched if all of its layers are: not above FUSE, nor above a layer that nobody finds. Its file systems are in this mount namespace, or in one of a container."""
    clear()
    register("perl")
    quick, slow, lost, server = (FILES / f"layers-{name}" for name in ("quick", "slow", "lost", "fuse"))
    lower, escaped, links = FILES / "lower", FILES / "lower:with, marks", FILES / "layer-links"
    for directory in (quick, slow, lost, server, lower, escaped, links):
        directory.mkdir(exist_ok=True)
    (links / "link").symlink_to(lower)
    shutil.copy(PERL, escaped / "perl")
    shutil.copy(PERL, lower / "perl-lower")
    upper = [FILES / "layer-upper", FILES / "layer-work"]
    for directory in upper:
        directory.mkdir(exist_ok=True)
    inner = place_of_user("container")
    options = f"lowerdir={links}/link:{str(escaped).replace(':', chr(92) + ':').replace(',', chr(92) + ',')},upperdir={upper[0]},workdir={upper[1]}"

    def mount(place, words):
        done = run("mount", "-t", "overlay", "-o", words, "test", place)
        return done.stderr.strip() if done.returncode else None
    with Watching():
        wait_until_in_force()
        failed = mount(quick, options)
        if failed:
            return f"{SKIPPED}no overlay can be mounted here: {failed}"
        try:
            # The tmpfs below is watched, too: that the overlay is itself, the list of the kernel says.
            wait_for("marks of the overlay", lambda: is_marked(quick))
            see(quick / "perl")
            expect(not rows(), f"{rows()}")
            with shell(f"cd {FILES} && mount -t overlay lost -o lowerdir=lower:empty {lost} || mount -t overlay lost -o lowerdir=lower:{links} {lost}; echo there;", *IN_OWN_SPACE) as process:
                expect(wait_for("a layer with a relative path", lambda: row_at(lost))["why"] == "overlay: a layer of it is unknown", f"{rows()}")
                expect(process.poll() is None, "the namespace has ended")
            if not has_fuse():
                return "without FUSE"
            fuse = subprocess.Popen([STRANGER, "serve", server, DEVICE, PERL, "-1", str(LONG_SECONDS)], stdout=subprocess.PIPE, text=True)
            try:
                expect(fuse.stdout.readline() == "serves\n", "no FUSE file system")
                failed = mount(slow, f"lowerdir={server}:{lower}")
                expect(not failed, failed)
                row = wait_for("an overlay above FUSE", lambda: row_at(slow))
                expect(row["why"] == "overlay on fuse: to open it may wait for a server", f"{row}")
                with shell(f"mount -t tmpfs own {inner} && mkdir {inner}/one {inner}/two {inner}/all && cp {PERL} {inner}/two && mount -t overlay all -o "
                           f"lowerdir={inner}/one:{inner}/two {inner}/all && echo there && while read line; do {inner}/all/perl -e 1; done;", *IN_OWN_SPACE) as process:
                    wait_for("marks of a container's overlay", lambda: is_marked(f"{inner}/all", process.pid))
                    expect(not row_at(f"{inner}/all"), f"{rows()}")
            finally:
                run("umount", "-l", slow)
                run("umount", "-l", server)
                fuse.kill()
                fuse.wait()
        finally:
            run("umount", "-l", quick)


def device_at(place, pid="self"):
    """The device of the file system at a place, as the table of mounts has it, and as the kernel lists it with marks."""
    for line in open(f"/proc/{pid}/mountinfo"):
        words = line.split()
        if words[4] == str(place):
            major, minor = map(int, words[2].split(":"))
            return f"sdev:{major << 20 | minor:x} "
    return None


def is_marked(place, pid="self"):
    device, pid = device_at(place, pid), listed()[0]["watcher"]
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").glob("*"):
        with contextlib.suppress(OSError):
            if device and f"fanotify {device}" in path.read_text():
                return True
    return False


def told_to_user():
    return json.loads(run(*AS_USER, XHEAP, "image", "list", "--format", "json", env={"PATH": os.environ["PATH"]}).stdout)


def said_to_user():
    """An ordinary user learns how much is watched, and neither the places where others mount nor what they execute."""
    clear()
    register("perl")
    place, run_directory = place_of_user("private"), pathlib.Path("/run/xheap-images")
    script = f"mount -t tmpfs none {place} && mkdir {place}/b && mount -t tmpfs none {place}/b && mount -t tmpfs none {place} && echo there;"
    with usual_places(), Watching():
        wait_until_in_force()
        own = ROOT / "run/xheap-images"
        run_directory.mkdir()
        subprocess.run(["mount", "--bind", own, run_directory], check=True)
        with shell(script, *IN_OWN_SPACE):
            wait_for("a file system that is not watched", rows)
            # What all may read is written after it.
            after = wait_for("a sum that all may read", lambda: next((said for said in [told_to_user()] if said["not_watched_count"]), None))
            before = told("image", "list")
            text = run(*AS_USER, XHEAP, "image", "list", env={"PATH": os.environ["PATH"]}).stdout
        expect(after["not_watched_count"] and not after["not_watched"] and after["watcher"] == before["watcher"], f"{before}, {after}")
        expect("not watched: " in text and "which only root may know" in text and str(place) not in text, text)
        whole, summary = own / "status", own / "summary"
        expect(whole.stat().st_mode & 0o777 == 0o600 and str(place) in whole.read_text(), f"{whole.stat()}")
        expect(summary.stat().st_mode & 0o777 == 0o644 and str(place) not in summary.read_text(), f"{summary.stat()}")


def by_link():
    """A symbolic link in place of a mount point that the table of mounts still has leads the keeper nowhere: to no file of root's, neither in a user's namespace nor in a container's."""
    clear()
    register("perl")
    place, secret, opened = place_of_user("linked"), FILES / "secret", FILES / "opened"
    os.mkfifo(secret, 0o600)
    script = (f"mount -t tmpfs none {place} && mkdir -p {place}/a/b && mount -t tmpfs none {place}/a/b && mount -t tmpfs none {place}/a &&"
              f"ln -s {secret} {place}/a/b && echo there;")
    waiting = subprocess.Popen(["sh", "-c", f"echo 2> /dev/null > {secret}; touch {opened}"])
    try:
        with Watching():
            wait_until_in_force()
            with shell(script, *IN_OWN_SPACE) as process:
                row = wait_for("the hidden file system", lambda: row_at(f"{place}/a/b", pid=process.pid))
                expect(row["why"] == "another mount lies on it", f"{row}")
            if has_namespaces():
                with shell(script, *IN_USERS_SPACE) as process:
                    wait_for("the user's file systems", lambda: next((row for row in rows() if row["pid"] == process.pid), None))
            expect(waiting.poll() is None and not opened.exists(), "the keeper has opened a file of root's through a user's link")
    finally:
        waiting.kill()
        waiting.wait()


@contextlib.contextmanager
def without_answer(place):
    """A FUSE file system that never answers about its name `silent`."""
    place.mkdir(exist_ok=True)
    server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", STRANGER, "serve", place, DEVICE, PERL, "-1", str(LONG_SECONDS)], stdout=subprocess.PIPE, text=True)
    try:
        expect(server.stdout.readline() == "serves\n", "no FUSE file system")
        yield place / "silent"
    finally:
        server.kill()
        server.wait()
        run("umount", "-l", place)


def paths():
    """Registered PATHs whose look-up never ends keep no file system from being watched."""
    if not has_fuse():
        return SKIPPED + "no FUSE file system"
    clear()
    register("perl")
    with without_answer(FILES / "paths") as silent_path:
        for number in range(6):
            (OPTIONS / f"silent-{number}.conf").write_text(f"[image]\nImage = {silent_path}/{number}\n")
        (OPTIONS / "loader.conf").write_text(f"[image]\nImage = {silent_path}/ld-linux-x86-64.so.2\n")
        with Watching():
            wait_until_in_force()
            wait_for("marks of the file system", lambda: is_marked(FILES) and not row_at(FILES))
            see(PERL)


def programs():
    """A link of root's in the keeper's PATH that leads to a user's link keeps the keeper waiting for nobody."""
    if not has_fuse():
        return SKIPPED + "no FUSE file system"
    clear()
    register("perl")
    directory, of_user, usual = FILES / "programs", place_of_user("of-user"), os.environ["PATH"]
    directory.mkdir()
    with without_answer(FILES / "unanswered-link") as silent_path:
        for number, target in enumerate([*[silent_path] * 6, PERL]):
            (of_user / str(number)).symlink_to(target)
            (directory / f"link-{number}").symlink_to(of_user / str(number))
        os.environ["PATH"] = f"{directory}:{usual}"
        try:
            with Watching():
                wait_until_in_force()
                see(PERL)
        finally:
            os.environ["PATH"] = usual


def ticks(pid):
    words = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USERS, NEW_MOUNTS, BIND, RECURSIVE_PRIVATE, PR_SET_DUMPABLE, PR_SET_PDEATHSIG = 0x10000000, 0x20000, 0x1000, 0x44000, 4, 1


def call(name, *words):
    if getattr(LIBC, name)(*words):
        raise OSError(ctypes.get_errno(), f"{name} failed")


def be_user():
    """As AS_USER. What the user may execute is not known here."""
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)
    call("unshare", NEW_USERS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {USER} 1"), ("gid_map", f"0 {USER} 1")):
        pathlib.Path("/proc/self", name).write_text(text)


def mount_many(place, mounts, spaces, ready, end):
    call("unshare", NEW_MOUNTS)
    call("mount", b"none", b"/", None, RECURSIVE_PRIVATE, None)
    call("mount", b"own", os.fsencode(place), b"tmpfs", 0, None)
    (place / "a").mkdir()
    for number in range(mounts):
        (place / str(number)).mkdir()
        call("mount", os.fsencode(place / "a"), os.fsencode(place / str(number)), None, BIND, None)
    for _ in range(spaces):
        if not os.fork():
            call("unshare", NEW_MOUNTS)
            break
    os.write(ready, b"x")
    os.read(end, 1)


@contextlib.contextmanager
def many(place, mounts, spaces, is_user):
    """So many mounts in a mount namespace, and in further ones that are made from it, until the end of the block."""
    (ready, ready_there), (end_there, end) = os.pipe(), os.pipe()
    first = os.fork()
    if not first:
        try:
            os.close(end)
            if is_user:
                be_user()
            mount_many(place, mounts, spaces, ready_there, end_there)
        except OSError as error:
            print(error, file=sys.stderr)
        os._exit(0)
    os.close(ready_there)
    os.close(end_there)
    try:
        expect(all(os.read(ready, 1) for _ in range(spaces + 1)), f"no {mounts} mounts in {spaces + 1} namespaces")
        yield first
    finally:
        os.close(end)
        expect(not os.read(ready, 1), "more namespaces")
        os.close(ready)
        os.waitpid(first, 0)


def numerous():
    """A user's 256 mount namespaces, and 12,000 mounts of a user and of a container, keep no other namespace from being watched, and take a small part of the keeper's time."""
    if not has_namespaces():
        return SKIPPED + "no user namespaces for ordinary users"
    clear()
    register("perl")
    crowd, mounts, container, hidden = (place_of_user(name) for name in ("crowd", "mounts", "of-container", "hidden"))
    inner = f"mount -t tmpfs own {hidden} && cp {PERL} {hidden}/perl && echo there && while read line; do {hidden}/perl -e 1; done;"
    with Watching(), many(crowd, 10, NAMESPACES, True), many(mounts, MOUNTS, 0, True), many(container, MOUNTS, 1, False) as owner:
        wait_until_in_force()
        with shell(inner, *IN_OWN_SPACE) as process:
            wait_for("marks in the last namespace", lambda: is_marked(hidden, process.pid))
            process.stdin.write("\n")
            process.stdin.flush()
            wait_for_starts("perl", 1)
        row = wait_for("the user's file systems in the list", lambda: next((row for row in rows() if f"of user {USER}" in row["why"]), None))
        wait_for("marks of the container", lambda: is_marked(container, owner))
        expect(len(rows()) <= 2, f"{rows()}")
        keeper = listed()[0]["keeper"]
        begin, from_ticks = time.monotonic(), ticks(keeper)
        time.sleep(6)
        used = (ticks(keeper) - from_ticks) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - begin)
        expect(used < 0.3, f"the keeper takes {used:.0%} of a processor")
    return f"{row['why']}; the keeper takes {used:.1%} of a processor"


def loaders():
    """A user's file that once had the name of a loader is seen when it gets a registered one."""
    clear()
    register("wanted")
    wait_for("a file that was changed long ago", lambda: time.time() - os.stat(LOADER).st_ctime > 62)
    with Watching():
        wait_until_in_force()
        for _ in range(2):
            start(LOADER)
        LOADER.rename(FILES / "wanted")
        start(FILES / "wanted")
        wait_for_starts("wanted", 1)


def ignored_of(pid):
    """About how many files the kernel does not ask the watcher again."""
    return sum(line.startswith("fanotify ino:") and "mask:0 ignored_mask:40000" in line
               for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir() for line in path.read_text().splitlines())


def ignored():
    """Of the files beside a registered PATH the kernel stops to ask about so many at most: each takes memory. All of them start, and the registered one is seen."""
    clear()
    image = BESIDE / "perl"
    register(image)
    wait_for("files that were changed long ago", lambda: time.time() - os.stat(BESIDE / str(FILES_BESIDE - 1)).st_ctime > 62)
    with Watching():
        wait_until_in_force()
        pid = listed()[0]["watcher"]
        for number in range(FILES_BESIDE):
            child = os.posix_spawn(BESIDE / str(number), ["program"], {})
            expect(os.waitpid(child, 0)[1] == 0, f"{number} did not start")
        expect(ignored_of(pid) == IGNORED_MAX, f"{ignored_of(pid)} files are ignored")
        start(image)
        row = wait_for_starts(image, 1)
        expect(row["traced"] == 1 and listed()[0]["watcher"] == pid, f"{row}")


def make_small(path):
    """A program that only ends: one page of code, and no loader."""
    code = bytes((0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05))
    head = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    path.write_bytes(head + struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, 120 + len(code), 120 + len(code), 0x1000) + code)
    path.chmod(0o755)


enter()
prepare()
BESIDE.mkdir()
shutil.copy(PERL, BESIDE / "perl")
for file in range(FILES_BESIDE):
    make_small(BESIDE / str(file))
# A start of a file that has changed in the last minute is never ignored.
shutil.copy(PERL, LOADER)
os.chown(LOADER, USER, USER)
sys.exit(run_tests(silent, layers, said_to_user, by_link, paths, programs, numerous, loaders, ignored))
