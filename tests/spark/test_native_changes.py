"""The change feed over Spark's own reader: the changes that the core finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan import open_changes
from deltalog.errors import (
    ChangeDataFeedNotEnabledError,
    DataFileMissingError,
    IncompatibleChangesError,
    InvalidInputError,
    VersionNotFoundError,
)
from deltalog.spark.reading.by_options import plan_changes
from tests.spark.shapes import ROWS
from tests.spark.test_door import is_native, plan
from tests.support.reference import Spark
from tests.support.reference_scenarios import FULL

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {**FEED, "delta.enableDeletionVectors": "true"}
Build = Callable[[Path], object]


def made(path: Path, by: str | None = None, **properties: str) -> DeltaTable:
    data = pa.table(ROWS)
    write_deltalake(path, data.slice(0, 8), partition_by=by, configuration=properties)
    write_deltalake(path, data.slice(8), mode="append")
    return DeltaTable(path)


def changed(table: DeltaTable) -> None:
    """Deletes, updates and a merge, twice on the same files."""
    table.delete("id in (1, 9)")
    table.update({"name": "'new'"}, predicate="id in (2, 3, 10)")
    table.delete("id = 4")
    source = pa.table({"id": [5, 99], "name": ["merged", "inserted"]})
    merge = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update({"name": "s.name"}).when_not_matched_insert(
        {"id": "s.id", "name": "s.name"}
    ).execute()
    table.restore(1)
    table.delete("id = 6")


def copied(path: Path) -> None:
    changed(made(path, **FEED))


def masked(path: Path) -> None:
    changed(made(path, **VECTORS))


def partitioned(path: Path) -> None:
    changed(made(path, "part", **FEED))


def partitioned_and_masked(path: Path) -> None:
    table = made(path, "day", **VECTORS)
    changed(table)
    table.delete("day = '2024-01-02'")


def by_moment(path: Path) -> None:
    table = made(path, "at", **FEED)
    table.delete("id < 5")


def overwritten(path: Path) -> None:
    """Files with vectors that leave the table whole."""
    table = made(path, **VECTORS)
    table.delete("id in (0, 8)")
    write_deltalake(path, pa.table(ROWS).slice(3, 2), mode="overwrite")
    DeltaTable(path).restore(2)
    write_deltalake(path, pa.table(ROWS).slice(3, 2), mode="overwrite")


def mapped(path: Path) -> None:
    table = made(path, "day", **VECTORS, **{"delta.columnMapping.mode": "name"})
    changed(table)
    table.delete("id = 0")


def mapped_by_id(path: Path) -> None:
    table = made(path, None, **VECTORS, **{"delta.columnMapping.mode": "id"})
    table.delete("id = 0")


def tracked(path: Path) -> None:
    table = made(path, None, **VECTORS, **{"delta.enableRowTracking": "true"})
    table.delete("id = 0")
    table.optimize.compact()  # no change
    table.delete("id = 1")


def grown(path: Path) -> None:
    write_deltalake(path, pa.table({"a": [1, 2]}), configuration=VECTORS)
    DeltaTable(path).delete("a = 1")
    more = pa.table({"a": [3], "new": ["here"]})
    write_deltalake(path, more, mode="append", schema_mode="merge")


SHAPES: tuple[Build, ...] = (
    copied,
    masked,
    partitioned,
    partitioned_and_masked,
    by_moment,
    overwritten,
    mapped,
    mapped_by_id,
    tracked,
    grown,
)


def feed(spark: SparkSession, path: Path, start: int = 0, **options: Any) -> DataFrame:
    read = spark.read.format("deltalog").option("readChangeFeed", True)
    return read.options(startingVersion=start, **options).load(str(path))


def rows(data: pa.Table | DataFrame) -> list[str]:
    table = data if isinstance(data, pa.Table) else data.toArrow()
    return sorted(str(list(row.values())) for row in table.to_pylist())


@pytest.fixture
def registered(spark: SparkSession) -> SparkSession:
    deltalog.spark.register(spark)
    return spark


@pytest.mark.protocol("D-79")
@pytest.mark.parametrize("build", SHAPES, ids=lambda build: build.__name__)
def test_changes_are_those_of_the_core(
    registered: SparkSession, tmp_path: Path, build: Build
) -> None:
    build(tmp_path)
    latest = DeltaTable(tmp_path).snapshot
    found = feed(registered, tmp_path)
    assert is_native(found)
    assert rows(found) == rows(open_changes(latest, start=0).to_table())
    # Each costs a job: the first one, one amid them, and the last.
    for version in sorted({0, latest.version // 2 + 1, latest.version}):
        own = open_changes(latest, start=version, end=version).to_table()
        assert rows(feed(registered, tmp_path, version, endingVersion=version)) == rows(own)


@pytest.mark.parametrize("build", [masked, partitioned_and_masked])
@pytest.mark.parametrize("most", [0, 1000])
def test_files_are_told_apart_by_length_or_by_name(
    registered: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    build: Build,
    most: int,
) -> None:
    monkeypatch.setattr("deltalog.spark.reading.file_values.MOST_LOOKED_AT", most)
    build(tmp_path)
    changes = open_changes(DeltaTable(tmp_path).snapshot, start=0)
    assert rows(feed(registered, tmp_path)) == rows(changes.to_table())


def test_positions_are_found_on_the_cluster_when_they_are_many(
    registered: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.spark.reading.positions.MOST_READ_HERE", 1)
    monkeypatch.setattr("deltalog.spark.reading.positions.MOST_BROADCAST", 1)
    masked(tmp_path)
    changes = open_changes(DeltaTable(tmp_path).snapshot, start=0)
    assert rows(feed(registered, tmp_path)) == rows(changes.to_table())


def test_a_file_is_read_once_for_all_its_deletes(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path, **VECTORS)
    for number in range(7):
        table.delete(f"id = {number}")
    plan = plan_changes(spark, open_changes(table.snapshot, start=2))
    (group,) = plan.groups
    assert group.num_rows == 13  # a vector that only grew gives an empty insert as well
    assert len(set(group.column("location").to_pylist())) == 1
    assert plan.unfit == ()


def test_columns_and_filters_reach_the_reader(registered: SparkSession, tmp_path: Path) -> None:
    copied(tmp_path)
    found = feed(registered, tmp_path).where("id > 9").select("id", "_change_type")
    assert "ReadSchema: struct<id:bigint>" in plan(found)
    assert "GreaterThan(id,9)" in plan(found)
    # A version's change type is a constant: of changes that cannot be, no file is read.
    assert "FileScan" not in plan(
        feed(registered, tmp_path, 0, endingVersion=0).where("_change_type = 'delete'")
    )


def test_a_schema_chooses_columns(registered: SparkSession, tmp_path: Path) -> None:
    copied(tmp_path)
    read = registered.read.format("deltalog").options(readChangeFeed=True, startingVersion=0)
    frame = read.schema("_commit_version BIGINT, id BIGINT").load(str(tmp_path))
    assert frame.columns == ["_commit_version", "id"]
    assert frame.where("_commit_version = 0").count() == 8


def test_bounds_may_be_moments_of_the_session_s_zone(
    registered: SparkSession, tmp_path: Path
) -> None:
    copied(tmp_path)
    times = [entry["timestamp"] for entry in DeltaTable(tmp_path).history()]
    before = registered.conf.get("spark.sql.session.timeZone")
    registered.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        (row,) = registered.sql(f"SELECT string(timestamp_millis({min(times)}))").collect()
        read = registered.read.format("deltalog").option("readChangeFeed", "true")
        found = read.option("startingTimestamp", row[0]).load(str(tmp_path))
        assert found.count() == feed(registered, tmp_path).count()
    finally:
        registered.conf.set("spark.sql.session.timeZone", str(before))


def test_only_files_that_spark_misreads_go_to_workers(
    registered: SparkSession, tmp_path: Path
) -> None:
    data = pa.table({"id": [1, 2], "part": ["a", "b{c}"]})
    write_deltalake(tmp_path, data, partition_by="part", configuration=FEED)
    found = feed(registered, tmp_path)
    assert "FileScan parquet" in plan(found)
    assert "read by Python workers: 1 file" in plan(found)
    changes = open_changes(DeltaTable(tmp_path).snapshot, start=0)
    assert rows(found) == rows(changes.to_table())


def test_an_end_after_the_last_version_is_the_last(
    registered: SparkSession, tmp_path: Path
) -> None:
    copied(tmp_path)
    every = feed(registered, tmp_path)
    assert feed(registered, tmp_path, endingVersion=99).count() == every.count()


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"startingVersion": 99}, VersionNotFoundError, "its versions are 0 to 7"),
        ({"startingVersion": 3, "endingVersion": 2}, InvalidInputError, "ends before it starts"),
        ({}, InvalidInputError, "expected startingVersion"),
        ({"startingVersion": 0, "versionAsOf": 1}, InvalidInputError, "limit the feed"),
        ({"startingVersion": 0, "metadataColumns": "row_id"}, InvalidInputError, "not have them"),
    ],
)
def test_errors_are_those_of_the_python_source(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], kind: type, message: str
) -> None:
    copied(tmp_path)

    def load() -> DataFrame:
        read = spark.read.format("deltalog").option("readChangeFeed", True)
        return read.options(**options).load(str(tmp_path))

    with pytest.raises(AnalysisException, match=f"{kind.__name__}: .*{message}"):
        load().collect()
    deltalog.spark.register(spark)
    with pytest.raises(kind, match=message) as caught:
        load()
    assert isinstance(caught.value, AnalysisException)


def test_a_range_without_the_feed_is_refused(registered: SparkSession, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"x": [1]}))
    with pytest.raises(ChangeDataFeedNotEnabledError):
        feed(registered, tmp_path)
    DeltaTable(tmp_path).alter.set_table_properties(FEED)
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, pa.table({"y": ["a"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(IncompatibleChangesError):
        feed(registered, tmp_path, table.version())


def test_a_file_that_was_vacuumed_is_missed(registered: SparkSession, tmp_path: Path) -> None:
    copied(tmp_path)
    for file in tmp_path.glob("_change_data/*.parquet"):
        file.unlink()
    with pytest.raises(DataFileMissingError):
        feed(registered, tmp_path).collect()


@pytest.mark.parametrize("vectors", ["true", "false"] if FULL else ["true"])
def test_changes_of_the_reference_are_read_as_it_reads_them(
    registered: SparkSession, delta_spark: Spark, tmp_path: Path, vectors: str
) -> None:
    path = tmp_path / "t"
    delta_spark.tell(
        path,
        "CREATE TABLE T (k BIGINT, p STRING, v STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        f"'delta.enableDeletionVectors' = '{vectors}')",
        "INSERT INTO T SELECT id, CAST(id % 2 AS STRING), concat('v', id) FROM range(0, 10, 1, 2)",
        "DELETE FROM T WHERE k = 3",
        "UPDATE T SET v = 'new' WHERE k IN (4, 5)",
        "MERGE INTO T USING (SELECT 6 AS k, '0' AS p UNION ALL SELECT 99, '1') s ON T.k = s.k "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, p) VALUES (s.k, s.p)",
        "DELETE FROM T WHERE p = '1'",
    )
    found = feed(registered, path)
    assert is_native(found)
    shown = ["k", "p", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    there = delta_spark.changes(path, 0).select(shown)
    assert rows(found.select(*shown)) == rows(there)
