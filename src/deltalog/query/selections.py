"""Queries that are a scan: columns of one table, a condition, a limit.

`scan` answers them without DuckDB, in its types and as soon as it can.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from deltalog.query.parse import span_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

    from deltalog.query.parse import ReadQuery

_CLAUSES: Final = frozenset({"expressions", "from_", "where", "limit"})
_OF_TABLE: Final = frozenset({"this", "db", "catalog", "alias", "version"})
# What `expressions` has no word for, or what it takes for something else.
_BEYOND: Final = (exp.Query, exp.AggFunc, exp.Window, exp.Star)


@dataclass(frozen=True, slots=True)
class Selection:
    """`SELECT columns FROM one table [WHERE condition] [LIMIT n]`.

    Args:
        columns: of the table, as the query spells them, each with its name in the answer; None is
            all of the table.
        where: the condition in Spark's dialect; None is every row.
        place: the first character of the condition in the query.
        limit: so many rows at most; None is all.
    """

    columns: tuple[tuple[str, str], ...] | None
    where: str | None
    place: int
    limit: int | None


def selection_of(found: ReadQuery) -> Selection | None:
    """Return what a query asks of its table; None if it is more than a scan."""
    tree = found.tree
    if not isinstance(tree, exp.Select) or not _said(tree) <= _CLAUSES:
        return None
    source: Any = tree.args.get("from_")
    if source is None or not _is_one_table(source.this):
        return None
    is_whole = len(tree.expressions) == 1 and _is_star(tree.expressions[0])
    columns = None if is_whole else [_column(one) for one in tree.expressions]
    if columns is not None and None in columns:
        return None
    limit: Any = tree.args.get("limit")
    count = None if limit is None else limit.expression
    if count is not None and not (isinstance(count, exp.Literal) and count.is_int):
        return None
    where: Any = tree.args.get("where")
    text, place = None, 0
    if where is not None:
        span = span_of(where.this)
        names = where.find_all(exp.Column)
        if span is None or where.find(*_BEYOND) or any(len(one.parts) != 1 for one in names):
            return None
        text, place = found.source.text[slice(*span)], found.source.origin(span[0])
    return Selection(
        None if columns is None else tuple(one for one in columns if one is not None),
        text,
        place,
        None if count is None else int(count.name),
    )


def _said(node: Expr) -> set[str]:
    """The parts of a node that are there."""
    return {name for name, value in node.args.items() if value}


def _is_one_table(node: Any) -> bool:
    alias: Any = node.args.get("alias")
    return (
        isinstance(node, exp.Table)
        and isinstance(node.this, exp.Identifier)
        and _said(node) <= _OF_TABLE
        and (alias is None or not alias.args.get("columns"))
    )


def _is_star(node: Expr) -> bool:
    return isinstance(node, exp.Star) and not _said(node)


def _column(node: Expr) -> tuple[str, str] | None:
    """The name of a column, and its name in the answer; None if it is more than that."""
    column = node.this if isinstance(node, exp.Alias) else node
    if not isinstance(column, exp.Column) or len(column.parts) != 1:
        return None
    return (column.name, node.alias_or_name) if isinstance(column.this, exp.Identifier) else None
