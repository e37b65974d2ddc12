#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ten servers lose something at five places each, one after the other, beside caches: `xheap leaks -p` names each place among the first three, and hardly anything else.

usage: leaking_servers.py [TEST...]        SOAK=1: 1,000 looks at one of them
"""
import json
import os
import pathlib
import re
import subprocess
import time

from live import SOAK, SOURCE, XHEAP, expect, run_tests, stop_session, told, xheap

CODE = SOURCE / "tests/live/programs/losing_server.cc"
KINDS = re.findall(r'\{"(\w+)", step_\w+\}', CODE.read_text())
PLACES = "abcde"
WRONG_MOST = 1
LOOKS = 1000


class Server:
    """One of them, which a session records."""

    def __init__(self, kind):
        self.kind = kind
        self.process = subprocess.Popen(["./losing_server", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask("x")
        xheap("start", f"losing-{kind}", "-p", self.process.pid, "-o", f"{kind}.xht")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop_session(f"losing-{self.kind}")
        self.process.kill()
        self.process.communicate()

    def ask(self, letter):
        self.process.stdin.write(letter.encode())
        self.process.stdin.flush()
        expect(self.process.stdout.read(1) == letter.encode(), f"{self.kind} does not answer")

    def look(self):
        """The rows of lost blocks, each with the function that lost them."""
        run = subprocess.run([XHEAP, "leaks", "-p", str(self.process.pid), "-format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect(run.returncode in (0, 1), f"{self.kind}: status {run.returncode}: {run.stderr}")
        process = json.loads(run.stdout)["processes"][0]
        rows = [row for row in process["rows"] if row["state"] in ("lost", "indirect")]
        for row in rows:
            row["by"] = next((frame["symbol"] for frame in row["stack"] if frame.get("symbol", "").startswith("lose_")), "")
        return process, rows


def build():
    subprocess.run(["c++", "-O1", "-w", "-g", "-pthread", "-fno-builtin", "-o", "losing_server", CODE], check=True)


def seeded():
    """Each loss is found by the next look, among the first three of what was not lost before; of all other stacks, one at most is named."""
    build()
    wrong, took = {}, []
    for kind in KINDS:
        with Server(kind) as server:
            for i, place in enumerate(PLACES):
                server.ask(place)
                began = time.monotonic()
                _, rows = server.look()
                took.append(time.monotonic() - began)
                before = {f"lose_{other}" for other in PLACES[:i]}
                names = [row["by"] for row in rows if row["by"] not in before]
                expect(f"lose_{place}" in names[:3], f"{kind}: lose_{place} is not among {names[:3]}")
                wrong.update({(kind, json.dumps(row["stack"])): row for row in rows if not row["by"]})
    expect(len(wrong) <= WRONG_MOST, f"{len(wrong)} stacks have lost nothing: {[(key[0], row['count'], row['state'], [frame.get('symbol') for frame in row['stack']]) for key, row in wrong.items()]}")
    return f"{len(took)} losses in {len(KINDS)} servers, {len(wrong)} wrong, at most {max(took):.1f} s"


def unharmed():
    """A server that is looked at all the time goes on as before: it answers, has no file more, and no call is lost."""
    build()
    with Server("used") as server:
        files = os.listdir(f"/proc/{server.process.pid}/fd")
        pauses = []
        for i in range(LOOKS if SOAK else 10):
            process, rows = server.look()
            expect(not rows, f"look {i}: {rows}")
            pauses.append(process["pause_us"])
            server.ask("x")
        expect(os.listdir(f"/proc/{server.process.pid}/fd") == files, "files are left open in the server")
        expect("TracerPid:\t0\n" in pathlib.Path(f"/proc/{server.process.pid}/status").read_text(), "the server is still traced")
    facts = told("info", "used.xht")
    expect(facts["lost_events"] == 0, f"{facts['lost_events']} events are lost")
    return f"{len(pauses)} looks, median pause {sorted(pauses)[len(pauses) // 2] / 1000:.1f} ms"


if __name__ == "__main__":
    raise SystemExit(run_tests(seeded, unharmed))
