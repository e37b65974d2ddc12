#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options when the open of a file blocks that the kernel asks about: leases of another user, and a file system whose server does not answer. Only the
start of that file waits; none is denied; all others are recorded; and a watcher that cannot be killed holds nobody."""
import contextlib
import ctypes
import errno
import fcntl
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time

from image.lab import FILES, Watching, clear, enter, listed, prepare, register, run, wait_for_starts, wait_until_in_force
from live import expect, run_tests, wait_for

PERL, LEASED, SERVED = FILES / "perl", FILES / "leased", FILES / "served"
NOBODY, STARTS, TOO_MANY, MANY_READERS, ALL_READERS = 65534, 20, 20, 96, 110
SERVER_SECONDS = 300


def begin(file):
    """Start the program by a shell: this process does not wait for its exec."""
    return subprocess.Popen(["sh", "-c", "exec \"$0\" -e 1", file], stderr=subprocess.PIPE, text=True)


def watcher():
    return wait_for("a watcher", lambda: (state := listed()[0])["in_force"] and state["watcher"])


def start():
    done = run(PERL, "-e", "1")
    expect(done.returncode == 0 and not done.stderr, f"a program did not start: {done}")


def comm(pid):
    try:
        return open(f"/proc/{pid}/comm").read().strip()
    except OSError:
        return ""


def reads_of(pid):
    """How many threads of the process are in a read: in the open of an event's file. All others wait for events."""
    calls = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            calls.append((task / "syscall").read_text().split()[0])
    return calls.count("0")


@contextlib.contextmanager
def leases(names, source=PERL):
    """Executables of nobody, with write leases of nobody's, until the block ends. Copies of the source on a file system of their own."""
    LEASED.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,mode=1777", "test", LEASED], check=True)
    ready, end = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(SERVER_SECONDS)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        os.close(end[1])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        for name in names:
            (LEASED / name).parent.mkdir(exist_ok=True)
            shutil.copy(source, LEASED / name)
            fcntl.fcntl(os.open(LEASED / name, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK)
        os.write(ready[1], b"x")
        os.read(end[0], 1)
        os._exit(0)
    os.close(end[0])
    os.read(ready[0], 1)
    def give_back():
        with contextlib.suppress(OSError):
            os.close(end[1])
            os.waitpid(child, 0)
    try:
        yield give_back
    finally:
        give_back()
        subprocess.run(["umount", "-l", LEASED], check=True)


def finish(blocked):
    for process in blocked:
        said = process.communicate(timeout=120)[1]
        expect(process.returncode == 0 and not said, f"a start that waited for a lease failed: {process.returncode}, {said}")


def leased():
    """Starts that wait for leases delay no other start, and end no watcher. They are recorded when the leases are given back."""
    clear()
    register("perl")
    with Watching():
        pid = watcher()
        with leases([f"{number}/perl" for number in range(4)]) as give_back:
            wait_until_in_force()
            wait_for("marks of the other file system", lambda: str(LEASED) in open("/proc/self/mounts").read() and seen_on(LEASED))
            before = sum(listed()[1]["perl"]["starts"].values())
            blocked = [begin(LEASED / f"{number}/perl") for number in range(4)]
            wait_for("readers in opens", lambda: reads_of(pid) == 4)
            for _ in range(STARTS):
                start()
            row = wait_for_starts("perl", before + STARTS)
            expect(all(one.poll() is None for one in blocked), "a start did not wait for its lease")
            expect(reads_of(pid) == 4, "an open was given up")
            give_back()
            finish(blocked)
            row = wait_for_starts("perl", before + STARTS + 4)
            expect(row["traced"] == before + STARTS + 4, f"{row}")
        state, _ = listed()
        expect(state["watcher"] == pid and not any(gap["why"] == "it gave no sign of life" for gap in state["intervals"]), f"another watcher: {state['intervals']}")


def seen_on(place):
    """Whether starts on the file system are counted, after one more."""
    shutil.copy(PERL, place / "perl")
    before = sum(listed()[1]["perl"]["starts"].values())
    subprocess.run([place / "perl", "-e", "1"], check=True)
    time.sleep(0.1)
    return sum(listed()[1]["perl"]["starts"].values()) > before


def ended():
    """The end of the keeper, and with it of the watcher, denies no start that waits for a lease."""
    clear()
    register("perl")
    with leases(["other", "perl"]) as give_back:
        with Watching():
            pid = watcher()
            blocked = [begin(LEASED / "other")]
            wait_for("a reader in an open", lambda: reads_of(pid) == 1)
        start()
        expect(blocked[0].poll() is None, "the start did not wait for its lease")
        give_back()
        finish(blocked)
        wait_for("the watcher's end", lambda: comm(pid) != "xheap-watcher")


def own_loggers():
    return [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/comm") if is_own_logger(path)]


def crowded():
    """When too many starts wait for leases, their file system is not watched any more, and is listed. All others are."""
    clear()
    register("perl")
    with leases([str(number) for number in range(TOO_MANY)]) as give_back:
        with Watching():
            pid = watcher()
            blocked = [begin(LEASED / str(number)) for number in range(TOO_MANY)]
            def is_listed():
                state, _ = listed()
                return state["in_force"] and [(row["place"], row["why"]) for row in state["not_watched"]] == [(str(LEASED), "too many starts waited for its files")]
            wait_for("a file system that is not watched", is_listed)
            for _ in range(3):
                start()
            row = wait_for_starts("perl", 3)
            expect(row["traced"] == 3 and listed()[0]["watcher"] == pid, f"{row}")
            give_back()
            finish(blocked)


def full():
    """When nearly all readers wait, nothing is watched. Programs start, the time is listed, and it ends."""
    clear()
    register("perl")
    with leases([str(number) for number in range(ALL_READERS)], shutil.which("true")) as give_back:
        with Watching():
            pid, keeper = watcher(), listed()[0]["keeper"]
            # The keeper would have the file system unmarked before.
            os.kill(keeper, signal.SIGSTOP)
            try:
                blocked = [begin(LEASED / str(number)) for number in range(ALL_READERS)]
                wait_for("readers in opens", lambda: reads_of(pid) >= MANY_READERS)
            finally:
                os.kill(keeper, signal.SIGCONT)
            def unwatched():
                return [gap for gap in listed()[0]["intervals"] if gap["why"] == "too many starts waited for their files"]
            wait_for("a time without marks", unwatched)
            for _ in range(3):
                start()
            give_back()
            finish(blocked)
            wait_for("the end of that time", lambda: all(gap["to_ns"] for gap in unwatched()))
            expect(listed()[0]["watcher"] == pid, "another watcher")
            def is_traced():
                before = listed()[1]["perl"]["traced"]
                start()
                time.sleep(0.1)
                return listed()[1]["perl"]["traced"] > before
            wait_for("a traced start", is_traced)


# ---- a file system whose server does not answer ----

ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
INIT, LOOKUP, GETATTR, OPEN, READ, FLUSH, QUIET = 26, 1, 3, 14, 15, 25, (2, 36, 42)
FILE_NODES = {b"program": 2, b"closed": 3, b"silent": 4}


def attributes(node, size):
    return ATTRIBUTES.pack(node, 0 if node == 1 else size, 8, 0, 0, 0, 0, 0, 0, 0o40755 if node == 1 else 0o100755, 1, 0, 0, 0, 4096, 0)


def serve(device, content):
    """A directory with programs. The watcher, and no other process, gets no answer when it opens `program`, nor when it closes `closed`. Nobody gets one who
    opens `silent`."""
    while True:
        request = os.read(device, 1 << 20)
        _, code, unique, node, _, _, pid, _ = struct.unpack_from("<IIQQIIII", request)
        rest, status, answer = request[40:], 0, b""
        if code == INIT:
            answer = struct.pack("<IIIIHHII", 7, 31, 65536, 0, 0, 0, 65536, 0) + bytes(36)
        elif (code, node) in ((OPEN, FILE_NODES[b"program"]), (FLUSH, FILE_NODES[b"closed"])) and comm(pid) == "xheap-watcher":
            continue
        elif (code, node) == (OPEN, FILE_NODES[b"silent"]):
            continue
        elif code == LOOKUP and rest.rstrip(b"\0") in FILE_NODES:
            found = FILE_NODES[rest.rstrip(b"\0")]
            answer = struct.pack("<QQQQII", found, 1, 1000, 1000, 0, 0) + attributes(found, len(content))
        elif code == LOOKUP:
            status = -errno.ENOENT
        elif code == GETATTR:
            answer = struct.pack("<QII", 1000, 0, 0) + attributes(node, len(content))
        elif code == OPEN:
            answer = struct.pack("<QII", 1, 0, 0)
        elif code == READ:
            offset, size = struct.unpack_from("<8xQI", rest)
            answer = content[offset:offset + size]
        elif code in QUIET:
            continue
        elif code not in (18, FLUSH, 29, 34):
            status = -errno.ENOSYS
        os.write(device, struct.pack("<IiQ", 16 + len(answer), status, unique) + answer)


@contextlib.contextmanager
def served():
    """The file system, until the block ends. Its end ends all waits."""
    SERVED.mkdir(exist_ok=True)
    node = pathlib.Path("fuse")
    with contextlib.suppress(FileExistsError):
        os.mknod(node, 0o20600, os.makedev(10, 229))
    try:
        device = os.open(node, os.O_RDWR)
    except OSError:
        device = -1
    libc = ctypes.CDLL(None, use_errno=True)
    if device < 0 or libc.mount(b"test", str(SERVED).encode(), b"fuse", 0, f"fd={device},rootmode=40755,user_id=0,group_id=0,allow_other".encode()):
        yield None
        return
    child = os.fork()
    if not child:
        signal.alarm(SERVER_SECONDS)
        with contextlib.suppress(OSError):
            serve(device, PERL.read_bytes())
        os._exit(0)
    os.close(device)
    def end():
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    try:
        yield end
    finally:
        end()
        subprocess.run(["umount", "-l", SERVED], check=True)


def expect_others_traced(pid):
    """Other starts go on, and the watcher is the one that it was."""
    for _ in range(STARTS):
        start()
    row = wait_for_starts("perl", STARTS)
    expect(row["traced"] == STARTS and listed()[0]["watcher"] == pid, f"{row}")


def hung():
    """A file whose open nobody answers holds its own start only. The watcher cannot be killed then: its guardian allows what it has read, and another one begins."""
    clear()
    with served() as end:
        if not end:
            return "skipped: there is no FUSE"
        register("perl")
        register(SERVED / "program")
        with Watching():
            pid = watcher()
            blocked = begin(SERVED / "program")
            wait_for("a reader in an open", lambda: reads_of(pid) == 1)
            expect_others_traced(pid)
            # One that waits for its logger, and some that come when nobody reads any more.
            loggers = own_loggers()
            for logger in loggers:
                os.kill(logger, signal.SIGSTOP)
            try:
                waiting = [begin(PERL)]
                wait_for("an event that is not answered", lambda: any(is_link_to(link, PERL) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()))
                os.kill(pid, signal.SIGKILL)
                waiting += [begin(PERL) for _ in range(5)]
                finish(waiting)
                expect(blocked.poll() is None and comm(pid) == "xheap-watcher", "the watcher could be killed")
            finally:
                for logger in loggers:
                    os.kill(logger, signal.SIGCONT)
            wait_for("another watcher", lambda: watcher() != pid)
            def is_traced():
                before = listed()[1]["perl"]["traced"]
                start()
                time.sleep(0.1)
                return listed()[1]["perl"]["traced"] > before
            wait_for("a traced start", is_traced)
            end()
            blocked.communicate()
            wait_for("the end of the last watcher", lambda: comm(pid) != "xheap-watcher")


def unclosed():
    """A recorded start whose file cannot be closed delays no other start."""
    clear()
    with served() as end:
        if not end:
            return "skipped: there is no FUSE"
        register("perl")
        register(SERVED / "closed")
        with Watching():
            pid = watcher()
            expect(run(SERVED / "closed", "-e", "1").returncode == 0, "the program did not start")
            wait_for_starts(SERVED / "closed", 1)
            expect_others_traced(pid)
            end()


def scripted():
    """A registered script whose interpreter nobody opens stands traced in its exec. The session ends all the same."""
    clear()
    script = FILES / "script"
    with served() as end:
        if not end:
            return "skipped: there is no FUSE"
        script.write_text(f"#!{SERVED}/silent\n")
        script.chmod(0o755)
        register(script)
        with Watching():
            watcher()
            blocked = begin(script)
            def status():
                return open(f"/proc/{blocked.pid}/status").read()
            wait_for("an exec that waits", lambda: "fuse_" in open(f"/proc/{blocked.pid}/stack").read())
            wait_for("a tracer", lambda: "TracerPid:\t0\n" not in status())
            expect(own_loggers(), "no logger has taken the start")
        wait_for("the end of the session", lambda: not own_loggers())
        expect(blocked.poll() is None and "TracerPid:\t0\n" in status(), f"the script is traced, or its exec over: {status()}")
        end()
        blocked.communicate()
    script.unlink()


# A thread of it executes the first file; when it stands there, the program executes the second one. Calls by ctypes let other threads run.
TWO_EXECS = """import ctypes, glob, sys, threading, time
execute = lambda path: ctypes.CDLL(None).execv(path.encode(), (ctypes.c_char_p * 4)(path.encode(), b"-e", b"1", None))
threading.Thread(target=execute, args=(sys.argv[1],)).start()
while not any("fuse_" in open(path).read() for path in glob.glob("/proc/self/task/*/stack")):
    time.sleep(0.01)
execute(sys.argv[2])"""


def untraceable():
    """The kernel lets nobody seize a start of a process one of whose threads stands in an exec. It is counted, and the session ends all the same."""
    clear()
    script = FILES / "other"
    with served() as end:
        if not end:
            return "skipped: there is no FUSE"
        script.write_text(f"#!{SERVED}/silent\n")
        script.chmod(0o755)
        register(PERL)
        with Watching():
            watcher()
            blocked = subprocess.Popen([sys.executable, "-c", TWO_EXECS, script, PERL])
            row = wait_for_starts(PERL, 1)
            expect(not row["traced"], f"{row}")
        wait_for("the end of the session", lambda: not own_loggers())
        expect(blocked.poll() is None, "the exec is over")
        blocked.kill()
        end()
        blocked.wait()
    script.unlink()
    return f"{ {outcome: count for outcome, count in row['starts'].items() if count} }"


def is_own_logger(path):
    """Whether it is a logger of this test: others' tests run beside it."""
    if comm(path.parent.name) != "xheap-logger":
        return False
    with contextlib.suppress(OSError):
        return any(str(FILES.parent) in os.readlink(link) for link in (path.parent / "fd").iterdir())
    return False


def is_link_to(link, file):
    with contextlib.suppress(OSError):
        return os.readlink(link) == str(file)
    return False


def settled():
    before = listed()
    time.sleep(0.3)
    return before == listed() and before


def misnamed():
    """A name that looks as the kernel shows a removed file's is no registered one."""
    clear()
    register("perl")
    with Watching():
        watcher()
        shutil.copy(PERL, FILES / "perl (deleted)")
        subprocess.run([FILES / "perl (deleted)", "-e", "1"], check=True)
        start()
        wait_for_starts("perl", 1)
        row = wait_for("all counts", lambda: settled())[1]["perl"]
        expect(sum(row["starts"].values()) == 1, f"{row}")
    (FILES / "perl (deleted)").unlink()


enter()
prepare()
sys.exit(run_tests(leased, ended, crowded, full, hung, unclosed, scripted, untraceable, misnamed))
