#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of man/xheap-dx.7 and docs/dx.md are those of the code, and each example of the page runs.

usage: dx_pages.py [--update]   writes the tables anew (BUILD is the build's directory)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build")).resolve()
PROGRAM, MAKER, XHEAP = BUILD / "tests/golden/dx_tables", BUILD / "tests/golden/make_trace", BUILD / "xheap"
PAGE, DOCUMENT = ROOT / "man/xheap-dx.7", ROOT / "docs/dx.md"
MARKS = {PAGE: ("man", '.\\" made from', '.\\" end\n'), DOCUMENT: ("markdown", "<!-- made from", "<!-- end -->\n")}


def renewed(path):
    form, begin, end = MARKS[path]
    text = path.read_text()
    start = text.index("\n", text.index(begin)) + 1
    table = subprocess.run([PROGRAM, form], stdout=subprocess.PIPE, text=True, check=True).stdout
    return text[:start] + table + text[text.index(end, start):]


def check_examples():
    subprocess.run([MAKER, "plain", "app.xht"], check=True)
    environment = dict(os.environ, PATH=f"{XHEAP.parent}:{os.environ['PATH']}")
    examples = re.findall(r"^\$ (.*)$", PAGE.read_text(), re.M) + re.findall(r"^    (xheap dx app.xht .*)$", DOCUMENT.read_text(), re.M)
    if len(examples) < 10:
        yield f"{PAGE.name}: only {len(examples)} examples were found"
    for example in examples:
        run = subprocess.run(["sh", "-c", example.replace("\\e", "\\")], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        if run.returncode or not run.stdout.strip():
            yield f"{example}: status {run.returncode}: {run.stdout.strip()[-300:]}"


def check_differences():
    """Each row of the table of differences: the answer to its query has the text."""
    shutil.copy(ROOT / "tests/golden/traces/c.xht", "c.xht")
    rows = re.findall(r"^\| `(.*)` \| (.*) \| `(.*)` \| .* \|$", DOCUMENT.read_text().split("Where an answer differs")[1].split("\n\n")[1], re.M)
    if len(rows) < 10:
        yield f"{DOCUMENT.name}: only {len(rows)} differences were found"
    for query, _, here in rows:
        run = subprocess.run([XHEAP, "dx", "c.xht", query], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        if here not in run.stdout:
            yield f"{query}: not {here!r}: {run.stdout.strip()[-300:]}"


def check_format():
    for command in (["groff", "-ww", "-mandoc", "-Tutf8", "-z", PAGE], ["man", "--warnings", "-l", PAGE]):
        if not shutil.which(command[0]):
            print(f"not checked by {command[0]}, which is not installed")
            continue
        said = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr.strip()
        if said:
            yield f"{command[0]} says: {said}"


def main():
    complaints = []
    for path in MARKS:
        text = renewed(path)
        if "--update" in sys.argv:
            path.write_text(text)
        elif text != path.read_text():
            complaints.append(f"{path.relative_to(ROOT)}: a table is not that of the code: tests/cli/dx_pages.py --update")
    if "--update" not in sys.argv:
        complaints += [*check_format(), *check_examples(), *check_differences()]
    print("\n".join(complaints) or "the pages have the code's tables; all examples ran, and all differences are as they are told")
    return bool(complaints)


sys.exit(main())
