"""Limits of recursive queries: `WITH RECURSIVE` ends after a number of levels or rows, as in Spark.

DuckDB has no such limits. So each recursive query gets two more columns, the level of a row and the
number of rows of all earlier levels, which only this module names.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from deltalog._util.escaping import name_key
from deltalog.expressions.render import quote_name
from deltalog.query.native import quoted_string
from deltalog.query.parse import MAX_LEVEL
from deltalog.query.query_trees import WRITTEN, mark_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot.expressions import Expr

MAX_LEVELS: Final = 100
"""The value of Spark's setting `spark.sql.cteRecursionLevelLimit`."""
MAX_ROWS: Final = 1_000_000
"""The value of Spark's setting `spark.sql.cteRecursionRowLimit`."""
_LEVEL: Final = mark_named("level")
_BEFORE: Final = mark_named("before")
_LAST: Final = mark_named("last")
_ROWS: Final = mark_named("rows")
_COUNT: Final = mark_named("count")
_ROW: Final = mark_named("row")
_OF_LAST: Final = {name: f'"{_LAST}"."{name}"' for name in (_LEVEL, _BEFORE, _COUNT)}


def limit_recursions(tree: Expr) -> None:
    """Make the recursive queries of a tree fail if they exceed a limit."""
    found: dict[int, exp.CTE] = {}
    for cte in tree.find_all(exp.CTE):
        while isinstance(cte.this, exp.Subquery) and _given(cte.this) == ["this"]:
            cte.set("this", cte.this.this)  # DuckDB ignores these brackets, too
        if _is_recursive(cte):
            found[id(cte)] = cte
    for node, cte_id in [(node, id(cte_of(node))) for node in tree.find_all(exp.Table)]:
        if cte_id in found:
            _hide_counts(node, found[cte_id])
    for cte in found.values():
        _count(cte)


def cte_of(node: exp.Table) -> Expr | None:
    """Return the common table expression that a table name means; None if it means none."""
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return None
    name = name_key(node.name)
    return next((cte for cte in _visible(node) if name == name_key(cte.alias)), None)


def _visible(node: Expr) -> Iterator[Expr]:
    """Yield the common table expressions that are visible at a node: those before it."""
    inside: list[Expr] = []
    at: Expr | None = node
    while at is not None:
        inside.append(at)
        with_: Any = at.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            if any(cte is one for one in inside):
                if with_.args.get("recursive"):
                    yield cte
                break
            yield cte
        at = at.parent


def _given(node: Expr) -> list[str]:
    return [name for name, value in node.args.items() if value]


def _is_recursive(cte: exp.CTE) -> bool:
    """Return whether the second query of a common table expression reads its own rows."""
    union = cte.this
    if not isinstance(union, exp.Union):
        return False
    return _reads(union.expression, cte) and not _reads(union.this, cte)


def _reads(query: Expr, cte: exp.CTE) -> bool:
    return any(cte_of(table) is cte for table in query.find_all(exp.Table))


def _hide_counts(node: exp.Table, cte: Expr) -> None:
    """Replace a reference to a recursive query by a query without the columns of this module."""
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
    rows = exp.Subquery(this=_own_columns(cte, exp.Table(this=node.this.copy())), alias=alias)
    for part in ("joins", "sample", "pivots", "laterals"):
        rows.set(part, node.args.get(part))
    node.replace(rows)


def _own_columns(cte: Expr, table: exp.Table) -> exp.Select:
    """Return the columns that the user's query has."""
    if not _is_distinct(cte):
        hidden = [exp.to_identifier(name, quoted=True) for name in (_LEVEL, _BEFORE)]
        return exp.select(exp.Star(except_=hidden)).from_(table, copy=False)
    every = exp.Column(this=exp.Star(), table=exp.to_identifier(_ROW, quoted=True))
    return exp.Select(expressions=[every]).from_(table, copy=False)


def _is_distinct(cte: Expr) -> bool:
    return bool(cte.this.args.get("distinct"))


def _count(cte: exp.CTE) -> None:
    """Add the columns of this module to both queries of a recursive query."""
    union, alias = cte.this, cte.args["alias"]
    names = alias.args.get("columns") or []
    anchor, step = _rows(union.this), _rows(union.expression)
    columns: list[Expr] = [exp.to_identifier(one, quoted=True) for one in (_LEVEL, _BEFORE)]
    own: Expr = exp.Column(this=exp.Star(), table=exp.to_identifier(_ROWS, quoted=True))
    if _is_distinct(cte):
        # The level of a row is not part of its key, so a row that is reached again is no new row.
        anchor, step = _rows(_distinct(anchor), names), _rows(_new_rows(cte, step))
        own = _named(f'"{_ROWS}"', _ROW)
        # sqlglot cannot write this clause.
        key = exp.Var(this=f'"{_BEFORE}") USING KEY ("{_ROW}"')
        alias.set("columns", [exp.to_identifier(_ROW, quoted=True), columns[0], key])
    elif names:
        alias.set("columns", [*names, *columns])
    union.set("this", _with(anchor, own, "1", "0"))
    counted = _with(step, own.copy(), _next_level(cte), f"{_OF_LAST[_BEFORE]} + {_OF_LAST[_COUNT]}")
    counted.append("joins", exp.Join(this=_last_level(cte.alias), kind="CROSS"))
    union.set("expression", counted)


def _next_level(cte: exp.CTE) -> str:
    """Return the level of a new row, which is an error if a limit is exceeded."""
    most = cte.meta.get(MAX_LEVEL, MAX_LEVELS)
    level, before, count = (_OF_LAST[one] for one in (_LEVEL, _BEFORE, _COUNT))
    name = cte.alias if cte.alias.isidentifier() else quote_name(cte.alias)
    too_deep, too_long = _too_deep(name, most), _too_long(name)
    return (
        f"CASE WHEN {level} >= {most} THEN error({quoted_string(too_deep)})"
        f" WHEN {before} + {count} > {MAX_ROWS} THEN error({quoted_string(too_long)})"
        f" ELSE {level} + 1 END"
    )


def _distinct(rows: exp.Subquery) -> exp.Select:
    return exp.select("*").from_(rows, copy=False).distinct(copy=False)


def _new_rows(cte: exp.CTE, step: exp.Subquery) -> Expr:
    """Return the rows of the second query that the recursion does not have yet.

    They get the column names of the first query, because structs are compared by names.
    """
    own = exp.to_identifier(cte.alias, quoted=True)
    named = _own_columns(cte, exp.Table(this=own)).where(exp.false(), copy=False)
    known = _own_columns(cte, exp.Table(this=own.copy(), db=exp.to_identifier("recurring")))
    rows = exp.select("*").from_(step, copy=False)
    all_rows = exp.Union(this=named, expression=rows, distinct=False)
    found = exp.Except(this=exp.Subquery(this=all_rows), expression=known, distinct=True)
    for node in (all_rows, found):
        node.meta[WRITTEN] = True
    return found


def _last_level(name: str) -> exp.Subquery:
    """Return the level of the rows that the second query reads, and the numbers of rows."""
    counts = {f'max("{_LEVEL}")': _LEVEL, f'max("{_BEFORE}")': _BEFORE, "count(*)": _COUNT}
    query = exp.Select(expressions=[_named(text, one) for text, one in counts.items()])
    query.from_(exp.Table(this=exp.to_identifier(name, quoted=True)), copy=False)
    return exp.Subquery(
        this=query, alias=exp.TableAlias(this=exp.to_identifier(_LAST, quoted=True))
    )


def _with(rows: exp.Subquery, own: Expr, level: str, before: str) -> exp.Select:
    """Return the columns of rows, as they are or as a struct, and two further columns."""
    found = exp.Select(expressions=[own, _named(level, _LEVEL), _named(before, _BEFORE)])
    return found.from_(rows, copy=False)


def _rows(query: Expr, names: Sequence[Expr] = ()) -> exp.Subquery:
    inner = query.this if isinstance(query, exp.Subquery) and not query.alias else query
    alias = exp.TableAlias(this=exp.to_identifier(_ROWS, quoted=True))
    if names:
        alias.set("columns", [one.copy() for one in names])
    return exp.Subquery(this=inner, alias=alias)


def _named(text: str, name: str) -> exp.Alias:
    return exp.Alias(this=exp.Var(this=text), alias=exp.to_identifier(name, quoted=True))


def _too_deep(name: str, most: int) -> str:
    return (
        f"WITH RECURSIVE {name} still adds rows after {most} levels, which is the "
        "limit; add a condition to its second query that ends the recursion, or raise the limit: "
        f"WITH RECURSIVE {name} MAX RECURSION LEVEL {2 * most} AS (…)"
    )


def _too_long(name: str) -> str:
    return (
        f"WITH RECURSIVE {name} still adds rows after more than {MAX_ROWS:,}, which is the limit"
        "; add a condition to its second query that ends the recursion earlier, or read "
        "its first rows only, with LIMIT"
    )
