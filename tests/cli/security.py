#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each test that docs/security.md names behind a promise is there, and so is the function of it."""
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SOURCE"])


def main():
    text = (SOURCE / "docs/security.md").read_text()
    listed = subprocess.run([SOURCE / "tests/run", "--build", os.environ["BUILD"], "--list"], stdout=subprocess.PIPE, text=True, check=True)
    # That list has unit tests only when they are built.
    tests, lacking = {*listed.stdout.split(), *(f"unit/{path.stem}" for path in (SOURCE / "tests/unit").glob("*.c"))}, []
    named = re.findall(r"\b((?:unit|live|cli|fuzz)/[\w/]+)(?: \(([\w, ]+)\))?", text)
    for test, functions in named:
        sources = "".join(path.read_text() for path in (SOURCE / "tests").glob(f"{test}.*"))
        lacking += [test] if test not in tests else []
        lacking += [f"{test} ({name})" for name in re.findall(r"\w+", functions) if not re.search(rf"\b{name}\b", sources)]
    if lacking or not named:
        sys.exit(f"docs/security.md names tests that are not there: {lacking}")


main()
