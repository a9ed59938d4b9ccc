"""Actions as Arrow data: the type of each action, and columns from parsed lines.

This module defines Arrow types with the protocol's camelCase names. A table can have millions of
files, so no Python object is made per file: every column is built from the parsed lines in one
pass. Paths are percent-encoded, as in the log.

Protocol: Checkpoint Schema, Add File and Remove File, Add CDC File
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.json import JsonObject
from deltalog._util.kernels import TRUE
from deltalog._util.small_arrays import small_array
from deltalog.errors import MalformedLogError
from deltalog.protocol.actions.codec import (
    are_sound,
    deletion_vector_to_json,
    descriptor_from_json,
    have_exact_types,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Location = Callable[[int], str]

STRING_MAP: Final = pa.map_(pa.string(), pa.string())

DELETION_VECTOR_TYPE: Final = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ]
)
_STRINGS: Final = pa.list_(pa.field("element", pa.string()))
# The Arrow types of the members of actions, by name. A name has the same type in every action.
_MEMBERS: Final[dict[str, pa.DataType]] = {
    **dict.fromkeys(("path", "stats", "clusteringProvider", "appId", "domain"), pa.string()),
    **dict.fromkeys(("id", "name", "description", "schemaString"), pa.string()),
    **dict.fromkeys(("partitionValues", "tags"), STRING_MAP),
    **dict.fromkeys(("size", "sizeInBytes", "modificationTime", "deletionTimestamp"), pa.int64()),
    **dict.fromkeys(("baseRowId", "defaultRowCommitVersion", "highWaterMark"), pa.int64()),
    **dict.fromkeys(("createdTime", "version", "lastUpdated"), pa.int64()),
    **dict.fromkeys(("dataChange", "extendedFileMetadata", "removed"), pa.bool_()),
    "preservedRowIds": pa.bool_(),
    "deletionVector": DELETION_VECTOR_TYPE,
    "format": pa.struct([("provider", pa.string()), ("options", STRING_MAP)]),
    **dict.fromkeys(("minReaderVersion", "minWriterVersion"), pa.int32()),
    **dict.fromkeys(("readerFeatures", "writerFeatures", "partitionColumns"), _STRINGS),
}


def _struct(*names: str, **others: pa.DataType) -> pa.StructType:
    return pa.struct([(name, others.get(name) or _MEMBERS[name]) for name in names])


_ROW_IDS: Final = ("baseRowId", "defaultRowCommitVersion")

FILE_SCHEMA: Final = pa.schema(
    _struct(
        *("path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags"),
        *("deletionVector", *_ROW_IDS, "clusteringProvider"),
    )
)
"""The columns of a table of `add` actions."""

REMOVE_SCHEMA: Final = pa.schema(
    _struct(
        *("path", "deletionTimestamp", "dataChange", "extendedFileMetadata", "partitionValues"),
        *("size", "stats", "tags", "deletionVector", *_ROW_IDS),
    )
)
"""The columns of a table of `remove` actions from commits.

In checkpoints, a `remove` has no `stats` and no `tags` (requirement B-26).
"""

CDC_SCHEMA: Final = pa.schema(_struct("path", "partitionValues", "size", "dataChange", "tags"))

ADD_TYPE: Final = _struct(*FILE_SCHEMA.names)
REMOVE_TYPE: Final = _struct(*(n for n in REMOVE_SCHEMA.names if n not in {"stats", "tags"}))
PROTOCOL_TYPE: Final = _struct(
    "minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"
)
METADATA_TYPE: Final = _struct(
    *("id", "name", "description", "format", "schemaString", "partitionColumns"),
    *("configuration", "createdTime"),
    configuration=STRING_MAP,
)
TXN_TYPE: Final = _struct("appId", "version", "lastUpdated")
# `configuration` is a map in metaData, but a string in domainMetadata (requirement B-79).
DOMAIN_TYPE: Final = _struct("domain", "configuration", "removed", configuration=pa.string())
HIGH_WATER_MARK_TYPE: Final = _struct("highWaterMark", "preservedRowIds")
CHECKPOINT_METADATA_TYPE: Final = _struct("version", "tags")
SIDECAR_TYPE: Final = _struct("path", "sizeInBytes", "modificationTime", "tags")


_DICT_OR_NONE: Final = frozenset({dict, type(None)})
REQUIRED: Final = {
    "add": {"path": "str", "partitionValues": "map"},
    "remove": {"path": "str"},
    "cdc": {"path": "str", "partitionValues": "map"},
}
"""The required members of file actions, and their types.

An `add` requires partition values. A `remove` of an old writer may have only a path.
"""


def adds_from_json(adds: Sequence[Any], *, where: Location | None = None) -> pa.Table:
    """Return a table with a row for each parsed `add`.

    Args:
        adds: the parsed value of `add` in each line.
        where: returns the position of a row, such as `version 12, line 3`; called only for an
            error.

    Returns:
        A table of `FILE_SCHEMA`.

    Raises:
        MalformedLogError: an action is not an object, has no path or partition values, or has a
            member of a wrong type.
    """
    return _table(FILE_SCHEMA, adds, "add", where)


def removes_from_json(removes: Sequence[Any], *, where: Location | None = None) -> pa.Table:
    """Return a table of `REMOVE_SCHEMA` for parsed `remove` actions; see `adds_from_json`."""
    return _table(REMOVE_SCHEMA, removes, "remove", where)


def cdc_from_json(files: Sequence[Any], *, where: Location | None = None) -> pa.Table:
    """Return a table of `CDC_SCHEMA` for parsed `cdc` actions; see `adds_from_json`."""
    return _table(CDC_SCHEMA, files, "cdc", where)


def _table(
    schema: pa.Schema, actions: Sequence[Any], kind: str, where: Location | None
) -> pa.Table:
    try:
        columns = [_column(field, actions) for field in schema]
    except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError) as error:
        columns = _checked_columns(schema, actions, kind, where, error)
    for name, expected in REQUIRED[kind].items():
        column = columns[schema.get_field_index(name)]
        if column.null_count:
            row = column.is_null().index(TRUE).as_py()
            raise MalformedLogError(
                f"{_located(kind, row, where)}.{name}: required {expected} is missing"
            )
    return pa.Table.from_arrays(columns, schema=schema)


def _column(field: pa.Field[Any], actions: Sequence[Any]) -> pa.Array[Any]:
    name = field.name
    values = [action.get(name) for action in actions]
    if pa.types.is_map(field.type):
        if not set(map(type, values)) <= _DICT_OR_NONE:
            raise TypeError("a map is not an object")  # Arrow would accept [] as an empty map
        return map_array(values)
    if pa.types.is_struct(field.type):
        present = [value for value in values if value is not None]
        if not present:
            return pa.nulls(len(values), field.type)
        if not have_exact_types(present):
            raise ValueError("a member of a deletion vector is missing, or of another type")
        vectors = small_array(values, field.type)
        if not are_sound(vectors):
            raise ValueError("a member of a deletion vector has a value that it cannot have")
        return vectors
    return small_array(values, field.type)


def map_array(values: Sequence[Any]) -> pa.MapArray[Any, Any]:
    """Return dicts of strings as an Arrow map column; None becomes null.

    Cost: one pass; nearly nothing for a column of empty maps, the most common case.
    """
    lengths = [len(value) if value else 0 for value in values]
    offsets: list[int | None] = [0, *accumulate(lengths)]
    if None in values:
        offsets[:-1] = [
            None if value is None else offset
            for value, offset in zip(values, offsets[:-1], strict=True)
        ]
    filled = [value for value in values if value]
    keys = list(chain.from_iterable(filled))
    items = list(chain.from_iterable(value.values() for value in filled))
    maps: pa.MapArray[Any, Any] = pa.MapArray.from_arrays(  # type: ignore[call-overload]  # Arrow requires 32-bit offsets, but the stubs 64-bit
        small_array(offsets, pa.int32()),
        small_array(keys, pa.string()),
        small_array(items, pa.string()),
    )
    return maps


def _located(kind: str, row: int, where: Location | None) -> str:
    return f"{kind} action {row}" if where is None else f"{where(row)}: {kind}"


def _checked_columns(
    schema: pa.Schema,
    actions: Sequence[Any],
    kind: str,
    where: Location | None,
    cause: Exception,
) -> list[pa.Array[Any]]:
    """Build the columns value by value, with conversions; raise for the first invalid value.

    This is slow, but unlike Arrow's error, the error contains the position of the row.
    """
    checked: list[dict[str, Any]] = []
    for row, action in enumerate(actions):
        node = JsonObject(action, _located(kind, row, where))
        checked.append({field.name: _checked(node, field) for field in schema})
    try:
        return [_column(field, checked) for field in schema]
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise MalformedLogError(
            f"cannot convert {kind} actions to Arrow columns: {error}"
        ) from cause


def _checked(node: JsonObject, field: pa.Field[Any]) -> Any:
    name = field.name
    if pa.types.is_map(field.type):
        # Arrow accepts `[]` as an empty map, but it is not a JSON object.
        if node.values.get(name) == []:
            raise MalformedLogError(f"{node.where}.{name}: expected map of strings, found list []")
        return node.mapping(name)
    if pa.types.is_struct(field.type):
        return deletion_vector_to_json(node.child(name, descriptor_from_json))
    if pa.types.is_boolean(field.type):
        return node.optional(name, bool)
    if name == "stats":
        # Treat malformed statistics as missing, so that reads do not fail (requirement D-63).
        found = node.values.get(name)
        return found if isinstance(found, str) else None
    if pa.types.is_string(field.type):
        return node.optional(name, str)
    return node.optional(name, int)
