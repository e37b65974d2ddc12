# SPDX-License-Identifier: MIT
"""libxheap: how it is found, its errors as exceptions, and handles of its objects."""
import contextlib
import ctypes
import glob
import os
import re
import shutil
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Type, Union

from . import _layouts as layouts

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

LIBRARY = "libxheap.so.0"
# Where the library of a command is, seen from the command's folder: installed, and in a build directory.
BESIDE = (f"../lib/{LIBRARY}", f"../lib/*/{LIBRARY}", f"../lib64/{LIBRARY}", f"src/api/{LIBRARY}")


class Error(Exception):
    """What failed, where, and why. Each failure of libxheap or of the command is one; its class says which kind."""

    status: str = "failed"
    #: The errno behind it; 0: none.
    system_error: int = 0


class InvalidError(Error, ValueError):
    """An argument is not valid."""

    status = "invalid"


class ClosedError(InvalidError):
    """The object was closed, or belongs to the process that this one was forked from."""


class NotFoundError(Error, LookupError):
    """There is no such file, session or process."""

    status = "not found"


class ExistsError(Error):
    """The session exists, or another session records the process."""

    status = "exists already"


class DeniedError(Error):
    """The user lacks a permission."""

    status = "denied"


class DamagedError(Error):
    """The file is not a trace, or cannot be decoded."""

    status = "damaged"


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out."""

    status = "no memory"


class NoMatchError(Error, LookupError):
    """No frame of the trace matches the required ones."""

    status = "no match"


class GoneError(Error):
    """The logger of the session has ended, or does not answer."""

    status = "gone"


class LibraryError(Error, ImportError):
    """There is no libxheap, or one that is older than this package."""

    status = "no library"


_ERRORS: Dict[int, Type[Error]] = {
    layouts.XHEAP_INVALID: InvalidError,
    layouts.XHEAP_NOT_FOUND: NotFoundError,
    layouts.XHEAP_EXISTS: ExistsError,
    layouts.XHEAP_DENIED: DeniedError,
    layouts.XHEAP_DAMAGED: DamagedError,
    layouts.XHEAP_NO_MEMORY: OutOfMemoryError,
    layouts.XHEAP_NO_MATCH: NoMatchError,
    layouts.XHEAP_GONE: GoneError,
}


def text(value: Optional[bytes]) -> str:
    """A text of the library. A trace may hold any bytes: those that are no UTF-8 are shown as such."""
    return (value or b"").decode("utf-8", "backslashreplace")


def encoded(value: Path, what: str) -> bytes:
    """A path or a text as the library takes it."""
    made = os.fsencode(value)
    if b"\0" in made:
        raise InvalidError(f"{what} has a NUL in it: {value!r}")
    return made


def texts(values: Any, what: str) -> Tuple[Any, int]:
    """An array of texts, and its length."""
    made = [encoded(value, what) for value in values]
    return (ctypes.c_char_p * len(made))(*made), len(made)


def command() -> str:
    """Path of the command xheap: $XHEAP, else the one of PATH."""
    named = os.environ.get("XHEAP") or "xheap"
    found = shutil.which(named)
    if not found:
        raise LibraryError(f"there is no command {named}: install xheap, or set XHEAP to the path of its command")
    return found


def _candidates() -> Iterator[str]:
    """The library of the command comes first: both are of one version then."""
    named = os.environ.get("XHEAP_LIBRARY")
    if named:
        yield named
        return
    found = shutil.which(os.environ.get("XHEAP") or "xheap")
    if found:
        folder = os.path.dirname(os.path.realpath(found))
        for place in BESIDE:
            yield from sorted(glob.glob(os.path.join(glob.escape(folder), place)))
    yield LIBRARY


def _load() -> ctypes.CDLL:
    failures: List[str] = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            failures.append(str(error))
            continue
        try:
            version = library.xheap_api_version()
        except AttributeError:
            version = 2
        if version < layouts.XHEAP_API_VERSION:
            raise LibraryError(f"{path} has version {version} of its interface, and this package needs {layouts.XHEAP_API_VERSION}: install a newer xheap, or an older package")
        for name, (result, arguments) in layouts.FUNCTIONS.items():
            function = getattr(library, name, None)
            if function is None:
                raise LibraryError(f"{path} has no {name}(): it is of another build than this package")
            function.restype, function.argtypes = result, arguments
        return library
    raise LibraryError(f"cannot load libxheap: {'; '.join(failures)}. Install xheap, or set XHEAP to the path of its command (of a tree, build/xheap), or XHEAP_LIBRARY to that of {LIBRARY}")


_loaded: Optional[ctypes.CDLL] = None
_loading = threading.Lock()


def library() -> ctypes.CDLL:
    """The library. It is loaded by the first call, so that this package can be imported without one."""
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def failure(status: int, said: str, system_error: int = 0) -> Error:
    """The exception of a status."""
    error = _ERRORS.get(status, Error)(said)
    error.system_error = system_error
    return error


def call(name: str, *arguments: Any) -> int:
    """Call a function whose last parameter is the error. A failure is raised; else the status is returned."""
    error = layouts.xheap_error()
    status: int = getattr(library(), name)(*arguments, ctypes.byref(error))
    if status < 0:
        # The library names its function where a program in C has called it.
        raise failure(status, re.sub(r"^xheap_\w+: ", "", text(error.text)) or text(library().xheap_status_name(status)), error.system_error)
    return status


def initialised(struct: Any, prefix: str) -> Any:
    """A struct with its defaults."""
    made = struct()
    getattr(library(), f"{prefix}_init")(ctypes.byref(made), ctypes.sizeof(made))
    return made


class Handle:
    """An object of the library, which is freed once: when it is closed and the last call that uses it has returned.

    A process that was forked has a copy of the object, and not of the threads and locks around it: there it is neither used nor freed.
    """

    def __init__(self, what: str, pointer: Any, free: Callable[[Any], Any]):
        self.what = what
        self._pointer, self._free = pointer, free
        self._users, self._is_closed, self._pid = 0, False, os.getpid()
        self._lock = threading.Lock()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @contextlib.contextmanager
    def use(self) -> Iterator[Any]:
        """The pointer, which stays valid up to the end of the block."""
        if os.getpid() != self._pid:
            raise ClosedError(f"{self.what} was opened by process {self._pid}, before a fork: open it again in this process")
        with self._lock:
            if self._is_closed:
                raise ClosedError(f"{self.what} is closed")
            self._users += 1
        try:
            yield self._pointer
        finally:
            with self._lock:
                self._users -= 1
                is_last = self._is_closed and not self._users
            if is_last:
                self._free(self._pointer)

    def close(self) -> None:
        if os.getpid() != self._pid:
            self._is_closed = True
            return
        with self._lock:
            is_last = not self._is_closed and not self._users
            self._is_closed = True
        if is_last:
            self._free(self._pointer)

    def __del__(self) -> None:
        # Of an object whose making failed, nothing is there.
        if "_lock" in self.__dict__:
            self.close()
