#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a killed logger has left, damaged anywhere: `xheap recover` makes a trace that can be read, or says why it cannot, and comes to an end."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

XHEAP = os.environ["XHEAP"]
WAIT_SECONDS, LIMIT_SECONDS = 100, 60
ROUNDS = int(os.environ.get("ROUNDS", "120"))
SEED = int(os.environ.get("SEED", "0"))
HEAD_BYTES = 1 << 16      # of a region: what is not a buffer lies at its beginning


def expect(condition, what):
    if not condition:
        sys.exit(what)


def wait_until(what, condition):
    until = time.monotonic() + WAIT_SECONDS
    while not condition():
        expect(time.monotonic() < until, f"not after {WAIT_SECONDS} s: {what}")
        time.sleep(0.01)


def leave_session(trace, *options):
    """A recording whose logger is killed; the session's directory, with the program gone. With options, the recording has ended before."""
    program = "import pathlib, sys, threading; x = [str(i) * 9 for i in range(3000)]; t = threading.Thread(target=lambda: x.extend([b'']))\nt.start(); t.join(); " \
              "pathlib.Path('ready').touch(); sys.stdin.read()"
    runtime = pathlib.Path(os.environ["XHEAP_RUNTIME_DIR"])
    before = {path.parent for path in runtime.rglob("session")}
    recorder = subprocess.Popen([XHEAP, "record", "-q", "--min-buffers", "4", "--max-buffers", "8", "--buffer-size", "64K", "-o", trace, *options, "--", sys.executable,
                                 "-c", program], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, PYTHONMALLOC="malloc"))
    wait_until("the program", lambda: os.path.exists("ready"))
    os.unlink("ready")
    wait_until("the end of recording", lambda: not options or [*runtime.rglob("ended")])
    children = [int(pid) for pid in pathlib.Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split()]
    logger = next(pid for pid in children if os.path.samefile(f"/proc/{pid}/exe", XHEAP))
    os.kill(logger, signal.SIGKILL)
    recorder.stdin.close()
    recorder.wait()
    found = [path.parent for path in runtime.rglob("session") if path.is_file() and path.parent not in before]
    expect(len(found) == 1, f"{found}")
    return found[0]


def damage_text(chance, text):
    lines = text.split(b"\n")
    at = chance.randrange(len(lines))
    name, equals, value = lines[at].partition(b"=")
    kind = chance.randrange(5)
    if kind == 0:
        del lines[at]
    elif kind == 1 and name != b"trace":
        lines[at] = name + equals + chance.choice([b"", b"-1", b"0", b"18446744073709551616", b"9" * 60, b"x" * 20000, b"\xff\xfe\x00", b"%s%n%d"])
    elif kind == 2:
        return text[:chance.randrange(len(text))]
    elif kind == 3:
        lines.insert(at, chance.choice(lines))
    else:
        lines[at] = bytes(chance.choice((byte, chance.randrange(256))) if name != b"trace" else byte for byte in lines[at])
    return b"\n".join(lines)


def damage_region(chance, path):
    size = path.stat().st_size
    kind = chance.randrange(6)
    with open(path, "r+b") as file:
        if kind == 0:
            file.truncate(chance.choice([0, 1, 64, 4095, 4096, size // 2, max(size - 1, 0)]))
            return
        for _ in range(chance.choice([1, 4, 40])):
            at = chance.randrange(min(size, HEAD_BYTES) if chance.random() < 0.7 else size)
            file.seek(at)
            file.write(chance.choice([b"\0" * 8, b"\xff" * 8, chance.randbytes(8), (chance.randrange(64)).to_bytes(4, "little"), chance.randbytes(1)]))


def damage(chance, directory):
    files = sorted(path for path in directory.iterdir() if path.is_file())
    for path in chance.sample(files, chance.choice([1, 1, 2]) if len(files) > 1 else 1):
        what = chance.random()
        if what < 0.05:
            path.unlink()
        elif path.stat().st_size > 1 << 16 or "info" not in path.name and path.name != "session":
            damage_region(chance, path)
        else:
            path.write_bytes(damage_text(chance, path.read_bytes()))


def run(*words):
    return subprocess.run([XHEAP, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS, stdin=subprocess.DEVNULL)


def rounds(chance, left, path, count):
    """How many traces were made."""
    trace, made = pathlib.Path(path).read_bytes(), 0
    for number in range(count):
        copy = pathlib.Path("copy").absolute()
        subprocess.run(["cp", "-r", "--sparse=always", left, copy], check=True)
        damage(chance, copy)
        done = run("recover", "--keep", "-o", "out.xht", str(copy))
        expect(done.returncode in (0, 2), f"round {number}: recover ended with {done.returncode}: {done.stdout[-400:]}")
        expect(done.returncode == 0 or done.stdout.startswith(b"xheap: "), f"round {number}: nothing is said: {done.stdout}")
        if os.path.exists("out.xht"):
            made += 1
            for words in (("info", "out.xht"), ("heap", "out.xht", "-totals")):
                read = run(*words)
                expect(read.returncode == 0, f"round {number}: {words}: {read.returncode}: {read.stdout[-400:]}")
            os.unlink("out.xht")
        expect(pathlib.Path(path).read_bytes() == trace, f"round {number}: the trace itself has changed")
        shutil.rmtree(copy)
    whole = run("recover", "-o", "out.xht", str(left))
    expect(whole.returncode == 0, f"what is not damaged: {whole.stdout}")
    os.unlink("out.xht")
    return made


def main():
    chance, made = random.Random(SEED), 0
    made += rounds(chance, leave_session("r.xht"), "r.xht", ROUNDS - ROUNDS // 3)
    made += rounds(chance, leave_session("ended.xht", "--max-file", "64K"), "ended.xht", ROUNDS // 3)
    print(f"{made} traces, {ROUNDS - made} refused")
    expect(0 < made < ROUNDS, "the damage is of one kind")


main()
