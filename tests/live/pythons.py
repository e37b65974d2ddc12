# SPDX-License-Identifier: MIT
"""The versions of CPython that live tests run programs in, and packages of PyPI for each. By itself this program installs these (tests/python/packages.py)."""
import functools
import glob
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "python"))
import packages  # noqa: E402

WANTED = HERE / "requirements.txt"
OLDEST, NEWEST = (3, 8), (3, 14)
ASK = "import sys, ctypes, asyncio; print(*sys.version_info[:2], sys.implementation.name, getattr(sys, 'abiflags', ''))"


@functools.lru_cache(maxsize=None)
def interpreters():
    """A path of each version of CPython that is here and that xheap knows."""
    found = {}
    for path in ["/usr/bin/python3", *glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")), *os.environ.get("XHEAP_TEST_PYTHONS", "").split()]:
        said = subprocess.run([path, "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        version, kind = tuple(map(int, said.stdout.split()[:2])), said.stdout.split()[2:]
        if not said.returncode and OLDEST <= version <= NEWEST and kind == ["cpython"]:
            found.setdefault(version, path)
    return found


def environment(path, **more):
    """The environment in which it finds its packages, should they be installed."""
    return dict(os.environ, PYTHONPATH=str(packages.folder(WANTED, path)), **more)


@functools.lru_cache(maxsize=None)
def has(path, module):
    return not subprocess.run([path, "-c", f"import {module}"], env=environment(path), stderr=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    for name in interpreters().values():
        reason = packages.install(WANTED, name)
        if reason:
            print(f"xheap: no packages for live tests with {name}: {reason}", file=sys.stderr)
