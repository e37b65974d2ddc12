#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is installed is built as distributions build: readelf's facts, of each program and library."""
import json
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()


def expect(condition, what):
    if not condition:
        sys.exit(what)


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def options():
    return {row["name"]: row["value"] for row in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())}


def installed():
    """Each ELF file that is installed."""
    for path in json.loads((BUILD / "meson-info/intro-installed.json").read_text()):
        path = pathlib.Path(path)
        if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF":
            yield path


def check(path, is_static):
    expect("DYN" in readelf("-h", path), f"{path}: it has a fixed address")
    segments = readelf("-l", path)
    expect("GNU_RELRO" in segments, f"{path}: relocations stay writable")
    stack, = re.findall(r"GNU_STACK.*", segments)
    expect("RWE" not in stack, f"{path}: an executable stack")
    expect(not re.search(r"LOAD.* RWE ", segments), f"{path}: memory that may be written and executed")
    if not is_static:
        expect("BIND_NOW" in readelf("-d", path), f"{path}: functions are bound late, and their table stays writable")
        symbols = readelf("-s", path)
        expect("__stack_chk_fail" in symbols, f"{path}: no stack protector")
        expect("_chk@" in symbols, f"{path}: no FORTIFY_SOURCE")


def main():
    own = options()
    if own["b_sanitize"] != "none" or own["optimization"] in ("0", "plain"):
        print(f"skipped: a build with sanitizer {own['b_sanitize']}, optimization {own['optimization']}")
        sys.exit(77)
    found = list(installed())
    expect({"xheap", "xheap-images", "xheap-init"} <= {path.name for path in found} and any(".so" in path.name for path in found), f"installed: {found}")
    for path in found:
        check(path, path.name == "xheap-init")
    # A library of a distribution may be built without, and then the whole program has no such note.
    objects = [path for path in BUILD.glob("src/*/*.a.p/*.c.o") if "hosted" not in str(path)]
    expect(len(objects) > 100, f"only {len(objects)} objects")
    for path in objects:
        expect("IBT, SHSTK" in readelf("-n", path), f"{path}: no control-flow protection")


main()
