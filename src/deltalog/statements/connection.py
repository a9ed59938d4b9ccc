"""`connect` and `sql`: statements over named tables, and a PEP 249 connection.

Protocol: none; follows PEP 249
"""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

import pyarrow.types as pt

from deltalog._util.argument_types import checked_types, checks_types, kind_of
from deltalog._util.call_errors import WrongCallError
from deltalog._util.readable import counted
from deltalog._util.similar_names import SimilarNames, similar_argument
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
    StorageError,
    TableNotFoundError,
)
from deltalog.query.lexer import error_at, split
from deltalog.query.results import SqlResult, rows_of
from deltalog.statements.catalog_names import CatalogNames
from deltalog.statements.grammar import parse_statement
from deltalog.statements.local import LocalSession
from deltalog.storage.options import check_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from deltalog.catalogs.protocol import TableCatalog
    from deltalog.statements.reader import Parameters
    from deltalog.storage.fsspec_store import StorageOptions


# --- scripts: several statements, separated by semicolons


def statements_of(script: str) -> list[str]:
    """Split a script into its statements. Empty statements are removed.

    Raises:
        InvalidInputError: a quote or a comment is not closed.
    """
    return [one.text for one in located_statements(script)]


@dataclass(frozen=True, slots=True)
class LocatedStatement:
    """A statement of a script.

    Args:
        text: the statement, without the semicolon.
        start: the position of the text in the script.
        line: the line of the statement's first word in the script, from 1.
        place: "statement 2 of 3".
    """

    text: str
    start: int
    line: int
    place: str

    def located(self, error: DeltaError, script: str, name: str) -> DeltaError:
        """Return an error of the statement with its place in the script.

        Args:
            error: the error; its message may contain a position in the statement.
            script: the script.
            name: the name of the script's file, or of another source.
        """
        before = script[: self.start]
        lines, characters = before.count("\n"), len(before) - before.rfind("\n") - 1

        def shifted(found: re.Match[str]) -> str:
            line, character = int(found[1]), int(found[2])
            character += characters if line == 1 else 0
            return f" at line {line + lines}, character {character}: "

        message = _POSITION.sub(shifted, str(error), count=1)
        return error.with_message(f"{name}, line {self.line}, {self.place}: {message}")


_POSITION: Final = re.compile(r" at line (\d+), character (\d+): ")


def located_statements(script: str) -> list[LocatedStatement]:
    """Split a script into its statements, as `statements_of` does, with their places.

    Raises:
        InvalidInputError: a quote or a comment is not closed.
    """
    found: list[tuple[int, int, int]] = []
    start, first = 0, None
    for word in split(script):
        if word.kind == "end" or word.says(";"):
            if first is not None:
                found.append((start, word.start, script.count("\n", 0, first) + 1))
            start, first = word.end, None
        elif first is None:
            first = word.start
    statements = list[LocatedStatement]()
    for number, (begin, end, line) in enumerate(found, 1):
        text = script[begin:end]
        begin += len(text) - len(text.lstrip())  # noqa: PLW2901  # as the text is stripped
        place = f"statement {number} of {len(found)}"
        statements.append(LocatedStatement(text.strip(), begin, line, place))
    return statements


def is_complete(text: str) -> bool:
    """Return whether typed input ends with a semicolon outside of quotes and comments."""
    try:
        words = split(text)
    except InvalidInputError:
        return False
    return len(words) > 1 and words[-2].says(";")


# --- the names that PEP 249 requires besides `connect`: errors, constructors, and kinds of types


apilevel: Final = "2.0"
threadsafety: Final = 1  # threads may share the module, but not a connection
paramstyle: Final = "qmark"

Warning = UserWarning  # noqa: A001  # PEP 249's name
Error = DatabaseError = InternalError = DeltaError
InterfaceError = ProgrammingError = NotSupportedError = InvalidInputError
DataError = SchemaMismatchError
IntegrityError = ConstraintViolationError
OperationalError = StorageError

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802  # PEP 249's name
    """Return the local date of a Unix time in seconds."""
    return dt.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802  # PEP 249's name
    """Return the local time of day of a Unix time in seconds."""
    return dt.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802  # PEP 249's name
    """Return the local datetime of a Unix time in seconds."""
    return dt.datetime(*time.localtime(ticks)[:6])  # noqa: DTZ001  # PEP 249's timestamps have no zone


class TypeKind:
    """A kind of types, which equals all its Arrow types in a cursor's `description` (PEP 249).

    Args:
        name: the name in PEP 249.
        tests: functions that return whether an Arrow type belongs to the kind.
    """

    def __init__(self, name: str, *tests: Callable[[Any], bool]) -> None:
        self._name = name
        self._tests = tests

    def __eq__(self, other: object) -> bool:
        """Return whether the other object is an Arrow type of this kind, or this kind itself."""
        if isinstance(other, TypeKind):
            return self is other
        return any(test(other) for test in self._tests)

    def __hash__(self) -> int:
        """Return a hash. It differs from the hashes of types, so a type cannot look up its kind."""
        return hash(self._name)

    def __repr__(self) -> str:
        """Return the name."""
        return self._name


STRING: Final = TypeKind("STRING", pt.is_string, pt.is_large_string)
BINARY: Final = TypeKind("BINARY", pt.is_binary, pt.is_large_binary)
NUMBER: Final = TypeKind("NUMBER", pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_boolean)
DATETIME: Final = TypeKind("DATETIME", pt.is_temporal)
ROWID: Final = TypeKind("ROWID")


# --- `connect` and `sql`, and their connections and cursors


_MEANT: Final = {
    **dict.fromkeys(("query", "run"), "execute(statement)"),
    **dict.fromkeys(("table", "view"), "sql('SELECT * FROM t')"),
    **dict.fromkeys(("tables", "list_tables", "show_tables"), "sql('SHOW TABLES')"),
    **dict.fromkeys(
        ("createDataFrame", "from_df", "from_arrow", "append", "createOrReplaceTempView"),
        "register(name, rows)",
    ),
    "unregister": "register(name, rows), which replaces the rows of a name",
    **dict.fromkeys(("df", "fetchdf", "fetch_df", "to_pandas"), "sql(statement).to_pandas()"),
    **dict.fromkeys(("pl", "to_polars"), "sql(statement).to_polars()"),
    **dict.fromkeys(
        ("arrow", "fetch_arrow_table", "to_arrow_table", "to_arrow"), "sql(statement).to_arrow()"
    ),
    **dict.fromkeys(("description", "rowcount"), "execute(statement), whose cursor has it"),
    **dict.fromkeys(("begin", "begin_transaction"), "table.transaction(); a statement commits"),
    **dict.fromkeys(
        ("read_csv", "read_parquet", "read_json", "from_parquet", "from_csv_auto"),
        "register(name, rows) with what pandas, Polars or DuckDB has read",
    ),
    **dict.fromkeys(("load_table", "read", "read_table"), "sql('SELECT * FROM delta.`/path`')"),
    "executemany": "cursor().executemany(statement, values)",
    **dict.fromkeys(("fetchall", "fetchone", "fetchmany"), "execute(statement).fetchall()"),
}
"""Methods of other libraries' connections."""
_FETCHED: Final = {
    **dict.fromkeys(
        ("df", "fetchdf", "fetch_df", "to_pandas", "toPandas"), "connection.sql(…).to_pandas()"
    ),
    **dict.fromkeys(("pl", "to_polars"), "connection.sql(…).to_polars()"),
    **dict.fromkeys(("arrow", "to_arrow", "to_table"), "fetch_arrow_table()"),
}
"""Methods of other libraries' cursors."""


@checks_types
class Connection(SimilarNames):
    """A connection (PEP 249), which runs SQL statements in this process. DuckDB runs the queries.

    Every statement commits its own version. So `commit` does nothing, and `rollback` raises an
    error. Use `connect` to open a connection.

    Args:
        session: the session that resolves the names of tables.
    """

    _meant = _MEANT

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    InternalError = InternalError
    OperationalError = OperationalError
    ProgrammingError = ProgrammingError
    IntegrityError = IntegrityError
    DataError = DataError
    NotSupportedError = NotSupportedError

    def __init__(self, session: LocalSession) -> None:
        self._session: LocalSession | None = session

    def __repr__(self) -> str:
        """Show the names of the registered tables, or that the connection is closed."""
        if self._session is None:
            return "Connection(closed)"
        return f"Connection({', '.join(self._session.registered_names()) or 'no tables'})"

    def _repr_html_(self) -> str:
        """Return the notebook card: the names of the registered tables."""
        from deltalog._util.cards import card, grid  # noqa: PLC0415  # only notebooks need it

        if self._session is None:
            return card("Connection: closed")
        names = self._session.registered_names()
        return card(f"Connection: {counted(len(names), 'table')}", grid((name,) for name in names))

    def sql(self, statement: str, parameters: Parameters = None) -> SqlResult:
        """Run a statement; return its rows and the numbers of changed rows and files.

        Args:
            statement: one statement in Spark's dialect.
            parameters: values for `?` (a sequence) or `:name` (a mapping).

        Raises:
            InvalidInputError: the string is not a statement. The message contains the position.
            DeltaError: the operation of the statement failed.
        """
        session = self._open_session()
        session.begin()
        return _run(session, statement, parameters)

    def execute_script(self, script: str) -> list[SqlResult]:
        """Run statements separated by semicolons, and return their results.

        All statements are parsed before the first one runs. If a statement fails, the statements
        before it are not undone.
        """
        statements = located_statements(script)

        def attempt(one: LocatedStatement, run: Callable[[str], Any]) -> Any:
            try:
                return run(one.text)
            except DeltaError as error:
                raise one.located(error, script, "the script") from error

        for one in statements:
            attempt(one, parse_statement)
        return [attempt(one, self.sql) for one in statements]

    def register(self, name: str, rows: Any) -> Self:
        """Register a table or other rows under a name.

        Args:
            name: the name in statements, which may have several parts.
            rows: a `DeltaTable`, a location, or rows that `write_deltalake` accepts.
        """
        self._open_session().register(name, rows)
        return self

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Run a statement with a new cursor, and return the cursor."""
        return self.cursor().execute(operation, parameters)

    def cursor(self) -> Cursor:
        """Return a cursor (PEP 249)."""
        self._open_session()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing, because each statement commits by itself (PEP 249)."""
        self._open_session()

    def rollback(self) -> None:
        """Raise an error, because each statement commits by itself (PEP 249).

        Raises:
            InvalidInputError: always. RESTORE TABLE restores an older version.
        """
        self._open_session()
        raise InvalidInputError(
            "cannot roll back: each statement commits by itself; RESTORE TABLE "
            "restores an older version"
        )

    def close(self) -> None:
        """Close the connection (PEP 249). Registered tables are not changed."""
        self._session = None

    def __enter__(self) -> Self:
        """Return the connection, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def _open_session(self) -> LocalSession:
        if self._session is None:
            raise InvalidInputError("cannot run a statement: the connection is closed")
        return self._session


@checks_types
class Cursor(SimilarNames):
    """A cursor (PEP 249), which runs statements and returns rows as tuples or as Arrow data.

    Attributes:
        arraysize: the default number of rows for `fetchmany`.
        rowcount: the number of rows that the last statement changed; -1 if unknown, or for a query.

    Args:
        connection: the connection that runs the statements.
    """

    _meant = _FETCHED

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.rowcount: int = -1
        self.lastrowid: None = None  # always None, because rows of Delta tables have no such id
        self._result: SqlResult | None = None
        self._rows: Any = None
        self._is_closed = False

    def __repr__(self) -> str:
        """Show the connection and the number of changed rows."""
        state = "closed" if self._is_closed else f"rowcount {self.rowcount}"
        return f"Cursor({self.connection!r}, {state})"

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """The columns of the last result: name, Arrow type, four times None, nullability."""
        if self._result is None or not self._result.schema.names:
            return None
        return [
            (field.name, field.type, None, None, None, None, field.nullable)
            for field in self._result.schema
        ]

    def execute(self, operation: str, parameters: Parameters = None) -> Self:
        """Run a statement. Its rows can be fetched afterwards."""
        self._check_open()
        self._result = self._rows = None
        self._result = self.connection.sql(operation, parameters)
        changed = self._result.num_affected_rows
        self.rowcount = -1 if changed is None else changed
        return self

    def executemany(
        self, operation: str, seq_of_parameters: Iterable[Sequence[object] | Mapping[str, object]]
    ) -> Self:
        """Run a statement once per list of values. Each run commits its own version."""
        counts = [self.execute(operation, one).rowcount for one in seq_of_parameters]
        self.rowcount = -1 if -1 in counts else sum(counts)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last row."""
        return next(self._tuples(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next rows, at most `size`."""
        found: list[tuple[Any, ...]] = []
        while len(found) < (self.arraysize if size is None else size):
            row = self.fetchone()
            if row is None:
                break
            found.append(row)
        return found

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all remaining rows."""
        return list(self._tuples())

    def nextset(self) -> None:
        """Discard the rows, because a statement has only one result (PEP 249)."""
        self._last()
        self._rows = iter(())

    def fetch_arrow_table(self) -> pa.Table:
        """Return all rows as a pyarrow Table, as DuckDB's and ADBC's cursors do."""
        return self._last().to_arrow()

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """Return all rows as a stream of record batches."""
        return self._last().to_reader()

    def close(self) -> None:
        """Discard the rows (PEP 249). All later calls raise an error."""
        self._result = self._rows = None
        self._is_closed = True

    def __enter__(self) -> Self:
        """Return the cursor, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the cursor."""
        self.close()

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing (PEP 249)."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """Do nothing (PEP 249)."""

    def __iter__(self) -> Self:
        """Return the cursor as an iterator over the remaining rows."""
        return self

    def __next__(self) -> tuple[Any, ...]:
        """Return the next row."""
        found: tuple[Any, ...] = next(self._tuples())
        return found

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidInputError("cannot use the cursor: it is closed")

    def _last(self) -> SqlResult:
        self._check_open()
        if self._result is None:
            raise InvalidInputError("cannot fetch rows: no statement was executed")
        if not self._result.schema.names:
            raise InvalidInputError("cannot fetch rows: the last statement returns none")
        return self._result

    def _tuples(self) -> Any:
        found = self._last()
        if self._rows is None:
            batches = iter(found)
            self._rows = (row for batch in batches for row in rows_of(batch))
        return self._rows


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _takes_a_dictionary(function: _Function) -> _Function:
    """Make the error about an unknown keyword argument say how tables are passed."""
    known = signature(function).parameters

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython does not show this frame
        for name, value in options.items():
            if name not in known:
                hint = similar_argument(name, known, "connect")
                if not hint and not isinstance(value, int | float | None):
                    hint = f": pass tables as connect({{{name!r}: table}})"
                raise WrongCallError(f"connect() got an unexpected keyword argument {name!r}{hint}")
        return function(*args, **options)

    return cast("_Function", called)


@_takes_a_dictionary
@checked_types
def connect(
    tables: Mapping[str, Any] | None = None,
    *,
    catalog: TableCatalog | str | Mapping[str, TableCatalog | str] | None = None,
    schema: str | None = None,
    storage_options: StorageOptions | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Connection:
    """Open a connection that runs SQL statements in this process.

    Args:
        tables: name → `DeltaTable`, location of a table, or rows that `write_deltalake` accepts.
        catalog: the catalog that resolves other names (see `deltalog.catalogs`). A mapping of
            aliases to catalogs provides several catalogs; names then begin with an alias. A string
            is `uc://` for the Unity Catalog of the environment, the URL of a catalog, `glue`, or a
            directory of tables.
        schema: the default schema, such as `sales` or `main.sales`. It is prepended to shorter
            names.
        storage_options: options for tables that a statement names by location, and for a catalog
            that is given as a string.
        settings: the settings of DuckDB: name → value.

    Raises:
        InvalidInputError: DuckDB is not installed, or has no setting with such a name.

    Examples:
        >>> import deltalog
        >>> db = deltalog.connect({"raw": [{"id": 1, "n": 5}, {"id": 2, "n": 7}]})
        >>> _ = db.sql("CREATE TABLE big LOCATION 'memory://connect' AS SELECT * FROM raw")
        >>> db.sql("UPDATE big SET n = n + 1 WHERE id = 1").num_affected_rows
        1
        >>> db.sql("SELECT sum(n) AS n FROM big").to_pylist()
        [{'n': 13}]
    """
    check_options(storage_options)
    if schema is not None and catalog is None:
        raise InvalidInputError(
            f"cannot connect with schema={schema!r}: expected catalog=…, which contains the schema"
        )
    session = LocalSession(
        tables,
        catalogs=CatalogNames(catalog, schema, storage_options),
        storage_options=storage_options,
        settings=settings,
    )
    return Connection(session)


def _run(session: LocalSession, statement: str, parameters: Parameters) -> SqlResult:
    found = parse_statement(statement, parameters)
    try:
        answer = found.run(session)
        return SqlResult(
            answer.rows,
            statement,
            metrics=answer.metrics,
            num_affected_rows=answer.num_affected_rows,
        )
    except RecursionError:
        raise error_at(statement, 0, "it is nested too deeply") from None


def sql(statement: str, parameters: Parameters = None, **tables: Any) -> SqlResult:
    """Run a SQL statement over tables; return its rows and the numbers of changed rows and files.

    Args:
        statement: one statement in Spark's dialect.
        parameters: values for `?` (a sequence) or `:name` (a mapping); the statement must have each
            of them. Values are never inserted into the SQL string.
        tables: name → `DeltaTable`, location of a table, or rows that `write_deltalake` accepts.

    Raises:
        InvalidInputError: the string is not a statement. The message contains the position.
        DeltaError: the operation of the statement failed.

    Examples:
        >>> import deltalog
        >>> rows = [{"id": 1, "n": 5}, {"id": 2, "n": 7}]
        >>> deltalog.sql("SELECT max(n) AS n FROM t WHERE id < ?", [9], t=rows).to_pylist()
        [{'n': 7}]
    """
    one = next(iter(parameters), None) if isinstance(parameters, list | tuple) else parameters
    if hasattr(one, "table_uri") or hasattr(one, "__arrow_c_stream__"):
        raise InvalidInputError(
            f"cannot use {kind_of(one)} as parameters: pass each table by its name in the "
            "statement, as in sql(statement, t=table)"
        )
    given = tables.get("tables")
    if isinstance(given, dict) and not all(isinstance(part, list) for part in given.values()):
        raise InvalidInputError(
            f"tables: pass each table by its name, as in sql(query, {next(iter(given), 't')}=…); "
            "connect(tables) takes a dictionary"
        )
    for name in ("storage_options", "settings"):
        if isinstance(tables.get(name), Mapping):
            raise InvalidInputError(
                f"sql has no argument {name}, only tables: write connect({{'t': table}}, "
                f"{name}={{…}}).sql(statement)"
            )
    for name in ("params", "args"):
        if isinstance(tables.get(name), Mapping | list | tuple) and parameters is None:
            raise InvalidInputError(
                f"sql has no argument {name}: pass values as parameters=…; for id = :id, write "
                "sql(query, {'id': 1}, t=table)"
            )
    try:
        session = LocalSession(tables)
    except TableNotFoundError as error:
        options = [name for name in ("catalog", "schema") if name in tables]
        values = [name for name, value in tables.items() if _is_bare(value) and value in str(error)]
        if values and not options:
            raise error.with_message(
                f"{error}; {values[0]}=… names a table: pass a value in the second argument, as in "
                f"sql(statement, {{{values[0]!r}: {tables[values[0]]!r}}})"
            ) from None
        if not options:
            raise
        raise TableNotFoundError(
            f"{error}; sql takes only tables: for {' and '.join(options)}, use "
            "connect(catalog=…, schema=…).sql(statement)"
        ) from None
    return _run(session, statement, parameters)


def _is_bare(value: object) -> bool:
    """Return whether a value may be a parameter's value instead of a location."""
    return isinstance(value, str) and "/" not in value
