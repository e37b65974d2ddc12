# SPDX-License-Identifier: MIT
"""Heap traces in Python.

    import xheap

    t = xheap.open("program.xht")
    t.report()                      # the first answer
    t.heap(by="function")           # where the memory went

Everything here reads by libxheap and the command xheap, which must be installed.
"""
from ._command import CommandError
from ._library import (ClosedError, DamagedError, DeniedError, Error, ExistsError, GoneError, InvalidError, LibraryError, NoMatchError, NotFoundError,
                       OutOfMemoryError)
from ._table import Table, Text
from ._trace import Info, Report, Trace, diff, open

__all__ = [
    "ClosedError", "CommandError", "DamagedError", "DeniedError", "Error", "ExistsError", "GoneError", "Info", "InvalidError", "LibraryError", "NoMatchError",
    "NotFoundError", "OutOfMemoryError", "Report", "Table", "Text", "Trace", "diff", "open",
]


def __getattr__(name: str) -> str:
    # Reading the metadata takes longer than all other imports here.
    if name == "__version__":
        from importlib.metadata import version

        return version("xheap")
    raise AttributeError(f"module {__name__} has no attribute {name}")
