#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The README: each command in it runs, each file that it names is there, and each goal of make that it names exists.

A command stands in backticks or behind four spaces, and begins with `xheap` or `build/xheap`. Words that a reader replaces are replaced here.
"""
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

SOURCE, BUILD = pathlib.Path(os.environ["SOURCE"]), pathlib.Path(os.environ["BUILD"])
sys.path.insert(0, str(SOURCE / "tests/live"))
import pushed_files  # noqa: E402

XHEAP = os.environ["XHEAP"]
TEXT = (SOURCE / "README.md").read_text()
SESSION = "web"
# A program that lives until it is ended, and allocates.
PROGRAM = [sys.executable, "-c", "import time\nwhile True:\n    b'x' * 100000; time.sleep(0.001)"]
PATIENCE_SECONDS = 120
complaints = []


def commands():
    """As they are typed: of blocks without what they explain, and of backticks."""
    lines = [line.split("  #")[0].strip() for line in re.findall(r"^    (\S.*)$", TEXT, re.M)]
    quoted = re.findall(r"`([^`\n]+)`", TEXT)
    found = [text for text in lines + quoted if re.match(r"(build/)?xheap ", text)]
    actions = [f"xheap heap {text}" for text in quoted if re.match(r"-(stacks|frames|image|by)\b", text)]
    return list(dict.fromkeys(found + actions))


def run(words, status=0):
    """Ends what goes on until Ctrl-C as a user does, once it says that it records."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if words[1:3] == ["record", "-p"]:
        until = time.monotonic() + PATIENCE_SECONDS
        while process.poll() is None and time.monotonic() < until and not any(SESSION_FILES.glob("*/*/session")):
            time.sleep(0.02)
        # From when on the signal is heeded is not said: it is sent until it is.
        while process.poll() is None and time.monotonic() < until:
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    # One that came when the trace was whole, and only an answer was left to make, ends the command.
    if words[1:3] == ["record", "-p"] and process.returncode == -signal.SIGINT and " an event; tracing cost" in said:
        return said
    if process.returncode != status:
        complaints.append(f"{shlex.join(map(str, words))}: status {process.returncode}, not {status}: {said.strip()[-300:]}")
    return said


def prepare():
    """The traces, the limits and the pushed files that the commands name."""
    for trace in ("before.xht", "after.xht", "trace.xht"):
        run([XHEAP, "record", "-q", "-o", trace, "--", "perl", "-e", "my %h; $h{$_ % 999} .= 'x' for 1 .. 20000"])
    run([XHEAP, "record", "-q", "-o", "crash.xht", "--", "perl", "-e", "kill ABRT => $$"], 128 + signal.SIGABRT)
    run([XHEAP, "check", "trace.xht", "--budget", "app.budget", "--update"])
    os.mkdir("profiles")
    for version in ("1.4", "1.5"):
        pushed_files.write("profiles", pushed_files.Stacks([("web!main",)]), [(1, 100, 1, 100)], version=version, host=f"h{version}")


def address():
    """Of a block of trace.xht."""
    rows = run([XHEAP, "dump", "trace.xht", "-allocations", "-format", "csv"]).splitlines()
    return rows[1].split(",")[rows[0].split(",").index("address")]


def try_command(command, pid):
    if "ADDRESS" in command:
        command = command.replace("ADDRESS", address())
    command = re.sub(r"\bPID\b", str(pid), command).replace("PROGRAM ARGS", "perl -e 1").replace("app.py", "-c 1").replace("COMMAND", "record")
    words = [XHEAP, *shlex.split(command)[1:]]
    # Without a file the newest trace here is asked.
    run(words)
    if words[1] == "start":
        run([XHEAP, "stop", SESSION])


def check_commands():
    found = commands()
    if len(found) < 12:
        complaints.append(f"only {len(found)} commands were found: {found}")
    with subprocess.Popen(PROGRAM) as program:
        try:
            for command in found:
                needs_session = re.match(rf"xheap (?:(?:top|query|stop) {SESSION}|(?:why|leaks) -p)", command)
                if needs_session:
                    run([XHEAP, "start", SESSION, "-p", str(program.pid)])
                try_command(command, program.pid)
                if needs_session:
                    run([XHEAP, "stop", SESSION])
        finally:
            program.kill()


def check_links():
    links = re.findall(r"\]\(([^):#]+)\)", TEXT)
    if len(links) < 10:
        complaints.append(f"only {len(links)} links were found")
    complaints.extend(f"{link} is not there" for link in links if not (SOURCE / link).exists())


def check_goals():
    makefile = (SOURCE / "Makefile").read_text()
    for goal in set(re.findall(r"(?:`|^    )make ([a-z][a-z-]*)", TEXT, re.M)):
        if not re.search(rf"^{goal}:", makefile, re.M):
            complaints.append(f"make {goal}: the Makefile has no such goal")


# Image options and autologgers of this test alone.
os.environ["XHEAP_IMAGE_ROOT"] = os.path.abspath("root")
os.mkdir("root")
SESSION_FILES = pathlib.Path(os.environ["XHEAP_RUNTIME_DIR"])
prepare()
check_commands()
check_links()
check_goals()
for complaint in complaints:
    print(complaint)
sys.exit(1 if complaints else 0)
