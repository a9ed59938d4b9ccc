"""The rows of a table in a query: the rows of a version, or the changes between two versions.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

import pyarrow as pa
from sqlglot import exp

from deltalog._util.escaping import name_key
from deltalog.data.scan.native import DUCKDB, plan_native
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns, parse_sql
from deltalog.expressions.other_dialects import instead_of_word
from deltalog.expressions.sql_session import UTC_NAMES
from deltalog.query.bare_calls import ONLY_COLUMNS, as_columns
from deltalog.query.columns import arrow_schema, column_names
from deltalog.query.duckdb import (
    Database,
    duckdb_with_files,
    is_of_table,
    shared_duckdb,
    with_names,
    with_schema,
)
from deltalog.query.duckdb_files import NativeRows, native_rows
from deltalog.query.lexer import check_named, error_at
from deltalog.query.parse import read_query, start_of
from deltalog.query.running import query_translated
from deltalog.query.translate import Selection, TableChangesCall, TranslatedQuery, bound, translated
from deltalog.schema.arrow import with_query_type
from deltalog.schema.collations import unordered_in
from deltalog.schema.columns import find_field, walk_types
from deltalog.schema.types import DAY_TO_SECOND, INTEGER, YEAR_TO_MONTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from deltalog.data.scan.plan import Scan
    from deltalog.log.context import TableContext
    from deltalog.log.snapshot import Snapshot
    from deltalog.query.names import Version
    from deltalog.query.native import TableRead
    from deltalog.schema import StructType

_OWN_NAME: Final = "this"
# The parameters of `load_cdf` for each bound: one for a version, and one for a timestamp.
_BOUNDS: Final = (
    ("starting_version", "starting_timestamp"), ("ending_version", "ending_timestamp"),
)  # fmt: skip


class VersionedTable(Protocol):
    """The members of `DeltaTable` that queries use."""

    @property
    def snapshot(self) -> Snapshot:
        """The version that the object reads."""
        ...

    @classmethod
    def from_context(cls, context: TableContext) -> Self:
        """Return the latest version of a table."""
        ...

    def load_as_version(self, version: Any) -> None:
        """Make the object read another version."""
        ...

    def load_cdf(self) -> Any:
        """Return the change data feed."""
        ...

    def to_pyarrow_dataset(self) -> Any:
        """Return the rows as a dataset."""
        ...

    def scan(self) -> Any:
        """Return a scan of the rows."""
        ...


TableT = TypeVar("TableT", bound=VersionedTable)


def query_table(
    table: VersionedTable, query: str, parameters: Mapping[str, object]
) -> pa.RecordBatchReader:
    """Return the rows of a query over one table, which the query calls `this`.

    Raises:
        InvalidInputError: DuckDB is needed but not installed, or rejects the query.
    """
    found = translated(query)
    check_named(query, parameters)
    rows: dict[str, Any] = {}
    for key, reference in found.tables.items():
        one = bound(reference, parameters)
        name = one.table if isinstance(one, TableChangesCall) else one
        if name.key != (_OWN_NAME,):
            raise InvalidInputError(
                f"cannot query {name}: this table is called `{_OWN_NAME}` here; deltalog.sql runs "
                "queries over several tables"
            )
        if isinstance(one, TableChangesCall):
            check_looked_into(table, found.reads[key])
            rows[key] = changes_of(table, one)
        else:
            seen = at_version(table, name.known_version)
            selected = select(seen, found.selection, parameters, shown=query)
            if selected is not None:
                return selected.to_reader()
            rows[key] = rows_for(seen, found.reads[key], parameters)
    found = spelled_as_tables(query, found, rows)
    return query_translated(duckdb_for(rows.values()), found, rows, parameters, shown=query)


@dataclass(frozen=True, slots=True)
class SelectionScan:
    """A query that one scan answers completely.

    Args:
        scan: the scan.
        names: the names of the result columns.
        place: the position of the condition in the query.
        shown: the query, for errors.
    """

    scan: Scan
    names: Sequence[str]
    place: int
    shown: str

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream.

        Raises:
            InvalidInputError: the condition cannot be evaluated for a row. Raised when this row is
                read.
        """
        scan = self.scan
        typed = with_schema(scan.to_reader(), _with_types(scan.schema, scan.table_schema))
        reader = with_names(typed, self.names)

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                yield from reader
            except InvalidInputError as error:
                raise error_at(self.shown, self.place, str(error), attempt="run") from error

        return pa.RecordBatchReader.from_batches(reader.schema, batches())


def select(
    table: VersionedTable,
    selection: Selection | None,
    parameters: Mapping[str, object],
    *,
    shown: str,
) -> SelectionScan | None:
    """Return the scan that answers a query; None if DuckDB must run the query or report its error.

    Args:
        table: the table, at the requested version.
        selection: the columns, the condition and the limit of the query; None if it has other
            parts.
        parameters: the parameters of the query: name → value.
        shown: the query, for errors.
    """
    configuration = table.snapshot.configuration
    session = table.snapshot.context.session
    if selection is None or session.time_zone not in UTC_NAMES:
        return None  # queries of DuckDB always use UTC, so a scan must do so, too
    known = {name_key(name): name for name in configuration.schema.names}
    asked = selection.columns or tuple((name, name) for name in configuration.schema.names)
    wanted = [known.get(name_key(name), "") for name, _ in asked]
    if "" in wanted or len(set(wanted)) < len(wanted):
        return None
    where = selection.where
    try:
        condition = (
            None if where is None else parse_sql(where, parameters=parameters, columns=known)
        )
        if condition is not None and not all(
            name_key(path[0]) in known for path in columns(condition)
        ):
            return None  # for example, the condition names a result column
        scan: Any = table.scan
        found = scan(wanted, condition, limit=selection.limit)
    except InvalidInputError:
        return None
    return SelectionScan(found, [name for _, name in asked], selection.place, shown)


def rows_for(
    table: VersionedTable,
    read: TableRead,
    parameters: Mapping[str, object],
    *,
    is_native: bool = True,
) -> Any:
    """Return the rows of a table for DuckDB, without rows that the query does not need.

    Args:
        table: the table, at the requested version.
        read: the rows and columns that the query needs.
        parameters: the parameters of the query: name → value.
        is_native: whether DuckDB can open the files of tables.
    """
    check_looked_into(table, read)
    names = table.snapshot.configuration.schema.names
    if read.limit is not None:
        known = {name_key(name): name for name in names}
        wanted = (
            None if read.columns is None else [known.get(name_key(one)) for one in read.columns]
        )
        if wanted is None or None not in wanted:
            scan: Any = table.scan
            return scan(wanted, limit=read.limit)
    predicate = read.predicate(parameters, names)
    try:
        return _rows_where(table, predicate, read if is_native else None)
    except InvalidInputError:  # for example, only DuckDB can compare these types
        return _rows_where(table, None, read if is_native else None)


def explain_read(
    table: VersionedTable, read: TableRead, parameters: Mapping[str, object]
) -> list[str]:
    """Return lines that state how many files of a table DuckDB reads itself, and why not others.

    Args:
        table: the table, at the requested version.
        read: the rows and columns that the query needs.
        parameters: the parameters of the query: name → value.
    """
    if read.limit is not None:
        return ["read by deltalog, up to the limit of the query"]
    try:
        predicate = read.predicate(parameters, table.snapshot.configuration.schema.names)
        plan = plan_native(_native_scan(table, predicate, read), DUCKDB)
    except InvalidInputError:
        plan = plan_native(_native_scan(table, None, read), DUCKDB)
    if plan.reasons:  # then deltalog's reader reads all files
        plan = replace(plan, groups=(), num_rest=plan.num_files + plan.num_rest)
    return plan.explain()


def _native_scan(table: VersionedTable, predicate: Any, read: TableRead) -> Any:
    """Return a scan of the columns that a query names."""
    scan: Any = table.scan
    names = list(table.snapshot.configuration.schema.names)
    if read.named is not None:
        # DuckDB needs a column to count rows.
        names = [name for name in names if name_key(name) in read.named] or names[:1]
    return scan(names, predicate)


def _rows_where(table: VersionedTable, predicate: Any, read: TableRead | None) -> Any:
    """Return the rows of the files that may match; DuckDB reads the files itself given `read`."""
    if read is not None:
        found = native_rows(_native_scan(table, predicate, read))
        if found is not None:
            return found
    dataset: Any = table.to_pyarrow_dataset
    return dataset(file_pruning_predicate=predicate)


def duckdb_for(tables: Iterable[Any]) -> Database:
    """Return a DuckDB that can open the files of the tables that it reads itself, and no others.

    Args:
        tables: the rows of each table in a query.
    """
    native = [one for one in tables if isinstance(one, NativeRows)]
    if not native:
        return shared_duckdb()
    directories = frozenset(one.directory for one in native)
    return duckdb_with_files(directories, frozenset().union(*(one.outside for one in native)))


def telling_rows(rows: Any) -> Any:
    """Return the rows of a table, with metadata that distinguishes months from whole numbers.

    Arrow has no type for months, so both are integers. A dataframe has no such metadata, so it is
    returned unchanged.
    """
    if not is_of_table(rows) or not hasattr(rows, "replace_schema"):
        return rows
    return rows.replace_schema(_with_types(rows.schema, rows.table_schema, tells_numbers=True))


def _with_types(shown: pa.Schema, schema: StructType, *, tells_numbers: bool = False) -> pa.Schema:
    for place, part in enumerate(shown):
        kind = find_field(schema, (part.name,)).type
        is_number = tells_numbers and kind == INTEGER
        if is_number or any(inner == YEAR_TO_MONTH for _, inner in walk_types(kind)):
            shown = shown.set(place, with_query_type(part, kind))
    return shown


def check_looked_into(table: VersionedTable, read: TableRead) -> None:
    """Refuse a query in which DuckDB would compare values differently from Spark.

    DuckDB does not support collations or the equality of geometries. Its type of intervals combines
    months and days.

    Raises:
        InvalidInputError: the query compares, sorts or computes with strings that have a collation,
            with geometries or with intervals; or it uses months inside another type.
    """
    schema = table.snapshot.configuration.schema
    for name in schema.names:
        kinds = [kind for _, kind in walk_types(find_field(schema, (name,)).type)]
        is_named = read.named is None or name_key(name) in read.named
        if is_named and YEAR_TO_MONTH in kinds[1:]:
            raise InvalidInputError(
                f"cannot query {table.snapshot.store.root}: column {name!r} has intervals of years "
                "and months inside, which DuckDB treats as numbers; use a query with only "
                "columns, a condition and a limit"
            )
        if read.looked_into is not None and name_key(name) not in read.looked_into:
            continue
        what = unordered_in(schema, name)
        if what is not None:
            raise InvalidInputError(
                f"cannot query {table.snapshot.store.root}: column {name!r} has {what}, which "
                "DuckDB compares by bytes; a query may only return its values, and check whether "
                "they are NULL"
            )
        if DAY_TO_SECOND in kinds:
            raise InvalidInputError(
                f"cannot query {table.snapshot.store.root}: column {name!r} has intervals of days, "
                "which DuckDB does not distinguish from months; use a query with only columns, a "
                "condition and a limit, or scan(…, order_by=…)"
            )


def at_version(table: TableT, version: Version | None) -> TableT:
    """Return the table at a version, or the table itself if the version is None."""
    if version is None:
        return table
    travelled = type(table).from_context(table.snapshot.context)
    travelled.load_as_version(version)
    return travelled


def changes_of(table: VersionedTable, changes: TableChangesCall) -> Any:
    """Return the change data feed that a call of `table_changes` requests."""
    given: dict[str, Any] = {}
    for limit, names in zip((changes.start, changes.end), _BOUNDS, strict=True):
        if limit is not None:
            given[names[not isinstance(limit, int)]] = limit
    feed: Any = table.load_cdf
    return feed(**given)


# --- spell names in a query as the tables do


# A name in these nodes may be a column of a table. The query itself defines all other names.
_READS: Final = (exp.Column, exp.Dot, exp.Join)


def spelled_as_tables(
    text: str, found: TranslatedQuery, tables: Mapping[str, Any]
) -> TranslatedQuery:
    """Return a translated query whose column names are spelled as in its tables.

    A name is not changed if a column has exactly this name, if several columns have it in another
    case, or if the query defines it. Result columns have the names in the query. A word such as
    CURRENT_DATE is a column if a table has one of this name.

    Args:
        text: the query.
        found: the translation of the query.
        tables: a name in `found` → an Arrow dataset, table or reader.

    Raises:
        InvalidInputError: no table has a column such as `user`, which is a function of DuckDB.
    """
    names = frozenset(_names_of(tables.values()))
    _check_words(text, names)
    if (named := as_columns(text, names)) != text:
        text, found = named, translated(named)
    if text.isascii() and all(map(str.isascii, names)):
        return found
    spelled = _spelled(text, names)
    return found if spelled == text else replace(translated(spelled), names=found.names)


def _check_words(text: str, names: frozenset[str]) -> None:
    """Refuse a column such as `user` that no table has; DuckDB would return its own user."""
    query = read_query(text)
    columns = [
        one
        for one in query.tree.find_all(exp.Column)
        if name_key(one.name) in ONLY_COLUMNS and len(one.parts) == 1
    ]
    if not columns:
        return
    others = query.tree.find_all(exp.Identifier)
    known = {name_key(one.name) for one in others if not isinstance(one.parent, _READS)}
    known.update(map(name_key, names))
    for one in columns:
        if (key := name_key(one.name)) not in known:
            raise error_at(
                text,
                query.source.origin(start_of(one)),
                f"there is no column {one.name!r}, and no function {key}{instead_of_word(key)}",
                attempt="run",
            )


def _names_of(tables: Iterable[Any]) -> Iterator[str]:
    for rows in tables:
        schema = arrow_schema(rows)
        if schema is None:
            yield from column_names(rows)
            continue
        for part in schema:
            yield from _names_in(part)


def _names_in(part: pa.Field[Any]) -> Iterator[str]:
    yield part.name
    kind: Any = part.type
    for place in range(kind.num_fields):
        yield from _names_in(kind.field(place))


def _spelled(text: str, names: frozenset[str]) -> str:
    by_key: dict[str, set[str]] = {}
    for name in names:
        by_key.setdefault(name_key(name), set()).add(name)
    query = read_query(text)
    identifiers = list(query.tree.find_all(exp.Identifier))
    own = {name_key(one.name) for one in identifiers if not isinstance(one.parent, _READS)}
    changes: dict[int, tuple[int, str]] = {}
    for one in identifiers:
        key, start = name_key(one.name), one.meta.get("start")
        meant = by_key.get(key, ())
        if one.name in names or key in own or len(meant) != 1 or start is None:
            continue
        (name,) = meant
        end = one.meta["end"] + 1
        written = query.source.text[start:end]
        place = query.source.origin(start)
        if _is_same_to_duckdb(name, one.name) or not text.startswith(written, place):
            continue
        quoted = name.replace("`", "``")
        changes[place] = (place + len(written), f"`{quoted}`")
    for place, (end, name) in sorted(changes.items(), reverse=True):
        text = text[:place] + name + text[end:]
    return text


def _is_same_to_duckdb(one: str, other: str) -> bool:
    """Return whether two names differ only in the case of ASCII letters."""
    return one.encode().lower() == other.encode().lower()
