"""What of a query can be asked of a table before DuckDB reads it.

DuckDB hands most filters to our datasets, but not `IN`, nor `LIKE 'x%'`, nor a limit. Owns which
conditions of a query hold for each row of a table that can count; only simple ones, which mean the
same to DuckDB and to `expressions`.

Protocol: none
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from deltalog.errors import InvalidInputError
from deltalog.expressions import columns, parse_sql
from deltalog.names import name_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sqlglot.expressions import Expr

    from deltalog.expressions import Expression

_SIMPLE: Final = (
    exp.And, exp.Or, exp.Paren, exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between,
    exp.Is, exp.Like, exp.Null, exp.Literal, exp.Column, exp.Identifier, exp.Placeholder, exp.Neg,
)  # fmt: skip
_NANOSECONDS: Final = re.compile(r"\.\d{7}")
# DuckDB hands conditions to a dataset itself, but none of a WHERE that has one of these.
_UNKNOWN_TO_DUCKDB: Final = (exp.In, exp.Like)
# The parts of `SELECT … FROM t LIMIT n` without anything else.
_PLAIN: Final = frozenset({"kind", "expressions", "from_", "limit"})


@dataclass(frozen=True, slots=True)
class TableRead:
    """What a query needs of a table.

    Args:
        where: holds for each row that counts, in Spark's dialect; None is not known.
        limit: so many rows are enough; None is all.
        columns: for a limit: those that are needed; None is all.
        looked_into: names in lower case, in whatever else than the columns of the answer: their
            values are compared, ordered or computed with; None is all.
        named: names in lower case that are anywhere in the query; None is all.
    """

    where: str | None = None
    limit: int | None = None
    columns: tuple[str, ...] | None = None
    looked_into: frozenset[str] | None = frozenset()
    named: frozenset[str] | None = None

    def predicate(
        self, parameters: Mapping[str, object], names: Collection[str]
    ) -> Expression | None:
        """The condition, with its parameters; None if it is not about columns of the table.

        Args:
            parameters: of the query.
            names: of the table's columns.
        """
        if self.where is None:
            return None
        try:
            found = parse_sql(self.where, parameters=parameters)
        except InvalidInputError:
            return None  # DuckDB knows more than we do
        own = {name_key(name) for name in names}
        return found if all(name_key(path[0]) in own for path in columns(found)) else None


EVERYTHING: Final = TableRead()


def read_of(node: exp.Table) -> TableRead:
    """Return what a query needs of a table, which is a node of its tree."""
    select = node.parent_select
    if select is None or not isinstance(node.parent, exp.From | exp.Join):
        return EVERYTHING
    joins = select.args.get("joins") or []
    if any(
        join.side or join.args.get("kind") not in {None, "", "INNER", "CROSS"} for join in joins
    ):
        return EVERYTHING
    is_alone = not joins and not select.args.get("laterals")
    where = select.args.get("where")
    if where is None:
        return _limited(select) if is_alone else EVERYTHING
    if where.find(*_UNKNOWN_TO_DUCKDB) is None:
        return EVERYTHING
    alias = node.alias or node.name
    parts = [
        _text(one, alias)
        for one in _conjuncts(where.this)
        if _is_simple(one) and _is_about(one, alias, is_alone=is_alone)
    ]
    return TableRead(" AND ".join(f"({part})" for part in parts) or None)


def names_looked_into(tree: Expr) -> frozenset[str] | None:
    """Return the names, in lower case, that a query does more with than to give their values.

    Names of tables are among them; None is every name. Whether a value is NULL is no look into it.
    """
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        return None
    if tree.find(exp.Union, exp.Except, exp.Intersect) or any(
        join.args.get("method") for join in tree.find_all(exp.Join)
    ):
        return None  # whole rows, or columns that are not named
    if _names_rows(tree):
        return None
    for one in tree.find_all(exp.Ordered, exp.Group, exp.Star):
        parts = one.expressions if isinstance(one, exp.Group) else [one.this]
        is_by_place = any(isinstance(part, exp.Literal) for part in parts)
        is_all = one.args.get("all") or any(part.name.lower() == "all" for part in parts if part)
        is_own = one.parent is tree or isinstance(one.parent, exp.Count)
        if is_by_place or is_all or (isinstance(one, exp.Star) and not is_own):
            return None
    answered = {id(one) for one in tree.expressions}
    called = {
        name_key(one.name)
        for one in tree.find_all(exp.Identifier)
        if id(one.parent) not in answered
    }
    # A value is looked into where its name in the answer is used: in GROUP BY, ORDER BY, HAVING.
    given = {id(_bare(one)) for one in tree.expressions if name_key(one.alias) not in called}
    asked = {id(one.this) for one in tree.find_all(exp.Is) if isinstance(one.expression, exp.Null)}
    return frozenset(
        name_key(one.name)
        for one in tree.find_all(exp.Identifier)
        if id(one.parent) not in given | asked
    )


def names_in(tree: Expr) -> frozenset[str] | None:
    """Return the names in a query, in lower case; None is every name.

    A star stands for them, and so does the name of a table where a column is expected.
    """
    if any(not isinstance(one.parent, exp.Count) for one in tree.find_all(exp.Star)):
        return None
    if _names_rows(tree):
        return None
    return frozenset(name_key(one.name) for one in tree.find_all(exp.Identifier))


def _names_rows(tree: Expr) -> bool:
    """Whether a name may stand for all columns of a table of the query, as DuckDB has it."""
    tables = {
        name_key(one.alias_or_name) for one in tree.find_all(exp.Table, exp.Subquery, exp.CTE)
    }
    named = (name_key(one.name) for one in tree.find_all(exp.Column) if not one.table)
    return not tables.isdisjoint(named)


def _bare(node: Expr) -> Expr:
    """The expression of a column of an answer, without its name there."""
    return node.this if isinstance(node, exp.Alias) else node


def _conjuncts(node: Expr) -> Iterator[Expr]:
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, exp.And):
            pending += [one.right, one.left]
        elif isinstance(one, exp.Paren) and isinstance(one.this, exp.And):
            pending.append(one.this)
        else:
            yield one


def _is_simple(node: Expr) -> bool:
    for one in node.walk():
        if isinstance(one, exp.Cast) and isinstance(one.this, exp.Literal):
            if _NANOSECONDS.search(one.this.name):
                return False  # a cast cuts them off, which a literal keeps beside a column of them
            continue  # DATE'2025-01-31'
        if isinstance(one, exp.DataType):
            continue
        if not isinstance(one, _SIMPLE) or (isinstance(one, exp.In) and one.args.get("query")):
            return False
        if isinstance(one, exp.Like) and "\\" in str(getattr(one.expression, "this", "\\")):
            return False
    return True


def _is_about(node: Expr, alias: str, *, is_alone: bool) -> bool:
    """Whether each column is one of the table; without a name it may be another one's."""
    return all(
        name_key(column.table) == name_key(alias) if column.table else is_alone
        for column in node.find_all(exp.Column)
    )


def _text(node: Expr, alias: str) -> str:
    found = node.copy()
    for column in found.find_all(exp.Column):
        if name_key(column.table) == name_key(alias) and not column.args.get("db"):
            column.set("table", None)
    return found.sql(dialect="spark")


def _limited(select: exp.Select) -> TableRead:
    """Return how many rows of which columns `SELECT a, b FROM t LIMIT n` needs."""
    said = {name for name, value in select.args.items() if value}
    limit: Any = select.args.get("limit")
    if not isinstance(limit, exp.Limit) or not said <= _PLAIN:
        return EVERYTHING
    count = limit.expression
    if not isinstance(count, exp.Literal) or not count.is_int:
        return EVERYTHING
    names: list[str] = []
    for one in select.expressions:
        if isinstance(one, exp.Star) and not any(one.args.values()):
            return TableRead(limit=int(count.name))
        column = one.this if isinstance(one, exp.Alias) else one
        if not isinstance(column, exp.Column) or len(column.parts) != 1:
            return EVERYTHING
        names.append(column.name)
    return TableRead(limit=int(count.name), columns=tuple(dict.fromkeys(names)))
