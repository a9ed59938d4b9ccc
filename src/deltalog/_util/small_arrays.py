"""Arrow arrays of a few Python values, made without pandas.

The first `pa.array` or `pa.scalar` of a process imports pandas, if it is installed, which takes
0.15 s: most of the time of opening a small table. So the reader of a log makes its arrays here.

Protocol: none
"""

from __future__ import annotations

import sys
from array import array
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_VALUES: Final = 1_000
"""The maximum number of values; from there on, `pa.array` is faster even with the import."""
_MOST_BYTES: Final = 1 << 30
_ZERO: Final = Decimal(0)


def small_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Return `pa.array(values, kind)`, without importing pandas if the values are few and simple.

    Args:
        values: strings, numbers or booleans of the type `kind`, or dicts for a struct of
            these; None is NULL. `pa.array` converts or refuses other values.
        kind: the type.

    Raises:
        pa.ArrowException, TypeError, ValueError, OverflowError: see `pa.array`.
    """
    if "pandas" in sys.modules or len(values) > _MOST_VALUES or sys.byteorder != "little":
        return pa.array(values, kind)
    found = _made(values, kind)
    return pa.array(values, kind) if found is None else found


def small_scalar(value: Any, kind: pa.DataType) -> pa.Scalar[Any]:
    """Return `pa.scalar(value, kind)`; see `small_array`."""
    if "pandas" in sys.modules:
        return pa.scalar(value, kind)
    found: pa.Scalar[Any] = small_array([value], kind)[0]
    return found


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return `schema.empty_table()` without importing pandas."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _made(values: Sequence[Any], kind: Any) -> pa.Array[Any] | None:
    """Return the array, or None if `pa.array` must make it."""
    types = set(map(type, values)) - {type(None)}
    if not types:
        nulls: pa.Array[Any] = pa.nulls(len(values), kind)
        return nulls
    if pt.is_struct(kind):
        return _structs(values, kind) if types <= {dict} else None
    if pt.is_string(kind):
        return _strings(values, kind) if types <= {str} else None
    if pt.is_binary(kind):
        return _joined(values, kind) if types <= {bytes} else None
    if pt.is_boolean(kind):
        return _booleans(values) if types <= {bool} else None
    if pt.is_int64(kind) or pt.is_int32(kind):
        return _integers(values, kind) if types <= {int} else None
    if pt.is_float64(kind):
        return _doubles(values) if types <= {float} else None
    if pt.is_decimal128(kind):
        return _decimals(values, kind) if types <= {Decimal} else None
    return None


def _structs(values: Sequence[Any], kind: Any) -> pa.Array[Any] | None:
    fields = [kind.field(number) for number in range(kind.num_fields)]
    children = [
        _made([None if value is None else value.get(field.name) for value in values], field.type)
        for field in fields
    ]
    made = [child for child in children if child is not None]
    if len(made) < len(fields):
        return None
    return pa.Array.from_buffers(kind, len(values), [_validity(values)], children=made)


def _strings(values: Sequence[Any], kind: Any) -> pa.Array[Any] | None:
    try:
        encoded = [None if value is None else value.encode() for value in values]
    except UnicodeEncodeError:  # a lone surrogate, which `pa.array` refuses
        return None
    return _joined(encoded, kind)


def _joined(parts: Sequence[bytes | None], kind: Any) -> pa.Array[Any] | None:
    stored = [part or b"" for part in parts]
    ends = list(accumulate(map(len, stored), initial=0))
    if ends[-1] > _MOST_BYTES:
        return None
    buffers = [_validity(parts), pa.py_buffer(array("i", ends)), pa.py_buffer(b"".join(stored))]
    return pa.Array.from_buffers(kind, len(parts), buffers)


def _integers(values: Sequence[Any], kind: Any) -> pa.Array[Any] | None:
    numbers = [0 if value is None else value for value in values]
    most = (1 << (kind.bit_width - 1)) - 1
    if numbers and not -most - 1 <= min(numbers) <= max(numbers) <= most:
        return None
    data = pa.py_buffer(array("q" if pt.is_int64(kind) else "i", numbers))
    return pa.Array.from_buffers(kind, len(values), [_validity(values), data])


def _doubles(values: Sequence[Any]) -> pa.Array[Any]:
    data = pa.py_buffer(array("d", [0.0 if value is None else value for value in values]))
    return pa.Array.from_buffers(pa.float64(), len(values), [_validity(values), data])


def _decimals(values: Sequence[Any], kind: Any) -> pa.Array[Any] | None:
    stored = []
    for value in values:
        sign, digits, exponent = (value or _ZERO).as_tuple()
        zeros = exponent + kind.scale if isinstance(exponent, int) else -1
        # Arrow refuses or converts values with more digits, and infinity.
        if zeros < 0 or len(digits) + zeros > kind.precision:
            return None
        number = int("".join(map(str, digits))) * 10**zeros
        stored.append((-number if sign else number).to_bytes(16, "little", signed=True))
    buffers = [_validity(values), pa.py_buffer(b"".join(stored))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def _booleans(values: Sequence[Any]) -> pa.Array[Any]:
    buffers = [_validity(values), _bits([bool(value) for value in values])]
    return pa.Array.from_buffers(pa.bool_(), len(values), buffers)


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    if None not in values:
        return None
    return _bits([value is not None for value in values])


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    number = sum(1 << place for place, flag in enumerate(flags) if flag)
    return pa.py_buffer(number.to_bytes((len(flags) + 7) // 8, "little"))
