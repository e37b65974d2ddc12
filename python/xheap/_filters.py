# SPDX-License-Identifier: MIT
"""The filters of xheap heap as keywords: for the library, and as words of the command."""
import ctypes
import datetime
import re
from typing import Any, Callable, Dict, List, NamedTuple, Tuple, Union

from . import _layouts as layouts
from ._library import InvalidError, encoded, initialised, texts

Time = Union[int, str, datetime.timedelta]

_UNITS: Dict[str, int] = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SIZES: Dict[str, int] = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_CLASSES = {"AIFI": layouts.XHEAP_AIFI, "AIFO": layouts.XHEAP_AIFO, "AOFI": layouts.XHEAP_AOFI, "AOFO": layouts.XHEAP_AOFO}
_LAST_NS = (1 << 63) - 1
# What the command takes as a time at most is less: thirty years are behind every trace.
_LAST_WORD_NS = 10**18
_LAST_SIZE = (1 << 64) - 1


def nanoseconds(value: Time) -> int:
    """A time: nanoseconds as columns have them, a text such as "1.5ms", or a timedelta."""
    if isinstance(value, datetime.timedelta):
        return (value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(-?)(\d+)(?:\.(\d+))?\s*(ns|us|ms|s)\s*", value)
        if not found:
            raise InvalidError(f"a time is a number with ns, us, ms or s behind it, not {value!r}")
        unit, fraction = _UNITS[found[4]], found[3] or ""
        return (-1 if found[1] else 1) * (int(found[2]) * unit + int(fraction.ljust(9, "0")[:9]) * unit // 10**9)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidError(f"a time is a whole number of nanoseconds, a text such as \"10ms\", or a timedelta, not {value!r}")
    return value


def size_bytes(value: Union[int, str]) -> int:
    """A size: bytes, or a text such as "4K"."""
    found = re.fullmatch(r"(\d+)([kmg]?)", str(value).strip().lower())
    if isinstance(value, bool) or not found:
        raise InvalidError(f"a size is a number of bytes, or a text such as \"4K\", not {value!r}")
    return int(found[1]) * _SIZES[found[2]]


def _pair(name: str, value: Any, convert: Callable[[Any], int], least: int, most: int) -> Tuple[int, int]:
    """From and to; None stands for no bound."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or len(value) != 2:
        raise InvalidError(f"{name} is a pair (from, to), where None is no bound, not {value!r}")
    begin, end = (least if value[0] is None else convert(value[0])), (most if value[1] is None else convert(value[1]))
    for bound in (begin, end):
        if not least <= bound <= most:
            raise InvalidError(f"{name}: {bound} is not from {least} to {most}")
    return begin, end


def _several(name: str, value: Any) -> List[Any]:
    found = [value] if isinstance(value, (str, bytes, int)) or not hasattr(value, "__iter__") else list(value)
    if not found:
        raise InvalidError(f"{name} is an empty list: nothing could pass")
    return found


class _Kind(NamedTuple):
    """A filter: how its value is checked, which members of the library's struct have it, and which words of the command."""

    check: Callable[[str, Any], Any]
    members: Callable[[Any], Dict[str, Any]]
    words: Callable[[Any], List[str]]


def _times(name: str, value: Any) -> Tuple[int, int]:
    return _pair(name, value, nanoseconds, -_LAST_NS - 1, _LAST_NS)


def _lifetimes(name: str, value: Any) -> Tuple[int, int]:
    return _pair(name, value, nanoseconds, 0, _LAST_NS)


def _sizes(name: str, value: Any) -> Tuple[int, int]:
    """A pair, or one size."""
    if isinstance(value, int) or isinstance(value, str):
        return size_bytes(value), size_bytes(value) + 1
    return _pair(name, value, size_bytes, 0, _LAST_SIZE)


def _window(name: str, value: Any) -> Tuple[str, int, int]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or len(value) != 3 or str(value[0]).upper() not in _CLASSES:
        raise InvalidError(f"{name} is (class, from, to), where class is {', '.join(_CLASSES)}, not {value!r}")
    return (str(value[0]).upper(), *_times(name, value[1:]))


def _patterns(name: str, value: Any) -> List[str]:
    found = _several(name, value)
    for pattern in found:
        if not isinstance(pattern, str) or not pattern or pattern.startswith("-"):
            raise InvalidError(f"{name} is a pattern such as \"libc!malloc\" or \"json_*\", or several, not {pattern!r}")
        encoded(pattern, name)
    return found


def _numbers(name: str, value: Any) -> List[int]:
    found = _several(name, value)
    for number in found:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 32:
            raise InvalidError(f"{name} is a number of the kernel's, or several, not {number!r}")
    return found


def _moment(name: str, value: Any) -> str:
    """A position SEQUENCE:STEP, or a time."""
    if isinstance(value, str) and ":" in value:
        return value
    return f"{nanoseconds(value)}ns"


def _array(values: List[int]) -> Any:
    return (ctypes.c_uint32 * len(values))(*values)


def _lists(pointer: str, count: str) -> Callable[[Any], Dict[str, Any]]:
    def members(value: Any) -> Dict[str, Any]:
        made, length = (_array(value), len(value)) if isinstance(value[0], int) else texts(value, pointer)
        return {pointer: made, count: length}

    return members


def _time_words(pair: Tuple[int, int]) -> List[str]:
    return [f"{min(max(bound, 0), _LAST_WORD_NS)}ns" for bound in pair]


_FILTERS = {
    "range": _Kind(_times, lambda value: {"from_ns": value[0], "to_ns": value[1]}, lambda value: ["-range", *_time_words(value)]),
    "size": _Kind(_sizes, lambda value: {"size_from": value[0], "size_to": value[1]}, lambda value: ["-size", *map(str, value)]),
    "lifetime": _Kind(_lifetimes, lambda value: {"lifetime_from_ns": value[0], "lifetime_to_ns": value[1]}, lambda value: ["-lifetime", *_time_words(value)]),
    "window": _Kind(_window, lambda value: {"window_class": _CLASSES[value[0]], "window_from_ns": value[1], "window_to_ns": value[2]},
                    lambda value: ["-window", value[0], *_time_words(value[1:])]),
    "function": _Kind(_patterns, _lists("require_frames", "require_frame_count"), lambda value: ["-requireFrames", *value]),
    "freed_by": _Kind(_patterns, _lists("require_free_frames", "require_free_frame_count"), lambda value: ["-requireFreeFrames", *value]),
    "pid": _Kind(_numbers, _lists("pids", "pid_count"), lambda value: ["-pids", *map(str, value)]),
    "tid": _Kind(_numbers, _lists("tids", "tid_count"), lambda value: ["-threads", *map(str, value)]),
    "heap": _Kind(_patterns, _lists("heaps", "heap_count"), lambda value: [word for name in value for word in ("-heap", name)]),
    "at": _Kind(_moment, lambda value: {"live_at": encoded(value, "at")}, lambda value: ["-at", value]),
    "closed": _Kind(lambda name, value: bool(value), lambda value: {"is_closed": int(value)}, lambda value: ["-closed"] if value else []),
}


def _checked(filters: Dict[str, Any]) -> List[Tuple[_Kind, Any]]:
    for name in filters:
        if name not in _FILTERS:
            raise InvalidError(f"there is no filter {name}: filters are {', '.join(_FILTERS)}")
    return [(_FILTERS[name], _FILTERS[name].check(name, value)) for name, value in filters.items() if value is not None]


def filter_struct(filters: Dict[str, Any]) -> Any:
    """The library's struct. ctypes keeps what its pointers lead to."""
    made = initialised(layouts.xheap_filter, "xheap_filter")
    for kind, value in _checked(filters):
        for member, content in kind.members(value).items():
            setattr(made, member, content)
    return made


def filter_words(filters: Dict[str, Any]) -> List[str]:
    """The command's words."""
    return [word for kind, value in _checked(filters) for word in kind.words(value)]
