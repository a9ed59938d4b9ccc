"""New deletion vectors of existing files: in the log or in one file, and what else changes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog._util.json import loads
from deltalog.data.scan.plan import descriptor_of
from deltalog.data.scan.transform import load_bitmap
from deltalog.data.write.deletion_vectors import (
    INLINE_BYTES,
    INLINE_BYTES_PER_COMMIT,
    MaskedFiles,
    write_deletion_vectors,
)
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.protocol.deletion_vectors import DeletionBitmap
from tests.support import logs
from tests.support.logs import DictStore

STATS = '{"numRecords":9,"minValues":{"id":1},"maxValues":{"id":8},"nullCount":{"id":0}}'


def store_with(*stats: str | None) -> DictStore:
    adds = [
        logs.add(
            f"f{number}.parquet",
            size=5,
            baseRowId=number * 100,
            defaultRowCommitVersion=3,
            tags={"a": "b"},
            **({} if text is None else {"stats": text}),
        )
        for number, text in enumerate(stats)
    ]
    return logs.table_of(adds)


def mask(store: DictStore, *bitmaps: DeletionBitmap, **options: Any) -> MaskedFiles:
    files = load_snapshot(utc_context(store)).files()
    return write_deletion_vectors(store, files, bitmaps, [9] * len(bitmaps), **options)


def vectors(store: DictStore, masked: MaskedFiles) -> list[DeletionBitmap]:
    rows: list[Any] = masked.files.column("deletionVector").to_pylist()
    found = [descriptor_of(row) for row in rows]
    return [
        load_bitmap(store, descriptor, num_rows=None)
        for descriptor in found
        if descriptor is not None
    ]


def kinds(masked: MaskedFiles) -> list[str]:
    rows: list[Any] = masked.files.column("deletionVector").to_pylist()
    return [row["storageType"] for row in rows]


SMALL = DeletionBitmap([1, 5])
LARGE = DeletionBitmap(range(0, 20_000, 7))


def test_small_vectors_stand_in_the_log() -> None:
    store = store_with(STATS)
    before = dict(store.files)
    masked = mask(store, SMALL)
    assert (kinds(masked), masked.paths, masked.num_bytes) == (["i"], (), 0)
    assert vectors(store, masked) == [SMALL]
    assert store.files == before


@pytest.mark.protocol("DF-05")
@pytest.mark.parametrize("prefix", ["", "a7"])
def test_one_large_vector_takes_all_into_one_file(prefix: str) -> None:
    store = store_with(STATS, STATS)
    masked = mask(store, SMALL, LARGE, prefix=prefix)
    assert kinds(masked) == ["u", "u"]
    (path,) = masked.paths
    assert path.rpartition("/")[0] == prefix
    assert masked.num_bytes == len(store.files[path])
    assert vectors(store, masked) == [SMALL, LARGE]


def test_many_small_vectors_are_a_file_too() -> None:
    one = DeletionBitmap(range(0, 130, 3))
    number = INLINE_BYTES_PER_COMMIT // INLINE_BYTES * 2
    store = store_with(*[STATS] * number)
    masked = mask(store, *[one] * number)
    assert set(kinds(masked)) == {"u"}
    assert len(masked.paths) == 1
    assert vectors(store, masked) == [one] * number


@pytest.mark.protocol("DV-11")
@pytest.mark.parametrize("stats", [STATS, "{}", None, "no JSON"])
def test_statistics_tell_the_rows_and_that_bounds_are_wide(stats: str | None) -> None:
    masked = mask(store_with(stats), SMALL)
    text: Any = masked.files.column("stats")[0].as_py()
    found = loads(text, "stats")
    assert found["numRecords"] == 9
    if stats == STATS:
        assert (found["minValues"], found["tightBounds"]) == ({"id": 1}, False)


def test_everything_else_stays() -> None:
    store = store_with(STATS)
    files = load_snapshot(utc_context(store)).files()
    masked = mask(store, SMALL)
    changed = {"deletionVector", "stats", "dataChange"}
    for name in files.column_names:
        if name not in changed:
            assert masked.files.column(name).equals(files.column(name))
    assert masked.files.column("dataChange").to_pylist() == [True]


def test_no_files_need_no_vector() -> None:
    store = store_with(STATS)
    nothing = load_snapshot(utc_context(store)).files().slice(0, 0)
    masked = write_deletion_vectors(store, nothing, [], [])
    assert (masked.files.num_rows, masked.paths) == (0, ())
    assert masked.files.schema.equals(mask(store, SMALL).files.schema)
    assert pa.types.is_struct(masked.files.schema.field("deletionVector").type)
