"""Names and Arrow types of the columns that a read can add to the columns of the table.

Protocol: Change Data Files; `_metadata` is Spark's hidden struct of file and row facts
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog.schema.arrow import from_arrow_type
from deltalog.schema.types import Field, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping

METADATA: Final = "_metadata"
FILE_PATH: Final = "_metadata.file_path"
FILE_NAME: Final = "_metadata.file_name"
FILE_SIZE: Final = "_metadata.file_size"
FILE_MODIFICATION_TIME: Final = "_metadata.file_modification_time"
ROW_INDEX: Final = "_metadata.row_index"
ROW_ID: Final = "_metadata.row_id"
ROW_COMMIT_VERSION: Final = "_metadata.row_commit_version"
ROW_TRACKING: Final = frozenset({ROW_ID, ROW_COMMIT_VERSION})
"""The metadata columns that exist only in tables with row tracking."""
# The number of the file that contains the row. Only operations that change rows use this column.
FILE_NUMBER: Final = "_metadata.file_number"

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"

METADATA_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    FILE_PATH: pa.string(),
    FILE_NAME: pa.string(),
    FILE_SIZE: pa.int64(),
    FILE_MODIFICATION_TIME: pa.timestamp("us", "UTC"),
    ROW_INDEX: pa.int64(),
    ROW_ID: pa.int64(),
    ROW_COMMIT_VERSION: pa.int64(),
}
"""The columns that a scan adds if they are selected by name: position and identity of a row."""

CHANGE_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    CHANGE_TYPE: pa.string(),
    COMMIT_VERSION: pa.int64(),
    COMMIT_TIMESTAMP: pa.timestamp("us", "UTC"),
}
"""The columns that the change data feed adds: the kind of change, its version and its time."""
_MOST_MS: Final = (2**63 - 1) // 1000


def moment_of(time_ms: int | None) -> int | None:
    """Convert milliseconds since 1970 to microseconds.

    Returns None if the result is out of range, because a log may contain any number.
    """
    return None if time_ms is None or abs(time_ms) > _MOST_MS else time_ms * 1000


# --- The metadata columns as part of a table's schema


_METADATA_FIELD: Final = Field(
    METADATA,
    StructType(
        [
            Field(name.removeprefix(f"{METADATA}."), from_arrow_type(kind))
            for name, kind in METADATA_COLUMNS.items()
        ]
    ),
    nullable=False,
)


def has_own_metadata(schema: StructType) -> bool:
    """Return whether the table itself has a column named `_metadata`."""
    return any(name_key(name) == METADATA for name in schema.names)


def metadata_columns_of(schema: StructType) -> Mapping[str, pa.DataType]:
    """Return the `METADATA_COLUMNS` whose names are not hidden by a column of the table."""
    if has_own_metadata(schema):
        return {}
    if METADATA_COLUMNS.keys().isdisjoint(schema.names):
        return METADATA_COLUMNS
    return {name: kind for name, kind in METADATA_COLUMNS.items() if name not in schema.names}


def with_metadata_columns(schema: StructType) -> StructType:
    """Return the schema for predicates: the table's columns and the struct `_metadata`."""
    if not metadata_columns_of(schema):
        return schema
    return StructType([*schema, _METADATA_FIELD])
