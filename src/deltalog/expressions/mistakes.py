"""What to write instead of conditions that parse, but do not mean what their author wanted.

Other dialects and languages chain comparisons, join conditions by `&` and `|`, and repeat only the
value after OR. In Spark's SQL these conditions have other meanings, or values of the wrong type.

Protocol: none
"""

from __future__ import annotations

import re
from math import isnan
from typing import TYPE_CHECKING, Final

from deltalog._util.escaping import name_key
from deltalog.expressions import nodes
from deltalog.expressions.nodes import Call, Cast, Column, Literal
from deltalog.expressions.render import to_sql
from deltalog.schema.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructType,
)

if TYPE_CHECKING:
    from deltalog.expressions.nodes import Expression

JOINED: Final = "conditions are joined by AND and OR"
"""What to write instead of `&` and `|` between conditions."""
_ORDER: Final = frozenset({"<", "<=", ">", ">="})
_JOINERS: Final = frozenset({"&", "|", "^", "concat"})
_NUMBERS: Final = frozenset({BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE})
_TRUTHS: Final = frozenset({"true", "t", "yes", "y", "1", "false", "f", "no", "n", "0"})

_MISSING: Final = frozenset({"none", "nil", "undefined", "na", "nat"})


def hint_for_missing(name: str) -> str:
    """Return what to write instead of a name that other languages have for a missing value.

    Args:
        name: the name, which is no column.

    Returns:
        The hint; empty for other names.
    """
    text = "" if name in {"None", "NaT"} else f"; a string has quotes: {to_sql(Literal(name))}"
    match name_key(name):
        case "nan":
            return f"for NaN, write isnan(…){text}"
        case folded if folded in _MISSING:
            return f"for a missing value, write IS NULL{text}"
    return ""


_IN_ONE: Final = re.compile(r"(?i)\bIN\s*\(\s*\?\s*\)")


def advice_on_options(sql: str, num_marks: int) -> str:
    """Return how to pass several options of `IN (?)`; empty if the expression is not about them."""
    is_meant = num_marks == 1 and _IN_ONE.search(sql) is not None
    return "; the options of IN (?) are one list, as in parameters=[[1, 2]]" if is_meant else ""


def advice_on_comparison(node: nodes.Comparison, left: DataType, right: DataType) -> str:
    """Return what to write instead of a comparison of two types that cannot be compared."""
    sides = ((node.left, left, right), (node.right, right, left))
    for side, own, other in sides:
        if own == BOOLEAN and isinstance(side, nodes.Comparison):
            return _on_chain(node, side)
        if isinstance(own, StructType) and not isinstance(other, StructType):
            return f"compare a field of the struct, as in {_field_of(side, own, other)}"
        if isinstance(own, MapType):
            return "compare the value of a key, as in map_column['key'] = value"
    if any(isinstance(side, Literal) and _is_nan(side.value) for side, *_ in sides):
        return "NaN is a number; pass None for NULL"
    if {left, right} == {DATE, INTEGER} and _is_difference(node):
        return "write a date as DATE'2024-01-31'"
    if isinstance(left, ArrayType) is not isinstance(right, ArrayType):
        if isinstance(node.right, Literal) and isinstance(right, ArrayType):
            return "is_in(values), IN in SQL, compares with each of several values"
        return "array_contains(array, value) looks into an array"
    return "cast one of them"


def types_of_columns(*sides: tuple[Expression, DataType]) -> str:
    """Return the types of the columns of a comparison with a constant that does not fit."""
    columns = {to_sql(side): kind for side, kind in sides if isinstance(side, Column)}
    return "".join(f"; column {name} is {kind}" for name, kind in columns.items())


def advice_on_brackets(node: nodes.Comparison) -> str:
    """Return what to write instead of `(a == 1) & b == 2` in Python; empty for others."""
    for side in (node.left, node.right):
        if isinstance(side, nodes.Not):
            return "; in Python, put the comparison in brackets, as in ~(col('a') == 1)"
        if isinstance(side, nodes.And | nodes.Or):
            return (
                "; in Python, put comparisons in brackets, such as (col('a') > 1) & (col('b') < 4)"
            )
    return ""


def advice_on_strings(node: Expression) -> str:
    """Return what to write instead of a comparison of strings with numbers; empty for others."""
    if isinstance(node, nodes.Comparison):
        sides = [node.left, node.right]
    elif isinstance(node, nodes.In):
        sides = [node.operand, *node.options]
    else:
        return ""
    cast = next((one for one in sides if isinstance(one, Cast) and one.to in _NUMBERS), None)
    value = next((one for one in sides if isinstance(one, Literal)), None)
    if cast is None or value is None or not isinstance(cast.operand, Column):
        return ""
    name = to_sql(cast.operand)
    return (
        f"; {name} holds strings: compare it with a string in quotes, such as '{value.value}', or "
        f"use TRY_CAST({name} AS {to_sql(cast).rpartition(' AS ')[2]}"
    )


def advice_on_call(function: str) -> str:
    """Return what to write instead of a function whose arguments have the wrong types."""
    return f"; {JOINED}" if function in {"&", "|", "^"} else ""


def is_no_truth(node: Expression) -> bool:
    """Return whether a condition is a string that is neither true nor false, as in `OR 'b'`."""
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        return False
    return node.value.strip().lower() not in _TRUTHS


def advice_on_operand(node: Expression) -> str:
    """Return what to write instead of a constant beside AND or OR."""
    if not isinstance(node, Literal):
        return ""
    shown = to_sql(node)
    return f"; repeat the column before each value, as in x = {shown}, or write x IN (…, {shown})"


def _on_chain(node: nodes.Comparison, inner: nodes.Comparison) -> str:
    """Return the advice on a comparison whose side is the comparison `inner`."""
    joiner = next(
        (
            one.function
            for one in (inner.left, inner.right, node.right)
            if isinstance(one, Call) and one.function in _JOINERS
        ),
        None,
    )
    if joiner is not None:
        meaning = "joins strings" if joiner == "concat" else "computes with the bits of integers"
        return f"{'||' if joiner == 'concat' else joiner} {meaning}; {JOINED}"
    if inner is node.left and node.operator in _ORDER and inner.operator in _ORDER:
        second = nodes.Comparison(node.operator, inner.right, node.right)
        return f"a comparison has two sides; write {to_sql(inner)} AND {to_sql(second)}"
    return f"a comparison has two sides; {JOINED}"


def _field_of(side: Expression, struct: StructType, other: DataType) -> str:
    alike = [one for one in struct if one.type == other or STRING not in {one.type, other}]
    name = next((one.name for one in (*alike, *struct)), "field")
    return to_sql(Column((*side.path, name))) if isinstance(side, Column) else f"s.{name}"


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and isnan(value)


def _is_difference(node: nodes.Comparison) -> bool:
    """Return whether a side is a difference of numbers, as a date without quotes is."""
    return any(
        isinstance(side, nodes.Arithmetic) and side.operator == "-"
        for side in (node.left, node.right)
    )
