"""Exact conversions between decimal types, and rounding to fewer decimal places.

Arrow multiplies a value when the scale grows, and its check misses some products that overflow
(pyarrow 26). So its cast returns wrong values instead of an error. Its kernels round decimals of
256 bits; numbers of 64 bits take about a tenth of the time.
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from deltalog._util.kernels import Array, compute, pc

_EXACT: Final = Context(prec=160, traps=[Inexact, InvalidOperation])
_DIGITS: Final = {32: 9, 64: 18, 128: 38, 256: 76}
"""The maximum number of digits by the number of bits."""
_MOST: Final = 10**18
"""Whole numbers below it, and their sums, have less than 64 bits."""
_BLOCK_ROWS: Final = 16_384


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


def num_decimals(value: Decimal) -> int:
    """Return the number of digits after the point, without zeros at the end."""
    _, digits, exponent = value.as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    return -(int(exponent) + len(digits) - len(shown)) if shown else 0


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


# --- Rounding


def rounded(array: Array, to: Any) -> Array | None:
    """Return decimals in a type with fewer decimal places; halves are rounded away from zero.

    Args:
        array: the decimals, of 128 bits.
        to: the new type, of 128 bits.

    Returns:
        None if a value has more than 18 digits, or does not fit the new type, or if NumPy is not
        installed.

    Cost: a few passes over the column.
    """
    kind: Any = array.type
    unit = 10 ** (kind.scale - to.scale)
    if not 1 < unit < _MOST or not len(array) or not pa.types.is_decimal128(kind):
        return None
    try:
        import numpy as np  # noqa: PLC0415  # pyarrow does not require it
    except ImportError:
        return None
    # The values under nulls are arbitrary, so they may not decide.
    if array.null_count and not _fits(_largest(array), unit, to):
        return None
    halves = np.frombuffer(array.buffers()[1] or b"", np.int64).reshape(-1, 2)
    halves = halves[array.offset : array.offset + len(array)]
    buffer = pa.allocate_buffer(16 * len(array))  # the pool of Arrow reuses memory
    made = np.frombuffer(memoryview(buffer), np.int64).reshape(-1, 2)
    # Blocks stay in the processor's cache, and reuse their memory.
    low, signs = np.empty((2, _BLOCK_ROWS), np.int64)
    for start in range(0, len(array), _BLOCK_ROWS):
        block, target = (rows[start : start + _BLOCK_ROWS] for rows in (halves, made))
        value, sign = low[: len(block)], signs[: len(block)]
        np.copyto(value, block[:, 0])
        np.right_shift(value, 63, out=sign)
        np.bitwise_xor(value, sign, out=value)  # with the subtraction: the absolute value
        np.subtract(value, sign, out=value)
        if not array.null_count:
            # The absolute value of the smallest number of 64 bits is negative.
            is_short = np.array_equal(block[:, 1], sign) and value.min() >= 0
            largest = int(value.max()) if is_short else _MOST
            if not _fits(largest, unit, to):
                return None
        np.add(value, unit // 2, out=value)
        np.floor_divide(value, unit, out=value)
        np.bitwise_xor(value, sign, out=value)
        np.subtract(value, sign, out=value)
        target[:, 0] = value
        np.right_shift(value, 63, out=target[:, 1])
    validity = compute.is_valid(array).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(to, len(array), [validity, buffer])


def _fits(largest: int, unit: int, to: Any) -> bool:
    """Return whether a number has at most 18 digits, and fits a type after rounding to a unit."""
    return largest < _MOST and bool((largest + unit // 2) // unit < 10**to.precision)


def rounded_wide(exact: Array, scale: int) -> Array:
    """Return decimals with at most `scale` decimal places; halves are rounded away from zero.

    Arrow's `round` is wrong for values of more than 128 bits (pyarrow 26), so this function adds a
    half and truncates.
    """
    arrow_type: Any = exact.type
    if arrow_type.scale <= scale:
        return exact
    half = Decimal(5).scaleb(-scale - 1)
    kind = pa.decimal256(scale + 1, scale + 1)
    is_negative = compute.less(exact, pa.scalar(0, arrow_type))
    step = compute.if_else(is_negative, pa.scalar(-half, kind), pa.scalar(half, kind))
    exact = pc.add_checked(
        compute.cast(exact, pa.decimal256(arrow_type.precision, arrow_type.scale)), step
    )
    return truncated(exact, scale)


def truncated(exact: Array, scale: int) -> Array:
    """Truncate decimals to `scale` decimal places.

    Arrow's division of values of more than 128 bits is exact only for divisors of 32 bits (pyarrow
    26), so this function removes at most 9 places at once.
    """
    arrow_type: Any = exact.type
    for places in range(arrow_type.scale - 9, scale, -9):
        exact = _cut(exact, places)
    return _cut(exact, scale)


def _cut(exact: Array, scale: int) -> Array:
    arrow_type: Any = exact.type
    precision = max(arrow_type.precision, scale + 1)
    return compute.cast(exact, pa.decimal256(precision, scale), safe=False)


def _largest(array: Array) -> int:
    """Return the largest absolute value, as the whole number that is stored."""
    kind: Any = array.type
    ends: dict[str, Decimal | None] = compute.min_max(array).as_py()
    return max(
        int(end.copy_abs().scaleb(kind.scale, _EXACT)) if end is not None else 0
        for end in ends.values()
    )
