"""`QueryBuilder`: DuckDB's SQL over tables, with deltalake's methods.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from deltalog.query.duckdb import connect_duckdb, query_duckdb

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


class HasDataset(Protocol):
    """A `DeltaTable`, or another object whose rows a PyArrow dataset gives."""

    def to_pyarrow_dataset(self) -> Any:
        """Return the dataset."""
        ...


class QueryBuilder:
    """Runs DuckDB's SQL over registered tables.

    Results are independent: any number may be open at a time. Moments are shown in UTC, and only
    registered tables have names, not the caller's variables.

    Args:
        session_config: DuckDB settings (deltalake takes DataFusion's).

    Raises:
        InvalidInputError: DuckDB is not installed, or knows no such setting.
    """

    def __init__(self, session_config: Mapping[str, str] | None = None) -> None:
        self._database = connect_duckdb(session_config, is_closed=False)
        self._tables: dict[str, Any] = {}

    def register(self, table_name: str, delta_table: HasDataset) -> QueryBuilder:
        """Make the version that a table shows now known under a name."""
        self._tables[table_name] = delta_table.to_pyarrow_dataset()
        return self

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """The rows of a SELECT, streamed.

        Raises:
            InvalidInputError: DuckDB refuses the statement.
        """
        return query_duckdb(self._database, sql, self._tables)
