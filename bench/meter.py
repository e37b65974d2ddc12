# SPDX-License-Identifier: MIT
"""Runs a command and measures it and all its descendants: wall time, CPU, and the most memory held at one time."""
import ctypes
import dataclasses
import os
import select
import signal
import subprocess
import time

SAMPLE_SECONDS = 0.02
SHARED_EVERY = 4  # samples between two looks at shared mappings, which take longer
TICKS = os.sysconf("SC_CLK_TCK")
QUIET_SECONDS, QUIET_TRIES = 0.25, 10
PR_SET_CHILD_SUBREAPER = 36

# What a command leaves behind becomes our child, and its CPU counts too.
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclasses.dataclass
class Run:
    status: int = 0
    timed_out: bool = False
    wall: float = 0.0
    cpu: float = 0.0
    peak_bytes: int = 0
    stdout: str = ""
    stderr: str = ""
    disturbance: float = 0.0  # CPU that other work took meanwhile, as processors


def machine_busy():
    """Seconds that all processors together have been busy, or were taken from the machine, since it started."""
    ticks = [int(field) for field in read("/proc/stat").splitlines()[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / TICKS


def wait_until_quiet():
    """Lets other work finish before a round begins; not for ever."""
    for _ in range(QUIET_TRIES):
        before = machine_busy()
        time.sleep(QUIET_SECONDS)
        if machine_busy() - before <= QUIET_SECONDS * 0.2:
            return


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:  # the process has ended meanwhile
        return ""


def descendants(pid):
    found, todo = [], [pid]
    while todo:
        process = todo.pop()
        found.append(process)
        try:
            threads = os.listdir(f"/proc/{process}/task")
        except OSError:
            continue
        for thread in threads:
            todo += map(int, read(f"/proc/{process}/task/{thread}/children").split())
    return found


def memory_private(pid):
    kib = 0
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith(("RssAnon:", "RssFile:")):
            kib += int(line.split()[1])
    return kib * 1024


def memory_shared(pids):
    """Bytes that the files behind shared writable mappings hold, each file once however many map it."""
    held = {}
    for pid in pids:
        for line in read(f"/proc/{pid}/maps").splitlines():
            fields = line.split(None, 5)
            if fields[1][1] != "w" or fields[1][3] != "s" or (fields[3], fields[4]) in held:
                continue
            try:
                held[fields[3], fields[4]] = os.stat(f"/proc/{pid}/map_files/{fields[0]}").st_blocks * 512
            except OSError:
                pass
    return sum(held.values())


class Sampler:
    """What can only be seen while the processes live."""

    def __init__(self, pid):
        self.pid = pid
        self.count = 0
        self.shared = 0
        self.peak = 0

    def sample(self):
        pids = descendants(self.pid)
        if self.count % SHARED_EVERY == 0:
            self.shared = memory_shared(pids)
        self.count += 1
        self.peak = max(self.peak, self.shared + sum(map(memory_private, pids)))


def reap_rest(seconds):
    """CPU of what the command left behind, which is given so long to end."""
    cpu, until = 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            time.sleep(0.005)
        else:
            cpu += usage.ru_utime + usage.ru_stime
    return cpu


def run(command, directory, environment=None, seconds=600):
    """Runs command in directory with its output in files there; ends it after so many seconds."""
    result = Run()
    with open(os.path.join(directory, "stdout"), "w+") as out, open(os.path.join(directory, "stderr"), "w+") as err:
        busy = machine_busy()
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=directory,
                                   env={**os.environ, **(environment or {})}, start_new_session=True)
        ended = os.pidfd_open(process.pid)
        sampler = Sampler(process.pid)
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        while not poll.poll(SAMPLE_SECONDS * 1000 if sampler.count > 5 else 2):
            sampler.sample()
            if time.monotonic() - start > seconds and not result.timed_out:
                result.timed_out = True
                os.killpg(process.pid, signal.SIGKILL)
        result.wall = time.monotonic() - start
        os.close(ended)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = result.status = os.waitstatus_to_exitcode(status)
        result.cpu = usage.ru_utime + usage.ru_stime + reap_rest(10)
        result.disturbance = max(0.0, machine_busy() - busy - result.cpu) / max(time.monotonic() - start, 0.1)
        result.peak_bytes = sampler.peak  # ru_maxrss would be at least our own: a child begins with its parent's
        for file, field in ((out, "stdout"), (err, "stderr")):
            file.seek(0)
            setattr(result, field, file.read(1 << 20))
    return result
