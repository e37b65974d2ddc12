# SPDX-License-Identifier: MIT
"""SQL over the tables of a trace, where DuckDB is installed."""
import re
import threading
from typing import Any, Callable, Iterable

from ._library import Error
from ._rows import Rows


class Database:
    """A trace as a database, with a connection for each thread that asks. Relations of DuckDB 1 live no longer than their connection, so it is kept."""

    def __init__(self, tables: Iterable[str], rows: Callable[[str], Rows]):
        self._tables, self._rows = list(tables), rows
        self._local = threading.local()

    def _connection(self) -> Any:
        try:
            import duckdb
        except ImportError as error:
            raise Error(f"t.sql() needs the package duckdb: {error}") from error
        if not hasattr(self._local, "connection"):
            self._local.connection, self._local.known = duckdb.connect(":memory:"), set()
        return self._local.connection

    def _add(self, connection: Any, name: str) -> None:
        import duckdb

        rows = self._rows(name)
        try:
            # Before version 2, DuckDB reads the rows of a view once: a second query, or a table that a query names twice, has none.
            is_copied = int(duckdb.__version__.split(".")[0]) < 2
            connection.register(f"rows_of_{name}" if is_copied else name, rows)
            if is_copied:
                connection.execute(f"create table {name} as select * from rows_of_{name}")
                connection.unregister(f"rows_of_{name}")
        except duckdb.Error as error:
            raise Error(f"DuckDB {duckdb.__version__} does not take the table {name}: {error}") from error
        self._local.known.add(name)

    def run(self, query: str, parameters: Iterable[Any]) -> Any:
        """The relation that DuckDB makes of the query. Tables that no query has named are not read."""
        connection = self._connection()
        for name in self._tables:
            if name not in self._local.known and re.search(rf"\b{name}\b", query, re.I):
                self._add(connection, name)
        return connection.sql(query, params=list(parameters) or None)
