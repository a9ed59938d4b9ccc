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

    from deltalog.scan.dataset import DeltaDataset
    from deltalog.table import DeltaTable


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
        try:
            import duckdb  # noqa: PLC0415  # optional
        except ImportError as error:
            raise InvalidInputError(
                "cannot run SQL: DuckDB is not installed; pip install 'deltalog[duckdb]'"
            ) from error
        self._failures = duckdb.Error
        self._tables: dict[str, DeltaDataset] = {}
        # A name in a query is a table's, never that of a variable which happens to be in reach.
        settings: dict[str, Any] = {"python_enable_replacements": "false", **(session_config or {})}
        try:
            self._database = duckdb.connect(config=settings)
        except self._failures as error:
            names = ", ".join(settings)  # values may be secrets
            raise InvalidInputError(f"cannot start DuckDB with {names}: {error}") from error

    def register(self, table_name: str, delta_table: DeltaTable) -> QueryBuilder:
        """Make the version that a table shows now known under a name."""
        self._tables[table_name] = delta_table.to_pyarrow_dataset()
        return self

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """The rows of a SELECT, streamed.

        Raises:
            InvalidInputError: DuckDB refuses the statement.
        """
        # A connection has one open result at most, so each statement gets its own.
        connection = self._database.cursor()
        try:
            connection.execute("set TimeZone = 'UTC'")
            for name, dataset in self._tables.items():
                connection.register(name, dataset)
            relation: Any = connection.sql(sql)
            reader = None if relation is None else relation.to_arrow_reader()
        except self._failures as error:
            raise InvalidInputError(f"cannot run {sql!r}: {error}") from error
        if reader is None:
            raise InvalidInputError(f"cannot run {sql!r}: expected a query that gives rows")
        return reader  # type: ignore[no-any-return]  # DuckDB has no types
