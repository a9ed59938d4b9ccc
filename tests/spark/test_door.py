"""`spark.read` after `register`: the plan and the rows of `deltalog.spark.read`, however spelt."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  # as everywhere in PySpark's world

import deltalog.spark
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError, InvalidInputError, TableNotFoundError, VersionNotFoundError
from deltalog.spark.session.settings import FORMATS
from tests.spark.conftest import CONNECT
from tests.spark.shapes import SHAPES, Build, partitioned, plain, tracked
from tests.spark.test_native import rows

Load = Callable[[SparkSession, str], DataFrame]
SPELLINGS: dict[str, Load] = {
    "load": lambda spark, path: spark.read.format("deltalog").load(path),
    "case": lambda spark, path: spark.read.format("DeltaLog").load(path),
    "list": lambda spark, path: spark.read.format("deltalog").load([path]),
    "format": lambda spark, path: spark.read.load(path, format="deltalog"),
    "option": lambda spark, path: spark.read.format("deltalog").option("path", path).load(),
    "options": lambda spark, path: spark.read.options(PATH=path).load(format="deltalog"),
    "keywords": lambda spark, path: spark.read.load(format="deltalog", path=path, versionAsOf=1),
    "schema": lambda spark, path: (
        spark.read.schema("id BIGINT, name STRING")
        .format("deltalog")
        .load(path)
        .select("id", "name")
    ),
    "table": lambda spark, path: spark.read.table(f"deltalog.`{path}`"),
    "format.table": lambda spark, path: spark.read.format("deltalog").table(f"`deltalog`.`{path}`"),
}


@pytest.fixture
def registered(spark: SparkSession) -> SparkSession:
    deltalog.spark.register(spark)
    return spark


def plan(frame: DataFrame) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(mode="extended")
    return text.getvalue().partition("== Physical Plan ==")[2]


def is_native(frame: DataFrame) -> bool:
    text = plan(frame)
    return "FileScan parquet" in text and "BatchScan" not in text and "MapInArrow" not in text


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_planned_in_the_session(
    registered: SparkSession, tmp_path: Path, spelling: str
) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "name": ["a", "b"]}))
    write_deltalake(tmp_path, pa.table({"id": [3], "name": ["c"]}), mode="append")
    frame = SPELLINGS[spelling](registered, str(tmp_path))
    assert is_native(frame)
    assert sorted(frame.collect()) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("build", SHAPES, ids=lambda build: build.__name__)
def test_rows_and_schema_are_those_of_the_python_source(
    spark: SparkSession, tmp_path: Path, build: Build
) -> None:
    build(tmp_path)
    before = spark.read.format("deltalog").load(str(tmp_path)).schema
    deltalog.spark.register(spark)
    found = spark.read.format("deltalog").load(str(tmp_path))
    assert found.schema.simpleString() == before.simpleString()
    assert [one.metadata for one in found.schema] == [one.metadata for one in before]
    assert rows(found) == rows(DeltaTable(tmp_path).to_pyarrow_table())


def test_columns_are_pruned_and_filters_reach_the_reader(
    registered: SparkSession, tmp_path: Path
) -> None:
    plain(tmp_path)
    frame = registered.read.format("deltalog").load(str(tmp_path))
    text = plan(frame.where("id > 9").select("name"))
    assert "ReadSchema: struct<id:bigint,name:string>" in text
    assert "GreaterThan(id,9)" in text
    assert sorted(frame.where("id > 9").select("name").collect()) == [("n10",), ("n11",)]


def test_options_mean_the_same(registered: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    read = registered.read.format("deltalog")
    assert read.option("VersionAsOf", 0).load(str(tmp_path)).count() == 8
    assert registered.read.format("deltalog").load(f"{tmp_path}@v0").count() == 8
    last = DeltaTable(tmp_path).history()[0]["timestamp"]
    moment = f"{last // 1000}.{last % 1000:03}"
    at = registered.sql(f"SELECT string(timestamp_seconds({moment}))").collect()[0][0]
    assert registered.read.load(str(tmp_path), "deltalog", timestampAsOf=at).count() == 12
    # The later of two spellings of one option holds, as Spark has it.
    both = registered.read.format("deltalog").option("versionAsOf", 1).option("VERSIONASOF", 0)
    assert both.load(str(tmp_path)).count() == 8


def test_metadata_columns_come_as_a_struct(registered: SparkSession, tmp_path: Path) -> None:
    tracked(tmp_path)
    frame = registered.read.load(str(tmp_path), "deltalog", metadataColumns="row_id,file_name")
    names = ["_metadata.row_id", "_metadata.file_name"]
    assert frame.columns[-1] == "_metadata"
    assert rows(frame.select(*names)) == rows(DeltaTable(tmp_path).scan(names).to_table())


def test_moments_without_a_zone_are_the_session_s(registered: SparkSession, tmp_path: Path) -> None:
    """The Python source cannot know the session's zone when it plans, and refuses them."""
    plain(tmp_path)
    last = DeltaTable(tmp_path).history()[0]["timestamp"] / 1000
    before = registered.conf.get("spark.sql.session.timeZone")
    registered.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        (row,) = registered.sql(f"SELECT string(timestamp_seconds({last}))").collect()
        read = registered.read.format("deltalog").option("timestampAsOf", row[0])
        assert read.load(str(tmp_path)).count() == 12
        with pytest.raises(VersionNotFoundError):  # nine hours later
            read.option("timeZone", "UTC").load(str(tmp_path))
    finally:
        registered.conf.set("spark.sql.session.timeZone", str(before))


def test_a_schema_chooses_columns_and_changes_none(
    registered: SparkSession, tmp_path: Path
) -> None:
    plain(tmp_path)
    read = registered.read.format("deltalog")
    asked = T.StructType([T.StructField("name", T.StringType()), T.StructField("id", T.LongType())])
    assert read.schema(asked).load(str(tmp_path)).columns == ["name", "id"]
    with pytest.raises(InvalidInputError, match="with another schema"):
        read.schema("id STRING").load(str(tmp_path))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"versonAsOf": "1"}, InvalidInputError, "did you mean 'versionAsOf'"),
        ({"versionAsOf": "1", "timestampAsOf": "2024-01-01"}, InvalidInputError, "use one of them"),
        ({"startingVersion": "1"}, InvalidInputError, "without readChangeFeed"),
        ({"versionAsOf": "7"}, VersionNotFoundError, "latest version is 1"),
        ({"metadataColumns": "rowid"}, InvalidInputError, "did you mean 'row_id'"),
    ],
)
def test_errors_are_those_of_the_python_source(
    spark: SparkSession,
    tmp_path: Path,
    options: dict[str, str],
    kind: type[DeltaError],
    message: str,
) -> None:
    plain(tmp_path)
    with pytest.raises(AnalysisException, match=f"{kind.__name__}: .*{message}") as theirs:
        spark.read.format("deltalog").options(**options).load(str(tmp_path)).collect()
    deltalog.spark.register(spark)
    with pytest.raises(kind, match=message) as ours:
        spark.read.format("deltalog").options(**options).load(str(tmp_path))
    assert isinstance(ours.value, AnalysisException)
    assert ours.value.getCondition() == theirs.value.getCondition()
    back = pickle.loads(pickle.dumps(ours.value))
    assert (type(back), str(back)) == (type(ours.value), str(ours.value))


def test_a_missing_table_is_named(registered: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as caught:
        registered.read.format("deltalog").load(str(tmp_path / "none"))
    assert isinstance(caught.value, AnalysisException)


@pytest.mark.parametrize("options", [{"maxPartitionBytes": "1m"}, {"pushFilters": "false"}])
def test_what_is_said_to_workers_is_left_to_them(
    registered: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    plain(tmp_path)
    frame = registered.read.format("deltalog").options(**options).load(str(tmp_path))
    assert "BatchScan deltalog" in plan(frame)
    assert "(Python)" in plan(frame)
    assert frame.count() == 12


def test_filters_of_spark_reach_what_only_workers_can_read(
    registered: SparkSession, tmp_path: Path
) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "nothing": pa.nulls(2)}))
    found = registered.read.format("deltalog").load(str(tmp_path)).where("id > 1")
    assert "(Python)" in plan(found)
    assert found.count() == 1


def test_explain_says_which_files_workers_read_and_why(
    registered: SparkSession, tmp_path: Path
) -> None:
    data = pa.table({"id": [1, 2], "part": ["a", "b{c}"]})
    write_deltalake(tmp_path, data, partition_by="part")
    text = plan(registered.read.format("deltalog").load(str(tmp_path)))
    assert "FileScan parquet" in text
    assert "read by Python workers: 1 file" in text
    assert "Spark would not find 1 file by name" in text


def test_a_frame_keeps_the_version_that_it_showed(registered: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    frame = registered.read.format("deltalog").load(str(tmp_path))
    write_deltalake(tmp_path, pa.table({"id": [99]}), mode="append")
    assert frame.count() == 12


def test_other_formats_and_tables_are_passed_on(registered: SparkSession, tmp_path: Path) -> None:
    registered.range(3).write.parquet(str(tmp_path / "p"))
    registered.range(3).write.json(str(tmp_path / "j"))
    registered.range(3).createOrReplaceTempView("three")
    read = registered.read
    assert read.load(str(tmp_path / "p")).count() == 3
    assert read.json(str(tmp_path / "j"), schema="id BIGINT").count() == 3
    assert read.schema("id BIGINT").format("json").load([str(tmp_path / "j")]).count() == 3
    assert registered.read.table("three").count() == 3
    assert registered.read.table(f"parquet.`{tmp_path / 'p'}`").count() == 3


def test_partitioned_tables_prune_partitions(registered: SparkSession, tmp_path: Path) -> None:
    partitioned(tmp_path)
    frame = registered.read.format("deltalog").load(str(tmp_path)).where("day = '2024-01-02'")
    assert "PartitionFilters: [isnotnull(day" in plan(frame)
    assert rows(frame) == rows(DeltaTable(tmp_path).scan(predicate="day = '2024-01-02'").to_table())


def test_the_session_s_default_format_counts(registered: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    registered.conf.set("spark.sql.sources.default", "deltalog")
    try:
        assert is_native(registered.read.load(str(tmp_path)))
    finally:
        registered.conf.unset("spark.sql.sources.default")


def test_delta_is_read_where_it_was_registered(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    deltalog.spark.register(spark, name="delta")
    assert is_native(spark.read.format("delta").load(str(tmp_path)))
    assert is_native(spark.read.table(f"delta.`{tmp_path}`"))
    assert not is_native(spark.read.format("deltalog").load(str(tmp_path)))
    deltalog.spark.unregister(spark, name="delta")
    assert not is_native(spark.read.format("delta").load(str(tmp_path)))


def test_streams_are_untouched(registered: SparkSession, tmp_path: Path) -> None:
    before = type(registered.readStream)
    plain(tmp_path / "t")
    stream = registered.readStream.format("deltalog").load(str(tmp_path / "t"))
    assert type(registered.readStream) is before
    assert stream.isStreaming


def test_unregister_puts_everything_back(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    kind: Any = type(spark)
    before = kind.read
    reader = type(spark.read)
    for _ in range(2):
        deltalog.spark.register(spark)
    deltalog.spark.register(spark, name="delta")
    assert kind.read is not before
    assert isinstance(spark.read, reader)
    deltalog.spark.unregister(spark)
    assert is_native(spark.read.format("delta").load(str(tmp_path)))
    deltalog.spark.unregister(spark, name="delta")
    deltalog.spark.unregister(spark, name="delta")
    assert kind.read is before
    assert type(spark.read) is reader
    assert spark.conf.get(FORMATS, None) is None
    assert not is_native(spark.read.format("deltalog").load(str(tmp_path)))


def test_a_later_patch_of_others_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    kind: Any = type(spark)
    before = kind.read
    deltalog.spark.register(spark)
    ours = kind.read
    theirs = property(ours.fget)
    kind.read = theirs  # as another library would
    try:
        deltalog.spark.unregister(spark)
        assert kind.read is theirs
        assert not is_native(spark.read.format("deltalog").load(str(tmp_path)))
        deltalog.spark.register(spark)
        assert is_native(spark.read.format("deltalog").load(str(tmp_path)))
    finally:
        kind.read = ours
        deltalog.spark.unregister(spark)
    assert kind.read is before


def test_sessions_that_are_not_registered_are_as_before(
    registered: SparkSession, tmp_path: Path
) -> None:
    if CONNECT:
        pytest.skip("a remote session cannot make another one")
    plain(tmp_path)
    other = registered.newSession()
    frame = other.read.format("deltalog").load(str(tmp_path))
    assert not is_native(frame)
    assert is_native(registered.read.format("deltalog").load(str(tmp_path)))


def test_threads_may_register_at_once(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    before = type(spark).read
    threads = [Thread(target=deltalog.spark.register, args=(spark,)) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert is_native(spark.read.format("deltalog").load(str(tmp_path)))
    deltalog.spark.unregister(spark)
    assert type(spark).read is before
