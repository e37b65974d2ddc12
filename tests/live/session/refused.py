#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A command that cannot be traced does not run, whenever that is found: status 2, the reason, no trace. As a child it runs, and is named. Limits of
the shell do not keep a recording from being made, unless they are hard ones: then the limit is named."""
import collections
import os
import pathlib
import shutil
import struct
import subprocess
import sys

from live import PROGRAMS, XHEAP, expect, info, run_tests, stop_session, xheap

TRACE = "refused.xht"
NAME = f"refused{os.getpid()}"
BASE, PAGE = 0x400000, 4096
# write(1, "ran\n", 4); exit_group(0)
CODE = (bytes.fromhex("bf01000000 488d351c000000 ba04000000 b801000000 0f05 31ff b8e7000000 0f05") + b"\x90" * 7 + b"ran\n")


def elf(path, kind, base, interpreter=None):
    """A file of one page; the code is at its byte 0x200."""
    segments = [struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, PAGE, PAGE, PAGE)]
    if interpreter:
        name = interpreter.encode() + b"\0"
        segments.insert(0, struct.pack("<IIQQQQQQ", 3, 4, 0x300, base + 0x300, base + 0x300, len(name), len(name), 1))
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack("<HHIQQQIHHHHHH", kind, 62, 1, base + 0x200, 64, 0, 0, 64, 56, len(segments), 64, 0, 0)
    image = bytearray(PAGE)
    image[:len(head)] = head
    image[64:64 + 56 * len(segments)] = b"".join(segments)
    image[0x200:0x200 + len(CODE)] = CODE
    if interpreter:
        image[0x300:0x300 + len(name)] = name
    pathlib.Path(path).write_bytes(image)
    os.chmod(path, 0o755)


def odd_program():
    """Its loader is none that tells what it loads: that is known only when it has been executed."""
    loader = os.path.abspath("odd_loader")
    elf(loader, 3, 0)
    elf("odd", 2, BASE, loader)
    run = subprocess.run(["./odd"], stdout=subprocess.PIPE, text=True)
    expect(run.returncode == 0 and run.stdout == "ran\n", f"untraced: {run}")
    return "./odd"


def run(*command, shell=""):
    """By a shell that first sets limits."""
    command = ["sh", "-c", f"{shell}; exec \"$@\"", "sh", *command] if shell else command
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def record(*command, shell=""):
    pathlib.Path(TRACE).unlink(missing_ok=True)
    return run(XHEAP, "record", "-o", TRACE, "--", *command, shell=shell)


def expect_refusal(what, got, *words):
    status, output, errors = got
    expect(status == 2 and not output, f"{what}: {got}")
    expect(errors.startswith("xheap: ") and errors.count("\n") == 1 and all(word in errors for word in words), f"{what}: the reason is {errors}")
    expect(not os.path.exists(TRACE), f"{what}: there is a trace")


def test_found_at_the_exec():
    expect_refusal("odd", record(odd_program()), "cannot trace ./odd: ", "no allocator")


def test_as_a_child():
    status, output, errors = record("sh", "-c", f"{odd_program()}; echo after")
    expect(status == 0 and output == "ran\nafter\n", f"{status}: {output}, {errors}")
    expect("odd" in errors and "runs untraced" in errors, f"it is not named: {errors}")
    expect(info(TRACE)["processes"], "no processes")


def test_by_descriptor():
    """A program without a path (fexecve) is named by its file."""
    program = os.path.abspath("bare")
    elf(program, 2, BASE)
    for path in (program, odd_program()):
        by_descriptor = f"import os; fd = os.open({path!r}, os.O_RDONLY)\nif os.fork(): os.wait()\nelse: os.execve(fd, ['x'], os.environ)"
        status, output, errors = record("/usr/bin/python3", "-c", by_descriptor)
        expect(status == 0 and output == "ran\n", f"{status}: {output}, {errors}")
        expect(f"({os.path.abspath(path)}) runs untraced: " in errors, f"{path} is not named: {errors}")
        expect(path != program or f"cannot trace {path}: static" in errors, f"{path} is not named in the reason: {errors}")


FAILING = """
import errno, os, sys
def fail(times):
    for i in range(times):
        try:
            os.execv(sys.argv[1], ["x", "y" * 200000])
        except OSError as error:
            assert error.errno == errno.E2BIG
fail(20)
for i in range(5):
    if os.fork() == 0:
        fail(3)
        os.execvp("true", ["true"])
    os.wait()
print("done")
"""


def other_users_program():
    """One that runs as another user is not touched, so not held while it is executed."""
    if os.geteuid() != 0:
        return shutil.which("su")
    shutil.copy("/bin/true", "other")
    os.chown("other", 65534, 65534)
    os.chmod("other", 0o4755)
    return "./other"


def test_failed_execs():
    """What was not to be traced was not executed, either: nothing ended, nothing ran untraced, and the next exec has its answer."""
    status, output, errors = record("/usr/bin/python3", "-c", FAILING, other_users_program())
    expect(status == 0 and output == "done\n" and "untraced" not in errors, f"{status}: {output}, {errors}")
    said = info(TRACE)
    expect(said["complete"] and "untraced_processes" not in said, f"not complete, or untraced: {said}")
    ends = collections.Counter((os.path.basename(row["image"]).rstrip("0123456789."), row["end"]) for row in said["processes"])
    expect(ends == {("python", "exit"): 1, ("python", "exec"): 5, ("true", "exit"): 5}, f"ends: {ends}")


def test_in_a_session():
    """The session goes on, and knows nothing of it."""
    odd = odd_program()
    xheap("start", NAME, "-o", "session.xht")
    try:
        status, output, errors = run(XHEAP, "launch", NAME, "--", odd)
        expect(status == 2 and not output, f"{status}: {output}, {errors}")
        expect("cannot trace ./odd: " in errors and "no allocator" in errors, f"the reason is {errors}")
        expect(run(XHEAP, "launch", NAME, "--", "true")[0] == 0, "the session does not go on")
    finally:
        stop_session(NAME)
    said = info("session.xht")
    expect([process["image"].rsplit("/", 1)[-1] for process in said["processes"]] == ["true"], f"processes: {said['processes']}")


def test_hard_limits():
    for limit, name in (("ulimit -f 100", "RLIMIT_FSIZE"), ("ulimit -n 6", "RLIMIT_NOFILE")):
        expect_refusal(limit, record("echo", "ran", shell=limit), name)


def test_soft_limits():
    """The recording goes beyond them, and the program has them as they were."""
    for option, words in (("f", "100"), ("n", "9"), ("d", "400000"), ("c", "0")):
        limit = f"ulimit -S{option} {words}"
        show = ("sh", "-c", f"ulimit -S{option}; ulimit -H{option}")
        status, expected, _ = run(*show, shell=limit)
        expect(status == 0 and expected.split()[0] == words, f"{limit}: untraced: {expected}")
        got = record(*show, shell=limit)
        expect(got[:2] == (0, expected), f"{limit}: {got}, untraced {expected}")
        expect(info(TRACE)["complete"], f"{limit}: not complete")


def test_limits_of_data():
    """What the recorder maps in a program, at first and later, is none of its data: there are as many threads and blocks as untraced."""
    limits = os.path.join(PROGRAMS, "limits")
    tried = []
    for limit, mode in ((":", "data"), (":", "below"), ("ulimit -Sd 60000", "threads"), ("ulimit -d 60000", "threads"), ("ulimit -d 30000", "threads")):
        # One arena: which of several a thread takes is by chance.
        command = ("env", "MALLOC_ARENA_MAX=1", "sh", "-c", f'{limit}; exec "$@"', "sh", limits, mode)
        status, expected, errors = run(*command)
        expect(status == 0 and expected, f"{limit}, {mode}: untraced: {status}, {errors}")
        got = record(*command)
        expect(got[:2] == (0, expected), f"{limit}, {mode}: {got}, untraced {expected}")
        expect(info(TRACE)["complete"], f"{limit}, {mode}: not complete")
        tried.append(expected.strip().splitlines()[-1])
    return "; ".join(tried)


def test_quiet():
    """-q hides how it goes and the summary, but not what the trace lacks; -q -q hides that, too."""
    program = odd_program()
    few = "--on-full", "drop", "--buffer-size", "64K", "--min-buffers", "2", "--max-buffers", "2"
    lossy = os.path.join(PROGRAMS, "churn"), "2", "400000"
    for options, command, words in (((), ("true",), ()), ((), ("sh", "-c", f"{program}; :"), ("runs untraced", "1 process ran untraced")),
                                    (few, lossy, None)):
        for how in (["-q", "-q"], ["-q"]):
            status, _, errors = run(XHEAP, "record", *how, *options, "-o", TRACE, "--", *command)
            expect(status == 0, f"{command}: {status}, {errors}")
            # A fast logger may lose nothing.
            told = ("events are lost",) * (info(TRACE)["lost_events"] > 0) if words is None else words
            expect(all(word in errors for word in told) and bool(errors) == bool(told) if len(how) == 1 else not errors, f"{how} {command}: {errors}")
            expect("next:" not in errors and "tracing cost" not in errors, f"{how} {command}: {errors}")


def test_filter_of_xheap():
    """A seccomp filter that forbids ptrace, as a container may have, is named, and not the process's privileges."""
    for words in (("-o", TRACE, "true"), ("-o", TRACE, "-p", str(os.getpid()))):
        status, _, errors = run(os.path.join(PROGRAMS, "denied"), "ptrace", XHEAP, "record", *words)
        expect(status == 2 and "a seccomp filter of xheap's own process forbids ptrace; a container gets the right by --cap-add SYS_PTRACE" in errors, f"{words}: {status}: {errors}")


def test_shared_memory_read_only():
    """The message names the way out."""
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
        return "not tried: only root can mount, in a namespace"
    script = "mount --bind /dev/shm /dev/shm && mount -o remount,bind,ro /dev/shm && exec \"$@\""
    environment = {name: value for name, value in os.environ.items() if name not in ("XHEAP_RUNTIME_DIR", "XDG_RUNTIME_DIR")}
    run = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", XHEAP, "record", "-o", TRACE, "true"], env=environment,
                         stderr=subprocess.PIPE, text=True)
    if run.returncode == 0 and os.path.exists("/run/xheap"):
        return "not tried: root's sessions are in /run"
    expect(run.returncode == 2 and "Read-only file system" in run.stderr and "XHEAP_RUNTIME_DIR can name another place" in run.stderr, f"{run.returncode}: {run.stderr}")


if __name__ == "__main__":
    sys.exit(run_tests(test_found_at_the_exec, test_as_a_child, test_by_descriptor, test_failed_execs, test_in_a_session, test_hard_limits, test_soft_limits, test_limits_of_data, test_quiet, test_filter_of_xheap, test_shared_memory_read_only))
