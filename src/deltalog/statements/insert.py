"""`INSERT INTO`, `INSERT OVERWRITE` and `INSERT INTO … REPLACE WHERE`.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.expressions.nodes import Column, Comparison, IsNull
from deltalog.expressions.trees import conjunction
from deltalog.names import name_key
from deltalog.rows.request import logged_condition
from deltalog.statements.slices import Defaults, Query, SqlCondition
from deltalog.statements.statement import (
    Session,
    SqlStatement,
    StatementAnswer,
    carry_out,
    computed_columns,
    condition_of,
    counted,
    default_value,
    qualifiers_of,
)
from deltalog.verbs.write import Write
from deltalog.write.source import RereadableRows, open_batches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.query.names import QualifiedName
    from deltalog.statements.reader import StatementReader
    from deltalog.table import DeltaTable


class Replaces(Enum):
    """Which rows an INSERT removes."""

    NOTHING = "nothing"
    ALL = "all"
    WHERE = "where"
    PARTITIONS = "partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertStatement(SqlStatement):
    """`INSERT`.

    Args:
        table: that gets the rows.
        query: gives them.
        columns: of the table, in the order of the query's columns; None is all of them.
        is_by_name: whether the query's columns go by their names.
        partition: constants of `PARTITION (column = value)`; None is a column of the query.
        replaces: which rows are removed.
        where: of `REPLACE WHERE`.
        evolves: whether columns are added that only the query has.
        defaults: for each row of VALUES, the parameters that stand for DEFAULT.
    """

    table: QualifiedName
    query: Query
    columns: Sequence[str] | None = None
    is_by_name: bool = False
    partition: Mapping[str, SqlCondition | None] | None = None
    replaces: Replaces = Replaces.NOTHING
    where: SqlCondition | None = None
    evolves: bool = False
    defaults: Defaults = ()

    def run(self, session: Session) -> StatementAnswer:
        """Write the rows, and return their number."""
        return _written(session, *self.prepared(session))

    def prepared(self, session: Session) -> tuple[DeltaTable, Write]:
        """Return the table, and what is written to it."""
        table = session.open(self.table)
        self._check_partition(table)
        constants = self._constants(session, table)
        columns = None if self.is_by_name else self._columns(table, constants)
        query = self.query
        if columns is not None and self.defaults:
            query, columns = self._with_defaults(table, columns)
        if columns is not None and self.columns is not None and self.evolves:
            self._check_count(session, query, table, columns)
        data = session.insertable(
            query,
            table,
            columns=columns,
            constants=constants,
            target=self.table,
            evolves=self.evolves,
        )
        replaced = self._replaced(session, table, constants)
        overwrites = self.replaces is not Replaces.NOTHING
        verb = Write(
            data=data,
            mode="overwrite" if overwrites else "append",
            schema_mode="merge" if self.evolves else None,
            predicate=replaced,
            logged=None if replaced is None else {
                "mode": "Overwrite", "partitionBy": [], "predicate": logged_condition(replaced),
            },
        )  # fmt: skip
        return table, verb if replaced is None else session.replacing(verb, table)

    def _check_count(
        self, session: Session, query: Query, table: DeltaTable, columns: Sequence[str]
    ) -> None:
        """Refuse more values than there are names: a list of columns names columns that there are.

        Raises:
            SchemaMismatchError: the query has more columns.
        """
        given = session.columns(session.source(query, target=self.table))
        if len(given) > len(columns):
            raise SchemaMismatchError(
                f"cannot insert into {table.table_uri}: expected {len(columns)} columns "
                f"({', '.join(columns)}), found {len(given)} ({', '.join(given)})"
            )

    def _check_partition(self, table: DeltaTable) -> None:
        own = table.metadata().partition_columns
        unknown = {name_key(name) for name in self.partition or ()} - set(map(name_key, own))
        if unknown:
            raise InvalidInputError(
                f"cannot insert into {table.table_uri}: PARTITION names {sorted(unknown)}; the "
                f"partition columns are {list(own)}"
            )

    def _constants(self, session: Session, table: DeltaTable) -> dict[str, Expression]:
        found = {}
        for name, value in (self.partition or {}).items():
            if value is not None:
                found[name] = condition_of(session, value, table)
        return found

    def _columns(self, table: DeltaTable, constants: Mapping[str, Any]) -> Sequence[str]:
        """Return the columns that the query gives, in its order.

        Without names that is the order of the table, as in Delta Spark: PARTITION moves none to
        the end, as Hive does.
        """
        fixed = {name_key(name) for name in constants}
        names = table.schema().names if self.columns is None else self.columns
        return [name for name in names if name_key(name) not in fixed]

    def _with_defaults(
        self, table: DeltaTable, columns: Sequence[str]
    ) -> tuple[Query, Sequence[str]]:
        """Return the rows and their columns, with values for DEFAULT.

        A column that the table computes itself is left out.

        Raises:
            InvalidInputError: some rows have a value for such a column, and others have not.
        """
        if any(len(row) != len(columns) for row in self.defaults):
            return self.query, columns  # the number of columns is refused later
        computed = {name_key(name) for name in computed_columns(table)}
        values: dict[str, object] = {}
        kept: list[int] = []
        for place, name in enumerate(columns):
            marks = [row[place] for row in self.defaults if row[place] is not None]
            if name_key(name) not in computed:
                kept.append(place)
                value = default_value(table, (name,)) if marks else None
                values.update({str(mark): value for mark in marks})
            elif not marks:
                kept.append(place)
            elif len(marks) < len(self.defaults):
                raise InvalidInputError(
                    f"cannot insert into {table.table_uri}: it computes the column {name!r}; "
                    "give it DEFAULT in every row, or in none"
                )
        if not kept:
            raise InvalidInputError(
                f"cannot insert into {table.table_uri}: it computes all columns that the rows have"
            )
        text = self.query.text
        if len(kept) < len(columns):
            shown = ", ".join(f"col{place + 1}" for place in kept)
            text = f"SELECT {shown} FROM {text}"  # noqa: S608  # VALUES of the statement
        given = {**self.query.parameters, **values}
        return Query(text, given, is_of_values=True), [columns[place] for place in kept]

    def _replaced(
        self, session: Session, table: DeltaTable, constants: Mapping[str, Expression]
    ) -> Any:
        """Return which rows are replaced; None is all of them.

        As with Spark's `partitionOverwriteMode` static: those of the constants of PARTITION.
        """
        if self.replaces is Replaces.WHERE:
            return condition_of(session, self.where, table, qualifiers_of(self.table))
        if self.replaces is not Replaces.PARTITIONS:
            return None
        parts: list[Expression] = []
        for name, value in constants.items():
            column = Column((name,))
            is_null = getattr(value, "value", value) is None
            parts.append(IsNull(column) if is_null else Comparison("=", column, value))
        return conjunction(parts) if parts else None


@dataclass(frozen=True, slots=True)
class SeveralInserts(SqlStatement):
    """`FROM relation INSERT … SELECT … INSERT … SELECT …`.

    Each INSERT is a version of its own; all read the tables as they were before the first.
    """

    inserts: tuple[InsertStatement, ...]

    def run(self, session: Session) -> StatementAnswer:
        """Write the rows of all, and return their number."""
        prepared = [one.prepared(session) for one in self.inserts]
        if len(prepared) > 1:
            # A later query may read a table that an earlier INSERT changes.
            prepared = [(table, _opened(verb)) for table, verb in prepared]
        answers = [_written(session, table, verb) for table, verb in prepared]
        if len(answers) == 1:
            return answers[0]
        rows = sum(answer.num_affected_rows or 0 for answer in answers)
        return counted({}, num_affected_rows=rows, num_inserted_rows=rows)


def _opened(verb: Write) -> Write:
    is_open = not isinstance(verb.data, RereadableRows)
    return verb if is_open else replace(verb, data=open_batches(verb.data))


def _written(session: Session, table: DeltaTable, verb: Write) -> StatementAnswer:
    ran = carry_out(session, table, verb)
    rows = 0 if ran.value is None else ran.value.written.num_rows
    metrics = {} if ran.value is None else dict(ran.value.metrics())
    return counted(metrics, num_affected_rows=rows, num_inserted_rows=rows)


def read_inserts(reader: StatementReader) -> SqlStatement:
    """Read one or more `INSERT … SELECT …` behind the relation that they read."""
    found: list[InsertStatement] = []
    while not found or not reader.is_at_end:
        reader.expect("INSERT")
        found.append(read_insert(reader))
    return SeveralInserts(tuple(found))


def read_insert(reader: StatementReader) -> InsertStatement:
    """Read what follows `INSERT`."""
    evolves = reader.take("WITH SCHEMA EVOLUTION")
    overwrites = reader.expect_one("INTO", "OVERWRITE") == "OVERWRITE"
    reader.take("TABLE")
    table = reader.table()
    partition = _read_partition(reader) if reader.take("PARTITION") else None
    replaces = Replaces.NOTHING
    if overwrites:
        replaces = Replaces.ALL if partition is None else Replaces.PARTITIONS
    by_name = reader.take("BY NAME")
    columns, start = None, reader.word
    if not by_name and reader.is_at("(") and not reader.is_at_query:
        columns = reader.listed(lambda: reader.name("a column"))
        if len({name_key(name) for name in columns}) < len(columns):
            reader.fail_at(start, "expected each column once")
    where = None
    if not overwrites and reader.take("REPLACE WHERE"):
        where, replaces = reader.condition(ends_at_query=True, by_engine=True), Replaces.WHERE
    query, defaults = reader.rows()
    if defaults and by_name:
        reader.fail_at(start, "BY NAME goes by the names of a query's columns: VALUES has none")
    return InsertStatement(
        table=table,
        query=query,
        columns=columns,
        is_by_name=by_name,
        partition=partition,
        replaces=replaces,
        where=where,
        evolves=evolves,
        defaults=defaults,
    )


def _read_partition(reader: StatementReader) -> dict[str, SqlCondition | None]:
    def read() -> tuple[str, SqlCondition | None]:
        name = reader.name("a partition column")
        return name, reader.condition() if reader.take("=") else None

    start = reader.word
    found = reader.listed(read)
    if len({name_key(name) for name, _ in found}) < len(found):
        reader.fail_at(start, "expected each column once")
    return dict(found)
