#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""xheap-images has what a watcher and its loggers need, and nothing by which traces are read: neither libraries nor code. It runs as root all the time."""
import json
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()
COMMAND, WATCHER = BUILD / "xheap", BUILD / "xheap-images"
# zstd: traces are compressed. Zydis: loggers patch code.
LIBRARIES = {"libzstd", "libxxhash", "libZydis", "libinih", "libc", "ld-linux-x86-64"}
OF_READERS = re.compile(r"^(action|budget|cull|dx|heap_window|plan|query|symbols|match|index_file)_")


def expect(condition, what):
    if not condition:
        sys.exit(what)


def run(*words):
    return subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout


def libraries(path):
    return {name.partition(".so")[0] for name in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))}


def functions(path):
    return {line.split()[2] for line in run("nm", "--defined-only", path).splitlines() if line.split()[1] in "tT"}


def shared_names():
    """Functions of ours that a library which is linked into the command has by the same name: the linker takes either."""
    library = run("cc", "-print-file-name=libiberty.a").strip()
    theirs = {line.split()[0] for line in run("nm", "-gP", "--defined-only", library).splitlines() if len(line.split()) > 1}
    expect("cplus_demangle" in theirs, f"{library} has no names")
    ours = set()
    for archive in BUILD.glob("src/*/*.a"):
        ours.update(line.split()[0] for line in run("nm", "-gP", "--defined-only", archive).splitlines() if len(line.split()) > 1)
    expect("heap_names_shorten" in ours, "no names of ours are found")
    return ours & theirs


def sections_bytes(path):
    """Of code and data, without what debuggers read."""
    return sum(int(number) for number in run("size", path).splitlines()[1].split()[:2])


def main():
    options = {row["name"]: row["value"] for row in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())}
    if options["b_sanitize"] != "none":
        print(f"skipped: sanitizer {options['b_sanitize']} has libraries of its own")
        sys.exit(77)
    more = libraries(WATCHER) - LIBRARIES
    expect(not more, f"{WATCHER} needs {sorted(more)}")
    expect({"libdw", "libelf"} <= libraries(COMMAND), f"{COMMAND} needs {sorted(libraries(COMMAND))}")
    found, all_of_command = sorted(filter(OF_READERS.match, functions(WATCHER))), functions(COMMAND)
    expect(not found, f"{WATCHER} has {found[:10]}")
    expect("keeper_run" in functions(WATCHER) and "keeper_run" not in all_of_command, "the keeper is not only in the watcher's program")
    expect(len(list(filter(OF_READERS.match, all_of_command))) > 50, "functions of readers have other names")
    expect(not shared_names(), f"libiberty has these, too: {sorted(shared_names())}")
    own, whole = sections_bytes(WATCHER), sections_bytes(COMMAND)
    expect(own < whole / 2, f"{own} bytes of code and data, of {whole}")


main()
