"""Rounding of decimals to fewer decimal places.

Arrow's kernels round decimals of 256 bits. Numbers of 64 bits take about a tenth of the time.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import compute, pc

if TYPE_CHECKING:
    from deltalog._util.kernels import Array

_EXACT: Final = Context(prec=80)
_MOST: Final = 10**18
"""Whole numbers below it, and their sums, have less than 64 bits."""


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
    largest = _largest(array)
    if largest >= _MOST or (largest + unit // 2) // unit >= 10**to.precision:
        return None
    halves = np.frombuffer(array.buffers()[1] or b"", np.int64).reshape(-1, 2)
    low = halves[array.offset : array.offset + len(array), 0]
    magnitudes = (np.abs(low) + unit // 2) // unit
    made = np.empty((len(array), 2), np.int64)
    np.multiply(magnitudes, np.sign(low), out=made[:, 0])
    made[:, 1] = made[:, 0] >> 63
    validity = compute.is_valid(array).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(to, len(array), [validity, pa.py_buffer(made.data)])


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
