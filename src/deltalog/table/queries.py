"""The rows of a table for a query that names it: of a version, or its changes.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from deltalog.errors import InvalidInputError
from deltalog.query.duckdb import shared_duckdb
from deltalog.query.running import query_translated
from deltalog.query.translate import TableChangesCall, bound, translated
from deltalog.schema.collations import unordered_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from deltalog.context import TableContext
    from deltalog.query.names import Version
    from deltalog.query.pruning import TableRead
    from deltalog.snapshot import Snapshot

_OWN_NAME: Final = "this"
# Arguments of `load_cdf` for a bound: a version, or a moment.
_BOUNDS: Final = (
    ("starting_version", "starting_timestamp"), ("ending_version", "ending_timestamp"),
)  # fmt: skip


class VersionedTable(Protocol):
    """A `DeltaTable`, as far as queries need it."""

    @property
    def snapshot(self) -> Snapshot:
        """The version that it shows."""
        ...

    @classmethod
    def from_context(cls, context: TableContext) -> Self:
        """Return the newest version of a table."""
        ...

    def load_as_version(self, version: Any) -> None:
        """Show another version."""
        ...

    def load_cdf(self) -> Any:
        """Return the change data feed."""
        ...

    def to_pyarrow_dataset(self) -> Any:
        """Return the rows as a dataset."""
        ...

    def scan(self) -> Any:
        """Plan a read of rows."""
        ...


TableT = TypeVar("TableT", bound=VersionedTable)


def query_table(
    table: VersionedTable, query: str, parameters: Mapping[str, object]
) -> pa.RecordBatchReader:
    """Return the rows of a query over one table, which it calls `this`.

    Raises:
        InvalidInputError: DuckDB is not installed, or refuses the query.
    """
    found = translated(query)
    rows: dict[str, Any] = {}
    for key, reference in found.tables.items():
        one = bound(reference, parameters)
        name = one.table if isinstance(one, TableChangesCall) else one
        if name.key != (_OWN_NAME,):
            raise InvalidInputError(
                f"cannot query {name}: this table is called `{_OWN_NAME}` here; deltalog.sql has "
                "queries over several tables"
            )
        if isinstance(one, TableChangesCall):
            check_looked_into(table, found.reads[key])
            rows[key] = changes_of(table, one)
        else:
            seen = at_version(table, name.known_version)
            rows[key] = rows_for(seen, found.reads[key], parameters)
    return query_translated(shared_duckdb(), found, rows, parameters, shown=query)


def rows_for(table: VersionedTable, read: TableRead, parameters: Mapping[str, object]) -> Any:
    """Return what DuckDB reads for a table: no more than the query needs.

    Args:
        table: at its version.
        read: what is needed.
        parameters: of the query.
    """
    check_looked_into(table, read)
    names = table.snapshot.configuration.schema.names
    if read.limit is not None:
        known = {name.lower(): name for name in names}
        wanted = None if read.columns is None else [known.get(one.lower()) for one in read.columns]
        if wanted is None or None not in wanted:
            scan: Any = table.scan
            return scan(wanted, limit=read.limit)
    dataset: Any = table.to_pyarrow_dataset
    try:
        return dataset(file_pruning_predicate=read.predicate(parameters, names))
    except InvalidInputError:
        return dataset()  # such as types that DuckDB compares, and we do not


def check_looked_into(table: VersionedTable, read: TableRead) -> None:
    """Refuse a query that compares values by bytes that other rules compare.

    DuckDB knows neither the collations of a table nor what is the same place.

    Raises:
        InvalidInputError: it looks into texts with a collation, or into geometries.
    """
    schema = table.snapshot.configuration.schema
    for name in schema.names:
        if read.looked_into is not None and name.lower() not in read.looked_into:
            continue
        what = unordered_in(schema, name)
        if what is not None:
            raise InvalidInputError(
                f"cannot query {table.snapshot.store.root}: column {name!r} has {what}, of which "
                "DuckDB compares bytes; a query may give its values as they are, and ask whether "
                "they are NULL"
            )


def at_version(table: TableT, version: Version | None) -> TableT:
    """Return a table at a version; the table itself if that is None."""
    if version is None:
        return table
    travelled = type(table).from_context(table.snapshot.context)
    travelled.load_as_version(version)
    return travelled


def changes_of(table: VersionedTable, changes: TableChangesCall) -> Any:
    """Return the change data feed that `table_changes` asks for."""
    given: dict[str, Any] = {}
    for limit, names in zip((changes.start, changes.end), _BOUNDS, strict=True):
        if limit is not None:
            given[names[not isinstance(limit, int)]] = limit
    feed: Any = table.load_cdf
    return feed(**given)
