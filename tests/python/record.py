#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings: this process in a block and in a decorated function, with threads and a forked child; another process; a snapshot; mistakes. No session stays."""
import json
import os
import signal
import subprocess
import sys
import threading

from package import expect, finish, raises, same, unpack, xheap

if not os.environ.get("UNPACKED"):
    unpack()
import xheap as package  # noqa: E402
from xheap import count  # noqa: E402

BLOCKS, BYTES = 50, 70001  # a size that nothing else here has
# Python asks for one byte more.
SIZE = (BYTES, BYTES + 2)


def make():
    return [bytearray(BYTES) for _ in range(BLOCKS)]


def made(trace):
    """Blocks of the size that were allocated while the trace was recorded."""
    return trace.query(count(), size=SIZE, where=~package.col("birth_ns").is_absent()).table()[0].count


def check_block():
    before = make()
    threads = [threading.Thread(target=make) for _ in range(3)]
    with package.record("block.xht") as recording:
        same("what a recording gives", type(recording).__name__, "Recording")
        kept = make()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        recording.flush()
        with recording.snapshot() as now:
            same("blocks up to now", made(now), 4 * BLOCKS)
        raises(package.InvalidError, ["records already"], recording.start, "a second start")
        raises(package.InvalidError, ["has not ended"], recording.open, "the trace of a recording that runs")
        child = os.fork()
        if not child:
            # Its exit from the block must not end the recording.
            try:
                make()
                recording.__exit__(None, None, None)
                os._exit(0)
            finally:
                os._exit(1)
        same("the child", os.waitpid(child, 0)[1], 0)
        same("its recording goes on", "block.xht" in xheap("sessions") + xheap("query", recording._session().what.split()[-1]), True)
        kept += make()
    later = make()
    expect(recording.summary and recording.summary.as_dict()["value"][0] > 0, f"{recording.summary}")
    same("losses", dict(recording.summary.rows)["lost_events"], 0)
    with recording.open() as trace:
        same("blocks", made(trace), 6 * BLOCKS)
        same("blocks from before", trace.query(count(), size=(BYTES, 70100), where=package.col("birth_ns").is_absent()).table()[0].count, BLOCKS)
        expect({os.getpid(), child} <= {row.pid for row in trace.table("process")}, f"the child {child} is missing: {trace.table('process').table()}")
        same("its path", trace.path, os.path.abspath("block.xht"))
    raises(package.InvalidError, ["ended"], recording.flush, "a recording that has ended")
    del before, kept, later


def check_function():
    @package.record("function.xht")
    def work(factor, *, more):
        """Words."""
        return [make() for _ in range(factor)], more

    same("its name", (work.__name__, work.__doc__), ("work", "Words."))
    for factor in 1, 2:
        same("its result", work(factor, more=3)[1], 3)
        with package.open("function.xht") as trace:
            same(f"blocks of call {factor}", made(trace), factor * BLOCKS)


def check_exception():
    recording = package.record("raised.xht")
    try:
        with recording:
            make()
            raise KeyError("of the block")
    except KeyError:
        pass
    with recording.open() as trace:
        same("blocks before the exception", made(trace), BLOCKS)
    # The session goes under the recording.
    try:
        with package.record("gone.xht", name=f"gone{os.getpid()}"):
            xheap("stop", f"gone{os.getpid()}")
        expect(False, "a session that somebody else has ended is an error")
    except package.Error as error:
        expect(f"gone{os.getpid()}" in str(error), f"{error}")


def check_other():
    program = f"import sys; sys.stdin.readline(); kept = [bytearray({BYTES}) for _ in range({BLOCKS})]; print(flush=True); sys.stdin.readline()"
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        with package.record("other.xht", pid=other.pid) as recording:
            make()
            other.stdin.write(b"\n")
            other.stdin.flush()
            other.stdout.readline()
        with recording.open() as trace:
            same("blocks of another process", made(trace), BLOCKS)
            same("it alone", [row.pid for row in trace.table("process")], [other.pid])
        with package.record(pid=[other.pid], name="named", sample_bytes=4096, stack_depth=5) as recording:
            pass
        same("a path of its own", recording.path, os.path.abspath("xheap.named.xht"))
        with recording.open() as trace:
            same("a sample", trace.info.sample_bytes, 4096)
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    raises(package.NotFoundError, [str(other.pid)], lambda: package.record("x.xht", pid=other.pid).start(), "a process that has ended")


LOSING = """#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *volatile kept[10];
__attribute__((noipa)) static void lose(int i) { void *volatile *block = calloc(1, 300); block[0] = calloc(1, 40); kept[i] = calloc(1, 50); }
__attribute__((noipa)) static void clean(void) { volatile char room[8000]; memset((char *)room, 0, sizeof(room)); }
int main(void)
{
	char byte;
	if (read(0, &byte, 1) != 1) return 1;
	for (int i = 0; i < 10; i++) lose(i);
	clean();
	if (write(1, "x", 1) != 1) return 1;
	return read(0, &byte, 1) < 0;
}
"""


def check_leaks():
    """Lost blocks of a process that runs, and of this one."""
    with open("losing.c", "w") as file:
        file.write(LOSING)
    subprocess.run(["cc", "-O1", "-fno-builtin", "-o", "losing", "losing.c"], check=True)
    with subprocess.Popen(["./losing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        with package.record("losing.xht", pid=other.pid) as recording:
            other.stdin.write(b"x")
            other.stdin.flush()
            other.stdout.read(1)
            lost = recording.leaks(other.pid)
            few = recording.leaks(other.pid, size=(300, 301), may_stop=True)
            raises(package.Error, ["process"], recording.leaks, "a process that is not recorded")
        other.communicate(b"\n")
    process = lost.json["processes"][0]
    same("what is lost", [(row["state"], row["count"], row["bytes"]) for row in process["rows"] if not row["earlier"]][:2], [("lost", 10, 3000), ("indirect", 10, 400)])
    expect(process["pause_us"] > 0 and process["pid"] == other.pid and "were paused for" in str(lost) or "was paused for" in str(lost), f"{lost}")
    same("of one size", [(row["state"], row["count"]) for row in few.json["processes"][0]["rows"]], [("lost", 10)])
    with package.record("own.xht") as recording:
        try:
            expect(recording.leaks(may_stop=True, top=3).json["processes"][0]["pid"] == os.getpid(), "this process")
        except package.Error as error:
            # A package that this process has loaded may bring an allocator whose heaps cannot be read.
            expect("lacks blocks from before an attach" in str(error), f"{error}")
    with package.open("losing.xht") as trace:
        raises(package.InvalidError, ["losing.c"], lambda: trace.leaks("losing.c"), "no core")
        raises(package.InvalidError, ["at least 1"], lambda: trace.leaks("losing.c", top=0), "no rows")


def check_yama():
    """Where only parents may trace, any process may for the start, then the logger alone, and nobody afterwards."""
    from xheap import _record
    let, path, calls = _record._let_trace, _record._YAMA, []
    _record._let_trace, _record._YAMA = calls.append, os.path.abspath("scope")
    try:
        for scope, wanted in ("0", 0), ("1", 3), ("2", 0):
            with open("scope", "w") as file:
                file.write(f"{scope}\n")
            with package.record("yama.xht", name=f"yama{scope}"):
                logger = json.loads(xheap("query", f"yama{scope}", "-format", "json"))["logger_pid"]
            same(f"at scope {scope}", calls, [-1, logger, 0][:wanted])
            calls.clear()
        with open("scope", "w") as file:
            file.write("1\n")
        raises(package.NotFoundError, ["nosuch"], lambda: package.record("nosuch/x.xht").start(), "a path")
        same("after a failed start", calls, [-1, 0])
    finally:
        _record._let_trace, _record._YAMA = let, path


def check_mistakes():
    for what, kind, words, work in (
        ("a path", package.NotFoundError, ["nosuch"], lambda: package.record("nosuch/x.xht").start()),
        ("an option", package.Error, ["--nosuch"], lambda: package.record("x.xht", options=["--nosuch"]).start()),
        ("a name", package.Error, ["name"], lambda: package.record("x.xht", name="a/b").start()),
        ("a pid", package.InvalidError, ["pid"], lambda: package.record("x.xht", pid="1")),
        ("no pids", package.InvalidError, ["pid", "empty"], lambda: package.record("x.xht", pid=[])),
        ("a size", package.InvalidError, ["sample_bytes"], lambda: package.record("x.xht", sample_bytes=-1)),
        ("nothing", package.InvalidError, ["not begun"], lambda: package.record("x.xht").stop()),
    ):
        raises(kind, words, work, what)
    expect(not os.path.exists("x.xht"), "a recording that did not begin has left a file")


def main():
    check_block()
    check_function()
    check_exception()
    check_other()
    check_leaks()
    check_yama()
    check_mistakes()
    expect("no sessions" in xheap("sessions"), f"sessions stay: {xheap('sessions')}")
    finish()


main()
