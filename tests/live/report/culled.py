#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The built-in cull list: programs of C++ and Rust allocate through the libraries, from functions that are named in tests/live/cull. With each compiler that
is there, the first frame of each stack is a function of the program, if the stack has one: the innermost one, none of which is culled.

EXTRA_COMPILERS="NAME=COMMAND ..." adds compilers; a `,` in COMMAND stands for a blank."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

from live import expect, run_tests, xheap

HERE = os.path.join(os.environ["SOURCE"], "tests/live/cull")
CPP, RUST = f"{HERE}/containers.cpp", f"{HERE}/containers.rs"
# The name of a function of the program: of C++ without template arguments, and of Rust.
CPP_USER = re.compile(r"(^|[ :(])user_\w+|^(\S+ )?Server::|^std::(__1::)?(hash|less)::operator\b|^main\b")
RUST_USER = re.compile(r"^(containers::(user_|main|<impl )|<containers::Foo as |<.* as core::convert::From<containers::Foo>>::from|<.* as containers::Walk>::walk)")
RUSTUP = os.path.expanduser("~/.cargo/bin")


def bare(symbol):
    """Without template arguments and parameters."""
    symbol, depth, text = symbol.replace("operator<<", "operator{{").replace("->", "-}").replace("operator<", "operator{"), 0, ""
    for letter in symbol:
        depth += letter == "<"
        text += "" if depth else letter
        depth -= letter == ">"
    return text.partition("(")[0] if not text.startswith("(") else text


def is_user(frame):
    symbol = frame.get("symbol", "")
    if symbol.startswith("<") or RUST_USER.search(symbol):
        return bool(RUST_USER.search(symbol))
    if symbol.startswith("std::operator<<(") and "Server const&" in symbol:
        return True
    name = bare(symbol)
    is_of_std = name.split(" ")[-1].startswith("std::")
    return bool(CPP_USER.search(name)) and (not is_of_std or "Server" in symbol)


def stacks(trace, *options):
    report = json.loads(xheap("heap", trace, "-stacks", *options, "-top", "1000000", "-format", "json"))
    return [(row["stack"], row["total_count"]) for row in report["actions"][0]["rows"]]


def symbol_of(frame):
    return frame.get("symbol") or f"{frame.get('image')}+{frame.get('offset')}"


def check(name, command, source):
    done = subprocess.run([*command, source, "-o", "containers"], capture_output=True, text=True)
    if done.returncode:
        print(f"{name}: skipped, it cannot compile {os.path.basename(source)}: {(done.stderr.strip().splitlines() or ['?'])[0][:150]}")
        return False
    xheap("record", "-q", "-o", "containers.xht", "--", "./containers")
    wanted, found, wrong = collections.Counter(), collections.Counter(), []
    for stack, count in stacks("containers.xht", "-noDefaultCull"):
        first = next((frame for frame in stack if is_user(frame)), None)
        if first:
            wanted[symbol_of(first)] += count
    for stack, count in stacks("containers.xht"):
        if is_user(stack[0]):
            found[symbol_of(stack[0])] += count
        elif any(is_user(frame) for frame in stack):
            wrong.append(f"{symbol_of(stack[0])} is before the program's own {symbol_of(next(filter(is_user, stack)))}")
        else:
            # What a library takes as it is loaded, or a thread as it begins: only what begins them follows.
            own = [frame for frame in stack if not re.search(r"ld-linux|\b(start_thread|clone3?|_start|__libc_start\w*)\b", json.dumps(frame))]
            expect(len(own) <= 2, f"{name}: {symbol_of(stack[0])} is first, and no frame of the program follows: {len(stack)} frames")
    expect(not wrong, f"{name}: {len(wrong)} stacks: " + "; ".join(wrong))
    expect(wanted == found, f"{name}: code of the program was culled: {wanted - found}, {found - wanted}")
    expect(len(found) >= 25, f"{name}: only {len(found)} functions of the program: {sorted(found)}")
    print(f"{name}: {len(found)} functions of the program come first, in {sum(found.values())} calls")
    return True


def compilers():
    """(name, command, source)"""
    flags = ["-std=c++17", "-O1", "-g", "-pthread"]
    for word in os.environ.get("EXTRA_COMPILERS", "").split():
        name, _, command = word.partition("=")
        yield name, command.split(","), RUST if "rustc" in name else CPP
    for name, command in (("g++", ["g++"]), ("clang++-14", ["clang++-14"]), ("clang++-19", ["clang++-19"])):
        yield name, [*command, *flags], CPP
    for name in ("clang++-14", "clang++-19"):
        yield f"{name} with libc++", [name, "-stdlib=libc++", *flags], CPP
    rustc = shutil.which("rustc") or f"{RUSTUP}/rustc"
    yield "rustc", [rustc, "-g", "--crate-name", "containers"], RUST
    yield "rustc -O", [rustc, "-g", "-O", "--crate-name", "containers"], RUST
    yield "rustc with the older mangling", [rustc, "+nightly", "-g", "-Csymbol-mangling-version=legacy", "-Zunstable-options", "--crate-name", "containers"], RUST


def test_first_frames():
    count = 0
    for name, command, source in compilers():
        if not shutil.which(command[0]):
            print(f"{name}: skipped, there is no {command[0]}")
        else:
            count += check(name, command, source)
    if not count:
        print("no compiler of C++ or Rust is there")
        sys.exit(77)


def test_loaded_libraries():
    """What libstdc++ allocates when it is loaded is in a row of its own: every frame of that stack is of the default list, the loader's, too."""
    with open("pool.cpp", "w") as source:
        source.write("#include <cstdlib>\n#include <string>\nint main(int count, char **words) { return std::string(words[0]).size() == 0 || std::malloc(100) == nullptr; }\n")
    subprocess.run(["g++", "-O1", "-g", "pool.cpp", "-o", "pool"], check=True)
    xheap("record", "-q", "-o", "pool.xht", "--", "./pool")
    whole = stacks("pool.xht", "st", "-noDefaultCull")
    pools = [stack for stack, _ in whole if any("libstdc++" in symbol_of(frame) or "libstdc++" in frame.get("image", "") for frame in stack) and not any(frame.get("symbol") == "main" for frame in stack)]
    expect(len(pools) == 1, f"allocations of libstdc++ as it is loaded: {pools}")
    expect("ld-linux" in json.dumps(pools[0][-1]), f"the loader begins: {pools[0]}")
    rows = [stack[0] for stack, _ in stacks("pool.xht", "st")]
    expect(any("libstdc++" in json.dumps(frame) for frame in rows), f"the row is libstdc++'s: {rows}")
    expect(not any("ld-linux" in json.dumps(frame) for frame in rows), f"no row is the loader's: {rows}")


sys.exit(run_tests(test_first_frames, test_loaded_libraries))
