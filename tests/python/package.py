# SPDX-License-Identifier: MIT
"""What tests of the package share: the package itself, as its wheel has it, the Pythons of this machine, and packages that only tests need."""
import glob
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

SOURCE = pathlib.Path(os.environ.get("SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("BUILD", SOURCE / "build")).resolve()
TRACES = SOURCE / "tests/golden/traces"
OLDER = SOURCE / "tests/older"
SKIP = 77
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
failed = []


def expect(is_so, what):
    if not is_so:
        print(f"FAIL: {what}")
        failed.append(what)


def same(what, seen, wanted):
    expect(seen == wanted, f"{what}: {seen!r}, not {wanted!r}")


def raises(kind, words, work, what):
    """That the work fails with the exception, and that its message has all of the words."""
    try:
        found = work()
    except kind as error:
        expect(all(word in str(error) for word in words), f"{what}: {error!r} has not all of {words}")
        return error
    expect(False, f"{what}: {found!r}, and no {kind.__name__}")


def unpack(folder="package", loads_library=True):
    """The package, made of the tree and unpacked. It is found by `import` then, also in Pythons that this one starts."""
    if loads_library:
        imported = subprocess.run(["nm", "-D", "--undefined-only", BUILD / "src/api/libxheap.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
        if "__asan_" in imported or "__tsan_" in imported:
            print("a library with a sanitizer in it needs a program that has it, too")
            sys.exit(SKIP)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(SOURCE / "python"))
    backend = importlib.import_module("backend")
    sys.path.pop(0)
    folder = os.path.abspath(folder)
    os.makedirs(folder)
    with zipfile.ZipFile(os.path.join(folder, backend.build_wheel(folder))) as wheel:
        wheel.extractall(folder)
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    return folder


def pythons():
    """By version: the interpreters that this machine has, in PATH or as pyenv keeps them; None where there is none."""
    found = {}
    for version in VERSIONS:
        names = [shutil.which(f"python{version}"), *sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}")))]
        # A name that only points to pyenv may point to nothing.
        found[version] = next((name for name in names if name and subprocess.run([name, "-c", "import ctypes"], capture_output=True).returncode == 0), None)
    return found


def xheap(*words):
    """What the command prints."""
    return subprocess.run([os.environ["XHEAP"], *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout


def finish():
    sys.exit(bool(failed))
