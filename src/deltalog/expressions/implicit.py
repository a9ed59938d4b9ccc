"""Spark's implicit casts, added as explicit nodes of the tree.

Determines the common type of operands, the constants that are cast to the column's type instead,
and the types of arithmetic. `analyze` resolves the names of columns and functions.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.argument_types import shortened
from deltalog.errors import InvalidInputError
from deltalog.expressions import coercion
from deltalog.expressions.casts import cast_in_zone, needs_zone
from deltalog.expressions.literals import from_scalar, plain_value, to_scalar
from deltalog.expressions.nodes import Arithmetic, Call, Cast, Expression, Literal
from deltalog.expressions.render import shown_sql
from deltalog.expressions.sql_session import UTC_NAMES
from deltalog.expressions.string_forms import below_micros
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.primitives.moments import NANOS_OF_MICRO, micros_of
from deltalog.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NANOS_NTZ,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    PrimitiveType,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Typed = tuple[Expression, DataType]
# Below this number, different longs are different doubles. Above it, two longs may be equal as
# doubles.
_MAX_EXACT_DOUBLE: Final = 1 << 53
_EXACT_DOUBLE_DIGITS: Final = 15
_DAY_COUNTS: Final = (BYTE, SHORT, INTEGER)
_MOST_NANOS: Final = 1 << 63
_FINE: Final[dict[DataType, DataType]] = {
    TIMESTAMP: TIMESTAMP_NANOS,
    TIMESTAMP_NANOS: TIMESTAMP_NANOS,
    TIMESTAMP_NTZ: TIMESTAMP_NANOS_NTZ,
    TIMESTAMP_NANOS_NTZ: TIMESTAMP_NANOS_NTZ,
}
_MICROSECONDS: Final[dict[DataType, DataType]] = {
    TIMESTAMP_NANOS: TIMESTAMP,
    TIMESTAMP_NANOS_NTZ: TIMESTAMP_NTZ,
}
_MOMENTS: Final = frozenset({DATE, *_FINE})


@dataclass(frozen=True, slots=True)
class Casts:
    """The implicit casts of a session.

    Args:
        time_zone: the zone for casts between `timestamp_ntz` and `timestamp`.
    """

    time_zone: str

    def literal(self, literal: Literal, to: DataType, *, is_try: bool = False) -> Literal:
        """Convert a constant to another type.

        Raises:
            InvalidInputError: the constant's value cannot be cast.
        """
        value, source = plain_value(literal.value)
        source = literal.type or source
        if source == to:
            return Literal(value, to)
        if to in coercion.FINE_MOMENTS and (source == STRING or source in _MOMENTS):
            found = self.fine_literal(literal, to)
            if found.type == to or is_try:
                return found if found.type == to else Literal(None, to)
            raise InvalidInputError(
                f"cannot cast {shown_sql(literal)} to {to}: its nanoseconds do not fit 64 bits"
            )
        if (
            source in coercion.INTEGRALS
            and to in coercion.INTEGRALS
            and type(value) is int
            and coercion.holds_integer(to, value)
        ):
            # For long IN lists, this is faster than the cast below, whose result would be the same.
            return Literal(value, to)
        zone = self._zone_of(source, to)
        try:
            datum = to_scalar(value, source)
            scalar = cast_in_zone(datum, source, to, is_try=is_try, time_zone=zone)
        except pa.ArrowInvalid as error:
            raise InvalidInputError(f"cannot cast {shortened(value)} to {to}: {error}") from error
        return Literal(from_scalar(scalar), to)

    def fine_literal(self, literal: Literal, to: DataType) -> Literal:
        """Convert a constant to nanoseconds, or to microseconds if nanoseconds overflow.

        Args:
            literal: a string, a date, or a timestamp with or without zone.
            to: `timestamp_nanos` or `timestamp_nanos_ntz`.

        Raises:
            InvalidInputError: the literal is not a date or timestamp.
        """
        value, source = plain_value(literal.value)
        source, nanos = literal.type or source, literal.nanos
        if source == to or value is None:
            return Literal(value, to)
        plain = _MICROSECONDS[to]
        if source == STRING:
            value, nanos = str(value), below_micros(str(value))
        elif source in coercion.FINE_MOMENTS:
            micros, nanos = divmod(value, NANOS_OF_MICRO)
            source = _MICROSECONDS[source]
            value = from_scalar(pa.scalar(micros, pa.int64()).cast(to_arrow_type(source)))
        moved = self.literal(Literal(value, source), plain)
        far = moved.value if isinstance(moved.value, int) else None
        fine = (micros_of(moved.value) if far is None else far) * NANOS_OF_MICRO + nanos
        return Literal(fine, to) if -_MOST_NANOS <= fine < _MOST_NANOS else moved

    def coerce(self, node: Expression, source: DataType, to: DataType) -> Expression:
        """Cast a node to the expected type, as Spark casts arguments.

        Raises:
            InvalidInputError: ANSI mode does not make this cast implicitly.
        """
        if source == to:
            return node
        if not coercion.can_assign(source, to) and coercion.common_type(to, source) != to:
            raise InvalidInputError(
                f"{shown_sql(node)} is of type {source}, but {to} is expected here: cast it"
            )
        return self.cast(node, source, to)

    def cast(
        self, node: Expression, source: DataType, to: DataType, *, is_try: bool = False
    ) -> Expression:
        """Return a cast of a node; for a constant, the result of the cast unless it fails."""
        if source == to:
            return node
        if isinstance(node, Literal):
            # Raise no error if the constant cannot be cast, because a CASE or AND may prevent the
            # evaluation of the cast for all rows.
            with contextlib.suppress(InvalidInputError):
                return self.literal(node, to, is_try=is_try)
        return Cast(node, to, is_try, self._zone_of(source, to))

    def unify(self, values: Sequence[Typed], where: str) -> tuple[list[Expression], DataType]:
        """Cast alternative values (of CASE, COALESCE, …) to their common type.

        Raises:
            InvalidInputError: the values have no common type.
        """
        common: DataType | None = VOID
        for _, data_type in values:
            common = coercion.common_type(common, data_type) if common else None
        if common is None:
            types = ", ".join(dict.fromkeys(str(data_type) for _, data_type in values))
            raise InvalidInputError(f"the values of {where} have no common type: {types}")
        return [self.cast(node, source, common) for node, source in values], common

    def unify_comparison(self, sides: Sequence[Typed]) -> tuple[list[Expression], DataType] | None:
        """Cast the sides of a comparison to one type; return None if they have no common type.

        Spark casts both sides to the common type. If that does not change the result, a constant is
        cast to the column's type instead: the column then needs no cast, so its statistics can be
        used.
        """
        if any(data_type in coercion.FINE_MOMENTS for _, data_type in sides):
            return self._unify_fine(sides)
        first, *others = (data_type for _, data_type in sides)
        common: DataType | None = first
        if not all(coercion.has_same_structure(first, other) for other in others):
            for other in others:
                # Types that differ only in field names or nullability need no common type.
                is_alike = common is not None and coercion.has_same_structure(common, other)
                if common is not None and not is_alike:
                    common = coercion.comparable_type(common, other)
        if common is None:
            return None
        types = {data_type for node, data_type in sides if not isinstance(node, Literal)}
        if len(types) == 1:
            target = types.pop()
            narrowed = [
                self._narrow(node, common, target) if isinstance(node, Literal) else node
                for node, _ in sides
            ]
            if all(node is not None for node in narrowed):
                return [node for node in narrowed if node is not None], target
        return [self._exact(node, source, common) for node, source in sides], common

    def _unify_fine(self, sides: Sequence[Typed]) -> tuple[list[Expression], DataType] | None:
        """Cast the sides of a comparison with nanosecond timestamps.

        The sides keep their time units, because the kernels compare both units without rounding.
        Only the zones are cast.
        """
        columns = [kind for node, kind in sides if not isinstance(node, Literal)]
        fine = [kind for kind in columns if kind in coercion.FINE_MOMENTS]
        known = [*fine, *columns, *(kind for _, kind in sides if kind in coercion.FINE_MOMENTS)]
        to = next((_FINE[kind] for kind in known if kind in _FINE), TIMESTAMP_NANOS_NTZ)
        found: list[Expression] = []
        for node, kind in sides:
            if isinstance(node, Literal) and (kind in {STRING, VOID} or kind in _MOMENTS):
                # When clocks are set back, two different instants have the same local time.
                if self._loses_instants(kind, to):
                    return None
                found.append(self.fine_literal(node, to))
            elif kind == to:
                found.append(node)
            elif kind in coercion.DATETIMES and not self._loses_instants(kind, to):
                found.append(self.cast(node, kind, _MICROSECONDS[to]))
            else:
                return None
        return found, to

    def _loses_instants(self, source: DataType, to: DataType) -> bool:
        """Whether the cast converts instants to local times in a zone other than UTC."""
        source = _MICROSECONDS.get(source, source)
        return source == TIMESTAMP and self._zone_of(source, _MICROSECONDS[to]) is not None

    def _exact(self, node: Expression, source: DataType, to: DataType) -> Expression:
        # A constant that cannot be cast is an error, even if no row needs it.
        if isinstance(node, Literal):
            return self.literal(node, to)
        return self.cast(node, source, to)

    def _narrow(self, literal: Literal, common: DataType, target: DataType) -> Literal | None:
        """Cast a constant to the column's type; None if that may change the comparison."""
        widened = self.literal(literal, common)
        if common == target:
            return widened
        if widened.value is None:
            return Literal(None, target)
        # When clocks are set back, two different timestamps have the same local time.
        if self._zone_of(target, common) or not _keeps_order(target, common, widened.value):
            return None
        narrowed = self.literal(widened, target, is_try=True)
        if narrowed.value is None:
            return None
        if isinstance(widened.value, float) and math.isnan(widened.value):
            return narrowed if target in coercion.FRACTIONALS else None
        return narrowed if self.literal(narrowed, common).value == widened.value else None

    def _zone_of(self, source: DataType, to: DataType) -> str | None:
        """Return the zone to record in a cast; None for UTC."""
        is_utc = self.time_zone in UTC_NAMES
        return None if is_utc or not needs_zone(source, to) else self.time_zone


_IN_UTC: Final = Casts("UTC")
# Functions that cast constants and numbers, with UTC as the time zone.
cast_literal: Final = _IN_UTC.literal
make_cast: Final = _IN_UTC.cast
fine_literal: Final = _IN_UTC.fine_literal


def _keeps_order(source: DataType, to: DataType, value: Any) -> bool:
    """Whether the cast preserves the order of values, and keeps different values different."""
    if source in coercion.INTEGRALS:
        if to == DOUBLE and source == LONG:
            return bool(abs(value) < _MAX_EXACT_DOUBLE)
        return coercion.is_numeric(to)
    if coercion.is_decimal(source) and isinstance(source, PrimitiveType):
        if to == DOUBLE:
            return source.precision <= _EXACT_DOUBLE_DIGITS
        return to == coercion.wider_decimal(source, to) and _is_lossless(source, to)  # type: ignore[arg-type]  # both are decimals
    return (source == FLOAT and to == DOUBLE) or (
        source in coercion.DATETIMES and to in (TIMESTAMP, TIMESTAMP_NTZ)
    )


def _is_lossless(source: PrimitiveType, to: DataType) -> bool:
    if not isinstance(to, PrimitiveType) or not to.is_decimal:
        return False
    whole = to.precision - to.scale >= source.precision - source.scale
    return whole and to.scale >= source.scale


def arithmetic_of(
    operator: str, left: Typed, right: Typed, is_constant: tuple[bool, bool]
) -> Typed:
    """Return `left operator right` with Spark's implicit casts, and its type.

    Args:
        operator: one of `+ - * / %`.
        left: the left side.
        right: the right side.
        is_constant: whether each side is a constant in the SQL. The precision of a constant is its
            number of digits, whatever its type.

    Raises:
        InvalidInputError: there is no such operation on these types.
    """
    if operator not in {"+", "-", "*", "/", "%"}:
        raise InvalidInputError(f"there is no arithmetic operator {operator!r}")
    left, right = _promote_texts(left, right), _promote_texts(right, left)
    (lhs, left_type), (rhs, right_type) = left, right
    if DATE in (left_type, right_type) and operator in "+-":
        return _date_arithmetic(operator, left, right)
    if not all(coercion.is_numeric(side) or side == VOID for side in (left_type, right_type)):
        sql = shown_sql(Arithmetic(operator, lhs, rhs))
        joins = operator == "+" and STRING in (left_type, right_type)
        advice = "; strings are joined by || or concat" if joins else ""
        if operator in "+-" and {left_type, right_type} & {TIMESTAMP, TIMESTAMP_NTZ}:
            advice = _ON_MOMENTS
        raise InvalidInputError(
            f"cannot compute {sql}: {left_type} {operator} {right_type}{advice}"
        )
    if left_type == right_type == VOID:
        left_type = right_type = DOUBLE
    if _is_decimal_work(left_type, right_type):
        lhs, exact = _as_decimal(lhs, left_type, right_type, is_constant=is_constant[0])
        rhs, other = _as_decimal(rhs, right_type, left_type, is_constant=is_constant[1])
        return Arithmetic(operator, lhs, rhs), coercion.arithmetic_type(operator, exact, other)
    common = coercion.common_type(left_type, right_type)
    # In Spark, `/` casts integers to doubles. `div` is the integral division.
    if operator == "/" or common is None or coercion.is_decimal(common):
        common = DOUBLE
    casts = make_cast(lhs, left[1], common), make_cast(rhs, right[1], common)
    return Arithmetic(operator, *casts), common


def _promote_texts(side: Typed, other: Typed) -> Typed:
    node, data_type = side
    if data_type != STRING or other[1] == STRING:
        return side
    common = coercion.common_type(data_type, other[1])
    return side if common is None else (make_cast(node, data_type, common), common)


def _is_decimal_work(left: DataType, right: DataType) -> bool:
    exact = [
        side in coercion.INTEGRALS or coercion.is_decimal(side) or side == VOID
        for side in (left, right)
    ]
    return all(exact) and (coercion.is_decimal(left) or coercion.is_decimal(right))


def _as_decimal(
    node: Expression, data_type: DataType, other: DataType, *, is_constant: bool
) -> tuple[Expression, PrimitiveType]:
    if data_type == VOID:
        exact = coercion.decimal_of(other)
        return make_cast(node, data_type, exact), exact
    target = coercion.decimal_of(data_type)
    if is_constant and isinstance(node, Literal):
        # The precision of a constant is its number of digits. In `price * 2`, 2 is a decimal(1,0),
        # whereas an int column would be a decimal(10,0).
        target = coercion.decimal_of_constant(node.value, data_type)
    return make_cast(node, data_type, target), target


_ON_MOMENTS: Final = (
    "; an INTERVAL has a unit, such as now() - INTERVAL 7 DAYS; timestampdiff(SECOND, a, b) is the "
    "time between two moments"
)


def _date_arithmetic(operator: str, left: Typed, right: Typed) -> Typed:
    (lhs, left_type), (rhs, right_type) = left, right
    if operator == "+" and left_type in _DAY_COUNTS:
        return Call("date_add", (rhs, make_cast(lhs, left_type, INTEGER))), DATE
    if right_type in _DAY_COUNTS:
        name = "date_add" if operator == "+" else "date_sub"
        return Call(name, (lhs, make_cast(rhs, right_type, INTEGER))), DATE
    raise InvalidInputError(
        f"cannot compute {shown_sql(Arithmetic(operator, lhs, rhs))}: add an integer or an "
        "INTERVAL to a date; use datediff for the days between two dates"
    )
