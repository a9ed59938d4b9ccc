"""A vacuum by tasks takes what the core's takes, and only where tasks see the table."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable as CoreTable
from deltalog import write_deltalake
from deltalog._util.clock import now_ms
from deltalog.errors import InvalidInputError
from deltalog.operations.engine import SeenTable, listed_files
from deltalog.spark import DeltaTable
from deltalog.spark.engine.engine import (
    FILES_PER_TASK,
    delete_task,
    list_by_tasks,
    list_task,
)
from deltalog.storage import Store, open_store

PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.deletedFileRetentionDuration": "interval 0 hours",
}
ORPHANS = ("orphan.parquet", "p=2/orphan.parquet", "left behind/x y%20z.parquet", "_hidden/kept")


@pytest.fixture
def some(spark: SparkSession) -> Iterator[None]:
    """Tasks delete two files each."""
    spark.conf.set(FILES_PER_TASK, "2")
    yield
    spark.conf.unset(FILES_PER_TASK)


def table(place: Path) -> Path:
    """A table with everything that vacuum finds, all of it old."""
    data = pa.table({"p": [1, 1, 2, 3], "id": [1, 2, 3, 4]})
    write_deltalake(place, data, partition_by=["p"], configuration=PROPERTIES)
    core = CoreTable(place)
    core.delete("id = 1")
    core.delete("p = 2")
    core.optimize.purge()
    core.update(predicate="id = 4", updates={"id": "5"})
    for name in ORPHANS:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(b"x")
    hours_ago = now_ms() / 1000 - 7200
    for path in place.rglob("*"):
        os.utime(path, (hours_ago, hours_ago))
    return place


def names(place: Path) -> set[str]:
    found = (path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    return {name for name in found if not name.startswith("_delta_log")}


@pytest.mark.usefixtures("some")
def test_it_takes_what_the_core_takes(spark: SparkSession, tmp_path: Path) -> None:
    here = table(tmp_path / "here")
    there = Path(shutil.copytree(here, tmp_path / "there"))
    paths = CoreTable(here).vacuum(0, dry_run=False, full=True)
    found = DeltaTable.forPath(spark, there).vacuum(0)
    assert sorted(row["path"] for row in found.collect()) == sorted(paths)
    assert len(paths) > 6
    assert names(there) == names(here)
    assert CoreTable(there).to_pyarrow_table().num_rows == 2
    assert "_hidden/kept" in names(there)
    histories = [CoreTable(place).history(2) for place in (here, there)]
    for one, other in zip(*histories, strict=True):
        assert one["operation"] == other["operation"]
        assert one["operationParameters"] == other["operationParameters"]
        assert one["operationMetrics"] == other["operationMetrics"]
    assert [one["operation"] for one in histories[1]] == ["VACUUM END", "VACUUM START"]
    assert DeltaTable.forPath(spark, there).vacuum(0).count() == 0


def test_the_retention_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    here = table(tmp_path / "here")
    CoreTable(here).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 1 week"}
    )
    before = names(here)
    assert DeltaTable.forPath(spark, here).vacuum().count() == 0
    with pytest.raises(InvalidInputError, match="keeps removed files for 168"):
        DeltaTable.forPath(spark, here).vacuum(0)
    assert names(here) == before


class ElsewhereStore:
    """A store that other processes see as another directory: a disk of this machine alone."""

    def __init__(self, here: Path, elsewhere: Path) -> None:
        self._elsewhere = elsewhere
        self._store = open_store(here)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def __reduce__(self) -> tuple[object, ...]:
        return open_store, (self._elsewhere,)


@pytest.mark.usefixtures("some")
@pytest.mark.parametrize("is_there", ["nothing", "another table"])
def test_tasks_that_see_another_directory_touch_nothing(
    spark: SparkSession, tmp_path: Path, is_there: str
) -> None:
    here, elsewhere = table(tmp_path / "here"), tmp_path / "elsewhere"
    if is_there == "another table":
        table(elsewhere)
    kept = names(elsewhere)
    reference = Path(shutil.copytree(here, tmp_path / "reference"))
    paths = CoreTable(reference).vacuum(0, dry_run=False, full=True)
    store: object = ElsewhereStore(here, elsewhere)
    found = DeltaTable.forPath(spark, store).vacuum(0)  # type: ignore[arg-type]  # it hands on
    assert sorted(row["path"] for row in found.collect()) == sorted(paths)
    assert names(here) == names(reference)
    assert names(elsewhere) == kept


def batch(*values: object) -> Sequence[pa.RecordBatch]:
    return pa.table({"x": list(values)}).to_batches()


def test_the_driver_does_what_tasks_leave(tmp_path: Path) -> None:
    place = table(tmp_path / "here")
    store: Store = open_store(place)
    configuration = CoreTable(place).snapshot.configuration
    seen = SeenTable(store=store, commit=store.stat("_delta_log/00000000000000000000.json"))
    listed = list_task(seen, configuration, ("p=3",))
    assert isinstance(listed, pa.Table)
    assert {str(path).partition("/")[0] for path in listed["path"].to_pylist()} == {"p=3"}
    other = replace(seen, commit=replace(seen.commit, size_bytes=1))
    assert list_task(other, configuration, ("p=1",)) == ("p=1",)
    assert delete_task(other, batch("p=2/orphan.parquet")) == ["p=2/orphan.parquet"]
    assert delete_task(seen, batch("p=2/orphan.parquet")) == ()
    assert "p=2/orphan.parquet" not in names(place)


def test_tasks_list_what_the_core_lists(spark: SparkSession, tmp_path: Path) -> None:
    place = table(tmp_path / "here")
    store, configuration = open_store(place), CoreTable(place).snapshot.configuration
    found = list_by_tasks(spark, store, configuration)
    expected = listed_files(store, configuration)
    assert found.schema == expected.schema
    assert found.sort_by("path") == expected.sort_by("path")


def test_a_setting_that_is_none_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    place = table(tmp_path / "here")
    spark.conf.set(FILES_PER_TASK, "many")
    try:
        with pytest.raises(InvalidInputError, match="filesPerTask='many'"):
            DeltaTable.forPath(spark, place).vacuum(0)
    finally:
        spark.conf.unset(FILES_PER_TASK)
