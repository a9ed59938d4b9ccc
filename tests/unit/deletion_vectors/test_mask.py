from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.deletion_vectors import DeletionBitmap, keep_mask

BITMAP = DeletionBitmap([0, 5, 6, 2**33])


@pytest.mark.protocol("DV-10")
def test_mask_counts_rows_from_the_start_of_the_file() -> None:
    mask = keep_mask(BITMAP, 4, 4)
    assert mask is not None
    assert mask.type == pa.bool_()
    assert mask.to_pylist() == [True, False, False, True]
    high = keep_mask(BITMAP, 2**33 - 1, 2)
    assert high is not None
    assert high.to_pylist() == [True, False]


@pytest.mark.protocol("DV-10")
def test_row_groups_one_after_the_other_are_the_whole_file() -> None:
    deleted = DeletionBitmap(range(0, 30, 5))
    whole = keep_mask(deleted, 0, 30)
    assert whole is not None
    assert whole.to_pylist().count(False) == 6
    parts = [keep_mask(deleted, start, 10) for start in (0, 10, 20)]
    assert pa.concat_arrays([part for part in parts if part is not None]).equals(whole)


def test_nothing_deleted_needs_no_mask() -> None:
    assert keep_mask(BITMAP, 1, 4) is None
    assert keep_mask(BITMAP, 1, 0) is None
    assert keep_mask(DeletionBitmap(), 0, 10) is None


def test_everything_deleted() -> None:
    mask = keep_mask(DeletionBitmap.from_range(0, 100), 90, 10)
    assert mask is not None
    assert mask.to_pylist() == [False] * 10
