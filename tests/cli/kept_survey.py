#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a report finds by passes over all allocations is kept in the index: later reports say the same, byte for byte, and read less. What is damaged, or was found
for another question, is not taken."""
import glob
import os
import pathlib
import shutil
import struct
import subprocess
import sys

XHEAP, MAKE_TRACE = os.environ["XHEAP"], os.path.join(os.environ["BUILD"], "tests/golden/make_trace")
TESTS = pathlib.Path(os.environ["SOURCE"], "tests")
CACHE = pathlib.Path("cache").absolute()
ENVIRONMENT = dict(os.environ, XDG_CACHE_HOME=str(CACHE), XHEAP_INDEX_EVENTS="1")
# Each has another key, but for the first two, and what is kept for one is of no use to the next.
QUESTIONS = (("-more",), ("-format", "json"), ("-noDefaultCull",), ("-shortLived", "1ms"), ("-top", "1"))
# The last fields of the head (src/table/index_file.h): key, place, size and checksum of each answer, and the head's own. The findings are the second answer.
ANSWER, ANSWERS, FINDINGS = struct.Struct("<4Q"), 5, 1
failed = []


def expect(is_so, what):
    if not is_so:
        failed.append(what)


def bytes_read():
    """By this process and those that it waited for."""
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


def report(trace, *words):
    before = bytes_read()
    done = subprocess.run([XHEAP, "report", trace, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    expect(done.returncode == 0, f"{trace} {words}: status {done.returncode}: {done.stderr}")
    return done.stdout, done.stderr, bytes_read() - before


def index():
    found = glob.glob(f"{CACHE}/xheap/indexes/*")
    expect(len(found) == 1, f"indexes: {found}")
    return found[0]


def kept(path):
    """Where the index at the path has the findings: the place and the size of them; a size of 0: it has none."""
    with open(path, "rb") as file:
        head_bytes = struct.unpack("<8sI", file.read(12))[1]
        file.seek(head_bytes - 8 - (ANSWERS - FINDINGS) * ANSWER.size)
        return ANSWER.unpack(file.read(ANSWER.size))[1:3]


def damage(path):
    place, size = kept(path)
    with open(path, "r+b") as file:
        file.seek(place + size // 2)
        byte = file.read(1)[0]
        file.seek(place + size // 2)
        file.write(bytes([byte ^ 0x55]))


def check_trace(trace):
    shutil.rmtree(CACHE, ignore_errors=True)
    plain, _, _ = report(trace, "-noIndex")
    first, said, _ = report(trace)
    expect("made an index" in said, f"{trace}: no index: {said}")
    expect(kept(index())[1] > 0, f"{trace}: nothing is kept")
    second, said, read_second = report(trace)
    expect(not said, f"{trace}: the second report says {said}")
    damage(index())
    third, said, read_third = report(trace)
    expect(not said, f"{trace}: after the damage it says {said}")
    expect(read_second < read_third, f"{trace}: {read_second} bytes are read with findings, {read_third} without")
    fourth, _, read_fourth = report(trace)
    expect(read_fourth < read_third, f"{trace}: {read_fourth} bytes are read when it was mended, {read_third} without findings")
    for name, text in (("first", first), ("second", second), ("third", third), ("fourth", fourth)):
        expect(text == plain, f"{trace}: the {name} report is another one")


def check_questions(trace):
    """Whatever was kept before."""
    for words in QUESTIONS * 2:
        plain, with_index = report(trace, "-noIndex", *words)[0], report(trace, *words)[0]
        expect(plain == with_index, f"{trace} {words}: another report")


def check_filtered():
    """A question about some of the blocks keeps nothing."""
    shutil.rmtree(CACHE, ignore_errors=True)
    report("random.xht", "-size", "1", "64")
    report("random.xht", "-range", "0", "100")
    expect(kept(index())[1] == 0, "what some blocks have is kept")


def check_beside_the_page():
    """What the page of xheap view keeps, and the findings, are there together."""
    shutil.rmtree(CACHE, ignore_errors=True)
    report("random.xht")
    before = kept(index())
    done = subprocess.run([XHEAP, "report", "random.xht", "-format", "html", "-o", "page.html"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    expect(done.returncode == 0, f"the page: {done.stderr}")
    expect(kept(index()) == before, "the page has taken the place of the findings")


def main():
    subprocess.run([MAKE_TRACE, "random", "random.xht", "3"], check=True)
    subprocess.run([MAKE_TRACE, "python_spread", "spread.xht"], check=True)
    traces = ["random.xht", "spread.xht", *sorted(glob.glob(f"{TESTS}/golden/traces/*.xht")), *sorted(glob.glob(f"{TESTS}/older/*.xht"))]
    for trace in traces:
        local = os.path.basename(trace)
        if trace != local:
            shutil.copyfile(trace, local)
        if "made an index" in subprocess.run([XHEAP, "report", local], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=ENVIRONMENT).stderr:
            check_trace(local)
            check_questions(local)
        shutil.rmtree(CACHE, ignore_errors=True)
    check_filtered()
    check_beside_the_page()
    for what in failed:
        print(what)
    print(f"{len(traces)} traces")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
