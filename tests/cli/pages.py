#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the pages name is there: files, folders, tests, functions of tests; and a file has as many lines as a page says."""
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["SOURCE"])
FOLDERS = ["src", "tests", "include", "bench", "scripts", "docs", "service", "man", "completions", "cull", "examples"]
# A decision tells of its own time, docs/ci.md of files of its reader.
PAGES = [*(SOURCE / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md")), *(path for path in (SOURCE / "docs").glob("*.md") if path.name != "ci.md")]
# NAME.c: one that the reader chooses. TAG: of a boottrace's files.
PLACEHOLDER = re.compile(r"NAME|PART|TAG")


def listed():
    run = subprocess.run([SOURCE / "tests/run", "--build", os.environ["BUILD"], "--list"], stdout=subprocess.PIPE, text=True, check=True)
    # That list has unit tests only when they are built.
    return {*run.stdout.split(), *(f"unit/{path.stem}" for path in (SOURCE / "tests/unit").glob("*.c"))}


def lacking_files(text, names):
    for word in re.findall(r"`([^`\s]+)`", text):
        is_path = re.fullmatch(rf"(?:{'|'.join(FOLDERS)})/[\w./-]+", word)
        is_name = re.fullmatch(r"[\w-]+\.(?:c|h|py|md|ini|sh|map|ld|inc)", word)
        known = (SOURCE / word).exists() if is_path else word in names if is_name else True
        # A program that is built lies where its source does.
        if not known and not PLACEHOLDER.search(word) and not list(SOURCE.glob(f"{word}.*")):
            yield word


def lacking_tests(text, tests):
    """unit/NAME, also with functions: unit/NAME (one, another)."""
    for test, functions in re.findall(r"(?<![\w/.-])((?:unit|live|golden|cli|fuzz)/[\w/]+)(?![\w/]*\.)(?: \(([\w, ]+)\))?", text):
        if (SOURCE / "src" / test).exists():
            continue
        # `tests/run NAME` runs all whose names contain it.
        if not any(name.startswith(test) for name in tests):
            yield test
        sources = "".join(path.read_text() for path in (SOURCE / "tests").glob(f"{test}.*"))
        yield from (f"{test} ({name})" for name in re.findall(r"\w+", functions) if not re.search(rf"\b{name}\b", sources)) if sources else ()


def wrong_counts(text):
    for name, count in re.findall(r"`(src/[\w/]+\.c)`[^.;`]* (\d+) lines", text):
        lines = len((SOURCE / name).read_text().splitlines())
        if abs(lines - int(count)) > lines / 10:
            yield f"{name}: {count} lines, not {lines}"


def main():
    tests, faults, seen = listed(), [], 0
    # Folders are found, not asked of git: a copy of the tree without it is as good.
    names = {path.name for folder in FOLDERS for path in (SOURCE / folder).rglob("*")} | {path.name for path in SOURCE.glob("*")}
    for page in PAGES:
        text = page.read_text()
        seen += len(re.findall(r"`(?:src|tests)/", text))
        faults += [f"{page.relative_to(SOURCE)}: {fault}" for fault in (*lacking_files(text, names), *lacking_tests(text, tests), *wrong_counts(text))]
    if faults or not seen:
        sys.exit("pages name what is not there:\n" + "\n".join(faults))


main()
