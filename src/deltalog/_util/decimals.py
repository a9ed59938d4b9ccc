"""Exact conversions between decimal types.

Arrow multiplies a value when the scale grows, and its check misses some products that overflow
(pyarrow 26). So its cast returns wrong values instead of an error.
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from deltalog._util.kernels import Array, compute

_EXACT: Final = Context(prec=160, traps=[Inexact, InvalidOperation])
_DIGITS: Final = {32: 9, 64: 18, 128: 38, 256: 76}
"""The maximum number of digits by the number of bits."""


def cast_decimals(array: Array, to: Any) -> Array:
    """Cast decimals to another decimal type.

    Raises:
        ArrowInvalid: a value is out of range, or has more decimal places than the type.
    """
    values, refused = fit_decimals(array, to)
    if refused is not None:
        row = compute.index(refused, pa.scalar(True)).as_py()  # noqa: FBT003  # a value
        raise pa.ArrowInvalid(f"Decimal value {array[row].as_py()} does not fit in {to}")
    return values


def fit_decimals(array: Array, to: Any) -> tuple[Array, Array | None]:
    """Cast decimals to another decimal type, and find the values that are out of range.

    Args:
        array: the decimals.
        to: the new decimal type.

    Returns:
        The values, with NULL for those out of range, and a mask of these rows; None instead of the
        mask if all values are in range.

    Raises:
        ArrowInvalid: a value in range has more decimal places than the type.

    Cost: a pass over the column; another one if the types allow values out of range.
    """
    if not _may_overflow(array.type, to):
        try:
            return array.cast(to), None
        except pa.ArrowInvalid:
            refused = _out_of_range(array, to)
            if refused is None:
                raise
    else:
        refused = _out_of_range(array, to)
        if refused is None:
            return array.cast(to), None
    return compute.if_else(refused, None, array).cast(to), refused


def parse_decimals(strings: Array, to: Any) -> Array:
    """Parse strings of a number, with or without an exponent, as decimals.

    Raises:
        ArrowInvalid: a value is out of range, or has more decimal places than the type.

    Cost: a pass over the column; by row if a value has an exponent or more than 38 digits.
    """
    plain = compute.match_substring_regex(strings, r"\A[+-]?[0-9]{0,38}(\.[0-9]*)?\z")
    if compute.all(plain, min_count=0).as_py():
        # 38 digits and 38 decimal places do not overflow 256 bits.
        return strings.cast(pa.decimal256(_DIGITS[256], to.scale)).cast(to)
    numbers = (None if one is None else _parse(one, to) for one in strings.to_pylist())
    return pa.array(numbers, to)


def _parse(string: str, to: Any) -> Decimal:
    try:
        return Decimal(string).quantize(Decimal(1).scaleb(-to.scale), context=_EXACT)
    except (Inexact, InvalidOperation) as error:
        raise pa.ArrowInvalid(f"{string!r} has more digits than {to}") from error


def _may_overflow(kind: Any, to: Any) -> bool:
    """Return whether a product may have more digits than the wider one of the two types."""
    most = _DIGITS[max(kind.bit_width, to.bit_width)]
    return bool(to.scale > kind.scale and kind.precision + to.scale - kind.scale > most)


def _out_of_range(array: Array, to: Any) -> Array | None:
    """Return a mask of the values that are out of range; None if there are none."""
    kind: Any = array.type
    largest = 10 ** max(to.precision - to.scale + kind.scale, 0) - 1
    if largest >= 10**kind.precision - 1:
        return None
    if kind.bit_width < 128:  # Arrow has no `abs` for such types
        kind = pa.decimal128(kind.precision, kind.scale)
        array = array.cast(kind)
    limit = pa.scalar(Decimal(largest).scaleb(-kind.scale, _EXACT), kind)
    refused = compute.greater(compute.abs(array), limit)
    return refused if compute.any(refused).as_py() else None
