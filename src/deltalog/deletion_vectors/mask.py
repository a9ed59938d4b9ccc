"""Deleted rows as a mask over a range of rows.

Masks apply to physical row positions, before any filter or limit.

Protocol: Deletion Vectors (Reader Requirements)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.deletion_vectors.bitmap import DeletionBitmap
from deltalog.kernels import compute

if TYPE_CHECKING:
    from typing import Any


def keep_mask(bitmap: DeletionBitmap, start_row: int, num_rows: int) -> pa.BooleanArray | None:
    """Mark the rows that live, of `num_rows` rows from `start_row` on.

    Returns:
        One boolean per row, never null; None if all of them live, so that nothing need be copied.

    Cost: time and memory by the rows of the range, however large the vector is.
    """
    deleted = bitmap.count_between(start_row, start_row + num_rows)
    if deleted == 0:
        return None
    if deleted == num_rows:
        return _repeat(value=False, length=num_rows)
    rows = pc.subtract(bitmap.between(start_row, start_row + num_rows).to_arrow(), start_row)
    marks = _repeat(value=False, length=deleted)
    options = compute.ScatterOptions(max_index=num_rows - 1)
    # What no index names comes out as NULL: those rows live.
    return compute.call_function("scatter", [marks, rows], options).is_null()


def rows_where(mask: pa.Array[Any] | pa.ChunkedArray[Any], start_row: int = 0) -> DeletionBitmap:
    """The rows whose mask is true; a NULL is not.

    Args:
        mask: booleans.
        start_row: row number of the first.
    """
    return DeletionBitmap.from_arrow(
        pc.add(pc.indices_nonzero(mask).cast(pa.int64()), pa.scalar(start_row, pa.int64()))
    )


def _repeat(*, value: bool, length: int) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(value), length)
