#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What goes wrong is an exception that says what, where and why, and nothing ends the interpreter: files, closed objects, threads, forks, capsules, the library."""
import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import threading

from package import TRACES, expect, finish, raises, same, unpack

if not os.environ.get("UNPACKED"):
    unpack()
import xheap as package  # noqa: E402
from xheap import _layouts as layouts  # noqa: E402
from xheap import _rows  # noqa: E402

PLAIN = TRACES / "libcxx.xht"


def run(program, **environment):
    """A Python that runs the program: its status and what it says."""
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def check_files():
    pathlib.Path("empty.xht").write_bytes(b"")
    pathlib.Path("text.xht").write_text("text\n" * 1000)
    pathlib.Path("cut.xht").write_bytes(PLAIN.read_bytes()[:5000])
    os.mkdir("folder.xht")
    for name, kind in {"nosuch.xht": package.NotFoundError, "empty.xht": package.DamagedError, "text.xht": package.DamagedError, "folder.xht": package.Error}.items():
        error = raises(kind, [name], lambda name=name: package.open(name), name)
        same(f"{name}: its kind", isinstance(error, package.Error), True)
    same("errno", raises(LookupError, [], lambda: package.open("nosuch.xht"), "as Python's own").system_error, 2)
    with package.open("cut.xht") as trace:
        expect(not trace.info.is_complete and trace.info.cut_reason, "a cut trace")
        list(trace.allocations())
    with package.open(PLAIN) as trace:
        raises(package.CommandError, ["nosuch"], lambda: trace.export("nosuch", "x"), "a format")
        raises(package.CommandError, ["nosuch/x"], lambda: trace.export("folded", "nosuch/x"), "a place")
        raises(package.NoMatchError, ["nosuch_function"], lambda: trace.heap(function="nosuch_function"), "a function")
        raises(package.NoMatchError, ["nosuch_function"], lambda: list(trace.allocations(function="nosuch_function")), "a function of rows")
        raises(package.NoMatchError, ["nosuch_function"], lambda: trace.report(function="nosuch_function"), "a function of the command")
        raises(package.InvalidError, ["by", "function"], lambda: trace.heap(by="nosuch"), "rows")
        raises(package.InvalidError, ["sort", "total_bytes"], lambda: trace.heap(sort="nosuch"), "a sort")
        raises(package.InvalidError, ["nosuch"], lambda: trace.heap(split="nosuch"), "a split")
        raises(package.InvalidError, ["callers_of"], lambda: trace.heap(by="callers"), "callers of nothing")
        raises(package.InvalidError, ["top"], lambda: trace.heap(top=0), "no rows")
        raises(AttributeError, ["nosuch", "event_count"], lambda: trace.info.nosuch, "a fact")
    raises(package.InvalidError, ["path", "session"], package.open, "nothing")
    raises(package.InvalidError, ["NUL"], lambda: package.open("a\0b"), "a NUL")
    raises(package.NotFoundError, ["nosuch"], lambda: package.open(session="nosuch"), "a session")
    raises(package.CommandError, ["nosuch.xht"], lambda: package.diff(PLAIN, "nosuch.xht"), "a side")


def check_names():
    """Names of a hostile trace: bytes that are no UTF-8, quotes, markup, control characters, of any length."""
    names = [b"quote\"'`", b"<script>alert(1)</script>", b"bad\xff\xfe\xc3(", b"escape\x1b[31m", b"x" * 10000, b"\xed\xa0\x80", b"right\xe2\x80\xaeleft", b"caf\xc3\xa9", b"a;b"]
    subprocess.run([os.path.join(os.environ["BUILD"], "tests/golden/make_names"), "names.xht"], input=b"\n".join(names) + b"\n", check=True)
    with package.open("names.xht") as trace:
        shown = [trace.info, trace.report(), *(trace.heap(by=by) for by in ("stack", "function", "image", "tree")),
                 *(trace.table(name) for name in ("frame", "process", "image", "thread", "heap", "function")), trace.allocations(columns=["stack", "size"])]
        for one in shown:
            said, html = str(one), one._repr_html_()
            said.encode(), html.encode()
            expect("\x1b" not in said + html and "<script" not in html, f"{said}")
        symbols = {row.symbol for row in trace.table("frame")}
        expect({"café", "<script>alert(1)</script>", "x" * 10000} <= symbols, f"{symbols}")
        for row in trace.table("frame"):
            (row.symbol or "").encode()


def check_closed():
    trace = package.open(PLAIN)
    rows, heap = trace.allocations(), trace.heap()
    stream, plan = rows.__arrow_c_stream__(), trace.query("id")
    trace.close()
    trace.close()
    for what, work in {
        "info": lambda: trace.info, "heap": trace.heap, "report": trace.report, "rows": lambda: list(rows), "a stream": rows.__arrow_c_stream__, "events": trace.events,
        "dx": lambda: trace.dx("1"), "export": lambda: trace.export("folded", "x"), "a question": lambda: list(plan), "diff": lambda: package.diff(trace, PLAIN),
    }.items():
        raises(package.ClosedError, ["libcxx.xht is closed"], work, f"{what} of a closed trace")
    expect("closed" in repr(trace) and len(heap) == len(heap.rows), "what was made before stays")
    del stream
    gc.collect()
    same("capsules that nobody took", _rows._held, {})


def check_release():
    """What nobody refers to is freed at once, without the collector of circles: a trace has descriptors."""
    gc.disable()
    try:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            trace = package.open(PLAIN)
            iterator = iter(trace.allocations())
            next(iterator)
            heap, question = trace.heap(), trace.query("id", limit=1)
            heap.text, list(question)
        del trace, iterator, heap, question
        same("descriptors", len(os.listdir("/proc/self/fd")), before)
    finally:
        gc.enable()


def check_capsules():
    with package.open(PLAIN) as trace:
        taken = [trace.allocations().__arrow_c_stream__() for _ in range(20)]
        same("capsules", len(_rows._held), 20)
        # As a consumer does: the struct is moved, and the source marked as taken.
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))(taken[0], b"arrow_array_stream")
        source = layouts.ArrowArrayStream.from_address(pointer)
        moved = layouts.ArrowArrayStream.from_buffer_copy(source)
        source.release = type(source.release)()
        del taken, source
        gc.collect()
        same("capsules later", len(_rows._held), 0)
        batch = layouts.ArrowArray()
        rows = 0
        while not moved.get_next(ctypes.byref(moved), ctypes.byref(batch)) and batch.release:
            rows += batch.length
            batch.release(ctypes.byref(batch))
        same("rows of the stream that was taken", rows, 3173)
        expect(moved.get_next(ctypes.byref(moved), ctypes.byref(batch)) != 0, "a stream that was read gives rows again")
        moved.release(ctypes.byref(moved))
    # A capsule that lives until Python ends: in a module, in a circle, in a thread.
    same("capsules at the end", run(f"""
import sys, threading, xheap
t = xheap.open({str(PLAIN)!r})
kept = t.allocations().__arrow_c_stream__()
circle = [t.events().__arrow_c_stream__()]
circle.append(circle)
sys.modules["kept"] = [t.stacks().__arrow_c_stream__(), iter(t.events())]
next(sys.modules["kept"][1])
threading.Thread(target=lambda: threading.Event().wait(), args=(), daemon=True).start()
print("whole")
"""), (0, "whole\n"))


def check_threads():
    """Everybody asks, and one closes: each gets an answer or a ClosedError."""
    for _ in range(5):
        trace, wrong, answers = package.open(PLAIN), [], []
        begin, has_begun = threading.Barrier(5), threading.Event()

        def ask(work):
            begin.wait()
            try:
                for _ in range(20):
                    answers.append(work())
                    has_begun.set()
            except package.ClosedError:
                pass
            except BaseException as error:
                wrong.append(error)

        works = [lambda: trace.heap()[0], lambda: len(list(trace.allocations())), lambda: trace.info.event_count, lambda: len(list(trace.query("id", limit=7)))]
        threads = [threading.Thread(target=ask, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        begin.wait()
        has_begun.wait(60)
        trace.close()
        for thread in threads:
            thread.join()
        same("threads beside a close", wrong, [])
        same("users of the handle", trace._handle._users, 0)


def check_fork():
    trace = package.open(PLAIN)
    rows = iter(trace.allocations())
    next(rows)
    capsule = trace.allocations().__arrow_c_stream__()
    child = os.fork()
    if not child:
        try:
            for work in lambda: trace.info, lambda: list(trace.allocations()), lambda: trace.dx("1"), trace.heap:
                raises(package.ClosedError, ["before a fork", str(os.getppid())], work, "a trace of the parent")
            trace.close()
            again = package.open(PLAIN)
            same("rows in the child", len(list(again.allocations())), 3173)
            again.close()
        except BaseException as error:
            failed_child = error
            print(f"FAIL: the child: {failed_child!r}")
            os._exit(1)
        from package import failed
        sys.stdout.flush()
        os._exit(bool(failed))
    same("the child", os.waitpid(child, 0)[1], 0)
    same("the parent's rows", len(list(rows)), 3172)
    del capsule
    trace.close()


def check_library():
    """The package is imported without a library, and says what is missing when it is needed."""
    # On a machine where xheap is installed its library is found.
    is_installed = run("import ctypes; ctypes.CDLL('libxheap.so.0')", LD_LIBRARY_PATH="")[0] == 0
    opened = f"import xheap\ntry:\n    xheap.open({str(PLAIN)!r})\nexcept xheap.LibraryError as error:\n    print('LibraryError', error)"
    for environment, words in (
        ({"XHEAP_LIBRARY": "/nosuch/libxheap.so.0"}, ["/nosuch/libxheap.so.0", "XHEAP_LIBRARY"]),
        ({"XHEAP": "nosuch", "LD_LIBRARY_PATH": ""}, ["libxheap.so.0", "of a tree, build/xheap", "XHEAP_LIBRARY"]),
        ({"XHEAP_LIBRARY": "libc.so.6"}, ["libc.so.6", "version", str(layouts.XHEAP_API_VERSION)]),
    ):
        if is_installed and "XHEAP" in environment:
            continue
        status, said = run(opened, **environment)
        expect(status == 0 and said.startswith("LibraryError") and all(word in said for word in words), f"{environment}: {status} {said}")
    status, said = run(f"import xheap; t = xheap.open({str(PLAIN)!r}); t.report()", XHEAP="nosuch", XHEAP_LIBRARY=os.path.join(os.environ["BUILD"], "src/api/libxheap.so.0"))
    expect(status == 1 and "no command nosuch" in said, f"no command: {status} {said}")
    done = subprocess.run([sys.executable, "-m", "xheap"], env={**os.environ, "XHEAP": "nosuch"}, stderr=subprocess.PIPE, text=True)
    expect(done.returncode == 2 and "no command nosuch" in done.stderr, f"python -m xheap: {done}")
    for place in "lib", "lib/x86_64-linux-gnu", "lib64":
        prefix = pathlib.Path("installed", place.replace("/", "-")).absolute()
        (prefix / "bin").mkdir(parents=True)
        (prefix / place).mkdir(parents=True)
        (prefix / "bin/xheap").write_text("#!/bin/sh\n")
        (prefix / "bin/xheap").chmod(0o755)
        os.symlink(os.path.join(os.environ["BUILD"], "src/api/libxheap.so.0"), prefix / place / "libxheap.so.0")
        program = "from xheap import _library; print(_library.library()._name)"
        path = os.pathsep.join([str(prefix / "bin"), os.environ["PATH"]])
        same(f"the library in {place}", run(program, XHEAP="", PATH=path), (0, f"{prefix / 'bin' / '..' / place / 'libxheap.so.0'}\n"))
    same("where it is found beside the command of the build", run(f"import xheap; print(xheap.open({str(PLAIN)!r}).info.event_count)")[1], "5322\n")


def main():
    check_files()
    check_names()
    check_closed()
    check_release()
    check_capsules()
    check_threads()
    check_fork()
    check_library()
    finish()


main()
