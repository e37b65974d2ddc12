# SPDX-License-Identifier: MIT
"""SQL over the tables of a trace, where DuckDB is installed."""
import re
from typing import Any, Dict, Iterable

from ._library import Error
from ._rows import Rows


def run(query: str, tables: Dict[str, Rows], parameters: Iterable[Any] = ()) -> Any:
    """The relation that DuckDB makes of the query. Tables that the query does not name are not read."""
    try:
        import duckdb
    except ImportError as error:
        raise Error(f"t.sql() needs the package duckdb: {error}") from error
    connection = duckdb.connect(":memory:")
    for name, rows in tables.items():
        if re.search(rf"\b{name}\b", query, re.I):
            connection.register(name, rows)
    return connection.sql(query, params=list(parameters) or None)
