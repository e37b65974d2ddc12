#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/schema/dump-allocations.json and dump-events.json have the columns of the code's list (src/columns), and man/xheap-dump.1 names them in its order.

usage: columns.py [--update]   writes the columns of the schemas anew (BUILD is the build's directory)
"""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build")).resolve()
MANUAL = ROOT / "man/xheap-dump.1"
WIDTH = 170
# Words that dump has beside those of the column.
MORE_WORDS = {"end_kind": ["alive when recording ended"]}


def value_of(column):
    """What a value of the column is, as a schema."""
    if column["type"] == "word":
        return {"enum": column["words"] + MORE_WORDS.get(column["name"], [])}
    value = {"type": "integer"} if column["type"] == "integer" else {"$ref": f"common.json#/$defs/{column['type']}"}
    return {"oneOf": [value, {"const": column["absent_word"]}]} if "absent_word" in column else value


def description_of(column):
    has_key = "absent_word" in column or "absent" not in column
    return column["help"] if has_key else f"{column['help']} Absent: {column['absent']}."


def property_lines(column):
    members = [f'"{key}": {json.dumps(value)}' for key, value in {**value_of(column), "description": description_of(column)}.items()]
    line = f'    "{column["name"]}": {{{", ".join(members)}}}'
    return line if len(line) <= WIDTH else f'    "{column["name"]}": {{\n      ' + ",\n      ".join(members) + "\n    }"


def renewed(text, columns):
    head, rest = text.split('  "properties": {\n')
    rest = rest[rest.index("\n  },\n"):]
    required = [column["name"] for column in columns if "absent" not in column or "absent_word" in column]
    rest = re.sub(r'"required": \[.*\]', f'"required": {json.dumps(required)}', rest)
    return head + '  "properties": {\n' + ",\n".join(map(property_lines, columns)) + rest


def names_of_manual(source):
    section = re.search(rf"^\.Sh COLUMNS OF {source.upper()}\n(.*?)^\.Sh", MANUAL.read_text(), re.MULTILINE | re.DOTALL)[1]
    return [name for line in re.findall(r"^\.It Li (.*)$", section, re.MULTILINE) for name in line.split(" , ")]


def main():
    listed = json.loads(subprocess.run([BUILD / "tests/golden/column_tables"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    failures = []
    for source, columns in listed.items():
        dumped = [column for column in columns if column["is_dumped"]]
        path = ROOT / f"docs/schema/dump-{source}.json"
        text = renewed(path.read_text(), dumped)
        if "--update" in sys.argv:
            path.write_text(text)
        elif text != path.read_text():
            failures.append(f"{path.relative_to(ROOT)} has not the columns of src/columns: tests/cli/columns.py --update")
        names = [column["name"] for column in dumped]
        if names_of_manual(source) != names:
            failures.append(f"{MANUAL.relative_to(ROOT)} has columns of {source} {names_of_manual(source)}, the code {names}")
    print("\n".join(failures) if failures else f"{sum(map(len, listed.values()))} columns")
    return bool(failures)


sys.exit(main())
