"""Joins by column names (USING, NATURAL): the columns that they return, in Spark's order.

Spark returns the compared columns first, then the other columns of the left side, then those of the
right side. DuckDB uses another order. The columns are not known before DuckDB has read the schemas
of the tables, so marks replace the stars of a query until then.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.expressions.render import quote_name
from deltalog.query.lexer import SyntaxProblem
from deltalog.query.parse import start_of
from deltalog.query.query_trees import mark_named

_UNNAMED: Final = "deltalog_side_"
_NATURAL: Final = mark_named("natural")
_NATURALS: Final = re.compile(rf"{_NATURAL}(\d+)_ ", re.IGNORECASE)
_CONDITIONS: Final = re.compile(rf" ON {_NATURAL}on_(\d+)_")
_WITHOUT_COLUMNS: Final = "No columns found to join on in NATURAL JOIN"

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from sqlglot.expressions import Expr


@dataclass(frozen=True, slots=True)
class ColumnOfJoin:
    """A column of a join.

    Args:
        table: the alias of the column's table; None if the table has no alias, or if the column
            combines the columns of both sides.
        name: the name, as it is spelled in the table.
        type: the type, in DuckDB's notation.
    """

    table: str | None
    name: str
    type: str

    def __str__(self) -> str:
        """Return the column as SQL of DuckDB."""
        names = (self.name,) if self.table is None else (self.table, self.name)
        return ".".join('"' + one.replace('"', '""') + '"' for one in names)


@dataclass(frozen=True, slots=True)
class TableOfJoin:
    """A table or query in a join.

    Args:
        alias: the qualifier of the columns; None if there is no qualifier.
        query: a query, in DuckDB's dialect and with marks, that returns the columns without rows.
    """

    alias: str | None
    query: str


@dataclass(frozen=True, slots=True)
class Joined:
    """A join, or several joins, of two sides.

    Args:
        left: the left side.
        right: the right side.
        kind: the kind of the join. `SEMI` and `ANTI` return only columns of the left side.
        side: the side whose rows without a match are returned: `LEFT`, `RIGHT`, `FULL`, or empty.
        names: the names of the compared columns; None if the join is NATURAL or has a condition.
        alias: the qualifier of all columns; None if the aliases of the tables apply.
        place: the position of the join in the query.
        natural: the number of the join among the NATURAL joins; None for other joins.
    """

    left: Joined | TableOfJoin
    right: Joined | TableOfJoin
    kind: str
    side: str
    names: tuple[str, ...] | None
    alias: str | None
    place: int
    natural: int | None


@dataclass(frozen=True, slots=True)
class Star:
    """A star in a query that joins by column names.

    Args:
        join: the index of the part that is the join.
        table: the qualifier of the star; None if there is no qualifier.
        excluded: the names of the columns in EXCEPT.
        place: the position of the star in the query.
    """

    join: int
    table: str | None
    excluded: tuple[str, ...]
    place: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns that a join compares.

    Args:
        left: the column of the left side.
        right: the column of the right side.
        is_put_together: whether the join returns one column for both.
        place: the position of the join in the query.
    """

    left: ColumnOfJoin
    right: ColumnOfJoin
    is_put_together: bool
    place: int


@dataclass(frozen=True, slots=True)
class ColumnsOfJoin:
    """The columns that a join returns.

    Args:
        shown: the columns that a star returns, in Spark's order.
        hidden: the columns that only a star with the qualifier of their table returns.
        pairs: the pairs of compared columns.
        crossed: the numbers of the NATURAL joins whose sides have no common column.
    """

    shown: tuple[ColumnOfJoin, ...]
    hidden: tuple[ColumnOfJoin, ...] = ()
    pairs: tuple[Pair, ...] = ()
    crossed: frozenset[int] = frozenset()

    def expanded(self, star: Star) -> str:
        """Return the columns, in DuckDB's dialect, that replace a star.

        Raises:
            InvalidInputError: the table or a column does not exist, or EXCEPT removes all columns.
        """
        own: Sequence[ColumnOfJoin] = self.shown
        if star.table is not None:
            own = [
                one for one in (*self.hidden, *self.shown)
                if one.table is not None and name_key(one.table) == name_key(star.table)
            ]  # fmt: skip
            if not own:
                raise InvalidInputError(f"no table of this join is called {star.table}")
        for name in star.excluded:
            if not _called(name, own):
                raise InvalidInputError(f"EXCEPT: the star has no column {quote_name(name)}")
        excluded = {name_key(name) for name in star.excluded}
        found = [str(one) for one in own if name_key(one.name) not in excluded]
        if not found:
            raise InvalidInputError("EXCEPT removes all columns of the star")
        return ", ".join(found)


def number_naturals(tree: Expr) -> None:
    """Number the NATURAL joins of a query, so that a join can be found in a copy of the tree."""
    for number, join in enumerate(tree.find_all(exp.Join)):
        if join.method == "NATURAL":
            join.meta[_NATURAL] = number


def with_naturals(tree: Expr) -> Expr:
    """Return a tree from which SQL is generated, in which marks replace the word NATURAL."""
    if not any(_NATURAL in join.meta for join in tree.find_all(exp.Join)):
        return tree
    found = tree.copy()
    for join in found.find_all(exp.Join):
        number = join.meta.get(_NATURAL)
        if number is not None:
            join.set("method", f"{_NATURAL}{number}_")
            join.set("on", exp.column(f"{_NATURAL}on_{number}_"))
    return found


def without_marks(text: str, crossed: Collection[int]) -> str:
    """Replace the marks of `with_naturals` in SQL by DuckDB's syntax.

    Args:
        text: the SQL with marks.
        crossed: the numbers of the joins whose sides have no common column. DuckDB would reject a
            NATURAL join of them.
    """
    text = _NATURALS.sub(lambda mark: "" if int(mark[1]) in crossed else "NATURAL ", text)
    return _CONDITIONS.sub(lambda mark: " ON TRUE" if int(mark[1]) in crossed else "", text)


def has_no_columns(error: Exception) -> bool:
    """Return whether DuckDB rejected a NATURAL join because its sides have no common column."""
    return _WITHOUT_COLUMNS in str(error)


def joined_by_names(select: exp.Select, write: Callable[[Expr], str]) -> Joined | None:
    """Return the joins of a query if at least one is a join by column names; otherwise None.

    Args:
        select: the query, in which marks replace parts. Subqueries without an alias receive one.
        write: a function that generates SQL in DuckDB's dialect.

    Raises:
        SyntaxProblem: it cannot be determined which columns the join compares.
    """
    from_ = select.args.get("from_")
    if from_ is None:
        return None
    own = [from_, *(select.args.get("joins") or ())]
    joins = [one for top in own for one in _joins_in(top)]
    if not any(map(_is_by_names, joins)):
        return None
    unknown = next((one for one in joins if isinstance(one.this, exp.Lateral)), None)
    if unknown is not None or select.args.get("laterals"):
        problem = "a query with LATERAL cannot join by names of columns: join ON a condition"
        raise SyntaxProblem(start_of(unknown or select), problem)
    queries = (one for top in own for one in _queries_in(top))
    for number, one in enumerate(queries):
        # Add an alias to the subquery, because columns of both sides may have the same name.
        one.set("alias", exp.TableAlias(this=exp.to_identifier(f"{_UNNAMED}{number}")))
    common = _common_tables(select)
    found = _tree(from_.this, select.args.get("joins") or (), common, write)
    assert isinstance(found, Joined)  # noqa: S101  # it has a join
    return found


def columns_of(
    joined: Joined | TableOfJoin,
    ask: Callable[[str], Sequence[tuple[str, str]]],
) -> ColumnsOfJoin:
    """Return the columns of a join.

    Args:
        joined: the join, or one of its sides.
        ask: a function that returns the names and types of a query's columns.

    Raises:
        InvalidInputError: a side does not have a compared column, or has it twice.
    """
    if isinstance(joined, TableOfJoin):
        columns = ask(joined.query)
        return ColumnsOfJoin(tuple(ColumnOfJoin(joined.alias, *one) for one in columns))
    left, right = (columns_of(one, ask) for one in (joined.left, joined.right))
    found = _joined(joined, left, right)
    if joined.alias is None:
        return found
    shown = tuple(replace(one, table=joined.alias) for one in found.shown)
    return replace(found, shown=shown, hidden=())


def _joined(joined: Joined, left: ColumnsOfJoin, right: ColumnsOfJoin) -> ColumnsOfJoin:
    """Return the columns that a join returns; the compared columns are first."""
    names = joined.names
    crossed = left.crossed | right.crossed
    if joined.natural is not None:
        if joined.kind in {"SEMI", "ANTI"}:
            raise InvalidInputError(f"a join cannot be NATURAL and {joined.kind}: name the columns")
        names = tuple(one.name for one in left.shown if _called(one.name, right.shown))
        crossed |= frozenset() if names else {joined.natural}
    is_full = joined.side == "FULL"
    pairs = [
        Pair(_only(name, left.shown), _only(name, right.shown), is_full, joined.place)
        for name in names or ()
    ]
    lefts, rights = [one.left for one in pairs], [one.right for one in pairs]
    others = [one for one in left.shown if one not in lefts]
    theirs = [one for one in right.shown if one not in rights]
    hidden = (*left.hidden, *right.hidden)
    compared, behind = lefts, rights
    if joined.kind in {"SEMI", "ANTI"}:
        theirs, hidden, behind = [], left.hidden, []
    elif joined.side == "RIGHT":
        compared, behind = rights, lefts
    elif is_full:
        compared, behind = [replace(one, table=None) for one in lefts], [*lefts, *rights]
    return ColumnsOfJoin(
        (*compared, *others, *theirs),
        (*behind, *hidden),
        (*left.pairs, *right.pairs, *pairs),
        crossed,
    )


def _called(name: str, columns: Sequence[ColumnOfJoin]) -> list[ColumnOfJoin]:
    return [one for one in columns if name_key(one.name) == name_key(name)]


def _only(name: str, columns: Sequence[ColumnOfJoin]) -> ColumnOfJoin:
    found = _called(name, columns)
    if len(found) != 1:
        many = "several columns" if found else "no column"
        raise InvalidInputError(
            f"cannot join by column {quote_name(name)}: one side has {many} of that name"
        )
    return found[0]


def _is_by_names(join: Expr) -> bool:
    return isinstance(join, exp.Join) and (join.method == "NATURAL" or bool(join.args.get("using")))


def _joins_in(node: Expr) -> Iterator[exp.Join]:
    """Yield the joins of a FROM clause, also those in brackets, but not those in subqueries."""
    if isinstance(node, exp.Join):
        yield node
    if isinstance(node, exp.From | exp.Join) or _is_in_brackets(node):
        yield from _joins_in(node.this)
    for join in node.args.get("joins") or ():
        yield from _joins_in(join)


def _queries_in(node: Expr) -> Iterator[Expr]:
    """Yield the subqueries without an alias in a FROM clause, including those in brackets."""
    if isinstance(node, exp.From | exp.Join) or _is_in_brackets(node):
        yield from _queries_in(node.this)
    elif isinstance(node, exp.Subquery) and not node.alias:
        yield node
    for join in node.args.get("joins") or ():
        yield from _queries_in(join)


def _is_in_brackets(node: Expr) -> bool:
    return isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery)


def _tree(
    first: Expr, joins: Sequence[exp.Join], common: exp.With | None, write: Callable[[Expr], str]
) -> Joined | TableOfJoin:
    found = _side(first, common, write)
    for join in joins:
        using = join.args.get("using")
        names = tuple(one.name for one in using) if using else None
        found = Joined(
            left=found,
            right=_side(join.this, common, write),
            kind=join.kind,
            side=join.side,
            names=names,
            alias=None,
            place=start_of(join),
            natural=join.meta.get(_NATURAL),
        )
    return found


def _side(
    node: Expr, common: exp.With | None, write: Callable[[Expr], str]
) -> Joined | TableOfJoin:
    """Return a side of a join: a table, a subquery, or a join in brackets."""
    joins = node.args.get("joins") or ()
    alone = node.copy()
    alone.set("joins", None)
    if not joins and _is_in_brackets(node):
        found = _side(node.this, common, write)
        if not node.alias:
            return found
        if node.args["alias"].args.get("columns"):
            problem = "with a join by names, a join in brackets cannot rename columns"
            raise SyntaxProblem(start_of(node), problem)
        return replace(found, alias=node.alias)
    if joins:
        return _tree(alone, joins, common, write)
    rows = exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(this=alone),
        limit=exp.Limit(expression=exp.Literal.number(0)),
    )
    if common is not None:
        rows.set("with_", common.copy())
    return TableOfJoin(node.alias_or_name or None, write(rows))


def _common_tables(select: Expr) -> exp.With | None:
    """Return the common table expressions that a query can use; outer ones are first."""
    found: list[Expr] = []
    is_recursive = False
    at: Expr | None = select
    while at is not None:
        with_ = at.args.get("with_")
        if with_ is not None:
            found = [*(one.copy() for one in with_.expressions), *found]
            is_recursive |= bool(with_.args.get("recursive"))
        at = at.parent
    return exp.With(expressions=found, recursive=is_recursive) if found else None
