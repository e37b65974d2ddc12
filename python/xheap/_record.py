# SPDX-License-Identifier: MIT
"""Recordings: this process from here to there, or others."""
import contextlib
import ctypes
import itertools
import os
import tempfile
from typing import Any, Iterable, Optional, Union

from . import _layouts as layouts
from ._library import Error, Handle, InvalidError, Path, call, command, encoded, initialised, library, texts
from ._table import Table, Text
from ._trace import Trace

_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
_PR_SET_PTRACER = 0x59616D61
_ANY = -1
_numbers = itertools.count(1)


def _is_limited() -> bool:
    """Whether Yama lets only its parents trace a process."""
    try:
        with open(_YAMA) as file:
            return file.read().strip() == "1"
    except OSError:
        return False


def _let_trace(tracer: int) -> None:
    """Let this process trace us as well, or any, or (0) none."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(tracer), 0, 0, 0)


class Recording(contextlib.ContextDecorator):
    """A session that records from the start of a `with` block, or of a decorated function, to its end."""

    def __init__(self, path: Optional[Path], pid: Union[None, int, Iterable[int]], name: Optional[str], sample_bytes: int, stack_depth: int, options: Iterable[str]):
        pids = [pid] if isinstance(pid, int) else None if pid is None else list(pid)
        for number in pids or []:
            if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 1 << 31:
                raise InvalidError(f"pid is a process, or several, not {number!r}")
        if pids == []:
            raise InvalidError("pid is an empty list: there is nothing to record")
        for what, value in (("sample_bytes", sample_bytes), ("stack_depth", stack_depth)):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
                raise InvalidError(f"{what} is a number, 0 for the default, not {value!r}")
        self._pids, self._name = pids, name
        self._path = None if path is None else os.path.abspath(os.fsdecode(path))
        self._sample_bytes, self._stack_depth, self._options = sample_bytes, stack_depth, list(options)
        self._handle: Optional[Handle] = None
        self._owner = 0
        #: Path of the trace.
        self.path = self._path
        #: The totals, once the recording has ended.
        self.summary: Optional[Table] = None

    def start(self) -> "Recording":
        """Begin to record, as the `with` block does."""
        if self._handle and self._owner == os.getpid():
            raise InvalidError(f"{self._handle.what} records already: a second one needs an xheap.record() of its own")
        name = self._name or f"python{os.getpid()}-{next(_numbers)}"
        is_limited = self._pids is None and _is_limited()
        pids = [os.getpid()] if self._pids is None else self._pids
        options = initialised(layouts.xheap_session_options, "xheap_session_options")
        self.path = self._path or os.path.abspath(f"xheap.{name}.xht")
        options.path = encoded(self.path, "the path")
        options.pids, options.pid_count = (ctypes.c_int32 * len(pids))(*pids), len(pids)
        options.sample_bytes, options.stack_depth = self._sample_bytes, self._stack_depth
        options.words, options.word_count = texts(self._options, "an option")
        options.command = command().encode()
        session = ctypes.c_void_p()
        if is_limited:
            _let_trace(_ANY)
        try:
            call("xheap_session_start", encoded(name, "the name"), ctypes.byref(options), ctypes.byref(session))
        except Error:
            if is_limited:
                _let_trace(0)
            raise
        self._handle, self._owner, self.summary = Handle(f"session {name}", session, library().xheap_session_close), os.getpid(), None
        if is_limited:
            # From here on it is the logger alone, which detaches later.
            _let_trace(self._logger_pid())
        return self

    def _logger_pid(self) -> int:
        state = ctypes.POINTER(layouts.xheap_session_state)()
        with self._session().use() as session:
            call("xheap_session_query", session, ctypes.byref(state))
        pid: int = state.contents.logger_pid
        library().xheap_session_state_free(state)
        return pid

    def _session(self) -> Handle:
        if not self._handle:
            raise InvalidError("nothing is recorded: the recording has not begun, or has ended")
        return self._handle

    def flush(self) -> None:
        """Write all that was recorded until now into the trace."""
        with self._session().use() as session:
            call("xheap_session_flush", session)

    def snapshot(self) -> Trace:
        """The trace up to now, while the recording continues."""
        return Trace(session=self._session().what[len("session "):])

    def leaks(self, pid: Optional[int] = None, top: Optional[int] = None, may_stop: bool = False, **filters: Any) -> Text:
        """The lost blocks of a process as it is now, as `xheap leaks -p`; it is paused briefly.

        pid: the process; this one, if it is recorded.
        top: at most so many stacks.
        may_stop: it may be paused for as long as copying its memory takes.
        """
        time_ns, pause_ns = ctypes.c_int64(), ctypes.c_uint64()
        with tempfile.TemporaryDirectory(prefix="xheap-leaks.") as place:
            core = encoded(os.path.abspath(os.path.join(place, "core")), "the core")
            with self._session().use() as session:
                call("xheap_session_copy", session, os.getpid() if pid is None else pid, core, int(may_stop), ctypes.byref(time_ns), ctypes.byref(pause_ns))
            with self.snapshot() as trace:
                return trace._leaks(core, top, filters, (time_ns.value, pause_ns.value))

    def stop(self) -> Table:
        """End the recording, as the end of the `with` block does, and return its totals."""
        handle = self._session()
        summary = initialised(layouts.xheap_summary, "xheap_summary")
        try:
            with handle.use() as session:
                call("xheap_session_stop", session, ctypes.byref(summary))
        finally:
            self._handle = None
            handle.close()
            if self._pids is None and _is_limited():
                _let_trace(0)
        facts = [(name, getattr(summary, name)) for name, *_ in layouts.xheap_summary._fields_ if name != "size"]
        self.summary = Table(["fact", "value"], facts, self.path or "")
        return self.summary

    def open(self) -> Trace:
        """The trace of the ended recording."""
        if self._handle or not self.path:
            raise InvalidError("the recording has not ended: snapshot() has what was recorded up to now")
        return Trace(self.path)

    def __enter__(self) -> "Recording":
        return self.start()

    def __exit__(self, kind: Any, error: Any, where: Any) -> None:
        # A process that was forked in the block leaves it, too, and the recording is not its own.
        if not self._handle or self._owner != os.getpid():
            return
        try:
            self.stop()
        except Error:
            # The exception of the block says more than what came of it.
            if error is None:
                raise


def record(path: Optional[Path] = None, *, pid: Union[None, int, Iterable[int]] = None, name: Optional[str] = None, sample_bytes: int = 0, stack_depth: int = 0,
           options: Iterable[str] = ()) -> Recording:
    """Record this process, from the begin of a `with` block to its end, or while a decorated function runs:

        with xheap.record("out.xht") as recording:
            work()
        recording.open().report()

    path: the trace; without it xheap.NAME.xht. An existing file is replaced.
    pid: another process, or several, in place of this one.
    name: of the session, which `xheap query NAME` shows meanwhile.
    sample_bytes: record one block for so many bytes, in place of each.
    stack_depth: frames of a stack at most.
    options: more of `xheap start`, one word each.
    """
    return Recording(path, pid, name, sample_bytes, stack_depth, options)
