# SPDX-License-Identifier: MIT
"""SQL over the tables of a trace, where DuckDB is installed."""
import re
import threading
from typing import Any, Callable, Iterable, Optional, Set, Tuple

from ._library import Error
from ._rows import Rows


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise Error(f"t.sql() needs the package duckdb: {error}") from error
    return duckdb


class Database:
    """A trace as a database: its tables are views of its rows.

    Before version 2, DuckDB reads the rows of a view once, so that a second query, or a table that a query names twice, has none: it gets copies. Its relations end with
    their connection there, which is kept for each thread that asks. Later ones hold their connection, and this object does not: the connection holds rows, rows the
    trace, and the trace this object.
    """

    def __init__(self, tables: Iterable[str]):
        self._tables = list(tables)
        self._local = threading.local()

    def run(self, query: str, parameters: Iterable[Any], rows: Callable[[str], Rows]) -> Any:
        """The relation that DuckDB makes of the query. Tables that the query does not name are not read."""
        duckdb = _duckdb()
        is_old = int(duckdb.__version__.split(".")[0]) < 2
        kept: Optional[Tuple[Any, Set[str]]] = getattr(self._local, "kept", None)
        connection, known = kept or (duckdb.connect(":memory:"), set())
        if is_old:
            self._local.kept = connection, known
        for name in self._tables:
            if name in known or not re.search(rf"\b{name}\b", query, re.I):
                continue
            try:
                connection.register(f"rows_of_{name}" if is_old else name, rows(name))
                if is_old:
                    connection.execute(f"create table {name} as select * from rows_of_{name}")
                    connection.unregister(f"rows_of_{name}")
            except duckdb.Error as error:
                raise Error(f"DuckDB {duckdb.__version__} does not take the table {name}: {error}") from error
            known.add(name)
        return connection.sql(query, params=list(parameters) or None)
