"""`DELETE`, `UPDATE`, `TRUNCATE` and `MERGE`.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, map_columns
from deltalog.expressions.nodes import Column
from deltalog.names import name_key, path_key
from deltalog.rows.request import Action, ChangeRequest, Clause, When
from deltalog.statements.slices import Query, SqlCondition
from deltalog.statements.statement import (
    Qualifiers,
    Session,
    SqlStatement,
    StatementAnswer,
    alias_of,
    bare,
    computed_columns,
    condition_of,
    counted,
    default_of,
    explained_scan,
    qualifiers_of,
    result_of,
)
from deltalog.verbs.delete import Delete
from deltalog.verbs.do import explain
from deltalog.verbs.merge import Merge
from deltalog.verbs.truncate import Truncate
from deltalog.verbs.update import Update

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.query.lexer import Word
    from deltalog.query.names import QualifiedName
    from deltalog.statements.reader import StatementReader
    from deltalog.table import DeltaTable

Path = tuple[str, ...]
# In place of a value: the column's default.
_DEFAULT = None


@dataclass(frozen=True, slots=True)
class DeleteStatement(SqlStatement):
    """`DELETE FROM table [WHERE condition]`."""

    table: QualifiedName
    alias: str | None
    where: SqlCondition | None

    def run(self, session: Session) -> StatementAnswer:
        """Delete the rows, and return their number."""
        table = session.open(self.table)
        qualifiers = qualifiers_of(self.table, self.alias)
        verb = Delete.where(condition_of(session, self.where, table, qualifiers))
        found = result_of(session, table, verb)
        return counted(found, num_affected_rows=found.get("num_deleted_rows", 0))

    def explain(self, session: Session) -> str:
        """Return how the rows would be found."""
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
        table = session.open(self.table)
        qualifiers = qualifiers_of(self.table, self.alias)
        verb = Update.where(
            condition_of(session, self.where, table, qualifiers),
            {
                column: default_of(table, column) if value is None
                else condition_of(session, value, table, qualifiers)
                for column, value in _columns(self.values, table, qualifiers).items()
            },
        )  # fmt: skip
        found = result_of(session, table, verb)
        return counted(found, num_affected_rows=found.get("num_updated_rows", 0))

    def explain(self, session: Session) -> str:
        """Return what would be set, and how the rows would be found."""
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
        found = session.open(self.table).do(Truncate())
        return StatementAnswer(None, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """`WHEN … [AND condition] THEN …`; values of None are those of the source (`*`)."""

    when: When
    action: Action
    condition: SqlCondition | None
    values: Mapping[Path, SqlCondition | None] | None = None

    @property
    def is_star(self) -> bool:
        """Whether the clause is `UPDATE SET *` or `INSERT *`."""
        return self.values is None and self.action is not Action.DELETE


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStatement(SqlStatement):
    """`MERGE [WITH SCHEMA EVOLUTION] INTO table USING source ON condition WHEN …`."""

    table: QualifiedName
    alias: str | None
    source: QualifiedName | Query
    source_alias: str | None
    condition: SqlCondition
    clauses: tuple[MergeClause, ...]
    evolves: bool

    def run(self, session: Session) -> StatementAnswer:
        """Merge, and return the numbers of rows that changed."""
        table = session.open(self.table)
        found = result_of(session, table, self._verb(session, table))
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
        """Return how rows would be matched: keys, conditions, and the files that would be read."""
        table = session.open(self.table)
        return explain(self._verb(session, table), table.snapshot, table.engine)

    def _verb(self, session: Session, table: DeltaTable) -> Merge:
        alias: str | None = alias_of(self.table, self.alias)
        source_alias = self.source_alias
        names = [] if self.alias else [self.table]
        if source_alias is None and not isinstance(self.source, Query):
            source_alias = alias_of(self.source, None)
            names.append(self.source)
            if self.table.location and name_key(source_alias) == self.table.key[-1]:
                alias = source_alias = None  # a path twice: its sides are `target` and `source`
        qualifiers = qualifiers_of(self.table, self.alias)
        longer = tuple(one for name in names for one in qualifiers_of(name) if len(one) > 1)

        def expression(given: SqlCondition) -> Any:
            found = session.expression(given, (), longer, keeps_last=True)
            is_ours = isinstance(found, Expression)
            return _with_short_names(found, longer) if is_ours else found

        source = session.source(self.source, target=self.table, alias=source_alias)
        left_out = () if self.evolves else self._left_out(session.columns(source), table)
        clauses = tuple(
            Clause(
                when=clause.when,
                action=clause.action,
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
        """Return the columns of the source that `*` leaves out, as the table lacks them.

        Raises:
            InvalidInputError: the source lacks some of the table's as well.
        """
        if not any(clause.is_star for clause in self.clauses):
            return ()
        own, theirs = table.schema().names, {name_key(name) for name in given}
        extra = tuple(name for name in given if name_key(name) not in set(map(name_key, own)))
        computed = {name_key(name) for name in computed_columns(table)}
        missing = [name for name in own if name_key(name) not in theirs | computed]
        if extra and missing:
            raise InvalidInputError(
                f"cannot merge into {self.table}: for `*`, the source lacks the columns {missing}"
            )
        return extra


def read_delete(reader: StatementReader) -> SqlStatement:
    """Read what follows `DELETE`."""
    reader.expect("FROM")
    table, alias = reader.table(), reader.alias("WHERE")
    return DeleteStatement(table, alias, _read_where(reader))


def read_update(reader: StatementReader) -> SqlStatement:
    """Read what follows `UPDATE`."""
    table, alias = reader.table(), reader.alias("SET")
    reader.expect("SET")
    values = _read_values(reader, "WHERE")
    where = _read_where(reader)
    return UpdateStatement(table, alias, values, where)


def read_truncate(reader: StatementReader) -> SqlStatement:
    """Read what follows `TRUNCATE`."""
    reader.expect("TABLE")
    return TruncateStatement(reader.table())


def read_merge(reader: StatementReader) -> SqlStatement:
    """Read what follows `MERGE`."""
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
    clauses: list[MergeClause] = []
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


def _read_clause(reader: StatementReader) -> MergeClause:
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
        return MergeClause(when=when, action=Action.INSERT, condition=condition, values=values)
    if reader.expect_one("DELETE", "UPDATE SET") == "DELETE":
        return MergeClause(when=when, action=Action.DELETE, condition=condition)
    values = None if reader.take("*") else _read_values(reader, "WHEN")
    return MergeClause(when=when, action=Action.UPDATE, condition=condition, values=values)


def _read_insert(reader: StatementReader) -> dict[Path, SqlCondition | None]:
    place = reader.word
    columns = reader.listed(reader.path)
    reader.expect("VALUES")
    start = reader.word
    values = reader.listed(lambda: _read_value(reader))
    if len(values) != len(columns):
        reader.fail_at(start, f"expected {len(columns)} values, found {len(values)}")
    return _once(reader, place, list(zip(columns, values, strict=True)))


def _read_values(reader: StatementReader, *stops: str) -> dict[Path, SqlCondition | None]:
    def read() -> tuple[Path, SqlCondition | None]:
        column = reader.path()
        if not reader.take("=="):
            reader.expect("=")
        return column, _read_value(reader, *stops)

    return _once(reader, reader.word, reader.listed(read, is_bracketed=False))


def _read_value(reader: StatementReader, *stops: str) -> SqlCondition | None:
    # `default` may be a schema: `default.sales.amount`.
    is_default = reader.is_at("DEFAULT") and not reader.is_at("DEFAULT .")
    if is_default and reader.take("DEFAULT"):
        return _DEFAULT
    return reader.condition(*stops, by_engine=True)


def _read_where(reader: StatementReader) -> SqlCondition | None:
    return reader.condition(by_engine=True) if reader.take("WHERE") else None


def _once(
    reader: StatementReader, start: Word, values: list[tuple[Path, SqlCondition | None]]
) -> dict[Path, SqlCondition | None]:
    if len({path_key(path) for path, _ in values}) < len(values):
        reader.fail_at(start, "expected each column once")
    return dict(values)


def _columns(
    values: Mapping[Path, SqlCondition | None], table: DeltaTable, qualifiers: Qualifiers
) -> dict[Path, SqlCondition | None]:
    """Return the assignments with bare columns: the table's name may stand before them."""
    names = table.schema().names
    return {bare(path, qualifiers, names): value for path, value in values.items()}


def _with_short_names(condition: Expression, longer: Qualifiers) -> Expression:
    """Return a condition of a MERGE in which `schema.table.column` is `table.column`."""

    def short(column: Column) -> Column:
        key = path_key(column.path)
        for one in longer:
            if len(key) > len(one) and key[: len(one)] == one:
                return Column(column.path[len(one) - 1 :])
        return column

    return map_columns(condition, short)
