# SPDX-License-Identifier: MIT
"""The plugin of pytest: `pytest --xheap` says what memory each test needs, and marks limit it.

Each process that runs tests records itself, in one session. A test is a window of its trace, between two blocks that are taken for that alone: so its bounds are exact.
"""
import ctypes
import gc
import os
import re
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest

MARKS = {
    "limit_memory": "(size): with --xheap, the test fails if it needs more bytes above those at its start: a number, or a text such as '24 MB'",
    "limit_allocations": "(count): with --xheap, the test fails if it allocates more blocks",
    "limit_leaks": "(size): with --xheap, the test fails if more bytes of it are still there after it, and a collection",
}
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_ALIGNMENT = 4096
_STACKS, _OWN_STACKS, _FRAMES = 3, 8, 12
_OWN = re.compile(r"pytest_plugin\.py!(Recorder\.)?bound")
_INTERPRETER = re.compile(r"(lib)?python3")
Row = Tuple[str, int, int, int]  # a test: bytes above the start, blocks, bytes that stay


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("xheap", "memory of tests, by xheap")
    group.addoption("--xheap", action="store_true", help="record the heap, report what memory each test needs, and check the limits of marks")
    group.addoption("--xheap-most", type=int, default=10, metavar="N", help="list the N tests that need the most (10)")
    group.addoption("--xheap-warm-up", action="store_true", help="run each test once before it is measured, so that imports and caches are not its own")
    group.addoption("--xheap-traces", metavar="DIRECTORY", help="keep the trace of each process that ran tests there")


def pytest_configure(config: Any) -> None:
    for name, text in MARKS.items():
        config.addinivalue_line("markers", name + text)
    if config.getoption("xheap"):
        config.pluginmanager.register(Recorder(config), "xheap-recorder")


def bytes_of(value: Any) -> int:
    """A size as marks have it; units are powers of 1024."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt]?)(?:i?b)?)\s*", str(value), re.I)
    if not found or isinstance(value, bool):
        raise pytest.UsageError(f"a limit is a number of bytes, or a text such as '24 MB', not {value!r}")
    return int(float(found[1]) * (1 << _UNITS[found[2].lower()]))


def count_of(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise pytest.UsageError(f"a limit of allocations is a number, not {value!r}")
    return value


def shown(size: int) -> str:
    number, unit = float(size), 0
    while number >= 1024 and unit < 4:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f} {'BKMGT'[unit]}iB" if unit else f"{size} B"


def counted(count: int) -> str:
    return f"{count:,} block{'' if count == 1 else 's'}"


# Of each mark: how its limit is read, the figure of a row, how figures are shown, and what stacks are sorted by.
_LIMITS: Dict[str, Tuple[Any, int, Any, str]] = {
    "limit_memory": (bytes_of, 1, shown, "peak_bytes"),
    "limit_allocations": (count_of, 2, counted, "total_count"),
    "limit_leaks": (bytes_of, 3, shown, "outstanding_bytes"),
}


class Recorder:
    """Of one process: its session, and what its tests needed."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.recording: Any = None
        self.directory: Any = None
        self.names = [""]  # the first window is empty: what the bounds themselves allocate
        self.over: Dict[str, str] = {}
        self.rows: List[Row] = []
        libc = ctypes.CDLL(None)
        self.take, self.free = libc.aligned_alloc, libc.free
        self.take.argtypes, self.take.restype = [ctypes.c_size_t, ctypes.c_size_t], ctypes.c_void_p
        self.free.argtypes, self.free.restype = [ctypes.c_void_p], None

    def start(self) -> None:
        """Begin to record. Not before the first test: the process that only hands tests to workers has none."""
        import xheap

        self.directory = tempfile.TemporaryDirectory(prefix="xheap-pytest.")
        folder = self.config.getoption("xheap_traces") or self.directory.name
        worker = getattr(self.config, "workerinput", {}).get("workerid", "main")
        try:
            os.makedirs(folder, exist_ok=True)
            self.recording = xheap.record(os.path.join(folder, f"{worker}.xht")).start()
        except (xheap.Error, OSError) as error:
            self.recording = None
            pytest.exit(f"xheap cannot record the tests: {error}", 2)
        self.bound(1)
        gc.collect()
        self.bound(2)

    def bound(self, number: int) -> None:
        """A block that no other code takes, at the start (odd) or the end of a test."""
        self.free(self.take(_ALIGNMENT, number))

    @pytest.hookimpl(hookwrapper=True)  # type: ignore[misc,unused-ignore]
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        if not self.recording:
            self.start()
        run = item.runtest
        if self.config.getoption("xheap_warm_up"):
            warm_up(run)
        before = len(self.names)

        def runtest() -> None:
            self.names.append(item.nodeid)
            number = 2 * len(self.names)
            gc.collect()
            self.bound(number - 1)
            try:
                run()
            finally:
                gc.collect()
                self.bound(number)

        item.runtest = runtest
        yield
        item.runtest = run
        marks = [mark for mark in item.iter_markers() if mark.name in _LIMITS] if len(self.names) > before else []
        name = getattr(item, "originalname", None) or item.name
        said = [text for text in (self.exceeded(mark, 2 * len(self.names), name) for mark in marks) if text]
        if said:
            self.over[item.nodeid] = "\n".join(said)

    @pytest.hookimpl(hookwrapper=True)  # type: ignore[misc,unused-ignore]
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        outcome: Any = yield
        report = outcome.get_result()
        said = self.over.pop(item.nodeid, None) if call.when == "call" else None
        if said and report.outcome == "passed":
            report.outcome, report.longrepr = "failed", said
        elif said:
            report.sections.append(("xheap", said))

    def exceeded(self, mark: Any, number: int, name: str) -> Optional[str]:
        """What a test is over the limit of a mark; None: it is not."""
        read, figure, show, sort = _LIMITS[mark.name]
        if len(mark.args) != 1 or mark.kwargs:
            raise pytest.UsageError(f"{mark.name} has one argument: its limit")
        limit = read(mark.args[0])
        trace = self.recording.snapshot()
        try:
            bounds = windows(trace, number)
            needed = int(measured(trace, "", bounds[-1], measured(trace, "", bounds[0]))[figure])
            if needed <= limit:
                return None
            rows = trace.heap(by="stack", range=bounds[-1], pid=os.getpid(), sort=sort, top=_STACKS + _OWN_STACKS, lines=True)
            own = [row for row in rows if row.total_count and getattr(row, sort) and not _OWN.search(row.stack)][:_STACKS]
            stacks = "".join(f"      {show(getattr(row, sort))}\n{stack_shown(row.stack, name)}\n" for row in own)
        finally:
            trace.close()
        more = f"{show(needed)}: {show(needed - limit)}{f' ({100 * (needed - limit) / limit:.1f} %)' if limit else ''} more than the {show(limit)} allowed"
        return f"over  {mark.name}({mark.args[0]!r})\n      {more}\n{stacks}"

    def pytest_sessionfinish(self) -> None:
        if not self.recording:
            return
        self.recording.stop()
        trace = self.recording.open()
        try:
            bounds = windows(trace, 2 * len(self.names))
            empty = measured(trace, "", bounds[0])
            self.rows = [measured(trace, name, window, empty) for name, window in zip(self.names[1:], bounds[1:])]
        finally:
            trace.close()
            self.directory.cleanup()
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["xheap"] = self.rows

    @pytest.hookimpl(optionalhook=True)  # type: ignore[misc,unused-ignore]
    def pytest_testnodedown(self, node: Any) -> None:
        """Of pytest-xdist: a worker has ended."""
        self.rows += [tuple(row) for row in getattr(node, "workeroutput", {}).get("xheap", ())]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.rows:
            return
        most = sorted(self.rows, key=lambda row: (-row[1], row[0]))[:self.config.getoption("xheap_most")]
        terminalreporter.section("xheap: memory of tests")
        terminalreporter.write_line(f"{'above start':>13}  {'allocations':>13}  {'not freed':>10}  test")
        for name, peak, blocks, stay in most:
            terminalreporter.write_line(f"{shown(peak):>13}  {blocks:>13,}  {shown(stay):>10}  {name}")
        if len(most) < len(self.rows):
            terminalreporter.write_line(f"{len(self.rows) - len(most):,} more tests: --xheap-most {len(self.rows)} lists them")


def warm_up(run: Any) -> None:
    """Run a test; what comes of it is said when it runs again."""
    try:
        run()
    except KeyboardInterrupt:
        raise
    except BaseException:
        pass


def windows(trace: Any, count: int) -> List[Tuple[int, int]]:
    """From the end of the block at each test's start to just before the one at its end. Their sizes count from 1."""
    bounds: List[Any] = []
    for block in trace.allocations(size=(1, count + 1), pid=os.getpid(), columns=["size", "function", "address", "birth_ns", "end_ns"]):
        if block.size == len(bounds) + 1 and block.function in ("aligned_alloc", "memalign") and not block.address % _ALIGNMENT:
            bounds.append(block)
    return [(start.end_ns, end.birth_ns - 1) for start, end in zip(bounds[::2], bounds[1::2])]


def measured(trace: Any, name: str, window: Tuple[int, int], empty: Row = ("", 0, 0, 0)) -> Row:
    """What a window has more than the empty one."""
    pid = os.getpid()
    totals = trace.heap(by="total", range=window, pid=pid).totals
    before = trace.heap(by="total", at=window[0], pid=pid).totals["peak_bytes"]
    peak, blocks, stay = totals["peak_bytes"] - before - empty[1], totals["total_count"] - empty[2], totals["outstanding_bytes"] - empty[3]
    return name, max(0, peak), max(0, blocks), max(0, stay)


def stack_shown(stack: str, name: str) -> str:
    """The frames up to the test's function, innermost first, without those of the interpreter."""
    lines: List[str] = []
    for frame in stack.split(";"):
        if not _INTERPRETER.match(frame):
            lines.append(f"        {frame}\n")
        if re.search(rf"[!.]{re.escape(name)}( |$)", frame) or len(lines) == _FRAMES:
            break
    return "".join(lines)
