# SPDX-License-Identifier: MIT
"""Rows of a trace, as a stream of Arrow: capsules for other packages, and plain rows of Python without any."""
import ctypes
import errno
import itertools
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Type

from . import _layouts as layouts
from ._library import ClosedError, DamagedError, Error, InvalidError, OutOfMemoryError, text
from ._table import SHOWN_ROWS, Table, row_type

_ERRORS: Dict[int, Type[Error]] = {errno.EINVAL: InvalidError, errno.EBADMSG: DamagedError, errno.EPROTO: DamagedError, errno.ENOMEM: OutOfMemoryError}

# Formats of Arrow whose values lie one behind the other. Times are numbers of their unit.
_NUMBERS: Dict[str, Any] = {
    "c": ctypes.c_int8, "C": ctypes.c_uint8, "s": ctypes.c_int16, "S": ctypes.c_uint16, "i": ctypes.c_int32, "I": ctypes.c_uint32, "l": ctypes.c_int64,
    "L": ctypes.c_uint64, "f": ctypes.c_float, "g": ctypes.c_double,
}
# Those of texts, by the type of their offsets.
_TEXTS: Dict[str, Any] = {"u": ctypes.c_int32, "U": ctypes.c_int64}
_BITS = [[bool(byte >> bit & 1) for bit in range(8)] for byte in range(256)]


def _bits(pointer: int, offset: int, length: int) -> List[bool]:
    data = ctypes.string_at(pointer + offset // 8, (offset % 8 + length + 7) // 8)
    return list(itertools.chain.from_iterable(_BITS[byte] for byte in data))[offset % 8 : offset % 8 + length]


def _texts(array: Any, kind: Any, offset: int, length: int) -> List[str]:
    ends = (kind * (length + 1)).from_address(array.buffers[1] + offset * ctypes.sizeof(kind))[:] if length else [0]
    data = ctypes.string_at(array.buffers[2] + ends[0], ends[-1] - ends[0]) if ends[-1] > ends[0] else b""
    return [data[begin - ends[0] : end - ends[0]].decode("utf-8", "backslashreplace") for begin, end in zip(ends, ends[1:])]


def _column(schema: Any, array: Any, offset: int, length: int) -> List[Any]:
    """Values of a column from `offset` on: None for absent ones."""
    name = text(schema.format)
    offset += array.offset
    values: List[Any]
    if name in _NUMBERS:
        kind = _NUMBERS[name]
        values = (kind * length).from_address(array.buffers[1] + offset * ctypes.sizeof(kind))[:] if length else []
    elif name in _TEXTS:
        values = _texts(array, _TEXTS[name], offset, length)
    elif name == "b":
        values = _bits(array.buffers[1], offset, length) if length else []
    else:
        raise Error(f"the column {text(schema.name)} has the format {name}, which this package does not know")
    if schema.dictionary:
        words = array.dictionary.contents
        meanings = _column(schema.dictionary.contents, words, 0, words.length)
        places: Any = values
        values = [meanings[place] if 0 <= place < len(meanings) else None for place in places]
    if array.null_count and array.buffers[0]:
        values = [value if is_there else None for value, is_there in zip(values, _bits(array.buffers[0], offset, length))]
    return values


class _Stream:
    """A stream as the library gives it. It is read once, by this process."""

    def __init__(self, stream: Any):
        self.stream = stream
        self._pid = os.getpid()

    def _ask(self, function: Callable[[Any, Any], int], out: Any) -> Any:
        if os.getpid() != self._pid:
            raise ClosedError(f"these rows are read by process {self._pid}, before a fork: open the trace again in this process")
        failed = function(ctypes.byref(self.stream), ctypes.byref(out))
        if failed:
            raise _ERRORS.get(failed, Error)(text(self.stream.get_last_error(ctypes.byref(self.stream))) or os.strerror(failed))
        return out

    def schema(self) -> Any:
        """The caller releases it."""
        return self._ask(self.stream.get_schema, layouts.ArrowSchema())

    def batches(self) -> Iterator[Any]:
        """Each is released behind its turn."""
        while True:
            array = self._ask(self.stream.get_next, layouts.ArrowArray())
            if not array.release:
                return
            try:
                yield array
            finally:
                array.release(ctypes.byref(array))

    def close(self) -> None:
        if self.stream.release and os.getpid() == self._pid:
            self.stream.release(ctypes.byref(self.stream))


# ---- capsules ----

_NAME = ctypes.c_char_p(b"arrow_array_stream")
# What capsules point to, until they are gone.
_held: Dict[int, _Stream] = {}


def _make_release() -> Any:
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    name, held = _NAME, _held

    # The capsule is an address here: it is dying, and nobody may hold it again. All that is used is at hand, for modules may be empty when Python ends.
    def release(capsule: int) -> None:
        stream = held.pop(get_pointer(capsule, name), None)
        if stream:
            stream.close()

    return ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(release)


_release = _make_release()
# The last capsule may outlive this module.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_release))
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))


def _capsule(stream: _Stream) -> Any:
    address = ctypes.addressof(stream.stream)
    _held[address] = stream
    return _new_capsule(address, _NAME, ctypes.cast(_release, ctypes.c_void_p))


#: Rows of a batch at most, where fewer are wanted.
BATCH_ROWS = 65536


class Rows:
    """Rows of a trace, which are read when they are asked for, and anew each time.

    pandas, polars, pyarrow and DuckDB take them as they are, through `__arrow_c_stream__`. Iteration gives plain rows, named tuples, and needs none of these.
    """

    def __init__(self, what: str, opened: Callable[[int], Any]):
        self._what, self._opened = what, opened

    def _stream(self, batch_rows: int = 0) -> _Stream:
        """Of batches of the library's size, or of this one."""
        return _Stream(self._opened(batch_rows))

    @property
    def columns(self) -> Tuple[str, ...]:
        """Names of the columns."""
        stream = self._stream()
        try:
            schema = stream.schema()
            try:
                return tuple(text(schema.children[i].contents.name) for i in range(schema.n_children))
            finally:
                schema.release(ctypes.byref(schema))
        finally:
            stream.close()

    def __iter__(self) -> Iterator[Any]:
        return self._read(0)

    def _read(self, batch_rows: int) -> Iterator[Any]:
        stream = self._stream(batch_rows)
        try:
            schema = stream.schema()
            try:
                fields = [schema.children[i].contents for i in range(schema.n_children)]
                make = row_type([text(field.name) for field in fields])._make
                for batch in stream.batches():
                    columns = [_column(field, batch.children[i].contents, batch.offset, batch.length) for i, field in enumerate(fields)]
                    yield from map(make, zip(*columns))
            finally:
                schema.release(ctypes.byref(schema))
        finally:
            stream.close()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A new stream of all rows, as a capsule. The schema is that of the columns, whatever is requested."""
        return _capsule(self._stream())

    def table(self, top: Optional[int] = None) -> Table:
        """The first `top` rows, or all of them, in memory."""
        if top is not None and top < 1:
            raise InvalidError(f"top is a number of rows, at least 1, not {top!r}")
        return Table(self.columns, itertools.islice(self._read(min(top or 0, BATCH_ROWS)), top), self._what)

    def __repr__(self) -> str:
        return f"<xheap.Rows: {self._what}>"

    def _head(self) -> Table:
        table = self.table(SHOWN_ROWS + 1)
        if len(table) > SHOWN_ROWS:
            table.title += f", the first {SHOWN_ROWS} rows"
            table.rows.pop()
        return table

    def __str__(self) -> str:
        return str(self._head())

    def _repr_html_(self) -> str:
        return self._head()._repr_html_()
