#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where sessions live: whatever other users make, rename or link there, it keeps nobody from recording, and no file of theirs or ours is written."""
import ctypes
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

from live import LONG_SECONDS, XHEAP, Failure, expect, regions, run_tests, told, wait_for, xheap

NOBODY = 65534
EXCHANGE, AT_FDCWD = 2, -100
libc = ctypes.CDLL(None, use_errno=True)
COMMAND = os.path.abspath("xheap")


def environment(**more):
    known = {name: value for name, value in os.environ.items() if name not in ("XHEAP_RUNTIME_DIR", "XDG_RUNTIME_DIR")}
    return dict(known, **more)


def as_nobody(*words, **more):
    return subprocess.run(list(map(str, words)), user=NOBODY, group=NOBODY, extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LONG_SECONDS, **more)


def session_directory(pid):
    """Of the logger that records the process, by the region that is mapped there."""
    found = regions(pid)
    return pathlib.Path(found[0][5]).parent if found else None


def place_of(env, **more):
    """Where a recording with this environment keeps its directory."""
    process = subprocess.Popen([COMMAND, "record", "-q", "-o", f"nobody/place.{more.get('user', 0)}.xht", "--", "sleep", "1000"], env=env, start_new_session=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, **more)
    try:
        def find():
            if process.poll() is not None:
                raise Failure(f"status {process.returncode}: {process.stdout.read()}")
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for pid in children:
                name = pathlib.Path(f"/proc/{pid}/comm")
                if name.exists() and name.read_text().strip() == "sleep":
                    return session_directory(pid)
            return None
        directory = wait_for("region", find)
        status = directory.parent.lstat()
        expect(stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o77, f"{directory.parent} is open to others: {status}")
        return directory, status
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def names_of_others():
    """Names that somebody else has taken in shared memory keep nobody from anything."""
    shared = pathlib.Path("/dev/shm")
    made = [shared / f"xheap-{user}{rest}" for user in (0, NOBODY) for rest in ("", "-aaaaaa", "-000000")]
    for path in made:
        if path.exists():
            continue
        path.mkdir()
        (path / "taken.session").symlink_to(path)
        # Each belongs to the other of the two, and is open to all.
        if "xheap-0" in path.name:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o777)
    try:
        for user in (0, NOBODY):
            directory, status = place_of(environment(), **({"user": user, "group": user, "extra_groups": []} if user else {}))
            expect(directory.parent not in made, f"{directory.parent} is used, which somebody else made")
            expect(status.st_uid == user, f"{directory.parent} is another user's: {status}")
        name = f"taken{os.getpid()}"
        words = [COMMAND, "start", name, "-o", os.path.abspath("nobody/taken.xht"), "-p", "0"]
        run = as_nobody(*words, env=environment())
        expect(run.returncode == 0, f"a session as another user: {run.stdout}")
        run = as_nobody(COMMAND, "stop", name, env=environment())
        expect(run.returncode == 0, f"its end: {run.stdout}")
    finally:
        for path in made:
            shutil.rmtree(path)


def foreign_runtime_directory():
    """Root in the environment of another user, who owns what XDG_RUNTIME_DIR names, or may rename it, does not use it."""
    for variable in ("XDG_RUNTIME_DIR", "XHEAP_RUNTIME_DIR"):
        runtime = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm", prefix="xt-places."))
        try:
            os.chown(runtime, NOBODY, NOBODY)
            directory, _ = place_of(environment(**{variable: str(runtime)}))
            expect(runtime not in directory.parents, f"{directory} is used, in a directory of another user's")
            own = runtime / "own"
            own.mkdir(mode=0o700)
            directory, _ = place_of(environment(**{variable: str(own)}))
            expect(runtime not in directory.parents, f"{directory} is used, which another user may rename")
            expect(not list(runtime.glob("**/session")), f"something was left: {list(runtime.glob('**/*'))}")
        finally:
            shutil.rmtree(runtime)


def renamed_meanwhile():
    """The user who owns XDG_RUNTIME_DIR puts links in the place of root's files while root attaches and the target executes files."""
    runtime = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm", prefix="xt-places."))
    victim = pathlib.Path("victim").absolute()
    victim.write_text("precious\n")
    decoy = runtime / "decoy"
    decoy.mkdir()
    for number in range(64):
        for name in (f"region.{number}.info", f"region.{number}.info.new", "session", "session.new"):
            if not (decoy / name).is_symlink():
                (decoy / name).symlink_to(victim)
    os.chown(runtime, NOBODY, NOBODY)
    is_over = threading.Event()

    def exchange():
        while not is_over.is_set():
            for path in runtime.glob("xheap-0/*"):
                libc.renameat2(AT_FDCWD, os.fsencode(decoy), AT_FDCWD, os.fsencode(path), EXCHANGE)
            time.sleep(0)
    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        env = environment(XDG_RUNTIME_DIR=str(runtime))
        loop = "i=0; while [ $i -lt 40 ]; do $(command -v true); i=$((i+1)); done"
        run = subprocess.run([COMMAND, "record", "-q", "-o", "renamed.xht", "--", "sh", "-c", loop], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, timeout=LONG_SECONDS)
        expect(run.returncode == 0, f"record: {run.stdout}")
    finally:
        is_over.set()
        thread.join()
        shutil.rmtree(runtime)
    expect(victim.read_text() == "precious\n", f"a file of root's was written: {victim.read_text()[:200]}")


def place_of_root():
    """Root's sessions are in /run/xheap where /run is a tmpfs with room, which need not be executable; else elsewhere."""
    if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
        return "no mount namespaces here"
    script = "mount -t tmpfs -o mode=755,noexec,nosuid,nodev,size={} none /run && exec \"$@\""
    for size, is_used in (("256m", True), ("1m", False)):
        run = subprocess.run(["unshare", "--mount", "sh", "-c", script.format(size), "sh", COMMAND, "record", "-q", "-o", "run.xht", "--", "sh", "-c",
                              "grep -h region. /proc/$$/maps; ls -ld /run/xheap"],
                             env=environment(XDG_RUNTIME_DIR="/dev/shm"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS)
        expect(run.returncode in (0, 2) and "region." in run.stdout, f"{size}: {run.stdout}{run.stderr}")
        expect((" /run/xheap/" in run.stdout) == is_used, f"with {size}: {run.stdout}")
        expect(not is_used or "drwx------" in run.stdout, f"/run/xheap is open to others: {run.stdout}")
    return None


def lines_in_names():
    """No path of a target's ends its line in the files that recovery reads."""
    image = os.path.abspath("a\npid=1\nimage=\\x2fb")
    shutil.copy(shutil.which("sleep"), image)
    logger = subprocess.Popen([COMMAND, "record", "-q", "-o", "lines.xht", "--", image, "1000"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def target():
        for pid in pathlib.Path(f"/proc/{logger.pid}/task/{logger.pid}/children").read_text().split():
            # The logger has the region, too.
            if session_directory(pid) and os.readlink(f"/proc/{pid}/exe") == image:
                return int(pid)
        return None
    pid = wait_for("target", target)
    directory = session_directory(pid)
    lines = wait_for("text", lambda: [text.read_text() for text in directory.glob("region.*.info")])[0].splitlines()
    names = [line.partition("=")[0] for line in lines]
    expect(len(set(names)) == len(names) and "image" in names, f"lines: {lines}")
    expect(all(line.isprintable() for line in lines), f"lines: {lines}")
    loggers = [int(value) for name, _, value in (line.partition("=") for line in (directory / "session").read_text().splitlines()) if name == "pid"]
    os.kill(loggers[0], signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    logger.communicate()
    xheap("recover", "lines.xht")
    images = [process["image"] for process in told("info", "lines.xht")["processes"]]
    expect(images == [image], f"recovered: {images}")


def recovery_of_others():
    """Files of another user's directory do not say what root's recovery writes."""
    directory = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm", prefix="xt-places."))
    victim = pathlib.Path("victim").absolute()
    victim.write_text("precious\n")
    try:
        (directory / "session").write_text(f"trace={victim}\nfile_mode=flight\nclock=tsc\nmult=1\nshift=0\nstart_ticks=1\npid=1\ncommand=x\n")
        os.chown(directory, NOBODY, NOBODY)
        said = xheap("recover", directory, status=2)
        expect("65534" in said, f"refused for another reason: {said}")
        expect(victim.read_text() == "precious\n", "a file of root's was written")
    finally:
        shutil.rmtree(directory)


shutil.copy(XHEAP, COMMAND)
if os.geteuid() != 0:
    sys.exit(run_tests(lines_in_names))
for above in pathlib.Path(COMMAND).parents:
    if above.stat().st_uid == 0 and str(above) not in ("/", "/tmp"):
        above.chmod(above.stat().st_mode | 0o11)
os.mkdir("nobody")
os.chown("nobody", NOBODY, NOBODY)
sys.exit(run_tests(names_of_others, foreign_runtime_directory, renamed_meanwhile, place_of_root, lines_in_names, recovery_of_others))
