#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap image add --push: one file, and what an image allocates is pushed from its first start on, over restarts of the program, of the pusher and of a pusher that is killed."""
import gzip
import os
import signal
import subprocess
import sys

from image.lab import FILES, OPTIONS, PERL, ROOT, TRACES, Watching, clear, enter, prepare, register, run, wait_for_starts, wait_until_in_force
from live import PATIENCE, XHEAP, expect, run_tests, told, wait_for, xheap
from protobuf import fields, numbers

PROFILES = ROOT / "profiles"
BLOCK, COUNT = 3000000, 4
PROGRAM = f"my @all; for (1..{COUNT}) {{ push @all, 'x' x ({BLOCK} + $_); select(undef, undef, undef, 0.3) }}"


class Pushing:
    """xheap push --registered, until the end of the block."""

    def __enter__(self):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", XHEAP, "push", "--registered"], stderr=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        expect(self.process.wait(60 * PATIENCE) == 0, f"its status is {self.process.returncode}")
        self.said = self.process.stderr.read()


def allocated():
    """The bytes of alloc_space of all profiles, which is the second figure."""
    return sum(numbers(value)[1] for file in PROFILES.glob("*.pb.gz") for key, sample in fields(gzip.decompress(file.read_bytes())) if key == 2
               for number, value in fields(sample) if number == 2)


def prepare_pushed():
    clear()
    subprocess.run(["rm", "-rf", PROFILES], check=True)
    PROFILES.mkdir(mode=0o700)
    os.environ["XDG_STATE_HOME"] = str(ROOT / "state")


def session():
    return next((name for name in (row["name"] for row in told("sessions")) if ".perl" in name), None)


def whole():
    """What all of its processes have allocated is what is pushed; what the session leaves is one small trace."""
    prepare_pushed()
    register(PERL, "--push", f"file:{PROFILES}", "--push-every", "1s", "--label", "team=a")
    with Watching():
        wait_until_in_force()
        with Pushing():
            for _ in range(2):
                expect(run(PERL, "-e", PROGRAM).returncode == 0, "perl failed")
            wait_for_starts(PERL, 2)
            wait_for("profiles", lambda: allocated() > 2 * COUNT * BLOCK)
            name = session()
            expect(told("query", name)["push"]["place"] == f"file:{PROFILES}", "query does not tell the place")
            xheap("stop", name)
            trace, = TRACES.glob("perl*.xht")
            total = told("heap", trace, "-totals")["totals"]["total_bytes"]
            wait_for(f"{total} bytes, there are {allocated()}", lambda: allocated() == total)
    one = gzip.decompress(next(PROFILES.glob("*.pb.gz")).read_bytes())
    expect(b"team" in one and b"perl" in one, "labels are missing")


def killed():
    """A pusher that is killed takes its commands with it; the next one goes on where it ended, and drops nothing."""
    prepare_pushed()
    register(PERL, "--push", f"file:{PROFILES}", "--push-every", "1s")
    with Watching():
        wait_until_in_force()
        with subprocess.Popen([XHEAP, "push", "--registered"]) as first:
            expect(run(PERL, "-e", PROGRAM).returncode == 0, "perl failed")
            wait_for("profiles", lambda: allocated() > COUNT * BLOCK)
            first.send_signal(signal.SIGKILL)
        with Pushing():
            expect(run(PERL, "-e", PROGRAM).returncode == 0, "perl failed")
            wait_for("profiles again", lambda: allocated() > 2 * COUNT * BLOCK)
            xheap("stop", session())
            trace, = TRACES.glob("perl*.xht")
            total = told("heap", trace, "-totals")["totals"]["total_bytes"]
            wait_for(f"{total} bytes, there are {allocated()}", lambda: allocated() == total)


def by_autologger():
    """The session of an autologger, which is a sample, takes the starts of an image and is pushed."""
    prepare_pushed()
    for words, reason in ((("--Push", "web"), "web"), (("--Push", f"file:{PROFILES}", "--LogFileMode", "CIRCULAR"), "window"), (("--Push", f"file:{PROFILES}", "--MaxFileSize", "0"), "size")):
        done = run(XHEAP, "autologger", "add", "pushed", *words)
        expect(done.returncode == 2 and reason in done.stderr, f"{words}: {done}")
    xheap("autologger", "add", "pushed", "--SampleSize", "64", "--Push", f"file:{PROFILES} --every 1s")
    register(PERL)
    xheap("autologger", "run", "pushed")
    with Watching():
        wait_until_in_force()
        with Pushing():
            expect(run(PERL, "-e", PROGRAM).returncode == 0, "perl failed")
            # Blocks that are larger than the size of a sample are all in it.
            wait_for("profiles", lambda: allocated() > COUNT * BLOCK)
            xheap("autologger", "stop", "pushed")
            total = told("heap", TRACES / "pushed.xht", "-totals")["totals"]["total_bytes"]
            wait_for(f"{total} bytes", lambda: allocated() == total)


def refused():
    """What cannot be pushed, and what a file cannot say, is refused with the reason; a wrong file of its own does not hold the others."""
    prepare_pushed()
    for words, reason in ((("--push", "ftp://x"), "ftp://x"), (("--push", f"file:{PROFILES}", "--session", "web"), "own session"),
                          (("--push", f"file:{PROFILES}", "-o", "/tmp/%p.xht"), "own session"), (("--label", "a=b"), "are for --push"),
                          (("--push", f"file:{PROFILES}", "--label", "a=b c"), "blank"), (("--push", f"file:{'x' * 1100}"), "longer")):
        done = run(XHEAP, "image", "add", "perl", *words)
        expect(done.returncode == 2 and reason in done.stderr, f"{words}: {done}")
    expect(not OPTIONS.exists() or not list(OPTIONS.iterdir()), "a file was written")
    done = run(XHEAP, "push", "--registered", "web", "file:/tmp")
    expect(done.returncode == 2 and "takes no session" in done.stderr, done)
    register("perl", "--push", "file:/nonexistent/profiles", "--push-every", "1s")
    register(PERL, "--push", f"file:{PROFILES}", "--push-every", "1s")
    with Watching():
        wait_until_in_force()
        with Pushing() as pushing:
            expect(run(FILES / "perl", "-e", PROGRAM).returncode == 0, "perl failed")
            wait_for("profiles", lambda: allocated() > COUNT * BLOCK)
    expect("Traceback" not in pushing.said, pushing.said)


enter()
prepare()
sys.exit(run_tests(whole, killed, by_autologger, refused))
