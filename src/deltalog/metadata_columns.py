"""The names of the columns that a read can add to those of the table.

Protocol: Change Data Files; `_metadata` is Spark's hidden struct of file and row facts
"""

from __future__ import annotations

from typing import Final

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
