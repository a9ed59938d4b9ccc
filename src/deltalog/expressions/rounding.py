"""Rounding of decimals to fewer decimal places, by numbers of 64 bits.

Arrow's kernels round decimals of 256 bits, which takes about ten times as long.
"""

from __future__ import annotations

from decimal import Context
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import compute

if TYPE_CHECKING:
    from decimal import Decimal

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


def _largest(array: Array) -> int:
    """Return the largest absolute value, as the whole number that is stored."""
    kind: Any = array.type
    ends: dict[str, Decimal | None] = compute.min_max(array).as_py()
    return max(
        int(end.copy_abs().scaleb(kind.scale, _EXACT)) if end is not None else 0
        for end in ends.values()
    )
