# SPDX-License-Identifier: MIT
"""Heap traces in Python, by libxheap and the command xheap, which must be installed."""
from ._library import (ClosedError, DamagedError, DeniedError, Error, ExistsError, GoneError, InvalidError, LibraryError, NoMatchError, NotFoundError,
                       OutOfMemoryError)

__all__ = [
    "ClosedError", "DamagedError", "DeniedError", "Error", "ExistsError", "GoneError", "InvalidError", "LibraryError", "NoMatchError", "NotFoundError",
    "OutOfMemoryError",
]


def __getattr__(name: str) -> str:
    # Reading the metadata takes longer than all other imports here.
    if name == "__version__":
        from importlib.metadata import version

        return version("xheap")
    raise AttributeError(f"module {__name__} has no attribute {name}")
