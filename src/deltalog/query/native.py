"""Which expressions DuckDB computes as Spark does.

Owns for which trees and types DuckDB's answer is Spark's; all others are computed by `expressions`.

Protocol: none
"""

from __future__ import annotations

import struct
from datetime import date
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Final

from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import Literal, nodes, resolve, type_of
from deltalog.expressions.coercion import FINE_MOMENTS
from deltalog.expressions.trees import walk
from deltalog.query.aggregates import ResultType
from deltalog.query.duckdb_types import decimal_of
from deltalog.schema import Field, MapType, PrimitiveType, StructType
from deltalog.schema.columns import walk_types
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    YEAR_TO_MONTH,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import DataType
    from deltalog.sql_session import SqlSession

INTEGRALS: Final = (BYTE, SHORT, INTEGER, LONG)
# Types whose values DuckDB compares as Spark does.
_COMPARED: Final = frozenset({*INTEGRALS, STRING, DOUBLE, FLOAT, BOOLEAN, DATE, TIMESTAMP, BINARY,
                              TIMESTAMP_NTZ})  # fmt: skip
# Types with which DuckDB adds and multiplies as Spark does: too large a result is an error of both.
_ADDED: Final = frozenset({INTEGER, LONG, DOUBLE})
_TOO_LARGE: Final = 2**63
_NATIVE_CONSTANTS: Final = (str, float, Decimal, date, NoneType)
_PLAIN: Final = (
    nodes.Column, Literal, nodes.Comparison, nodes.In, nodes.And, nodes.Or, nodes.Not,
    nodes.IsNull, nodes.Like, nodes.Arithmetic,
)  # fmt: skip


def is_same_by_duckdb(parsed: Expression, resolved: Expression, schema: StructType) -> bool:
    """Whether DuckDB's answer to an expression is Spark's.

    Args:
        parsed: the expression as it is written.
        resolved: the same with names, types and casts.
        schema: of its columns.
    """
    return _is_plain(parsed) and _means_the_same(resolved, schema)


def check_aggregated(what: ResultType, kind: DataType, shown: str) -> None:
    """Refuse a function over several rows of a type that DuckDB computes in another way.

    Args:
        what: which function it is.
        kind: of its argument.
        shown: the query, for the error.

    Raises:
        InvalidInputError: it is not computed.
    """
    named = "texts" if what is ResultType.TEXT else "sum and the average"
    is_known = kind != YEAR_TO_MONTH
    if what in {ResultType.ORDERED, ResultType.BY}:
        named, is_known = "least and the greatest value", is_ordered_by_duckdb(kind)
    if not is_known:
        raise InvalidInputError(
            f"cannot run {shown!r}: the {named} of the type {kind} are not computed"
        )


def is_ordered_by_duckdb(kind: DataType) -> bool:
    """Whether DuckDB has Spark's order of the values of a type."""
    return kind in {*_COMPARED, *FINE_MOMENTS, VOID, YEAR_TO_MONTH} or decimal_of(kind) is not None


def is_widened_by_duckdb(source: DataType, to: DataType) -> bool:
    """Whether DuckDB casts a type to another one as Spark does, and no value fails."""
    numbers = (*INTEGRALS, FLOAT, DOUBLE)
    if source in numbers and to in numbers:
        return to not in INTEGRALS or source in INTEGRALS
    return source == VOID or bool((source in INTEGRALS or decimal_of(source)) and decimal_of(to))


def problem_of_pair(
    name: str, kinds: Sequence[DataType], session: SqlSession, *, is_put_together: bool
) -> str | None:
    """Return why DuckDB does not join by two columns as Spark does; None if it does.

    Args:
        name: of the columns.
        kinds: their types.
        session: the time zone.
        is_put_together: whether one column has the values of both.
    """
    if any(isinstance(part, MapType) for kind in kinds for _, part in walk_types(kind)):
        return f"columns {name} of {kinds[0]} and of {kinds[1]} are not compared: they have maps"
    has_other_type = is_put_together and kinds[0] != kinds[1] and any(map(decimal_of, kinds))
    if not has_other_type and _are_equal_as_in_spark(kinds, session):
        return None
    return (
        f"columns {name} of {kinds[0]} and of {kinds[1]} are not compared by their names: join ON "
        "a condition, where one can be cast"
    )


def _are_equal_as_in_spark(kinds: Sequence[DataType], session: SqlSession) -> bool:
    """Whether DuckDB says of the same values of two types that they are equal, as Spark."""
    if kinds[0] == kinds[1] and not isinstance(kinds[0], PrimitiveType):
        return True
    schema = StructType([Field(name, kind) for name, kind in zip("ab", kinds, strict=True)])
    parsed = nodes.Comparison("=", nodes.Column(("a",)), nodes.Column(("b",)))
    try:
        return is_same_by_duckdb(parsed, resolve(parsed, schema, session), schema)
    except DeltaError:
        return False


def _is_plain(parsed: Expression) -> bool:
    """Whether an expression has only constants, columns and operators, as it is written."""
    return all(isinstance(one, _PLAIN) and not _is_lost(one) for one in walk(parsed))


def _is_lost(node: Expression) -> bool:
    """Whether a constant has a type that Spark casts to another one, and DuckDB does not."""
    if isinstance(node, nodes.Arithmetic):
        sides = (node.left, node.right)
        return any(isinstance(one, Literal) and isinstance(one.value, str | None) for one in sides)
    return isinstance(node, Literal) and node.type == FLOAT


def _means_the_same(resolved: Expression, schema: StructType) -> bool:
    """Whether DuckDB's answer to an expression is Spark's."""
    match resolved:
        case nodes.Column():
            return True
        case Literal(type=kind) if kind == YEAR_TO_MONTH:
            return False  # to DuckDB it is an interval, which has days as well
        case Literal():
            # A moment that is a number has a year that DuckDB writes in another way.
            is_whole = isinstance(resolved.value, int) and not resolved.is_far_moment
            is_small = is_whole and abs(resolved.value) < _TOO_LARGE
            return is_small or isinstance(resolved.value, _NATIVE_CONSTANTS)
        case nodes.Comparison():
            return _are_compared((resolved.left, resolved.right), schema)
        case nodes.In():
            return _are_compared((resolved.operand, *resolved.options), schema)
        case nodes.And() | nodes.Or():
            return all(_means_the_same(one, schema) for one in resolved.operands)
        case nodes.Not() | nodes.IsNull():
            return _means_the_same(resolved.operand, schema)
        case nodes.Like():
            pattern = resolved.pattern
            is_plain = isinstance(pattern, Literal) and "\\" not in str(pattern.value)
            is_usual = not resolved.ignore_case and resolved.escape == "\\"
            return is_plain and is_usual and isinstance(resolved.operand, nodes.Column)
        case nodes.Arithmetic():
            sides = (resolved.left, resolved.right)
            return resolved.operator in {"+", "-", "*"} and all(
                type_of(one, schema) in _ADDED and _is_value(one, schema) for one in sides
            )
        case _:
            return False


def _is_value(node: Expression, schema: StructType) -> bool:
    """Whether a side of an operator is one that DuckDB knows with the same type."""
    side = _widened(node, schema)
    return type_of(side, schema) not in {FLOAT, VOID} and _means_the_same(side, schema)


def _are_compared(sides: Sequence[Expression], schema: StructType) -> bool:
    plain = [_widened(one, schema) for one in sides]
    kinds = [type_of(one, schema) for one in plain]
    if FINE_MOMENTS.intersection(kinds) and (
        len(set(kinds)) > 1 or not all(isinstance(one, nodes.Column) for one in plain)
    ):
        return False  # it casts one of two units to the other
    if FLOAT in kinds and not all(map(_is_compared_with_float, plain, kinds)):
        return False
    return all(
        isinstance(side, nodes.Column | Literal | nodes.Arithmetic)
        and is_ordered_by_duckdb(one)
        and _means_the_same(side, schema)
        for side, one in zip(plain, kinds, strict=True)
    )


def _is_compared_with_float(side: Expression, kind: DataType) -> bool:
    """Whether DuckDB compares a side with a float as Spark does: as doubles, or no digit is lost.

    It casts whole numbers and decimals to float, Spark casts both sides to double.
    """
    if not isinstance(side, Literal):
        return kind in {FLOAT, DOUBLE}
    number = side.value
    if not isinstance(number, int | float | Decimal):
        return number is None
    try:
        return bool(struct.unpack("f", struct.pack("f", number))[0] == number)
    except OverflowError:
        return False


def _widened(node: Expression, schema: StructType) -> Expression:
    """Return what a cast is of that loses nothing, as DuckDB makes it itself."""
    if not isinstance(node, nodes.Cast):
        return node
    source, to = type_of(node.operand, schema), node.to
    numbers = (*INTEGRALS, DOUBLE)
    if source in numbers and to in numbers:
        return node.operand if numbers.index(source) <= numbers.index(to) else node
    is_exact = (source in INTEGRALS or decimal_of(source)) and (decimal_of(to) or to == DOUBLE)
    is_other = (source, to) in {(DATE, TIMESTAMP), (DATE, TIMESTAMP_NTZ), (FLOAT, DOUBLE)}
    return node.operand if is_exact or is_other or source == VOID else node
