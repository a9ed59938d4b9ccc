"""Tables of every shape over Spark's own reader: the rows that the core reads."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable, col, write_deltalake
from deltalog.data.scan import plan_scan
from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_sql
from deltalog.spark.reading import native as native_reader
from deltalog.spark.reading.by_options import frame_by_options
from deltalog.spark.reading.file_values import FileKey, key_of
from deltalog.spark.reading.native import hive_partitions, plan_read
from deltalog.storage import open_store
from tests.spark.conftest import CONNECT
from tests.spark.shapes import (
    SHAPES,
    Build,
    grown,
    mapped,
    mapped_by_id,
    partitioned,
    partitioned_by_moment,
    partitioned_with_vectors,
    plain,
    tracked,
    widened,
    with_namesakes,
    with_nans,
    with_odd_names,
    with_odd_values,
    with_vectors,
)

METADATA = ("file_path", "file_name", "file_size", "file_modification_time", "row_index")


def rows(data: pa.Table | DataFrame) -> list[str]:
    table = data if isinstance(data, pa.Table) else data.toArrow()
    return sorted(str(list(row.values())) for row in table.to_pylist())


@pytest.fixture(params=SHAPES, ids=lambda build: build.__name__)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    build: Build = request.param
    build(tmp_path / "t")
    return tmp_path / "t"


@pytest.mark.skipif(CONNECT, reason="a remote session is asked once for all")
def test_a_column_takes_few_calls_of_sparks_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.clientserver import ClientServerConnection

    calls = 0
    send = ClientServerConnection.send_command

    def counted(self: Any, command: str) -> Any:
        nonlocal calls
        calls += not command.startswith("m\nd\n")  # of Python's garbage collector
        return send(self, command)

    def calls_of(num_columns: int) -> int:
        nonlocal calls
        path = tmp_path / str(num_columns)
        write_deltalake(path, pa.table({f"c{number}": [1] for number in range(num_columns)}))
        deltalog.spark.read(spark, path)
        calls = 0
        deltalog.spark.read(spark, path)
        return calls

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    assert (calls_of(30) - calls_of(10)) / 20 <= 8


@pytest.mark.protocol("D-79")
def test_rows_are_those_of_the_core(spark: SparkSession, table: Path) -> None:
    assert rows(deltalog.spark.read(spark, table)) == rows(DeltaTable(table).to_pyarrow_table())


def test_metadata_columns_are_those_of_the_core(spark: SparkSession, table: Path) -> None:
    tracked = DeltaTable(table).snapshot.configuration.row_ids_enabled
    names = [*METADATA, *(("row_id", "row_commit_version") if tracked else ())]
    found = deltalog.spark.read(spark, table, metadata_columns=names).select("_metadata.*")
    hidden = [f"_metadata.{name}" for name in names]
    assert found.columns == names
    assert rows(found) == rows(DeltaTable(table).scan(columns=hidden).to_table())


def test_metadata_columns_come_in_the_order_asked(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    names = ["row_index", "file_path"]
    where = "_metadata.file_name IS NOT NULL"
    for condition in (None, where):
        found = deltalog.spark.read(spark, tmp_path, metadata_columns=names, where=condition)
        assert found.select("_metadata.*").columns == names
        assert found.count() == 12


@pytest.mark.parametrize("build", [partitioned, with_vectors, with_odd_names])
@pytest.mark.parametrize(
    "where",
    ["id > 3 AND day = '2024-01-01'", col("part") == "d/e", [("id", "<", 2)], "name IS NULL"],
)
def test_conditions_are_those_of_the_core(
    spark: SparkSession, tmp_path: Path, build: Build, where: Any
) -> None:
    build(tmp_path)
    found = deltalog.spark.read(spark, tmp_path, where=where, columns=["name", "id"])
    assert found.columns == ["name", "id"]
    assert rows(found) == rows(DeltaTable(tmp_path).scan(["name", "id"], where).to_table())


@pytest.mark.parametrize(
    ("build", "where"),
    [
        (widened, "n > 5"),
        (widened, "n = 1"),
        (widened, "n < 1099511627777"),
        (widened, "f = 0.5"),
        (grown, "new = 'here'"),
        (grown, "new IS NULL"),
        (grown, "s.y IS NULL"),
        (mapped, "inner.w > 3 AND title <> 'n5'"),
        (mapped_by_id, "title = 'n1'"),
        (partitioned_by_moment, "at > timestamp'2024-01-01 05:00:00' AND price < 0.09"),
    ],
)
def test_later_conditions_reach_the_right_columns(
    spark: SparkSession, tmp_path: Path, build: Build, where: str
) -> None:
    """Spark hands them to its reader under the files' names and types."""
    build(tmp_path)
    found = deltalog.spark.read(spark, tmp_path).where(where)
    expected = rows(DeltaTable(tmp_path).scan(predicate=where).to_table())
    assert rows(found) == expected != []


def test_a_condition_prunes_files_before_spark_plans(spark: SparkSession, tmp_path: Path) -> None:
    partitioned(tmp_path)
    scan = deltalog.spark.scan(spark, tmp_path).where("day = '2024-01-02'")
    assert (
        len(scan.to_df().inputFiles())
        == DeltaTable(tmp_path).scan(predicate="day = '2024-01-02'").pruned.files(["path"]).num_rows
    )
    assert "pruned by partition values" in scan.explain()


def test_spark_columns_are_conditions_that_prune_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql import functions

    plain(tmp_path)
    scan = deltalog.spark.scan(spark, tmp_path).where(functions.col("id") > 9).select("name")
    assert sorted(scan.to_df().collect()) == [("n10",), ("n11",)]
    assert "filtered by Spark" in scan.explain()


@pytest.mark.protocol("D-79")
def test_texts_mean_what_the_session_s_time_zone_says(spark: SparkSession, tmp_path: Path) -> None:
    """11:00 UTC is after noon there: statistics in UTC must not prune what Spark would keep."""
    plain(tmp_path)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        found = deltalog.spark.read(spark, tmp_path, where="at < '2024-01-01 10:00:00'")
        assert sorted(row.id for row in found.collect()) == [0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def test_expressions_mean_what_the_session_s_time_zone_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark reads the texts of a partition in the session's zone, and so must pruning."""
    data = pa.table({"p": ["2024-01-01 05:00:00"], "id": [1]})
    write_deltalake(tmp_path, data, partition_by="p")
    where = parse_sql("CAST(p AS TIMESTAMP) < TIMESTAMP'2024-01-01 00:00:00Z'")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert deltalog.spark.read(spark, tmp_path, where=where).count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def test_files_and_rows_are_chosen_by_one_moment(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame may be used long after its files were chosen."""
    days = [date(2019, 1, 1), date(2021, 1, 1)]
    for day in days:
        write_deltalake(tmp_path, pa.table({"day": [day, days[0]]}), mode="append")
    monkeypatch.setattr("deltalog._util.clock.now_ms", lambda: 1_577_836_800_000)  # 2020
    found = deltalog.spark.read(spark, tmp_path, where="day > current_date()")
    assert [row.day for row in found.collect()] == [days[1]]
    found = deltalog.spark.read(spark, tmp_path, where="day < current_date()")
    assert [row.day for row in found.collect()] == [days[0]] * 3


@pytest.mark.parametrize("where", ["f > 3", "g >= 3", "s.f > 3", "s.in.g > 3", "f = double('NaN')"])
def test_nan_is_greater_than_what_footers_say(
    spark: SparkSession, tmp_path: Path, where: str
) -> None:
    with_nans(tmp_path)
    found = deltalog.spark.read(spark, tmp_path)
    assert [row.id for row in found.where(where).collect()] == [2]
    assert [row.id for row in deltalog.spark.read(spark, tmp_path, where=where).collect()] == [2]


@pytest.mark.parametrize("where", ["x > 1", "isnan(x)", "s.y > 1"])
def test_spark_finds_nan_in_our_files_without_us(
    spark: SparkSession, tmp_path: Path, where: str
) -> None:
    values = [0.0, float("nan"), None]
    table = pa.table({"n": [1, 2, 3], "x": values, "s": [{"y": value} for value in values]})
    write_deltalake(tmp_path, table)
    rows = spark.read.parquet(str(tmp_path)).where(where).collect()
    assert [row.n for row in rows] == [2]


def test_explain_says_who_reads_and_why(spark: SparkSession, tmp_path: Path) -> None:
    with_odd_names(tmp_path / "odd")
    with_vectors(tmp_path / "vectors")
    odd = deltalog.spark.scan(spark, tmp_path / "odd").explain()
    assert "read by Python workers" in odd
    assert "because Spark would not find " in odd
    vectors = deltalog.spark.scan(spark, tmp_path / "vectors").explain()
    assert "read by Spark's own Parquet reader: 2 files" in vectors
    assert "with deletion vectors, by an anti-join: 2" in vectors
    forced = deltalog.spark.scan(spark, tmp_path / "vectors", native=False).explain()
    assert "because native=False requires it" in forced


def test_tasks_read_many_small_files_unless_the_caller_has_chosen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explained(native: bool | None = None) -> str:
        return deltalog.spark.scan(spark, tmp_path, native=native).explain()

    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    by_spark, chosen = "read by Spark's own Parquet reader: 3 files", "read by Python workers: 3"
    assert by_spark in explained()
    monkeypatch.setattr(native_reader, "_MANY_FILES", 3)
    assert chosen in explained()
    assert "because Spark takes longer to open 3 files of " in explained()
    assert by_spark in explained(native=True)
    assert "because native=False requires it" in explained(native=False)
    assert rows(deltalog.spark.read(spark, tmp_path)) == ["[0]", "[1]", "[2]"]
    assert frame_by_options(spark, {"path": str(tmp_path)}) is None  # the Python source reads them
    where = deltalog.spark.scan(spark, tmp_path).where("id = 1")
    assert "read by Spark's own Parquet reader: 1 file" in where.explain()
    monkeypatch.setattr(native_reader, "_SMALL_FILE_BYTES", 100)
    assert by_spark in explained()


def test_deleted_rows_are_found_on_the_cluster_when_they_are_many(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.spark.reading.positions.MOST_READ_HERE", 1)
    monkeypatch.setattr("deltalog.spark.reading.positions.MOST_BROADCAST", 1)
    with_vectors(tmp_path)
    found = deltalog.spark.read(spark, tmp_path)
    assert rows(found) == rows(DeltaTable(tmp_path).to_pyarrow_table())


@pytest.mark.parametrize("most", [0, 1000])
@pytest.mark.parametrize("build", [partitioned_with_vectors, with_vectors, tracked])
def test_files_are_told_apart_by_length_or_by_name(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    build: Build,
    most: int,
) -> None:
    monkeypatch.setattr("deltalog.spark.reading.file_values.MOST_LOOKED_AT", most)
    build(tmp_path)
    found = deltalog.spark.read(spark, tmp_path, metadata_columns=["file_path"])
    names = [*DeltaTable(tmp_path).schema().names, "_metadata.file_path"]
    assert rows(found.select(*names)) == rows(DeltaTable(tmp_path).scan(names).to_table())


def test_lengths_tell_files_apart_only_where_they_differ_and_are_true(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for name, size in {"a": 7, "b": 18, "c": 7}.items():
        store.put(name, b"x" * size)

    def key(**sizes: int | None) -> FileKey:
        files = pa.table({"path": list(sizes), "name": list(sizes), "size": [*sizes.values()]})
        return key_of(store, files)

    assert key(a=7, b=18) == FileKey("file_size", 2)
    assert key(a=7, c=7) == FileKey("file_name")
    assert key(a=7, b=19) == FileKey("file_name")
    assert key(a=7, b=None) == FileKey("file_name")


@pytest.mark.parametrize(("most", "groups", "left"), [(4, [4, 1, 1], 0), (2, [4, 1], 1)])
def test_files_of_one_name_are_planned_apart(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    groups: list[int],
    left: int,
) -> None:
    monkeypatch.setattr("deltalog.spark.reading.native._MOST_NAMESAKES", most)
    with_namesakes(tmp_path)
    plan = plan_read(spark, plan_scan(DeltaTable(tmp_path).snapshot))
    assert [len(set(group.column("name").to_pylist())) for group in plan.groups] == groups
    assert [group.num_rows for group in plan.groups] == groups
    assert plan.unfit.num_rows == left


def test_an_unknown_metadata_column_is_named(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    with pytest.raises(InvalidInputError, match="did you mean 'row_id'"):
        deltalog.spark.read(spark, tmp_path, metadata_columns=["rowid"])


@pytest.mark.parametrize(
    ("build", "is_read_from_directories"),
    [
        (partitioned, True),
        (partitioned_with_vectors, True),
        (mapped, False),  # the directories have the names of before
        (partitioned_by_moment, False),
        (with_odd_values, False),
    ],
)
def test_spark_prunes_partitions_where_directories_tell_them(
    spark: SparkSession, tmp_path: Path, build: Build, is_read_from_directories: bool
) -> None:
    build(tmp_path)
    snapshot = DeltaTable(tmp_path).snapshot
    files = plan_read(spark, plan_scan(snapshot)).groups[-1]
    found = hive_partitions(snapshot.configuration, files, snapshot.store.root)
    assert (found is not None) == is_read_from_directories
    assert rows(deltalog.spark.read(spark, tmp_path)) == rows(
        DeltaTable(tmp_path).to_pyarrow_table()
    )


@pytest.mark.skipif(CONNECT, reason="a remote session does not show its jobs")
def test_spark_lists_many_files_in_few_tasks(spark: SparkSession, tmp_path: Path) -> None:
    numbers = list(range(200))
    write_deltalake(tmp_path, pa.table({"p": numbers, "id": numbers}), partition_by=["p"])
    context = spark.sparkContext
    context.setLocalProperty("spark.jobGroup.id", "listing")
    try:
        frame = deltalog.spark.read(spark, tmp_path)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # removes it
    tracker = context.statusTracker()
    (job,) = tracker.getJobIdsForGroup("listing")
    found = tracker.getJobInfo(job)
    assert found is not None
    stages = [tracker.getStageInfo(stage) for stage in found.stageIds]
    assert [stage.numTasks for stage in stages if stage] == [64]
    assert spark.conf.get("spark.sql.sources.parallelPartitionDiscovery.parallelism", None) is None
    assert frame.count() == 200
