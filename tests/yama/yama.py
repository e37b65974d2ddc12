#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tracing under Yama: a machine is emulated whose kernel has it, and every way to trace is tried there at each value of kernel.yama.ptrace_scope
(guest.sh). What is forbidden has to be told, with the setting; what is allowed has to be recorded whole, on a kernel that is not this machine's.

Needs qemu-system-x86_64, a static busybox, perl and dash, and Debian's kernel for clouds, which is fetched once into the build's directory and only unpacked
there; KERNEL=FILE takes another one, with Yama, devtmpfs and a serial port built in. Nothing is asked of this machine's kernel; no root is needed.

usage: BUILD=DIR [KERNEL=FILE] yama.py [--keep]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "live"))
from boot.emulation import Missing, emulate, find_kernel, find_program, libraries  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()
XHEAP, PROGRAMS = BUILD / "xheap", BUILD / "tests/live"
COMPARE = HERE.parent / "live/compare.py"
LIMIT_SECONDS, SKIP = 900, 77
REAL = """my %kept;
for my $i (1 .. 4000) {
    $kept{$i % 700} = [map { "x" x ($_ * $i % 300) } 1 .. 3];
}
print scalar(keys %kept), "\n";
"""
SCOPES = range(4)
FORBIDDEN = "kernel.yama.ptrace_scope is {}"
# What may be traced at each scope.
ALLOWED = {
    "own": (0,),
    "anybody": (0, 1),
    "root": (0, 1, 2),
    "command": (0, 1),
    "children": (0, 1),
    "launch": (0, 1),
    "forked": (0, 1),
    "root_command": (0, 1, 2),
}
STATUS = {"forked": 5}


# ---- the machine's files ----

def machine_files():
    files = {"/init": HERE / "guest.sh", "/bin/busybox": find_program("busybox"), "/usr/bin/perl": find_program("perl"), "/bin/dash": find_program("dash"),
             "/usr/bin/xheap": XHEAP, "/usr/bin/oracle.so": PROGRAMS / "oracle.so"}
    for name in ("attached", "churn", "with"):
        files[f"/usr/bin/{name}"] = PROGRAMS / name
    if libraries(files["/bin/busybox"]):
        raise Missing("busybox is not static")
    for path in list(files.values()):
        files.update({library: pathlib.Path(library) for library in libraries(path)})
    contents = {name: path.read_bytes() for name, path in files.items()}
    contents["/usr/bin/real.pl"] = REAL.encode()
    return contents


def machine_run(kernel, folder):
    """What the machine left: its files, and its console's text."""
    console = emulate(kernel, folder, machine_files(), seconds=LIMIT_SECONDS)
    try:
        with tarfile.open(folder / "out.tar.gz") as tar:
            tar.extractall(folder / "out")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise SystemExit(f"the machine did not come to its end ({error}); it said:\n{console[-3000:]}") from None
    return folder / "out"


# ---- what came of it ----

def read(path):
    return path.read_text(errors="replace").strip() if path.exists() else ""


def told(*words):
    return json.loads(subprocess.run([XHEAP, *map(str, words), "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)


def trace_faults(trace):
    if not trace.exists():
        return ["there is no trace"]
    facts, heap = told("info", trace), told("heap", trace)
    wrong = {"lost_events": facts["lost_events"], "gaps": len(facts["gaps"]), "unknown_frees": heap["unknown_frees"], "order_conflicts": heap["order_conflicts"],
             "incomplete": int(not facts["complete"]), "without events": int(not sum(facts["events"].values()))}
    return [f"{what}: {count}" for what, count in wrong.items() if count]


def case_faults(out, case, scope):
    """Why one of the cases is not as it should be."""
    name = f"{case}.{scope}"
    said, status = read(out / f"{name}.said"), read(out / f"{name}.status")
    faults = []
    if (out / f"{name}.target").exists() and read(out / f"{name}.target") != "0":
        faults.append(f"the target's status is {read(out / f'{name}.target')}")
    if scope in ALLOWED[case]:
        if status != str(STATUS.get(case, 0)):
            faults.append(f"status {status}")
        faults += [f"{what} is told" for what in ("ran untraced", "stay patched") if re.search(rf"[1-9]\d* process\w* {what}|its functions {what}", said)]
        faults += trace_faults(out / f"{name}.xht")
    else:
        if status not in ("2", str(STATUS.get(case))):
            faults.append(f"status {status}")
        if FORBIDDEN.format(scope) not in said:
            faults.append("the setting is not told")
    return [f"{name}: {fault}" for fault in faults] + ([f"    {line}" for line in said.splitlines()] if faults else [])


def real_faults(out):
    """A real program, call by call."""
    faults = trace_faults(out / "real.xht")
    if read(out / "real.status") != "0":
        faults.append(f"status {read(out / 'real.status')}: {read(out / 'real.said')}")
    if faults:
        return faults, ""
    dump = out / "real.csv"
    with open(dump, "w") as file:
        subprocess.run([XHEAP, "dump", out / "real.xht", "-events", "-format", "csv"], stdout=file, check=True)
    done = subprocess.run([COMPARE, "--order", "exact", "--unlogged", "0", out / "log", dump], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ([done.stdout] if done.returncode else []), done.stdout.strip().splitlines()[-1]


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="xheap-yama."))
    try:
        out = machine_run(find_kernel(), folder)
    except Missing as missing:
        print(f"not tried: {missing}")
        return SKIP
    print(f"Linux {read(out / 'kernel')}")
    faults, said = real_faults(out)
    print(f"a real program: {said}")
    for case in ALLOWED:
        for scope in SCOPES:
            faults += case_faults(out, case, scope)
    print("\n".join(faults) or f"{len(ALLOWED)} ways to trace, each as it should be at ptrace_scope 0 to 3")
    if "--keep" in sys.argv:
        print(folder)
    else:
        shutil.rmtree(folder)
    return 1 if faults else 0


sys.exit(main())
