#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a program is, that an image option records: as /proc has it, from outside, the same as when it runs alone. Its output gets no byte of ours."""
import os
import pathlib
import re
import signal
import subprocess
import sys

from image.lab import FILES, Watching, cgroups, clear, enter, listed, prepare, register, wait_until_in_force
from live import expect, is_reading, run_tests, wait_for

PERL = FILES / "perl"
# What differs between two runs of the same program.
OWN = {"Pid", "Tgid", "Ngid", "NSpid", "NStgid", "NSpgid", "NSsid", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches", "VmPeak", "VmSize", "VmHWM", "VmRSS",
       "RssAnon", "RssFile", "RssShmem", "VmStk", "VmPTE"}
# Pages of code: those of the recorder are among them.
CODE = {"VmExe", "VmLib"}
TEXTS = ("status", "environ", "limits", "mountinfo", "cgroup", "cmdline", "comm", "oom_score_adj", "coredump_filter", "personality", "loginuid", "sessionid", "timerslack_ns",
         "setgroups", "uid_map", "gid_map", "autogroup")
LINKS = ("cwd", "root", "exe", *(f"ns/{name}" for name in ("cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "uts", "user")))
# Of stat: parent, flags without those of the last system call, priority, nice, threads, exit signal, policy.
STAT = {"parent": 1, "priority": 15, "nice": 16, "threads": 17, "exit_signal": 35, "realtime": 37, "policy": 38}
SAY = "$| = 1; print \"out\\0\\xff\\n\"; print STDERR \"err\\n\"; <STDIN>; exit 7"
SAID = (7, b"out\0\xff\n", b"err\n")


def names_of_contexts():
    """Each starts the program by exec: its pid is that of the first command."""
    cgroup = cgroups() / f"xheap-same-{os.getpid()}"
    contexts = {"as it is": [], "another user": ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"],
                "ambient capabilities": ["setpriv", "--reuid", "65534", "--inh-caps", "+net_raw", "--ambient-caps", "+net_raw", "--groups", "7,9"],
                "few capabilities, no new privileges": ["setpriv", "--bounding-set", "-all,+chown", "--no-new-privs"],
                "signals": ["env", "--block-signal=USR1,CHLD", "--ignore-signal=HUP,PIPE,INT"],
                "limits": ["prlimit", "--nofile=77:99", "--core=0", "--stack=4194304", "--memlock=0", "--"],
                "priority and policy": ["nice", "-n", "5", "chrt", "--batch", "0", "choom", "-n", "321", "--"],
                "no environment": ["env", "-i"], "a session of its own": ["setsid"], "mount namespace": ["unshare", "--mount"],
                "user namespace": ["unshare", "--user", "--map-root-user"], "other namespaces": ["unshare", "--net", "--uts", "--ipc", "--cgroup"],
                "personality": ["setarch", "-R"]}
    try:
        cgroup.mkdir()
        expect((cgroup / "cgroup.procs").exists(), f"{cgroup} is no cgroup")
        contexts["cgroup"] = ["sh", "-c", f"echo $$ > {cgroup}/cgroup.procs; exec \"$@\"", "sh"]
    except OSError as error:
        print(f"without a cgroup of its own: {error}")
    return contexts, cgroup


def read(path):
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError as error:
        return f"errno {error.errno}"


def facts(pid):
    """{name: value} of everything that is the same for each process that is started so."""
    place = pathlib.Path(f"/proc/{pid}")
    found = {}
    for name in TEXTS:
        text = read(place / name)
        if name == "autogroup":
            found[name] = text.split()[1:]
        elif name == "status":
            for line in text.splitlines():
                key, _, value = line.partition(":")
                # How many signals wait for the whole user changes.
                found[f"status {key}"] = value.split("/")[-1] if key == "SigQ" else value.strip()
        elif name == "mountinfo":
            # The first two are numbers of mounts, new in each namespace.
            found[name] = [line.split()[2:] for line in text.splitlines()]
        else:
            found[name] = text
    for name in LINKS:
        target = os.readlink(place / name)
        # A new namespace has a new number.
        is_other = name.startswith("ns/") and target != os.readlink(f"/proc/self/{name}")
        found[name] = "another" if is_other else target
    fields = read(place / "stat").rpartition(")")[2].split()
    found.update({f"stat {name}": fields[index] for name, index in STAT.items()})
    for entry in sorted((place / "fd").iterdir(), key=lambda path: int(path.name)):
        target = re.sub(r"pipe:\[\d+\]", "pipe", os.readlink(entry))
        found[f"fd {entry.name}"] = target + " " + re.search(r"flags:\s*(\d+)", read(place / "fdinfo" / entry.name))[1]
    found["mappings"] = sorted((line.split(None, 5) + [""])[5] for line in read(place / "maps").splitlines())
    return {name: value for name, value in found.items() if name.partition(" ")[2] not in OWN}


def observe(command, is_traced):
    """What /proc has of it while it waits for input, and how it ends."""
    before = listed()[1].get("perl", {}).get("starts", {}) if is_traced else {}
    process = subprocess.Popen([*command, str(PERL), "-e", SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for(f"{command} that waits for its input", lambda: process.poll() is not None or is_reading(process.pid))
        if is_traced:
            wait_for("a count of the start", lambda: listed()[1]["perl"]["starts"] != before)
        found = facts(process.pid)
    finally:
        out, err = process.communicate(b"\n")
    return found, (process.returncode, out, err), {name: count - before.get(name, 0) for name, count in listed()[1]["perl"]["starts"].items()} if is_traced else {}


def same():
    """In each context /proc has of a recorded process what it has of one that runs alone, and both say the same."""
    clear()
    contexts, cgroup = names_of_contexts()
    try:
        alone = {name: observe(command, False) for name, command in contexts.items()}
        register("perl")
        late, compared = [], 0
        with Watching():
            wait_until_in_force()
            for name, command in contexts.items():
                for _ in range(5):
                    found, said, counted = observe(command, True)
                    if counted["traced"] == 1:
                        break
                    # A busy machine: it ran untraced, and is counted.
                    expect(counted["deadline_exceeded"] == 1, f"{name}: {counted}")
                    late.append(name)
                expect(counted["traced"] == 1, f"{name} is never traced: {counted}")
                check(name, found, alone[name][0])
                expect(said == SAID and alone[name][1] == SAID, f"{name}: it ended otherwise: {said}, not {alone[name][1]}")
                compared += len(found)
    finally:
        if cgroup.exists():
            wait_for("an empty cgroup", lambda: not (cgroup / "cgroup.procs").read_text())
            cgroup.rmdir()
    return f"{len(contexts)} contexts, {compared} facts" + (f", {len(late)} starts untraced for their deadline" if late else "")


def check(name, found, alone):
    for key in sorted(set(found) | set(alone)):
        one, other = found.get(key), alone.get(key)
        if key.partition(" ")[2] in CODE:
            continue
        if key == "mappings":
            more = {path for path in one if one.count(path) > other.count(path)}
            expect(all(path == "" or path.endswith(f"/region.{path.rpartition('.')[2]}") for path in more), f"{name}: other mappings: {more}")
            expect(not any(other.count(path) > one.count(path) for path in other), f"{name}: mappings are missing: {one}, not {other}")
            continue
        expect(one == other, f"{name}: {key}: {one!r}, not {other!r}")


def ends():
    """A parent sees one child that ends as it does alone: no stop, no other status, no other SIGCHLD."""
    clear()
    register("perl")
    programs = {"exit status": "exit 3", "signal": "kill 9, $$", "core": "use POSIX; POSIX::sigaction(11, POSIX::SigAction->new('DEFAULT')); kill 11, $$",
                "stop": "kill 19, $$; exit 4"}

    def watched(program):
        pid = os.posix_spawn(PERL, ["perl", "-e", program], os.environ)
        states = []
        while True:
            got, status = os.waitpid(pid, os.WUNTRACED | os.WCONTINUED)
            if os.WIFSTOPPED(status):
                os.kill(pid, signal.SIGCONT)
            states.append("continued" if os.WIFCONTINUED(status) else f"stopped {os.WSTOPSIG(status)}" if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status))
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                return states
    alone = {name: watched(program) for name, program in programs.items()}
    with Watching():
        wait_until_in_force()
        recorded = {name: watched(program) for name, program in programs.items()}
        row = wait_for("all counts", lambda: sum((row := listed()[1]["perl"])["starts"].values()) >= len(programs) and row)
    # A continuation is reported if the parent asks before the end.
    for name in programs:
        one, other = ([state for state in states[name] if state != "continued"] for states in (recorded, alone))
        expect(one == other, f"{name}: {recorded[name]}, not {alone[name]}")
    expect(row["traced"] + row["starts"]["deadline_exceeded"] == len(programs), f"{row}")
    return f"{row['traced']} of {len(programs)} traced"


enter()
prepare()
sys.exit(run_tests(same, ends))
