# SPDX-License-Identifier: MIT
"""The command `xheap` of gdb, which reads this file where it lies among the scripts of the system."""
import os
import re
import subprocess

import gdb

LEAST_WIDTH, MOST_WIDTH = 40, 300


def core_path():
    """The path of the core that is debugged; None: it is no core."""
    files = gdb.execute("info files", to_string=True)
    found = re.search(r"^Local core dump file:\n\t`(.*)', file type", files, re.MULTILINE)
    return os.path.abspath(found.group(1)) if found else None


def address_of(expression):
    value = gdb.parse_and_eval(expression)
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_FUNC) and value.address is not None:
        value = value.address
    return hex(int(value.cast(gdb.lookup_type("unsigned long"))))


def words_of(trace):
    """What tells `xheap explain` which process it is asked about."""
    core, pid = core_path(), gdb.selected_inferior().pid
    if core and not trace:
        raise gdb.GdbError("a core needs the trace of its process: xheap who ADDRESS TRACE")
    if core:
        return [core, "-trace", trace]
    if not pid:
        raise gdb.GdbError("no process and no core is debugged")
    return ["-pid", str(pid), trace] if trace else ["-p", str(pid)]


class Xheap(gdb.Command):
    """Ask xheap about the process or the core that is debugged."""

    def __init__(self):
        super().__init__("xheap", gdb.COMMAND_DATA, prefix=True)


class XheapWho(gdb.Command):
    """Say which block of the heap an address is in, or was in.
Usage: xheap who ADDRESS [TRACE]
The answer has who allocated and freed the block, what was there before, and what
lives beside it. ADDRESS is an expression, in quotes if it has blanks. TRACE is the
file that xheap recorded; without it, a session has to record the process."""

    def __init__(self):
        super().__init__("xheap who", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if len(words) not in (1, 2):
            raise gdb.GdbError("Usage: xheap who ADDRESS [TRACE]")
        trace = os.path.abspath(os.path.expanduser(words[1])) if len(words) > 1 else None
        command = ["xheap", "explain", *words_of(trace), address_of(words[0])]
        width = gdb.parameter("width")
        if width and LEAST_WIDTH <= width <= MOST_WIDTH:
            command += ["-width", str(width)]
        try:
            run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
        except OSError as error:
            raise gdb.GdbError(f"cannot run xheap: {error.strerror}") from error
        gdb.write(run.stdout)
        if run.returncode:
            raise gdb.GdbError(run.stderr.strip())


Xheap()
XheapWho()
