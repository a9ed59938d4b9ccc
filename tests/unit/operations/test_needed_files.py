"""Files that must stay: those of live rows, of young tombstones and of kept versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from deltalog.errors import (
    DataFileMissingError,
)
from tests.support.aging import DAY_MS, FEATURES, START_MS, AgingStore, AgingTable
from tests.support.logs import PROTOCOL, add, commit, metadata, remove
from tests.support.vacuuming import (
    BOTH,
    FULL,
    LITE,
    WEEK,
    changes_of,
    logged,
    masked,
    put,
    rows,
)


@pytest.mark.protocol("REM-04", "D-17", "B-23", "B4-delta.deletedFileRetentionDuration")
@pytest.mark.parametrize(("late_ms", "found"), [(-1, 0), (0, 0), (1, 1)])
@BOTH
def test_a_tombstone_expires_after_the_retention(
    how: Mapping[str, Any], late_ms: int, found: int
) -> None:
    table = logged(remove("a", deletionTimestamp=START_MS))
    put(table, "a", age_days=60)
    table.kept.now_ms = START_MS + WEEK * DAY_MS + late_ms
    assert len(table.plan(**how).paths) == found


@pytest.mark.protocol("D-17", "REM-05")
@BOTH
def test_a_tombstone_without_a_time_has_expired(how: Mapping[str, Any]) -> None:
    table = logged({"remove": {"path": "a", "dataChange": True}})
    put(table, "a")
    assert table.plan(**how).paths == ["a"]


@pytest.mark.protocol("D-48", "D-18")
@BOTH
def test_deletion_vectors_of_live_files_stay(how: Mapping[str, Any]) -> None:
    table = masked(days=30)
    live = table.rows()
    vectors = [path for path in table.data_files() if path.endswith(".bin")]
    assert len(vectors) == 2
    (gone,) = table.vacuum(**how)
    assert gone in vectors
    assert table.rows() == live


@pytest.mark.protocol("D-48")
@BOTH
def test_deletion_vectors_of_young_tombstones_stay(how: Mapping[str, Any]) -> None:
    table = masked(days=WEEK - 1)
    assert table.vacuum(**how) == []
    assert len(table.rows(1)) == 3200


@pytest.mark.protocol("D-48")
@pytest.mark.parametrize("where", ["memory://table/", "memory:/table/", "s3://elsewhere/"])
def test_absolute_vectors_below_the_root_are_this_tables(where: str) -> None:
    name = "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin"
    vector = {
        "storageType": "p",
        "pathOrInlineDv": f"{where}{name}",
        "offset": 1,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    table = AgingTable(AgingStore(root="memory:///table"))
    actions = [PROTOCOL, metadata(), add("a", deletionVector=vector)]
    commit(table.kept, 0, *actions, time_ms=START_MS)
    table.wait(30)
    put(table, "a", name, "other.bin")
    assert table.plan(**FULL).paths == ["other.bin"]


@pytest.mark.protocol("D-06")
@pytest.mark.parametrize(
    ("spelled", "path"),
    [
        ("a%20b", "a b"),
        ("a b", "a b"),
        ("memory:///table/x", "x"),
        ("memory:/table/x", "x"),
        ("./x", "x"),
        ("d//x", "d/x"),
        ("p=a%253Ab/x", "p=a%3Ab/x"),
    ],
)
def test_a_live_file_stays_however_it_is_spelled(spelled: str, path: str) -> None:
    table = AgingTable(AgingStore(root="memory:///table"))
    commit(table.kept, 0, PROTOCOL, metadata(), add(spelled), time_ms=START_MS)
    table.wait(30)
    put(table, path, "junk")
    assert table.plan(**FULL).paths == ["junk"]
    commit(table.kept, 1, remove(spelled, deletionTimestamp=START_MS), time_ms=START_MS)
    assert sorted(table.plan(**FULL).paths) == sorted([path, "junk"])
    assert table.plan(**LITE).paths == [path]


@pytest.mark.protocol("D-45")
def test_a_root_spelled_in_an_unknown_way_costs_no_file() -> None:
    """Who mounts a bucket has two names for a file; only the last part is the same."""
    table = logged(add("s3://bucket/mounted/part-1.parquet"))
    put(table, "part-1.parquet", "part-2.parquet")
    assert table.plan(**FULL).paths == ["part-2.parquet"]


@BOTH
def test_kept_versions_stay_readable(how: Mapping[str, Any]) -> None:
    table = AgingTable()
    table.create({"id": list(range(3000))}, properties=FEATURES)
    for step in range(3):
        table.delete(f"id % 4 = {step}")
    table.delete()
    table.append(rows(1))
    table.wait(30)
    before = table.rows(2)
    expected = changes_of(table, 2)
    gone = table.vacuum(keep_versions=[2], **how)
    assert gone
    assert table.rows(2) == before
    assert changes_of(table, 2) == expected
    with pytest.raises(DataFileMissingError):
        table.rows(3)
    assert table.plan(**how).files.num_rows
