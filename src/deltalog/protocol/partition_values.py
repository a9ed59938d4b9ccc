"""Partition values: conversion between strings in the log and typed values; Hive directories."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog._util.kernels import pc
from deltalog.errors import InvalidInputError, InvalidPartitionValueError
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.primitives.moments import offset_micros_of, value_or_count
from deltalog.schema.types import VOID, DataType, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


__all__ = [
    "NULL_DIRECTORY",
    "encode_value",
    "escape_directory",
    "extract",
    "hive_directory",
    "parse_column",
    "parse_hive_directory",
    "parse_value",
    "value_of",
]


@lru_cache(maxsize=4096)
def parse_value(text: str | None, data_type: DataType, *, time_zone: str, column: str = "") -> Any:
    """Return the value of a serialised partition value; None and "" are NULL for every type.

    Args:
        text: the string in the log.
        data_type: type of the column.
        column: name of the column, for messages.
        time_zone: zone of timestamps that have no zone: an IANA name or `+02:00`.

    Returns:
        A Python value. For a date or timestamp before year 1 or after year 9999: the number of days
        or microseconds since 1970, which Arrow accepts, too.

    Raises:
        InvalidPartitionValueError: the string is not a value of the type.

    Protocol: Partition Value Serialization
    """
    texts = pa.array([text], pa.string())
    typed = parse_column(texts, data_type, column=column, time_zone=time_zone)
    return value_or_count(typed[0])


def parse_column(
    texts: pa.Array[Any] | pa.ChunkedArray[Any],
    data_type: DataType,
    *,
    column: str = "",
    time_zone: str,
) -> pa.Array[Any]:
    """Return the typed values of many serialised partition values; null and "" are NULL.

    Args:
        texts: the string of each file.
        data_type: type of the column.
        column: name of the column, for messages.
        time_zone: zone of timestamps that have no zone: an IANA name or `+02:00`.

    Returns:
        An array of the column's Arrow type, as long as `texts`.

    Raises:
        InvalidPartitionValueError: a string is not a value of the type.
        UnsupportedTypeError: the type is unknown.

    Protocol: Partition Value Serialization
    Cost: each distinct string is parsed once.
    """
    arrow_type = to_arrow_type(data_type)
    encoded: Any = texts.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    dictionary = encoded.dictionary.cast(pa.string())
    distinct = pc.replace_with_mask(
        dictionary, pc.equal(dictionary, pa.scalar("")), pa.scalar(None, pa.string())
    )
    if distinct.null_count == len(distinct):
        return pa.array([None] * len(texts), arrow_type)
    row = data_type.primitive if isinstance(data_type, PrimitiveType) else None
    if row is None or row.codec.parse is None:
        raise _invalid(distinct.drop_null()[0].as_py(), data_type, column)
    if row.has_zone:
        offset_micros_of(time_zone, 0)  # raises if the caller's zone is unknown
    try:
        typed: pa.Array[Any] = row.codec.parse(distinct, arrow_type, time_zone)
    except (pa.ArrowInvalid, ValueError, OverflowError) as error:
        for text in distinct.drop_null():
            try:
                row.codec.parse(pa.array([text.as_py()]), arrow_type, time_zone)
            except (pa.ArrowInvalid, ValueError, OverflowError):
                raise _invalid(text.as_py(), data_type, column) from error
        raise
    return typed.take(encoded.indices)


def encode_value(value: Any, data_type: DataType) -> str | None:
    """Return the serialised form of a partition value; None, "" and b"" are NULL.

    Args:
        value: a value of Arrow's `as_py`, or a number that `parse_value` returns.
        data_type: type of the column.

    Raises:
        InvalidInputError: the value is not of the type, or bytes are not UTF-8, for which the
            protocol has no serialised form.

    Protocol: Partition Value Serialization
    """
    if value is None or (isinstance(value, str | bytes) and not value):
        return None
    known = data_type if isinstance(data_type, PrimitiveType) else VOID
    row = known.primitive
    if row.codec.encode is None:
        raise InvalidInputError(f"a column of type {data_type} cannot be a partition column")
    try:
        return row.codec.encode(value, row.arrow(*known.parameters))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"cannot write {value!r} as a partition value of type {data_type}: {error}"
        ) from error


def value_of(values: Mapping[str, str | None], name: str) -> str | None:
    """Return a file's serialised value of a partition column; None if it is missing.

    Some writers spell keys as in `partitionColumns`, not as in the schema. So if no key is equal to
    the name, a key that differs only in case is used.

    Args:
        values: the partition values of the file.
        name: the physical name of the column.

    Raises:
        InvalidPartitionValueError: two keys differ from the name in case only.
    """
    if name in values:
        return values[name]
    folded = name_key(name)
    found = [key for key in values if name_key(key) == folded]
    if len(found) > 1:
        raise InvalidPartitionValueError(
            f"cannot read the partition value of column {name!r}: expected one key of that name, "
            f"found {found!r}"
        )
    return values[found[0]] if found else None


def extract(partition_values: pa.Array[Any] | pa.ChunkedArray[Any], name: str) -> pa.StringArray:
    """Return for each file the serialised value of one partition column; NULL if it is missing.

    Args:
        partition_values: the partition values of each file, as `map<string, string>`.
        name: the physical name of the column.
    """
    kind: Any = partition_values.type
    key = pa.scalar(name, kind.key_type)
    # If a JSON key is repeated, its last value is valid.
    found: Any = pc.map_lookup(partition_values, key, "last")
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if found.null_count and _is_spelled_otherwise(partition_values, name):
        rows: list[Any] = partition_values.to_pylist()
        return pa.array([value_of(dict(row or ()), name) for row in rows], pa.string())
    result: pa.StringArray = found.cast(pa.string())
    return result


def _is_spelled_otherwise(partition_values: Any, name: str) -> bool:
    """Return whether a file has a key that differs from the name only in case."""
    chunked = isinstance(partition_values, pa.ChunkedArray)
    chunks = partition_values.chunks if chunked else [partition_values]
    keys = {key for chunk in chunks for key in pc.unique(chunk.keys).to_pylist()}
    return any(key != name and name_key(key) == name_key(name) for key in keys)


def _invalid(text: str | None, data_type: DataType, column: str) -> InvalidPartitionValueError:
    where = f" of column {column!r}" if column else ""
    return InvalidPartitionValueError(
        f"cannot read the partition value {text!r}{where}: expected {data_type}"
    )


# --- Hive-style directories, `a=1/b=x`


NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"

# Matches the characters that Hive and other engines escape.
_ESCAPED: Final = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")


def escape_directory(text: str) -> str:
    """Return a column name or partition value as part of a directory's name."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def hive_directory(columns: Sequence[str], values: Mapping[str, str | None]) -> str:
    """Return the directory of a partition, `a=1/b=x`, not yet encoded as a URI.

    Args:
        columns: the partition columns in order.
        values: their serialised values; None and "" are NULL.
    """
    parts: list[str] = []
    for column in columns:
        text = values[column]
        parts.append(f"{escape_directory(column)}={escape_directory(text or '') or NULL_DIRECTORY}")
    return "/".join(parts)


def parse_hive_directory(directory: str) -> dict[str, str | None]:
    """Return the partition columns and serialised values in a directory's name.

    Parts of the path without `=` are ignored.
    """
    values: dict[str, str | None] = {}
    for part in directory.split("/"):
        name, equals, text = part.partition("=")
        if equals and name:
            values[unquote(name)] = None if text in {"", NULL_DIRECTORY} else unquote(text)
    return values
