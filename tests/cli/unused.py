#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No function is exported without a caller in the sources, no header is there that nobody includes, no constant without a use, no member of a struct without a reader, no
header of asserts without an assert."""
import collections
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# What is called from elsewhere: programs that link the library, or the linker itself; and what ends a thing that lasts as long as its process, but for tests.
CALLED_FROM_OUTSIDE = re.compile(r"xheap_\w+|main|_start|\w+_(free|fini)")
# Members of structs that the kernel, the C library or the compiler's runtime fill in or read, and of those that keep the places of others.
LAID_OUT = re.compile(r"\w*reserved\w*|padding|page_count|returned|categories|inverted|all_of|any_of|map_start|map_end|eh_frame|physical")
MEMBER_WRITTEN = re.compile(r"(?:\.|->)\s*(\w+)\b(?:\[[^\]]*\])?\s*(?:[-+|]?=(?!=))")
INCLUDED = re.compile(r'^\s*#\s*include "([^"]+)"', re.M)
WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def code_of(path):
    """Without comments, texts and the lines that include."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", path.read_text(), flags=re.S)
    return re.sub(r"^\s*#\s*include.*$", "", text, flags=re.M)


def functions_of(code):
    """Those that a header declares."""
    flat = re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", code)
    return re.findall(r"^(?!static|typedef|#|\s|return)[^;{}=#()]*?\b(\w+)\([^;{}]*\)\s*;", flat, re.M)


def constants_of(code):
    """Of macros, and of enums without a name: the states of a named one are a whole."""
    found = re.findall(r"^\s*#\s*define\s+([A-Z]\w+)", code, re.M)
    for body in re.findall(r"\benum\s*\{([^}]*)\}", code):
        found += re.findall(r"(?:^|,)\s*([A-Z]\w+)\s*(?==|,|$)", body.strip())
    return found


def members_of(code):
    """Those of structs, but for pointers to functions."""
    for body in re.findall(r"\b(?:struct|union)\s*\w*\s*\{(.*?)^\}", code, re.S | re.M):
        for names in re.findall(r"^\t+(?:\w+[ *]+)+([\w, *\[\]]+);", body, re.M):
            yield from re.findall(r"([A-Za-z_]\w*)\s*(?:\[\w+\])*\s*(?:,|$)", names)


def unread(codes, uses):
    """Members whose name stands only where one is declared or written, in any struct."""
    declared = {path: collections.Counter(members_of(code)) for path, code in codes.items()}
    sums = sum(declared.values(), collections.Counter())
    written = collections.Counter(name for code in codes.values() for name in MEMBER_WRITTEN.findall(code))
    for path, names in declared.items():
        yield from (f"{path.relative_to(SOURCE)}: nobody reads {name}" for name in names if uses[name] - written[name] <= sums[name] and not LAID_OUT.fullmatch(name))


def main():
    codes = {path: code_of(path) for path in sorted((SOURCE / "src").rglob("*.[chS]"))}
    words = {path: collections.Counter(WORD.findall(code)) for path, code in codes.items()}
    uses = sum(words.values(), collections.Counter())
    in_files = sum((count for path, count in words.items() if path.suffix != ".h"), collections.Counter())
    # Names that macros put together.
    pasted = tuple(prefix for code in codes.values() for prefix in re.findall(r"\b(\w+_)\s*##", code))
    wrong = []
    for path, code in codes.items():
        name = path.relative_to(SOURCE)
        if path.suffix == ".h":
            wrong += [f"{name}: {function}() has no caller in src" for function in functions_of(code)
                      if in_files[function] < 2 and uses[function] < 3 and not CALLED_FROM_OUTSIDE.fullmatch(function)]
        wrong += [f"{name}: {constant} has no use" for constant in constants_of(code) if (uses if path.suffix == ".h" else words[path])[constant] < 2 and not constant.endswith("_H") and not constant.startswith(pasted)]
        if "<assert.h>" in path.read_text() and not re.search(r"\bassert\(|__assert_fail", code):
            wrong.append(f"{name}: includes <assert.h> without an assert")
    included = {name for path in codes for name in INCLUDED.findall(path.read_text())}
    headers = {path.relative_to(SOURCE / "src") for path in codes if path.suffix == ".h"}
    wrong += [f"src/{header}: nobody includes it" for header in sorted(headers) if not {str(header), header.name} & included]
    wrong += unread(codes, uses)
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
