"""SQL queries over tables, by DuckDB.

Owns DuckDB's connections and the registration of tables under names; the query is DuckDB's affair,
reading is `scan`'s.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


class HasDataset(Protocol):
    """A `DeltaTable`, or another object whose rows a PyArrow dataset gives."""

    def to_pyarrow_dataset(self) -> Any:
        """Return the dataset."""
        ...


def connect_duckdb(settings: Mapping[str, str] | None = None) -> Any:
    """Return a connection to a DuckDB in memory; names are those of registered tables only.

    Args:
        settings: of DuckDB.

    Raises:
        InvalidInputError: DuckDB is not installed, or knows no such setting.
    """
    try:
        import duckdb  # noqa: PLC0415  # optional
    except ImportError as error:
        raise InvalidInputError(
            "cannot run SQL: DuckDB is not installed; pip install 'deltalog[duckdb]'"
        ) from error
    # A name in a query is a table's, never that of a variable which happens to be in reach.
    config: dict[str, Any] = {"python_enable_replacements": "false", **(settings or {})}
    try:
        return duckdb.connect(config=config)
    except duckdb.Error as error:
        names = ", ".join(config)  # values may be secrets
        raise InvalidInputError(f"cannot start DuckDB with {names}: {error}") from error


def query_duckdb(
    database: Any,
    sql: str,
    tables: Mapping[str, Any],
    parameters: Mapping[str, object] | None = None,
    *,
    shown: str | None = None,
) -> pa.RecordBatchReader:
    """Return the rows of a query, streamed.

    Args:
        database: from `connect_duckdb`.
        sql: in DuckDB's dialect.
        tables: name in the query → an Arrow dataset, table or reader.
        parameters: values for `$name`.
        shown: the query in errors; None is `sql`.

    Raises:
        InvalidInputError: DuckDB refuses the query, or it gives no rows.
    """
    import duckdb  # noqa: PLC0415  # optional

    # A connection has one open result at most, so each query gets its own.
    connection = database.cursor()
    try:
        connection.execute("set TimeZone = 'UTC'")
        for name, rows in tables.items():
            connection.register(name, rows)
        relation: Any = connection.sql(sql, params=dict(parameters) if parameters else None)
        reader = None if relation is None else relation.to_arrow_reader()
    except duckdb.Error as error:
        raise InvalidInputError(f"cannot run {shown or sql!r}: {error}") from error
    if reader is None:
        raise InvalidInputError(f"cannot run {shown or sql!r}: expected a query that gives rows")
    return reader  # type: ignore[no-any-return]  # DuckDB has no types


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
        self._database = connect_duckdb(session_config)
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
