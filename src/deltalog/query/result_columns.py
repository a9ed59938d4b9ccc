"""Names of result columns without an alias, as in Spark.

Spark writes the analyzed expression, such as `(NOT (a = 1))` for `a <> 1`, and names a cast column
by the column.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.expressions import Literal, nodes, parse_sql
from deltalog.expressions.render import type_name
from deltalog.expressions.trees import walk
from deltalog.query.lexer import TextOfParts, as_written
from deltalog.query.parse import span_of
from deltalog.query.query_trees import ROWS_FROM_ONE, children_of
from deltalog.schema.primitives import primitive_in_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlglot.expressions import Expr

    from deltalog.expressions import Expression

_VALUE: Final = "deltalog_value_"


def name_results(tree: Expr, source: TextOfParts) -> None:
    """Name the result columns without an alias as Spark does."""
    for select in list(tree.find_all(exp.Select)):
        for one in select.expressions:
            if isinstance(one, exp.Alias | exp.Aliases | exp.Star | exp.Column | exp.Dot):
                continue
            if isinstance(one, ROWS_FROM_ONE) and type(one) is not exp.Explode:
                continue
            name = "col" if type(one) is exp.Explode else result_name(one, source)
            alias = exp.Alias(this=one.copy(), alias=exp.to_identifier(name, quoted=True))
            one.replace(alias)


def result_name(node: Expr, source: TextOfParts) -> str:
    """Return the name of a result column: Spark's name, or the expression's SQL if that is unknown.

    Args:
        node: the expression as parsed.
        source: the text of the query.
    """
    if column := _cast_column(node, source):
        return column
    span = span_of(node)
    text = node.sql(dialect="spark") if span is None else source.text[span[0] : span[1]]
    return _known_name(node, source) or text


def _cast_column(node: Expr, source: TextOfParts) -> str:
    """Return the name of a column that is only cast, as in `CAST(t.id AS STRING)`; else ""."""
    node = node.unnest()
    span = span_of(node)
    written = "" if span is None else source.text[span[0] : span[1]]
    function, bracket, _ = written.partition("(")
    is_call = bool(bracket) and primitive_in_sql(function.strip()) is not None
    is_cast = isinstance(node, exp.Cast) and (is_call or _CAST.search(written) is not None)
    given = [node.this] if is_cast else [*children_of(node)] if is_call else []
    column = given[0].unnest() if len(given) == 1 else None
    if not isinstance(column, exp.Column) or column.args.get("db"):
        return ""
    select: Any = node.parent_select
    tables = [] if select is None else [select.args.get("from_"), *select.args.get("joins", ())]
    known = {name_key(one.this.alias_or_name) for one in tables if one is not None}
    # A qualifier that is not a table is a struct, for which Spark names the whole expression.
    return "" if column.table and name_key(column.table) not in known else column.name


def _known_name(node: Expr, source: TextOfParts) -> str | None:
    span = span_of(node)
    if span is None:
        return None
    values: dict[str, str] = {}
    text, copied = "", span[0]
    for one in _functions_over_rows(node):
        place, name = span_of(one), _name_over_rows(one, source)
        if place is None or name is None:
            return None
        key = f"{_VALUE}{len(values)}"
        values[key] = name
        text += f"{source.text[copied : place[0]]}`{key}`"
        copied = place[1]
    text += source.text[copied : span[1]]
    names = {one.name for one in node.find_all(exp.Placeholder) if isinstance(one.this, str)}
    try:
        # The values are not known yet. A string's name is the string.
        found = parse_sql(text, parameters={one: as_written(f":{one}") for one in names})
    except InvalidInputError:
        return None
    if any(isinstance(one, nodes.Collate) for one in walk(found)):
        return None  # in Spark, the name contains the collation of each constant
    return _name(found, values)


def _functions_over_rows(node: Expr) -> Iterator[Expr]:
    if isinstance(node, exp.AggFunc | exp.Window | exp.Filter | exp.Query | exp.RowNumber):
        yield node
        return
    for value in node.args.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.Expr):
                yield from _functions_over_rows(one)


def _name_over_rows(
    node: Expr, source: TextOfParts, around: tuple[int, int] | None = None
) -> str | None:
    """Return the name of an aggregate, a window function or a subquery; None if unknown.

    Args:
        node: the expression.
        source: the text of the query.
        around: the position of the expression with its FILTER or OVER.
    """
    span = span_of(node) or around
    if isinstance(node, exp.Query):
        return "scalarsubquery()"
    if isinstance(node, exp.Window):
        return _window_name(node, source)
    if isinstance(node, exp.Filter):
        counted = _name_over_rows(node.this, source, span)
        condition = _argument_name(node.expression.this, source)
        return counted and condition and f"{counted} FILTER (WHERE {condition})"
    if not isinstance(node, exp.AggFunc) or span is None:
        return None
    function = source.text[span[0] : span[1]].partition("(")[0].strip().lower()
    many = _aggregated(node)
    if isinstance(node, exp.Count) and any(isinstance(one, exp.Star) for one in many):
        return "count(1)"
    distinct = ""
    if len(many) == 1 and isinstance(many[0], exp.Distinct):
        distinct, many = "DISTINCT ", many[0].expressions
    names = [_argument_name(one, source) for one in many]
    if not names or None in names:
        return None
    return f"{_AGGREGATES.get(function, function)}({distinct}{', '.join(map(str, names))})"


def _aggregated(node: exp.AggFunc) -> list[Expr]:
    """Return the arguments of an aggregate function; an empty list if they are unknown."""
    value, separator = node.this, node.args.get("separator")
    given = [] if value is None else [value]
    if isinstance(node, exp.Count):
        return [*given, *node.expressions]
    if isinstance(node, exp.GroupConcat) and separator is not None:
        return [*given, separator]
    is_alone = (
        len([one for one in node.args.values() if one and isinstance(one, exp.Expr | list)]) == 1
    )
    return given if is_alone else []


def _window_name(node: exp.Window, source: TextOfParts) -> str | None:
    """Return the name of a window function, with all defaults as in Spark; None if unknown."""
    spec, order = node.args.get("spec"), node.args.get("order")
    called = _name_in_window(node.this, source, span_of(node))
    if node.args.get("alias") is not None or called is None:
        return None
    function, frame = called
    parts = []
    if given := node.args.get("partition_by"):
        parts.append(("PARTITION BY", [_argument_name(one, source) for one in given]))
    if order is not None:
        parts.append(("ORDER BY", [_ordered_name(one, source) for one in order.expressions]))
    if spec is not None:
        frame = _frame_name(spec)
    elif not frame:
        frame = _RUNNING.format("RANGE") if order is not None else _WHOLE
    if any(name is None for _, names in parts for name in names):
        return None
    shown = [f"{words} {', '.join(map(str, names))}" for words, names in parts]
    return f"{function} OVER ({' '.join([*shown, frame])})"


_RUNNING: Final = "{0} BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_WHOLE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_RANKS: Final = {"rank": "RANK", "dense_rank": "DENSE_RANK", "percent_rank": "PERCENT_RANK"}


def _name_in_window(
    node: Expr, source: TextOfParts, span: tuple[int, int] | None
) -> tuple[str, str] | None:
    """Return the name of a function before OVER, and its own frame; "" if it has none."""
    if span is None:
        return None
    function = source.text[span[0] : span[1]].partition("(")[0].strip().lower()
    if isinstance(node, exp.Lag | exp.Lead):
        offset, default = node.args.get("offset"), node.args.get("default")
        rows = "1" if offset is None else offset.name
        names = [_argument_name(node.this, source), rows, "NULL"]
        if default is not None:
            names[2] = _argument_name(default, source)
        if None in names or not rows.isdecimal():
            return None
        place = f"{rows if isinstance(node, exp.Lead) else f'-{rows}'} FOLLOWING"
        return f"{function}({', '.join(map(str, names))})", f"ROWS BETWEEN {place} AND {place}"
    if isinstance(node, exp.CumeDist):
        return f"{function}()", _RUNNING.format("RANGE")
    if isinstance(node, exp.RowNumber | exp.Rank | exp.DenseRank | exp.PercentRank):
        return f"{_RANKS.get(function, function)}()", _RUNNING.format("ROWS")
    found = _name_over_rows(node, source, span)
    frame = _RUNNING.format("ROWS") if isinstance(node, exp.Ntile) else ""
    return None if found is None else (found, frame)


def _ordered_name(node: Expr, source: TextOfParts) -> str | None:
    name = _argument_name(node.this, source)
    direction = "DESC" if node.args.get("desc") else "ASC"
    nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
    return name and f"{name} {direction} NULLS {nulls}"


def _frame_name(spec: Expr) -> str:
    bounds = []
    for bound in ("start", "end"):
        place, side = spec.args.get(bound), spec.args.get(f"{bound}_side")
        text = place.sql(dialect="spark") if isinstance(place, exp.Expr) else place or "CURRENT ROW"
        bounds.append(f"{text} {side}" if side else text)
    return f"{spec.args['kind']} BETWEEN {' AND '.join(bounds)}".upper()


def _argument_name(node: Expr, source: TextOfParts) -> str | None:
    return node.name if isinstance(node, exp.Column) else _known_name(node, source)


def _name(node: Expression, values: dict[str, str]) -> str:
    return _NAMES[type(node)](node, lambda one: _name(one, values), values)


def _column(node: nodes.Column, _: Any, values: dict[str, str]) -> str:
    return values.get(node.path[0], node.path[-1])


def _literal(node: Literal, *_: Any) -> str:
    value = node.value
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str() | int() | Decimal():
            return format(value, "f") if isinstance(value, Decimal) else str(value)
        case datetime():
            word = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{word} '{value:%Y-%m-%d %H:%M:%S}'"
        case date():
            return f"DATE '{value}'"
        case _:
            return str(value)


def _and(word: str) -> Callable[..., str]:
    def named(node: Any, inner: Callable[[Expression], str], _: Any) -> str:
        found = inner(node.operands[0])
        if between := _between(node, inner):
            return between
        for one in node.operands[1:]:
            found = f"({found} {word} {inner(one)})"
        return found

    return named


def _between(node: Any, inner: Callable[[Expression], str]) -> str:
    """Return the name of BETWEEN, whose two comparisons share their operand; "" for others."""
    match node.operands:
        case (nodes.Comparison(">=", operand, low), nodes.Comparison("<=", other, high)):
            if operand is other:
                return f"between({inner(operand)}, {inner(low)}, {inner(high)})"
    return ""


def _comparison(node: nodes.Comparison, inner: Callable[[Expression], str], _: Any) -> str:
    left, right = inner(node.left), inner(node.right)
    if node.operator == "<>":
        return f"(NOT ({left} = {right}))"
    return f"({left} {node.operator} {right})"


def _not(node: nodes.Not, inner: Callable[[Expression], str], _: Any) -> str:
    if isinstance(node.operand, nodes.IsNull):
        return f"({inner(node.operand.operand)} IS NOT NULL)"
    return f"(NOT {inner(node.operand)})"


def _in(node: nodes.In, inner: Callable[[Expression], str], _: Any) -> str:
    return f"({inner(node.operand)} IN ({', '.join(map(inner, node.options))}))"


def _cast(node: nodes.Cast, inner: Callable[[Expression], str], _: Any) -> str:
    word = "TRY_CAST" if node.is_try else "CAST"
    return f"{word}({inner(node.operand)} AS {type_name(node.to)})"


def _case(node: nodes.Case, inner: Callable[[Expression], str], _: Any) -> str:
    parts = [f"WHEN {inner(when)} THEN {inner(then)}" for when, then in node.branches]
    if node.otherwise is not None:
        parts.append(f"ELSE {inner(node.otherwise)}")
    return f"CASE {' '.join(parts)} END"


def _like(node: nodes.Like, inner: Callable[[Expression], str], _: Any) -> str:
    operand, pattern = inner(node.operand), inner(node.pattern)
    if node.ignore_case:
        return f"ilike({operand}, {pattern})"
    escape = "" if node.escape == "\\" else f" ESCAPE '{node.escape}'"
    return f"{operand} LIKE {pattern}{escape}"


# The names that Spark gives to functions in names of columns.
_CAST: Final = re.compile(r"(?i)\A(?:try_)?cast\s*\(|::")
_FORMS: Final = {
    ("isnull", 1): "({0} IS NULL)",
    ("isnotnull", 1): "({0} IS NOT NULL)",
    ("negative", 1): "(- {0})",
    ("[]", 2): "{0}[{1}]",
    ("~", 1): "~{0}",
    ("log", 1): "LOG(E(), {0})",
    **{(operator, 2): f"({{0}} {operator} {{1}})" for operator in ("|", "&", "^", "div")},
}
"""Function and number of arguments → the name of its call."""
_AGGREGATES: Final = {"array_agg": "collect_list"}
_UPPER: Final = frozenset(
    {"acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "degrees", "e",
     "exp", "expm1", "hypot", "log10", "log1p", "log2", "pi", "power", "radians", "regexp_like",
     "signum", "sinh", "sqrt", "tanh"}
)  # fmt: skip
_RENAMED: Final = {
    ("ceil", 1): "CEIL",
    ("floor", 1): "FLOOR",
    ("log", 2): "LOG",
    ("curdate", 0): "current_date",
    ("dateadd", 2): "date_add",
    ("dateadd", 3): "timestampadd",
    ("datediff", 3): "timestampdiff",
}
"""Function and number of arguments → the function that Spark calls instead."""
_DEFAULTS: Final = {
    **dict.fromkeys((("round", 1), ("bround", 1)), "0"),
    **dict.fromkeys((("substring", 2), ("substr", 2)), "2147483647"),
    **dict.fromkeys((("lpad", 2), ("rpad", 2)), " "),
    **dict.fromkeys((("sort_array", 1), ("months_between", 2)), "true"),
    **dict.fromkeys((("regexp_replace", 3), ("regexp_extract", 2), ("locate", 2)), "1"),
    ("split", 2): "-1",
    ("replace", 2): "",
    **dict.fromkeys((("unix_timestamp", 1), ("from_unixtime", 1)), "yyyy-MM-dd HH:mm:ss"),
}
"""Function and number of arguments → the argument that Spark adds."""


def _call(node: nodes.Call, inner: Callable[[Expression], str], _: Any) -> str:
    if node.function == "if":
        return f"(IF({', '.join(map(inner, node.arguments))}))"
    if node.function == "rlike":
        return f"RLIKE({', '.join(map(inner, node.arguments))})"
    given = [*map(inner, node.arguments)]
    if node.function == "interval":
        pairs = zip(given[::2], given[1::2], strict=True)
        return " ".join(["INTERVAL", *(f"'{amount}' {unit}" for amount, unit in pairs)])
    if form := _FORMS.get((node.function, len(given))):
        return form.format(*given)
    if (defaults := _DEFAULTS.get((node.function, len(given)))) is not None:
        given += [defaults]
    function = _RENAMED.get((node.function, len(given)), node.function)
    return f"{function.upper() if function in _UPPER else function}({', '.join(given)})"


def _variable(*_: Any) -> str:
    return "namedlambdavariable()"


_NAMES: Final[dict[type[Expression], Callable[..., str]]] = {
    nodes.Column: _column,
    nodes.Literal: _literal,
    nodes.Comparison: _comparison,
    nodes.And: _and("AND"),
    nodes.Or: _and("OR"),
    nodes.Not: _not,
    nodes.IsNull: lambda node, inner, _: f"({inner(node.operand)} IS NULL)",
    nodes.In: _in,
    nodes.Like: _like,
    nodes.Arithmetic: lambda node, inner, _: (
        f"({inner(node.left)} {node.operator} {inner(node.right)})"
    ),
    nodes.Cast: _cast,
    nodes.Case: _case,
    nodes.Call: _call,
    nodes.Lambda: lambda node, inner, _: (
        f"lambdafunction({', '.join([inner(node.body), *map(_variable, node.parameters)])})"
    ),
    nodes.Variable: _variable,
}
