"""The columns of a checkpoint as they are in memory, whatever its writer.

Owns the cast to the types of `actions.arrow`: writers differ in large or dictionary-encoded
strings, names of list elements, and required or optional members.

Protocol: Checkpoint Schema
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.actions.arrow import DELETION_VECTOR_TYPE, STRING_MAP, map_array
from deltalog.actions.descriptors import check_column
from deltalog.kernels import arrow, compute
from deltalog.partition_values import encode_value
from deltalog.schema import from_arrow_type
from deltalog.schema.primitives.moments import values_or_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Column = pa.Array[Any] | pa.ChunkedArray[Any]

PARTITION_VALUES: Final = "partitionValues"
PARTITION_VALUES_PARSED: Final = "partitionValues_parsed"

# A member that every action of the kind has: its null count shows which rows hold such actions.
MARKERS: Final[Mapping[str, str]] = {
    "add": "path",
    "remove": "path",
    "protocol": "minReaderVersion",
    "metaData": "schemaString",
    "txn": "appId",
    "domainMetadata": "domain",
    "rowIdHighWaterMark": "highWaterMark",
    "sidecar": "path",
    "checkpointMetadata": "version",
}
SMALL_KINDS: Final = tuple(kind for kind in MARKERS if kind not in {"add", "remove"})
"""The kinds of which a checkpoint holds few actions."""


def chunked(chunks: Sequence[pa.Array[Any]], data_type: pa.DataType) -> pa.ChunkedArray[Any]:
    """The chunks as one column, which has its type even without chunks."""
    return arrow.chunked_array(chunks, data_type)


def nulls(rows: int, data_type: pa.DataType) -> pa.Array[Any]:
    """A column of nulls."""
    return arrow.nulls(rows, data_type)


def member(actions: Column, name: str, data_type: pa.DataType) -> pa.ChunkedArray[Any]:
    """One member of a struct column as `data_type`; all null if the struct does not have it.

    Raises:
        pa.ArrowException: the values cannot be converted, or a text is no UTF-8: of a damaged file,
            Arrow would hand it on to whoever makes Python values of it.
    """
    struct_type = actions.type
    if not pa.types.is_struct(struct_type) or struct_type.get_field_index(name) < 0:
        return chunked([nulls(len(actions), data_type)], data_type)
    found = compute.struct_field(actions, name)
    chunks = found.chunks if isinstance(found, pa.ChunkedArray) else [found]
    conformed = [conform(chunk, data_type) for chunk in chunks]
    if not pa.types.is_primitive(data_type):
        for chunk in conformed:
            chunk.validate(full=True)
    return chunked(conformed, data_type)


def conform(values: pa.Array[Any], data_type: pa.DataType) -> pa.Array[Any]:
    """The values as `data_type`, from whatever type the writer chose.

    Raises:
        pa.ArrowException: the values cannot be converted.
        MalformedLogError: a deletion vector's descriptor has a value that it cannot have.
    """
    if values.type.equals(data_type):
        return values
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_null(values.type):
        return nulls(len(values), data_type)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()  # type: ignore[attr-defined]  # a DictionaryArray
    if pa.types.is_struct(data_type):
        return _conform_struct(values, data_type)
    result: pa.Array[Any] = compute.cast(values, data_type)
    return result


def _conform_struct(values: Any, data_type: Any) -> pa.Array[Any]:
    have = {field.name for field in values.type}
    children = [
        conform(compute.struct_field(values, field.name), field.type)
        if field.name in have
        else nulls(len(values), field.type)
        for field in data_type
    ]
    absent = values.is_null()
    if data_type.equals(DELETION_VECTOR_TYPE):
        # Some writers store a struct of nulls where there is no vector.
        absent = reduce(compute.and_, [child.is_null() for child in children])
    result: pa.Array[Any] = pa.StructArray.from_arrays(
        children, fields=list(data_type), mask=absent
    )
    if data_type.equals(DELETION_VECTOR_TYPE):
        check_column(result, "checkpoint")
    return result


def valid_rows(table: pa.Table, kind: str) -> pa.ChunkedArray[Any]:
    """The rows of the struct column `kind` that hold such an action.

    Cost: no copy if they are contiguous, as in the checkpoints of all known writers.
    """
    column = table.column(kind)
    return chunked([_valid_run(chunk) for chunk in column.chunks], column.type)


def _valid_run(chunk: pa.Array[Any]) -> pa.Array[Any]:
    valid = len(chunk) - chunk.null_count
    if valid == len(chunk):
        return chunk
    first = compute.index(chunk.is_valid(), pa.scalar(value=True)).as_py()
    run = chunk.slice(max(first, 0), valid)
    return run if run.null_count == 0 else chunk.drop_null()


def texts_of_values(actions: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """`partitionValues_parsed` as the map of strings that `partitionValues` would be.

    Cost: Python for each value; needed only for checkpoints without the map.
    """
    if actions.type.get_field_index(PARTITION_VALUES_PARSED) < 0:
        return chunked([], STRING_MAP)
    values: Any = compute.struct_field(actions, PARTITION_VALUES_PARSED)
    columns = [
        [encode_value(value, from_arrow_type(field.type)) for value in values_or_counts(column)]
        for field, column in zip(values.type, values.flatten(), strict=True)
    ]
    names = [field.name for field in values.type]
    rows = [
        dict(zip(names, (column[row] for column in columns), strict=True)) if is_valid else None
        for row, is_valid in enumerate(values.is_valid().to_pylist())
    ]
    return chunked([map_array(rows)], STRING_MAP)
