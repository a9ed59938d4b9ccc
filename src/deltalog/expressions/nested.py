"""Casts of arrays, maps and structs, and their string form.

Owns how nested values are split into flat arrays and rebuilt; the caller provides the conversion of
the parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.kernels import Array, compute
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.types import ArrayType, DataType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable

    Convert = Callable[[Array, DataType, DataType], Array]


def cast_nested(array: Array, source: DataType, to: DataType, convert: Convert) -> Array:
    """The values of a nested type, with every part converted."""
    match source, to:
        case ArrayType(), ArrayType():
            values = convert(compute.list_flatten(array), source.element_type, to.element_type)
            return compute.cast(_as_lists(array, values), to_arrow_type(to))
        case MapType(), MapType():
            return _cast_map(array, source, to, convert)
        case StructType(), StructType():
            parts = [
                convert(compute.struct_field(array, [index]), mine.type, theirs.type)
                for index, (mine, theirs) in enumerate(zip(source, to, strict=True))
            ]
            fields: Any = to_arrow_type(to)
            return pa.StructArray.from_arrays(
                parts, fields=list(fields), mask=compute.is_null(array)
            )
        case _:
            raise TypeError(f"{source} and {to} are not nested alike")


def _as_lists(array: Array, values: Array) -> pa.ListArray[Any]:
    offsets = _offsets(compute.fill_null(compute.list_value_length(array), 0))
    return pa.ListArray.from_arrays(offsets, values, mask=compute.is_null(array))


def _offsets(lengths: Array) -> Array:
    ends = compute.cumulative_sum(compute.cast(lengths, pa.int32()))
    return pa.concat_arrays([pa.array([0], pa.int32()), ends])


def _cast_map(array: Array, source: MapType, to: MapType, convert: Convert) -> Array:
    keys, items, lengths = map_parts(array)
    keys = convert(keys, source.key_type, to.key_type)
    items = convert(items, source.value_type, to.value_type)
    built = pa.MapArray.from_arrays(_offsets(lengths), keys, items, mask=compute.is_null(array))
    return compute.cast(built, to_arrow_type(to))


def map_parts(array: Array) -> tuple[Array, Array, Array]:
    """The keys and items of maps as flat arrays without gaps, and each map's number of entries."""
    lengths = compute.subtract(array.offsets[1:], array.offsets[:-1])
    lengths = compute.if_else(compute.is_valid(array), lengths, pa.scalar(0, lengths.type))
    # Arrow has no kernel that flattens maps, and the entries of NULL maps must be left out.
    known = array.drop_null()
    if len(known) == 0:
        return array.keys.slice(0, 0), array.items.slice(0, 0), lengths
    starts, ends = known.offsets[:-1].to_pylist(), known.offsets[1:].to_pylist()
    keys = [known.keys.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
    items = [known.items.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
    return pa.concat_arrays(keys), pa.concat_arrays(items), lengths


def nested_texts(
    array: Array, source: DataType, texts_of: Callable[[Array, DataType], list[str | None]]
) -> list[str | None]:
    """Nested values as strings of Spark: `[1, null]`, `{a -> 1}`, `{1, x}`. Cost: by row."""
    valid = compute.is_valid(array).to_pylist()
    match source:
        case ArrayType():
            shown = _shown(texts_of(compute.list_flatten(array), source.element_type))
            lengths: Any = compute.fill_null(compute.list_value_length(array), 0).to_pylist()
            rows = [f"[{', '.join(part)}]" for part in _slices(shown, lengths)]
        case MapType():
            keys, items, counts = map_parts(array)
            pairs = zip(
                _shown(texts_of(keys, source.key_type)),
                _shown(texts_of(items, source.value_type)),
                strict=True,
            )
            shown = [f"{key} -> {item}" for key, item in pairs]
            rows = [f"{{{', '.join(part)}}}" for part in _slices(shown, counts.to_pylist())]
        case StructType():
            columns = [
                _shown(texts_of(compute.struct_field(array, [index]), field.type))
                for index, field in enumerate(source)
            ]
            rows = [f"{{{', '.join(row)}}}" for row in zip(*columns, strict=True)]
        case _:
            raise TypeError(f"{source} is not nested")
    return [row if is_valid else None for row, is_valid in zip(rows, valid, strict=True)]


def _shown(texts: list[str | None]) -> list[str]:
    return ["null" if text is None else text for text in texts]


def _slices(values: list[str], lengths: list[int]) -> list[list[str]]:
    found: list[list[str]] = []
    start = 0
    for length in lengths:
        found.append(values[start : start + length])
        start += length
    return found
