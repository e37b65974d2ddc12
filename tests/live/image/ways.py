#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The ways in which programs start, beside an oracle: each program prints its pid and how many blocks it makes, and no two have the same number.
Each start is recorded with all of its blocks, or is counted as untraced with the reason."""
import os
import pwd
import select
import shutil
import subprocess
import sys
import time

from image.lab import FILES, TRACES, Watching, clear, enter, listed, prepare, register, run, wait_for_starts, wait_until_in_force
from live import PROGRAMS, dump_each, expect, run_tests, told, wait_for

SERVED, BYTES = FILES / "served", "777"
FIRST_COUNT, TRIES = 100, 5
SHELLS, STARTS_OF_SHELL = 4, 100
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
CRON_PLACES = ("/var/spool/cron", "/run")

THREAD = """
import os, sys, threading, time
words = sys.argv[1:]
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
threading.Thread(target=os.execv, args=(words[0], words)).start()
time.sleep(60)
"""
THREADED_PARENT = """
import subprocess, sys, threading
words, = [sys.argv[1:]]
busy = [threading.Thread(target=lambda: [bytes(1000) for _ in range(100000)]) for _ in range(4)]
[thread.start() for thread in busy]
child = threading.Thread(target=subprocess.run, args=(words,))
child.start()
[thread.join() for thread in [*busy, child]]
"""
SPAWN = "import os, sys; words = sys.argv[1:]; raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)[1]))"
FORK = "import os, sys; words = sys.argv[1:]; pid = os.fork(); pid or os.execv(words[0], words); raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
VFORK = "import subprocess, sys; raise SystemExit(subprocess.run(sys.argv[1:], close_fds=False).returncode)"
DESCRIPTOR = "import os, sys; words = sys.argv[1:]; os.execve(os.open(words[0], os.O_RDONLY), words, os.environ)"
CHROOT = "import os, sys; os.chroot(sys.argv[1]); os.chdir('/'); os.execv(sys.argv[2], sys.argv[2:])"


def python(program):
    return lambda *words: [sys.executable, "-c", program, *words]


def before(*prefix):
    return lambda *words: [*prefix, *words]


def by_shell(*prefix, text="{}"):
    return lambda *words: [*prefix, text.format(" ".join(words))]


# way: (programs that it needs, the command of served COUNT)
WAYS = {
    "a shell": ("", by_shell("sh", "-c", text="{}; true")),
    "sh -c in place": ("", by_shell("sh", "-c", text="exec {}")),
    "a shell's background": ("", by_shell("sh", "-c", text="{} & wait")),
    "a pipe of a shell": ("", by_shell("sh", "-c", text="{} | cat")),
    "bash": ("bash", by_shell("bash", "-c", text="{}; true")),
    "fork": ("", python(FORK)),
    "vfork": ("", python(VFORK)),
    "posix_spawn": ("", python(SPAWN)),
    "a thread that is not the leader": ("", python(THREAD)),
    "a multi-threaded parent": ("", python(THREADED_PARENT)),
    "a descriptor": ("", python(DESCRIPTOR)),
    "env": ("", before("env")),
    "env -i": ("", before("env", "-i")),
    "nice, nohup, setsid": ("", before("nice", "nohup", "setsid", "--wait")),
    "xargs": ("", lambda program, count: ["sh", "-c", f"echo {count} | xargs {program}"]),
    "find -exec": ("", lambda program, count: ["find", program, "-exec", "{}", count, ";"]),
    "perl's system": ("", lambda *words: ["perl", "-e", f"exit system(qw({' '.join(words)})) >> 8"]),
    "an ordinary user": ("", before(*NOBODY)),
    "no new privileges": ("", before(*NOBODY, "--no-new-privs")),
    "su": ("su", by_shell("su", "-s", "/bin/sh", "nobody", "-c")),
    "a login shell of su": ("su", by_shell("su", "-l", "-s", "/bin/sh", "nobody", "-c")),
    "a login shell": ("", by_shell("sh", "-lc", text="{}; true")),
    "runuser": ("runuser", before("runuser", "-u", "nobody", "--")),
    "sudo": ("sudo", before("sudo", "-n", "-u", "nobody")),
    "sudo with a shell": ("sudo", by_shell("sudo", "-n", "sh", "-c", text="{}; true")),
    "a user namespace": ("", before(*NOBODY, "unshare", "--user", "--map-root-user")),
    "a pid namespace": ("", before("unshare", "--pid", "--fork")),
    "user, pid and mount namespaces": ("", before(*NOBODY, "unshare", "--user", "--map-root-user", "--pid", "--mount", "--fork")),
    "net, uts, ipc and cgroup namespaces": ("", before("unshare", "--net", "--uts", "--ipc", "--cgroup")),
    "another root": ("", lambda program, count: [sys.executable, "-c", CHROOT, "/", program, count]),
    "a rootless container": ("bwrap", before(*NOBODY, "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev")),
}


def write_programs():
    """{way: (program, what starts it)} of those that need a program of their own."""
    shutil.copy(os.path.join(PROGRAMS, "served"), SERVED)
    source = os.path.join(os.environ["SOURCE"], "tests/live/programs/served.c")
    made, absent = {}, []
    for way, compiler in (("a static program", ["cc", "-static"]), ("a static program without fixed place", ["cc", "-static-pie"]), ("a program of musl", ["musl-gcc"]),
                          ("a static program of musl", ["musl-gcc", "-static"]), ("a program at a fixed place", ["cc", "-no-pie"])):
        directory = FILES / way.replace(" ", "_")
        directory.mkdir(exist_ok=True)
        if not shutil.which(compiler[0]) or subprocess.run([*compiler, "-O1", "-o", directory / "served", source], stderr=subprocess.DEVNULL).returncode:
            absent.append(f"{way} ({' '.join(compiler)})")
            continue
        made[way] = (directory / "served", before())
    script = FILES / "script"
    script.write_text(f"#!/bin/sh\nexec {SERVED} \"$1\"\n")
    script.chmod(0o755)
    made["a script that executes it"] = (script, before())
    return made, absent


def starts_of(image="served"):
    row = listed()[1].get(image)
    return dict(row["starts"]) if row else {}


def wait_for_any():
    """The counts, as soon as one start is among them."""
    return wait_for("a count of the start", lambda: sum((now := starts_of()).values()) and now)


def count_of_blocks(pattern="*.xht"):
    """{number of blocks: [pid]} of all processes in the traces."""
    found = {}
    for trace in TRACES.glob(pattern):
        facts = told("info", trace)
        expect(facts["complete"], f"{trace} lacks calls: {facts['missing_calls']}")
        blocks = {}
        for row in dump_each(trace):
            if row["action"] != "Free" and row["size"] == BYTES:
                blocks[row["process"]] = blocks.get(row["process"], 0) + 1
        for process in facts["processes"]:
            found.setdefault(blocks.get(str(process["id"]), 0), []).append(process["pid"])
    return found


def started(way, command, count):
    """Start it, and return whether it was recorded. A start that reached the watcher's deadline is counted."""
    earlier = starts_of()
    done = run(*command, cwd="/")
    words = [line.split() for line in done.stdout.splitlines()]
    expect(done.returncode == 0 and [row[1] for row in words] == [str(count)], f"{way}: {done}")

    def counted():
        now = starts_of()
        return sum(now.values()) > sum(earlier.values()) and now
    now = wait_for(f"a count of a start by {way}", counted)
    more = {outcome: now[outcome] - earlier.get(outcome, 0) for outcome in now if now[outcome] != earlier.get(outcome, 0)}
    expect(more in ({"traced": 1}, {"deadline_exceeded": 1}), f"by {way}: {more}: {listed()[1]['served']['last_reason']}")
    return "traced" in more


def ways():
    """Each way in which a program may start: as many blocks are recorded as the program says that it made."""
    clear()
    made, skipped = write_programs()
    everything = {way: (SERVED, command) for way, (needs, command) in WAYS.items() if not needs or shutil.which(needs)}
    skipped += [f"{way} ({needs})" for way, (needs, _) in WAYS.items() if way not in everything]
    everything.update(made)
    register("served")
    expected, late, count = {}, 0, FIRST_COUNT
    with Watching():
        wait_until_in_force()
        for way, (program, command) in everything.items():
            for _ in range(TRIES):
                count += 1
                is_traced = started(way, command(str(program), str(count)), count)
                late += not is_traced
                if is_traced:
                    expected[count] = way
                    break
            expect(count in expected, f"by {way} it is never traced, but comes too late {TRIES} times")
    found = count_of_blocks()
    for count, way in expected.items():
        expect(len(found.get(count, [])) == 1, f"by {way}: {count} blocks are in {found.get(count)}")
    expect(sum(map(len, found.values())) == len(expected), f"{found} are recorded, {expected} were started")
    said = f"{len(expected)} ways" + (f", {late} starts too late" if late else "")
    return said + ("; skipped, as the machine lacks what they need: " + ", ".join(skipped) if skipped else "")


def cron():
    """A job of cron's, with a spool and a /run of its own."""
    if not shutil.which("cron"):
        return "skipped: there is no cron"
    clear()
    write_programs()
    register("served")
    out, spool = FILES / "cron.out", FILES / "crontab"
    spool.write_text(f"@reboot {SERVED} 77 >> {out} 2>&1\n")
    inner = "set -e; " + "".join(f"mount -t tmpfs -o mode=755 own {place}; " for place in CRON_PLACES)
    inner += f"mkdir -m 1730 /var/spool/cron/crontabs; cp {spool} /var/spool/cron/crontabs/root; chmod 600 /var/spool/cron/crontabs/root; exec cron -f"
    with Watching():
        wait_until_in_force()
        for _ in range(TRIES):
            out.write_text("")
            daemon = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inner])
            try:
                wait_for("a job of cron", out.read_text)
            finally:
                daemon.kill()
                daemon.wait()
            now = wait_for_any()
            if now["traced"]:
                break
    expect(now["traced"] == 1 and sum(now.values()) == now["traced"] + now["deadline_exceeded"], f"{now}")
    expect(77 in count_of_blocks(), "the job is in no trace")


def login():
    """A login shell by login(1), on a terminal of its own."""
    if not shutil.which("login"):
        return "skipped: there is no login"
    clear()
    write_programs()
    register("served")
    with Watching():
        wait_until_in_force()
        for _ in range(TRIES):
            pid, terminal = os.forkpty()
            if pid == 0:
                os.execv(shutil.which("login"), ["login", "-f", pwd.getpwuid(0).pw_name])
            os.write(terminal, f"{SERVED} 55; exit\n".encode())
            said = b""
            try:
                while select.select([terminal], [], [], 60)[0] and (more := os.read(terminal, 4096)):
                    said += more
            except OSError:  # the terminal's other side is closed
                pass
            os.close(terminal)
            os.waitpid(pid, 0)
            if b" 55\r\n" not in said:
                return f"skipped: login does not begin a shell here: {said[-300:]!r}"
            now = wait_for_any()
            if now["traced"]:
                break
    expect(now["traced"] == 1, f"{now}")
    expect(55 in count_of_blocks(), "the start is in no trace")


def shells():
    """Four shells start programs as fast as they can: each start is in the trace with all of its blocks, or is counted."""
    clear()
    write_programs()
    register("served")
    with Watching():
        wait_until_in_force()
        began = time.monotonic()
        loop = "i={}; end=$((i + {})); while [ $i -lt $end ]; do {} $i || exit 1; i=$((i + 1)); done"
        running = [subprocess.Popen(["sh", "-c", loop.format(shell * STARTS_OF_SHELL, STARTS_OF_SHELL, SERVED)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for shell in range(SHELLS)]
        said = [shell.communicate() for shell in running]
        taken = time.monotonic() - began
        expect(all(shell.returncode == 0 and not errors for shell, (_, errors) in zip(running, said)), f"starts failed: {said}")
        oracle = {int(line.split()[1]): int(line.split()[0]) for out, _ in said for line in out.splitlines()}
        expect(len(oracle) == SHELLS * STARTS_OF_SHELL, f"{len(oracle)} starts")
        row = wait_for_starts("served", len(oracle))
    found = count_of_blocks()
    for count, pids in found.items():
        expect(pids == [oracle[count]], f"{count} blocks: {pids} in the trace, {oracle[count]} by the oracle")
    expect(len(found) == row["traced"], f"{len(found)} processes in the traces, {row} counted")
    expect(row["traced"] + row["untraced"] == len(oracle), f"{row} of {len(oracle)}")
    causes = {name: count for name, count in row["starts"].items() if count and name != "traced"}
    expect(set(causes) <= {"deadline_exceeded", "too_many_at_once", "no_logger"}, f"{row}")
    return f"{len(oracle)} starts, {len(oracle) / taken:.0f} a second, {row['traced']} traced" + (f", others: {causes}" if causes else "")


enter()
prepare()
sys.exit(run_tests(ways, cron, login, shells))
