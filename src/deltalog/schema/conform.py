"""Converting Arrow data to the exact types of a table.

Contains all conversions of incoming data: encodings are decoded, and widths and units are converted
if no value changes. If a value would change, the error names the column.

Protocol: Primitive Types
"""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.decimals import num_decimals
from deltalog._util.escaping import name_key
from deltalog._util.kernels import arrow, compute, pc
from deltalog.errors import InvalidInputError, SchemaMismatchError
from deltalog.schema.arrow import (
    VARIANT,
    VARIANT_STORAGE,
    check_extension,
    from_arrow_type,
    is_list,
)
from deltalog.schema.primitives import primitive_of_arrow
from deltalog.schema.primitives.moments import LIKE_UTC
from deltalog.schema.types import (
    INTEGER,
    LONG,
    SHORT,
    ArrayType,
    MapType,
    PrimitiveType,
    StructType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.schema.types import DataType

Data = TypeVar("Data", pa.Table, pa.RecordBatch)
Path = tuple[str, ...]


def conform(data: Data, schema: pa.Schema) -> Data:
    """Return the same rows with the columns, order and types of `schema`.

    Columns are matched by exact name; columns that the data does not have are filled with NULL.

    Args:
        data: rows in any Arrow encoding: dictionary, view, large and run-end encoded arrays, other
            time units, unsigned integers, other widths of integers and decimals.
        schema: the result of `to_arrow_schema`.

    Raises:
        SchemaMismatchError: the data has a column that the schema lacks, a type is incompatible, or
            a value cannot be converted exactly.

    Cost: a column that already has its target type is not copied.
    """
    known = set(schema.names)
    unknown = [name for name in data.schema.names if name not in known]
    if unknown:
        raise SchemaMismatchError(
            f"the data has column(s) {', '.join(map(repr, unknown))} that the schema lacks: "
            f"expected {', '.join(map(repr, schema.names))}"
        )
    columns: list[Any] = []
    for field in schema:
        found = data.schema.get_all_field_indices(field.name)
        if len(found) > 1:
            raise SchemaMismatchError(f"the data has {len(found)} columns named {field.name!r}")
        if found:
            columns.append(conform_array(data.column(found[0]), field.type, column=field.name))
        else:
            columns.append(_nulls(data.num_rows, field.type))
    if isinstance(data, pa.Table):
        return pa.Table.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def conform_array(array: Any, target: pa.DataType, *, column: str = "") -> Any:
    """Convert an array or chunked array to another type, without changing values.

    Raises:
        SchemaMismatchError: the types are incompatible, or a value cannot be converted exactly.
    """
    if array.type == target:
        return array
    path = (column,) if column else ()
    if isinstance(array, pa.ChunkedArray):
        chunks = [_conform(chunk, target, path) for chunk in array.chunks]
        return arrow.chunked_array(chunks, target)
    return _conform(array, target, path)


def check_zones(found: Any, target: DataType, path: Path) -> None:
    """Raise if a column of local times would get timestamps of a time zone other than UTC.

    `conform_array` raises the same error; this is for rows that were converted to UTC before.

    Args:
        found: the Arrow type of the rows.
        target: the type of the column.
        path: the path of the column.

    Raises:
        SchemaMismatchError: it would, at any depth.
    """
    match target:
        case StructType() if pt.is_struct(found):
            known = {name_key(field.name): field for field in target}
            for part in found:
                if (field := known.get(name_key(part.name))) is not None:
                    check_zones(part.type, field.type, (*path, field.name))
        case ArrayType() if is_list(found):
            check_zones(found.value_type, target.element_type, (*path, "element"))
        case MapType() if pt.is_map(found):
            check_zones(found.key_type, target.key_type, (*path, "key"))
            check_zones(found.item_type, target.value_type, (*path, "value"))
        case PrimitiveType() if target.primitive.has_zone is False and pt.is_timestamp(found):
            if found.tz not in LIKE_UTC:
                raise _mismatch(found, pa.timestamp("us"), path)


def _conform(array: Any, target: Any, path: Path) -> Any:
    if isinstance(array.type, pa.BaseExtensionType):
        check_extension(array.type, path)
    array = _plain(array)
    found = array.type
    if found == target:
        return array
    if pt.is_null(found):
        return _nulls(len(array), target)
    if isinstance(target, pa.BaseExtensionType):
        return _conform_variant(array, target, path)
    for applies, nested in _NESTED:
        if applies(target):
            return nested(array, target, path)
    row = primitive_of_arrow(target, declared=True)
    if row is None:
        raise _mismatch(found, target, path)
    return _checked(row[0].codec.conform, array, target, path)


def _plain(array: Any) -> Any:
    found = array.type
    if pt.is_dictionary(found):
        return _plain(_decoded(array))
    if pt.is_run_end_encoded(found):
        return _plain(compute.run_end_decode(array))
    if isinstance(found, pa.BaseExtensionType) and found.extension_name != VARIANT.extension_name:
        return _plain(array.storage)
    return array


def _decoded(array: Any) -> Any:
    """Decode a dictionary; pyarrow cannot select values of views, which Polars uses."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    kind = plain.get(array.type.value_type)
    if kind is None:
        return array.dictionary_decode()
    values = array.dictionary.cast(kind)
    return pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()


def _conform_variant(array: Any, target: Any, path: Path) -> Any:
    storage = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    names = {field.name for field in storage.type} if pt.is_struct(storage.type) else set()
    if names != {"metadata", "value"}:
        raise _mismatch(array.type, target, path)
    return pa.ExtensionArray.from_storage(target, _conform(storage, VARIANT_STORAGE, path))


def _conform_struct(array: Any, target: Any, path: Path) -> Any:
    if not pt.is_struct(array.type):
        raise _mismatch(array.type, target, path)
    names = [field.name for field in array.type]
    wanted = [field.name for field in target]
    if len(set(names)) < len(names) or not set(names) <= set(wanted):
        raise _mismatch(array.type, target, path)
    if not names or not wanted:
        return array.cast(target)
    # `flatten` respects the array's offset, and returns NULL for the fields of NULL structs.
    parts = dict(zip(names, array.flatten(), strict=True))
    children = [
        _conform(parts[field.name], field.type, (*path, field.name))
        if field.name in parts
        else _nulls(len(array), field.type)
        for field in target
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _conform_list(array: Any, target: Any, path: Path) -> Any:
    found = array.type
    if not is_list(found):
        raise _mismatch(found, target, path)
    if not (pt.is_list(found) or pt.is_large_list(found)):
        array = _plain_list(array)
    offsets, values = spanned(array, array.values)
    values = _conform(values, target.value_type, (*path, "element"))
    large = pt.is_large_list(target)
    kind: Any = pa.LargeListArray if large else pa.ListArray
    offsets = _checked(_cast, offsets, pa.int64() if large else pa.int32(), path)
    mask = array.is_null() if array.null_count else None
    return kind.from_arrays(offsets, values, type=target, mask=mask)


def _plain_list(array: Any) -> Any:
    # The lists of a list view may overlap or be in any order. pyarrow 26 casts such an array to an
    # invalid array, so concatenate the lists here.
    value_type = array.type.value_type
    sizes = pc.list_value_length(array).fill_null(0).cast(pa.int64())
    ends = pc.cumulative_sum(sizes)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    mask = array.is_null() if array.null_count else None
    return pa.LargeListArray.from_arrays(
        offsets, array.flatten(), type=pa.large_list(value_type), mask=mask
    )


def _conform_map(array: Any, target: Any, path: Path) -> Any:
    if not pt.is_map(array.type):
        raise _mismatch(array.type, target, path)
    offsets, keys = spanned(array, array.keys)
    _, items = spanned(array, array.items)
    keys = _conform(keys, target.key_type, (*path, "key"))
    items = _conform(items, target.item_type, (*path, "value"))
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=mask)


def spanned(array: Any, values: Any) -> tuple[Any, Any]:
    """Return offsets that begin at 0, and only the values that they refer to, even for a slice."""
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, offsets[0]), values.slice(first, last - first)


def _nulls(count: int, target: Any) -> Any:
    return pa.nulls(count, target)


def _mismatch(found: Any, target: Any, path: Path) -> SchemaMismatchError:
    at = f" of column {'.'.join(path)!r}" if path else ""
    advice = ""
    if pt.is_timestamp(found) and pt.is_timestamp(target):
        advice = (
            f": they have the time zone {found.tz!r}, and the column stores times without one; "
            "remove the zone to store the local times, as with value.replace(tzinfo=None) or "
            "dt.tz_localize(None) of pandas, or convert them to UTC"
        )
    return SchemaMismatchError(
        f"cannot store {_named(found)} values{at} as {_named(target, fine=True)}{advice}"
    )


def _named(arrow_type: pa.DataType, *, fine: bool = False) -> str:
    """Return the name of Delta's type for an Arrow type; the name in Arrow if there is none.

    With `fine`, as for the type of a column, nanoseconds are a type of their own.
    """
    if pt.is_unsigned_integer(arrow_type):
        return str(arrow_type)
    try:
        return str(from_arrow_type(arrow_type, declared=True, fine=fine))
    except InvalidInputError:
        return str(arrow_type)


_UNSIGNED: Final = (
    "; Delta has no unsigned types: for a new table, cast the column to decimal(20,0) or to a "
    "string first"
)


def _checked(convert: Callable[[Any, Any], Any], array: Any, target: Any, path: Path) -> Any:
    try:
        result = convert(array, target)
    except pa.ArrowInvalid as error:
        at = f" of column {'.'.join(path)!r}" if path else ""
        raise SchemaMismatchError(
            f"cannot store {_named(array.type)} values{at} as {_named(target, fine=True)} without "
            f"changing them: {_problem(convert, array, target, error, path)}"
            f"{_UNSIGNED if pt.is_uint64(array.type) else ''}"
        ) from error
    if result is None:
        raise _mismatch(array.type, target, path)
    return result


def _problem(
    convert: Callable[[Any, Any], Any], array: Any, target: Any, error: Exception, path: Path
) -> str:
    """Return the first number that cannot be converted, and what to do; Arrow's text for others."""
    is_number = pt.is_floating(array.type) or _is_exact(array.type)
    if not is_number or not _is_exact(target):
        return str(error)
    while len(array) > 1:
        half = array.slice(0, len(array) // 2)
        try:
            convert(half, target)
        except pa.ArrowInvalid:
            array = half
        else:
            array = array.slice(len(half))
    value = array[0].as_py()
    scale = target.scale if pt.is_decimal(target) else 0
    if not isfinite(value):
        return f"{value} is no {_named(target)}; use None for missing values"
    if num_decimals(Decimal(str(value))) > scale:
        digits = "1 digit" if scale == 1 else f"{scale} digits"
        return f"round {value} to " + (f"{digits} after the point" if scale else "a whole number")
    advice = advice_to_widen(Decimal(str(value)), target, path)
    return f"{value} is out of range of {_named(target)}{advice}"


def advice_to_widen(value: Decimal, target: Any, path: Path) -> str:
    """Return how to widen a column so that it can store a number; empty if nothing can.

    Args:
        value: the number.
        target: the Arrow type of the column.
        path: the column.
    """
    if not path:
        return ""
    wider: object = None
    digits = max(value.adjusted() + 1, 1)
    if pt.is_decimal(target) and digits + target.scale <= _MOST_DIGITS:
        wider = decimal_type(digits + target.scale, target.scale)
    elif pt.is_integer(target):
        wider = next(
            (kind for kind, bits in _WHOLE.items() if -(1 << bits) <= value < 1 << bits), None
        )
        if wider is None and digits <= _MOST_DIGITS:
            wider = decimal_type(max(digits, 20), 0)
    if wider is None:
        return ""
    call = f"alter.set_column_type({'.'.join(path)!r}, {str(wider)!r})"
    return f"; {call} widens the column, if the table property delta.enableTypeWidening is 'true'"


_WHOLE: Final = {SHORT: 15, INTEGER: 31, LONG: 63}
"""A whole type → the bits of its numbers without the sign."""
_MOST_DIGITS: Final = 38


def _is_exact(kind: Any) -> bool:
    return pt.is_decimal(kind) or pt.is_integer(kind)


def _cast(array: Any, target: Any) -> Any:
    return array.cast(target)


_NESTED: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Any, Path], Any]], ...]] = (
    (pt.is_struct, _conform_struct),
    (pt.is_map, _conform_map),
    (is_list, _conform_list),
)
