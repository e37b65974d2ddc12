#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A traced program that crashes leaves a core file as large as untraced: our memory is not in it."""
import os
import pathlib
import resource
import subprocess
import sys

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()
XHEAP = os.environ["XHEAP"]
SLACK_BYTES = 64 << 10  # a page or two more or less, as stacks and heaps happen to end


def core_size(directory, wrapper):
    pathlib.Path(directory).mkdir()
    done = subprocess.run(wrapper + [BUILD / "tests/live/ends", "core"], cwd=directory, stdin=subprocess.DEVNULL)
    cores = [path for path in pathlib.Path(directory).iterdir() if path.name.startswith("core")]
    if done.returncode not in (-11, 139):
        sys.exit(f"{directory}: exit status {done.returncode}")
    return sum(path.stat().st_blocks * 512 for path in cores), len(cores)


def main():
    with open("/proc/sys/kernel/core_pattern") as file:
        pattern = file.read().strip()
    if pattern.startswith("|") or "/" in pattern:
        print(f"core files go elsewhere ({pattern})")
        return 77
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    plain, plain_count = core_size("plain", [])
    traced, traced_count = core_size("traced", [XHEAP, "record", "-o", os.path.abspath("core.xht"), "--"])
    print(f"untraced {plain} bytes in {plain_count} files, traced {traced} in {traced_count}")
    return 0 if plain and plain_count == traced_count and traced <= plain + SLACK_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
