#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What people read stays readable: names of any length take a line of text at most, and whoever interrupts a reading finds the line empty."""
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios

XHEAP = os.environ["XHEAP"]
NAME_BYTES, LINE_COLUMNS = 20000, 100
EVENTS = 3000000
CLEAR = b"\r\x1b[K"


def expect(condition, what):
    if not condition:
        sys.exit(what)


def xheap(*words):
    return subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, check=True, text=True).stdout


def build(name, source):
    with open(f"{name}.c", "w") as file:
        file.write(source)
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", name, f"{name}.c"], check=True)
    subprocess.run([XHEAP, "record", "-q", "-o", f"{name}.xht", f"./{name}"], check=True)


def check_names():
    long_name = "f" + "o" * NAME_BYTES
    build("names", f"""#include <stdlib.h>
__attribute__((noinline)) void *{long_name}(size_t n) {{ void *p = malloc(n); __asm__ volatile("" : : "r"(p)); return p; }}
int main(void) {{ for (int i = 0; i < 100; i++) {long_name}(50); return 0; }}
""")
    for words in (("heap", "-stacks"), ("heap", "-frames"), ("heap", "-tree"), ("heap", "-callers", "main"), ("heap", "-chains"), ("report",)):
        text = xheap(words[0], "names.xht", *words[1:])
        longest = max(map(len, text.splitlines()))
        expect(longest <= LINE_COLUMNS and ("…" in text or "..." in text or words[-1] in ("main", "-chains")), f"{words}: a line of {longest} characters")
    found = json.loads(xheap("heap", "names.xht", "-frames", "-format", "json"))["actions"][0]["rows"][0]["frame"]["symbol"]
    expect(found == long_name, f"JSON has {len(found)} characters of the name")
    expect(long_name in xheap("heap", "names.xht", "-frames", "-format", "csv"), "CSV has not the whole name")


def on_terminal(columns, *words):
    """What the command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([XHEAP, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=dict(os.environ, PAGER="cat"))
    os.close(theirs)
    text = b""
    while more := read_terminal(ours):
        text += more
    os.close(ours)
    process.wait()
    return text.decode().replace("\r\n", "\n")


def read_terminal(fd):
    try:
        return os.read(fd, 1 << 16)
    except OSError:  # nobody has the terminal open any more
        return b""


def check_lines():
    """Messages and help are broken at blanks; the words stay, and so do examples, which are typed as they stand."""
    path = "/nowhere/" + "/".join(["directory"] * 9) + ".xht"
    message = on_terminal(60, "info", "there", "are", "many", "words", "that", "no", "trace", "has", "as", "its", "name")
    for text, plain in ((message, on_terminal(300, "info", "there", "are", "many", "words", "that", "no", "trace", "has", "as", "its", "name")),
                        (on_terminal(60, "info", path), on_terminal(300, "info", path))):
        expect(text.split() == plain.split(), f"other words on a narrow terminal:\n{text}{plain}")
    expect(path in on_terminal(60, "info", path), "a path is cut")
    message = on_terminal(60, "start", "a/b")
    expect(max(map(len, message.splitlines())) <= 60 < len(" ".join(message.split())), f"not broken: {message}")
    commands = [line.split()[0] for line in xheap("help").splitlines() if line.startswith("  ") and not line.startswith("  xheap")]
    expect("autologger" in commands, f"commands: {commands}")
    for words in [("help",), *(("help", command) for command in commands)]:
        narrow, wide = on_terminal(60, *words), on_terminal(150, *words)
        expect(narrow.split() == wide.split(), f"{words}: other words:\n{narrow}")
        prose = [line for line in narrow.splitlines() if not line.startswith("  xheap")]
        expect(all(len(line) <= 60 or line.startswith(" ") for line in prose), f"{words}: too wide:\n{narrow}")


def check_interrupt():
    build("events", f"""#include <stdlib.h>
int main(void) {{ for (int i = 0; i < {EVENTS // 2}; i++) {{ void *p = malloc(50); __asm__ volatile("" : : "r"(p)); free(p); }} return 0; }}
""")
    ours, theirs = pty.openpty()
    process = subprocess.Popen([XHEAP, "heap", "events.xht", "-totals"], stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True,
                               env=dict(os.environ, XHEAP_INDEX_EVENTS="none"))
    os.close(theirs)
    seen = b""
    while True:
        try:
            more = os.read(ours, 1 << 16)
        except OSError:
            break
        if not more:
            break
        if b"%" in more and b"%" not in seen:
            process.send_signal(signal.SIGINT)
        seen += more
    status = process.wait()
    if b"%" not in seen or status == 0:
        return  # the machine is too fast for a line
    expect(status == -signal.SIGINT, f"status {status}")
    expect(seen.endswith(CLEAR), f"the line is left: {seen[-40:]}")


check_names()
check_lines()
check_interrupt()
