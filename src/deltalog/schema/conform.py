"""Arrow data of any flavour in the types that a table has.

Owns every conversion of data that comes in: encodings are undone, widths and units change if no
value does. What would change a value is an error that names the column.

Protocol: Primitive Types
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from deltalog.errors import SchemaMismatchError
from deltalog.kernels import arrow, compute
from deltalog.schema.arrow import VARIANT, VARIANT_STORAGE, is_list

if TYPE_CHECKING:
    from collections.abc import Callable

Data = TypeVar("Data", pa.Table, pa.RecordBatch)
Path = tuple[str, ...]


def conform(data: Data, schema: pa.Schema) -> Data:
    """The same rows with the columns, order and types of `schema`.

    Columns are matched by exact name; what the data lacks is NULL.

    Args:
        data: rows in any flavour of Arrow: dictionary, view, large and run-end encoded arrays,
            other time units, unsigned integers, other widths of integers and decimals.
        schema: of `to_arrow_schema`.

    Raises:
        SchemaMismatchError: a column is too many, its type is another kind of thing, or a value
            does not fit the type exactly.

    Cost: what has its type already is not copied.
    """
    unknown = [name for name in data.schema.names if name not in schema.names]
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
    """An array or chunked array with the same values in another type.

    Raises:
        SchemaMismatchError: the type is another kind of thing, or a value does not fit exactly.
    """
    if array.type == target:
        return array
    path = (column,) if column else ()
    if isinstance(array, pa.ChunkedArray):
        chunks = [_conform(chunk, target, path) for chunk in array.chunks]
        return arrow.chunked_array(chunks, target)
    return _conform(array, target, path)


def _conform(array: Any, target: Any, path: Path) -> Any:
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
    for applies, convert in _LEAVES:
        if applies(target):
            return _checked(convert, array, target, path)
    raise _mismatch(found, target, path)


def _plain(array: Any) -> Any:
    found = array.type
    if pt.is_dictionary(found):
        return _plain(array.dictionary_decode())
    if pt.is_run_end_encoded(found):
        return _plain(compute.run_end_decode(array))
    if isinstance(found, pa.BaseExtensionType) and found.extension_name != VARIANT.extension_name:
        return _plain(array.storage)
    return array


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
    # Flattening honours slices and puts NULL where the struct is NULL: what lies there may not
    # even convert.
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
    offsets, values = _span(array, array.values)
    values = _conform(values, target.value_type, (*path, "element"))
    large = pt.is_large_list(target)
    kind: Any = pa.LargeListArray if large else pa.ListArray
    offsets = _checked(_cast, offsets, pa.int64() if large else pa.int32(), path)
    mask = array.is_null() if array.null_count else None
    return kind.from_arrays(offsets, values, type=target, mask=mask)


def _plain_list(array: Any) -> Any:
    # Casting a list view trusts offsets that may overlap or lie in any order (pyarrow 26 gives an
    # invalid array), so the lists are laid out one after another here.
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
    offsets, keys = _span(array, array.keys)
    _, items = _span(array, array.items)
    keys = _conform(keys, target.key_type, (*path, "key"))
    items = _conform(items, target.item_type, (*path, "value"))
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=mask)


def _span(array: Any, values: Any) -> tuple[Any, Any]:
    """Offsets from 0 on, and just the values that they span: a slice may be a small part."""
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, offsets[0]), values.slice(first, last - first)


def _nulls(count: int, target: Any) -> Any:
    return pa.nulls(count, target)


def _mismatch(found: Any, target: Any, path: Path) -> SchemaMismatchError:
    at = f" of column {'.'.join(path)!r}" if path else ""
    return SchemaMismatchError(f"cannot store {found} values{at} as {target}")


def _checked(convert: Callable[[Any, Any], Any], array: Any, target: Any, path: Path) -> Any:
    try:
        result = convert(array, target)
    except pa.ArrowInvalid as error:
        at = f" of column {'.'.join(path)!r}" if path else ""
        raise SchemaMismatchError(
            f"cannot store {array.type} values{at} as {target} without changing them: {error}"
        ) from error
    if result is None:
        raise _mismatch(array.type, target, path)
    return result


def _cast(array: Any, target: Any) -> Any:
    return array.cast(target)


def _to_integer(array: Any, target: Any) -> Any:
    found = array.type
    exact = pt.is_integer(found) or pt.is_floating(found) or pt.is_decimal(found)
    return array.cast(target) if exact else None


def _to_floating(array: Any, target: Any) -> Any:
    found = array.type
    if not (pt.is_integer(found) or pt.is_floating(found)):
        return None
    result = array.cast(target)
    if pt.is_floating(found) and found.bit_width > target.bit_width:
        # A double is rounded to the nearest float, as in Spark; it must not become infinite.
        overflow = pc.and_(pc.is_finite(array), pc.invert(pc.is_finite(result)))
        if pc.any(overflow).as_py():
            raise pa.ArrowInvalid("a value is out of range")
    return result


def _to_decimal(array: Any, target: Any) -> Any:
    found = array.type
    if pt.is_integer(found):
        # A direct cast asks for the precision that any value of the width may need.
        return array.cast(pa.decimal256(76, target.scale)).cast(target)
    return array.cast(target) if pt.is_decimal(found) else None


def _to_date(array: Any, target: Any) -> Any:
    return array.cast(target) if pt.is_date(array.type) else None


def _to_timestamp(array: Any, target: Any) -> Any:
    found = array.type
    if pt.is_date(found):
        return array.cast(target) if target.tz is None else None
    if not pt.is_timestamp(found):
        return None
    if target.tz is None and found.tz not in {None, "UTC", "Etc/UTC", "+00:00", "Z"}:
        return None  # whose wall clock?
    naive = pa.timestamp(target.unit)
    # A zone is a label on instants in UTC: changing it converts nothing, and a naive time counts
    # as UTC.
    return array.view(pa.timestamp(found.unit)).cast(naive).view(target)


def _to_text(array: Any, target: Any) -> Any:
    return array.cast(target) if _is_text(array.type) or _is_bytes(array.type) else None


def _to_bytes(array: Any, target: Any) -> Any:
    return array.cast(target) if _is_bytes(array.type) else None


def _is_text(kind: Any) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)


def _is_bytes(kind: Any) -> bool:
    return (
        pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_binary_view(kind)
        or pt.is_fixed_size_binary(kind)
    )


_LEAVES: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]], ...]] = (
    (pt.is_integer, _to_integer),
    (pt.is_floating, _to_floating),
    (pt.is_decimal, _to_decimal),
    (pt.is_date, _to_date),
    (pt.is_timestamp, _to_timestamp),
    (_is_text, _to_text),
    (_is_bytes, _to_bytes),
)
_NESTED: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Any, Path], Any]], ...]] = (
    (pt.is_struct, _conform_struct),
    (pt.is_map, _conform_map),
    (is_list, _conform_list),
)
