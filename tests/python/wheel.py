#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The wheel: for every Python, the same bytes each time, its record right; the source distribution makes the same one; pip installs it without a network."""
import base64
import csv
import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

from package import SOURCE, expect, finish, same, unpack

NAME = "xheap-0.2.0-py3-none-any.whl"


def check_record(path):
    with zipfile.ZipFile(path) as wheel:
        record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
        rows = list(csv.reader(wheel.read(record).decode().splitlines()))
        same("files of the record", sorted(row[0] for row in rows), sorted(wheel.namelist()))
        for name, digest, size in rows:
            if name != record:
                made = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
                same(f"digest and size of {name}", (digest, size), (f"sha256={made}", str(len(wheel.read(name)))))
        expect("xheap/py.typed" in wheel.namelist() and "xheap/_layouts.py" in wheel.namelist(), f"{wheel.namelist()}")


def main():
    folder = pathlib.Path(unpack(loads_library=False))
    backend = sys.modules["backend"]
    found = [path.name for path in folder.glob("*.whl")]
    same("wheels", found, [NAME])
    first = (folder / NAME).read_bytes()
    check_record(folder / NAME)
    os.mkdir("again")
    backend.build_wheel("again")
    expect(pathlib.Path("again", NAME).read_bytes() == first, "a second wheel of the same tree is another one")
    # Without the tree around it.
    with tarfile.open(backend.build_sdist(".")) as archive:
        archive.extractall("source")
    (root,) = pathlib.Path("source").iterdir()
    os.mkdir("of_source")
    subprocess.run([sys.executable, root / "backend.py", "of_source"], check=True, stdout=subprocess.DEVNULL)
    expect(pathlib.Path("of_source", NAME).read_bytes() == first, "the wheel of the source distribution is another one")
    shutil.rmtree("again")
    # Of the folder alone, too little.
    shutil.copytree(SOURCE / "python", "alone/python")
    alone = subprocess.run([sys.executable, "alone/python/backend.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    same("a copy of the folder alone", (alone.returncode, alone.stdout, alone.stderr.count("\n")), (1, "", 1))
    expect("/alone/include/xheap/xheap.h is missing" in alone.stderr and "Type `make wheel` there" in alone.stderr, alone.stderr)
    if importlib.util.find_spec("pip"):
        subprocess.run([sys.executable, "-m", "pip", "--isolated", "install", "--quiet", "--no-index", "--no-deps", "--target", "installed", str(SOURCE / "python")],
                       check=True, stderr=subprocess.STDOUT)
        said = subprocess.run([sys.executable, "-c", "import xheap; print(xheap.__file__, xheap.__version__)"], env={"PYTHONPATH": "installed"},
                              stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        expect(said[0].endswith("installed/xheap/__init__.py") and said[1] == "0.2.0", f"installed by pip: {said}")
    else:
        print("not checked: this Python has no pip")
    finish()


main()
