#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each table of fields (src/base/list_field.h) with keys says in its comment which object of docs/schema it writes. The schema has these keys, in this order, with
these units, and requires those that are always known. What the comment names behind "but" is written by other code. Rows may come from a list,
src/session/control/session_numbers.h, whose helps are the schema's descriptions."""
import json
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["SOURCE"])
TABLE = re.compile(r"/\*((?:(?!\*/).)*)\*/\s*static const struct list_field (\w+)\[\] = \{\n(.*?)\n\};", re.DOTALL)
MARK = re.compile(r"docs/schema/([\w-]+\.json)((?: \$defs/\w+)?)(?:, but ([\w, ]+))?")
ROW = re.compile(r'^\t+\{(?:NULL|"[^"]*"), "(\w+)",[^(]*?(?:\bkind = FIELD_|\w+\()(\w+)(.*?)\},$', re.MULTILINE)
LIST = re.compile(r"^\tSESSION_NUMBERS\(X, X\)$", re.MULTILINE)
LIST_ROW = re.compile(r'\b(?:X|OWN)\(\w+, \w+, (\w+), "(\w+)", (\w+),[\s\\]*("[^"]*")\)')
UNITS = {"TEXT": "text", "CHARS": "text", "WORD": "text", "ID": "count", "COUNT": "count", "BYTES": "bytes", "TIME": "microseconds", "MILLISECONDS": "microseconds"}


def unit_of(schema):
    """The name of a definition of common.json; a set of words is text."""
    return "text" if "enum" in schema else schema.get("$ref", "").rpartition("/")[2]


def rows_of_list():
    """The rows that the preprocessor makes of the list, as a table would have them."""
    rows = LIST_ROW.findall((SOURCE / "src/session/control/session_numbers.h").read_text())
    return "\n".join(f'\t{{NULL, "{key}", AT({kind}, of), {"" if known == "ALWAYS" else ".is_known"} .help = {text}}},' for kind, key, known, text in rows)


def check(place, table, mark):
    schema = json.loads((SOURCE / "docs/schema" / mark[1]).read_text())
    for step in mark[2].strip().split("/"):
        schema = schema[step] if step else schema
    properties, required = schema["properties"], {*schema.get("required", ()), *schema.get("then", {}).get("required", ())}
    others = set((mark[3] or "").replace(",", " ").split())
    rows = ROW.findall(LIST.sub(lambda _: rows_of_list(), table))
    written, expected = [key for key, _, _ in rows], [key for key in properties if key not in others]
    if written != expected:
        yield f"{place}: {mark[1]} has {expected}, the table {written}"
    for key, kind, rest in rows:
        if key in properties and kind != "FLAG" and unit_of(properties[key]) != UNITS[kind]:
            yield f"{place}: {key} is {kind}, and {unit_of(properties[key])} in {mark[1]}"
        text = re.search('help = "(.*)"', rest)
        if text and key in properties and text[1] != properties[key]["description"]:
            yield f"{place}: {key} is described differently in {mark[1]}: {text[1]}"
        if (key in required) == bool(re.search("may_be_(unset|none)|is_known", rest)):
            yield f"{place}: {mark[1]} {'requires' if key in required else 'does not require'} {key}"


def main():
    mistakes, count = [], 0
    for path in sorted((SOURCE / "src").rglob("*.c")):
        for comment, name, table in TABLE.findall(path.read_text()):
            place, mark = f"{path.relative_to(SOURCE)}: {name}", MARK.search(" ".join(comment.split()))
            if mark:
                mistakes += check(place, table, mark)
            elif ROW.search(table):
                mistakes.append(f"{place}: its comment names no object of docs/schema")
            count += 1
    if not count:
        mistakes.append("there is no table")
    print(*mistakes, sep="\n", end="\n" if mistakes else "")
    return bool(mistakes)


if __name__ == "__main__":
    sys.exit(main())
