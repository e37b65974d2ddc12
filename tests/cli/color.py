#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports are coloured on a terminal that takes it, and nowhere else; without the colours they are the same text."""
import os
import pty
import re
import subprocess
import sys

XHEAP = os.environ["XHEAP"]
COLOR = re.compile("\x1b\\[[0-9;]*m")
failed = 0


def expect(condition, text):
    global failed
    if not condition:
        print(text)
        failed += 1


def environment(**changes):
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LESS", "PAGER", "TERM")}
    return {**kept, "TERM": "xterm", **changes}


def on_terminal(words, **changes):
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([XHEAP, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL, env=environment(**changes))
    os.close(theirs)
    text = b""
    while True:
        try:
            more = os.read(ours, 1 << 16)
        except OSError:  # nobody has the terminal open any more
            break
        if not more:
            break
        text += more
    os.close(ours)
    expect(process.wait() == 0, f"{words}: status {process.returncode}")
    return text.decode().replace("\r\n", "\n")


def piped(words):
    return subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), text=True, check=True).stdout


def main():
    subprocess.run([os.path.join(os.environ["BUILD"], "tests/golden/make_trace"), "losses", "losses.xht"], check=True)
    reports = [["heap", "losses.xht", "-stacks", "-frames", "stc", "-tree", "-totals"], ["report", "losses.xht"]]
    with open("a.budget", "w") as budget:
        budget.write("peak <= 1T\nbytes in nowhere <= 3\n")
    reports.append(["check", "losses.xht", "--budget", "a.budget", "--allow-incomplete"])
    for words in reports:
        plain = piped(words)
        expect(not COLOR.search(plain), f"{words}: colours in a pipe")
        colored = on_terminal(words, PAGER="cat")
        expect(COLOR.search(colored), f"{words}: no colours on a terminal")
        if words[0] == "heap":  # a report's width is the terminal's
            expect(COLOR.sub("", colored) == plain, f"{words}: another text on a terminal:\n{COLOR.sub('', colored)}")
        if words[0] != "check":
            narrow = words + ["-width", "60"]
            expect(COLOR.sub("", on_terminal(narrow, PAGER="cat")) == piped(narrow), f"{narrow}: colours change the text of a narrow terminal")
        for line in colored.splitlines():
            begun = [code for code in COLOR.findall(line)]
            expect(not begun or begun[-1] == "\x1b[0m", f"{words}: a colour goes on behind its line: {line!r}")
        expect(any(line.startswith("\x1b[33m") and ("lost" in line or "missing" in line) for line in colored.splitlines()), f"{words}: losses do not stand out")
        for changes in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"LESS": "F"}):
            expect(not COLOR.search(on_terminal(words, PAGER="cat", **changes)), f"{words}: colours with {changes}")
    expect("\x1b" not in on_terminal(["heap", "losses.xht", "-format", "json"]), "colours in JSON")
    return failed


if __name__ == "__main__":
    sys.exit(main() != 0)
