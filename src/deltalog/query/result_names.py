"""The names of a query's columns that have no alias, as Spark gives them.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from deltalog.errors import InvalidInputError
from deltalog.expressions import Literal, nodes, parse_sql
from deltalog.expressions.render import type_name
from deltalog.expressions.trees import walk
from deltalog.query.parse import span_of
from deltalog.query.query_trees import ROWS_FROM_ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlglot.expressions import Expr

    from deltalog.expressions import Expression
    from deltalog.query.lexer import TextOfParts

_VALUE: Final = "deltalog_value_"


def name_results(tree: Expr, source: TextOfParts) -> None:
    """Let the results of a query without an alias have the names that Spark gives them."""
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
    """Return the name of a column of a query: Spark's, or if that is not known, its text.

    Args:
        node: the expression, as it was read.
        source: the text.
    """
    span = span_of(node)
    text = node.sql(dialect="spark") if span is None else source.text[span[0] : span[1]]
    return _known_name(node, source) or text


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
        found = parse_sql(text, parameters=dict.fromkeys(names))
    except InvalidInputError:
        return None
    if any(isinstance(one, nodes.Collate) for one in walk(found)):
        return None  # Spark names the collation of each constant beside it, too
    return _name(found, values)


def name_of_function(node: Expr) -> str:
    """Return the name of a function in a query, in lower case."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    spelled: Any = node.meta.get("name")
    return str(spelled or getattr(node, "sql_name", lambda: type(node).__name__)()).lower()


def _functions_over_rows(node: Expr) -> Iterator[Expr]:
    if isinstance(node, exp.AggFunc | exp.Window | exp.Filter | exp.Query | exp.RowNumber):
        yield node
        return
    for value in node.args.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.Expr):
                yield from _functions_over_rows(one)


def _name_over_rows(node: Expr, source: TextOfParts) -> str | None:
    if isinstance(node, exp.Query):
        return "scalarsubquery()"
    if not isinstance(node, exp.AggFunc):
        return None
    span = span_of(node)
    if span is None:
        return None
    function = source.text[span[0] : span[1]].partition("(")[0].strip().lower()
    value: Any = node.this
    if isinstance(node, exp.Count):
        many = [*([] if value is None else [value]), *node.expressions]
        if any(isinstance(one, exp.Star) for one in many):
            return "count(1)"
    elif len([one for one in node.args.values() if one]) != 1:
        return None
    else:
        many = [value]
    distinct = ""
    if len(many) == 1 and isinstance(many[0], exp.Distinct):
        distinct, many = "DISTINCT ", many[0].expressions
    names = [_argument_name(one, source) for one in many]
    if None in names:
        return None
    return f"{function}({distinct}{', '.join(map(str, names))})"


def _argument_name(node: Expr, source: TextOfParts) -> str | None:
    return node.name if isinstance(node, exp.Column) else _known_name(node, source)


def _name(node: Expression, values: dict[str, str]) -> str:
    return _NAMES[type(node)](node, lambda one: _name(one, values), values)


Inner = "Callable[[Expression], str]"


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
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S}'"
        case date():
            return f"DATE '{value}'"
        case _:
            return str(value)


def _and(word: str) -> Callable[..., str]:
    def named(node: Any, inner: Callable[[Expression], str], _: Any) -> str:
        found = inner(node.operands[0])
        for one in node.operands[1:]:
            found = f"({found} {word} {inner(one)})"
        return found

    return named


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


def _call(node: nodes.Call, inner: Callable[[Expression], str], _: Any) -> str:
    if node.function == "negative":
        return f"(- {inner(node.arguments[0])})"
    if node.function == "[]":
        return f"{inner(node.arguments[0])}[{inner(node.arguments[1])}]"
    if node.function == "if":
        return f"(IF({', '.join(map(inner, node.arguments))}))"
    if node.function == "rlike":
        return f"RLIKE({', '.join(map(inner, node.arguments))})"
    if node.function in {"|", "&", "^", "div"}:
        return f"({inner(node.arguments[0])} {node.function} {inner(node.arguments[1])})"
    return f"{node.function}({', '.join(map(inner, node.arguments))})"


_NAMES: Final[dict[type[Expression], Callable[..., str]]] = {
    nodes.Column: _column,
    nodes.Literal: _literal,
    nodes.Comparison: _comparison,
    nodes.And: _and("AND"),
    nodes.Or: _and("OR"),
    nodes.Not: _not,
    nodes.IsNull: lambda node, inner, _: f"({inner(node.operand)} IS NULL)",
    nodes.In: _in,
    nodes.Like: lambda node, inner, _: f"{inner(node.operand)} LIKE {inner(node.pattern)}",
    nodes.Arithmetic: lambda node, inner, _: (
        f"({inner(node.left)} {node.operator} {inner(node.right)})"
    ),
    nodes.Cast: _cast,
    nodes.Case: _case,
    nodes.Call: _call,
    nodes.Lambda: lambda node, inner, _: (
        f"lambdafunction({inner(node.body)}, namedlambdavariable())"
    ),
    nodes.Variable: lambda *_: "namedlambdavariable()",
}
