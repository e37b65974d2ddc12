#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The layouts that the package has of the public header are those of a C compiler: sizes, offsets, sizes of members, constants. The header's functions are all there."""
import ctypes
import os
import re
import subprocess

from package import SOURCE, expect, finish, same, unpack

unpack(loads_library=False)
from xheap import _layouts as layouts  # noqa: E402

ARROW = ("ArrowSchema", "ArrowArray", "ArrowArrayStream")


def lines():
    """What both sides say, and the line of C that says it."""
    for struct in layouts.STRUCTS:
        name = struct.__name__
        in_c = f"struct {name}" if name in ARROW else name
        yield f"{name} {ctypes.sizeof(struct)}", f'printf("{name} %zu\\n", sizeof({in_c}));'
        for field, *_ in struct._fields_:
            place = getattr(struct, field)
            yield f"{name}.{field} {place.offset} {place.size}", f'printf("{name}.{field} %zu %zu\\n", offsetof({in_c}, {field}), sizeof((({in_c} *)0)->{field}));'
    for name in sorted(name for name in vars(layouts) if re.match("XHEAP_|ARROW_", name)):
        yield f"{name} {getattr(layouts, name)}", f'printf("{name} %lld\\n", (long long){name});'


def main():
    made = list(lines())
    with open("layouts.c", "w") as file:
        file.write('#include <stdio.h>\n#include <xheap/xheap.h>\n\nint main(void)\n{\n' + "\n".join(line for _, line in made) + "\n}\n")
    subprocess.run([os.environ.get("CC", "cc"), "-I", SOURCE / "include", "layouts.c", "-o", "layouts"], check=True)
    same("layouts", [said for said, _ in made], subprocess.run(["./layouts"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines())
    header = re.sub(r"/\*.*?\*/", "", (SOURCE / "include/xheap/xheap.h").read_text(), flags=re.S)
    same("functions", sorted(layouts.FUNCTIONS), sorted(set(re.findall(r"\b(xheap_\w+)\(", header))))
    same("structs", sorted(struct.__name__ for struct in layouts.STRUCTS), sorted(re.findall(r"struct (\w+)\s*\{", header)))
    same("enums", sorted(layouts.ENUMS), sorted(re.findall(r"enum (\w+)\s*\{", header)))
    expect(len(made) > 300, f"only {len(made)} lines were compared")
    finish()


main()
