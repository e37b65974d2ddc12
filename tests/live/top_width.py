#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No line of xheap top is wider than the terminal, whatever the functions of the program are called, and each row begins with the program's own code."""
import os
import subprocess
import sys
import unicodedata

from live import expect, run_tests, stop_session, xheap

NAME = f"top{os.getpid()}"
LONG = "配列" * 20 + "_function_with_a_name_that_is_long" * 12
SOURCE = f"""#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void *{LONG}(size_t n) {{ void *p = malloc(n); __asm__ volatile("" : : "r"(p)); return p; }}
__attribute__((noinline)) char *short_one(const char *text) {{ char *p = strdup(text); __asm__ volatile("" : : "r"(p)); return p; }}
int main(void) {{ for (int i = 0; i < 100; i++) {{ {LONG}(1000); short_one("a text"); }} return 0; }}
"""


def columns(text):
    return sum({"W": 2, "F": 2}.get(unicodedata.east_asian_width(c), 1) for c in text)


def lines_fit():
    with open("names.c", "w") as file:
        file.write(SOURCE)
    subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-fno-builtin", "-o", "names", "names.c"], check=True)
    xheap("start", NAME, "-o", "names.xht")
    try:
        xheap("launch", NAME, "--", "./names")
        for width in (40, 41, 66, 80, 100, 140, 300):
            os.environ["COLUMNS"] = str(width)
            text = xheap("top", NAME, "-count", "1")
            widest = max(map(columns, text.splitlines()))
            expect(widest <= width, f"{widest} columns of {width}: {text}")
            expect("short_one" in text or width < 60, f"at {width} no function of the program: {text}")
            expect("strdup" not in text.split("short_one")[0].splitlines()[-1], f"at {width} a row begins with the library: {text}")
    finally:
        os.environ.pop("COLUMNS", None)
        stop_session(NAME)


sys.exit(run_tests(lines_fit))
