"""DuckDB connections, queries over registered tables, and `QueryBuilder`.

DuckDB runs a query; the package `data.scan` reads the rows of its tables.

Protocol: none
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Hashable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeGuard
from weakref import finalize

import pyarrow as pa

from deltalog._util.argument_types import checks_types, wrong_argument
from deltalog._util.escaping import name_key
from deltalog._util.json import loads
from deltalog._util.similar_names import SimilarNames
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions.sql_session import UTC_NAMES
from deltalog.query.duckdb_errors import cause_of, problem_of
from deltalog.query.duckdb_files import NativeRows
from deltalog.query.lexer import as_written
from deltalog.query.native import quoted_string
from deltalog.query.results import SqlResult
from deltalog.schema import StructType
from deltalog.schema.arrow import with_query_type
from deltalog.schema.primitives.moments import (
    NAMED_MONTHS,
    calendar_intervals,
    named_months,
    time_spans,
)
from deltalog.schema.types import YEAR_TO_MONTH

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence


_EXTENSION_METADATA: Final = b"ARROW:extension:metadata"
_ACCESS: Final = "enable_external_access"
# The settings for queries that may read only registered tables, no files and no network.
_CLOSED: Final[dict[str, Any]] = {
    _ACCESS: "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}


Views = frozenset[Hashable]
"""The keys of all views of a connection; see `DuckDBView`."""
_MOST_IDLE: Final = 4
"""The maximum number of connections of a database that wait for another query."""


class Database:
    """An in-memory DuckDB database.

    Args:
        connection: the connection that keeps the database open.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._known: set[str] = set()
        self._knowing = Lock()
        self._idle: list[tuple[Views, Any]] = []
        # Close DuckDB before Python exits. Otherwise DuckDB reports a leak of its Python functions.
        finalize(self, _close, connection, os.getpid())

    def connect(self) -> Any:
        """Return a new connection, which can have at most one open result."""
        return self._connection.cursor()

    def take_idle(self, views: Views) -> Any | None:
        """Remove and return an idle connection that has exactly these views; None if none has.

        Args:
            views: the keys of the views.
        """
        with self._knowing:
            for number, (known, connection) in enumerate(self._idle):
                if known == views:
                    del self._idle[number]
                    return connection
        return None

    def keep_idle(self, views: Views, connection: Any) -> None:
        """Keep a connection for a query over the same files, which need not create the views."""
        with self._knowing:
            self._idle = [*self._idle[1 - _MOST_IDLE :], (views, connection)]

    def know(
        self, name: str, function: Callable[..., Any], types: Sequence[str], result: str
    ) -> None:
        """Register a Python function, unless a function with this name is registered already.

        Args:
            name: the name of the function in queries.
            function: a function of Arrow arrays that returns an Arrow array. The caller must keep a
                reference to it.
            types: the types of the arguments, in DuckDB's notation.
            result: the type of the result, in DuckDB's notation.
        """
        with self._knowing:
            if name in self._known:
                return
            self._connection.create_function(
                name, function, list(types), result, type="arrow", null_handling="special"
            )
            self._known.add(name)


def _close(connection: Any, process: int) -> None:
    """Close a DuckDB, but only in the process that opened it.

    Closing waits for DuckDB's threads. They do not exist in a forked process, so the process would
    be aborted.
    """
    if os.getpid() == process:
        connection.close()
    else:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


# Process id → database. A forked process cannot use the DuckDB of its parent.
_SHARED: Final[dict[int, Database]] = {}


def shared_duckdb() -> Database:
    """Return the in-memory DuckDB that all queries without settings in this process share.

    A table that a query registers is visible only in the connection of this query.

    Cost: about 10 ms for the first call; see `connect_duckdb`.

    Raises:
        InvalidInputError: DuckDB is not installed.
    """
    process = os.getpid()
    found = _SHARED.get(process)
    return _SHARED.setdefault(process, connect_duckdb()) if found is None else found


# Databases whose queries may open some files, by their directories and paths.
_MOST_DATABASES: Final = 4
_WITH_FILES: Final[dict[tuple[int, frozenset[str], frozenset[str]], Database]] = {}


def duckdb_with_files(directories: frozenset[str], paths: frozenset[str] = frozenset()) -> Database:
    """Return an in-memory DuckDB whose queries can open only some files.

    The most recently used of these databases are kept, because opening one takes about 10 ms.

    Args:
        directories: the directories of the files, as absolute paths that end with a slash.
        paths: absolute paths of other files.

    Raises:
        InvalidInputError: DuckDB is not installed.
    """
    key = os.getpid(), directories, paths
    found = _WITH_FILES.pop(key, None) or connect_duckdb(directories=directories, paths=paths)
    _WITH_FILES[key] = found  # the last entry is the most recently used one
    for least_recent in list(_WITH_FILES)[:-_MOST_DATABASES]:
        _WITH_FILES.pop(least_recent, None)
    return found


def connect_duckdb(
    settings: Mapping[str, str] | None = None,
    *,
    is_closed: bool = True,
    directories: Collection[str] = (),
    paths: Collection[str] = (),
) -> Database:
    """Open an in-memory DuckDB in which only registered tables are visible.

    Timestamps are returned in UTC.

    Args:
        settings: the settings of DuckDB: name → value.
        is_closed: whether access to files, to the network and to DuckDB's settings is blocked.
            `settings` may still allow it.
        directories: the directories below which queries can open files nevertheless, as absolute
            paths that end with a slash.
        paths: absolute paths of other files that queries can open, if there are directories.

    Raises:
        InvalidInputError: DuckDB is not installed, or has no setting with such a name.
    """
    try:
        import duckdb  # noqa: PLC0415  # an optional dependency
    except ImportError as error:
        raise InvalidInputError(
            "cannot run SQL: DuckDB is not installed; pip install 'deltalog[duckdb]'"
        ) from error
    # A name in a query must be a registered table, and never a Python variable.
    closed = _CLOSED if is_closed else {}
    if directories:  # only while external access is enabled, these may be set
        closed = {key: value for key, value in closed.items() if key != _ACCESS}
    config: dict[str, Any] = {
        "python_enable_replacements": "false", **closed, **(settings or {}),
    }  # fmt: skip
    zones = {text for key, text in config.items() if key.lower() == "timezone"}
    if not zones <= UTC_NAMES:
        raise InvalidInputError(
            f"cannot start DuckDB with TimeZone {', '.join(map(repr, zones))}: queries compute "
            "in UTC"
        )
    try:
        database = duckdb.connect(config=config)
        database.execute("SET GLOBAL TimeZone = 'UTC'")
        if directories:
            allowed = ", ".join(map(quoted_string, sorted(directories)))
            database.execute("SET GLOBAL parquet_metadata_cache = true")
            database.execute(f"SET GLOBAL allowed_directories = [{allowed}]")
            alone = ", ".join(map(quoted_string, sorted(paths)))
            database.execute(f"SET GLOBAL allowed_paths = [{alone}]")
            database.execute(f"SET GLOBAL {_ACCESS} = false")
        if is_closed:
            database.execute("SET GLOBAL lock_configuration = true")
    except duckdb.Error as error:
        # Without values, because they may be secrets.
        names = ", ".join(settings or config)
        raise InvalidInputError(
            f"cannot start DuckDB with the settings {names}: {error}; the settings are DuckDB's"
        ) from error
    return Database(database)


def query_duckdb(
    database: Database,
    sql: str,
    tables: Mapping[str, Any],
    parameters: Mapping[str, object] | None = None,
    *,
    shown: str | None = None,
    run: DuckDBRun | None = None,
) -> pa.RecordBatchReader:
    """Run a query, and return its rows as a stream.

    Args:
        database: a result of `connect_duckdb`.
        sql: the query in DuckDB's dialect, or the beginning of a query of several parts.
        tables: a name in the query → an Arrow dataset, table or reader.
        parameters: values for `$name`: name → value.
        shown: the query, for errors; None means `sql`.
        run: the query of several parts, which is started after `sql`. None means that `sql` is the
            complete query.

    Raises:
        InvalidInputError: DuckDB rejects the query, or the query returns no rows.
    """
    import duckdb  # noqa: PLC0415  # an optional dependency

    # In a query that the user wrote in DuckDB's dialect, intervals of months are numbers, as in
    # Arrow.
    tells = run is not None
    watched = {
        name: (WatchedReader if hasattr(rows, "read_next_batch") else _as_shown)(
            rows, tells_months=tells
        )
        for name, rows in tables.items()
    }
    try:
        connection, views = _connected(database, watched)
        if run is not None:
            relation: Any = run.start(connection, sql)
        else:
            relation = connection.sql(sql, params=dict(parameters) if parameters else None)
        reader = None if relation is None else relation.to_arrow_reader()
    except duckdb.Error as error:
        problem = problem_of(str(error), watched, is_translated=run is not None, query=shown)
        refused = InvalidInputError(f"cannot run {as_written(shown or sql)!r}: {problem}")
        raise cause_of(watched, run, str(error)) or refused from error
    except pa.ArrowInvalid as error:  # for example, types of more than 64 levels
        raise InvalidInputError(
            f"cannot run {as_written(shown or sql)!r}: Arrow cannot return its columns: {error}"
        ) from error
    if reader is None:
        raise InvalidInputError(
            f"cannot run {as_written(shown or sql)!r}: expected a query that returns rows"
        )

    def keep() -> None:
        if views is not None:
            database.keep_idle(views, connection)

    batches = _batches(reader, watched, shown or sql, run, keep)
    return pa.RecordBatchReader.from_batches(reader.schema, batches)


def _connected(database: Database, watched: Mapping[str, Any]) -> tuple[Any, Views | None]:
    """Return a connection with the tables of a query.

    Returns:
        The connection; and the keys of its views, if it has nothing but views, so that another
        query over the same files can use it.
    """
    made = {name: rows.view(name) for name, rows in watched.items() if isinstance(rows, NativeRows)}
    keys = frozenset(view.key for view in made.values())
    views = keys if len(made) == len(watched) and None not in keys else None
    known = None if views is None else database.take_idle(views)
    if known is not None:
        return known, views
    connection = database.connect()
    for name, rows in watched.items():
        if name in made:
            made[name].create(connection)
            continue
        given = rows.to_reader() if isinstance(rows, WatchedReader) else rows
        register(connection, name, given, is_joined=len(watched) > 1)
    return connection, views


class TableRows(Protocol):
    """Rows of a Delta table. In contrast to rows of the caller, they have the table's types."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        ...

    @property
    def table_schema(self) -> StructType:
        """The schema of the table."""
        ...


def is_of_table(rows: Any) -> TypeGuard[TableRows]:
    """Return whether rows belong to a Delta table.

    The type of the attribute is tested, because a dataframe may have a column `table_schema`.
    """
    return isinstance(getattr(rows, "table_schema", None), StructType)


def has_spans(rows: Any) -> bool:
    """Return whether rows contain intervals of days, which DuckDB needs in another form."""
    return is_of_table(rows) and any(pa.types.is_duration(part.type) for part in rows.schema)


def _with_intervals(rows: Any, shown: pa.Schema, *, tells_months: bool) -> pa.Schema:
    """Return the schema of rows of a table, in which intervals are not plain numbers."""
    if not is_of_table(rows):
        return shown
    types = {field.name: field.type for field in rows.table_schema} if tells_months else {}

    def of_duckdb(part: pa.Field[Any]) -> pa.Field[Any]:
        if types.get(part.name) == YEAR_TO_MONTH:
            return part.with_type(NAMED_MONTHS)
        is_span = pa.types.is_duration(part.type)
        return part.with_type(pa.month_day_nano_interval()) if is_span else part

    return pa.schema([of_duckdb(part) for part in shown])


def _as_shown(rows: Any, *, tells_months: bool) -> Any:
    """Convert rows of a table to a dataset whose types DuckDB can read.

    Geographies become bytes, because DuckDB rejects tables with spherical edges. Intervals become
    days and a remainder, because DuckDB counts them in nanoseconds, which overflow after 292 years.
    Months become a struct if they must be distinguished from numbers.
    """
    if not hasattr(rows, "replace_schema"):
        return rows
    shown = pa.schema([_with_plain_edges(part) for part in rows.schema])
    shown = _with_intervals(rows, shown, tells_months=tells_months)
    is_same = shown.equals(rows.schema, check_metadata=True)
    return rows if is_same else rows.replace_schema(shown)


def _with_plain_edges(part: pa.Field[Any]) -> pa.Field[Any]:
    metadata = (part.metadata or {}).get(_EXTENSION_METADATA, b"")
    return part.remove_metadata() if b'"edges"' in metadata else part


class DuckDBRun(Protocol):
    """A query of several parts, which can be started on a connection."""

    failure: DeltaError | None

    def start(self, connection: Any, prefix: str) -> Any:
        """Start the query; return DuckDB's relation, which may call Python functions."""
        ...


class WatchedReader:
    """Rows that DuckDB can read only once. The object records an error that reading raises.

    Args:
        reader: a pyarrow reader, or an object with the same methods, that returns the rows.
        tells_months: whether intervals of months are distinguished from numbers.
    """

    def __init__(self, reader: Any, *, tells_months: bool) -> None:
        self.failure: DeltaError | None = None
        self._reader = reader
        self._schema = _with_intervals(reader, reader.schema, tells_months=tells_months)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a reader."""
        return pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        same = self._schema is self._reader.schema or self._schema == self._reader.schema
        try:
            for batch in self._reader:
                yield batch if same else _in_schema(batch, self._schema)
        except DeltaError as error:
            self.failure = error
            raise


def _in_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    for place, (part, wanted) in enumerate(zip(batch.schema, schema, strict=True)):
        if part.type != wanted.type:
            make = named_months if wanted.type == NAMED_MONTHS else calendar_intervals
            batch = batch.set_column(place, wanted, make(batch.column(place)))
    return batch


def _batches(
    reader: pa.RecordBatchReader,
    watched: Mapping[str, Any],
    shown: str,
    run: DuckDBRun | None,
    at_end: Callable[[], None],
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a result. An error of a table's reader is raised instead of DuckDB's.

    Args:
        reader: the result.
        watched: the tables of the query.
        shown: the query, for errors.
        run: the query of several parts.
        at_end: is called after the last batch. It also refers to the database, which must stay open
            until then.
    """
    try:
        yield from reader
    except (pa.ArrowException, OSError) as error:
        problem = problem_of(str(error), watched, is_translated=run is not None, query=shown)
        refused = InvalidInputError(f"cannot run {as_written(shown)!r}: {problem}")
        raise cause_of(watched, run, str(error)) or refused from error
    at_end()


# --- register tables in DuckDB with their row counts, which determine the order of joins


Source = Any


def register(connection: Any, name: str, rows: Any, *, is_joined: bool) -> None:
    """Register rows under a name on a connection.

    Args:
        connection: DuckDB's connection.
        name: the name of the rows in queries.
        rows: an Arrow dataset, table or reader.
        is_joined: whether the query reads several tables. Only then are rows counted.

    Cost: if rows are counted, reading the row counts in the log.
    """
    estimate: Callable[[], int | None] | None = getattr(rows, "estimated_rows", None)
    make = _counted() if is_joined and estimate is not None else None
    hook = getattr(connection, "_register_arrow_source", None)
    if make is None or hook is None or estimate is None:
        connection.register(name, rows)
        return
    try:
        number = estimate()
    except DeltaError:  # the error will be raised again when the rows are read
        number = None
    hook(name, make(rows, number))


@cache
def _counted() -> Callable[[Any, int | None], Source] | None:
    """Return the class of datasets that report row counts to DuckDB; None before DuckDB 2.0."""
    try:
        from duckdb._sources.pyarrow import (  # noqa: PLC0415  # an optional dependency
            PyArrowDatasetSource,
        )
    except ImportError:
        return None

    class CountedDataset(PyArrowDatasetSource):
        """A dataset that reports the approximate number of its rows."""

        def __init__(self, rows: Any, number: int | None) -> None:
            super().__init__(rows)
            self._number = number

        def rows(self) -> int | None:
            """Return the approximate number of rows."""
            return self._number

    return CountedDataset


# --- `QueryBuilder`: queries in DuckDB's dialect, with the methods of deltalake's class


class HasDataset(Protocol):
    """A `DeltaTable`, or another object that returns its rows as a PyArrow dataset."""

    def to_pyarrow_dataset(self) -> Any:
        """Return the dataset."""
        ...


@checks_types
class QueryBuilder(SimilarNames):
    """Runs queries in DuckDB's dialect over registered tables.

    Several results may be open at the same time. Timestamps are returned in UTC. Only registered
    tables are visible to a query, not the variables of the caller.

    Args:
        session_config: the settings of DuckDB: name → value. (In deltalake: of DataFusion.)

    Raises:
        InvalidInputError: DuckDB is not installed, or has no setting with such a name.
    """

    _meant: ClassVar[Mapping[str, str]] = dict.fromkeys(("sql", "query", "run"), "execute(query)")

    def __init__(self, session_config: Mapping[str, Any] | None = None) -> None:
        self._database = connect_duckdb(session_config, is_closed=False)
        self._tables: dict[str, Any] = {}

    def __repr__(self) -> str:
        """Show the names of the registered tables."""
        return f"QueryBuilder({', '.join(self._tables) or 'no tables'})"

    def register(self, table_name: str, delta_table: HasDataset) -> QueryBuilder:
        """Register the current version of a table under a name."""
        if not hasattr(delta_table, "to_pyarrow_dataset"):
            expected = "a DeltaTable, such as DeltaTable('location')"
            raise wrong_argument("QueryBuilder.register", "delta_table", delta_table, expected)
        self._tables[table_name] = delta_table.to_pyarrow_dataset()
        return self

    def execute(self, sql: str) -> SqlResult:
        """Return the rows of a SELECT, which can be read once, as from a RecordBatchReader.

        Columns of the only table of a query are not nullable if the table's columns are not.

        Raises:
            InvalidInputError: DuckDB rejects the statement.
        """
        reader = query_duckdb(self._database, sql, self._tables)
        plain = _plain_fields(self._database, sql, self._tables)
        return SqlResult(_with_not_null(reader, plain), sql)


def _plain_fields(
    database: Database, sql: str, tables: Mapping[str, Any]
) -> Sequence[pa.Field[Any] | None]:
    """Return for each column of a query's result the field of a table whose values it has.

    DuckDB's results are all nullable, so this reads its syntax tree.

    Returns:
        None for columns that are computed; empty for queries of several tables or with groups.
    """
    import duckdb  # noqa: PLC0415  # an optional dependency

    try:
        found = database.connect().execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    except duckdb.Error:  # this DuckDB has no JSON
        return ()
    # Statements other than SELECT have no tree.
    statements = loads(found[0], "syntax tree").get("statements") or [{}]
    node = statements[-1].get("node") or {}
    place = node.get("from_table") or {}
    schemas = {name_key(name): rows.schema for name, rows in tables.items()}
    schema = schemas.get(name_key(place.get("table_name") or ""))
    if (
        schema is None
        or place["type"] != "BASE_TABLE"
        or place["column_name_alias"]
        or node["cte_map"]["map"]
        or node["group_expressions"]
        or node["aggregate_handling"] != "STANDARD_HANDLING"
    ):
        return ()
    fields = {name_key(part.name): part for part in schema}
    name = name_key(place["alias"] or place["table_name"])
    plain: list[pa.Field[Any] | None] = []
    for one in node["select_list"]:
        if one["class"] == "STAR":
            if any(one[key] for key in _STAR_OPTIONS):
                return ()
            plain.extend(schema)
            continue
        names = [name_key(part) for part in one.get("column_names", ())]
        if names[:1] == [name] and len(names) == 2:
            names = names[1:]
        plain.append(fields.get(names[0]) if len(names) == 1 else None)
    return plain


_STAR_OPTIONS: Final = (
    "columns", "expr", "exclude_list", "replace_list", "qualified_exclude_list", "rename_list"
)  # fmt: skip


def _with_not_null(
    reader: pa.RecordBatchReader, plain: Sequence[pa.Field[Any] | None]
) -> pa.RecordBatchReader:
    """Return the rows with those columns not nullable that are so in the table."""
    if len(plain) != len(reader.schema) or all(one is None or one.nullable for one in plain):
        return reader
    schema = pa.schema(
        field.with_nullable(one is None or one.nullable)
        for field, one in zip(reader.schema, plain, strict=True)
    )
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)


# --- Streams of the rows of a query


def has_nanos(rows: Any) -> bool:
    """Return whether rows have timestamps in nanoseconds."""
    schema: Any = rows.schema
    return any(pa.types.is_timestamp(part.type) and part.type.unit == "ns" for part in schema)


def with_spans(reader: pa.RecordBatchReader, shown: str) -> pa.RecordBatchReader:
    """Convert the intervals of DuckDB in a stream of rows to the interval types of tables.

    Args:
        reader: the rows.
        shown: the query, for errors.
    """
    places = [n for n, part in enumerate(reader.schema) if pa.types.is_interval(part.type)]
    if not places:
        return reader
    schema = reader.schema
    for place in places:
        schema = schema.set(place, schema.field(place).with_type(pa.duration("us")))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            found = batch
            try:
                for place in places:
                    spans = time_spans(batch.column(place))
                    found = found.set_column(place, schema.field(place), spans)
            except ValueError as error:
                raise InvalidInputError(f"cannot run {as_written(shown)!r}: {error}") from error
            yield found

    return pa.RecordBatchReader.from_batches(schema, batches())


def with_months(reader: pa.RecordBatchReader, shown: str) -> pa.RecordBatchReader:
    """Convert months in a stream of rows to numbers. Metadata of the field marks them as months.

    Args:
        reader: the rows, in which months have the type `NAMED_MONTHS`.
        shown: the query, for errors.

    Raises:
        InvalidInputError: months are inside an array, a map or a struct.
    """
    places = [n for n, part in enumerate(reader.schema) if part.type == NAMED_MONTHS]
    schema = reader.schema
    for place in places:
        numbers = pa.field(schema.names[place], pa.int32())
        schema = schema.set(place, with_query_type(numbers, YEAR_TO_MONTH))
    inside = [part.name for part in schema if str(NAMED_MONTHS) in str(part.type)]
    if inside:
        raise InvalidInputError(
            f"cannot run {as_written(shown)!r}: column {inside[0]!r} would have intervals of years "
            "and months inside of another type, which a query cannot return"
        )
    if not places:
        return reader

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            found = batch
            for place in places:
                column: Any = batch.column(place)
                found = found.set_column(place, schema.field(place), column.flatten()[0])
            yield found

    return pa.RecordBatchReader.from_batches(schema, batches())


def as_spelled(reader: pa.RecordBatchReader, names: Sequence[str | None]) -> pa.RecordBatchReader:
    """Return the rows with the column names of the query; DuckDB uses the spelling of the table."""
    own = reader.schema.names
    if len(names) != len(own):
        return reader
    spelled = [
        name if name is not None and name_key(name) == name_key(one) else one
        for one, name in zip(own, names, strict=True)
    ]
    return reader if spelled == own else with_names(reader, spelled)


def with_names(reader: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    """Rename the columns of a stream of rows."""
    fields = zip(reader.schema, names, strict=True)
    return with_schema(reader, pa.schema([field.with_name(name) for field, name in fields]))


def with_schema(reader: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    """Return the stream of rows with another schema that has the same types."""
    batches = (
        pa.RecordBatch.from_arrays(batch.columns, schema=schema) if batch.num_columns else batch
        for batch in reader
    )
    return pa.RecordBatchReader.from_batches(schema, batches)
