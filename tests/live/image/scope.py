#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options: which starts an option covers, where they are recorded, and how long they wait."""
import ctypes
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tty

from image.lab import FILES, OPTIONS, ROOT, TRACES, Watching, clear, enter, listed, prepare, processes, register, run, usual_places, wait_for_starts, wait_until_in_force
from live import XHEAP, expect, kill, run_tests, told, wait_for, xheap

PERL, PLAIN_PATH = FILES / "perl", os.environ["PATH"]
LONG_MS = 10000


def own_logger(image):
    """The logger of the image's own session."""
    return wait_for("the image's logger", lambda: next((row["logger_pid"] for row in told("sessions") if row["alive"] and row["name"].endswith(f".{image}")), None))


def watching():
    """The watcher, once its marks are in force."""
    return wait_for("a watcher", lambda: (state := listed()[0])["in_force"] and state["watcher"])


class Cgroups:
    """Cgroups of the test's own, which end with the block: paths as a service manager makes them."""

    def __enter__(self):
        for line in open("/proc/self/mountinfo"):
            place, kind = line.split()[4], line.partition(" - ")[2].split()
            if kind[0] == "cgroup2" or "name=systemd" in kind[2]:
                self.base = pathlib.Path(place, f"xheap-test-{os.getpid()}.slice")
                self.made = []
                try:
                    self.base.mkdir()
                    self.made.append(self.base)
                    return self
                except OSError:
                    pass
        return None

    def make(self, path):
        for part in [*reversed(pathlib.PurePath(path).parents), pathlib.PurePath(path)][1:]:
            if not (self.base / part).exists():
                (self.base / part).mkdir()
                self.made.append(self.base / part)
        return self.base / path

    def __exit__(self, *_):
        for path in reversed(self.made):
            wait_for(f"the end of {path}", lambda: removed(path))


def removed(path):
    try:
        path.rmdir()
    except OSError:
        return False
    return True


def run_in(cgroup, *command):
    return run("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup, *command)


def print_pid(cgroup, program=PERL):
    done = run_in(cgroup, program, "-e", 'print "$$\\n"')
    expect(done.returncode == 0 and not done.stderr, f"{done}")
    return int(done.stdout)


def traced_pids(pattern):
    return {int(row["pid"]) for trace in TRACES.glob(pattern) for row in processes(trace)}


def service():
    """All that a unit executes is recorded, and nothing of others: neither a unit of the same name in a container, nor of a longer name."""
    clear()
    with Cgroups() as cgroups:
        if not cgroups:
            return "skipped: no cgroup can be made here"
        script = FILES / "script"
        script.write_text(f"#!{PERL}\nprint \"$$\\n\";\n")
        script.chmod(0o755)
        privileged, own = FILES / "privileged", FILES / "xheap"
        shutil.copy(PERL, privileged)
        privileged.chmod(0o4755)
        shutil.copy(XHEAP, own)
        unit, below, container, longer = map(cgroups.make, ("xt.service", "xt.service/worker", "box.scope/xt.service", "longer-xt.service"))
        said = xheap("image", "add", "--service", "xt")
        expect("processes that xt.service has already are not recorded; systemctl restart xt.service" in said, said)
        register(FILES / "sort", "--service", "longer-xt.service")
        with Watching("--deadline", str(LONG_MS)):
            wait_until_in_force()
            pids = {print_pid(unit), print_pid(below), int(run_in(unit, script).stdout)}
            pids.add(int(run_in(unit, "sh", "-c", f"{PERL} -e 'print \"$$\\n\"'; true").stdout))
            outer, inner = run_in(unit, PERL, "-e", f"$| = 1; print \"$$\\n\"; system('{PERL}', '-e', 'print \"$$\\n\"')").stdout.split()
            pids |= {int(outer), int(inner)}
            print_pid(unit, privileged)
            others = {print_pid(container), print_pid(longer), print_pid(cgroups.base)}
            expect(run_in(unit, own, "version").returncode == 0, "xheap does not run in the unit")
            for place in (unit, longer, cgroups.base):
                expect(run_in(place, FILES / "sort", "/dev/null").returncode == 0, "sort does not run")
            row = wait_for_starts("xt.service", 8)
            expect(wait_for_starts(FILES / "sort", 1)["traced"] == 1, "sort in its unit is not traced")
        found = {outcome: count for outcome, count in row["starts"].items() if count}
        # Five as pids are printed, and sort; the child of the fifth by its parent's session.
        expect(found == {"traced": 6, "followed": 1, "privileged": 1}, f"{found}")
        traced = traced_pids("xt.service.*.xht")
        expect(pids <= traced and not others & traced and len(traced) == 7, f"{pids} of the unit, {others} of others, {traced} in the traces {sorted(TRACES.iterdir())}: {listed()}")
        expect("xt.service: on, 6 traced, 1 untraced, 1 followed" in xheap("image", "list"), xheap("image", "list"))
        xheap("image", "remove", "xt.service")
    for unit in ("a.timer", "a b", "a/b", "init.scope", "-.slice", "xheap-images", "x@.service", "." , "x" * 300):
        expect(xheap("image", "add", "--service", unit, status=2).startswith("xheap: image add: "), f"{unit}")


def by_cgroup():
    """--cgroup compares with the whole path of a process's cgroup, and with its last part. Only starts that fit in all other ways are counted for --every."""
    clear()
    with Cgroups() as cgroups:
        if not cgroups:
            return "skipped: no cgroup can be made here"
        places = {place: cgroups.make(place) for place in ("xt.service", "xt.service/worker", "box.scope/xt.service")}
        for name, options in (("by-part", ("--cgroup", "xt.serv*")), ("by-path", ("--cgroup", f"/*{cgroups.base.name}/xt.*")),
                              ("by-all", ("--cgroup", "worker", "--arguments", "*wanted*", "--user", "root", "--every", "2", "--first", "1"))):
            shutil.copy(PERL, FILES / name)
            register(name, *options)
        with Watching():
            wait_until_in_force()
            for name, recorded in (("by-part", ("xt.service", "box.scope/xt.service")), ("by-path", ("xt.service", "xt.service/worker"))):
                pids = {print_pid(path, FILES / name): place for place, path in places.items()}
                row = wait_for_starts(name, len(places))
                expect(row["traced"] == 2 and row["starts"]["not_selected"] == 1, f"{name}: {row}")
                wait_for(f"{name}: {recorded}", lambda: {pids.get(pid) for pid in traced_pids(f"{name}*.xht")} == set(recorded))
            for place in ("xt.service", "xt.service/worker"):
                for word in ("other", "wanted", "wanted", "wanted", "wanted"):
                    run_in(places[place], FILES / "by-all", "-e", "1", word)
            row = wait_for_starts("by-all", 10)
            expect(row["traced"] == 1 and row["starts"]["not_selected"] == 9, f"{row}")


def limited():
    """An option with --for ends by itself: list says so, its session ends, and no start is counted any more."""
    clear()
    with Watching():
        register(PERL, "--for", "4s")
        register(FILES / "sort")
        wait_until_in_force()
        run(PERL, "-e", "1")
        expect(wait_for_starts(PERL, 1)["traced"] == 1, "a start within the time is not traced")
        wait_for("the end of the time", lambda: listed()[1][str(PERL)]["state"] == "its time is over")
        wait_for("the end of its session", lambda: not any(row["alive"] for row in told("sessions") if row["name"].rpartition(".")[2].startswith("perl-")))
        wait_until_in_force()
        before = listed()[1][str(PERL)]["starts"]
        run(PERL, "-e", "1")
        run(FILES / "sort", "/dev/null")
        expect(wait_for_starts(FILES / "sort", 1)["traced"] == 1 and listed()[1][str(PERL)]["starts"] == before, f"{listed()}")
        expect("its time is over" in xheap("image", "list"), xheap("image", "list"))


def copied(name):
    shutil.copy(PERL, FILES / name)
    return FILES / name


def script_of(name, interpreter):
    script = FILES / name
    script.write_text(f"#!{interpreter}\nprint \"$$\\n\";\n")
    script.chmod(0o755)
    return script


def run_each(*programs):
    for program in programs:
        done = run(program, *([] if program.read_bytes()[:2] == b"#!" else ["-e", "1"]))
        expect(done.returncode == 0 and not done.stderr, f"{program}: {done}")


def outcomes(image, count):
    return {outcome: number for outcome, number in wait_for_starts(image, count)["starts"].items() if number}


def directory_of_links():
    """A directory in which the keeper looks for links."""
    directory = FILES / "bin"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    os.environ["PATH"] = f"{directory}:{PLAIN_PATH}"
    return directory


def scripts():
    """A script is a start of its interpreter: of a NAME always, of a PATH with --scripts; whether its line names the file or a link."""
    clear()
    links = directory_of_links()
    plain, scripted, named = map(copied, ("plain", "scripted", "named"))
    for file in (scripted, named):
        (links / f"{file.name}-link").symlink_to(file)
    of = {name: script_of(f"of-{name}", interpreter) for name, interpreter in
          (("plain", plain), ("scripted", scripted), ("scripted-link", links / "scripted-link"), ("named", named), ("named-link", links / "named-link"))}
    register(plain)
    with Watching("--deadline", str(LONG_MS)):
        wait_until_in_force()
        for _ in range(20):
            run_each(of["plain"])
        run_each(plain)
        found = outcomes(plain, 21)
        expect(found == {"traced": 1, "of_scripts": 20}, f"a path without its scripts: {found}")
        expect("20 of scripts (--scripts records them)" in xheap("image", "list"), xheap("image", "list"))
    register(scripted, "--scripts")
    register("named")
    with Watching("--deadline", str(LONG_MS)):
        wait_until_in_force()
        for _ in range(5):
            run_each(of["scripted"], of["scripted-link"], of["named"], of["named-link"])
        run_each(scripted, named)
        for image in (scripted, "named"):
            found = outcomes(image, 11)
            expect(found == {"traced": 11}, f"{image}, whose scripts are starts: {found}")


def links():
    """A NAME is the file's own name, or the name by which a link to the file is executed."""
    clear()
    directory = directory_of_links()
    tool, other = copied("multi-call"), copied("other-tool")
    script = script_of("written", PERL)
    for name, file in (("one", tool), ("two", tool), ("chosen", other), ("linked-script", script)):
        (directory / name).symlink_to(file)
    for name in ("one", "other-tool", "linked-script", "later"):
        register(name)
    with Watching("--deadline", str(LONG_MS)):
        wait_until_in_force()
        run_each(directory / "one", directory / "two", tool, directory / "one")
        found = outcomes("one", 4)
        expect(found == {"traced": 2, "not_selected": 2}, f"a program of many names: {found}")
        run_each(directory / "chosen", other)
        found = outcomes("other-tool", 2)
        expect(found == {"traced": 2}, f"the file's own name: {found}")
        run_each(directory / "linked-script", script)
        found = outcomes("linked-script", 2)
        expect(found == {"traced": 1, "not_selected": 1}, f"a link to a script: {found}")
        (directory / "later").symlink_to(tool)

        def recorded():
            run_each(directory / "later")
            return listed()[1]["later"]["traced"]
        wait_for("a start by a link that was made later", recorded)


def owners():
    """With --owner, files of others are no starts, whatever their name; of a script the interpreter's owner counts. Without it, add says that everybody's are."""
    clear()
    everybody = "takes everybody's programs of that name"
    expect(everybody in xheap("image", "add", "owned"), "add says nothing of everybody's files")
    for words in (("owned", "--user", "0"), (FILES / "owned",), ("owned", "--owner", "root")):
        said = xheap("image", "add", *words)
        expect(everybody not in said, f"{words}: {said}")
    xheap("image", "remove", FILES / "owned")
    others = FILES / "others"
    others.mkdir()
    mine, strangers = copied("owned"), copied("others/owned")
    scripts = {name: script_of(name, interpreter) for name, interpreter in (("of-mine", mine), ("of-strangers", strangers), ("others/x", mine))}
    (others / "in").mkdir()
    script = script_of("others/in/owned", PERL)
    for file in (strangers, scripts["others/x"], script):
        os.chown(file, ONE, ONE)
    with Watching("--deadline", str(LONG_MS)):
        wait_until_in_force()
        run_each(strangers, script, mine, scripts["of-mine"], scripts["others/x"], scripts["of-strangers"])
        pid_of(ONE, strangers)
        pid_of(ONE, mine)
        found = outcomes("owned", 5)
        expect(found == {"traced": 4, "not_selected": 1}, f"root's files: {found}")


# Users of no other test, so that no other test's starts come to their sessions.
ONE, OTHER = 64017, 64018


def as_user(user):
    return ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"] if user else []


class UserSession:
    """A session of a user, until the block ends; with -p 0 it takes registered images."""

    def __init__(self, name, user, folder, *words):
        self.words = words
        self.name, self.user, self.trace = name, user, pathlib.Path(folder, f"{name}.xht")

    def xheap(self, *words):
        done = run(*as_user(self.user), XHEAP, *words)
        expect(done.returncode == 0, f"{words} of {self.name}: {done}")

    def __enter__(self):
        self.xheap("start", self.name, *self.words, "-o", self.trace)
        return self

    def __exit__(self, *_):
        self.xheap("stop", self.name)

    def pids(self):
        return {int(row["pid"]) for row in processes(self.trace)}


def pid_of(user, program=PERL, via=("sh", "-c", '"$@"; true', "sh")):
    """A start by a shell of the user."""
    done = run(*as_user(user), *via, program, "-e", 'print "$$\\n"')
    expect(done.returncode == 0 and not done.stderr, f"{done}")
    return int(done.stdout)


def sessions():
    """The session that an option names goes first, another user's with starts of that user only; root's takes all; the image's own goes before a user's."""
    clear()
    first, numbered, named, users = copied("first"), copied("numbered"), copied("named"), copied("users")
    register("perl")
    register("first")
    register("numbered", "--every", 1, "--first", 10)
    register("named", "--session", "chosen")
    register("users", "--session", f"{ONE}/mine")
    expect("gets no patterns" in xheap("image", "add", "other", "--session", f"{ONE}/mine", "--arguments", "*", status=2), "patterns for another user's session")
    folder = tempfile.mkdtemp(dir="/tmp", prefix="xheap-sessions.")
    os.chmod(folder, 0o777)
    all_images = ("-p", "0")
    one, other = UserSession("mine", ONE, folder, *all_images), UserSession("mine-too", OTHER, folder, *all_images)
    root, chosen = UserSession("everything", 0, folder, *all_images), UserSession("chosen", 0, folder)
    expected = {one: set(), other: set(), root: set(), chosen: set(), None: set()}

    def start(session, user, program=PERL):
        expected[session].add(pid_of(user, program))
        row = wait_for_starts(program.name, sum(listed()[1][program.name]["starts"].values()))
        expect(row["untraced"] == 0, f"{row}")

    try:
        with usual_places(), Watching("--deadline", str(LONG_MS)), one, other:
            wait_until_in_force()
            wait_for("both sessions of users", lambda: listed()[0]["sessions"] == 2)
            for _ in range(3):
                start(one, ONE, users)
                start(None, OTHER, users)
                start(None, 0, users)
                start(None, ONE)
                start(None, ONE, numbered)
                start(None, ONE, named)
            # Nobody but root may trace a process that has changed its user and not executed anything yet.
            expected[None].add(pid_of(ONE, users, via=()))
            with chosen:
                wait_for("the named session", lambda: listed()[0]["sessions"] == 3)
                start(chosen, ONE, named)
                start(chosen, 0, named)
                start(None, 0, numbered)
                # Its own session does not run yet.
                start(None, 0, first)
                start(one, ONE, users)
                with root:
                    wait_for("root's session", lambda: listed()[0]["sessions"] == 4)
                    for user in (ONE, OTHER, 0):
                        start(root, user)
                        start(root, user, numbered)
                        start(chosen, user, named)
                    start(one, ONE, users)
                    start(root, OTHER, users)
            wait_for("the end of root's sessions", lambda: listed()[0]["sessions"] == 2)
            # It announces itself to the next watcher, too.
            last = watching()
            kill(last)
            wait_for("another watcher", lambda: watching() != last)
            wait_for("the sessions of users", lambda: listed()[0]["sessions"] == 2)
            start(one, ONE, users)
            start(None, 0)
        for session in (one, other, root, chosen):
            expect(session.pids() == expected[session], f"{session.name} has {session.pids()}, not {expected[session]}")
        expect(traced_pids("*.xht") == expected[None], f"the images' own sessions have {traced_pids('*.xht')}, not {expected[None]}")
    finally:
        shutil.rmtree(folder)


def mount_silent(place):
    """Mount a file system whose server never answers. Return its descriptor."""
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
    if ctypes.CDLL(None, use_errno=True).mount(b"silent", os.fsencode(place), b"fuse", 0, options):
        raise OSError(ctypes.get_errno(), "no such file system can be mounted")
    return fd


def unwatched():
    """File systems on which no NAME can be seen are listed: behind a silent server, below another mount, in this mount namespace and in others."""
    clear()
    register("perl")
    outer, inner, silent, server = FILES / "outer", FILES / "outer/inner", FILES / "silent", None
    outer.mkdir()
    silent.mkdir()
    hide = f"mount -t tmpfs -o size=1m one {outer} && mkdir {inner} && mount -t tmpfs -o size=1m two {inner} && mount -t tmpfs -o size=1m three {outer}"

    def rows():
        return {(row["place"], row["namespace"] != 0): row for row in told("image", "list")["not_watched"]}
    try:
        with Watching("--deadline", str(LONG_MS)):
            wait_until_in_force()
            expect(not rows(), f"{rows()}")
            # Only what was hidden before the keeper could look is not watched.
            keeper = listed()[0]["keeper"]
            os.kill(keeper, signal.SIGSTOP)
            subprocess.run(["sh", "-c", hide], check=True)
            os.kill(keeper, signal.SIGCONT)
            row = wait_for("a hidden file system", lambda: rows().get((str(inner), False)))
            expect(row["pid"] == 0 and row["why"] == "No such file or directory", f"{row}")
            os.kill(keeper, signal.SIGSTOP)
            other = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", f"umount {outer} && {hide} && echo there && read x"],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            expect(other.stdout.readline() == b"there\n", "no other mount namespace")
            os.kill(keeper, signal.SIGCONT)
            row = wait_for("a hidden file system of another namespace", lambda: rows().get((str(inner), True)))
            expect(row["namespace"] == os.stat(f"/proc/{row['pid']}/ns/mnt").st_ino, f"{row}")
            expect(re.search(f"not watched: {inner} as process {row['pid']} [(][^)]+[)] sees it, in mounts of its own: No such", xheap("image", "list")), xheap("image", "list"))
            other.communicate(b"x\n")
            wait_for("the end of the other namespace", lambda: not any(elsewhere for _, elsewhere in rows()))
            try:
                server = mount_silent(silent)
                said = None
                row = wait_for("a file system with a silent server", lambda: rows().get((str(silent), False)))
                expect(row["why"] == "fuse: to open it may wait for a server", f"{row}")
            except OSError as error:
                said = f"without a silent server: {error}"
            run(PERL, "-e", "1")
            expect(wait_for_starts("perl", 1)["traced"] == 1, "it is not traced any more")
            for place in (silent, outer, inner, outer):
                subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL)
            wait_for("an empty list", lambda: not rows())
            return said
    finally:
        if server is not None:
            os.close(server)


USER, INIT, TOOL = (f"system_u:system_r:{domain}:s0" for domain in ("user_t", "init_t", "tool_t"))
TOOL_FILE, PLAIN_FILE = "system_u:object_r:tool_exec_t:s0", "system_u:object_r:bin_t:s0"


class Policy:
    """Plays SELinux's part below the root of the test: /sys/fs/selinux, with answers of a policy in which init_t becomes tool_t by a file of tool_exec_t."""

    def __enter__(self):
        self.questions, self.place = [], ROOT / "sys/fs/selinux"
        (self.place / "class/process").mkdir(parents=True)
        (self.place / "class/process/index").write_text("2")
        self.enforce(1)
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        (self.place / "create").symlink_to(os.ttyname(slave))
        self.slave, self.thread = slave, threading.Thread(target=self.answer, daemon=True)
        self.thread.start()
        self.put(1, INIT)
        return self

    def enforce(self, value):
        (self.place / "enforce").write_text(str(value))

    def put(self, pid, context):
        (ROOT / f"proc/{pid}/attr").mkdir(parents=True, exist_ok=True)
        (ROOT / f"proc/{pid}/attr/current").write_text(context)

    def answer(self):
        while True:
            process, file, number = os.read(self.master, 4096).decode().split()
            if process == "end":
                return
            self.questions.append((process, file, number))
            os.write(self.master, (TOOL if (process, file) == (INIT, TOOL_FILE) else process).encode())

    def __exit__(self, *_):
        os.write(self.slave, b"end end end")
        self.thread.join()
        os.close(self.slave)
        os.close(self.master)
        shutil.rmtree(ROOT / "sys")
        shutil.rmtree(ROOT / "proc")


def run_as(policy, context, program, asked=None):
    """Run the program by a process of this context. Outside of it nothing is enforced: commands would ask the policy beside the logger, and the test has one place for
    questions."""
    policy.enforce(1)
    attributes = f"{ROOT}/proc/$$/attr"
    asks = f"printf %s '{asked}' > {attributes}/exec;" if asked else ""
    set_context = f"mkdir -p {attributes}; printf %s '{context}' > {attributes}/current;" if context else ""
    done = run("sh", "-c", f"{set_context} {asks} exec {program} -e 1")
    policy.enforce(0)
    expect(done.returncode == 0 and not done.stderr, f"{done}")


def domains():
    """Where SELinux is enforced, starts that change the domain are left alone, unless the option says otherwise."""
    clear()
    tool, plain, forced = (FILES / name for name in ("tool", "plain", "forced"))
    for file, label in ((tool, TOOL_FILE), (plain, PLAIN_FILE), (forced, TOOL_FILE), (FILES / "unlabelled", None)):
        shutil.copy(PERL, file)
        try:
            if label:
                os.setxattr(file, "security.selinux", label.encode())
        except OSError as error:
            return f"skipped: no label can be set: {error}"
    with Policy() as policy:
        said = xheap("image", "add", tool, status=2)
        expect(f"{tool}: a process of {INIT} becomes {TOOL}" in said and "--force" in said, said)
        expect(not list(OPTIONS.glob("*")), "a refused option has a file")
        expect("no SELinux label" in xheap("image", "add", FILES / "unlabelled", status=2), "a file without a label is registered")
        policy.enforce(0)
        register(tool)
        expect(not told("image", "list")["mistakes"], "it is refused although nothing is enforced")
        policy.enforce(1)
        mistakes = told("image", "list")["mistakes"]
        expect(len(mistakes) == 1 and "is not in force: " in mistakes[0] and TOOL in mistakes[0], f"{mistakes}")
        shutil.rmtree(OPTIONS)
        register(plain)
        register(forced, "--force")
        register("tool")
        policy.enforce(0)
        with Watching("--deadline", str(LONG_MS)):
            wait_until_in_force()
            run_as(policy, USER, tool)
            run_as(policy, INIT, tool)
            run_as(policy, USER, tool, asked=TOOL)
            row = wait_for_starts("tool", 3)
            run_as(policy, INIT, plain)
            run_as(policy, INIT, forced)
            rows = [wait_for_starts(image, 1) for image in (plain, forced)]
            run_as(policy, None, tool)
            unknown = wait_for_starts("tool", 4)
        expect(row["starts"]["traced"] == 1 and row["starts"]["changes_domain"] == 2 and TOOL in row["last_reason"], f"{row}")
        expect([one["traced"] for one in rows] == [1, 1], f"{rows}")
        expect(unknown["starts"]["changes_domain"] == 3 and "does not say" in unknown["last_reason"], f"{unknown}")
        expect({question[2] for question in policy.questions} == {"2"}, f"{policy.questions}")


def crowd():
    """A hundred starts at once: eight have traces of their own, at most; all others go to the image's common trace, and are counted as that."""
    clear()
    each, count, most = copied("each"), 100, 8
    for trace in ROOT.glob("each.*.xht"):
        trace.unlink()
    register("each", "-o", ROOT / "each.%p.xht")
    with Watching("--deadline", str(LONG_MS)):
        wait_until_in_force()
        # All live until the last one has begun.
        started = run_crowd(each, count)
        row = wait_for_starts("each", count)
        started.stdin.close()
        lines = started.stdout.read().split()
        expect(started.wait() == 0 and len(lines) == count, f"{len(lines)} programs of {count} ran")
        wait_for("counts of all", lambda: sum(listed()[1]["each"]["starts"].values()) == count)
    own = sorted(ROOT.glob("each.*.xht"))
    # The watcher lets at most 64 wait at a time.
    expect(row["traced"] + row["starts"]["too_many_at_once"] == count and row["traced"] >= 64, f"{row}")
    expect(len(own) == most and row["in_common_trace"] == row["traced"] - most, f"{len(own)} traces of single processes: {row}")
    for trace in own:
        expect([f"each.{one['pid']}.xht" for one in processes(trace)] == [trace.name], f"{trace} has {processes(trace)}")
    pids = traced_pids("each.*.xht")
    expect(len(pids) == row["in_common_trace"] and not pids & {int(trace.name.split(".")[1]) for trace in own}, f"{len(pids)} in the common trace: {row}")
    expect(pids <= set(map(int, lines)), "other processes are in the common trace")
    expect(all(told("info", trace)["complete"] for trace in [*own, *TRACES.glob("each.*.xht")]), "a trace lacks calls")
    return f"{row['traced']} of {count} traced, {row['in_common_trace']} of them in the common trace"


def run_crowd(program, count):
    script = f"""for i in $(seq {count}); do {program} -e '$| = 1; print "$$\\n"; sysread(STDIN, $x, 1)' <&3 & done; wait"""
    return subprocess.Popen(["sh", "-c", f"exec 3<&0; {script}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def continued():
    """A service that is started anew overwrites no trace of before."""
    clear()
    register("perl")
    pids = set()
    for count in range(1, 4):
        with Watching("--deadline", str(LONG_MS)):
            wait_until_in_force()
            pids.add(pid_of(0))
            wait_for_starts("perl", count)
        expect(traced_pids("perl.*.xht") == pids, f"{sorted(TRACES.iterdir())} have {traced_pids('perl.*.xht')}, not {pids}")


def deadline():
    """A start waits for its logger as long as --deadline says."""
    clear()
    register("perl")
    for value in ("9", "10001", "x", ""):
        xheap("image", "watch", "--deadline", value, status=2)
    with Watching("--deadline", str(LONG_MS)):
        wait_until_in_force()
        run(PERL, "-e", "1")
        wait_for_starts("perl", 1)
        logger = own_logger("perl")
        os.kill(logger, signal.SIGSTOP)
        try:
            # Popen() returns after the exec of the shell.
            waiting = subprocess.Popen(["sh", "-c", f"{PERL} -e 1; true"])
            # Five times the usual deadline.
            time.sleep(0.5)
            expect(waiting.poll() is None, "the start did not wait for its logger")
        finally:
            os.kill(logger, signal.SIGCONT)
        expect(waiting.wait() == 0, "the program failed")
        row = wait_for_starts("perl", 2)
        expect(row["untraced"] == 0, f"{row}")


enter()
prepare()
sys.exit(run_tests(service, by_cgroup, limited, domains, scripts, links, owners, sessions, unwatched, crowd, continued, deadline))
