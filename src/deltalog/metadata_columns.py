"""The columns that a read can add to those of the table: names, and Arrow types.

Protocol: Change Data Files; `_metadata` is Spark's hidden struct of file and row facts
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

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
"""Those that only tables with row tracking have."""
# Only while rows are changed: which of the matching files a row is from.
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
"""Columns that a scan adds if selected by name: location and identity of a row."""

CHANGE_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    CHANGE_TYPE: pa.string(),
    COMMIT_VERSION: pa.int64(),
    COMMIT_TIMESTAMP: pa.timestamp("us", "UTC"),
}
"""Columns that the change data feed adds: what became of a row, and in which version."""
_MOST_MS: Final = (2**63 - 1) // 1000


def moment_of(time_ms: int | None) -> int | None:
    """Return milliseconds since 1970 as the microseconds of such a column.

    It is None for a moment that no timestamp has: a log may say anything.
    """
    return None if time_ms is None or abs(time_ms) > _MOST_MS else time_ms * 1000
