#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions that a runtime compiles have the names that it writes for them, at the time at which the code was theirs.

usage: jit_names.py [TEST...]"""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

from live import BUILD, PROGRAMS, XHEAP, dump, expect, info, run_tests, stop_session, told, wait_for, xheap

AGENT = os.path.join(BUILD, "libxheap-java.so")


class Runtime:
    """programs/jit_names.c, as it obeys."""

    def __init__(self, trace, is_attached=False, through=()):
        self.trace, self.session = trace, f"jit{os.getpid()}" if is_attached else None
        before = [] if is_attached else [XHEAP, "record", "-o", trace, "--"]
        self.process = subprocess.Popen([*before, *through, os.path.join(PROGRAMS, "jit_names")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline())
        self.map = f"/tmp/perf-{self.pid}.map"
        if is_attached:
            said = xheap("start", self.session, "-o", trace, "-p", self.pid)
            expect("hooked" not in said, f"made code is taken for an image: {said}")

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def do(self, *lines):
        for line in lines:
            said = self.say(line)
            expect(said == "done", f"{line}: {said}")

    def wait_taken(self, events):
        """So many events have been taken, and the names that were there then have been read."""
        wait_for("events", lambda: told("query", self.session)["targets"][0]["events"] >= events)

    def end(self):
        self.process.stdin.write("end\n")
        _, said = self.process.communicate()
        if self.session:
            wait_for("the end", lambda: not told("query", self.session)["targets"])
            stop_session(self.session)
        expect(self.process.returncode == 0, said)
        if os.path.lexists(self.map):
            os.unlink(self.map)
        return names_of(self.trace)


def names_of(trace):
    """By the size of a block: the frames of no image on its stack, and what they are: text, kind, line."""
    rows = {row["stack_id"]: row for row in dump(trace, "-stacks")}
    found = {}
    for event in dump(trace):
        at, frames = event["stack_id"], []
        while at not in ("", "0"):
            row = rows[at]
            if not row["image"]:
                frames.append((row["frame"], row.get("kind") or "native", int(row.get("line") or 0)))
            at = row["parent_id"]
        if event["function"] == "malloc" and frames:
            found[int(event["size"])] = frames[0] if len(frames) == 1 else frames
    return found


def named():
    """Names of runtimes' forms, with and without 0x, and lines that are none."""
    runtime = Runtime("named.xht")
    lines = ["JS:*load /srv/shop/cart.js:4:19", "JS:~ file:///srv/shop/app.mjs:1:1", "py::Cart.load:/srv/shop/cart.py", "void Shop.load(int)", "LazyCompile:^get size node:internal/util:7:2",
             "Builtin:RecordWrite", "JS:*with space /srv/a b/c.js:9:1"]
    for i, line in enumerate(lines):
        runtime.do(f"make {i}", f"{'name0x' if i % 2 else 'name'} {i} {line}")
    for bad in ("", "xyz", "12", "12 ", "12 10", "0 0 nothing", "ffffffffffffffff 10 kernel", "1234 fffffffffffffffff wide", "-1 10 minus", "a" * 2900):
        runtime.do("raw " + bad)
    runtime.do(*[f"call {i} {1000 + i}" for i in range(len(lines))], "make 9", "call 9 1009")
    found = runtime.end()
    wanted = ["cart.js!load", "app.mjs!(top level)", "cart.py!Cart.load", "[jit]!Shop.load(int)", "node:internal/util!get size", "[jit]!Builtin:RecordWrite", "c.js!with space"]
    at = [4, 1, 0, 0, 7, 0, 9]
    expect(found == {**{1000 + i: (wanted[i], "jit", at[i]) for i in range(len(lines))}, 1009: ("[no image]", "native", 0)}, found)


def late():
    """A name that comes after the events is theirs, too."""
    runtime = Runtime("late.xht")
    runtime.do("make 0", "make 1", "call 0 1000", "call 1 2000", "name 0 int Shop.load()", "name 1 JS:*serve /srv/shop/app.js:2:3")
    found = runtime.end()
    expect(found == {1000: ("[jit]!Shop.load()", "jit", 0), 2000: ("app.js!serve", "jit", 2)}, found)


def far():
    """Code calls code that lies far away; the stack goes on there, and reaches the program's start."""
    runtime = Runtime("far.xht")
    runtime.do("make 0", "make 40 0", "make 1 40", "name 0 inner", "name 40 far", "name 1 outer", "call 1 1000")
    found = runtime.end()
    expect(found == {1000: [(f"[jit]!{name}", "jit", 0) for name in ("inner", "far", "outer")]}, found)
    expect(info("far.xht")["unwindless_stacks"] == 0, "a stack ends early")


def moved():
    """Code of one function after code of another at the same place; the same function again; a map that is begun anew."""
    runtime = Runtime("moved.xht", is_attached=True)
    # Between two calls at one place another stack is walked: a stack that has not changed has the frames that it had.
    runtime.do("make 1", "make 0", "name 0 first", "call 0 1000", "call 1 6000")
    runtime.wait_taken(4)
    runtime.do("make 0", "name 0 second", "call 0 2000", "call 1 6000")
    runtime.wait_taken(8)
    runtime.do("make 0", "name 0 first", "call 0 3000", "call 0 3001", "call 1 6000")
    runtime.wait_taken(14)
    os.truncate(runtime.map, 0)
    runtime.do("call 0 4000", "call 1 6000")
    runtime.wait_taken(18)
    runtime.do("name 0 third", "call 0 5000")
    found = runtime.end()
    expect(found.pop(6000) == ("[no image]", "native", 0), found)
    names = {1000: "first", 2000: "second", 3000: "first", 3001: "first", 4000: "third", 5000: "third"}
    expect(found == {size: (f"[jit]!{name}", "jit", 0) for size, name in names.items()}, found)


def forked():
    """A child has its parent's names, and its own ones before them."""
    runtime = Runtime("forked.xht", is_attached=True)
    runtime.do("make 0", "make 1", "name 0 shared", "name 1 old", "call 0 1000", "call 1 1001")
    runtime.wait_taken(4)
    child = int(runtime.say("fork"))
    runtime.do("call 0 2000", "make 1", "name 1 new", "call 1 2001")
    wait_for("the child's events", lambda: sum(row["events"] for row in told("query", runtime.session)["targets"]) >= 8)
    expect(runtime.say("exit") == "done", "no end of the child")
    runtime.do("call 1 3001")
    found = runtime.end()
    os.unlink(f"/tmp/perf-{child}.map")
    names = {1000: "shared", 1001: "old", 2000: "shared", 2001: "new", 3001: "old"}
    expect(found == {size: (f"[jit]!{name}", "jit", 0) for size, name in names.items()}, found)


def dumped():
    """Names and lines of a jitdump file, which is found by its mapping."""
    runtime = Runtime("dumped.xht", is_attached=True)
    runtime.do("make 0", "make 1", "lines 0 17 /srv/Shop.java", "load 0 long Shop.load(int)", "load 1 plain", "call 0 1000", "call 1 1001")
    runtime.wait_taken(4)
    runtime.do("make 0", "load 0 Shop.other()", "call 0 2000", "call 1 2001")
    found = runtime.end()
    expect(found == {1000: ("Shop.java!Shop.load(int)", "jit", 17), 1001: ("[jit]!plain", "jit", 0), 2000: ("[jit]!Shop.other()", "jit", 0), 2001: ("[jit]!plain", "jit", 0)}, found)


def logged():
    """Names of V8's logs, which come before those of the map: what was put into code, at its place, by several isolates; and lines that are damaged or too long."""
    runtime = Runtime("logged.xht", is_attached=True)
    runtime.do("make 0", "make 1", "make 2", "make 3", *[f"name {i} JS:*map{i} /srv/shop.js:{i + 1}:1" for i in range(4)])
    runtime.do("log 0 1 code-creation,JS,2,1,@,64,remember /srv/shop.js:4:18,0xa0,~", "log 0 0 code-creation,JS,13,1,@,64,serve /srv/shop.js:5:15,0xc0,*", "log 0 0 code-source-info,@,81,1,2,C0O1C14O5I0C16O1,F0O1,S0xa0")
    runtime.do("log 1 2 code-creation,JS,13,1,@,64,turn /srv/work.js:7:1,0xa0,*", "log 1 2 code-source-info,@,81,1,2,C0O1I7,F0O1,S0xdd", *[f"log 1 3 {line}" for line in ("", "x" * 2900, "code-creation,JS,13,1,@,0,none", "code-source-info,@,,,,,,,,,")])
    runtime.do(*[f"call {i} {1000 + i}" for i in range(4)])
    runtime.wait_taken(8)
    # Another function lies there then, and nothing is put into it.
    runtime.do("make 0", "log 0 0 code-creation,JS,13,1,@,64,later /srv/shop.js:9:1,0xee,*", "call 0 2000")
    found = runtime.end()
    expect(found == {1000: ("shop.js!remember;shop.js!serve", "jit", 4), 1001: ("shop.js!remember", "jit", 4), 1002: ("work.js!turn", "jit", 7), 1003: ("shop.js!map3", "jit", 4), 2000: ("shop.js!later", "jit", 9)}, found)
    # A line of several MiB, and a file that is mostly a hole.
    runtime = Runtime("holes.xht", is_attached=True)
    runtime.do("make 0", "log 0 0 code-creation,JS,2,1,@,64,first /srv/shop.js:4:18,0xa0,~", "call 0 1000")
    runtime.wait_taken(2)
    log = next(path for path in glob.glob(f"/proc/{runtime.pid}/fd/*") if os.readlink(path).startswith("/tmp/") and os.readlink(path).endswith(" (deleted)"))
    with open(log, "ab") as file:
        file.write(b"script-source,1," + b"s" * 3000000 + b"\n")
    os.truncate(log, 1 << 40)
    runtime.do("call 0 1001")
    found = runtime.end()
    expect(found == {1000: ("shop.js!first", "jit", 4), 1001: ("shop.js!first", "jit", 4)}, found)


def listed():
    """Names of the code objects that a runtime keeps for gdb, at the time at which the code was theirs."""
    runtime = Runtime("listed.xht", is_attached=True)

    def wait_named(name):
        wait_for(name, lambda: f"[jit]!{name}" in xheap("dump", "listed.xht", "-stacks", status=None))
    runtime.do("make 0", "make 1", "make 2", "enter 0 load", "enter 1 serve", "call 0 1000", "call 1 1001", "call 2 6000")
    wait_named("load")
    runtime.do("make 0", "enter 0 second", "call 0 2000", "call 2 6000")
    wait_named("second")
    runtime.do("remove", "make 0", "enter 0 third", "call 0 3000", "call 1 3001", "call 2 6000")
    wait_named("third")
    # More than one reading has, and the oldest one is on the stack.
    runtime.do("make 32", "enter 32 last", *[f"enter 33 {'far' * 40}{i}" for i in range(1000)], "call 32 4000")
    wait_named("last")
    found = runtime.end()
    expect(found.pop(6000) == ("[no image]", "native", 0), found)
    names = {1000: "load", 1001: "serve", 2000: "second", 3000: "third", 3001: "serve", 4000: "last"}
    expect({size: found.get(size) for size in names} == {size: (f"[jit]!{name}", "jit", 0) for size, name in names.items()}, found)


def lists():
    """A list that is damaged, in a circle, or very long: the program goes on, and so does the logger."""
    for end in ("circle", "wild", "many", "damaged"):
        runtime = Runtime(f"{end}.xht", is_attached=True)
        runtime.do("make 0", "enter 0 inner", f"list {end}")
        for i in range(3):
            before = told("query", runtime.session)["targets"][0]["events"]
            runtime.do(f"call 0 {1000 + i}")
            runtime.wait_taken(before + 2)
        if end in ("circle", "wild"):
            wait_for("the name", lambda: "[jit]!inner" in xheap("dump", f"{end}.xht", "-stacks", status=None))
        found = runtime.end()
        names = {found[size][0] for size in (1000, 1001, 1002)}
        expect(names == {"[jit]!inner"} if end in ("circle", "wild") else names <= {"[jit]!inner", "[no image]"}, f"{end}: {found}")
        expect(info(f"{end}.xht")["complete"], f"{end}: {info(f'{end}.xht')}")


def contained():
    """A process in a pid namespace of its own has the map of the name that it gives itself."""
    through = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", "for i in 1 2 3 4 5 6 7; do sh -c : & done; wait; \"$0\""]
    if subprocess.run([*through, "true"], stderr=subprocess.DEVNULL).returncode:
        return "without the right to make namespaces"
    runtime = Runtime("contained.xht", through=through)
    expect(1 < runtime.pid < 50, f"pid {runtime.pid} in a namespace of its own")
    runtime.do("make 0", "name 0 inner", "call 0 1000")
    wait_for("the trace", lambda: "inner" in subprocess.run([XHEAP, "dump", "contained.xht", "-stacks"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)
    found = runtime.end()
    expect(found == {1000: ("[jit]!inner", "jit", 0)}, found)


def nameless(runtime, why):
    runtime.do("make 0", "call 0 1000")
    found = runtime.end()
    expect(found == {1000: ("[no image]", "native", 0)}, f"{why}: {found}")


def refused():
    """What may be another's file is not read: a pipe, a link, one of another user, one from before the process."""
    def line(runtime):
        return f"{0:x} {(1 << 47) - 1:x} wrong\n"
    runtime = Runtime("pipe.xht")
    os.mkfifo(runtime.map)
    nameless(runtime, "a pipe")
    runtime = Runtime("link.xht")
    pathlib.Path("other").write_text(line(runtime))
    os.symlink(os.path.abspath("other"), runtime.map)
    nameless(runtime, "a link")
    runtime = Runtime("old.xht")
    pathlib.Path(runtime.map).write_text(line(runtime))
    os.utime(runtime.map, (1e9, 1e9))
    nameless(runtime, "an old file")
    if os.geteuid():
        return "without a file of another user"
    runtime = Runtime("owned.xht")
    pathlib.Path(runtime.map).write_text(line(runtime))
    os.chown(runtime.map, 12345, 12345)
    nameless(runtime, "a file of another user")


def large():
    """More code than is kept, lines without an end, a file that is mostly a hole: the program goes on, and nothing is read for ever."""
    runtime = Runtime("large.xht")
    with open(runtime.map, "w") as file:
        for i in range(300000):
            file.write(f"{0x100000 + i * 16:x} 10 f{i}\n")
        file.write("x" * 3000000 + "\n")
    runtime.do("make 0", "name 0 last", "call 0 1000")
    os.truncate(runtime.map, 1 << 40)
    runtime.do("call 0 1001")
    runtime.end()


def lli_find(*options):
    """LLVM's program that compiles and runs a module; None: there is none with these options."""
    lli = shutil.which("lli") or shutil.which("lli-14")
    if not lli or subprocess.run([lli, *options, "-version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        return None
    pathlib.Path("loop.ll").write_text("""declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @usleep(i32)
define void @take_block() #0 {
  %p = call ptr @malloc(i64 4242)
  call void @free(ptr %p)
  ret void
}
define i32 @main() #0 {
  br label %loop
loop:
  %i = phi i32 [0, %0], [%next, %loop]
  call void @take_block()
  call i32 @usleep(i32 20000)
  %next = add i32 %i, 1
  %is_last = icmp eq i32 %next, 150
  br i1 %is_last, label %end, label %loop
end:
  ret i32 0
}
attributes #0 = { noinline optnone "frame-pointer"="all" }
""".replace("ptr", "i8*"))
    return lli


def of_llvm():
    """Functions that LLVM compiles in a process have the names that it keeps for gdb, by both of its linkers."""
    for option in ("-jit-kind=mcjit", "-jit-kind=orc"):
        lli = lli_find(option)
        if not lli:
            return f"lli {option} is not installed"
        xheap("record", "-q", "-o", "llvm.xht", "--", lli, option, "loop.ll")
        found = names_of("llvm.xht")[4242]
        expect(found == [("[jit]!take_block", "jit", 0), ("[jit]!main", "jit", 0)], f"{option}: {found}")


def advised(command, advice):
    """Whoever reads a report of a runtime without names of its code learns what would name it."""
    xheap("record", "-q", "-o", "advised.xht", "--", *command)
    screen = " ".join(xheap("report", "advised.xht").split())
    expect("no names of functions that " in screen and advice in screen, screen[:1000])


def of_llvm_without():
    """LLVM 14 keeps nothing for gdb if its newer linker has no debug information."""
    lli = lli_find("-jit-linker=jitlink")
    if not lli:
        return "lli is not installed"
    if re.search(r"version (\d+)", subprocess.run([lli, "-version"], stdout=subprocess.PIPE, text=True).stdout)[1] != "14":
        return "this lli is not that of LLVM 14"
    advised([lli, "-jit-linker=jitlink", "loop.ll"], "let it compile with debug information")


def of_luajit():
    if not shutil.which("luajit"):
        return "luajit is not installed"
    pathlib.Path("leak.lua").write_text("""local ffi = require "ffi"
ffi.cdef "void *malloc(size_t);"
for i = 1, 5000 do ffi.C.malloc(4242) end
""")
    advised(["luajit", "leak.lua"], "only a LuaJIT that was built with -DLUAJIT_USE_PERFTOOLS writes them")


def of_ruby():
    if not shutil.which("ruby") or subprocess.run(["ruby", "--yjit", "-e", "1"], stderr=subprocess.DEVNULL).returncode:
        return "ruby with YJIT is not installed"
    pathlib.Path("leak.rb").write_text("""$kept = []
def remember(i) = $kept << ("x" * 4242)
5000.times { |i| remember(i) }
""")
    advised(["ruby", "--yjit", "leak.rb"], "start it with --yjit-perf")


def of_pypy():
    if not shutil.which("pypy3"):
        return "pypy3 is not installed"
    pathlib.Path("leak.py").write_text("""kept = []
def remember(i):
    kept.append(bytearray(200000 + i % 7))
for i in range(3000):
    remember(i)
""")
    advised(["pypy3", "leak.py"], "PyPy has no option that writes them")


def of_php():
    """PHP's compiler names its functions; their stacks end there."""
    options = ["-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=64M", "-d", "opcache.jit=1205", "-d", "opcache.file_update_protection=0"]
    state = "echo json_encode(function_exists('opcache_get_status') ? opcache_get_status()['jit']['on'] ?? false : false);"
    if not shutil.which("php") or subprocess.run(["php", *options, "-r", state], stdout=subprocess.PIPE, text=True).stdout != "true":
        return "php with opcache's compiler is not installed"
    pathlib.Path("shop.php").write_text("""<?php
function load($n) { $kept = []; for ($i = 0; $i < $n; $i++) $kept[] = $i; return count($kept); }
for ($i = 0; $i < 100; $i++) load(1000);
echo getmypid();
""")
    told_before = ["env", "USE_ZEND_ALLOC=0", XHEAP, "record", "-o", "php.xht", "--jit-names", "php", *options, "shop.php"]
    run = subprocess.run(told_before, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 0 and "--jit-names: php runs with -d opcache.jit_debug=0x10" in run.stderr, run.stderr)
    os.unlink(f"/tmp/perf-{int(run.stdout)}.map")
    rows = told("heap", "php.xht", "-frames", "-inclusive")["actions"][0]["rows"]
    found = {row["frame"]["symbol"]: row["total_count"] for row in rows if row["frame"].get("kind") == "jit"}
    expect(found.get("load", 0) > 500, found)


def of_dotnet():
    """Its code lies in a file in memory, and its map has each method's tiers."""
    if not shutil.which("dotnet") or not shutil.which("mcs"):
        return "dotnet and mcs are not installed"
    pathlib.Path("Shop.cs").write_text("""using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
public static class Shop {
    [MethodImpl(MethodImplOptions.NoInlining)] static long Load(int i) { return (long)Marshal.AllocHGlobal(20000 + i % 7) + 1; }
    [MethodImpl(MethodImplOptions.NoInlining)] static long Serve(int n) { long all = 0; for (int i = 0; i < n; i++) all ^= Load(i); return all; }
    public static void Main() { for (int i = 0; i < 100; i++) Serve(100); }
}
""")
    pathlib.Path("Shop.runtimeconfig.json").write_text('{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "6.0.0"}, "rollForward": "Major", "configProperties": {"System.Globalization.Invariant": true}}}')
    subprocess.run(["mcs", "-out:Shop.dll", "Shop.cs"], check=True)
    advised(["dotnet", "Shop.dll"], "set DOTNET_PerfMapEnabled=3")
    xheap("record", "-q", "-o", "dotnet.xht", "--", "env", "DOTNET_PerfMapEnabled=3", "dotnet", "Shop.dll")
    expect(info("dotnet.xht")["complete"], info("dotnet.xht"))
    rows = told("heap", "dotnet.xht", "-frames", "-inclusive", "-size", "20000", "20008")["actions"][0]["rows"]
    found = {row["frame"]["symbol"]: row["total_count"] for row in rows if row["frame"].get("kind") == "jit"}
    # A caller may be gone behind a function without a frame of its own.
    expect(found.get("Shop::Load(int32)", 0) > 9000 and found.get("Shop::Serve(int32)", 0) > 5000, found)


def of_node():
    """Functions of JavaScript have file and line, whatever compiled them; stacks reach the program's start."""
    if not shutil.which("node"):
        return "node is not installed"
    pathlib.Path("cart.js").write_text("""'use strict';
function allocate(i) { return Buffer.allocUnsafeSlow(20000 + i); }
function load(i) {
  return allocate(i % 7);
}
class Cart { serve(i) { return load(i).length; } }
const cart = new Cart();
let total = 0;
for (let i = 0; i < 3000; i++) total += cart.serve(i);
console.log(process.pid);
""")
    run = subprocess.run([XHEAP, "record", "-o", "node.xht", "--jit-names", "node", "cart.js"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 0 and "--jit-names: node runs with --perf-basic-prof --interpreted-frames-native-stack --log-code " in run.stderr, run.stderr)
    os.unlink(f"/tmp/perf-{int(run.stdout)}.map")
    rows = told("heap", "node.xht", "-frames", "-inclusive", "-size", "20000", "20008")["actions"][0]["rows"]
    found = {(row["frame"].get("image"), row["frame"]["symbol"]): (row["total_count"], row["frame"].get("kind")) for row in rows}
    for name in ("allocate", "load", "serve"):
        count, kind = found.get(("cart.js", name), (0, None))
        expect(kind == "jit" and count >= 2990, f"{name}: {count} of 3000, {kind}: {found}")
    advice = "no names of functions that node compiles: record with --jit-names"
    xheap("record", "-q", "-o", "nameless.xht", "node", "-e", "1")
    expect(advice in xheap("heap", "nameless.xht") and advice not in xheap("heap", "node.xht"), "the advice to use --jit-names is not where it belongs")
    rows = told("heap", "node.xht", "-stacks", "-size", "20000", "20008")["actions"][0]["rows"]
    expect(all(row["stack"][0].get("image") == "cart.js" for row in rows), f"node's own functions are not culled: {rows}")
    facts = info("node.xht")
    expect(facts["unwindless_stacks"] < facts["event_count"] / 1000, f"{facts['unwindless_stacks']} of {facts['event_count']} stacks end early")
    lines = {row["frame"]: row["line"] for row in dump("node.xht", "-stacks") if row["frame"].startswith("cart.js!")}
    expect(lines["cart.js!allocate"] == "2" and lines["cart.js!load"] == "3", lines)


NODE_POOL = """'use strict';
const { Worker, isMainThread, workerData } = require('worker_threads');
const kept = [];
function picture() { return Buffer.allocUnsafeSlow(4242); }
function sound(i) { return Buffer.allocUnsafeSlow(5353); }
function serve(i) { kept[i % 64] = i % 2 == 0 ? picture() : sound(i); }
let done = 0;
function turn() {
  for (let i = 0; i < 2000; i++) serve(i);
  done += 2000;
  if (done < 60000) setTimeout(turn, 10);
}
if (isMainThread) console.log(process.pid);
if (isMainThread && process.argv[2]) new Worker(__filename); else turn();
"""


def nodes():
    """Each node there is, once."""
    found = {os.path.realpath(path) for path in [shutil.which("node"), shutil.which("nodejs"), *glob.glob("/usr/bin/node*")] if path}
    return sorted(path for path in found if os.path.basename(path).startswith("node") and os.access(path, os.X_OK))


def node_pool(node, words):
    """Record the program, in which no row may be another function's. Return the functions that were put into others."""
    run = subprocess.run([XHEAP, "record", "-o", "inner.xht", "--jit-names", node, "pool.js", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 0 and "--logfile=+, and writes" in run.stderr, f"{node}: {run.stderr}")
    os.unlink(f"/tmp/perf-{int(run.stdout)}.map")
    expect_inner("inner.xht", f"{node} {words}", 25000, OF_NODE)
    expect("may be of" not in xheap("report", "inner.xht"), f"{node} {words}: a guess")
    rows = told("heap", "inner.xht", "-stacks", "-noDefaultCull")["actions"][0]["rows"]
    return {frame.get("symbol") for row in rows for frame in row["stack"] if frame.get("inlined")}


def of_nodes_inner():
    """Functions that V8 puts into others are frames of their own, in the first thread and in a worker, whose log is another one. On a busy machine V8 may compile others first."""
    if not nodes():
        return "node is not installed"
    pathlib.Path("pool.js").write_text(NODE_POOL)
    for node in nodes():
        for words in ([], ["worker"]):
            inner = set()
            for _ in range(5):
                inner |= node_pool(node, words)
                if {"picture", "sound"} <= inner:
                    break
            expect({"picture", "sound"} <= inner, f"{node} {words}: these are put into others: {inner}")
    return ", ".join(nodes())


def without_tmp():
    """node ends where it cannot write its map, and would write its log to its output: it is not started."""
    # The build may lie in /tmp.
    full = ["unshare", "--mount", "sh", "-c", f"mount --bind '{BUILD}' /mnt && mount -t tmpfs -o nr_inodes=1 none /tmp && exec \"$@\"", "sh"]
    if not nodes() or subprocess.run([*full, "true"], stderr=subprocess.DEVNULL).returncode:
        return "without node, or the right to mount"
    run = subprocess.run([*full, "/mnt/xheap", "record", "-o", "full.xht", "--jit-names", "node", "-e", "console.log(1)"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    expect(run.returncode == 2 and run.stdout == "" and "cannot write a file in /tmp (No space left on device)" in run.stderr, f"{run.returncode}: {run.stdout}{run.stderr}")


def of_java():
    """A JVM writes its map at its end: compiled methods have names, from whatever thread they were called."""
    if not shutil.which("java"):
        return "java is not installed"
    pathlib.Path("Shop.java").write_text("""import java.nio.ByteBuffer;
public class Shop {
    static ByteBuffer[] kept = new ByteBuffer[64];
    static int load(int i) { kept[i % 64] = ByteBuffer.allocateDirect(20000 + i % 7); return 1; }
    static int serve(int i) { return load(i) + load(i + 1); }
    public static void main(String[] words) {
        long total = 0;
        for (int i = 0; i < 20000; i++) total += serve(i);
        System.out.println(ProcessHandle.current().pid());
    }
}
""")
    options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-XX:+PreserveFramePointer"]
    if subprocess.run(["java", *options, "-version"], stderr=subprocess.DEVNULL).returncode:
        return "this java writes no map"
    run = subprocess.run([XHEAP, "record", "-o", "java.xht", "--", "java", *options, "Shop.java"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(run.returncode == 0, run.stdout)
    os.unlink(f"/tmp/perf-{int(run.stdout.splitlines()[0])}.map")
    sizes = ["-size", "20000", "20030"]
    rows = told("heap", "java.xht", "-frames", "-inclusive", *sizes)["actions"][0]["rows"]
    found = {row["frame"]["symbol"]: row["total_count"] for row in rows if row["frame"].get("kind") == "jit"}
    expect(found.get("Shop.serve(int)", 0) > 20000, found)
    for pattern in ("serve", "Shop.serve", "Shop.serve(int)", "[jit]!Shop.serve"):
        counted = told("heap", "java.xht", *sizes, "-requireFrames", pattern)["totals"]["total_count"]
        expect(counted == found["Shop.serve(int)"], f"{pattern}: {counted}")
    facts = info("java.xht")
    expect(facts["unwindless_stacks"] + facts["truncated_stacks"] < facts["event_count"] / 1000, facts)


POOL = """import java.nio.ByteBuffer;
public class Pool {
    static ByteBuffer[] kept = new ByteBuffer[64];
    static ByteBuffer picture(byte[] head, String[][] words) { return ByteBuffer.allocateDirect(4242); }
    static ByteBuffer sound(long at) { return ByteBuffer.allocateDirect(5353); }
    static void serve(int i) { kept[i % 64] = i % 2 == 0 ? picture(null, null) : sound(i); }
    public static void main(String[] words) throws Exception {
        System.out.println(ProcessHandle.current().pid());
        if (words.length > 0)
            System.in.read();
        for (int i = 0; i < 60000; i++) serve(i);
        if (words.length > 0)
            System.in.read();
    }
}
"""


def javas():
    """Each Java there is, once."""
    found = {os.path.realpath(path) for path in [*glob.glob("/usr/lib/jvm/*/bin/java"), shutil.which("java")] if path}
    return sorted(path for path in found if os.access(path, os.X_OK))


class Names:
    """Of the functions of a program that allocates pictures and sounds, and keeps the last ones."""

    def __init__(self, serve, picture, sound):
        self.serve, self.picture, self.sound = serve, picture, sound


OF_JAVA = Names("Pool.serve(int)", "Pool.picture(byte[], java.lang.String[][])", "Pool.sound(long)")
OF_NODE = Names("serve", "picture", "sound")


def expect_inner(trace, word, least, names=OF_JAVA):
    """The function below serve() is the one that asks for blocks of this size, wherever the compiler has put it."""
    for size, function, other in ((4242, names.picture, names.sound), (5353, names.sound, names.picture)):
        below = {}
        for row in told("heap", trace, "-stacks", "-noDefaultCull", "-size", str(size), str(size + 24))["actions"][0]["rows"]:
            symbols = [frame.get("symbol") for frame in row["stack"]]
            expect(other not in symbols, f"{word}: {other} asks for {size} bytes: {symbols}")
            if names.serve in symbols[1:]:
                name = symbols[symbols.index(names.serve) - 1]
                below[name] = below.get(name, 0) + row["total_count"]
        expect(below.pop("Interpreter", 0) < 3000 and set(below) == {function} and below[function] > least, f"{word}: {size} bytes: {below}")


def of_javas_agent():
    """Methods that a JVM puts into others are frames of their own, and have names while it runs."""
    if not javas() or not shutil.which("javac"):
        return "java and javac are not installed"
    pathlib.Path("Pool.java").write_text(POOL)
    subprocess.run(["javac", "-source", "11", "-target", "11", "-nowarn", "Pool.java"], check=True, stderr=subprocess.DEVNULL)
    for java in javas():
        run = subprocess.run([XHEAP, "record", "-o", "pool.xht", "--jit-names", java, "Pool"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect(run.returncode == 0 and "libxheap-java.so -XX:+PreserveFramePointer -XX:CompileThresholdScaling=0.1, and writes" in run.stderr, f"{java}: {run.stderr}")
        found = pathlib.Path(f"/tmp/perf-{int(run.stdout)}.map")
        expect(found.stat().st_mode & 0o777 == 0o600, "others may read the map")
        found.unlink()
        expect_inner("pool.xht", java, 20000)
        report = xheap("report", "pool.xht")
        expect("the true one may be inside" not in report and "call_stub" not in report, f"{java}: {report}")
    return f"{len(javas())} of them"


def of_loaded_agent():
    """A JVM that runs already loads the agent by jcmd, and tells it what was compiled before."""
    jcmd = shutil.which("jcmd")
    if not javas() or not jcmd or not os.path.exists("Pool.class"):
        return "jcmd is not installed"
    process = subprocess.Popen(["java", "-XX:+PreserveFramePointer", "Pool", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid, session = int(process.stdout.readline()), f"pool{os.getpid()}"
    xheap("start", session, "-o", "loaded.xht", "-p", pid)
    process.stdin.write("g")
    process.stdin.flush()
    wait_for("events", lambda: told("query", session)["targets"][0]["events"] > 60000)
    done = subprocess.run([jcmd, str(pid), "JVMTI.agent_load", AGENT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(done.returncode == 0 and os.path.exists(f"/tmp/perf-{pid}.map"), done.stdout)
    process.communicate()
    wait_for("the end", lambda: not told("query", session)["targets"])
    stop_session(session)
    os.unlink(f"/tmp/perf-{pid}.map")
    expect_inner("loaded.xht", "jcmd", 10000)


def hostile_maps():
    """Where the agent's map is a link, a pipe or another user's file, nothing is written into it, and the program runs."""
    if not javas() or not os.path.exists("Pool.class"):
        return "java is not installed"
    for kind in ("link", "pipe", "second name"):
        pathlib.Path("mine").write_text("mine")
        # The shell makes the file of its own number, and becomes Java.
        make = {"link": "ln -s $PWD/mine $map", "pipe": "mkfifo $map", "second name": "ln $PWD/mine $map || ln -s $PWD/mine $map"}[kind]
        run = subprocess.run(["sh", "-c", f"map=/tmp/perf-$$.map; {make} && exec java -agentpath:{AGENT} Pool"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        expect(run.returncode == 0 and "no names of Java's methods: cannot write" in run.stderr, f"{kind}: {run.returncode}: {run.stderr}")
        expect(pathlib.Path("mine").read_text() == "mine", f"{kind}: the agent wrote into it")
        os.unlink(f"/tmp/perf-{int(run.stdout)}.map")


if __name__ == "__main__":
    sys.exit(run_tests(named, late, far, moved, forked, dumped, logged, listed, lists, contained, refused, large, of_llvm, of_llvm_without, of_luajit, of_ruby, of_pypy, of_php, of_dotnet, of_node, of_nodes_inner, without_tmp, of_java, of_javas_agent, of_loaded_agent, hostile_maps))
