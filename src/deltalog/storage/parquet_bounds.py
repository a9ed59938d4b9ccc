"""Bounds of columns as Parquet footers store them, decoded without pyarrow's statistics.

Every length is checked: a damaged footer gives no bound, and never a wrong one.

Protocol: none; Apache Parquet's `parquet.thrift` (Statistics, ColumnOrder, LogicalType)
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Physical types of numbers, and their bytes.
_WIDTHS: Final = {"INT32": 4, "INT64": 8}
_BYTES: Final = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
_DECIMAL_BYTES: Final = 32
_EXACT: Final = Context(prec=80)


def decode_bounds(
    stored: Sequence[bytes | None],
    *,
    are_ordered: bool,
    physical_type: str,
    arrow_type: pa.DataType,
) -> pa.Array[Any] | None:
    """The bounds of a column, NULL where there is none; None if its bounds are of no use.

    Args:
        stored: as the physical type is encoded (PLAIN, without a length).
        are_ordered: whether they follow the order of the logical type. Those of old writers follow
            that of signed numbers, which is another one for texts and unsigned numbers.
        physical_type: Parquet's name.
        arrow_type: which pyarrow reads the column as.
    """
    found = _decoder(physical_type, arrow_type)
    if found is None:
        return None
    decode, value_type, needs_order = found
    if needs_order and not are_ordered:
        return None
    try:
        values = [None if text is None else decode(text) for text in stored]
        array: pa.Array[Any] = pa.array(values, value_type)
        return array if value_type == arrow_type else array.cast(arrow_type)
    except (pa.ArrowException, ValueError, ArithmeticError):
        return None


def _decoder(
    physical: str, kind: pa.DataType
) -> tuple[Callable[[bytes], Any], pa.DataType, bool] | None:
    """How a bound is decoded, what Arrow makes of it, and whether it needs the logical order.

    Floating-point columns have none: writers leave NaN out of their bounds.
    """
    width = _WIDTHS.get(physical)
    if isinstance(
        kind, pa.Decimal32Type | pa.Decimal64Type | pa.Decimal128Type | pa.Decimal256Type
    ):
        if width is None and physical not in _BYTES:
            return None
        scale = kind.scale
        read = _unscaled if width is None else _number(width, signed=True)
        return lambda data: Decimal(read(data)).scaleb(-scale, _EXACT), kind, width is None
    if width is not None:
        if pt.is_unsigned_integer(kind):
            return _number(width, signed=False), kind, True
        if pt.is_signed_integer(kind):
            return _number(width, signed=True), kind, False
        if pt.is_date32(kind) or pt.is_timestamp(kind) or pt.is_duration(kind):
            return _number(width, signed=True), pa.int32() if width == 4 else pa.int64(), False
        return None
    if physical == "BOOLEAN" and pt.is_boolean(kind):
        return _truth, kind, False
    if physical == "BYTE_ARRAY" and (pt.is_string(kind) or pt.is_large_string(kind)):
        return _same, pa.binary(), True
    if physical == "BYTE_ARRAY" and (pt.is_binary(kind) or pt.is_large_binary(kind)):
        return _same, pa.binary(), True
    return None


def _number(width: int, *, signed: bool) -> Callable[[bytes], int]:
    def read(data: bytes) -> int:
        if len(data) != width:
            raise ValueError(f"expected {width} bytes, found {len(data)}")
        return int.from_bytes(data, "little", signed=signed)

    return read


def _unscaled(data: bytes) -> int:
    if not 0 < len(data) <= _DECIMAL_BYTES:
        raise ValueError(f"expected 1 to {_DECIMAL_BYTES} bytes, found {len(data)}")
    return int.from_bytes(data, "big", signed=True)


def _truth(data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError(f"expected a byte, found {len(data)}")
    return bool(data[0] & 1)


def _same(data: bytes) -> bytes:
    return data
