"""Convert leaf values of a data file to the table's current type.

Owns the conversions that a reader must make: widened types, variants of Arrow's string and binary
types, time units, INT96. A conversion that would change a value is an error.

Protocol: Type Widening, Primitive Types
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from deltalog.kernels import pc

if TYPE_CHECKING:
    from collections.abc import Callable

    # Arrow types and arrays are Any here: the stubs have a class for each kind, and these
    # functions choose by kind when they run.
    Adapter = Callable[[Any], pa.Array[Any]]


def promotion(found: Any, wanted: Any) -> Adapter | None:
    """Return a function that converts arrays of the leaf type `found` to `wanted`.

    Returns:
        None if the types are equal.

    Raises:
        TypeError: `found` cannot be read as `wanted`.

    Protocol: Type Widening
    """
    if found == wanted:
        return None
    if pt.is_dictionary(found):
        inner = promotion(found.value_type, wanted)
        return lambda array: _then(array.dictionary_decode(), inner)
    if isinstance(found, pa.BaseExtensionType):  # of a library that has told Arrow of its own
        inner = promotion(found.storage_type, wanted)
        return lambda array: _then(array.storage, inner)
    if pt.is_null(wanted):
        return lambda array: pa.nulls(len(array))
    if pt.is_null(found):
        return lambda array: pa.nulls(len(array), wanted)
    if pt.is_timestamp(wanted) and pt.is_timestamp(found):
        return _timestamps(found, wanted)
    if pt.is_duration(wanted) and pt.is_int64(found):
        return lambda array: array.view(wanted)
    if not _is_promotion(found, wanted):
        raise TypeError(f"{found} is no form of {wanted}")
    return lambda array: array.cast(wanted)


def _then(array: Any, adapter: Adapter | None) -> pa.Array[Any]:
    return array if adapter is None else adapter(array)


def _timestamps(found: Any, wanted: Any) -> Adapter:
    # A file's zone is only a label: instants are stored as UTC, and wall-clock times as if in UTC.
    naive = pa.timestamp(found.unit)
    target_unit = pa.timestamp(wanted.unit)

    def adapt(array: Any) -> pa.Array[Any]:
        plain = array.view(naive)
        if (
            naive.unit == "ns" and wanted.unit != "ns"
        ):  # Spark and the protocol know microseconds only
            plain = pc.floor_temporal(plain, unit="microsecond").cast(target_unit)
        elif naive != target_unit:
            plain = plain.cast(target_unit)
        shown: pa.Array[Any] = plain.view(wanted)
        return shown

    return adapt


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    return (
        pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind) or _is_bytes(kind)
    )


def _is_bytes(kind: pa.DataType) -> bool:
    return (
        pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_binary_view(kind)
        or pt.is_fixed_size_binary(kind)
    )


def _is_promotion(found: Any, wanted: Any) -> bool:
    if pt.is_integer(found):
        # Narrowing: some writers leave the integer width out of the file; the cast is checked.
        return pt.is_integer(wanted) or pt.is_floating(wanted) or pt.is_decimal(wanted)
    if pt.is_floating(found):
        return pt.is_floating(wanted)
    if pt.is_decimal(found):
        return pt.is_decimal(wanted)
    if pt.is_date(found):
        return pt.is_date(wanted) or (pt.is_timestamp(wanted) and wanted.tz is None)
    if _is_text_or_bytes(found):
        return pt.is_string(wanted) or (pt.is_binary(wanted) and _is_bytes(found))
    return False
