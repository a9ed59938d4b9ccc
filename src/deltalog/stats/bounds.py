"""Bounds to rely on, made of the minima and maxima that writers store.

Owns every correction between what writers store and what can be relied on. A corrected bound is
never tighter than the stored one: that costs a file that need not be read, and never a row.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.kernels import Array, pc
from deltalog.schema.primitives import Family
from deltalog.schema.types import DOUBLE, FLOAT, PrimitiveType
from deltalog.schema.widening import TYPE_CHANGES_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.schema.types import DataType, Field


_MICROS_PER_MILLI: Final = 1_000
_MAX_INT64: Final = (1 << 63) - 1
_MIN_INT64: Final = -(1 << 63)
# Decimals of so many digits survive a double; a double is never written with more than 17.
_EXACT_DOUBLE_DIGITS: Final = 15
_MOST_DOUBLE_DIGITS: Final = 17
_MAX_EXACT_DOUBLE: Final = 1 << 53
_DOUBLE_ERROR: Final = 2.0**-52


@dataclass(frozen=True, slots=True)
class Correction:
    """How the stored bounds of one column become bounds to rely on."""

    lower: Callable[[Array], Array]
    upper: Callable[[Array], Array]


def correction(field: Field) -> Correction:
    """Return the correction that the bounds of a column need."""
    data_type = field.type
    if not isinstance(data_type, PrimitiveType):
        return _NONE
    bounds = data_type.primitive.codec.bounds
    if bounds is not None and bounds.has_millis:
        return _MILLIS
    if data_type.is_decimal and data_type.precision > _EXACT_DOUBLE_DIGITS:
        return _decimal_correction(data_type)
    if data_type == DOUBLE and _was_float(field.metadata):
        return _FORMER_FLOAT
    return _NONE


def is_taken_as_stored(field: Field) -> bool:
    """Return whether the bounds of a column need no correction."""
    return correction(field) is _NONE


def _same(array: Array) -> Array:
    return array


def _later(array: Array) -> Array:
    """One millisecond later, or the last moment: writers cut maxima down to milliseconds."""
    micros = array.cast(pa.int64())
    last = pa.scalar(_MAX_INT64 - _MICROS_PER_MILLI)
    at_end = pc.greater(micros, last)
    later = pc.add(pc.min_element_wise(micros, last, skip_nulls=False), _MICROS_PER_MILLI)
    return pc.if_else(at_end, _MAX_INT64, later).cast(array.type)


def _was_float(metadata: Mapping[str, Any]) -> bool:
    changes = metadata.get(TYPE_CHANGES_KEY)
    return isinstance(changes, list) and any(
        isinstance(change, dict) and change.get("fromType") == FLOAT.type for change in changes
    )


def _float_lower(array: Array) -> Array:
    return pc.min_element_wise(array, _through_float(array), skip_nulls=False)


def _float_upper(array: Array) -> Array:
    return pc.max_element_wise(array, _through_float(array), skip_nulls=False)


def _through_float(array: Array) -> Array:
    """The float that a bound stood for when the column was one: 0.1 is 0.10000000149011612."""
    return array.cast(pa.float32(), safe=False).cast(pa.float64())


def _decimal_correction(data_type: PrimitiveType) -> Correction:
    """The correction of decimals that delta-rs and its users may have written as doubles.

    Such a bound can be off by half a unit in the double's last place, on the wrong side. delta-rs
    1.6 even writes the limits of int64 for decimals without fraction that are beyond them.
    """
    # Of its digits: arithmetic of decimals, and even a sign, rounds what has more than 28.
    most = Decimal((0, (9,) * data_type.precision, -data_type.scale))

    def lower(array: Array) -> Array:
        return _widened(array, data_type, -1, pa.scalar(most.copy_negate(), _wide(data_type)))

    def upper(array: Array) -> Array:
        return _widened(array, data_type, 1, pa.scalar(most, _wide(data_type)))

    return Correction(lower, upper)


def _wide(data_type: PrimitiveType) -> pa.DataType:
    return pa.decimal256(data_type.precision + 1, data_type.scale)


def _widened(array: Array, data_type: PrimitiveType, sign: int, limit: Any) -> Array:
    suspect = _may_be_rounded(array, data_type)
    if not pc.any(suspect).as_py():
        return array
    wide = _wide(data_type)
    margin = pc.multiply(pc.abs(array.cast(pa.float64())), sign * _DOUBLE_ERROR)
    # Rounded to the column's scale, a margin of less than one unit there is none.
    margin = pc.cast(margin, pa.decimal256(data_type.precision, data_type.scale))
    moved = pc.add(array.cast(margin.type), margin).cast(wide)
    choose = pc.max_element_wise if sign < 0 else pc.min_element_wise
    moved = choose(moved, limit, skip_nulls=False).cast(array.type)
    widened = pc.if_else(suspect, moved, array)
    if data_type.scale:
        return widened
    ends = pa.array([Decimal(_MIN_INT64), Decimal(_MAX_INT64)], pa.decimal128(38, 0))
    clamped = pc.is_in(array.cast(pa.decimal128(38, 0)), value_set=ends)
    return pc.if_else(clamped, pa.scalar(None, array.type), widened)


def _may_be_rounded(array: Array, data_type: PrimitiveType) -> Array:
    """Mark values with so few digits that they may have been written as doubles."""
    digits = pc.replace_substring_regex(array.cast(pa.string()), r"E.*|^-|\.", "")
    digits = pc.utf8_length(pc.utf8_trim(digits, "0"))
    few = pc.less_equal(digits, pa.scalar(_MOST_DOUBLE_DIGITS, digits.type))
    if data_type.scale:
        return few
    # A whole number is written with all digits, however many of them the double knew.
    large = pc.greater(pc.abs(array.cast(pa.float64())), pa.scalar(float(_MAX_EXACT_DOUBLE)))
    return pc.or_(few, large)


_NONE: Final = Correction(_same, _same)
_MILLIS: Final = Correction(_same, _later)
_FORMER_FLOAT: Final = Correction(_float_lower, _float_upper)


def keeps_order(source: DataType, to: DataType) -> bool:
    """Return whether a cast keeps the order of values, and never fails between two of them.

    Texts and numbers have different orders, and a narrowing cast has no value for some.
    """
    if source == to:
        return True
    if not isinstance(source, PrimitiveType) or not isinstance(to, PrimitiveType):
        return False
    one, other = source.primitive, to.primitive
    if one.family is other.family is Family.MOMENT:
        return True
    if other.family is Family.FLOATING:
        return one.family in _EXACT or source == FLOAT
    if one.family is other.family is Family.INTEGRAL:
        return one.bits <= other.bits
    return to.is_decimal and one.family in _EXACT and _fits_decimal(source, to)


def _fits_decimal(source: PrimitiveType, to: PrimitiveType) -> bool:
    whole = to.precision - to.scale
    if source.is_decimal:
        return source.precision - source.scale <= whole and source.scale <= to.scale
    return source.primitive.digits <= whole


_EXACT: Final = frozenset({Family.INTEGRAL, Family.DECIMAL})
