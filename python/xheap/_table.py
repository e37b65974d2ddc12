# SPDX-License-Identifier: MIT
"""Tables: rows with named columns, as text for a terminal and as HTML for a notebook."""
import collections
import functools
import html
import keyword
import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union, overload

#: Rows of a table that are shown; the others are counted.
SHOWN_ROWS = 60
#: Characters of a cell that are shown.
SHOWN_CHARACTERS = 100
# Columns whose numbers are read as they are: addresses in hexadecimal, and ids without commas.
ADDRESSES = re.compile(r"(.*_)?(address|handle|offset)|heap")
IDS = re.compile(r"(.*_)?(id|pid|tid|seq|parent|process|line|frame|index)", re.I)
STYLE = "text-align: right; font-variant-numeric: tabular-nums"


def row_type(columns: Sequence[str]) -> Any:
    """A named tuple for the columns. A name that Python does not take as an attribute is changed: `class` is `class_`."""
    names: List[str] = []
    for column in columns:
        name = re.sub(r"\W", "_", column)
        name = f"{name}_" if keyword.iskeyword(name) else name.lstrip("_") or "column"
        name = f"column_{name}" if name[0].isdigit() else name
        while name in names:
            name += "_"
        names.append(name)
    return collections.namedtuple("Row", names)


def shown(value: Any, column: str = "") -> str:
    """A cell of the column. Control characters, which a hostile trace may have in its names, are shown as escapes."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:#x}" if ADDRESSES.fullmatch(column) else str(value) if IDS.fullmatch(column) else f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    said = "".join(character if character.isprintable() else character.encode("unicode_escape").decode() for character in str(value))
    return said if len(said) <= SHOWN_CHARACTERS else said[: SHOWN_CHARACTERS - 1] + "…"


class Table(Sequence[Any]):
    """Rows, each a named tuple. `text` in a terminal and HTML in a notebook show the columns of `shown_columns`, the first 60 rows of them."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "", shown_columns: Optional[Sequence[str]] = None):
        self.title = title
        self.columns: Tuple[str, ...] = tuple(columns)
        make = row_type(self.columns)._make
        self.rows: List[Any] = [make(row) for row in rows]
        self._shown = [self.columns.index(column) for column in shown_columns or self.columns]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> List[Any]: ...
    def __getitem__(self, place: Union[int, slice]) -> Any:
        return self.rows[place]

    def as_dict(self) -> Dict[str, List[Any]]:
        """The columns as lists, by their names: what pandas.DataFrame and polars.DataFrame take."""
        columns: List[List[Any]] = [list(column) for column in zip(*self.rows)] or [[] for _ in self.columns]
        return dict(zip(self.columns, columns))

    def _cells(self) -> List[List[str]]:
        return [[shown(row[place], self.columns[place]) for place in self._shown] for row in self.rows[:SHOWN_ROWS]]

    def _numbers(self) -> List[bool]:
        """Which of the shown columns are numbers."""
        return [all(isinstance(row[place], (int, float, type(None))) for row in self.rows[:SHOWN_ROWS]) for place in self._shown]

    def _rest(self) -> str:
        more = len(self.rows) - SHOWN_ROWS
        return f"… and {more:,} more" if more > 0 else ""

    def __str__(self) -> str:
        heads = [self.columns[place] for place in self._shown]
        cells, numbers = self._cells(), self._numbers()
        widths = [max(map(len, column)) for column in zip(heads, *cells)]
        lines = ["  ".join(cell.rjust(width) if is_number else cell.ljust(width) for cell, width, is_number in zip(line, widths, numbers)).rstrip() for line in [heads, *cells]]
        return "\n".join([*([self.title] if self.title else []), *lines, *([self._rest()] if self._rest() else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        numbers = self._numbers()

        def line(tag: str, cells: Iterable[str]) -> str:
            made = (f'<{tag} style="{STYLE}">' if is_number else f'<{tag} style="text-align: left">' for is_number in numbers)
            return "<tr>" + "".join(f"{start}{html.escape(cell)}</{tag}>" for start, cell in zip(made, cells)) + "</tr>"

        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        rest = f"<p>{self._rest()}</p>" if self._rest() else ""
        head = line("th", (self.columns[place] for place in self._shown))
        return f"<table>{caption}<thead>{head}</thead><tbody>{''.join(line('td', cells) for cells in self._cells())}</tbody></table>{rest}"


class Text:
    """A text of the command. `json` is its answer as an object, for which the command runs once more. In a notebook the text is shown as it is in a terminal."""

    def __init__(self, said: str, answer: Callable[[], Any]):
        self.text, self._answer = said, answer

    @functools.cached_property
    def json(self) -> Any:
        return self._answer()

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"
