# SPDX-License-Identifier: MIT
"""Traces: what a trace has, its reports, and rows of it."""
import contextlib
import csv
import ctypes
import functools
import json
import os
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _layouts as layouts
from ._command import WIDTH, answer, completed, run
from ._filters import filter_struct, filter_words
from ._library import Error, Handle, InvalidError, Path, call, encoded, initialised, library, text, texts
from ._plan import TEXTS, Expression, Plan, check_columns
from ._rows import Rows
from ._sql import Database
from ._table import Table, Text

# What rows of a report are, as the library names it, and the column of their names.
_ACTIONS = {
    "stack": "stacks", "function": "frames", "inclusive": "frames-inclusive", "image": "image", "heap": "heaps", "tree": "tree", "callers": "callers",
    "chain": "chains", "total": "totals",
}
_TABLES = {name[len("XHEAP_TABLE_"):].lower(): number for name, number in layouts.ENUMS["xheap_table"].items() if name != "XHEAP_TABLE_COUNT"}
_KEYS = {
    "outstanding_bytes": "so", "outstanding_count": "soc", "total_bytes": "st", "total_count": "stc", "realloc_count": "src", "peak_bytes": "sp",
    "peak_count": "spc", "temporary_count": "stt",
}
# What rows of a comparison are, as the command names it.
_DIFFS = {"stack": "-stacks", "function": "-frames", "inclusive": "-inclusive", "image": "-image", "tree": "-tree"}
_NUMBERS = [name for name, *_ in layouts.xheap_numbers._fields_]
_LIFETIMES = ["lifetime_min_ns", "lifetime_median_ns", "lifetime_max_ns", "threads", "processes"]
_SHOWN = ["outstanding_bytes", "outstanding_count", "total_bytes", "total_count", "peak_bytes"]


def _one_of(name: str, value: str, table: Dict[str, str]) -> str:
    """The library's word for a keyword; the library's own word is taken, too."""
    if value in table:
        return table[value]
    if value in table.values():
        return value
    raise InvalidError(f"{name} is one of {', '.join(table)}, not {value!r}")


def _row_count(top: int) -> int:
    if not 0 < top < 1 << 64:
        raise InvalidError(f"top is a number of rows, at least 1, not {top}")
    return top


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _value(struct: Any, name: str) -> Any:
    value = getattr(struct, name)
    if isinstance(value, bytes) or value is None:
        return text(value)
    return list(value) if isinstance(value, ctypes.Array) else value


class Info(Table):
    """Facts about a trace: each a row, and an attribute, such as `info.event_count`."""

    def __init__(self, struct: Any, path: str):
        facts = {name: _value(struct, name) for name, *_ in struct._fields_}
        facts["is_complete"] = bool(facts["is_complete"])
        if facts["whole_stacks"] == (1 << 64) - 1:
            facts["whole_stacks"] = None
        counts = facts.pop("kind_counts")
        for kind in range(layouts.XHEAP_KIND_COUNT):
            facts[f"{text(library().xheap_kind_name(kind)).lower()}_count"] = counts[kind]
        self._facts = facts
        super().__init__(["fact", "value"], facts.items(), title=path)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_facts"][name]
        except KeyError:
            raise AttributeError(f"a trace has no fact {name}: facts are {', '.join(self.__dict__.get('_facts', ()))}") from None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._facts]


def _written(write: str, made: Any, format: int) -> str:
    """What the library writes of something that it has made."""
    said, length = ctypes.c_char_p(), ctypes.c_size_t()
    call(write, made, format, ctypes.byref(said), ctypes.byref(length))
    try:
        return text(said.value)
    finally:
        library().xheap_text_free(said)


class Report(Table):
    """The rows of a report of xheap heap. `totals` are its sums, and `text` is the report as the command prints it."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], shown_columns: Sequence[str], totals: Dict[str, Any], title: str, handle: Handle):
        super().__init__(columns, rows, title, shown_columns)
        self.totals, self._handle = totals, handle
        self._writing = threading.Lock()

    @functools.cached_property
    def text(self) -> str:
        # A report is for one thread at a time.
        with self._writing, self._handle.use() as report:
            return _written("xheap_report_write", report, layouts.XHEAP_FORMAT_TEXT)


def _given(**options: Any) -> List[str]:
    """The options of a command that have a value."""
    return [word for name, value in options.items() if value is not None for word in (f"-{name}", str(value))]


def _numbers_of(struct: Any) -> List[Any]:
    return [getattr(struct, name) for name in _NUMBERS]


def _totals_of(struct: Any) -> Dict[str, Any]:
    made = dict(zip(_NUMBERS, _numbers_of(struct.numbers.contents)))
    made.update((name, getattr(struct, name)) for name, *_ in struct._fields_ if name != "numbers")
    return made


def _rows_of(report: Any, subject: str, by: str) -> Tuple[List[str], List[List[Any]]]:
    """Columns and rows. Those that only a split, a tree or one kind of rows has are there with these only."""
    rows: List[List[Any]] = []
    extra: List[str] = []
    is_tree = subject in ("tree", "callers")
    row = library().xheap_report_get_row(report, 0)
    while row:
        found = row.contents
        extra = extra or [text(found.extra_names[i]) for i in range(found.extra_count)]
        rows.append([
            text(found.text), *([text(found.by)] if by else []), *([found.depth, None if found.parent == layouts.XHEAP_NONE else found.parent] if is_tree else []),
            *_numbers_of(found.numbers.contents), *(getattr(found, name) for name in _LIFETIMES), *(found.extra[i] for i in range(found.extra_count)),
        ])
        row = library().xheap_report_get_row(report, len(rows))
    return [subject, *([by] if by else []), *(["depth", "parent"] if is_tree else []), *_NUMBERS, *_LIFETIMES, *extra], rows


def _collection(elements: List[Any], title: str) -> Table:
    """A table of a collection's elements: a column for each member that one of them has, or the column `value`. `index` is the key in the collection, if elements have one."""
    rows: List[Dict[str, Any]] = []
    for element in elements:
        is_keyed = isinstance(element, dict) and "value" in element and set(element) <= {"index", "value"}
        value = element["value"] if is_keyed else element
        key = {"index": element["index"]} if is_keyed and "index" in element else {}
        rows.append({**key, **(value if isinstance(value, dict) else {"value": value})})
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return Table(columns, [[row.get(name) for name in columns] for row in rows], title)


class Trace:
    """An open trace. Any thread may use it; close() waits for nobody, and calls that run end as usual.

    Filters are keywords of the methods that take them; an allocation passes all of them:

        range=(from, to)            allocated from one time to another, both included
        size=(from, below)          requested bytes; one number is that size
        lifetime=(from, below)
        window=(class, from, to)    AIFI, AIFO, AOFI or AOFO: allocated and freed inside or outside
        function="json_*"           with this frame on the stack of the allocation; a list: one of them
        freed_by="cache!evict"      with this frame on the stack of the free
        pid=, tid=, heap=           one or several
        at="2s"                     live at that time, or at a position "SEQUENCE:STEP"
        closed=True                 freed

    A time is a number of nanoseconds from the start, as columns have them, a text such as "1.5ms", or a timedelta. None is no bound.
    """

    def __init__(self, path: Optional[Path] = None, session: Optional[str] = None, without_index: bool = False, without_files: bool = False):
        options = initialised(layouts.xheap_open_options, "xheap_open_options")
        options.without_index, options.without_files = without_index, without_files
        pointer = ctypes.c_void_p()
        if (path is None) == (session is None):
            raise InvalidError("a trace is opened by its path, or by session=NAME")
        function, named = ("xheap_trace_open", path) if session is None else ("xheap_trace_open_session", session)
        assert named is not None
        self.path = os.fsdecode(named) if session is None else ""
        self.session = session
        call(function, encoded(named, "the path" if session is None else "the name"), ctypes.byref(options), ctypes.byref(pointer))
        self._handle = Handle(self.path or f"session {session}", pointer, library().xheap_trace_close)
        self._database = Database(_TABLES)
        self._options = [*(["-noIndex"] if without_index else [])]

    def close(self) -> None:
        """Close the trace. Rows and reports that were made of it stay."""
        self._handle.close()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle.is_closed:
            return f"<xheap.Trace {self._handle.what}: closed>"
        info = self.info
        return f"<xheap.Trace {self._handle.what}: {info.event_count:,} events of {_count(info.process_count, 'process', 'processes')}>"

    @property
    def info(self) -> Info:
        """The facts about the trace."""
        with self._handle.use() as trace:
            return Info(library().xheap_trace_get_info(trace).contents, self._handle.what)

    def _words(self, filters: Dict[str, Any]) -> List[str]:
        """The trace and the filters for the command, which reads the file by itself."""
        with self._handle.use():
            where = ["-session", self.session] if self.session is not None else [os.path.abspath(self.path)]
        return [*where, *self._options, *filter_words(filters)]

    def _side(self) -> str:
        """The trace as a side of a comparison."""
        if self.session is not None:
            raise InvalidError(f"{self._handle.what} cannot be compared: write its trace by xheap flush, and open that")
        return self._words({})[0]

    def report(self, **filters: Any) -> Text:
        """The first answer, as `xheap report`: the peak, what grows, and what is worth a look. `.json` has the same as docs/schema/report.json describes it."""
        words = ["report", *self._words(filters)]
        return Text(run([*words, "-width", str(WIDTH)]), lambda: answer(words))

    def _answer(self, command: str, words: Sequence[str]) -> Text:
        asked = [command, *self._words({}), *words]
        return Text(run([*asked, "-width", str(WIDTH)]), lambda: answer(asked))

    def why(self, at: Optional[str] = None, pid: Optional[int] = None, top: Optional[int] = None) -> Text:
        """What the resident memory of a process is, as `xheap why`. `.json` has the same as docs/schema/why.json describes it.

        at: which reading: "peak" (the default), "end", or the one nearest to a time such as "2s".
        pid: the process; without it, the one with the largest reading.
        top: at most so many rows of each list.
        """
        return self._answer("why", _given(at=at, pid=pid, top=top))

    def leaks(self, core: Path, top: Optional[int] = None, **filters: Any) -> Text:
        """The lost blocks of a process, as `xheap leaks`. `.json` has the same as docs/schema/leaks.json describes it.

        core: the path of a core of the process. Of a process that runs, `leaks()` of its recording makes one.
        top: at most so many stacks.
        """
        return self._leaks(core, top, filters)

    def _leaks(self, core: Path, top: Optional[int], filters: Dict[str, Any], moment: Optional[Tuple[int, int]] = None) -> Text:
        """moment: when the process, which ran on, was paused, and for how long."""
        options = initialised(layouts.xheap_leaks_options, "xheap_leaks_options")
        filter = filter_struct(filters)
        options.filter = ctypes.pointer(filter)
        options.core = encoded(core, "the core")
        if top is not None:
            options.top = _row_count(top)
        if moment:
            options.is_running, (options.time_ns, options.pause_ns) = 1, moment
        made = ctypes.c_void_p()
        with self._handle.use() as trace:
            call("xheap_leaks_make", trace, ctypes.byref(options), ctypes.byref(made))
        with Handle(f"the lost blocks of {self._handle.what}", made, library().xheap_leaks_free).use() as leaks:
            said, answer = (_written("xheap_leaks_write", leaks, format) for format in (layouts.XHEAP_FORMAT_TEXT, layouts.XHEAP_FORMAT_JSON))
        return Text(said, lambda: json.loads(answer))

    def explain(self, address: Optional[int] = None, at: Optional[str] = None, pid: Optional[int] = None) -> Text:
        """How a process crashed, or what happened at an address, as `xheap explain`. `.json` has the same as docs/schema/explain.json describes it.

        address: what is asked about; without it, the end of a process.
        at: the moment, such as "2s"; without it, the end.
        pid: the process.
        """
        return self._answer("explain", [*([hex(address)] if address is not None else []), *_given(at=at, pid=pid)])

    def heap(self, by: str = "function", sort: str = "outstanding_bytes", top: int = 10000, split: Optional[str] = None, callers_of: Optional[str] = None,
             cull: Sequence[str] = (), default_cull: bool = True, lines: bool = False, **filters: Any) -> Report:
        """Where the memory went: a row for each `by`, as `xheap heap`.

        by: stack, function, inclusive (each function anywhere on the stacks), image, heap, tree, callers (with `callers_of`), chain or total.
        sort: the number that rows are sorted by, the most first.
        split: a row for each process, thread, heap, size, lifetime, time or class.
        cull: patterns of functions that are removed from the inner end of stacks; `default_cull` removes those of the built-in list.
        lines: a row for each line of a call in a function.
        """
        options = initialised(layouts.xheap_report_options, "xheap_report_options")
        filter = filter_struct(filters)
        options.filter = ctypes.pointer(filter)
        options.action = _one_of("by", by, _ACTIONS).encode()
        options.sort = _one_of("sort", sort, _KEYS).encode()
        options.by = encoded(split, "split") if split else None
        options.callers_of = encoded(callers_of, "callers_of") if callers_of else None
        options.top = _row_count(top)
        options.cull_frames, options.cull_frame_count = texts([cull] if isinstance(cull, str) else cull, "cull")
        options.without_default_cull, options.with_lines = not default_cull, lines
        report = ctypes.c_void_p()
        with self._handle.use() as trace:
            call("xheap_report_make", trace, ctypes.byref(options), ctypes.byref(report))
        handle = Handle(f"the report of {self._handle.what}", report, library().xheap_report_free)
        with handle.use() as made:
            totals = _totals_of(library().xheap_report_get_totals(made).contents)
            columns, rows = _rows_of(made, by, split or "")
        return Report(columns, rows, [by, *([split] if split else []), *_SHOWN], totals, self._handle.what, handle)

    # ---- rows ----

    def _opened(self, table: str, columns: Optional[Sequence[str]], filters: Dict[str, Any], plan: Optional[Plan], batch_rows: int) -> Any:
        """A new stream of the library's."""
        query = initialised(layouts.xheap_query, "xheap_query")
        query.table, query.batch_rows = _TABLES[table], batch_rows
        if filters:
            query.filter = ctypes.pointer(filter_struct(filters))
        if columns is not None:
            query.columns, query.column_count = texts(columns, "a column")
        stream = layouts.ArrowArrayStream()
        with contextlib.ExitStack() as held:
            trace = held.enter_context(self._handle.use())
            if plan:
                query.plan = held.enter_context(plan.made(query.table, self._functions_called).use())
            call("xheap_query_arrow", trace, ctypes.byref(query), ctypes.byref(stream))
        return stream

    def _rows(self, table: str, columns: Optional[Sequence[str]] = None, filters: Optional[Dict[str, Any]] = None, plan: Optional[Plan] = None) -> Rows:
        if columns is not None and (isinstance(columns, str) or not columns):
            raise InvalidError(f"columns is a list of names, not {columns!r}")
        wanted = list(columns or (plan.columns() if plan else ()))
        if wanted:
            check_columns(table, _TABLES[table], wanted, lambda: (*self._rows(table).columns, *TEXTS[table]))
        given = {name: value for name, value in (filters or {}).items() if value is not None}
        filter_struct(given)  # what is wrong with them is said here, not when rows are read
        with self._handle.use():
            return Rows(f"{table} of {self._handle.what}", lambda batch_rows: self._opened(table, columns, given, plan, batch_rows))

    def _functions_called(self, name: str) -> List[int]:
        """Ids of the allocation functions with the name."""
        return [row.id for row in self.table("function") if row.name == name]

    def allocations(self, columns: Optional[Sequence[str]] = None, **filters: Any) -> Rows:
        """Blocks in the order of their births: the columns of `xheap dump -allocations`. If they are asked for: `caller` and `free_caller`, the first functions of the program's own code, and `stack` and `free_stack`, whole stacks as texts."""
        return self._rows("allocation", columns, filters)

    def events(self, columns: Optional[Sequence[str]] = None, range: Any = None) -> Rows:
        """Heap calls in the order of time: the columns of `xheap dump -events`, and `caller` and `stack` if they are asked for."""
        return self._rows("event", columns, {"range": range})

    def stacks(self) -> Rows:
        """The tree of stacks: id, parent, frame. A stack is its innermost frame, and the stack of its callers."""
        return self._rows("stack")

    def table(self, name: str) -> Rows:
        """One of the tables allocation, event, stack, frame, function, thread, process, heap and image, whole."""
        if name not in _TABLES:
            raise InvalidError(f"there is no table {name}: tables are {', '.join(_TABLES)}")
        return self._rows(name)

    def query(self, select: Union[str, Sequence[Any]] = (), *, where: Optional[Expression] = None, by: Union[str, Sequence[Any]] = (), order: Union[str, Sequence[str]] = (),
              limit: Optional[int] = None, skip: int = 0, table: str = "allocation", **filters: Any) -> Rows:
        """The answer to a question over the columns of allocations, or of events (`table="event"`), computed by the library.

            from xheap import col, count
            t.query(["address", "size"], where=(col("size") > 4096) & (col("end_kind") == "free"), order="-size", limit=10)
            t.query([count(), col("size").sum()], by="function", order="-sum_size")

        select: columns, by name or as expressions; with `by`, or alone, sums over rows.
        order: names of columns of the result; those with - before them from the greatest down.
        """
        if table not in ("allocation", "event"):
            raise InvalidError(f"a question is about the table allocation or event, not {table!r}")
        lists: List[List[Any]] = [[item] if isinstance(item, str) or not hasattr(item, "__iter__") else list(item) for item in (select, by, order)]
        plan = Plan(table, lists[0] or ([] if lists[1] else list(self._rows(table).columns)), where, lists[1], lists[2], limit, skip)
        return self._rows(table, None, filters, plan)

    def sql(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Ask in SQL, where DuckDB is installed, over the tables of `table()`. The answer is a relation of DuckDB's: `.fetchall()`, `.df()`, `.pl()`, `.write_parquet(path)`."""
        with self._handle.use():
            return self._database.run(query, parameters, self.table)

    def export(self, format: str, path: Path, **filters: Any) -> str:
        """Write the trace in the format of another tool, as `xheap export`, and return what the command says: what this format, or the trace, does not hold."""
        return completed(["export", *self._words(filters), "-format", format, "-o", os.fsdecode(path)])[1].replace("xheap: ", "").strip()

    def dx(self, query: str) -> Any:
        """Ask in the debugger's language, as `xheap dx`. A collection is a table with the members of its elements, an object a dict, any other value itself."""
        found = answer(["dx", *self._words({}), query])
        if "stopped" in found:
            raise Error(f"{self._handle.what}: {query}: {found['stopped']}")
        result = found.get("result")
        if isinstance(result, dict) and set(result) == {"error"}:
            raise Error(f"{self._handle.what}: {query}: {result['error']}")
        return _collection(result, query) if isinstance(result, list) else result


def open(path: Optional[Path] = None, *, session: Optional[str] = None, without_index: bool = False, without_files: bool = False) -> Trace:
    """Open a trace file, or what the session `session` has recorded up to now.

    without_index: match the events again in place of reading the index of an earlier report.
    without_files: take names from the trace only, and open no executable and no debug file.
    """
    return Trace(path, session, without_index, without_files)


def _number(value: str) -> Any:
    """Of a cell: a whole number, an estimate, a word, or nothing."""
    for convert in (int, float):
        try:
            return convert(value)
        except ValueError:
            pass
    return value or None


def _side(side: Union[Trace, Path]) -> str:
    """A side of a comparison as a word of the command; a path that begins with - is no option."""
    if isinstance(side, Trace):
        return side._side()
    path = os.fsdecode(side)
    return os.path.join(".", path) if path.startswith("-") else path


def diff(a: Union[Trace, Path], b: Union[Trace, Path], by: str = "function", sort: str = "outstanding_bytes", top: int = 10000, **filters: Any) -> Table:
    """What changed from `a` to `b`, as `xheap diff`: a row for each `by`, those that changed most first. `state` is new, gone or both.

    `a` and `b` are traces or paths; a path may have a window behind it, as in "server.xht@0..60s". `by` is stack, function, inclusive, image or tree.
    """
    kind, key = _one_of("by", by, _DIFFS), _one_of("sort", sort, _KEYS)
    words = ["diff", _side(a), _side(b), *filter_words(filters)]
    words += [*(["-frames", key, kind] if kind == "-inclusive" else [kind, key]), "-top", str(top)]
    lines = list(csv.reader(run([*words, "-format", "csv"]).splitlines()))
    heads = lines[0] if lines else []
    subject = len(heads) - 1
    rows = [[line[subject], *map(_number, line[:subject])] for line in lines[1:]]
    number = next(name for name, word in _KEYS.items() if word == key)
    return Table([by, *heads[:subject]], rows, f"{words[1]} to {words[2]}", [by, "state", *(f"{number}_{side}" for side in ("change", "a", "b"))])
