#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the package `xheap` (PEP 517): one wheel for every Python from 3.9 on, and the source distribution.

usage: backend.py [FOLDER]        writes the wheel to FOLDER (.) and prints its path

The layouts of libxheap's structs are made here, of the header of the tree. A source distribution has them already, for it has no header.
"""
import base64
import hashlib
import io
import os
import pathlib
import re
import sys
import tarfile
import zipfile

import layouts

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parent / "include/xheap/xheap.h"
NAME = "xheap"
TAG = "py3-none-any"
# Times in archives are all the same, so that the same tree gives the same bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)
METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Heap traces of Linux programs: reports, rows and recordings by libxheap
License: MIT
Requires-Python: >=3.9
Provides-Extra: sql
Requires-Dist: duckdb; extra == "sql"
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3 :: Only
Classifier: Typing :: Typed

{description}
"""


def version():
    """That of the tree; of a source distribution, its own."""
    if HEADER.exists():
        return re.search(r"^project\([^)]*?version: '([^']+)'", (HERE.parent / "meson.build").read_text(), re.M)[1]
    if (HERE / "PKG-INFO").exists():
        return re.search(r"^Version: (.+)$", (HERE / "PKG-INFO").read_text(), re.M)[1]
    raise SystemExit(f"xheap: {HEADER} is missing: this folder needs xheap's tree around it (and pip 21.3 or later). Type `make wheel` there, and install build/xheap-VERSION-{TAG}.whl")


def metadata():
    description = re.search(r'"""(.*?)"""', (HERE / NAME / "__init__.py").read_text(), re.S)[1].strip()
    return METADATA.format(name=NAME, version=version(), description=description)


def package():
    """The files of the package: their paths and contents, in one order."""
    files = {f"{NAME}/{path.name}": path.read_bytes() for path in sorted((HERE / NAME).iterdir()) if path.suffix == ".py" or path.name == "py.typed"}
    if HEADER.exists():
        files[f"{NAME}/_layouts.py"] = layouts.made(HEADER).encode()
    return dict(sorted(files.items()))


def license_text():
    return next(path for path in (HERE.parent / "LICENSE", HERE / "LICENSE") if path.exists()).read_bytes()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = f"{NAME}-{version()}.dist-info"
    files = {**package(), f"{folder}/LICENSE": license_text(), f"{folder}/METADATA": metadata().encode(),
             f"{folder}/entry_points.txt": f"[pytest11]\n{NAME} = {NAME}.pytest_plugin\n".encode(),
             f"{folder}/WHEEL": f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: true\nTag: {TAG}\n".encode()}
    record = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},{len(content)}\n" for path, content in files.items()]
    files[f"{folder}/RECORD"] = "".join([*record, f"{folder}/RECORD,,\n"]).encode()
    name = f"{NAME}-{version()}-{TAG}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return name


def build_sdist(sdist_directory, config_settings=None):
    folder = f"{NAME}-{version()}"
    files = {**package(), "PKG-INFO": metadata().encode(), "LICENSE": license_text(),
             **{path: (HERE / path).read_bytes() for path in ("backend.py", "layouts.py", "pyproject.toml")}}
    with tarfile.open(os.path.join(sdist_directory, f"{folder}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return f"{folder}.tar.gz"


if __name__ == "__main__":
    to = sys.argv[1] if len(sys.argv) > 1 else "."
    print(os.path.join(to, build_wheel(to)))
