"""`INSERT`, `DELETE`, `UPDATE`, `TRUNCATE` and `MERGE`.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from deltalog._util import readable
from deltalog._util.escaping import name_key, path_key
from deltalog.data.write.source import RereadableRows, open_batches
from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.expressions import Expression, map_columns
from deltalog.expressions.nodes import Column, Comparison, IsNull
from deltalog.expressions.trees import conjunction
from deltalog.operations.changes.request import (
    Action,
    ChangeRequest,
    Clause,
    When,
    logged_condition,
)
from deltalog.operations.delete import Delete, Truncate
from deltalog.operations.execute import explain
from deltalog.operations.merge import Merge
from deltalog.operations.update import Update
from deltalog.operations.write import RowsWritten, Write
from deltalog.statements.statement import (
    Defaults,
    Qualifiers,
    Query,
    Session,
    SqlCondition,
    SqlStatement,
    StatementAnswer,
    alias_of,
    bare,
    computed_columns,
    condition_of,
    counted,
    default_of,
    default_value,
    execute,
    execute_planned,
    explained_scan,
    qualifiers_of,
    result_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.query.lexer import Word
    from deltalog.query.names import QualifiedName
    from deltalog.statements.reader import StatementReader
    from deltalog.table import DeltaTable
    from deltalog.transaction.commit import Ran

Path = tuple[str, ...]
# The value of an assignment that means DEFAULT, the default of the column.
_DEFAULT = None
_LISTED = (
    "rename the source's columns, or write UPDATE SET column = value and INSERT (columns) VALUES "
    "(values)"
)


@dataclass(frozen=True, slots=True)
class DeleteStatement(SqlStatement):
    """`DELETE FROM table [WHERE condition]`."""

    table: QualifiedName
    alias: str | None
    where: SqlCondition | None

    def run(self, session: Session) -> StatementAnswer:
        """Delete the rows, and return their number."""
        qualifiers = qualifiers_of(self.table, self.alias)

        def plan(table: DeltaTable) -> Delete:
            return Delete.where(condition_of(session, self.where, table, qualifiers))

        found = result_of(session, self.table, plan)
        return counted(found, num_affected_rows=found.get("num_deleted_rows", 0))

    def explain(self, session: Session) -> str:
        """Return the plan of the scan that finds the rows."""
        found = explained_scan(session, self.table, self.where, self.alias)
        return "\n".join([f"Delete of rows of {self.table}", *found])


@dataclass(frozen=True, slots=True)
class UpdateStatement(SqlStatement):
    """`UPDATE table SET column = value, … [WHERE condition]`."""

    table: QualifiedName
    alias: str | None
    values: Mapping[Path, SqlCondition | None]
    where: SqlCondition | None

    def run(self, session: Session) -> StatementAnswer:
        """Update the rows, and return their number."""
        qualifiers = qualifiers_of(self.table, self.alias)

        def plan(table: DeltaTable) -> Update:
            return Update.where(
                condition_of(session, self.where, table, qualifiers),
                {
                    column: default_of(table, column) if value is None
                    else condition_of(session, value, table, qualifiers)
                    for column, value in _columns(self.values, table, qualifiers).items()
                },
            )  # fmt: skip

        found = result_of(session, self.table, plan)
        return counted(found, num_affected_rows=found.get("num_updated_rows", 0))

    def explain(self, session: Session) -> str:
        """Return the assignments, and the plan of the scan that finds the rows."""
        sets = (
            f"  set {'.'.join(column)} = {'DEFAULT' if value is None else value.text}"
            for column, value in self.values.items()
        )
        found = explained_scan(session, self.table, self.where, self.alias)
        return "\n".join([f"Update of rows of {self.table}", *sets, *found])


@dataclass(frozen=True, slots=True)
class TruncateStatement(SqlStatement):
    """`TRUNCATE TABLE table`."""

    table: QualifiedName

    def run(self, session: Session) -> StatementAnswer:
        """Remove all rows."""
        found = result_of(session, self.table, lambda _: Truncate())
        return StatementAnswer(None, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStatement(SqlStatement):
    """`MERGE [WITH SCHEMA EVOLUTION] INTO table USING source ON condition WHEN …`.

    The conditions and values of the clauses are `SqlCondition`s; a value of None means DEFAULT.
    """

    table: QualifiedName
    alias: str | None
    source: QualifiedName | Query
    source_alias: str | None
    condition: SqlCondition
    clauses: tuple[Clause, ...]
    evolves: bool

    def run(self, session: Session) -> StatementAnswer:
        """Merge the source into the table, and return the numbers of changed rows."""
        found = result_of(session, self.table, lambda table: self._operation(session, table))
        updated, deleted, inserted = (
            found.get(f"num_target_rows_{name}", 0) for name in ("updated", "deleted", "inserted")
        )
        return counted(
            found,
            num_affected_rows=updated + deleted + inserted,
            num_updated_rows=updated,
            num_deleted_rows=deleted,
            num_inserted_rows=inserted,
        )

    def explain(self, session: Session) -> str:
        """Return the plan of the merge: its keys, its conditions, and the files it would read."""
        table = session.open(self.table)
        return explain(self._operation(session, table), table.snapshot, table.engine)

    def _operation(self, session: Session, table: DeltaTable) -> Merge:
        alias: str | None = alias_of(self.table, self.alias)
        source_alias = self.source_alias
        names = [] if self.alias else [self.table]
        if source_alias is None and not isinstance(self.source, Query):
            source_alias = alias_of(self.source, None)
            names.append(self.source)
            if self.table.location and name_key(source_alias) == self.table.key[-1]:
                alias = source_alias = None  # the names are equal, so use `target` and `source`
        qualifiers = qualifiers_of(self.table, self.alias)
        longer = tuple(one for name in names for one in qualifiers_of(name) if len(one) > 1)

        def expression(given: SqlCondition) -> Any:
            found = session.expression(given, (), longer, keeps_last=True)
            is_ours = isinstance(found, Expression)
            return _with_short_names(found, longer) if is_ours else found

        source = session.source(self.source, target=self.table, alias=source_alias)
        left_out = () if self.evolves else self._left_out(session.columns(source), table)
        clauses = tuple(
            replace(
                clause,
                except_columns=left_out if clause.is_star else (),
                condition=clause.condition and expression(clause.condition),
                values=clause.values
                and {
                    column: default_of(table, column) if value is None else expression(value)
                    for column, value in _columns(clause.values, table, qualifiers).items()
                },
            )
            for clause in self.clauses
        )
        return Merge(
            ChangeRequest(
                condition=expression(self.condition),
                clauses=clauses,
                source=source,
                source_alias=source_alias,
                target_alias=alias,
                merge_schema=self.evolves,
            )
        )

    def _left_out(self, given: Sequence[str], table: DeltaTable) -> tuple[str, ...]:
        """Return the columns of the source that `*` ignores, because the table lacks them.

        Raises:
            InvalidInputError: the source lacks columns of the table, too.
        """
        if not any(clause.is_star for clause in self.clauses):
            return ()
        own, theirs = table.schema().names, {name_key(name) for name in given}
        extra = tuple(name for name in given if name_key(name) not in set(map(name_key, own)))
        computed = {name_key(name) for name in computed_columns(table)}
        missing = [name for name in own if name_key(name) not in theirs | computed]
        if extra and missing:
            raise InvalidInputError(
                f"cannot merge into {self.table}: for `*`, the source lacks the columns "
                f"{', '.join(map(repr, missing))}; found {', '.join(map(repr, given))}; {_LISTED}"
            )
        return extra


def read_delete(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `DELETE`."""
    reader.expect("FROM")
    table, alias = reader.table(), reader.alias("WHERE")
    return DeleteStatement(table, alias, _read_where(reader))


def read_update(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `UPDATE`."""
    table, alias = reader.table(), reader.alias("SET")
    reader.expect("SET")
    values = _read_values(reader, "WHERE")
    where = _read_where(reader)
    return UpdateStatement(table, alias, values, where)


def read_truncate(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `TRUNCATE`."""
    reader.expect("TABLE")
    return TruncateStatement(reader.table())


def read_merge(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `MERGE`."""
    evolves = reader.take("WITH SCHEMA EVOLUTION")
    reader.expect("INTO")
    table, alias = reader.table(), reader.alias("USING")
    reader.expect("USING")
    source: QualifiedName | Query
    named: Query | None = None
    if reader.is_at("("):
        source, name = reader.bracketed_query(), None
    else:
        source = reader.table_at_version()
        named, name = reader.named_query(source), source.parts[0]
    source_alias = reader.alias("ON")
    if named is not None:
        source, source_alias = named, source_alias or name
    reader.expect("ON")
    condition = reader.condition("WHEN", by_engine=True)
    clauses: list[Clause] = []
    while not clauses or reader.is_at("WHEN"):
        clauses.append(_read_clause(reader))
    return MergeStatement(
        table=table,
        alias=alias,
        source=source,
        source_alias=source_alias,
        condition=condition,
        clauses=tuple(clauses),
        evolves=evolves,
    )


def _read_clause(reader: StatementReader) -> Clause:
    reader.expect("WHEN")
    kind = reader.expect_one(
        "MATCHED", "NOT MATCHED BY SOURCE", "NOT MATCHED BY TARGET", "NOT MATCHED"
    )
    when = {"MATCHED": When.MATCHED, "NOT MATCHED BY SOURCE": When.NOT_MATCHED_BY_SOURCE}.get(
        kind, When.NOT_MATCHED
    )
    condition = reader.condition("THEN", by_engine=True) if reader.take("AND") else None
    reader.expect("THEN")
    if when is When.NOT_MATCHED:
        reader.expect("INSERT")
        values = None if reader.take("*") else _read_insert(reader)
        return Clause(when=when, action=Action.INSERT, condition=condition, values=values)
    if reader.expect_one("DELETE", "UPDATE SET") == "DELETE":
        return Clause(when=when, action=Action.DELETE, condition=condition)
    values = None if reader.take("*") else _read_values(reader, "WHEN")
    return Clause(when=when, action=Action.UPDATE, condition=condition, values=values)


def _read_insert(reader: StatementReader) -> dict[Path, SqlCondition | None]:
    place = reader.word
    columns = reader.listed(reader.path)
    reader.expect("VALUES")
    start = reader.word
    values = reader.listed(lambda: _read_value(reader))
    if len(values) != len(columns):
        reader.fail_at(
            start, f"expected {readable.counted(len(columns), 'value')}, found {len(values)}"
        )
    return _once(reader, place, list(zip(columns, values, strict=True)))


def _read_values(reader: StatementReader, *stops: str) -> dict[Path, SqlCondition | None]:
    def read() -> tuple[Path, SqlCondition | None]:
        column = reader.path()
        if not reader.take("=="):
            reader.expect("=")
        return column, _read_value(reader, *stops)

    return _once(reader, reader.word, reader.listed(read, is_bracketed=False))


def _read_value(reader: StatementReader, *stops: str) -> SqlCondition | None:
    # DEFAULT before a dot is the name of a schema, as in `default.sales.amount`.
    is_default = reader.is_at("DEFAULT") and not reader.is_at("DEFAULT .")
    if is_default and reader.take("DEFAULT"):
        return _DEFAULT
    return reader.condition(*stops, by_engine=True)


def _read_where(reader: StatementReader) -> SqlCondition | None:
    return reader.condition(by_engine=True) if reader.take("WHERE") else None


def _once(
    reader: StatementReader, start: Word, values: list[tuple[Path, SqlCondition | None]]
) -> dict[Path, SqlCondition | None]:
    reader.check_once(start, [path for path, _ in values])
    return dict(values)


def _columns(
    values: Mapping[Path, SqlCondition | None], table: DeltaTable, qualifiers: Qualifiers
) -> dict[Path, SqlCondition | None]:
    """Return the assignments. The table's name is removed from their columns."""
    names = table.schema().names
    return {bare(path, qualifiers, names): value for path, value in values.items()}


def _with_short_names(condition: Expression, longer: Qualifiers) -> Expression:
    """Shorten each `schema.table.column` in a condition of a MERGE to `table.column`."""

    def short(column: Column) -> Column:
        key = path_key(column.path)
        for one in longer:
            if len(key) > len(one) and key[: len(one)] == one:
                return Column(column.path[len(one) - 1 :])
        return column

    return map_columns(condition, short)


# --- `INSERT INTO`, `INSERT OVERWRITE` and `INSERT INTO … REPLACE WHERE`


class Replaces(Enum):
    """The rows that an INSERT removes."""

    NOTHING = "nothing"
    ALL = "all"
    WHERE = "where"
    PARTITIONS = "partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertStatement(SqlStatement):
    """`INSERT INTO`, `INSERT OVERWRITE` and `INSERT INTO … REPLACE WHERE`.

    Args:
        table: the table into which the rows are inserted.
        query: the query that returns the rows.
        columns: the columns of the table, in the order of the query's columns; None means all
            columns.
        is_by_name: whether columns are matched by name.
        partition: the constants of `PARTITION (column = value)`. None means that the query returns
            the values of this column.
        replaces: the rows that are removed.
        where: the condition of `REPLACE WHERE`.
        evolves: whether columns of the query that the table lacks are added to the table.
        defaults: for each row of VALUES and each item, the parameter that replaces DEFAULT, or
            None.
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
        return _answer(execute_planned(session, self.table, lambda _: self.prepared(session)[1]))

    def prepared(self, session: Session) -> tuple[DeltaTable, Write]:
        """Return the table and the write operation, which has not run yet."""
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
        operation = Write(
            data=data,
            mode="overwrite" if overwrites else "append",
            schema_mode="merge" if self.evolves else None,
            predicate=replaced,
            logged=None if replaced is None else {
                "mode": "Overwrite", "partitionBy": [], "predicate": logged_condition(replaced),
            },
        )  # fmt: skip
        return table, operation if replaced is None else session.replacing(operation, table)

    def _check_count(
        self, session: Session, query: Query, table: DeltaTable, columns: Sequence[str]
    ) -> None:
        """Refuse a query with more columns than column names: a list of columns must be complete.

        Raises:
            SchemaMismatchError: the query returns more columns than the list contains.
        """
        given = session.columns(session.source(query, target=self.table))
        if len(given) > len(columns):
            raise SchemaMismatchError(
                f"cannot insert into {table.table_uri}: expected "
                f"{readable.counted(len(columns), 'column')} ({', '.join(columns)}), found "
                f"{len(given)} ({', '.join(given)})"
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
        """Return the column of the table for each column of the query.

        Without a list of columns in the statement, the columns are in the table's order, as in
        Delta Spark. Unlike in Hive, PARTITION does not move a column to the end.
        """
        fixed = {name_key(name) for name in constants}
        names = table.schema().names if self.columns is None else self.columns
        return [name for name in names if name_key(name) not in fixed]

    def _with_defaults(
        self, table: DeltaTable, columns: Sequence[str]
    ) -> tuple[Query, Sequence[str]]:
        """Return the query and its columns. Each DEFAULT is replaced by its value.

        Columns whose values the table computes are removed from the query.

        Columns that the table computes are removed from the rows.

        Raises:
            InvalidInputError: for such a column, some rows contain a value and other rows DEFAULT.
        """
        if any(len(row) != len(columns) for row in self.defaults):
            return self.query, columns  # a later check raises an error for the number of columns
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
                f"cannot insert into {table.table_uri}: it computes all columns of the rows itself"
            )
        text = self.query.text
        if len(kept) < len(columns):
            shown = ", ".join(f"col{place + 1}" for place in kept)
            text = f"SELECT {shown} FROM {text}"  # noqa: S608  # `text` is VALUES of the statement
        given = {**self.query.parameters, **values}
        return Query(text, given, is_of_values=True), [columns[place] for place in kept]

    def _replaced(
        self, session: Session, table: DeltaTable, constants: Mapping[str, Expression]
    ) -> Any:
        """Return the condition of the rows to replace; None means all rows.

        With PARTITION, these are the rows of the given partitions, as with Spark's setting
        `partitionOverwriteMode=static`.
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

    Each INSERT commits its own version. All of them read the tables in the state before the first
    INSERT.
    """

    inserts: tuple[InsertStatement, ...]

    def run(self, session: Session) -> StatementAnswer:
        """Write the rows of all INSERTs, and return the number of these rows."""
        if len(self.inserts) == 1:
            return self.inserts[0].run(session)
        prepared = [one.prepared(session) for one in self.inserts]
        # Open all queries first, because a query may read a table that an earlier INSERT changes.
        opened = [(table, _opened(operation)) for table, operation in prepared]
        answers = [_answer(execute(session, table, operation)) for table, operation in opened]
        rows = sum(answer.num_affected_rows or 0 for answer in answers)
        return counted({}, num_affected_rows=rows, num_inserted_rows=rows)


def _opened(operation: Write) -> Write:
    is_open = not isinstance(operation.data, RereadableRows)
    return operation if is_open else replace(operation, data=open_batches(operation.data))


def _answer(ran: Ran[RowsWritten]) -> StatementAnswer:
    rows = 0 if ran.value is None else ran.value.written.num_rows
    metrics = {} if ran.value is None else dict(ran.value.metrics())
    return counted(metrics, num_affected_rows=rows, num_inserted_rows=rows)


def read_inserts(reader: StatementReader) -> SqlStatement:
    """Parse one or more `INSERT … SELECT …` after `FROM relation`."""
    found: list[InsertStatement] = []
    while not found or not reader.is_at_end:
        reader.expect("INSERT")
        found.append(read_insert(reader))
    return SeveralInserts(tuple(found))


def read_insert(reader: StatementReader) -> InsertStatement:
    """Parse a statement after `INSERT`."""
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
        reader.check_once(start, [(name,) for name in columns])
    where = None
    if not overwrites and reader.take("REPLACE WHERE"):
        where = reader.condition("BY NAME", ends_at_query=True, by_engine=True)
        replaces = Replaces.WHERE
        if reader.is_at("BY NAME"):
            reader.fail("expected a query", "; write BY NAME before REPLACE WHERE")
    query, defaults = reader.rows()
    if defaults and by_name:
        reader.fail_at(start, "BY NAME matches by the query's column names, but VALUES has none")
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
    reader.check_once(start, [(name,) for name, _ in found])
    return dict(found)
