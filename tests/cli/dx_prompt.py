#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The prompt of xheap dx on a terminal: completion by the type of what stands before the dot, and lines that later prompts still know."""
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

XHEAP, BUILD = os.environ["XHEAP"], pathlib.Path(os.environ["BUILD"])
PROMPT, WAIT_SECONDS = "0:000> ", 60
failures = []


class Prompt:
    def __init__(self, trace="plain.xht", columns=250, **settings):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            os.execvpe(XHEAP, [XHEAP, "dx", trace], dict(os.environ, TERM="dumb", **settings))
        self.until(PROMPT)

    def until(self, text, count=1):
        """Read until the text was seen so many times since the last line was sent."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.plain().count(text) < count:
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            data = b""
            if ready:
                try:
                    data = os.read(self.fd, 1 << 16)
                except OSError:
                    pass
            if not data:
                raise SystemExit(f"no {text!r} in {self.plain()!r}")
            self.seen += data.decode(errors="replace")
        return self.plain()

    def answered(self, text):
        """Read until the text and then a prompt were seen: what is typed before would be read by the terminal, not by the prompt."""
        self.until(text)
        deadline = time.monotonic() + WAIT_SECONDS
        while PROMPT not in self.plain().partition(text)[2] and time.monotonic() < deadline:
            if select.select([self.fd], [], [], 0.1)[0]:
                self.seen += os.read(self.fd, 1 << 16).decode(errors="replace")

    def plain(self):
        """Without colours, and without what the cursor went back over."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x07", "", self.seen)

    def type(self, text):
        self.seen = ""
        os.write(self.fd, text.encode())

    def ticks(self):
        """Its processor time so far."""
        return sum(map(int, pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

    def complete(self, beginning, wanted):
        """The line that a Tab makes of its beginning."""
        self.type(beginning + "\t")
        self.until(wanted)
        self.type("\x15")  # Ctrl-U empties the line

    def end(self):
        self.type("quit\n")
        while True:
            try:
                if not os.read(self.fd, 1 << 16):
                    break
            except OSError:
                break
        os.close(self.fd)
        status = os.waitpid(self.pid, 0)[1]
        if status:
            failures.append(f"the prompt ended with status {status}")


COMPLETIONS = [
    ("@$curs", "@$cursession"),
    ("@$cursession.TTD.Da", "@$cursession.TTD.Data"),
    # Of all members that begin so, only one is of a heap call: AllNonError, Any and Average are methods of collections.
    ("@$cursession.TTD.Data.Heap().Where(h => h.Act", "h.Action"),
    ("@$cursession.TTD.Data.Heap().Where(h => h.Size > 5 && h.TimeE", "h.TimeEnd"),
    ("@$cursession.TTD.Data.Heap().GroupBy(h => h.Size).Select(g => new { N = g.Cou", "g.Count("),
    ("@$cursession.TTD.Data.Heap().Select(h => new { Odd = h.Size }).OrderBy(o => o.O", "o.Odd"),
    ("dx -g -r2 @$cursession.TTD.Data.Heap()[2].TimeStart.Se", "TimeStart.Se"),
    ("@$cursession.TTD.Data.Heap().First().Action.ToU", "Action.ToUpper("),
    ("@$cursession.TTD.Data.Heap().GroupBy(h => h.Size).Select(g => g.K", "g.Key"),
    ("@$cursession.TTD.Data.All", "Data.Allocations("),
    ("@$curprocess.TTD.Data.Lar", "Data.Largest("),
    ("@$cursession.TTD.Data.Allocations().First().FreeTh", "FreeThread"),
    ("!pos", "!positions"),
    ("@$cursession.TTD.Data.Heap().OrderBy(h => h.Action, (a, b) => a.ToU", "a.ToUpper("),
    ('@$cursession.TTD.Calls("libc!mal', 'Calls("libc!malloc'),
    ("dx -ext", "dx -extra"),
]


def check_completion():
    prompt = Prompt(HOME=os.path.abspath("home"))
    for beginning, wanted in COMPLETIONS:
        prompt.complete(beginning, wanted)
    # The names of another type are not offered: a position has no Size, a number no member.
    prompt.type("@$cursession.TTD.Data.Heap()[0].TimeStart.\t\t")
    seen = prompt.until("Percent")
    for name in ("Size", "Where", "Action", "FreeThread"):
        if name in seen.replace("TimeStart.", ""):
            failures.append(f"a position is offered {name}: {seen!r}")
    prompt.type("\x15")
    prompt.end()


def history():
    path = pathlib.Path("home/.local/state/xheap/dx-history")
    return path if path.exists() else None


def check_history():
    home = os.path.abspath("home")
    prompt = Prompt(HOME=home)
    prompt.type("1 + 41,d\n")
    prompt.until(" : 42")
    prompt.end()
    path = history()
    if not path or path.stat().st_mode & 0o777 != 0o600 or path.parent.stat().st_mode & 0o777 != 0o700:
        failures.append(f"history: {path}, {path and oct(path.stat().st_mode)}")
        return
    if path.read_text().splitlines() != ["1 + 41,d", "quit"]:
        failures.append(f"history: {path.read_text()!r}")
    prompt = Prompt(HOME=home)
    prompt.type("\x10\x10\n")  # Ctrl-P: the line before quit
    prompt.until(" : 42")
    prompt.end()
    # A file that others may read is theirs no longer; a link is left alone.
    path.chmod(0o644)
    Prompt(HOME=home).end()
    if path.stat().st_mode & 0o777 != 0o600:
        failures.append(f"history: mode {oct(path.stat().st_mode)} stays")
    path.rename("elsewhere")
    before = pathlib.Path("elsewhere").read_text()
    path.symlink_to(os.path.abspath("elsewhere"))
    Prompt(HOME=home).end()
    if pathlib.Path("elsewhere").read_text() != before:
        failures.append("history: a link is written through")
    path.unlink()
    path.write_text("".join(f"{i}\n" for i in range(2500)))
    path.chmod(0o600)
    Prompt(HOME=home).end()
    if path.read_text().splitlines() != [str(i) for i in range(1500, 2500)] + ["quit"]:
        failures.append(f"history: {len(path.read_text().splitlines())} lines, not the last 1000 and quit")
    # Without a home, and with one that cannot be written to, the prompt works.
    Prompt(HOME="").end()
    Prompt(HOME="/proc").end()
    # What no person types is no history.
    subprocess.run([XHEAP, "dx", "plain.xht"], input="1 + 1\n", text=True, env=dict(os.environ, HOME=home), stdout=subprocess.DEVNULL, check=True)
    if path.read_text().count("1 + 1"):
        failures.append("history: it has a line of a pipe")


def check_grid():
    """On a terminal a grid fits it; in a pipe it is as wide as its cells."""
    query = "@$cursession.TTD.Data.Heap()"
    for columns in (40, 80, 250):
        prompt = Prompt(columns=columns, HOME="")
        prompt.type(f"dx -g {query}\n")
        seen = prompt.until(PROMPT).replace("\r", "")
        prompt.end()
        # Indices are whole, and columns that have no room are named.
        header = next(line for line in seen.splitlines() if line.startswith("= ") and "Action" in line)
        left_out = re.search(r"\(columns left out: ([^;]*);", re.sub(r"\n\s+", " ", seen))
        count = header.count(" = ") - 1 + (len(left_out[1].split(", ")) if left_out else 0)
        if "[0x0]" not in seen or "[0xb]" not in seen or count != 8 or (columns == 250) == bool(left_out):
            failures.append(f"a grid on {columns} columns: {count} columns in {seen}")
        widths = {len(line) for line in seen.splitlines() if line.startswith("=")}
        if len(widths) != 1 or max(widths) > columns:
            failures.append(f"a grid on {columns} columns: lines of {sorted(widths)}")
        # A number is whole, and so is the line that names columns without room; handles and flags go first.
        wide = [line for line in seen.splitlines() if len(line) > columns and not line.startswith((PROMPT, "dx -g"))]
        if "..." in seen.replace("[...]", "") or wide:
            failures.append(f"a grid on {columns} columns: a cut number, or wide lines {wide} in {seen}")
        if columns == 80 and not left_out[1].startswith("Heap, Flags"):
            failures.append(f"a grid on 80 columns leaves out {left_out[1]}")
    piped = subprocess.run([XHEAP, "dx", "plain.xht", "-g", query], stdout=subprocess.PIPE, text=True, check=True).stdout
    if "0x7f0000010010" not in piped or "..." in piped:
        failures.append(f"a grid in a pipe is cut: {piped}")


def check_interrupt():
    """Ctrl-C stops a query at once, also one that a plan answers, and the prompt goes on."""
    subprocess.run([BUILD / "tests/golden/make_trace", "random", "random.xht", "3", "3000"], check=True)
    heap = "@$cursession.TTD.Data.Heap()"
    prompt = Prompt(trace="random.xht", HOME="")
    prompt.type(f"{heap}.Count(a => {heap}.Count(b => {heap}.Count(c => c.Size > b.Size) > 0) > 0)\n")
    prompt.until("\n")
    begun = prompt.ticks()
    while prompt.ticks() < begun + 10:
        time.sleep(0.02)
    os.write(prompt.fd, b"\x03")
    prompt.answered("interrupted")
    # Of a line that is typed, Ctrl-C drops what there is, and the variables stay.
    prompt.type("@$kept = 40\n")
    prompt.answered(" : 40")
    prompt.type("@$cursession.TTD.")
    prompt.until("TTD.")
    prompt.type("\x03")
    prompt.answered("^C")
    prompt.type("@$kept + 2,d\n")
    prompt.until(" : 42")
    prompt.end()


def main():
    subprocess.run([BUILD / "tests/golden/make_trace", "plain", "plain.xht"], check=True)
    os.environ.pop("XDG_STATE_HOME", None)
    os.mkdir("home")
    if "libedit" not in subprocess.run(["ldd", XHEAP], stdout=subprocess.PIPE, text=True).stdout:
        print("xheap was built without libedit: its prompt has no completion and no history")
        return 77
    check_history()
    check_completion()
    check_grid()
    check_interrupt()
    print("\n".join(failures) or f"{len(COMPLETIONS)} completions, and lines of earlier prompts")
    return bool(failures)


sys.exit(main())
