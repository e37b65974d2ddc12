# SPDX-License-Identifier: MIT
"""The tools that are compared. A row of TOOLS is a name, how it runs a command, and what it tells about the recording."""
import glob
import os
import re
import shutil

HEAPTRACK_BYTES = 8 << 30   # its interpreter can take all memory of the machine
SUMMARY = {
    "events": (r"(\d+) events of", int),
    "lost": (r"(\d+) lost", int),
    "truncated": (r"(\d+) stacks truncated", int),
    "logger": (r"logger ([\d.]+) s of CPU", float),
    "waits": (r"(\d+) waits", int),
    "waited": (r"\d+ waits \(([\d.]+) s\)", float),
}


class Tool:
    """text: one line; wrap(out, command): what to run; told(out, run): what the tool says; is_slow: once, with --all."""

    def __init__(self, name, text, wrap, environment=None, base=None, told=None, found=lambda: True, is_slow=False):
        self.name = name
        self.text = text
        self.wrap = wrap
        self.environment = environment or (lambda out: {})
        self.base = base or {}
        self.told = told or (lambda out, run: {})
        self.found = found
        self.is_slow = is_slow


def xheap_told(out, run):
    told = {}
    for key, (pattern, convert) in SUMMARY.items():
        match = re.search(pattern, run.stderr)
        if match:
            told[key] = convert(match.group(1))
    return told


def xheap(name, text, path, options, is_slow=False):
    return Tool(name, text, lambda out, command: [path, "record", "-o", out + "/trace.xht", *options, "--", *command],
                told=xheap_told, found=lambda: os.access(path, os.X_OK), is_slow=is_slow)


def library(name):
    return next(iter(glob.glob(f"/usr/lib/*/{name}") + glob.glob(f"/usr/lib/{name}") + glob.glob(f"/usr/lib/*/*/{name}")), "")


def heaptrack_wrap(out, command):
    return ["prlimit", f"--as={HEAPTRACK_BYTES}", "heaptrack", "-o", out + "/heaptrack", *command]


def tools(path, extra):
    tcmalloc, preload = library("libtcmalloc.so.4"), library("libheaptrack_preload.so")
    return [
        xheap("xheap", "every event, both times, stacks on all", path, extra),
        xheap("xheap-allocs", "stacks on allocations only", path, ["--stackwalk", "HeapAlloc+HeapRealloc", *extra], is_slow=True),
        xheap("xheap-no-stacks", "every event, both times, no stacks", path, ["--stackwalk", "none", *extra], is_slow=True),
        Tool("heaptrack", "as it comes: stacks on allocations only, no times", heaptrack_wrap, found=lambda: shutil.which("heaptrack")),
        Tool("heaptrack-null", "its part in the process only: output to /dev/null", lambda out, command: list(command),
             environment=lambda out: {"LD_PRELOAD": preload, "DUMP_HEAPTRACK_OUTPUT": "/dev/null"}, found=lambda: preload, is_slow=True),
        Tool("gperftools", "HEAPPROFILE, against tcmalloc without it", lambda out, command: list(command),
             environment=lambda out: {"LD_PRELOAD": tcmalloc, "HEAPPROFILE": out + "/profile"}, base={"LD_PRELOAD": tcmalloc},
             found=lambda: tcmalloc, is_slow=True),
        Tool("dhat", "valgrind's heap profiler", lambda out, command: ["valgrind", "--tool=dhat", f"--dhat-out-file={out}/dhat", *command],
             found=lambda: shutil.which("valgrind"), is_slow=True),
    ]
