# SPDX-License-Identifier: MIT
"""The tools that are compared. A row of TOOLS is a name, how it runs a command, and what it tells about the recording."""
import glob
import json
import os
import shutil
import subprocess

# The distribution's: a version manager's python is a shell script first.
PYTHON = next(path for path in ("/usr/bin/python3", shutil.which("python3")) if path and os.path.exists(path))
HEAPTRACK_BYTES = 8 << 30   # its interpreter can take all memory of the machine

class Tool:
    """text: one line; wrap(out, command): what to run; told(out): what the tool says; is_slow: once, with --all; of: the workloads that it is for, all if there are none."""

    def __init__(self, name, text, wrap, environment=None, base=None, told=None, found=lambda: True, is_slow=False, of=()):
        self.name = name
        self.text = text
        self.wrap = wrap
        self.environment = environment or (lambda out: {})
        self.base = base or {}
        self.told = told or (lambda out: {})
        self.found = found
        self.is_slow = is_slow
        self.of = of


def xheap_told(path, out):
    """What the trace says of its session; nothing where there is no trace."""
    answer = subprocess.run([path, "info", out + "/trace.xht", "--format", "json"], capture_output=True, text=True)
    if answer.returncode != 0:
        return {}
    info = json.loads(answer.stdout)
    cost = info["cost"]
    recorded = info["event_count"] + info.get("dropped", {}).get("events", 0)
    return {"events": recorded, "lost": info["lost_events"], "truncated": info["truncated_stacks"],
            "logger": cost["logger_cpu_us"] / 1e6, "waits": cost["waits"], "waited": cost["wait_us"] / 1e6}


def xheap(name, text, path, options, is_slow=False, of=()):
    return Tool(name, text, lambda out, command: [path, "record", "-o", out + "/trace.xht", *options, "--", *command],
                told=lambda out: xheap_told(path, out), found=lambda: os.access(path, os.X_OK), is_slow=is_slow, of=of)


def library(name):
    return next(iter(glob.glob(f"/usr/lib/*/{name}") + glob.glob(f"/usr/lib/{name}") + glob.glob(f"/usr/lib/*/*/{name}")), "")


def heaptrack_wrap(out, command):
    return ["prlimit", f"--as={HEAPTRACK_BYTES}", "heaptrack", "-o", out + "/heaptrack", *command]


def memray(name, text, options, of):
    """In the command's own Python, which needs memray, perhaps by PYTHONPATH."""
    return Tool(name, text, lambda out, command: [command[0], "-m", "memray", "run", "-q", "--native", *options, "-o", out + "/memray", *command[1:]],
                found=lambda: not subprocess.run([PYTHON, "-c", "import memray"], stderr=subprocess.DEVNULL).returncode, is_slow=True, of=of)


def tools(path, extra):
    tcmalloc, preload = library("libtcmalloc.so.4"), library("libheaptrack_preload.so")
    return [
        xheap("xheap", "every event, both times, stacks on all", path, extra),
        xheap("xheap-flight", "as xheap, the newest 64 MiB in memory, written out at the end", path,
              ["--file-mode", "flight", "--max-file", "64M", *extra], is_slow=True),
        xheap("xheap-allocs", "stacks on allocations only", path, ["--stackwalk", "HeapAlloc+HeapRealloc", *extra], is_slow=True),
        xheap("xheap-sample", "one byte in 512K asked for", path, ["--sample", "512K", *extra], is_slow=True),
        xheap("xheap-no-stacks", "every event, both times, no stacks", path, ["--stackwalk", "none", *extra], is_slow=True),
        xheap("xheap-objects", "--python-objects: Python's objects, too", path, ["--python-objects", *extra], is_slow=True, of=("objects",)),
        memray("memray", "stacks of Python and C on allocations only", [], ("python", "objects")),
        memray("memray-objects", "the same of Python's objects, too", ["--trace-python-allocators"], ("objects",)),
        Tool("tracemalloc", "Python's own, 25 frames of Python; nothing is written", lambda out, command: [command[0], "-X", "tracemalloc=25", *command[1:]],
             is_slow=True, of=("python", "objects")),
        Tool("heaptrack", "as it comes: stacks on allocations only, no times", heaptrack_wrap, found=lambda: shutil.which("heaptrack")),
        Tool("heaptrack-null", "its part in the process only: output to /dev/null", lambda out, command: list(command),
             environment=lambda out: {"LD_PRELOAD": preload, "DUMP_HEAPTRACK_OUTPUT": "/dev/null"}, found=lambda: preload, is_slow=True),
        Tool("gperftools", "HEAPPROFILE, against tcmalloc without it", lambda out, command: list(command),
             environment=lambda out: {"LD_PRELOAD": tcmalloc, "HEAPPROFILE": out + "/profile"}, base={"LD_PRELOAD": tcmalloc},
             found=lambda: tcmalloc, is_slow=True),
        Tool("dhat", "valgrind's heap profiler", lambda out, command: ["valgrind", "--tool=dhat", f"--dhat-out-file={out}/dhat", *command],
             found=lambda: shutil.which("valgrind"), is_slow=True),
    ]
