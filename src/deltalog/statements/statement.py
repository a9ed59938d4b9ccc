"""The base class of all statements. A statement is a frozen value, which a session runs.

To add a statement, add a class with its grammar, and a row in `statements.grammar`.

Protocol: none
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from deltalog._util.escaping import name_key, path_key
from deltalog.errors import CommitConflictError
from deltalog.expressions import Expression, evaluate, lit, map_columns, parse_sql, resolve
from deltalog.expressions.nodes import Column
from deltalog.expressions.render import quote_name
from deltalog.operations.changes.request import logged_condition
from deltalog.operations.execute import stage
from deltalog.protocol.features.clustering import logical_clustering_columns
from deltalog.protocol.features.declarations import default_expressions, generation_expressions
from deltalog.protocol.features.identity_columns import identity_columns
from deltalog.query.lexer import TextOfParts, Word
from deltalog.schema import DataType, StructType

if TYPE_CHECKING:
    from deltalog.catalogs.protocol import CatalogTable
    from deltalog.operations.engine import Engine
    from deltalog.operations.operation import Operation, OutcomeT_co
    from deltalog.operations.write import Write
    from deltalog.query.names import QualifiedName
    from deltalog.table import DeltaTable
    from deltalog.table.creating import TablePlace
    from deltalog.transaction import CommitOptions, PendingTransaction
    from deltalog.transaction.commit import Ran

logger: logging.Logger = logging.getLogger(__name__)

Path = tuple[str, ...]
Qualifiers = tuple[Path, ...]
_ONE_ROW: Final = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["one"])


@dataclass(frozen=True, slots=True)
class StatementAnswer:
    """What a statement returns to its session.

    Args:
        rows: a table, or any object that streams Arrow batches.
        metrics: the numbers of changed rows and files, under the names in the operation's result;
            None if nothing changed.
        num_affected_rows: the number of changed rows; None if it is unknown.
    """

    rows: Any
    metrics: Mapping[str, Any] | None = None
    num_affected_rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNames:
    """The definition of a new schema or catalog.

    Args:
        namespace: the name of the schema or catalog.
        is_catalog: whether a catalog is created, instead of a schema.
        may_exist: whether nothing happens if the name exists; if False, that is an error.
        comment: the comment of the schema or catalog.
        location: the directory in which new tables of the schema or catalog are created.
        properties: the properties of the schema or catalog.
    """

    namespace: tuple[str, ...]
    is_catalog: bool = False
    may_exist: bool = False
    comment: str | None = None
    location: str | None = None
    properties: Mapping[str, str] | None = None


class Namespaces(Protocol):
    """The schemas and catalogs that a session can access."""

    def catalogs(self) -> Sequence[str]:
        """Return the names of the catalogs."""
        ...

    def schemas(self, within: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """Return the schemas of a catalog, without the name of the catalog.

        Args:
            within: the name of the catalog; empty means the current catalog.
        """
        ...

    def create(self, names: NewNames) -> None:
        """Create a schema or a catalog."""

    def drop(
        self, namespace: Sequence[str], *, is_catalog: bool, cascade: bool, may_lack: bool
    ) -> None:
        """Drop a schema or a catalog.

        Args:
            namespace: the name of the schema or catalog.
            is_catalog: whether a catalog is dropped, instead of a schema.
            cascade: whether its contents are dropped, too. If False, it must be empty.
            may_lack: whether nothing happens if the name does not exist; if False, that is an
                error.
        """

    def use(self, namespace: Sequence[str], *, is_catalog: bool) -> None:
        """Set the schema or the catalog that is prepended to shorter names.

        Raises:
            InvalidInputError: the session has no catalog that could contain the schema.
        """
        ...


class Session(Protocol):
    """The interface of sessions, which run statements in this process or on a cluster."""

    @property
    def engine(self) -> Engine:
        """The engine that reads and writes rows and files."""
        ...

    @property
    def namespaces(self) -> Namespaces:
        """The schemas and catalogs that the session can access."""
        ...

    @property
    def options(self) -> CommitOptions:
        """The options of the commits that statements make."""
        ...

    def begin(self) -> None:
        """Make the statement that runs next, or again, use the latest versions of its tables."""
        ...

    @property
    def enforces_retention(self) -> bool:
        """Whether VACUUM refuses a retention period that is shorter than the table's."""
        ...

    def open(self, name: QualifiedName) -> DeltaTable:
        """Return the table with this name, at the version that the name contains.

        Raises:
            TableNotFoundError: the table does not exist.
        """
        ...

    def find(self, name: QualifiedName) -> DeltaTable | None:
        """Return the table with this name; None if the name is unknown."""
        ...

    def has_read(self, table: DeltaTable) -> bool:
        """Return whether a query of this statement has read the table at its current version."""
        ...

    def place(self, name: QualifiedName, location: str | None) -> TablePlace:
        """Return the location of a new table.

        Args:
            name: the name of the new table.
            location: the location in the statement; None if the name or its catalog determines
                the location.

        Raises:
            InvalidInputError: the location is not in the statement, and neither the name nor a
                catalog determines it.
        """
        ...

    def note(self, name: QualifiedName, table: DeltaTable) -> None:
        """Register a created or changed table under its name."""
        ...

    def forget(self, name: QualifiedName) -> bool:
        """Remove the name of a table, and return whether it existed."""
        ...

    def rename(self, name: QualifiedName, to: QualifiedName) -> None:
        """Rename a table."""
        ...

    def relocate(self, name: QualifiedName, location: str) -> None:
        """Change the location that belongs to a name."""
        ...

    def tables(self, schema: Sequence[str]) -> Sequence[QualifiedName]:
        """Return the tables of a schema. An empty name means the tables of the session itself."""
        ...

    def entry(self, name: QualifiedName) -> CatalogTable | None:
        """Return a table's entry in its catalog; None if no catalog is responsible for the name."""
        ...

    def select(self, query: Query) -> Any:
        """Return the rows of a query: a stream of Arrow batches, or a dataframe."""
        ...

    def values(self, query: Query) -> pa.Table:
        """Return all rows of a query in a condition. The rows must fit into memory."""
        ...

    def expression(
        self,
        given: SqlCondition,
        columns: Sequence[str] = (),
        qualifiers: Qualifiers = (),
        *,
        keeps_last: bool = False,
    ) -> Any:
        """Return a condition as an expression. Its queries are run, and replaced by their results.

        Args:
            given: the condition.
            columns: the columns of the rows that the condition tests.
            qualifiers: the qualifiers that a column may have. If only the engine can evaluate the
                condition, they are removed.
            keeps_last: whether, in that case, the last part of a qualifier remains.

        Returns:
            An expression, or a value that only the engine can evaluate.
        """
        ...

    def known_part(self, condition: Any, table: DeltaTable) -> Expression | None:
        """Return the part of a condition that can prune files; None if there is no such part."""
        ...

    def replacing(self, write: Write, table: DeltaTable) -> Write:
        """Return the write operation with a predicate that this session's engine can evaluate."""
        ...

    def source(
        self,
        rows: Query | QualifiedName,
        *,
        target: QualifiedName | None = None,
        alias: str | None = None,
    ) -> Any:
        """Return the rows of a query or a table in a form that the engine can open.

        Args:
            rows: the query or the table.
            target: the table that the statement changes. If the query reads this table, it reads
                the version that the operation is based on.
            alias: the name of the rows in the conditions of the operation.
        """
        ...

    def columns(self, source: Any) -> Sequence[str]:
        """Return the column names of a result of `source`, without reading its rows."""
        ...

    def insertable(
        self,
        query: Query,
        table: DeltaTable,
        *,
        columns: Sequence[str] | None,
        constants: Mapping[str, Expression],
        target: QualifiedName,
        evolves: bool,
    ) -> Any:
        """Return the rows of a query, cast to the columns and types of a table; see `source`.

        Args:
            query: the query that returns the rows.
            table: the table into which the rows are inserted.
            columns: the columns of the table, in the order of the query's columns; None matches
                columns by name.
            constants: the name of a column → the value of the column in every row.
            target: the name of the table.
            evolves: whether columns of the query that the table lacks are added to the table.
        """
        ...

    def explain(self, query: Query) -> str:
        """Return the plan of a query."""
        ...


class SqlStatement(ABC):
    """A parsed statement, including the values of its parameters."""

    __slots__ = ()

    @abstractmethod
    def run(self, session: Session) -> StatementAnswer:
        """Run the statement.

        Raises:
            DeltaError: the operation of the statement failed.
        """

    def explain(self, session: Session) -> str:
        """Describe what the statement would do, without running it."""
        del session
        name = type(self).__name__.removesuffix("Statement")
        facts = [f"  {key}: {value}" for key, value in _facts(self)]
        return "\n".join([name, *facts])


def explained_scan(
    session: Session, name: QualifiedName, where: SqlCondition | None, alias: str | None
) -> list[str]:
    """Return the plan of the scan that finds the rows for a condition, as lines of text."""
    table = session.open(name)
    condition = condition_of(session, where, table, qualifiers_of(name, alias))
    known = session.known_part(condition, table)
    rest = [] if known is condition else [f"  rows where: {logged_condition(condition)}"]
    return [*table.scan(predicate=known).explain().splitlines(), *rest]


def _facts(statement: Any) -> Iterator[tuple[str, str]]:
    """Yield the names and the values, as strings, of the fields of a statement that are set."""
    for one in fields(statement):
        value = getattr(statement, one.name)
        text = getattr(value, "text", value)
        if isinstance(value, Enum):
            text = value.value
        if value is not None and value is not False and value != ():
            yield one.name.removeprefix("is_").replace("_", " "), str(text)


def table_of(schema: Mapping[str, pa.DataType], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Build a table from rows and the types of the columns."""
    fields = [pa.field(name, kind) for name, kind in schema.items()]
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))


def counted(metrics: Mapping[str, Any] | None = None, **counts: int | None) -> StatementAnswer:
    """Return an answer with one row of counts, as Delta Spark does for changes of rows."""
    rows = pa.table({name: pa.array([count], pa.int64()) for name, count in counts.items()})
    return StatementAnswer(rows, dict(metrics or {}), counts.get("num_affected_rows"))


def execute(
    session: Session, table: DeltaTable, operation: Operation[OutcomeT_co]
) -> Ran[OutcomeT_co]:
    """Run an operation of a statement, and return its outcome and its commit.

    If a query of the statement has read the table, the operation is based on the same version. With
    a newer version, the query could return other rows.

    Raises:
        CommitConflictError: another writer has changed rows that the statement read.
    """
    options = session.options
    if not session.has_read(table):
        # The statement has just opened the table.
        return table.execute(operation, options, is_fresh=True)

    def staged(pending: PendingTransaction) -> OutcomeT_co:
        pending.record_read(None)
        return stage(operation, pending, table.engine)

    return table.run(
        operation.name,
        staged,
        parameters=operation.logged_parameters(),
        refresh=False,
        on_conflict="raise",
        commit_properties=options.properties,
        hooks=options.hooks,
        skip_empty=operation.skips_empty,
    )


def execute_planned(
    session: Session, name: QualifiedName, plan: Callable[[DeltaTable], Operation[OutcomeT_co]]
) -> Ran[OutcomeT_co]:
    """Plan and run the only operation of a statement.

    If a query of the statement has read the table, and another writer has changed the table in the
    meantime, the operation is planned again: its queries run again on the latest versions.

    Args:
        session: the session of the statement.
        name: the name of the table that the operation changes.
        plan: returns the operation; it may run queries of the statement.
    """
    retries = 0
    while True:
        table = session.open(name)
        try:
            return execute(session, table, plan(table))
        except CommitConflictError as conflict:
            # Without a query on the table, `execute` has already run the operation again.
            if not session.has_read(table) or retries >= session.options.max_retries:
                raise
            logger.info("running the statement on %s again: %s", table.table_uri, conflict)
        retries += 1
        session.begin()


def result_of(
    session: Session, name: QualifiedName, plan: Callable[[DeltaTable], Operation[Any]]
) -> dict[str, Any]:
    """Return the result of `execute_planned` as a dictionary; it is empty without changes."""
    done = execute_planned(session, name, plan)
    return {} if done.value is None else dict(done.value.result())


def condition_of(
    session: Session, given: SqlCondition | None, table: DeltaTable, qualifiers: Qualifiers = ()
) -> Any:
    """Return a condition as an expression. Its queries are run, and replaced by their results.

    If only the session's engine can evaluate the condition, the result is an object of that engine.

    Args:
        session: the session that runs the queries.
        given: the condition; None means all rows.
        table: the table whose rows the condition tests.
        qualifiers: the qualifiers that a column may have; a result of `qualifiers_of`.
    """
    if given is None:
        return None
    names = table.schema().names
    found = session.expression(given, names, qualifiers)
    if not isinstance(found, Expression):
        return found
    return map_columns(found, lambda column: Column(bare(column.path, qualifiers, names)))


def qualifiers_of(name: QualifiedName, alias: str | None = None) -> Qualifiers:
    """Return the qualifiers that a column of a table may have.

    With an alias, that is only the alias. Otherwise, these are the name of the table and the name
    without its first parts. The qualifiers are in lower case, the longest first.
    """
    if alias is not None:
        return ((name_key(alias),),)
    return tuple(name.key[place:] for place in range(len(name.key)))


def bare(path: Path, qualifiers: Qualifiers, columns: Sequence[str]) -> Path:
    """Return the path of a column without its qualifier, unless its first part is a column.

    Args:
        path: the path in the statement.
        qualifiers: the qualifiers of the table.
        columns: the columns of the table.
    """
    key = path_key(path)
    if key[0] in {name_key(name) for name in columns}:
        return path
    sizes = (len(one) for one in qualifiers if key[: len(one)] == one and len(one) < len(key))
    return path[next(sizes, 0) :]


def alias_of(name: QualifiedName, alias: str | None) -> str:
    """Return the only qualifier of columns: the alias, or else the last part of the name."""
    return alias or name.parts[-1]


def absent_partitions(table: DeltaTable, given: Collection[str]) -> dict[str, Expression]:
    """Return values for the partition columns that the rows do not contain: defaults, or NULL.

    Args:
        table: the table.
        given: the names of the columns that the rows contain, in upper or lower case.
    """
    known = {name_key(name) for name in (*given, *computed_columns(table))}
    return {
        name: default_of(table, (name,))
        for name in table.metadata().partition_columns
        if name_key(name) not in known
    }


def default_of(table: DeltaTable, column: tuple[str, ...]) -> Expression:
    """Return the default of a column; NULL if the column has no default."""
    schema = table.snapshot.configuration.schema
    found = {path_key(path): text for path, text in default_expressions(schema).items()}
    text = found.get(path_key(column))
    return lit(None) if text is None else parse_sql(text)


def default_value(table: DeltaTable, column: tuple[str, ...]) -> Any:
    """Return the value that the default of a column has now; None if the column has no default.

    Returns:
        A Python value, or an Arrow scalar if Python cannot represent it.
    """
    schema = StructType(())
    found = resolve(default_of(table, column), schema, table.snapshot.context.session)
    value = evaluate(found, _ONE_ROW)[0]
    try:
        return value.as_py()
    except (ArithmeticError, ValueError):  # for example, a day after the year 9999
        return value


def computed_columns(table: DeltaTable) -> list[str]:
    """Return the names of generated and identity columns."""
    schema = table.snapshot.configuration.schema
    return [*generation_expressions(schema), *(one.name for one in identity_columns(schema))]


def advice_on_columns(table: DeltaTable, columns: Sequence[str], num_given: int) -> str:
    """Return the list of columns with which fewer values than columns can be inserted."""
    if num_given >= len(columns):
        return ""
    computed = {name_key(name) for name in computed_columns(table)}
    rest = [name for name in columns if name_key(name) not in computed]
    named = ", ".join(map(quote_name, rest[:num_given]))
    if not rest or len(rest) != num_given:
        example = f", as in INSERT INTO t ({named}) …" if named else ""
        return f"; name the columns of the values{example}; others get their default or NULL"
    left = ", ".join(repr(name) for name in columns if name_key(name) in computed)
    return f"; the table computes {left}: write INSERT INTO t ({named}) …"


def clusters_of(table: DeltaTable) -> tuple[tuple[str, ...], ...]:
    """Return the paths of the clustering columns, with logical names; empty without clustering."""
    configuration = table.snapshot.configuration
    return logical_clustering_columns(
        table.snapshot.domain_metadata, configuration.schema, configuration.column_mapping_mode
    )


# --- parts of statements: queries and expressions, with the values of their parameters


OPENING: Final = frozenset("([")
CLOSING: Final = frozenset(")]")
# For each row of VALUES and each item in the row, the name of the parameter that replaces DEFAULT,
# or None if the item is not DEFAULT.
Defaults = tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a statement, in Spark's dialect.

    Args:
        text: the SQL of the query, with a parameter name for each `?`.
        parameters: the values of the parameters: name → value.
        source: the positions of the text in its statement; None if the query is not part of a
            statement.
        is_of_values: whether the query is the VALUES of an INSERT.
    """

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    source: TextOfParts | None = field(default=None, compare=False, repr=False)
    is_of_values: bool = False

    def origin(self, place: int) -> int:
        """Return the position in the statement that corresponds to a position in the text."""
        return place if self.source is None else self.source.origin(place)


class SubqueryKind(StrEnum):
    """How an expression uses a query in brackets."""

    VALUE = "value"
    """As one value, from one column. NULL if the query returns no row."""
    LIST = "list"
    """As a list of values from one column, after IN."""
    EXISTS = "exists"
    """As a boolean that is true if the query returns a row."""


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query in an expression.

    Args:
        kind: how the expression uses the query.
        query: the query without the brackets around it.
    """

    kind: SubqueryKind
    query: Query


@dataclass(frozen=True, slots=True)
class SqlCondition:
    """An expression of a statement, which may contain queries.

    Args:
        text: the expression in Spark's dialect, with a parameter name for each `?` and each query.
        parameters: the values of the parameters: name → value.
        subqueries: the name of a parameter → the query that the parameter replaces.
        is_foreign: whether only the session's engine can evaluate the expression.
    """

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    subqueries: Mapping[str, Subquery] = field(default_factory=dict)
    is_foreign: bool = False


def stops_at(words: Sequence[Word], place: int, stops: Sequence[str]) -> bool:
    """Return whether one of some keywords or signs, such as `GROUP BY`, begins at a word."""
    for stop in stops:
        wanted = stop.split()
        coming = words[place : place + len(wanted)]
        if len(coming) == len(wanted) and all(map(Word.says, coming, wanted)):
            return True
    return False


def items_of_values(words: Sequence[Word], start: int, end: int) -> Iterator[tuple[int, bool]]:
    """Yield the position of each item of VALUES, and whether the item is the first one of its row.

    Args:
        words: the words of the statement.
        start: the position after VALUES.
        end: the position after the last row.
    """
    depth, is_tuple = 0, False
    for place in range(start, end):
        word, before = words[place], words[place - 1]
        if depth == 0 and (place == start or before.says(",")):
            is_tuple = word.says("(")
            if not is_tuple:
                yield place, True
        elif is_tuple and depth == 1 and (before.says("(") or before.says(",")):
            yield place, before.says("(")
        if word.kind == "sign":
            depth += (word.text in OPENING) - (word.text in CLOSING)


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A type as it is written in a statement.

    Args:
        type: the type, in which `string` replaces each `char(n)` and `varchar(n)`.
        limited: the type as written, if it contains `char(n)` or `varchar(n)`.
        collations: a path inside the type → the identifier of its collation. Fields of structs are
            excluded, because their collations are stored in the fields.
        by_bytes: the paths of strings with an explicit default collation, including fields of
            structs.
    """

    type: DataType
    limited: str | None
    collations: Mapping[tuple[str, ...], str]
    by_bytes: Collection[tuple[str, ...]]


def end_of_type(words: Sequence[Word], start: int, stops: Sequence[str]) -> int:
    """Return the position after a type, which ends before one of `stops`, a comma or a bracket."""
    ending = (*stops, ",", ")", ";")
    place, depth = start, 0
    while (word := words[place]).kind != "end":
        if not depth and place > start and stops_at(words, place, ending):
            break
        if word.kind == "sign":
            depth += (word.text in "(<") - (word.text in ")>")
        place += 1
    return place
