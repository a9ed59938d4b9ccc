"""Restore, vacuum, clone, convert, generate: done by one writer, read and gone on with by
the other.

Where both can do it, each does it on a copy of the same table, and the copies are the same.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, Field, convert_to_deltalake
from deltalog._util.json import loads
from tests.support.reference import Spark
from tests.support.reference_rows import our_changes, our_row_ids, ours, rows_of
from tests.support.reference_scenarios import FULL

PROPERTIES = (
    "TBLPROPERTIES (delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true,"
    " delta.enableRowTracking = true)"
)
HISTORY = (
    f"CREATE TABLE T (id BIGINT, p STRING) USING delta PARTITIONED BY (p) {PROPERTIES}",
    "INSERT INTO T SELECT /*+ COALESCE(1) */ id, concat('p ', id % 2) FROM range(8)",
    "DELETE FROM T WHERE id IN (2, 3)",
    "UPDATE T SET id = id + 100 WHERE id IN (4, 5)",
    "INSERT INTO T VALUES (9, NULL)",
    "DELETE FROM T WHERE p = 'p 0'",
)
ROW_IDS = "*, _metadata.row_id, _metadata.row_commit_version"


@pytest.fixture(scope="module")
def made(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of the reference with some history; nobody may change it."""
    path = tmp_path_factory.mktemp("kept") / "table"
    spark.tell(path, *HISTORY)
    return path


@pytest.fixture
def pair(made: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two copies: the reference's and ours."""
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    for path in (theirs, mine):
        shutil.copytree(made, path)
    return theirs, mine


def same(spark: Spark, *paths: Path) -> list[str]:
    """The rows of tables, which both read and which are the same."""
    expected = ours(paths[0])
    for path in paths:
        assert ours(path) == expected, path.name
        assert rows_of(spark.read(path)) == expected, path.name
    return expected


def go_on(spark: Spark, theirs: Path, mine: Path, where: str, row: str) -> None:
    """Each writer changes what the other one has made."""
    DeltaTable(theirs).delete(where)
    spark.tell(mine, f"DELETE FROM T WHERE {where}")  # noqa: S608
    for path in (theirs, mine):
        spark.tell(path, f"INSERT INTO T VALUES {row}")  # noqa: S608
    DeltaTable(mine).optimize.compact()
    same(spark, theirs, mine)


def told(spark: Spark, path: Path) -> dict[str, Any]:
    """The latest commit in the history."""
    found = spark.history(path)[0]
    metrics = {k: v for k, v in found["operationMetrics"].items() if not k.endswith("TimeMs")}
    names = ("operation", "operationParameters")
    return {**{name: found[name] for name in names}, "metrics": metrics}


@pytest.mark.protocol("D-42", "ROWID-17")
@pytest.mark.parametrize("version", [1, 3] if FULL else [1])
def test_both_restore_the_same(spark: Spark, pair: tuple[Path, Path], version: int) -> None:
    theirs, mine = pair
    before = ours(mine, version)
    spark.tell(theirs, f"RESTORE TABLE T TO VERSION AS OF {version}")
    DeltaTable(mine).restore(version)
    assert same(spark, theirs, mine) == before
    now = DeltaTable(mine).version()
    assert DeltaTable(theirs).version() == now
    assert told(spark, mine) == told(spark, theirs)
    for path in pair:
        feed = spark.changes(path, now).drop_columns(["_commit_timestamp"])
        assert our_changes(path, now) == rows_of(feed)
    assert our_changes(mine, now) == our_changes(theirs, now)
    assert our_row_ids(mine) == our_row_ids(theirs) == rows_of(spark.read(mine, columns=ROW_IDS))
    go_on(spark, theirs, mine, "id = 1", "(77, 'new')")


def files_of(path: Path) -> set[str]:
    found = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    return {str(file) for file in found if file.parts[0] != "_delta_log" and file.suffix != ".crc"}


@pytest.mark.protocol("D-46", "D-47", "D-48", "OV-08")
@pytest.mark.parametrize(
    ("full", "sql"), [(True, "VACUUM T RETAIN 0 HOURS"), (False, "VACUUM T LITE RETAIN 0 HOURS")]
)
def test_both_delete_the_same_files(
    spark: Spark, pair: tuple[Path, Path], *, full: bool, sql: str
) -> None:
    theirs, mine = pair
    for path in pair:
        for stray in (
            "stray",
            "p=p%200/stray",
            "_hidden/x",
            ".hidden",
            "a/_b/x",
            "a/b",
            "_delta_index/x",
        ):
            (path / stray).parent.mkdir(parents=True, exist_ok=True)
            (path / stray).write_bytes(b"x")
            os.utime(path / stray, (1, 1))
    before = files_of(mine)
    spark.tell(theirs, sql)
    gone = DeltaTable(mine).vacuum(0, dry_run=False, enforce_retention_duration=False, full=full)
    assert files_of(mine) == files_of(theirs) == before - set(gone)
    assert len(gone) >= 3
    # The log does not tell how large a file of deletion vectors is.
    vague = () if full else ("sizeOfDataToDelete",)
    assert [vacuumed(row, vague) for row in spark.history(mine)[:2]] == [
        vacuumed(row, vague) for row in spark.history(theirs)[:2]
    ]
    go_on(spark, theirs, mine, "id = 1", "(77, 'new')")


def vacuumed(commit: dict[str, Any], vague: tuple[str, ...]) -> tuple[Any, ...]:
    names = {"numDeletedFiles", "numFilesToDelete", "sizeOfDataToDelete"}.difference(vague)
    metrics = {k: v for k, v in commit["operationMetrics"].items() if k in names}
    return commit["operation"], commit["operationParameters"].keys(), metrics


@pytest.mark.protocol("D-45", "OV-06")
@pytest.mark.parametrize("shallow", [True, False] if FULL else [True])
def test_a_clone_made_here_goes_on_there(
    spark: Spark, made: Path, tmp_path: Path, *, shallow: bool
) -> None:
    before, path = ours(made), tmp_path / "clone"
    DeltaTable(made).clone(path, shallow=shallow)
    assert same(spark, path) == before
    assert told(spark, path)["operation"] == "CLONE"
    spark.tell(path, "DELETE FROM T WHERE id = 1", "INSERT INTO T VALUES (77, 'new')")
    DeltaTable(path).update({"id": "id + 1"}, predicate="id = 77")
    spark.tell(path, "OPTIMIZE T")
    same(spark, path)
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    spark.tell(path, "VACUUM T RETAIN 0 HOURS")
    same(spark, path)
    assert same(spark, made) == before


@pytest.mark.protocol("D-45")
def test_a_clone_made_there_goes_on_here(spark: Spark, made: Path, tmp_path: Path) -> None:
    before, path, again = ours(made), tmp_path / "clone", tmp_path / "again"
    spark.run(f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{made}`")
    table = DeltaTable(path)
    assert same(spark, path) == before
    table.delete("id = 1")
    table.clone(again, allow_foreign_files=True)  # of a clone
    table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert same(spark, again) == same(spark, path)
    assert same(spark, made) == before


@pytest.mark.protocol("PART-02", "B-57")
def test_both_convert_the_same(spark: Spark, tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    rows = pa.table(
        {"id": pa.array([1, 2, None], pa.int32()), "s": ["a", None, "ü"], "p": pa.array([1, 1, 2])}
    )
    pq.write_to_dataset(rows, mine, partition_cols=["p"])
    shutil.copytree(mine, theirs)
    spark.run(f"CONVERT TO DELTA parquet.`{theirs}` PARTITIONED BY (p INT)")
    convert_to_deltalake(mine, partition_by=[Field("p", "integer")])
    assert len(same(spark, theirs, mine)) == 3
    model, table = DeltaTable(theirs), DeltaTable(mine)
    assert table.schema() == model.schema()
    assert table.metadata().partition_columns == model.metadata().partition_columns
    assert adds(table) == adds(model)
    assert told(spark, mine) == told(spark, theirs)
    go_on(spark, theirs, mine, "id = 1", "(7, 'new', 1)")


def adds(table: DeltaTable) -> dict[str, tuple[Any, ...]]:
    """Partition values, size and statistics of each live file."""
    names = ["path", "partitionValues", "size", "stats"]
    return {
        row["path"]: (dict(row["partitionValues"]), row["size"], _bounds(row["stats"]))
        for row in table.snapshot.files(names).to_pylist()
    }


def _bounds(text: str) -> dict[str, Any]:
    stats: Any = loads(text, "stats")
    stats.pop("tightBounds", None)
    return stats  # type: ignore[no-any-return]


def test_both_generate_the_same_manifests(spark: Spark, pair: tuple[Path, Path]) -> None:
    theirs, mine = pair
    spark.tell(theirs, "REORG TABLE T APPLY (PURGE)")
    shutil.copytree(theirs, mine, dirs_exist_ok=True)
    spark.tell(theirs, "GENERATE symlink_format_manifest FOR TABLE T")
    DeltaTable(mine).generate()
    assert manifests(mine) == manifests(theirs)


def manifests(path: Path) -> dict[str, list[str]]:
    root = path / "_symlink_format_manifest"
    return {
        str(file.relative_to(root)): sorted(
            line.rpartition("/")[2] for line in file.read_text("utf-8").splitlines()
        )
        for file in root.rglob("manifest")
    }


@pytest.mark.protocol("CDC-04")
def test_both_truncate_the_same(spark: Spark, pair: tuple[Path, Path]) -> None:
    theirs, mine = pair
    spark.tell(theirs, "TRUNCATE TABLE T")
    DeltaTable(mine).truncate()
    assert same(spark, theirs, mine) == []
    assert told(spark, mine)["operation"] == told(spark, theirs)["operation"]
    now = DeltaTable(mine).version()
    assert our_changes(mine, now) == our_changes(theirs, now)
    assert len(our_changes(mine, now)) == 4
    assert our_changes(mine, now) == rows_of(
        spark.changes(mine, now).drop_columns(["_commit_timestamp"])
    )
