"""Expressions in DuckDB's SQL, with Spark's result types.

`to_duckdb` translates a resolved expression, in which every cast of Spark is explicit. It returns
None for an expression that contains a part for which DuckDB's result would differ from Spark's in
value, type or error; `expressions` computes such an expression. `_FUNCTIONS` lists the functions.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from deltalog.errors import InvalidInputError
from deltalog.expressions import Literal, nodes, type_of
from deltalog.expressions.coercion import arithmetic_type
from deltalog.expressions.evaluation import fold
from deltalog.expressions.trees import walk
from deltalog.query.native import (
    INTEGRALS,
    MAX_PRECISION,
    column_text,
    decimal_of,
    is_ordered_by_duckdb,
    quoted_name,
    quoted_string,
)
from deltalog.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import DataType, PrimitiveType, StructType

_EXACT_DIGITS: Final = 15
"""Whole numbers with this number of digits are exact doubles."""
_EXACT_SCALE: Final = 22
"""The powers of ten up to this exponent are exact doubles."""
# The days that DuckDB treats as infinity and -infinity, as year, quarter, month and day.
_LAST_DAY, _FIRST_DAY = (5881580, 3, 7, 11), (-5877641, 2, 6, 24)


BY_ZERO: Final = "division by zero: guard it with NULLIF or CASE"


class _NotSameError(Exception):
    """DuckDB's result would differ from Spark's."""


def to_duckdb(resolved: Expression, schema: StructType, columns: Mapping[str, str]) -> str | None:
    """Return an expression in DuckDB's SQL; None if DuckDB's result would differ from Spark's.

    Args:
        resolved: the expression, resolved against `schema`.
        schema: the columns of the expression; DuckDB has them in the same types.
        columns: for each column, its SQL.
    """
    writer = _Writer(schema, columns)
    try:
        folded = fold(resolved)
        text = writer.text(folded)
        # DuckDB simplifies operations with such constants, and then evaluates no other operand.
        return None if writer.may_fail and any(map(_is_simplified, walk(folded))) else text
    except (_NotSameError, InvalidInputError):
        return None  # an invalid constant: `expressions` raises the error for the first row


def _is_simplified(node: Expression) -> bool:
    return isinstance(node, Literal) and (node.value is None or isinstance(node.value, bool))


@dataclass(slots=True)
class _Writer:
    """Writes one expression.

    Args:
        schema: the columns.
        columns: for each column, its SQL.
        may_fail: whether evaluating the expression may raise an error, as far as it was written.
    """

    schema: StructType
    columns: Mapping[str, str]
    may_fail: bool = False

    def text(self, node: Expression) -> str:
        """Return an expression; raise `_NotSameError` if DuckDB's result would differ."""
        write = _NODES.get(type(node))
        if write is None:
            raise _NotSameError
        return write(self, node)

    def kind(self, node: Expression) -> DataType:
        """Return the type of an expression."""
        return type_of(node, self.schema)

    def operand(self, node: Expression) -> tuple[str, bool]:
        """Return an operand, and whether it may fail."""
        inner = _Writer(self.schema, self.columns)
        text = inner.text(node)
        self.may_fail |= inner.may_fail
        return text, inner.may_fail

    def operands(self, parts: Iterable[Expression]) -> list[str]:
        """Return the operands of an operation that is NULL if one of them is NULL.

        Spark evaluates them in order until one is NULL, and DuckDB always evaluates all of them. So
        only the first operand may fail.
        """
        texts: list[str] = []
        for part in parts:
            text, may_fail = self.operand(part)
            if may_fail and texts:
                raise _NotSameError
            texts.append(text)
        return texts


# --- Nodes


def _column(writer: _Writer, node: nodes.Column) -> str:
    name, *fields = node.path
    return ".".join([writer.columns[name], *map(quoted_name, fields)])


def _in(writer: _Writer, node: nodes.In) -> str:
    _check_compared(writer, (node.operand, *node.options))
    operand, *options = writer.operands((node.operand, *node.options))
    if writer.may_fail:
        raise _NotSameError  # DuckDB evaluates nothing if an option is NULL
    return f"({operand} IN ({', '.join(options)}))"


def _joined(word: str, end: str) -> Callable[[_Writer, Any], str]:
    """Return a function that writes AND or OR.

    DuckDB evaluates operands in any order. If one may fail, CASE, which DuckDB evaluates in order,
    skips the other operands where Spark skips them: after an operand that has the value `end`.
    """

    def write(writer: _Writer, node: nodes.And | nodes.Or) -> str:
        operands = list(map(writer.operand, node.operands))
        *before, (found, may_fail) = operands
        for text, fails in reversed(before):
            may_fail |= fails
            both = f"({text} {word} {found})"
            found = f"(CASE WHEN {text} IS {end} THEN {end} ELSE {both} END)" if may_fail else both
        return found

    return write


def _not(writer: _Writer, node: nodes.Not) -> str:
    return f"(NOT {writer.text(node.operand)})"


def _is_null(writer: _Writer, node: nodes.IsNull) -> str:
    text, may_fail = writer.operand(node.operand)
    if may_fail:
        raise _NotSameError  # DuckDB does not evaluate an operand that is never NULL
    return f"({text} IS NULL)"


def _comparison(writer: _Writer, node: nodes.Comparison) -> str:
    _check_compared(writer, (node.left, node.right))
    operator = "IS NOT DISTINCT FROM" if node.operator == "<=>" else node.operator
    left, right = writer.operands((node.left, node.right))
    return f"({left} {operator} {right})"


def _check_compared(writer: _Writer, sides: Sequence[Expression]) -> None:
    kinds = {writer.kind(one) for one in sides}
    if not all(map(is_ordered_by_duckdb, kinds)) or VOID in kinds:
        raise _NotSameError
    decimals = [found for one in kinds if (found := decimal_of(one)) is not None]
    if len(kinds) > 1 and len(decimals) < len(kinds):
        raise _NotSameError
    if decimals:  # DuckDB casts both sides to a type with all digits
        whole = max(precision - scale for precision, scale in decimals)
        if whole + max(scale for _, scale in decimals) > MAX_PRECISION:
            raise _NotSameError


def _like(writer: _Writer, node: nodes.Like) -> str:
    pattern = node.pattern
    is_plain = isinstance(pattern, Literal) and isinstance(pattern.value, str)
    is_usual = not node.ignore_case and node.escape == "\\"
    if not is_plain or not is_usual or writer.kind(node.operand) != STRING:
        raise _NotSameError
    if "\\" in cast("str", cast("Literal", pattern).value):
        raise _NotSameError
    return f"({writer.text(node.operand)} LIKE {writer.text(pattern)})"


def _arithmetic(writer: _Writer, node: nodes.Arithmetic) -> str:
    kinds = writer.kind(node.left), writer.kind(node.right)
    sides = writer.operands((node.left, node.right))
    text = f"({sides[0]} {node.operator} {sides[1]})"
    if decimal_of(kinds[0]) is not None and decimal_of(kinds[1]) is not None:
        left, right = cast("tuple[PrimitiveType, PrimitiveType]", kinds)
        result = arithmetic_type(node.operator, left, right)
        writer.may_fail |= _may_overflow(node.operator, left, right, result)
        return f"CAST({text} AS {column_text(result)})"
    if kinds == (DOUBLE, DOUBLE):
        if node.operator in {"+", "-", "*"}:
            return text
        if node.operator == "/":
            return _quotient(writer, node, sides)
    if kinds in {(INTEGER, INTEGER), (LONG, LONG)} and node.operator in {"+", "-", "*"}:
        writer.may_fail = True
        return text
    raise _NotSameError


def _quotient(writer: _Writer, node: nodes.Arithmetic, sides: Sequence[str]) -> str:
    """Write a quotient of doubles; DuckDB divides by zero, which is an error in Spark."""
    text = f"({sides[0]} / {sides[1]})"
    if isinstance(node.right, Literal) and node.right.value:
        return text
    writer.may_fail = True
    is_zero = f"{sides[1]} = 0 AND {sides[0]} IS NOT NULL"
    return f"(CASE WHEN {is_zero} THEN error({_string(BY_ZERO)}) ELSE {text} END)"


def _cast(writer: _Writer, node: nodes.Cast) -> str:
    source = writer.kind(node.operand)
    text = writer.text(node.operand)
    if node.is_try:
        raise _NotSameError
    if source in INTEGRALS and decimal_of(node.to) is not None:
        writer.may_fail |= not _is_exact_cast(source, node.to)  # both refuse too large numbers
    elif not _is_exact_cast(source, node.to):
        raise _NotSameError
    return text if source == node.to else f"CAST({text} AS {column_text(node.to)})"


def _case(writer: _Writer, node: nodes.Case) -> str:
    kind = column_text(writer.kind(node))
    branches = " ".join(
        f"WHEN {writer.text(condition)} THEN {writer.text(value)}"
        for condition, value in node.branches
    )
    otherwise = node.otherwise
    last = f"CAST(NULL AS {kind})" if otherwise is None else writer.text(otherwise)
    values = [value for _, value in node.branches] + [otherwise] * (otherwise is not None)
    if len({writer.kind(value) for value in values if value is not None}) > 1:
        raise _NotSameError
    return f"(CASE {branches} ELSE {last} END)"


def _call(writer: _Writer, node: nodes.Call) -> str:
    write = _FUNCTIONS.get(node.function)
    if write is None:
        raise _NotSameError
    kinds = [writer.kind(one) for one in node.arguments]
    arguments = writer.operands(node.arguments)
    if node.function == "coalesce" and writer.may_fail:
        raise _NotSameError  # Spark evaluates arguments only until one is not NULL
    return write(node, kinds, arguments)


def _may_overflow(
    operator: str, left: PrimitiveType, right: PrimitiveType, result: PrimitiveType
) -> bool:
    """Return whether an operation on decimals, which DuckDB computes exactly, may overflow."""
    (p1, s1), (p2, s2) = (left.precision, left.scale), (right.precision, right.scale)
    match operator:
        case "+" | "-":
            scale = max(s1, s2)
            digits = max(p1 - s1, p2 - s2) + scale + 1
            if digits - 1 > MAX_PRECISION:
                raise _NotSameError  # DuckDB casts both sides to the larger scale first
        case "*":
            scale, digits = s1 + s2, p1 + p2 + 1
        case _:
            raise _NotSameError  # DuckDB divides doubles
    if scale != result.scale:
        raise _NotSameError  # Spark rounds the result
    return digits > MAX_PRECISION


def _is_exact_cast(source: DataType, to: DataType) -> bool:
    """Return whether DuckDB casts a type as Spark does and without errors."""
    if source in (to, VOID):
        return True
    decimal, wanted = decimal_of(source), decimal_of(to)
    if source in INTEGRALS:
        if to in INTEGRALS:
            return INTEGRALS.index(source) <= INTEGRALS.index(to)
        if wanted is not None:
            return wanted[0] - wanted[1] >= _digits(source)
        return to == DOUBLE
    if decimal is not None and wanted is not None:
        return wanted[1] >= decimal[1] and wanted[0] - wanted[1] >= decimal[0] - decimal[1]
    if decimal is not None and to == DOUBLE:
        return decimal[0] <= _EXACT_DIGITS and decimal[1] <= _EXACT_SCALE
    return (source, to) == (FLOAT, DOUBLE)


def _digits(kind: DataType) -> int:
    return cast("PrimitiveType", kind).primitive.decimal_digits


def _constant(_: _Writer, node: Literal) -> str:
    value, kind = node.value, node.type
    if kind is None or node.is_far_moment or node.nanos:
        raise _NotSameError
    if value is None:
        return f"CAST(NULL AS {column_text(kind)})"
    if kind in INTEGRALS:
        return f"CAST({value} AS {column_text(kind)})"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS {column_text(kind)})"
    write = _CONSTANTS.get(kind)
    if write is None:
        raise _NotSameError
    return write(value)


def _string(value: str) -> str:
    if "\0" in value:
        raise _NotSameError
    return quoted_string(value)


def _finite(value: float) -> str:
    if not math.isfinite(value):
        raise _NotSameError
    return f"CAST('{value!r}' AS DOUBLE)"


_CONSTANTS: Final[Mapping[DataType, Callable[[Any], str]]] = MappingProxyType({
    BOOLEAN: lambda value: str(value).lower(),
    DATE: lambda value: f"DATE '{value.isoformat()}'",
    DOUBLE: _finite,
    STRING: _string,
    TIMESTAMP: lambda value: f"TIMESTAMPTZ '{value.isoformat(sep=' ')}'",
    TIMESTAMP_NTZ: lambda value: f"TIMESTAMP '{value.isoformat(sep=' ')}'",
})  # fmt: skip


_NODES: Final[Mapping[type[Expression], Callable[[_Writer, Any], str]]] = MappingProxyType({
    Literal: _constant,
    nodes.And: _joined("AND", "FALSE"),
    nodes.Arithmetic: _arithmetic,
    nodes.Call: _call,
    nodes.Case: _case,
    nodes.Cast: _cast,
    nodes.Column: _column,
    nodes.Comparison: _comparison,
    nodes.In: _in,
    nodes.IsNull: _is_null,
    nodes.Like: _like,
    nodes.Not: _not,
    nodes.Or: _joined("OR", "TRUE"),
})  # fmt: skip


# --- Functions: each checks the types of its arguments, and returns the call


def _coalesce(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    if len(set(kinds)) > 1:
        raise _NotSameError
    return f"coalesce({', '.join(texts)})"


def _concat(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    if set(kinds) != {STRING}:
        raise _NotSameError
    return f"({' || '.join(texts)})"


def _length(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    if kinds != [STRING]:
        raise _NotSameError
    return f"CAST(length({texts[0]}) AS INTEGER)"


def _substring(node: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
    # DuckDB counts other positions than Spark for a start before the first character.
    rest = node.arguments[1:]
    is_constant = all(isinstance(one, Literal) and isinstance(one.value, int) for one in rest)
    if kinds[0] != STRING or not rest or not is_constant:
        raise _NotSameError
    start, *lengths = (cast("Literal", one).value for one in rest)
    if start < 1 or any(length < 0 for length in lengths):
        raise _NotSameError
    return f"substring({', '.join(texts)})"


def _date_part(name: str, place: int) -> Callable[[nodes.Call, list[DataType], list[str]], str]:
    def write(_: nodes.Call, kinds: list[DataType], texts: list[str]) -> str:
        if kinds != [DATE]:
            raise _NotSameError
        day = texts[0]
        # DuckDB has no year, month or day for its infinite dates, which are dates in Spark.
        first, last = _FIRST_DAY[place], _LAST_DAY[place]
        ends = (
            f"WHEN {day} = DATE '-infinity' THEN {first} WHEN {day} = DATE 'infinity' THEN {last}"
        )
        return f"CAST(CASE {ends} ELSE {name}({day}) END AS INTEGER)"

    return write


_FUNCTIONS: Final[
    Mapping[str, Callable[[nodes.Call, list[DataType], list[str]], str]]
] = MappingProxyType({
    "coalesce": _coalesce,
    "concat": _concat,
    "dayofmonth": _date_part("day", 3),
    "length": _length,
    "month": _date_part("month", 2),
    "quarter": _date_part("quarter", 1),
    "substring": _substring,
    "year": _date_part("year", 0),
})  # fmt: skip
