"""Diff, doctor and follow as tables offer them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog._json import loads
from deltalog.errors import InvalidInputError, VersionNotFoundError
from deltalog.insight.follow import Follower


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    for ids in ([1, 2], [3]):
        write_deltalake(str(tmp_path), pa.table({"id": ids, "v": ids}), mode="append")
    return DeltaTable(str(tmp_path))


def ids(follower: Follower) -> list[Any]:
    return [row for step in follower.available() for row in step.to_table()["id"].to_pylist()]


def test_diff_takes_versions_and_moments(table: DeltaTable) -> None:
    table.delete("id = 1")
    assert table.diff(0).summary() == {"added": 1, "removed": 1, "changed": 0}
    assert table.diff(0, 1).added.column("id").to_pylist() == [3]
    assert table.diff(0, datetime.now(UTC)).summary()["removed"] == 1
    assert table.diff(1, 2, key="id", columns=["id"]).removed.column_names == ["id", "_change_type"]
    with pytest.raises(VersionNotFoundError):
        table.diff(7)


def test_doctor_looks_at_the_table(table: DeltaTable) -> None:
    report = table.doctor(samples=1)
    assert report.is_healthy
    assert report.version == 1


def test_follow_takes_stored_offsets_in_any_form(table: DeltaTable) -> None:
    follower = table.follow(max_files_per_step=1)
    step = next(follower)
    text = step.offset.to_json()
    rest = ids(follower)
    first: list[Any] = step.to_table()["id"].to_pylist()
    assert sorted(first + rest) == [1, 2, 3]
    for start in (step.offset, text, loads(text.encode(), "offset")):
        assert ids(table.follow(start)) == rest


def test_follow_from_versions_moments_and_now(table: DeltaTable) -> None:
    assert ids(table.follow(1)) == [3]
    assert ids(table.follow("latest")) == []
    assert ids(table.follow("2001-01-01")) == [1, 2, 3]
    assert ids(table.follow(0, predicate="v > 2", columns=["id"])) == [3]
    with pytest.raises(InvalidInputError):
        table.follow(start=True)
