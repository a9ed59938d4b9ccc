"""SQL over tables, by DuckDB.

Owns the registration of tables under names; the query is DuckDB's affair, reading is `scan`'s.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from deltalog.table import DeltaTable


class QueryBuilder:
    """Runs SQL over registered tables.

    Args:
        session_config: DuckDB settings.

    Raises:
        InvalidInputError: DuckDB is not installed.
    """

    def __init__(self, session_config: Mapping[str, str] | None = None) -> None:
        try:
            import duckdb  # noqa: PLC0415  # optional
        except ImportError as error:
            raise InvalidInputError(
                "cannot run SQL: DuckDB is not installed; pip install 'deltalog[duckdb]'"
            ) from error
        self._failures = duckdb.Error
        self._connection = duckdb.connect(config=dict(session_config or {}))

    def register(self, table_name: str, delta_table: DeltaTable) -> QueryBuilder:
        """Make the version that a table shows now known under a name."""
        self._connection.register(table_name, delta_table.to_pyarrow_dataset())
        return self

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """The rows of a SELECT, streamed.

        Raises:
            InvalidInputError: DuckDB refuses the statement.
        """
        try:
            relation: Any = self._connection.sql(sql)
        except self._failures as error:
            raise InvalidInputError(f"cannot run {sql!r}: {error}") from error
        if relation is None:
            raise InvalidInputError(f"cannot run {sql!r}: expected a query that gives rows")
        return relation.to_arrow_reader()  # type: ignore[no-any-return]  # DuckDB has no types
