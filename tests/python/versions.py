#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tests of the package once more, with every other Python that this machine has, of 3.9 to 3.14: in PATH, or kept by pyenv."""
import os
import pathlib
import subprocess
import sys

from package import SKIP, SOURCE, expect, finish, pythons, unpack

TESTS = ("errors", "record", "rows", "traces")


def main():
    found = pythons()
    own = "%d.%d" % sys.version_info[:2]
    others = {version: path for version, path in found.items() if path and version != own}
    missing = [version for version, path in found.items() if not path and version != own]
    os.environ.update(UNPACKED=unpack(), PYTHONDONTWRITEBYTECODE="1")
    for version, path in others.items():
        for test in TESTS:
            folder = pathlib.Path(f"{version}-{test}")
            folder.mkdir()
            done = subprocess.run([path, SOURCE / f"tests/python/{test}.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            expect(done.returncode == 0, f"{version}: {test}: status {done.returncode}: {done.stdout}")
    print(f"with {', '.join(others) or 'no other Python'}{'; not here: ' + ', '.join(missing) if missing else ''}")
    if not others:
        sys.exit(SKIP)
    finish()


main()
