"""Sorting: in order whatever the memory, and nothing is left on disk."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import StorageError
from deltalog.operations.changes.external_sort import SortLimits, sort_batches


def batches(count: int, rows: int, distinct: int = 1 << 40) -> list[pa.RecordBatch]:
    draw = random.Random(3)
    found = []
    for number in range(count):
        keys: Any = pa.array([draw.randrange(distinct) for _ in range(rows)], pa.int64())
        texts: Any = pa.array([f"text {number}"] * rows)
        found.append(pa.record_batch({"k": keys, "t": texts}))
    return found


@pytest.mark.parametrize("distinct", [1, 3, 1 << 40])
@pytest.mark.parametrize("memory_bytes", [1, 5000, 60_000, 1 << 30])
def test_rows_come_by_key(memory_bytes: int, distinct: int, tmp_path: Path) -> None:
    given = batches(12, 200, distinct)
    limits = SortLimits(memory_bytes=memory_bytes, directory=str(tmp_path))
    found = pa.Table.from_batches(sort_batches(given, "k", limits))
    keys = found.column("k").to_pylist()
    assert keys == sorted(keys, key=lambda key: key or 0)
    by_rows: Any = [("k", "ascending"), ("t", "ascending")]
    assert found.sort_by(by_rows).equals(pa.Table.from_batches(given).sort_by(by_rows))
    assert list(tmp_path.iterdir()) == []


def test_runs_are_merged_a_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltalog.operations.changes.external_sort._CHUNK_BYTES", 500)
    given = batches(12, 200)
    limits = SortLimits(memory_bytes=30_000, directory=str(tmp_path))
    found = list(sort_batches(given, "k", limits))
    assert max(batch.num_rows for batch in found) < 600
    keys = [key for batch in found for key in batch.column("k").to_pylist()]
    assert keys == sorted(keys, key=lambda key: key or 0)


def test_few_runs_are_there_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltalog.operations.changes.external_sort._MOST_RUNS", 3)
    most = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for batch in batches(40, 20):
            most = max(most, len(list(tmp_path.glob("*/*.arrow"))))
            yield batch

    limits = SortLimits(memory_bytes=1, directory=str(tmp_path))
    found = pa.Table.from_batches(sort_batches(counted(), "k", limits))
    keys = found.column("k").to_pylist()
    assert len(keys) == 800
    assert keys == sorted(keys, key=lambda key: key or 0)
    # Two of each level: 40 runs make four levels.
    assert most <= 8


def test_nothing_is_left_when_the_caller_stops(tmp_path: Path) -> None:
    limits = SortLimits(memory_bytes=5000, directory=str(tmp_path))
    rows = iter(sort_batches(batches(12, 200), "k", limits))
    next(rows)
    assert list(tmp_path.iterdir())
    rows.close()  # type: ignore[attr-defined]  # a generator
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_the_source_fails(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(12, 200)
        raise ZeroDivisionError

    limits = SortLimits(memory_bytes=5000, directory=str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        list(sort_batches(failing(), "k", limits))
    assert list(tmp_path.iterdir()) == []


def test_disk_may_be_limited_or_missing(tmp_path: Path) -> None:
    limits = SortLimits(memory_bytes=5000, disk_bytes=10_000, directory=str(tmp_path))
    with pytest.raises(StorageError, match="10000 bytes"):
        list(sort_batches(batches(12, 200), "k", limits))
    limits = SortLimits(memory_bytes=5000, directory=str(tmp_path / "nowhere"))
    with pytest.raises(StorageError, match="temporary files"):
        list(sort_batches(batches(12, 200), "k", limits))


def test_no_rows_are_sorted_too() -> None:
    assert list(sort_batches(batches(2, 0), "k", SortLimits())) == []
