#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes xheap/_layouts.py of the public header: its constants, structs and functions, as ctypes knows them.

usage: layouts.py HEADER >_layouts.py

The header is plain: enums, structs and prototypes, a typedef for each struct, no unions and no bit fields. A declaration that is none of these, or a type that has no
row here, ends the making with an error. tests/python/layouts compares the result with a C compiler's.
"""
import re
import sys

# What C calls them: what ctypes calls them, and the type of the value in Python.
SCALARS = {
    "char": ("c_char", "bytes"), "int": ("c_int", "int"), "unsigned": ("c_uint", "int"), "double": ("c_double", "float"), "size_t": ("c_size_t", "int"),
    **{f"{sign}int{bits}_t": (f"c_{sign}int{bits}", "int") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
CONSTANTS = {"UINT32_MAX": 2**32 - 1, "UINT64_MAX": 2**64 - 1}
FUNCTION_POINTER = re.compile(r"(.+?)\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)", re.S)
BEGIN = '''# SPDX-License-Identifier: MIT
"""Made by layouts.py of xheap/xheap.h: change that."""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_uint, c_uint8, c_uint16, c_uint32,
                    c_uint64, c_void_p)
from typing import Any, Dict, List, Tuple

'''


class Header:
    def __init__(self, text):
        self.constants, self.enums, self.structs, self.functions, self.opaque = {}, {}, {}, {}, set()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
        text = re.sub(r"#ifdef __cplusplus.*?#endif", " ", text, flags=re.S)
        for line in re.findall(r"^[ \t]*#.*$", text, flags=re.M):
            if found := re.fullmatch(r"\s*#define (\w+) (\S+)", line):
                self.constants[found[1]] = self.number(found[2])
        for declaration in re.findall(r"[^;{]+(?:\{.*?\}[^;{]*)?;", re.sub(r"^[ \t]*#.*$", " ", text, flags=re.M), flags=re.S):
            self.declare(declaration.strip().rstrip(";").strip())

    def declare(self, text):
        if found := re.fullmatch(r"enum (\w+) \{(.*)\}", text, flags=re.S):
            self.enums[found[1]] = self.values(found[2])
        elif found := re.fullmatch(r"(?:typedef )?struct (\w+) \{(.*)\}\s*(\w*)", text, flags=re.S):
            self.structs[found[1]] = found[2]
        elif found := re.fullmatch(r"typedef struct (\w+) (\w+)", text):
            self.opaque.add(found[2])
        elif found := re.fullmatch(r"([\w\s*]+?)\b(\w+)\((.*)\)", text, flags=re.S):
            self.functions[found[2]] = (found[1], found[3])
        else:
            raise SyntaxError(f"a declaration of an unknown form: {text}")

    def number(self, text):
        return CONSTANTS[text] if text in CONSTANTS else int(text, 0)

    def values(self, text):
        found, following = {}, 0
        for item in filter(None, (item.strip() for item in text.split(","))):
            name, _, value = (part.strip() for part in item.partition("="))
            found[name] = self.number(value) if value else following
            following = found[name] + 1
        return found

    def type(self, text):
        """Of a declaration without its name: what ctypes calls it, and the type of the value."""
        stars = text.count("*")
        words = [word for word in text.replace("*", " ").split() if word not in ("const", "struct", "enum")]
        base = " ".join(words)
        if base in self.opaque or base == "void":
            if base == "void" and not stars:
                return "None", "None"
            made, stars = "c_void_p", stars - 1
        elif base == "char" and stars:
            made, stars = "c_char_p", stars - 1
        elif base in SCALARS:
            if not stars:
                return SCALARS[base]
            made = SCALARS[base][0]
        elif base in self.structs:
            made = base
        else:
            raise SyntaxError(f"a type without a row: {text}")
        value = {"c_void_p": "Any", "c_char_p": "Any"}.get(made, "Any")
        for _ in range(stars):
            made = f"POINTER({made})"
        return made, value

    def arguments(self, text):
        parts = [] if text.strip() in ("", "void") else re.split(r",(?![^(]*\))", text)
        return [self.declarator(part.strip())[1] for part in parts]

    def declarator(self, text):
        """Its name (None of an argument without one), what ctypes calls its type, and the type of the value."""
        if found := FUNCTION_POINTER.fullmatch(text):
            return found[2], f"CFUNCTYPE({', '.join([self.type(found[1])[0], *self.arguments(found[3])])})", "Any"
        if found := re.fullmatch(r"(.+?[\s*])(\w+)\[(\d*)\]", text, flags=re.S):
            made, value = self.type(found[1] + ("" if found[3] else "*"))
            return (found[2], f"{made} * {found[3]}", value if made == "c_char" else "Any") if found[3] else (found[2], made, value)
        found = re.fullmatch(r"(.*?[\s*])(\w+)", text, flags=re.S)
        if found and found[2] not in SCALARS and found[2] not in self.structs:
            return (found[2], *self.type(found[1]))
        return (None, *self.type(text))

    def fields(self, name):
        for declaration in filter(None, (part.strip() for part in self.structs[name].split(";"))):
            yield self.declarator(declaration)

    def written(self):
        yield BEGIN
        for name, value in self.constants.items():
            yield f"{name} = {value}\n"
        for values in self.enums.values():
            for name, value in values.items():
                yield f"{name} = {value}\n"
        yield f"ENUMS: Dict[str, Dict[str, int]] = {self.enums!r}\n"
        for name in self.structs:
            yield f"\n\nclass {name}(Structure):\n" + "".join(f"    {field}: {value}\n" for field, _, value in self.fields(name))
        yield "\n\n"
        for name in self.structs:
            yield f"{name}._fields_ = [" + ", ".join(f'("{field}", {made})' for field, made, _ in self.fields(name)) + "]\n"
        yield f"STRUCTS = [{', '.join(self.structs)}]\n"
        yield "FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {\n"
        for name, (result, arguments) in self.functions.items():
            yield f'    "{name}": ({self.type(result)[0]}, [{", ".join(self.arguments(arguments))}]),\n'
        yield "}\n"


def made(path):
    """The text of _layouts.py."""
    with open(path, encoding="utf-8") as file:
        return "".join(Header(file.read()).written())


if __name__ == "__main__":
    sys.stdout.write(made(sys.argv[1]))
