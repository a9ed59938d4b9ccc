"""Classify the nodes of a query's tree, such as expressions over one row and their columns.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from sqlglot import exp

from deltalog._util.escaping import name_key
from deltalog.errors import DeltaError
from deltalog.expressions import evaluate, parse_sql, resolve
from deltalog.query.lexer import SyntaxProblem
from deltalog.query.parse import note_span, span_of, start_of
from deltalog.schema.primitives.numbers import MAX_DIGITS
from deltalog.schema.types import StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlglot.expressions import Expr

# Nodes that structure a query or combine conditions. They are not values, so their children are
# visited instead.
_STRUCTURE: Final = (
    exp.Select, exp.SetOperation, exp.Subquery, exp.From, exp.Join, exp.Where, exp.Group,
    exp.Having, exp.Qualify, exp.Order, exp.Ordered, exp.Sort, exp.With, exp.CTE, exp.Values,
    exp.Alias, exp.Aliases, exp.Lateral, exp.Cube, exp.Rollup, exp.GroupingSets, exp.Distinct,
    exp.Table, exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.And,
    exp.Or, exp.Paren, exp.Explode, exp.Posexplode, exp.Inline, exp.Unnest, exp.Exists, exp.All,
)  # fmt: skip
# Nodes in which brackets enclose several expressions, instead of a row of values.
_TUPLES: Final = (exp.Values, exp.Group, exp.Cube, exp.Rollup, exp.GroupingSets, exp.In)
_SIMPLE: Final = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE,
    exp.NullSafeEQ, exp.In, exp.Is, exp.Like, exp.Between, exp.Column, exp.Identifier, exp.Literal,
    exp.Null, exp.Boolean, exp.Placeholder,
)  # fmt: skip
ROWS_FROM_ONE: Final = (exp.Explode, exp.Posexplode, exp.Inline, exp.Unnest, exp.Stack)
_MAX_LONG: Final = 2**63 - 1
_WHOLE: Final = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_OWN_FUNCTIONS: Final = frozenset({"unnest", "range", "generate_series", "map_entries"})
_GROUP: Final = "deltalog_group"
_SECRET: Final = uuid4().hex
WRITTEN: Final = "deltalog_written"
"""The key in the `meta` of a node that deltalog has added, so that the query's text lacks it."""


def mark_named(word: str) -> str:
    """Return a prefix for generated names, with random characters that no query contains."""
    return f"deltalog_{word}_{_SECRET}_"


def replaced(node: Expr, by: Expr) -> Expr:
    """Replace a node by another node, and return that node."""
    if node is by:
        return by
    if node.parent is None:
        return by
    node.replace(by)
    return by


def core_of(node: Expr) -> Expr:
    """Return the function inside OVER, FILTER or IGNORE NULLS; otherwise the node itself."""
    kinds = exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls
    while isinstance(node, kinds):
        node = node.this
    return node


def with_function(node: Expr, kind: Callable[..., Expr]) -> Expr:
    """Return a copy of a node that calls another function with the same window and filter.

    Args:
        node: the node.
        kind: returns the call for the arguments `this` and `expression`.
    """
    copy = node.copy()
    core = core_of(copy)
    other = kind(**{name: core.args.get(name) for name in ("this", "expression")})
    return other if core is copy else (replaced(core, other), copy)[1]


def with_positions(tree: Expr) -> Expr:
    """Return a tree from which SQL is generated: `posexplode` counts by integers, as in Spark."""
    if tree.find(exp.Posexplode) is None:
        return tree
    found = tree.copy()
    for node in list(found.find_all(exp.Posexplode)):
        above = node.parent
        one, names = (above, above.expressions) if isinstance(above, exp.Aliases) else (node, [])
        query = one.parent
        if not isinstance(query, exp.Select) or len(names) not in {0, 2}:
            continue
        number = exp.Anonymous(
            this="generate_subscripts", expressions=[node.this.copy(), exp.Literal.number(1)]
        )
        position = exp.cast(number - exp.Literal.number(1), exp.DType.INT)
        values = (position, exp.Anonymous(this="unnest", expressions=[node.this.copy()]))
        pair = [
            exp.Alias(this=value, alias=name)
            for value, name in zip(
                values, names or map(exp.to_identifier, ("pos", "col")), strict=True
            )
        ]
        listed = [pair if other is one else [other] for other in query.expressions]
        query.set("expressions", [other for many in listed for other in many])
    return found


def parts_around(node: Expr, core: Expr) -> Iterator[Expr]:
    """Yield the parts around an aggregate function: the filter and the window."""
    while node is not core:
        yield from (child for child in children_of(node) if child is not node.this)
        node = node.this


def children_of(node: Expr) -> Iterator[Expr]:
    """Return the children of a node."""
    for value in node.args.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.Expr):
                yield one


def simple_operands(node: Expr) -> list[Expr]:
    """Return the operands of nested ANDs and ORs in order; empty if an operand may fail."""
    if not isinstance(node, exp.And | exp.Or) or has_other(node) or _is_alternative(node):
        return []
    found: list[Expr] = []
    waiting: list[Expr] = [node]
    # Compute this only once. In a long chain, each condition contains all earlier conditions.
    has_safe = any(map(is_safe, node.walk()))
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.And | exp.Or) and not (has_safe and _is_alternative(one)):
            waiting += [one.expression, one.this]
        else:
            found.append(one)
    # DuckDB accepts a constant of any type as a condition. So deltalog must check its type.
    return [] if any(isinstance(one, exp.Literal) for one in found) else found


def has_other(node: Expr) -> bool:
    """Return whether a condition contains more than comparisons of columns and constants."""
    return any(
        not isinstance(one, _SIMPLE) and not is_safe(one) for one in node.walk(prune=is_safe)
    )


def _is_alternative(node: Expr) -> bool:
    """Return whether a node is an OR with computed constants, which is computed as one part."""
    return isinstance(node, exp.Or) and any(map(is_safe, node.walk()))


def may_fail(node: Expr) -> bool:
    """Return whether a condition may fail, so that its operands must be evaluated in order.

    The condition must not contain a query.
    """
    has_span = span_of(node) is not None
    is_one = has_other(node) or _is_alternative(node)
    return has_span and node.find(exp.Query, exp.Star) is None and is_one


# Nodes whose values are neither structs, arrays nor maps, unless one of their operands is.
_MAKES_NO_NESTED: Final = (
    exp.Connector, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Exists, exp.Count, exp.CountIf,
    exp.Sum, exp.Avg, exp.Min, exp.Max, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.Lag,
    exp.Lead, exp.AnyValue, exp.RowNumber, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
    exp.VariancePop, exp.Abs, exp.Round, exp.Upper, exp.Lower, exp.Length, exp.Substring, exp.Trim,
    exp.Concat, exp.Extract, exp.Year, exp.Month, exp.Day,
)  # fmt: skip


def may_make_nested(node: Expr) -> bool:
    """Return whether a node may make a struct, an array or a map of other values.

    True for all functions that are not known to make none.
    """
    if isinstance(node, exp.Cast):
        return node.to.this in exp.DataType.NESTED_TYPES
    if isinstance(node, exp.Tuple):  # a row of VALUES is no value itself
        return not isinstance(node.parent, exp.Values)
    return isinstance(node, exp.Func) and not isinstance(node, _MAKES_NO_NESTED)


def is_random(node: Expr) -> bool:
    """Return whether a function is random in each row. DuckDB may compute such a function."""
    return isinstance(node, exp.Rand | exp.Uuid) and not list(children_of(node))


def is_large(node: Expr) -> bool:
    """Return whether a constant is a number that does not fit into 64 bits."""
    is_number = isinstance(node, exp.Literal) and not node.is_string
    return is_number and float(node.name) > _MAX_LONG and span_of(node) is not None


def is_of_other_type(node: Expr) -> bool:
    """Return whether DuckDB types a constant differently; it counts the first 0 of 0.01."""
    if not isinstance(node, exp.Literal) or node.is_string or span_of(node) is None:
        return False
    whole, point, fraction = node.name.partition(".")
    is_decimal = bool(point) and (whole + fraction).isdecimal()
    return is_large(node) or (
        is_decimal and (whole.startswith("0") or len(whole + fraction) > MAX_DIGITS)
    )


def is_whole_constant(node: Any) -> bool:
    """Return whether an expression consists only of whole-number constants, so it is never NULL."""
    if isinstance(node, exp.Literal):
        return not node.is_string and node.name.isdecimal() and not is_large(node)
    if isinstance(node, exp.Paren | exp.Neg):
        return is_whole_constant(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return is_whole_constant(node.left) and is_whole_constant(node.right)
    is_cast = type(node) is exp.Cast and node.to.is_type(*_WHOLE)
    return is_cast and is_whole_constant(node.this)


def is_query(node: Any) -> bool:
    """Return whether a node is a query."""
    return isinstance(node, exp.Query)


def has_query(node: Expr) -> bool:
    """Return whether a condition is EXISTS, or IN with a query, or the negation of one of them."""
    if isinstance(node, exp.Not) and span_of(node.this) is None:
        return has_query(node.this)
    return isinstance(node, exp.Exists | exp.In) and is_structure(node)


def is_recursive(node: exp.SetOperation) -> bool:
    """Return whether a set operation is recursive, so that its first side determines the types."""
    recursive = node.parent.parent if isinstance(node.parent, exp.CTE) else None
    return isinstance(recursive, exp.With) and bool(recursive.args.get("recursive"))


def state_groups(select: exp.Select) -> None:
    """Replace ALL in GROUP BY by the expressions that have no aggregate function.

    DuckDB would also group by the columns of HAVING, and not group rows by constants only.
    """
    group = select.args.get("group")
    values = [one.unalias() for one in select.expressions]
    if group is None or not group.args.get("all"):
        return
    if any(map(_is_of_unknown_columns, values)):
        _check_having(select)
        return
    plain = [one for one in values if not any(map(_aggregates, one.walk()))]
    found = [one.copy() for one in plain if one.find(exp.Column) is not None]
    if not found and len(plain) < len(values):
        group.pop()  # one group of all rows, also if there are none
        return
    group.set("all", None)
    group.set("expressions", found or [exp.true()])


def _is_of_unknown_columns(value: Expr) -> bool:
    """Whether a value consists of all columns, or depends on other rows."""
    is_star = isinstance(value, exp.Star) or isinstance(value.this, exp.Star)
    return (is_star and not isinstance(value, exp.Count)) or (
        value.find(exp.Window, exp.UDTF) is not None
    )


def _check_having(select: exp.Select) -> None:
    """Refuse a column of HAVING that stars may not select, by which DuckDB would also group."""
    stars = [one for one in select.expressions if one.is_star]
    is_one = not select.args.get("joins")
    if any(
        (isinstance(one, exp.Star) or is_one)
        and not any(part.args.get("except_") for part in one.find_all(exp.Star))
        for one in stars
    ):
        return  # all columns
    tables = {name_key(one.table) for one in stars if isinstance(one, exp.Column)}
    named = {name_key(one.alias_or_name) for one in select.expressions if not one.is_star}
    having = select.args.get("having")
    for column in having.find_all(exp.Column) if having is not None else ():
        above = column.find_ancestor(exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Query)
        is_known = name_key(column.name) in named or name_key(column.table) in tables
        if above is select and not is_known:
            raise SyntaxProblem(
                start_of(column),
                f"HAVING uses {column.name!r}, which * may not select; with GROUP BY ALL, name the "
                "columns in SELECT",
            )


def _aggregates(node: Expr) -> bool:
    is_named = isinstance(node, exp.Anonymous) and node.name.lower() in BY_NAME
    return is_named or isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup)


def note_groups(select: exp.Select) -> None:
    """Mark the grouping expressions of a query. They have one value per group."""
    group = select.args.get("group")
    if group is None:
        return
    _unqualify(select)
    wanted = {
        one.sql(comments=False).lower()
        for one in _groups(group, select.expressions)
        if not isinstance(one, exp.Column | exp.Literal)
    }
    if not wanted:
        return
    for name in _GROUPED:
        value = None if name == "group" else select.args.get(name)
        for top in value if isinstance(value, list) else [value]:
            for node in top.walk() if top is not None else ():
                if isinstance(node, exp.Identifier):
                    continue
                if node.sql(comments=False).lower() in wanted:
                    node.meta[_GROUP] = note_span(node)


_GROUPED: Final = ("expressions", "group", "having", "order", "qualify")
"""The clauses that may use grouping expressions."""


def _unqualify(select: exp.Select) -> None:
    """Let `a.b + 1` and `b + 1` be equal in a query of one table, if it has both spellings."""
    source = select.args.get("from_")
    if source is None or any(select.args.get(name) for name in ("joins", "laterals")):
        return
    columns = [
        node
        for clause in children_of(select)
        if clause.arg_key in _GROUPED
        for node in clause.walk(prune=is_query)
        if isinstance(node, exp.Column)
    ]
    alone = {name_key(one.name) for one in columns if not one.table}
    alias = name_key(source.this.alias_or_name)
    for one in columns:
        is_operand = not isinstance(one.parent, exp.Select | exp.Alias | exp.Group | exp.Ordered)
        is_own = name_key(one.table) == alias and not one.args.get("db")
        if is_operand and is_own and name_key(one.name) in alone:
            one.set("table", None)


def _groups(group: exp.Group, selected: Sequence[Expr]) -> Iterator[Expr]:
    """Yield the grouping expressions; an alias or a position means an expression of SELECT."""
    named = {name_key(one.alias): one.this for one in selected if isinstance(one, exp.Alias)}
    waiting = [*children_of(group)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.Cube | exp.Rollup | exp.GroupingSets | exp.Tuple | exp.Paren):
            waiting += children_of(one)
        elif isinstance(one, exp.Column) and not one.table:
            yield named.get(name_key(one.name), one)
        elif isinstance(one, exp.Literal) and one.is_int and 0 < int(one.name) <= len(selected):
            yield selected[int(one.name) - 1].unalias()
        else:
            yield one


_BOOLEANS: Final = (
    exp.Predicate, exp.Connector, exp.Not, exp.Boolean, exp.Literal, exp.Null, exp.Placeholder,
)  # fmt: skip


def is_structure(node: Expr) -> bool:
    """Return whether a node structures a query or combines conditions, and so is not a value."""
    if isinstance(node, exp.And | exp.Or):
        # DuckDB accepts a constant of any type as a condition. So deltalog must check its type.
        return not isinstance(node.left, exp.Literal) and not isinstance(node.right, exp.Literal)
    if isinstance(node, exp.Exists):
        return is_query(node.this)
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    if isinstance(node, exp.Not):
        return span_of(node.this) is not None or is_structure(node.this)
    if isinstance(node, exp.Tuple):
        return isinstance(node.parent, _TUPLES)
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _OWN_FUNCTIONS and span_of(node) is None
    if isinstance(node, exp.Rand | exp.Uuid):
        return is_random(node)
    return isinstance(node, _STRUCTURE)


def is_tested(node: Expr) -> bool:
    """Return whether a node is a condition whose form does not tell that it is a boolean."""
    parent = node.parent
    is_operand = isinstance(parent, exp.And | exp.Or | exp.Not | exp.Where) or (
        isinstance(parent, exp.Join) and parent.args.get("on") is node
    )
    return is_operand and span_of(node) is not None and not isinstance(node.unnest(), _BOOLEANS)


def is_input(node: Expr) -> bool:
    """Return whether a node is a column or a field of a column."""
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        node = node.this
    return isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)


def inputs_of(node: Expr, hidden: frozenset[str] = frozenset()) -> Iterator[Expr]:
    """Yield the columns and aggregates in an expression.

    Args:
        node: the expression.
        hidden: the names of the parameters of the lambda functions around the expression.
    """
    waiting = [(child, _hidden(node, hidden)) for child in reversed([*children_of(node)])]
    while waiting:
        child, hidden = waiting.pop()
        if isinstance(child, exp.Column) and name_key(child.parts[0].name) in hidden:
            continue
        is_over_rows = isinstance(core_of(child), exp.AggFunc | exp.RowNumber) or is_query(child)
        asks_query = isinstance(child, exp.Exists | exp.In | exp.Not) and has_query(child)
        is_named = isinstance(child, exp.Anonymous) and child.name.lower() in BY_NAME
        is_value = is_over_rows or asks_query or is_named or is_group(child)
        if is_value or is_input(child) or is_random(child):
            yield child
        elif isinstance(child, ROWS_FROM_ONE):
            raise SyntaxProblem(
                start_of(child), "a function that returns rows cannot be nested: use LATERAL VIEW"
            )
        else:
            inside = _hidden(child, hidden)
            waiting += [(one, inside) for one in reversed([*children_of(child)])]


def is_group(node: Expr) -> bool:
    """Return whether a node is a grouping expression; see `note_groups`."""
    return bool(node.meta.get(_GROUP))


def _hidden(node: Expr, hidden: frozenset[str]) -> frozenset[str]:
    """Return `hidden`, extended by the node's own parameters if the node is a lambda."""
    if not isinstance(node, exp.Lambda):
        return hidden
    return hidden | {name_key(one.name) for one in node.expressions}


# --- aggregate and window functions, which DuckDB computes


class ResultType(StrEnum):
    """How Spark determines the type of a function's result, if DuckDB determines it differently."""

    SAME = "same"
    INTEGER = "INTEGER"
    LIST = "list"
    """A list without NULL. It is empty if there is no value."""
    COUNT = "count"
    """A 64-bit integer. It is 0 if there is no value."""
    ORDERED = "ordered"
    """The type of the argument. DuckDB sorts NULL inside structs and arrays differently from
    Spark."""
    BY = "by"
    """The type of the second argument. DuckDB sorts NULL in structs and arrays differently."""
    TEXT = "text"
    """A string. The argument may have any type that DuckDB converts to strings as Spark does."""
    KEY = "key"
    """An expression of ORDER BY. DuckDB sorts NULL inside structs and arrays differently."""
    SUM = "sum"
    """The type of a sum, which depends on the type of the argument."""
    AVERAGE = "average"
    """The type of an average, which depends on the type of the argument."""
    DOUBLE = "of doubles"
    """A double. The argument must be a number, or a string that is cast to a double."""
    POPULATION = "population"
    """As `DOUBLE`. DuckDB returns 0 for one value, also if it is NaN or infinite."""
    CORRELATION = "correlation"
    """As `DOUBLE`. DuckDB returns NaN instead of NULL or an error if a variance is 0."""
    REGRESSION = "regression"
    """A double, the type of an average, or a 64-bit integer: see `regressions`."""
    SKEWNESS = "skewness"
    """As `DOUBLE`. DuckDB computes it for a sample, and loses digits if the values are large."""
    KURTOSIS = "kurtosis"
    """As `SKEWNESS`."""
    TRUTH = "truth"
    """A boolean, as the argument must be."""
    WHOLE = "whole"
    """The type of the argument, which must be an integer."""


OF_DOUBLES: Final = frozenset(
    {
        ResultType.DOUBLE,
        ResultType.POPULATION,
        ResultType.CORRELATION,
        ResultType.REGRESSION,
        ResultType.SKEWNESS,
        ResultType.KURTOSIS,
    }
)
ASKED: Final = frozenset(
    {
        ResultType.ORDERED,
        ResultType.BY,
        ResultType.TEXT,
        ResultType.KEY,
        ResultType.SUM,
        ResultType.AVERAGE,
        *OF_DOUBLES,
        ResultType.TRUTH,
        ResultType.WHOLE,
    }
)
"""The kinds for which the type of the argument must be known."""


def _with_nulls(name: str) -> Callable[[Expr], Expr]:
    """Return a function that builds a call of a DuckDB function that includes NULL values."""

    def written(node: Expr) -> Expr:
        return exp.Anonymous(this=name, expressions=[node.this, node.expression])

    return written


def _quantile(node: Expr) -> Expr:
    if node.args.get("quantile") is None:
        raise ValueError("percentile expects 2 arguments: percentile(value, 0.5)")
    return exp.Anonymous(this="quantile_cont", expressions=[node.this, node.args["quantile"]])


def _same(node: Expr) -> Expr:
    return node


def _concatenated(node: Expr) -> Expr:
    """Join strings without a delimiter, if none or NULL is given; DuckDB uses a comma."""
    if isinstance(node.args.get("separator"), exp.Null | None):
        node.set("separator", exp.Literal.string(""))
    return node


def of_pairs(kind: type[Expr], *, is_second: bool) -> Callable[..., Expr]:
    """Return a function that builds a call for one of two arguments, where neither is NULL.

    Args:
        kind: the class of the call.
        is_second: whether the call is for the second argument.
    """

    def made(this: Expr, expression: Expr) -> Expr:
        value, other = (expression, this) if is_second else (this, expression)
        # Spark casts both arguments, also the one that is only compared with NULL.
        known = exp.Not(
            this=exp.Is(this=exp.cast(other.copy(), exp.DType.DOUBLE), expression=exp.Null())
        )
        return kind(this=exp.Case(ifs=[exp.If(this=known, true=value.copy())]))

    return made


def _counted(node: Expr) -> Expr:
    """Return COUNT of several arguments, which counts the rows that have none of them NULL."""
    values = [node.this, *node.expressions]
    if len(values) < 2:
        return node
    are_known = [exp.Not(this=exp.Is(this=one, expression=exp.Null())) for one in values]
    case = exp.Case(ifs=[exp.If(this=exp.and_(*are_known), true=exp.Literal.number(1))])
    return exp.Count(this=case)


_OVER_ROWS: Final = {exp.First: exp.FirstValue, exp.Last: exp.LastValue}
_OF_GROUPS: Final = {value: key for key, value in _OVER_ROWS.items()}


def _of_rows(node: Expr) -> Expr:
    """Return FIRST or LAST for groups, and FIRST_VALUE or LAST_VALUE for windows.

    Spark uses both names for both, DuckDB does not.
    """
    inner, around = node, node.parent
    while isinstance(around, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        inner, around = around, around.parent
    is_over_rows = isinstance(around, exp.Window) and around.this is inner
    kinds: Any = _OVER_ROWS if is_over_rows else _OF_GROUPS
    kind = kinds.get(type(node))
    return node if kind is None else kind(this=node.this)


def with_filter(node: Expr) -> Expr:
    """Return an aggregate function with a filter instead of IGNORE NULLS or RESPECT NULLS.

    DuckDB has these clauses only in windows, whose nodes are returned as they are.
    """
    core, around = core_of(node), node
    conditions: list[Expr] = []
    while around is not core:
        if isinstance(around, exp.Window | exp.WithinGroup):
            return node
        if isinstance(around, exp.IgnoreNulls):
            is_null = exp.Is(this=core.this.copy(), expression=exp.Null())
            conditions.append(exp.Not(this=is_null))
        elif isinstance(around, exp.Filter):
            conditions.append(around.expression.this)
        around = around.this
    if not conditions:
        return core
    return exp.Filter(this=core, expression=exp.Where(this=exp.and_(*conditions)))


_Row = tuple[ResultType, "Callable[[Expr], Expr]"]
AGGREGATES: Final[dict[type[Expr], _Row]] = {
    exp.Count: (ResultType.SAME, _counted),
    exp.CountIf: (ResultType.COUNT, _same),
    exp.Sum: (ResultType.SUM, _same),
    exp.Avg: (ResultType.AVERAGE, _same),
    exp.Min: (ResultType.ORDERED, _same),
    exp.Max: (ResultType.ORDERED, _same),
    exp.First: (ResultType.SAME, _of_rows),
    exp.Last: (ResultType.SAME, _of_rows),
    exp.FirstValue: (ResultType.SAME, _of_rows),
    exp.LastValue: (ResultType.SAME, _of_rows),
    exp.NthValue: (ResultType.SAME, _same),
    exp.AnyValue: (ResultType.SAME, _same),
    exp.ArgMax: (ResultType.BY, _with_nulls("arg_max_null")),
    exp.ArgMin: (ResultType.BY, _with_nulls("arg_min_null")),
    exp.LogicalAnd: (ResultType.TRUTH, _same),
    exp.LogicalOr: (ResultType.TRUTH, _same),
    exp.BitwiseAndAgg: (ResultType.WHOLE, _same),
    exp.BitwiseOrAgg: (ResultType.WHOLE, _same),
    exp.BitwiseXorAgg: (ResultType.WHOLE, _same),
    exp.Stddev: (ResultType.DOUBLE, _same),
    exp.StddevPop: (ResultType.POPULATION, _same),
    exp.StddevSamp: (ResultType.DOUBLE, _same),
    exp.Variance: (ResultType.DOUBLE, _same),
    exp.VariancePop: (ResultType.POPULATION, _same),
    exp.Corr: (ResultType.CORRELATION, _same),
    exp.CovarPop: (ResultType.DOUBLE, _same),
    exp.CovarSamp: (ResultType.DOUBLE, _same),
    exp.RegrCount: (ResultType.REGRESSION, _same),
    exp.RegrAvgx: (ResultType.REGRESSION, _same),
    exp.RegrAvgy: (ResultType.REGRESSION, _same),
    exp.RegrSxx: (ResultType.REGRESSION, _same),
    exp.RegrSyy: (ResultType.REGRESSION, _same),
    exp.RegrSxy: (ResultType.REGRESSION, _same),
    exp.RegrSlope: (ResultType.REGRESSION, _same),
    exp.RegrIntercept: (ResultType.REGRESSION, _same),
    exp.RegrR2: (ResultType.REGRESSION, _same),
    exp.Skewness: (ResultType.SKEWNESS, _same),
    exp.Kurtosis: (ResultType.KURTOSIS, _same),
    exp.Mode: (ResultType.SAME, _same),
    exp.Median: (ResultType.DOUBLE, _same),
    exp.Quantile: (ResultType.DOUBLE, _quantile),
    exp.ApproxDistinct: (ResultType.SAME, _same),
    exp.ArrayAgg: (ResultType.LIST, _same),
    exp.ArrayUniqueAgg: (ResultType.LIST, _same),
    exp.GroupConcat: (ResultType.TEXT, _concatenated),
    exp.RowNumber: (ResultType.INTEGER, _same),
    exp.Rank: (ResultType.INTEGER, _same),
    exp.DenseRank: (ResultType.INTEGER, _same),
    exp.Ntile: (ResultType.INTEGER, _same),
    exp.PercentRank: (ResultType.SAME, _same),
    exp.CumeDist: (ResultType.SAME, _same),
    exp.Lag: (ResultType.SAME, _same),
    exp.Lead: (ResultType.SAME, _same),
    exp.Grouping: (ResultType.SAME, _same),
}
"""A class of sqlglot → the result type, and a function that adapts the node to DuckDB."""

# The names of functions for which sqlglot's parser creates no class → the class to use.
BY_NAME: Final[dict[str, type[Expr]]] = {
    "every": exp.LogicalAnd,
    "mean": exp.Avg,
    "std": exp.Stddev,
}


# --- constant parts of a query, such as `68 + 30` or `CAST('2000-02-01' AS DATE)`


_SAFE: Final = "deltalog_safe"
_MAY_FAIL: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Cast)
_CONSTANT: Final = (
    *_MAY_FAIL, exp.Paren, exp.Literal, exp.Null, exp.Boolean, exp.DataType, exp.DataTypeParam,
    exp.Interval, exp.Var,
)  # fmt: skip
_MOST: Final = 100
"""The maximum number of constants whose values are recorded. With more, no value is recorded."""
_ONE_ROW: Final = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["one"])


def note_safe_constants(tree: Expr, text: str) -> None:
    """Record the constant parts of a query, and their values.

    Args:
        tree: the tree of the query.
        text: the text of the query.

    Cost: each constant is parsed and computed. If there are too many constants, none is recorded.
    """
    found = [
        node
        for node in tree.find_all(*_MAY_FAIL)
        if not isinstance(node.parent, _MAY_FAIL)
        and all(isinstance(one, _CONSTANT) for one in node.walk())
    ]
    if len(found) > _MOST:
        return
    for node in found:
        span = span_of(node)
        if span is not None and _has_value(text[span[0] : span[1]]):
            node.meta[_SAFE] = True


def is_safe(node: Expr | None) -> bool:
    """Return whether a node is a constant whose value is recorded, or is inside such a constant."""
    return node is not None and bool(node.meta.get(_SAFE))


def _has_value(text: str) -> bool:
    try:
        evaluate(resolve(parse_sql(text), StructType(())), _ONE_ROW)
    except DeltaError:
        return False
    return True


def name_of_function(node: Expr) -> str:
    """Return the name of a function in a query, in lower case."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    spelled: Any = node.meta.get("name")
    return str(spelled or getattr(node, "sql_name", lambda: type(node).__name__)()).lower()
