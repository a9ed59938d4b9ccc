"""A follower notices that its table was removed, made anew or set back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError, IncompatibleChangesError, VersionNotFoundError


def append(place: Path, *values: int) -> None:
    for value in values:
        write_deltalake(place, pa.table({"a": [value]}), mode="append")


def values(step: Any) -> list[int]:
    return sorted(step.to_table()["a"].to_pylist())


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("versions", [4, 5, 8])
def test_a_table_that_was_made_anew(versions: int, changes: bool, tmp_path: Path) -> None:
    place = tmp_path / "t"
    append(place, *range(4))
    follower = DeltaTable(place).follow(changes=changes)
    step = follower.poll()
    assert step is not None
    assert values(step) == [0, 1, 2, 3]
    assert follower.poll() is None
    shutil.rmtree(place)
    append(place, *range(100, 100 + versions))
    with pytest.raises(IncompatibleChangesError, match="table was replaced"):
        follower.poll()


def test_a_table_with_fewer_versions_than_before(tmp_path: Path) -> None:
    place = tmp_path / "t"
    append(place, *range(4))
    follower = DeltaTable(place).follow()
    follower.poll()
    shutil.rmtree(place)
    append(place, 100)
    with pytest.raises(IncompatibleChangesError, match="table was replaced"):
        follower.poll()


def test_a_table_that_is_gone(tmp_path: Path) -> None:
    place = tmp_path / "t"
    append(place, 1)
    follower = DeltaTable(place).follow()
    follower.poll()
    shutil.rmtree(place)
    with pytest.raises(DeltaError):
        follower.poll()


def test_a_log_that_was_set_back(tmp_path: Path) -> None:
    place = tmp_path / "t"
    append(place, 0, 1)
    shutil.copytree(place, tmp_path / "backup")
    append(place, 2)
    follower = DeltaTable(place).follow()
    follower.poll()
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "backup", place)
    append(place, 100, 101)
    with pytest.raises(VersionNotFoundError, match="another commit"):
        follower.poll()


def test_old_commits_may_be_cleaned_up(tmp_path: Path) -> None:
    place = tmp_path / "t"
    append(place, 0, 1)
    follower = DeltaTable(place).follow()
    follower.poll()
    append(place, 2)
    (place / "_delta_log" / f"{1:020}.json").unlink()
    step = follower.poll()
    assert step is not None
    assert values(step) == [2]
