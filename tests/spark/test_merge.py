"""Merges on Spark: every clause, with copies of files and with deletion vectors."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog.errors import AmbiguousMergeError, InvalidInputError
from deltalog.operations.merge import upsert
from deltalog.spark import DeltaTable, IdentityGenerator
from deltalog.spark.engine.engine import SparkEngine
from deltalog.spark.merge import DeltaMergeBuilder
from tests.spark.conftest import CONNECT

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
IDS = {"delta.enableRowTracking": "true"}

kinds = pytest.mark.parametrize(
    "properties",
    [{}, VECTORS, {**VECTORS, **FEED, **IDS}],
    ids=["copied", "masked", "masked-feed-ids"],
)


def begin(
    spark: SparkSession,
    path: Path,
    properties: dict[str, str],
    source: str = "VALUES (1, 'a'), (2, 'b'), (7, 'g'), (9, NULL) AS s(k, v)",
    condition: Any = "t.k = s.k",
) -> DeltaMergeBuilder:
    """A merge into rows 0…5 of two files; the source is called `s`."""
    frame = spark.range(0, 6, 1, 2).selectExpr("id AS k", "concat('v', id) AS v")
    deltalog.spark.write(frame, path, properties=properties)
    return DeltaTable.forPath(spark, path).alias("t").merge(given(spark, source), condition)


def given(spark: SparkSession, source: str) -> DataFrame:
    return spark.sql(f"SELECT * FROM {source}").alias("s")  # noqa: S608  # ours


def rows(path: Path) -> list[tuple[Any, ...]]:
    """The rows, of a table in which nothing is wrong."""
    table = CoreTable(path)
    report = table.doctor()
    assert report.is_healthy, report.summary
    found = table.to_pyarrow_table().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def counts(builder: DeltaMergeBuilder) -> tuple[int, ...]:
    (row,) = builder.execute().collect()
    return tuple(row)


@kinds
def test_known_rows_change_and_new_ones_come(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    path = tmp_path / "t"
    merge = begin(spark, path, properties).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert counts(merge) == (4, 2, 0, 2)
    assert rows(path) == [
        (0, "v0"), (1, "a"), (2, "b"), (3, "v3"), (4, "v4"), (5, "v5"), (7, "g"), (9, None)
    ]  # fmt: skip
    if properties.get("delta.enableChangeDataFeed"):
        feed = CoreTable(path).load_cdf(starting_version=1).read_all().to_pylist()
        assert sorted((row["_change_type"], row["k"], row["v"]) for row in feed if row["v"]) == [
            ("insert", 7, "g"),
            ("update_postimage", 1, "a"),
            ("update_postimage", 2, "b"),
            ("update_preimage", 1, "v1"),
            ("update_preimage", 2, "v2"),
        ]


@kinds
def test_the_first_clause_that_applies_decides(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    path = tmp_path / "t"
    merge = (
        begin(spark, path, properties)
        .whenMatchedDelete("s.v = 'a'")
        .whenMatchedUpdate(F.col("t.k") > 1, {"v": F.concat("t.v", F.lit("+"), "s.v")})
        .whenNotMatchedInsert("s.v IS NULL", {"t.k": "s.k * 10", "v": "'none'"})
        .whenNotMatchedInsert(values={"k": "s.k"})
        .whenNotMatchedBySourceUpdate("t.k = 0", {"v": "concat(v, '?')"})
        .whenNotMatchedBySourceDelete("t.k > 4")
    )
    assert counts(merge) == (6, 2, 2, 2)
    assert rows(path) == [(0, "v0?"), (2, "v2+b"), (3, "v3"), (4, "v4"), (7, None), (90, "none")]


def test_only_files_that_the_keys_allow_are_touched(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    begin(spark, path, {}, "VALUES (4, 'x') AS s(k, v)").whenMatchedUpdateAll().execute()
    (newest, _) = CoreTable(path).history()
    metrics = newest["operationMetrics"]
    assert metrics["numTargetFilesRemoved"] == "1"
    assert metrics["numTargetRowsCopied"] == "2"
    assert metrics["numSourceRows"] == "1"


def jobs(spark: SparkSession, work: Callable[[], object]) -> int:
    """The number of jobs that some work starts."""
    group = uuid.uuid4().hex
    context = spark.sparkContext
    context.setLocalProperty("spark.jobGroup.id", group)
    try:
        work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # removes it
    return len(context.statusTracker().getJobIdsForGroup(group))


@pytest.mark.skipif(CONNECT, reason="a remote session does not tell its jobs")
def test_a_small_merge_starts_no_job_to_copy_rows_or_to_show_numbers(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As many jobs where files are rewritten as where deletion vectors are written."""
    counted: list[int] = []
    results: list[DataFrame] = []
    for properties in ({}, VECTORS):
        merge = begin(spark, tmp_path / f"t{len(counted)}", properties).whenMatchedUpdateAll()
        counted.append(jobs(spark, lambda merge=merge: results.append(merge.execute())))  # type: ignore[misc]  # a default
    assert counted[0] == counted[1]
    assert jobs(spark, lambda: [tuple(one.collect()[0]) for one in results]) == 0
    assert [tuple(one.collect()[0]) for one in results] == [(2, 2, 0, 0)] * 2
    assert all(field.nullable for field in results[0].schema)


def test_a_source_that_the_user_has_persisted_stays_so(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(spark.range(3), tmp_path)
    table, source = DeltaTable.forPath(spark, tmp_path).alias("t"), spark.range(2, 5).persist()
    table.merge(source.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    assert source.storageLevel.useMemory
    source.unpersist()
    other = spark.range(2, 6)
    table.merge(other.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    assert not other.storageLevel.useMemory
    assert [row for (row,) in rows(tmp_path)] == [0, 1, 2, 3, 4, 5]


def test_a_builder_stays_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    builder = begin(spark, tmp_path / "t", {}).whenNotMatchedInsertAll()
    deleting = builder.whenMatchedDelete()
    with pytest.warns(RuntimeWarning, match="was never run"):
        builder.withSchemaEvolution().whenMatchedDelete()
    assert counts(builder) == (2, 0, 0, 2)
    assert counts(deleting) == (4, 0, 4, 0)


@kinds
def test_inserts_alone_look_for_no_row_to_change(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    path = tmp_path / "t"
    assert counts(begin(spark, path, properties).whenNotMatchedInsertAll()) == (2, 0, 0, 2)
    assert [row for row in rows(path) if row[0] > 5] == [(7, "g"), (9, None)]
    again = DeltaTable.forPath(spark, path).merge(
        given(spark, "VALUES (7, 'z') AS s(k, v)"), F.expr("s.v IS NULL")
    )
    assert counts(again.whenNotMatchedInsertAll()) == (1, 0, 0, 1)


@kinds
def test_several_rows_of_the_source_for_one_of_the_table(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    path = tmp_path / "t"
    twice = "VALUES (1, 'a'), (1, 'b'), (3, 'c') AS s(k, v)"
    merge = begin(spark, path, properties, twice)
    before = rows(path)
    files = set(path.rglob("*.parquet"))
    with pytest.raises(AmbiguousMergeError, match="several rows of the source"):
        merge.whenMatchedUpdateAll().execute()
    assert (rows(path), set(path.rglob("*.parquet"))) == (before, files)
    table = DeltaTable.forPath(spark, path).alias("t")
    apart = table.merge(given(spark, twice), "t.k = s.k").whenMatchedUpdate(
        "s.v <> 'b'", {"v": "s.v"}
    )
    assert counts(apart) == (2, 2, 0, 0)
    gone = table.merge(given(spark, twice), "t.k = s.k").whenMatchedDelete()
    gone.execute()
    assert [row[0] for row in rows(path)] == [0, 2, 4, 5]


def test_columns_of_the_source_may_be_added(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    wider = "VALUES (1, 'a', 0.5D), (8, 'h', 1.5D) AS s(k, v, w)"
    merge = begin(spark, path, VECTORS, wider).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merge.withSchemaEvolution().execute()
    assert (1, "a", 0.5) in rows(path)
    assert (8, "h", 1.5) in rows(path)
    assert (0, "v0", None) in rows(path)


def test_what_is_left_out_and_what_is_too_much(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    merge = begin(spark, path, {}, "VALUES (1) AS s(k)")
    with pytest.raises(InvalidInputError, match="the source lacks 'v'"):
        merge.whenMatchedUpdateAll().execute()
    other = (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(given(spark, "VALUES (1, 'a', 2) AS s(k, v, w)"), "t.k = s.k")
    )
    other.whenMatchedUpdateAll().execute()
    assert rows(path)[1] == (1, "a")
    with pytest.raises(InvalidInputError, match="at least one WHEN"):
        begin(spark, tmp_path / "u", {}).execute()
    with pytest.raises(InvalidInputError, match="never apply"):
        begin(spark, tmp_path / "v", {}).whenMatchedDelete().whenMatchedUpdateAll().execute()


def test_tables_with_other_names_and_odd_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a table"
    properties = {"delta.columnMapping.mode": "name", **VECTORS, **FEED}
    frame = spark.sql(
        "SELECT * FROM VALUES (1, 'x y/z%', 'a'), (2, 'ü:[1]', 'b'), (3, NULL, 'c') "
        "AS s(k, `p q`, v)"
    )
    deltalog.spark.write(frame, path, properties=properties, partition_by="p q")
    table = DeltaTable.forPath(spark, path).alias("t")
    table.update("`p q` = 'x y/z%'", {"v": "'A'"})
    source = spark.sql("SELECT * FROM VALUES (2, 'new', 'B'), (3, 'n n', 'C') AS s(k, `p q`, v)")
    merge = table.merge(source.alias("s"), "t.k = s.k").whenMatchedUpdateAll("s.k = 2")
    assert counts(merge.whenMatchedDelete()) == (2, 1, 1, 0)
    assert rows(path) == [(1, "x y/z%", "A"), (2, "new", "B")]
    feed = CoreTable(path).load_cdf(starting_version=2).read_all().to_pylist()
    assert sorted((row["_change_type"], row["k"]) for row in feed) == [
        ("delete", 3),
        ("update_postimage", 2),
        ("update_preimage", 2),
    ]


def test_generated_identity_and_default_columns_of_new_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table = (
        DeltaTable.create(spark)
        .location(str(path))
        .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator())
        .addColumn("k", "INT", nullable=False)
        .addColumn("double", "INT", generatedAlwaysAs="k * 2")
        .addColumn("at", "TIMESTAMP")
        .execute()
    )
    source = spark.sql("SELECT * FROM VALUES (1, TIMESTAMP'2024-01-01'), (2, NULL) AS s(k, at)")

    def merge() -> None:
        begun = table.alias("t").merge(source.alias("s"), "t.k = s.k")
        begun.whenMatchedUpdate(set={"k": "s.k + 10"}).whenNotMatchedInsertAll().execute()

    merge()
    before = {row["k"]: row["id"] for row in table.toDF().collect()}
    merge()
    after = {row["k"]: (row["id"], row["double"]) for row in table.toDF().collect()}
    assert after == {11: (before[1], 22), 12: (before[2], 24)}
    merge()
    found = table.toDF().collect()
    assert (len(found), len({row["id"] for row in found})) == (4, 4)


def test_files_are_not_pruned_by_what_the_session_zone_decides(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql("SELECT 1L AS k, TIMESTAMP'2020-01-01 02:00:00Z' AS at")
    deltalog.spark.write(frame, tmp_path)
    source = spark.sql("SELECT 1L AS k").alias("s")
    # In New York it is the last day of 2019; in UTC no row of the file is that old.
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        table = DeltaTable.forPath(spark, tmp_path).alias("t")
        for condition in ("t.at < '2019-12-31 22:00:00'", "CAST(t.at AS DATE) = DATE'2019-12-31'"):
            merge = table.merge(source, f"t.k = s.k AND {condition}")
            assert counts(merge.whenMatchedUpdate(set={"k": "t.k"})) == (1, 1, 0, 0)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_merge_of_the_core_knows_its_names_here(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(spark.range(3).selectExpr("id", "'old' AS v"), tmp_path)
    core = CoreTable.from_context(CoreTable(tmp_path).snapshot.context, SparkEngine(spark))
    source = spark.range(2, 4).selectExpr("id", "'new' AS v")
    verb = upsert(source, "id")
    counted = core.do(verb, dry_run=True)
    assert counted["num_target_rows_updated"] == counted["num_target_rows_inserted"] == 1
    assert counted["files"]["action"].to_pylist() == ["rewrite"]
    assert core.version() == 0
    done = core.do(verb)
    assert done["num_target_rows_updated"] == done["num_target_rows_inserted"] == 1
    assert rows(tmp_path) == [(0, "old"), (1, "old"), (2, "new"), (3, "new")]


def test_a_builder_that_was_never_run_warns(spark: SparkSession, tmp_path: Path) -> None:
    builder = begin(spark, tmp_path / "t", {})
    with pytest.warns(RuntimeWarning, match=r"was never run: call execute\(\)"):
        builder.whenMatchedDelete()
    CoreTable.create(tmp_path / "p", CoreTable(tmp_path / "t").schema(), partition_by=["k"])
    with pytest.warns(RuntimeWarning, match=r"never run: call executeCompaction\(\)"):
        DeltaTable.forPath(spark, str(tmp_path / "p")).optimize().where("k = 1")
