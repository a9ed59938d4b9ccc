"""The common base of all statements: they are frozen values that a session runs.

To add a statement, add a class with its grammar, and a row in `statements.grammar`.

Protocol: none
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from deltalog._util.escaping import name_key, path_key
from deltalog.expressions import Expression, evaluate, lit, map_columns, parse_sql, resolve
from deltalog.expressions.nodes import Column
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
    from deltalog.transaction import PendingTransaction
    from deltalog.transaction.commit import Ran

Path = tuple[str, ...]
Qualifiers = tuple[Path, ...]
_ONE_ROW: Final = pa.RecordBatch.from_pydict({"one": [1]})


@dataclass(frozen=True, slots=True)
class StatementAnswer:
    """The answer of a statement.

    Args:
        rows: a table, or anything that streams Arrow batches.
        metrics: the changes, with the names of the operation's result; None if nothing changed.
        num_affected_rows: number of changed rows; None if not counted.
    """

    rows: Any
    metrics: Mapping[str, Any] | None = None
    num_affected_rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNames:
    """A schema or catalog to create.

    Args:
        namespace: its name.
        is_catalog: whether it is a catalog.
        may_exist: whether an existing one is kept instead of raising.
        comment: its comment.
        location: parent of its tables' locations.
        properties: its properties.
    """

    namespace: tuple[str, ...]
    is_catalog: bool = False
    may_exist: bool = False
    comment: str | None = None
    location: str | None = None
    properties: Mapping[str, str] | None = None


class Namespaces(Protocol):
    """The schemas and catalogs that a session knows."""

    def catalogs(self) -> Sequence[str]:
        """Return the catalogs that the session knows."""
        ...

    def schemas(self, within: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """Return the schemas of a catalog, without its name; of the session's if it is empty."""
        ...

    def create(self, names: NewNames) -> None:
        """Make a schema, or a catalog."""

    def drop(
        self, namespace: Sequence[str], *, is_catalog: bool, cascade: bool, may_lack: bool
    ) -> None:
        """Drop a schema, or a catalog, with what is in it if `cascade` says so.

        Args:
            namespace: its name.
            is_catalog: whether it is a catalog.
            cascade: whether what is in it goes, too.
            may_lack: whether it is no error if there is none.
        """

    def use(self, namespace: Sequence[str], *, is_catalog: bool) -> None:
        """Let shorter names begin with a schema, or with a catalog and a schema to be named.

        Raises:
            InvalidInputError: no catalog keeps such names.
        """
        ...


class Session(Protocol):
    """Where statements are run: in this process, or on a cluster."""

    @property
    def engine(self) -> Engine:
        """The engine for work on rows and files."""
        ...

    @property
    def namespaces(self) -> Namespaces:
        """The schemas and catalogs that the session knows."""
        ...

    @property
    def enforces_retention(self) -> bool:
        """Whether VACUUM raises for a retention shorter than the table's."""
        ...

    def open(self, name: QualifiedName) -> DeltaTable:
        """Return the table of a name, at the version in the name.

        Raises:
            TableNotFoundError: there is no such table.
        """
        ...

    def find(self, name: QualifiedName) -> DeltaTable | None:
        """Return the table of a name; None if the name is unknown."""
        ...

    def has_read(self, table: DeltaTable) -> bool:
        """Return whether a query of this statement has read the version that a table shows."""
        ...

    def place(self, name: QualifiedName, location: str | None) -> TablePlace:
        """Return the location of a new table.

        Args:
            name: name of the new table.
            location: from the statement; None means that the name or its catalog decides.

        Raises:
            InvalidInputError: neither defines a location.
        """
        ...

    def note(self, name: QualifiedName, table: DeltaTable) -> None:
        """Register a created or changed table under its name."""
        ...

    def forget(self, name: QualifiedName) -> bool:
        """Remove a table's name; return whether it existed."""
        ...

    def rename(self, name: QualifiedName, to: QualifiedName) -> None:
        """Rename a table."""
        ...

    def relocate(self, name: QualifiedName, location: str) -> None:
        """Point a name to another location."""
        ...

    def tables(self, schema: Sequence[str]) -> Sequence[QualifiedName]:
        """Return the tables of a schema; of the session itself if the schema is empty."""
        ...

    def entry(self, name: QualifiedName) -> CatalogTable | None:
        """Return the catalog's entry of a table; None if no catalog owns the name."""
        ...

    def select(self, query: Query) -> Any:
        """Return the rows of a query: a stream of Arrow batches, or a data frame."""
        ...

    def values(self, query: Query) -> pa.Table:
        """Return the rows of a query in a condition; they must be few."""
        ...

    def expression(
        self,
        given: SqlCondition,
        columns: Sequence[str] = (),
        qualifiers: Qualifiers = (),
        *,
        keeps_last: bool = False,
    ) -> Any:
        """Return the expression of a condition, with the results of its queries.

        Args:
            given: the condition.
            columns: columns of the condition's rows.
            qualifiers: possible qualifiers of the columns; removed if only the engine can evaluate
                it.
            keeps_last: whether to keep the last part of qualifiers then.

        Returns:
            An expression, or a value that only the engine can evaluate.
        """
        ...

    def known_part(self, condition: Any, table: DeltaTable) -> Expression | None:
        """Return the part of a condition for finding files; None if there is none."""
        ...

    def replacing(self, write: Write, table: DeltaTable) -> Write:
        """Return the operation that replaces the rows that match a predicate."""
        ...

    def source(
        self,
        rows: Query | QualifiedName,
        *,
        target: QualifiedName | None = None,
        alias: str | None = None,
    ) -> Any:
        """Return the rows of a query or a table in a form that the engine opens.

        Args:
            rows: source of the rows.
            target: the table to change; a query that reads it does not run again
                after a conflict.
            alias: name of the rows in the conditions of the operation.
        """
        ...

    def columns(self, source: Any) -> Sequence[str]:
        """Return the column names of a result of `source`, without reading rows."""
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
        """Return the rows of a query in the columns and types of a table, as `source` does.

        Args:
            query: returns the rows.
            table: gets the rows.
            columns: columns of the table, in the order of the query's columns; None matches by
                name.
            constants: column → its value in each row.
            target: the name of the table.
            evolves: whether to keep columns that the table lacks.
        """
        ...

    def explain(self, query: Query) -> str:
        """Return the plan of a query."""
        ...


class SqlStatement(ABC):
    """One statement, with its parameters bound."""

    __slots__ = ()

    @abstractmethod
    def run(self, session: Session) -> StatementAnswer:
        """Run the statement.

        Raises:
            DeltaError: as its operation.
        """

    def explain(self, session: Session) -> str:
        """Describe the effect of the statement, without running it."""
        del session
        name = type(self).__name__.removesuffix("Statement")
        facts = [f"  {key}: {value}" for key, value in _facts(self)]
        return "\n".join([name, *facts])


def explained_scan(
    session: Session, name: QualifiedName, where: SqlCondition | None, alias: str | None
) -> list[str]:
    """Return the plan for finding the rows of a condition, as lines."""
    table = session.open(name)
    condition = condition_of(session, where, table, qualifiers_of(name, alias))
    known = session.known_part(condition, table)
    rest = [] if known is condition else [f"  rows where: {logged_condition(condition)}"]
    return [*table.scan(predicate=known).explain().splitlines(), *rest]


def _facts(statement: Any) -> Iterator[tuple[str, str]]:
    """Return the fields of a statement that are set, in words."""
    for one in fields(statement):
        value = getattr(statement, one.name)
        text = getattr(value, "text", value)
        if value is not None and value is not False and value != ():
            yield one.name.removeprefix("is_").replace("_", " "), str(text)


def table_of(schema: Mapping[str, pa.DataType], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Return rows as a table of these columns."""
    fields = [pa.field(name, kind) for name, kind in schema.items()]
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))


def counted(metrics: Mapping[str, Any] | None = None, **counts: int | None) -> StatementAnswer:
    """Return one row of whole numbers, as Delta Spark does for statements that change rows."""
    rows = pa.table({name: pa.array([count], pa.int64()) for name, count in counts.items()})
    return StatementAnswer(rows, dict(metrics or {}), counts.get("num_affected_rows"))


def execute(
    session: Session, table: DeltaTable, operation: Operation[OutcomeT_co]
) -> Ran[OutcomeT_co]:
    """Run an operation of a statement; return its outcome and its commit.

    If a query of the statement has read the table, the operation uses the version that was read:
    a newer one might give another result.

    Raises:
        CommitConflictError: another writer has changed rows that the statement has read.
    """
    if not session.has_read(table):
        return table.execute(operation, is_fresh=True)  # the statement has just opened it

    def staged(pending: PendingTransaction) -> OutcomeT_co:
        pending.record_read(None)
        return stage(operation, pending, table.engine)

    return table.run(
        operation.name,
        staged,
        parameters=operation.logged_parameters(),
        refresh=False,
        on_conflict="raise",
        skip_empty=operation.skips_empty,
    )


def result_of(session: Session, table: DeltaTable, operation: Operation[Any]) -> dict[str, Any]:
    """Run an operation of a statement, and return its result; empty if there was nothing to do."""
    done = execute(session, table, operation)
    return {} if done.value is None else dict(done.value.result())


def condition_of(
    session: Session, given: SqlCondition | None, table: DeltaTable, qualifiers: Qualifiers = ()
) -> Any:
    """Return the expression of a condition over a table's rows, with the results of its queries.

    If only the session's engine can evaluate it, it is a value of that engine.

    Args:
        session: runs the queries.
        given: the condition, or None.
        table: the table of the rows.
        qualifiers: possible qualifiers of its columns, from `qualifiers_of`.
    """
    if given is None:
        return None
    names = table.schema().names
    found = session.expression(given, names, qualifiers)
    if not isinstance(found, Expression):
        return found
    return map_columns(found, lambda column: Column(bare(column.path, qualifiers, names)))


def qualifiers_of(name: QualifiedName, alias: str | None = None) -> Qualifiers:
    """Return the possible qualifiers of columns: the alias, or else the name or its last part.

    From the longest to the shortest, in lower case.
    """
    if alias is not None:
        return ((name_key(alias),),)
    return tuple(name.key[place:] for place in range(len(name.key)))


def bare(path: Path, qualifiers: Qualifiers, columns: Sequence[str]) -> Path:
    """Return the path of a column without its qualifier; a column's own name has precedence.

    Args:
        path: as in the statement.
        qualifiers: qualifiers of the table.
        columns: columns of the table.
    """
    key = path_key(path)
    if key[0] in {name_key(name) for name in columns}:
        return path
    sizes = (len(one) for one in qualifiers if key[: len(one)] == one and len(one) < len(key))
    return path[next(sizes, 0) :]


def alias_of(name: QualifiedName, alias: str | None) -> str:
    """Return the single qualifier of columns: the alias, or else the last part of the name."""
    return alias or name.parts[-1]


def absent_partitions(table: DeltaTable, given: Collection[str]) -> dict[str, Expression]:
    """Return values of partition columns that the rows lack: their defaults, or NULL.

    Args:
        table: the table with the partition columns.
        given: names of the columns that the rows have, in any case.
    """
    known = {name_key(name) for name in (*given, *computed_columns(table))}
    return {
        name: default_of(table, (name,))
        for name in table.metadata().partition_columns
        if name_key(name) not in known
    }


def default_of(table: DeltaTable, column: tuple[str, ...]) -> Expression:
    """Return the default of a column; NULL if it has none."""
    schema = table.snapshot.configuration.schema
    found = {path_key(path): text for path, text in default_expressions(schema).items()}
    text = found.get(path_key(column))
    return lit(None) if text is None else parse_sql(text)


def default_value(table: DeltaTable, column: tuple[str, ...]) -> Any:
    """Return the current value of a column's default; None if it has none.

    Returns:
        A Python value, or an Arrow scalar if Python cannot represent it.
    """
    schema = StructType(())
    found = resolve(default_of(table, column), schema, table.snapshot.context.session)
    value = evaluate(found, _ONE_ROW)[0]
    try:
        return value.as_py()
    except (ArithmeticError, ValueError):  # such as a day after the year 9999
        return value


def computed_columns(table: DeltaTable) -> list[str]:
    """Return the names of generated and identity columns."""
    schema = table.snapshot.configuration.schema
    return [*generation_expressions(schema), *(one.name for one in identity_columns(schema))]


def clusters_of(table: DeltaTable) -> tuple[tuple[str, ...], ...]:
    """Return the paths of the clustering columns, in logical names; possibly empty."""
    configuration = table.snapshot.configuration
    return logical_clustering_columns(
        table.snapshot.domain_metadata, configuration.schema, configuration.column_mapping_mode
    )


# Parts of statements: queries and expressions, with the values of their parameters.


OPENING: Final = frozenset("([")
CLOSING: Final = frozenset(")]")
# For each row of VALUES its items: the name of the parameter that means DEFAULT, or None.
Defaults = tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a statement, in Spark's dialect.

    Args:
        text: its SQL, with a name for each `?`.
        parameters: name → value, for the names in the text.
        source: origin of the text in its statement; None if there is no statement.
        is_of_values: whether it is the VALUES of an INSERT.
    """

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    source: TextOfParts | None = field(default=None, compare=False, repr=False)
    is_of_values: bool = False

    def origin(self, place: int) -> int:
        """Return the position in the statement of a character of the text."""
        return place if self.source is None else self.source.origin(place)


class SubqueryKind(StrEnum):
    """The role of a query in brackets in an expression."""

    VALUE = "value"
    """Its only value; NULL if it has no row."""
    LIST = "list"
    """The values of its only column, after IN."""
    EXISTS = "exists"
    """Whether it returns a row."""


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query in an expression.

    Args:
        kind: its role.
        query: without its brackets.
    """

    kind: SubqueryKind
    query: Query


@dataclass(frozen=True, slots=True)
class SqlCondition:
    """An expression of a statement, which may contain queries.

    Args:
        text: in Spark's dialect, with a name for each `?` and for each query in it.
        parameters: name → value, for the names in the text.
        subqueries: name of a parameter → the query that it replaces.
        is_foreign: whether only the engine of the session can evaluate it.
    """

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    subqueries: Mapping[str, Subquery] = field(default_factory=dict)
    is_foreign: bool = False


def stops_at(words: Sequence[Word], place: int, stops: Sequence[str]) -> bool:
    """Return whether one of these keywords or signs, such as `GROUP BY`, begins at a word."""
    for stop in stops:
        wanted = stop.split()
        coming = words[place : place + len(wanted)]
        if len(coming) == len(wanted) and all(map(Word.says, coming, wanted)):
            return True
    return False


def items_of_values(words: Sequence[Word], start: int, end: int) -> Iterator[tuple[int, bool]]:
    """Return the positions of items of VALUES, and whether each is the first of its row.

    Args:
        words: words of the statement.
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
    """A type as written in a statement.

    Args:
        type: with `string` for each `char(n)` and `varchar(n)`.
        limited: the type as written, if it has such limits.
        collations: collations of its strings: path inside the type → identifier; not of fields of
            structs, which have their own collations.
        by_bytes: paths of strings with an explicit default collation, also inside structs.
    """

    type: DataType
    limited: str | None
    collations: Mapping[tuple[str, ...], str]
    by_bytes: Collection[tuple[str, ...]]


def end_of_type(words: Sequence[Word], start: int, stops: Sequence[str]) -> int:
    """Return the position after a type; these keywords, a comma or a bracket end it."""
    ending = (*stops, ",", ")", ";")
    place, depth = start, 0
    while (word := words[place]).kind != "end":
        if not depth and place > start and stops_at(words, place, ending):
            break
        if word.kind == "sign":
            depth += (word.text in "(<") - (word.text in ")>")
        place += 1
    return place
