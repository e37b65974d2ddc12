#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Image options: programs that are recorded whenever they start, and those that are not."""
import mmap
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from image.lab import FILES, OPTIONS, ROOT, TRACES, Watching, clear, enter, listed, prepare, processes, register, run, wait_for_starts, wait_until_in_force
from live import expect, run_tests, strace_is_here, told, wait_for, xheap

PERL = FILES / "perl"
# On a busy machine a logger may be late.
PATIENT = ("--deadline", "10000")


def print_pid(*words, program=PERL, **more):
    done = run(program, "-e", "print \"$$\\n\"", *words, **more)
    expect(done.returncode == 0, f"{done}")
    return int(done.stdout)


def traced_pids(pattern="*.xht"):
    return {int(row["pid"]) for trace in TRACES.glob(pattern) for row in processes(trace)}


def starts():
    """Starts by a shell, by vfork, by exec in place, and of a script are recorded; the program notices nothing."""
    clear()
    perl, script = PERL, FILES / "script"
    script.write_text(f"#!{perl}\nprint \"script\\n\";\n")
    script.chmod(0o755)
    register(perl)
    register("script")
    with Watching(*PATIENT):
        wait_until_in_force()
        say = [perl, "-e", "print \"$$\\n\""]
        pids = {int(run(*say).stdout) for _ in range(3)}
        pids.add(int(run("sh", "-c", f"{perl} -e 'print \"$$\\n\"'; true").stdout))
        pids.add(int(run("sh", "-c", f"exec {perl} -e 'print \"$$\\n\"'").stdout))
        expect(run(script).stdout == "script\n", "the script did not run")
        failing = run(perl, "-e", "print STDERR 'x'; exit 3")
        expect((failing.returncode, failing.stdout, failing.stderr) == (3, "", "x"), f"it ended otherwise: {failing}")
        run(FILES / "sort", "/dev/null")
        row = wait_for_starts(perl, 6)
        expect(row["traced"] == 6 and row["untraced"] == 0, f"not all are traced: {row}")
        expect(wait_for_starts("script", 1)["traced"] == 1, "the script is not traced")
        expect(re.search(r"^image-[0-9a-f]{8}\.script: ", xheap("sessions"), re.M), "the session of the image is not listed")
    traces = sorted(TRACES.glob("*.xht"))
    expect(len(traces) == 2, f"traces: {traces}")
    found = {int(row["pid"]) for trace in traces for row in processes(trace)}
    expect(pids <= found and len(found) == 7, f"{pids} ran, {found} are in the traces")
    expect(all(told("info", trace)["complete"] for trace in traces), "a trace lacks calls")


def selected():
    """By user, arguments, number and setuid; each decision is counted."""
    clear()
    sort, privileged = FILES / "sort", FILES / "privileged"
    shutil.copy(PERL, privileged)
    privileged.chmod(0o4755)
    shutil.copy(PERL, FILES / "numbered")
    shutil.copy(PERL, FILES / "each")
    register(PERL, "--arguments", "*wanted*")
    register("privileged")
    register("numbered", "--every", 3, "--first", 2)
    register(sort, "--user", "nobody")
    register("each", "-o", ROOT / "each.%p.xht")
    with Watching(*PATIENT):
        wait_until_in_force()
        # The whole command line is compared, however long it is.
        wanted = {print_pid("wanted"), print_pid(*["x" * 1000] * 200, "wanted")}
        print_pid("other")
        print_pid(program=privileged)
        numbered = [print_pid(program=FILES / "numbered") for _ in range(10)]
        each = {print_pid(program=FILES / "each") for _ in range(3)}
        run("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sort, "/dev/null")
        run(sort, "/dev/null")
        found = {image: wait_for_starts(image, count)["starts"] for image, count in
                 ((PERL, 3), ("privileged", 1), ("numbered", 10), (sort, 2), ("each", 3))}
        expect(found[PERL]["traced"] == 2 and found[PERL]["not_selected"] == 1, f"by arguments: {found}")
        expect(found["privileged"]["privileged"] == 1, f"setuid: {found}")
        expect(found["numbered"]["traced"] == 2 and found["numbered"]["not_selected"] == 8, f"by number: {found}")
        expect(found[sort]["traced"] == 1 and found[sort]["not_selected"] == 1, f"by user: {found}")
        expect(found["each"]["traced"] == 3, f"each with its trace: {found}")
        names = {ROOT / f"each.{pid}.xht" for pid in each}
        wait_for("whole traces", lambda: all(name.exists() and told("info", name)["complete"] for name in names))
    xheap("image", "remove", "numbered")
    said = xheap("image", "add", "numbered", "--first", "2")
    expect("none is recorded before the next boot: 10 matching starts of numbered" in said, said)
    expect(traced_pids("numbered.*") == {numbered[2], numbered[5]}, f"{traced_pids('numbered.*')} of {numbered}")
    expect(wanted <= traced_pids(), "a selected process is in no trace")
    expect(all({int(row["pid"]) for row in processes(ROOT / f"each.{pid}.xht")} == {pid} for pid in each), "a trace has another process")
    expect(not (TRACES / "privileged.00001.xht").exists(), "a trace of nothing is left")


def contexts():
    """Other ways to start, other users, namespaces; a static program; a common trace when too many run at once."""
    clear()
    static = FILES / "static"
    source = pathlib.Path("static.c")
    source.write_text("#include <stdlib.h>\n#include <stdio.h>\n#include <unistd.h>\n"
                      "int main(void) { void *volatile block = malloc(1234); free(block); printf(\"%d\\n\", (int)getpid()); return 0; }\n")
    subprocess.run(["gcc", "-static", "-O1", "-o", static, source], check=True)
    shutil.copy(PERL, FILES / "sleeper")
    register("perl")
    register(static)
    register("sleeper", "-o", ROOT / "sleeper.%p.xht")
    say = [str(PERL), "-e", "1"]
    ways = {"su": ["su", "-s", "/bin/sh", "nobody", "-c", " ".join(say)], "login shell": ["sh", "-lc", " ".join(say)],
            "user namespace": ["unshare", "--user", "--map-root-user", *say],
            "pid namespace": ["unshare", "--pid", "--fork", *say],
            "mount namespace": ["unshare", "--mount", *say],
            "no new privileges": ["setpriv", "--no-new-privs", *say],
            "posix_spawn": [sys.executable, "-c", f"import os; pid = os.posix_spawn({say[0]!r}, {say!r}, os.environ); raise SystemExit(os.waitpid(pid, 0)[1])"],
            "vfork": [sys.executable, "-c", f"import subprocess; raise SystemExit(subprocess.run({say!r}).returncode)"],
            "env": ["env", *say], "background": ["sh", "-c", f"{say[0]} -e 1 & wait"]}
    with Watching(*PATIENT):
        wait_until_in_force()
        for index, (way, command) in enumerate(ways.items()):
            done = run(*command)
            expect(done.returncode == 0, f"{way}: {done}")
            row = wait_for_starts("perl", index + 1)
            expect(row["traced"] == index + 1, f"by {way} it is not traced: {row}")
        pid = int(run(static).stdout)
        expect(wait_for_starts(static, 1)["traced"] == 1, "the static program is not traced")
        sleepers = []
        for count in range(10):
            sleepers.append(subprocess.Popen([FILES / "sleeper", "-e", "<STDIN>"], stdin=subprocess.PIPE))
            row = wait_for_starts("sleeper", count + 1)
        expect(row["traced"] == 10 and row["in_common_trace"] >= 2, f"{row}")
        for process in sleepers:
            process.communicate(b"")
        expect(listed()[1]["sleeper"]["traces"] >= 9 and row["untraced"] == 0, f"{row}")
    expect(pid in traced_pids("static-*"), "the static program is in no trace")


def failing():
    """An exec that fails leaves the process as it was: its next exec, of another program, is untraced."""
    clear()
    bad = FILES / "bad"
    bad.write_bytes(b"\x7fELF nothing")
    bad.chmod(0o755)
    register(bad)
    register(PERL)
    with Watching(*PATIENT):
        wait_until_in_force()
        for _ in range(5):
            said = run(sys.executable, "-c", f"""
import os
try:
    os.execv({str(bad)!r}, ["bad"])
except OSError as error:
    print(error.errno, flush=True)
try:
    os.execv({str(PERL)!r}, ["perl", "x" * (1 << 20)])
except OSError as error:
    print(error.errno, flush=True)
print([line for line in open("/proc/self/status") if line.startswith("TracerPid")], flush=True)
os.execvp("echo", ["echo", "next"])
""")
            expect(said.stdout.split("\n") == ["8", "7", r"['TracerPid:\t0\n']", "next", ""], f"{said}")
        row = wait_for_starts(bad, 5)
        expect(row["starts"]["exec_failed"] == 5, f"{row}")
        row = wait_for_starts(PERL, 5)
        expect(row["starts"]["exec_failed"] == 5, f"{row}")
    expect(not list(TRACES.glob("*")), "a trace of nothing is left")


def threads():
    """An exec by a thread that is not the first one, while others run."""
    clear()
    register("perl")
    program = f"""
import os, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
threading.Thread(target=os.execv, args=({str(PERL)!r}, ["perl", "-e", 'print "$$\\n"'])).start()
time.sleep(60)
"""
    with Watching(*PATIENT):
        wait_until_in_force()
        pids = {int(run(sys.executable, "-c", program).stdout) for _ in range(3)}
        row = wait_for_starts("perl", 3)
        expect(row["traced"] == 3, f"{row}")
    expect(pids == traced_pids(), f"{pids} ran, {traced_pids()} are in the traces")


FACTS = """
my %skip = map { $_ => 1 } qw(Pid Tgid NSpid NStgid NSpgid NSsid PPid VmPeak VmSize VmHWM VmRSS RssAnon RssFile RssShmem VmStk VmPTE VmExe VmLib
    voluntary_ctxt_switches nonvoluntary_ctxt_switches Cpus_allowed_list SigQ);
for my $name (qw(status environ limits mountinfo cgroup)) {
    open(my $file, "<", "/proc/self/$name") or die; local $/; my $text = <$file>;
    print "$name: ", join("\n", grep { !/^(\w+):/ || !$skip{$1} } split(/\n/, $text)), "\n";
}
opendir(my $list, "/proc/self/fd"); print join(" ", sort readdir($list)), "\n";
print getppid() == $ENV{PARENT} ? "mine" : "adopted", "\n";
"""


def unchanged():
    """The process sees the same of itself as it does untraced."""
    clear()
    register("perl")
    more = {"env": {**os.environ, "PARENT": str(os.getpid())}}
    alone = run(PERL, "-e", FACTS, **more)
    expect(alone.returncode == 0 and "mine" in alone.stdout, f"{alone}")
    with Watching(*PATIENT):
        wait_until_in_force()
        recorded = run(PERL, "-e", FACTS, **more)
        expect(wait_for_starts("perl", 1)["traced"] == 1, "it is not traced")
    one, other = alone.stdout.splitlines(), recorded.stdout.splitlines()
    expect(one == other and recorded.stderr == "", f"{[pair for pair in zip(one, other) if pair[0] != pair[1]]}: {recorded.stderr}")


def edited():
    """Files that are edited are in force at once; a mistake is named with its line, and the others stay."""
    clear()
    shutil.copy(PERL, FILES / "other")
    with Watching(*PATIENT):
        OPTIONS.mkdir(parents=True, exist_ok=True)
        (OPTIONS / "good.conf").write_text("# by hand\n[image]\nImage = other\n")
        (OPTIONS / "bad.conf").write_text("[image]\nImage = perl\nTracingFlags = 0x2\n")
        (OPTIONS / "odd.conf").write_text("[image]\nImage = perl\n\nHeap\n")
        (OPTIONS / "own.conf").write_text("[image]\nImage = xheap\n")
        (OPTIONS / "open.conf").write_text("[image]\nImage = sort\n")
        (OPTIONS / "open.conf").chmod(0o666)

        def recorded():
            print_pid(program=FILES / "other")
            return listed()[1]["other"]["traced"]
        wait_for("a start that is recorded", recorded)
        mistakes = "\n".join(told("image", "list")["mistakes"])
        for text in ("bad.conf:3: TracingFlags = 0x2: 0x2 traces critical sections", "odd.conf:4: ", "own.conf: Image = xheap: xheap does not trace",
                     "open.conf is not in force: others may write to it"):
            expect(text in mistakes, f"{text!r} is not among {mistakes}")
        before = listed()[1]["other"]["traced"]
        (OPTIONS / "good.conf").write_text("\t[image]\n  Image = other\n\n\tUser = nobody\n")

        def unselected():
            print_pid(program=FILES / "other")
            return listed()[1]["other"]["starts"]["not_selected"]
        wait_for("a start that an indented line does not select", unselected)
        OPTIONS.rename(ROOT / "moved")
        OPTIONS.mkdir()
        (OPTIONS / "good.conf").write_text("[image]\nImage = other\n")
        wait_for("a start by an option in another directory", lambda: recorded() > before)
        (OPTIONS / "good.conf").write_text("[image]\nImage = other\nEnabled = no\n")
        wait_for("session's end", lambda: not re.search(r"^image-[0-9a-f]{8}\.other: ", xheap("sessions"), re.M))
        before = listed()[1]["other"]["traced"]
        print_pid(program=FILES / "other")
        expect(listed()[1]["other"]["traced"] == before, "a disabled option is in force")
    for words in (("add",), ("add", "a/b"), ("add", "perl", "-o", "relative"), ("add", "xheap"), ("add", "xheap-images"), ("add", "perl", "--tracing-flags", "2"),
                  ("add", "perl", "--first", "x"), ("add", "perl", "--for", "2x"), ("add", "perl", "--user", "no-such-user"), ("add", "perl", "--file-mode", "flight"), ("remove", "nobody"), ("show",), ("x",), ("list", "x"),
                  ("add", "perl", "--session", "a", "-o", "/b"), ("add", "/" + "x" * 5000), ("add", "perl", "--arguments", "a ; b"), ("add", "perl", "--arguments", "a ")):
        expect(xheap("image", *words, status=2).startswith("xheap: "), f"{words}")


def reminded():
    """info and report say which options are on, and how many they leave out; not those that are off."""
    clear()
    xheap("record", "-q", "-o", "reminded.xht", PERL, "-e", "1")
    for number in range(30):
        register(f"some-other-image-{number}")
    xheap("image", "disable", "some-other-image-7")
    for command in ("info", "report"):
        said = re.search("^xheap: starts are recorded of (.*), and ([0-9]+) more; xheap image list$", xheap(command, "reminded.xht"), re.M)
        names = said and said[1].split(", ")
        expect(said and len(names) + int(said[2]) == 29 and set(names) < {f"some-other-image-{number}" for number in range(30) if number != 7}, f"{command}: {said}")
    clear()
    expect("starts are recorded" not in xheap("info", "reminded.xht"), "an option that is gone is on")


def mistaken():
    """A file with a mistake is shown, enabled and removed by its image and by its name: with the mistake, or as any other."""
    texts = {"late.conf": "[image]\nFirst = x\nImage = perl\n", "unit.conf": "[image]\nService = x.timer\n", "sort.conf": "nothing\n", "open.conf": "[image]\nImage = perl\n",
             "one.conf": "[image]\nImage = cat\n", "two.conf": "[image]\nImage = cat\n"}

    def written():
        clear()
        OPTIONS.mkdir(parents=True)
        for file, text in texts.items():
            (OPTIONS / file).write_text(text)
        (OPTIONS / "open.conf").chmod(0o666)
        (OPTIONS / "link.conf").symlink_to("/etc/passwd")

    def left(*words, status=0):
        written()
        said = xheap("image", *words, status=status)
        return said, sorted({*texts, "link.conf"} - set(os.listdir(OPTIONS)))
    for image, gone in (("perl", ["late.conf"]), ("open.conf", ["open.conf"]), ("x.timer", ["unit.conf"]), ("sort", ["sort.conf"]), ("link.conf", ["link.conf"]), ("cat", ["one.conf", "two.conf"]),
                        ("two.conf", ["two.conf"]), ("--all", sorted([*texts, "link.conf"]))):
        expect(left("remove", image) == ("", gone), f"remove {image}: {left('remove', image)}")
    for words, text in ((("enable", "perl"), "late.conf:2: First = x: not a number"), (("show", "sort"), "sort.conf:1: neither"), (("remove", "dog"), "dog is not registered")):
        said, gone = left(*words, status=2)
        expect(text in said and not gone, f"{words}: {said} {gone}")
    (OPTIONS / "directory.conf").mkdir()
    expect("cannot remove" in xheap("image", "remove", "--all", status=2) and os.listdir(OPTIONS) == ["directory.conf"], f"{os.listdir(OPTIONS)}")


def sessions():
    """A session of root that was begun with -p 0 takes the starts; a named one before it."""
    clear()
    register("perl")
    register(FILES / "sort", "--session", "named")
    xheap("start", "all", "-p", "0", "-o", "all.xht")
    xheap("start", "named", "-o", "named.xht")
    try:
        with Watching(*PATIENT):
            wait_until_in_force()
            pid = print_pid()
            expect(wait_for_starts("perl", 1)["traced"] == 1, "it is not traced")
            run(FILES / "sort", "/dev/null")
            expect(wait_for_starts(FILES / "sort", 1)["traced"] == 1, "it is not traced")
    finally:
        xheap("stop", "all")
        xheap("stop", "named")
    expect([int(row["pid"]) for row in processes("all.xht")] == [pid], "the session lacks its process")
    expect(len(processes("named.xht")) == 1, "the named session lacks its process")
    expect(not list(TRACES.glob("*")), "a session of the image's own was begun")


def mounted():
    """File systems that are mounted later are watched, and what an overlay takes from a watched one."""
    clear()
    later, over = FILES / "later", FILES / "over"
    for directory in (later, over, FILES / "upper", FILES / "work", FILES / "lower"):
        directory.mkdir(exist_ok=True)
    shutil.copy(PERL, FILES / "lower/perl")
    register("perl")
    register(FILES / "lower/perl")
    inner = f"mount -t tmpfs -o size=16m,mode=755 inner {later} && cp {PERL} {later}/perl && for i in $(seq 600); do {later}/perl -e 1; sleep 0.1; done"
    hidden = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", inner])
    try:
        with Watching(*PATIENT):
            wait_until_in_force()
            wait_for("a start on a file system of another mount namespace", lambda: listed()[1]["perl"]["traced"])
            expect(listed()[0]["other_mount_namespaces"] >= 1, "the namespace is not counted")
            hidden.kill()
            hidden.wait()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "later", later], check=True)
            shutil.copy(PERL, later / "perl")

            def recorded():
                print_pid(program=later / "perl")
                return listed()[1]["perl"]["traced"] > before
            before = listed()[1]["perl"]["traced"]
            wait_for("a start on a file system that was mounted later", recorded)
            done = subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={FILES}/lower,upperdir={FILES}/upper,workdir={FILES}/work", "test", over], stderr=subprocess.PIPE, text=True)
            if done.returncode:
                return f"without an overlay, which cannot be mounted here: {done.stderr.strip()}"
            pid = print_pid(program=over / "perl")
            # By its name on the overlay, or by the path of the lower file, if the overlay is not marked yet.
            wait_for("a start through an overlay", lambda: pid in traced_pids())
    finally:
        hidden.kill()
        for directory in (over, later):
            subprocess.run(["umount", "-l", directory], stderr=subprocess.DEVNULL)


def replaced():
    """A file that is replaced is recorded at its first start, also through a bind mount."""
    clear()
    target, bound = FILES / "replaced", FILES / "bound"
    shutil.copy(PERL, target)
    bound.mkdir(exist_ok=True)
    register(target)
    with Watching(*PATIENT):
        wait_until_in_force()
        pids = {print_pid(program=target)}
        os.link(target, FILES / "linked")
        pids.add(print_pid(program=FILES / "linked"))
        shutil.copy(PERL, FILES / "new")
        os.rename(FILES / "new", target)
        pids.add(print_pid(program=target))
        subprocess.run(["mount", "--bind", FILES, bound], check=True)
        shutil.copy(PERL, FILES / "new")
        os.rename(FILES / "new", target)
        pids.add(print_pid(program=bound / "replaced"))
        row = wait_for_starts(target, 4)
        subprocess.run(["umount", bound], check=True)
        expect(row["traced"] == 4, f"{row}")
    expect(pids == traced_pids(), f"{pids} ran, {traced_pids()} are in the traces")


def elsewhere():
    """A PATH is one file: not another one of its name on the same file system, which a NAME makes seen."""
    clear()
    target, other = FILES / "one", FILES / "elsewhere/one"
    other.parent.mkdir()
    for file in (target, other):
        shutil.copy(PERL, file)
    register(target)
    register("sort")
    with Watching(*PATIENT):
        wait_until_in_force()
        print_pid(program=other)
        pid = print_pid(program=target)
        row = wait_for_starts(target, 1)
    expect(sum(row["starts"].values()) == 1 and traced_pids() == {pid}, f"{row}; {pid}; {traced_pids()} are in the traces")


def trimmed():
    """Of each image's own traces the newest 16 and 1 GiB are kept. Other files are left alone."""
    clear()
    register("perl")
    register("sort")
    TRACES.mkdir(parents=True)

    def make(pattern, count, size=1):
        for number in range(1, count + 1):
            file = TRACES / (pattern % number)
            file.touch()
            os.truncate(file, size)
            os.utime(file, (number, number))

    make("perl.%05d.xht", 20)
    make("sort.%05d.xht", 6, 300 << 20)
    make("nobody.%05d.xht", 20)
    make("perl.%06d.xht", 20)
    (TRACES / "perl.00021.xht").symlink_to("/nonexistent")
    with Watching(*PATIENT):
        wait_until_in_force()
        wait_for("fewer traces", lambda: len(list(TRACES.glob("*"))) <= 16 + 3 + 41)
    found = sorted(file.name for file in TRACES.glob("*"))
    wanted = [pattern % number for pattern, first, end in (("perl.%05d.xht", 5, 22), ("sort.%05d.xht", 4, 7), ("nobody.%05d.xht", 1, 21), ("perl.%06d.xht", 1, 21)) for number in range(first, end)]
    expect(found == sorted(wanted), f"{found}")


def is_traced(pid):
    """Whether a debugger has it; or it has ended."""
    try:
        return "TracerPid:\t0" not in open(f"/proc/{pid}/status").read()
    except OSError:
        return True


def unregistered():
    """The watcher does not ask for the path of a file again that belongs to no option. Another name of the file, or another option, makes it a registered one at once."""
    clear()
    plain, wanted, script = FILES / "plain", FILES / "wanted", FILES / "some-script"
    shutil.copy(PERL, plain)
    script.write_text(f"#!{PERL}\nprint \"$$\\n\";\n")
    script.chmod(0o755)
    # Files that have just been changed are not remembered.
    wait_for("files that were changed long ago", lambda: time.time() - max(os.stat(file).st_ctime for file in (plain, script)) > 4)
    register("wanted")
    with Watching(*PATIENT):
        wait_until_in_force()

        def twice():
            for _ in range(2):
                print_pid(program=plain)
                # A script's content decides, and may change without another time of change: it is read each time.
                run(script)
        twice()

        def calls_of_watcher():
            """What it calls for two starts of each program; nothing if it was replaced: under strace, on a busy machine, its guardian may take it for stuck."""
            watcher = listed()[0]["watcher"]
            tracer = subprocess.Popen(["strace", "-qq", "-f", "-p", str(watcher), "-o", "calls", "-e", "trace=statx,readlink,pread64"], stderr=subprocess.PIPE)
            wait_for("strace", lambda: tracer.poll() is not None or is_traced(watcher))
            twice()
            tracer.send_signal(signal.SIGINT)
            tracer.communicate()
            wait_until_in_force()
            return pathlib.Path("calls").read_text() if listed()[0]["watcher"] == watcher else ""
        if strace_is_here():
            calls = wait_for("watcher that lives on under strace", calls_of_watcher)
            expect(calls.count("statx(") >= 4 and calls.count("readlink(") <= 2 and calls.count("pread64(") <= 2, f"the watcher asks again: {calls}")
        pids = set()

        def is_seen(program, way):
            pids.add(print_pid(program=program))
            row = wait_for_starts("wanted", len(pids))
            expect(row["traced"] == len(pids), f"{way}: {row}")
        os.link(plain, wanted)
        is_seen(wanted, "another link")
        wanted.unlink()
        os.rename(plain, wanted)
        is_seen(wanted, "another name")
        os.rename(wanted, plain)
        wait_for("a file that was changed long ago", lambda: time.time() - os.stat(plain).st_ctime > 4)
        twice()
        wanted.write_text("")
        subprocess.run(["mount", "--bind", plain, wanted], check=True)
        is_seen(wanted, "a mount of the file")
        subprocess.run(["umount", wanted], check=True)
        wanted.unlink()
        script.write_text(f"#!{wanted}\nprint \"$$\\n\";\n")
        os.symlink(plain, wanted)
        pids.add(int(run(script).stdout))
        expect(wait_for_starts("wanted", len(pids))["traced"] == len(pids), "a script with another interpreter")
        register("plain")
        pids.add(print_pid(program=plain))
        expect(wait_for_starts("plain", 1)["traced"] == 1, "another option")
    expect(pids == traced_pids(), f"{pids} ran, {traced_pids()} are in the traces {sorted(TRACES.glob('*'))}: {open('watch.err').read()}")


def tried_before():
    """A program that was started under another name, or with another content, is seen when it becomes a registered one, before anybody notices its change."""
    clear()
    shutil.copy(PERL, FILES / "wanted")
    directory, loader, plain = FILES / "tried", FILES / "ld-linux-wanted", FILES / "before"
    deep = FILES.joinpath(*(letter * 200 for letter in "abcdef"))
    deep.mkdir(parents=True)
    directory.mkdir()
    for file in (directory / "target", directory / "new", loader, plain, deep / "wanted"):
        shutil.copy(PERL, file)
    script = FILES / "script"
    script.write_text("#!/bin/true\n" + "#" * 900)
    script.chmod(0o755)
    with open(script, "r+b") as writer, mmap.mmap(writer.fileno(), 0) as mapping:
        mapping[-1:] = b"\n"
        changed = os.stat(script).st_ctime_ns
        wait_for("files that were changed long ago", lambda: time.time() - os.stat(script).st_ctime > 4)

        def tried(*options, program=None):
            """Start all files under a watcher with this option, then those of the block."""
            clear()
            register(*options)
            with Watching(*PATIENT):
                wait_until_in_force()
                for file in filter(os.path.exists, (loader, plain, directory / "new")):
                    for _ in range(2):
                        print_pid(program=file)
                subprocess.run(["sh", "-c", f"{script}; {script}"], stderr=subprocess.DEVNULL)
                for count, one in enumerate(program()):
                    row = wait_for_starts(options[0], count + 1)
                    expect(row["traced"] == count + 1, f"{one}: {row}")

        def as_path():
            os.rename(directory / "new", directory / "target")
            yield print_pid(program=directory / "target")
        tried(directory / "target", program=as_path)

        def as_name():
            yield print_pid(program=deep / "wanted"), "a path that is too long"
            for file in (loader, plain):
                os.rename(file, FILES / "wanted")
                yield print_pid(program=FILES / "wanted"), file
            line = f"#!{FILES}/wanted\n".encode()
            mapping[:len(line)] = line
            expect(os.stat(script).st_ctime_ns == changed, "the file system dates a mapping's changes")
            mapping.close()
            writer.close()
            yield run(script).returncode, "a script that was mapped"
        tried("wanted", program=as_name)


enter()
prepare()
sys.exit(run_tests(starts, selected, contexts, failing, threads, unchanged, edited, reminded, mistaken, sessions, mounted, replaced, elsewhere, trimmed, unregistered, tried_before))
