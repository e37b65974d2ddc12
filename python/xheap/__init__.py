# SPDX-License-Identifier: MIT
"""Heap traces in Python.

    import xheap

    t = xheap.open("program.xht")
    t.report()                      # the first answer
    t.heap(by="function")           # where the memory went
    t.allocations(size=(4096, None))

Everything here reads and records by libxheap and the command xheap, which must be installed. docs/python.md describes it.
"""
from ._command import CommandError
from ._library import (ClosedError, DamagedError, DeniedError, Error, ExistsError, GoneError, InvalidError, LibraryError, NoMatchError, NotFoundError,
                       OutOfMemoryError)
from ._plan import Aggregate, Expression, col, count, when
from ._record import Recording, record
from ._rows import Rows
from ._table import Table, Text
from ._trace import Info, Report, Trace, diff, open

__all__ = [
    "Aggregate", "ClosedError", "CommandError", "DamagedError", "DeniedError", "Error", "ExistsError", "Expression", "GoneError", "Info", "InvalidError",
    "LibraryError", "NoMatchError", "NotFoundError", "OutOfMemoryError", "Recording", "Report", "Rows", "Table", "Text", "Trace", "col", "count", "diff", "open", "record", "when",
]


def __getattr__(name: str) -> str:
    # Reading the metadata takes longer than all other imports here.
    if name == "__version__":
        from importlib.metadata import version

        return version("xheap")
    raise AttributeError(f"module {__name__} has no attribute {name}")
