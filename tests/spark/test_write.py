"""Dataframes into tables: by `df.write`, and by `deltalog.spark.write`, which knows more modes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import InvalidInputError, TableExistsError
from deltalog.spark.session.types import to_spark_schema
from deltalog.spark.writing.options import WriteOptions
from deltalog.spark.writing.plan import open_to_write, plan_write

Write = Callable[..., None]

_OPTIONS = {
    "partition_by": "partitionBy",
    "merge_schema": "mergeSchema",
    "overwrite_schema": "overwriteSchema",
    "replace_where": "replaceWhere",
    "partition_overwrite": "partitionOverwriteMode",
    "user_metadata": "userMetadata",
}


def by_format(frame: DataFrame, table: Path, *, mode: str = "append", **given: Any) -> None:
    writer = frame.write.format("deltalog").mode(mode)
    for name, value in given.items():
        match name:
            case "txn":
                writer = writer.option("txnAppId", value[0]).option("txnVersion", value[1])
            case "properties":
                writer = writer.options(**value)
            case _:
                writer = writer.option(_OPTIONS[name], value)
    writer.save(str(table))


def by_function(frame: DataFrame, table: Path, *, mode: str = "append", **given: Any) -> None:
    deltalog.spark.write(frame, table, mode=mode, **given)  # type: ignore[arg-type]  # a literal


both = pytest.mark.parametrize("write", [by_format, by_function])


def rows(table: Path) -> list[tuple[Any, ...]]:
    found = DeltaTable(table).to_pyarrow_table().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def files(table: Path) -> set[str]:
    """Data files that are there, whether a version names them or not."""
    return {str(path) for path in table.rglob("*.parquet") if "_delta_log" not in path.parts}


@pytest.mark.protocol("D-79")
@both
def test_tables_are_made_appended_to_and_overwritten(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    table = tmp_path / "t"
    write(spark.createDataFrame([(1, "a")], "x long, s string"), table)
    write(spark.createDataFrame([(2, None)], "x long, s string"), table)
    assert rows(table) == [(1, "a"), (2, None)]
    write(spark.createDataFrame([(3, "c")], "x long, s string"), table, mode="overwrite")
    assert rows(table) == [(3, "c")]
    assert [entry["operation"] for entry in DeltaTable(table).history()] == ["WRITE"] * 3


@both
def test_each_task_writes_its_own_file_and_empty_frames_write_none(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    table = tmp_path / "t"
    write(spark.range(0, 4, 1, 2), table)
    assert len(DeltaTable(table).file_uris()) == 2
    write(spark.range(0), table)
    assert DeltaTable(table).version() == 1
    assert rows(table) == [(0,), (1,), (2,), (3,)]


@both
def test_partitions_and_properties_of_a_new_table(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    frame = spark.createDataFrame([(1, "a", "u"), (2, None, "v")], "x int, p string, q string")
    properties = {"delta.enableChangeDataFeed": "true"}
    write(frame, tmp_path / "t", partition_by="p", properties=properties)
    metadata = DeltaTable(tmp_path / "t").metadata()
    assert metadata.partition_columns == ("p",)
    assert metadata.configuration["delta.enableChangeDataFeed"] == "true"
    assert rows(tmp_path / "t") == [(1, "a", "u"), (2, None, "v")]


@pytest.mark.protocol("D-79")
@both
def test_schemas_grow_and_change_when_asked(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    table = tmp_path / "t"
    write(spark.createDataFrame([(1,)], "x int"), table)
    wider = spark.createDataFrame([(2, "b")], "x int, s string")
    with pytest.raises(Exception, match=r"the data has column.s. 's' that the table lacks"):
        write(wider, table)
    write(wider, table, merge_schema=True)
    assert rows(table) == [(1, None), (2, "b")]
    other = spark.createDataFrame([("z", 1.5)], "k string, d double")
    write(other, table, mode="overwrite", overwrite_schema=True, partition_by="k")
    assert DeltaTable(table).metadata().partition_columns == ("k",)
    assert rows(table) == [("z", 1.5)]


@pytest.mark.protocol("D-79")
@both
def test_rows_are_replaced_by_predicate(spark: SparkSession, tmp_path: Path, write: Write) -> None:
    table = tmp_path / "t"
    write(spark.createDataFrame([(1, "a"), (5, "a"), (9, "b")], "x int, s string"), table)
    new = spark.createDataFrame([(6, "n")], "x int, s string")
    write(new, table, mode="overwrite", replace_where="x >= 5")
    assert rows(table) == [(1, "a"), (6, "n")]
    before = files(table)
    with pytest.raises(Exception, match="1 of the new rows does not match"):
        write(new, table, mode="overwrite", replace_where="x < 5")
    assert (rows(table), files(table)) == ([(1, "a"), (6, "n")], before)


@both
def test_replacing_by_predicate_tells_the_change_feed(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    table = tmp_path / "t"
    frame = spark.createDataFrame([(1,), (5,)], "x int").coalesce(1)
    write(frame, table, properties={"delta.enableChangeDataFeed": "true"})
    write(spark.createDataFrame([(6,)], "x int"), table, mode="overwrite", replace_where="x >= 5")
    feed = DeltaTable(table).load_cdf(starting_version=1).read_all().to_pylist()
    assert sorted((row["x"], row["_change_type"]) for row in feed) == [(5, "delete"), (6, "insert")]


@pytest.mark.protocol("D-79")
@both
def test_only_the_partitions_of_new_rows_are_replaced(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    table = tmp_path / "t"
    old = spark.createDataFrame([(1, "a"), (2, "b"), (3, None)], "x int, p string")
    write(old, table, partition_by="p")
    new = spark.createDataFrame([(7, "b"), (8, None)], "x int, p string")
    write(new, table, mode="overwrite", partition_overwrite="dynamic")
    assert [row[0] for row in rows(table)] == [1, 7, 8]


@both
def test_a_repeated_write_of_an_application_is_skipped(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    table = tmp_path / "t"
    write(spark.range(1), table, txn=("app", 1))
    write(spark.range(1), table, txn=("app", 2), user_metadata="twice")
    kept = files(table)
    write(spark.range(1), table, txn=("app", 2))
    assert (len(rows(table)), files(table)) == (2, kept)
    (newest, _) = DeltaTable(table).history()
    assert newest["userMetadata"] == "twice"


@pytest.mark.protocol("D-79")
@both
def test_rules_of_the_table_hold(spark: SparkSession, tmp_path: Path, write: Write) -> None:
    table = tmp_path / "t"
    write(spark.createDataFrame([(1,)], "x int"), table)
    DeltaTable(table).alter.add_constraint({"positive": "x > 0"})
    before = files(table)
    with pytest.raises(Exception, match="CHECK constraint 'positive'"):
        write(spark.createDataFrame([(3,), (-3,)], "x int"), table)
    assert (rows(table), files(table)) == ([(1,)], before)


@both
def test_tasks_give_identity_values_of_their_own(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    table = tmp_path / "t"
    identity = {
        "delta.identity.start": 10,
        "delta.identity.step": 5,
        "delta.identity.allowExplicitInsert": False,
    }
    generated = {"delta.generationExpression": "x * 2"}
    DeltaTable.create(
        table,
        Schema(
            [
                Field("id", "long", metadata=identity),
                Field("x", "long"),
                Field("y", "long", metadata=generated),
            ]
        ),
    )
    write(spark.range(0, 6, 1, 3).withColumnRenamed("id", "x"), table)
    write(spark.range(6, 8, 1, 1).withColumnRenamed("id", "x"), table)
    found = rows(table)
    ids = [row[0] for row in found]
    assert len(set(ids)) == 8
    assert all((number - 10) % 5 == 0 and number >= 10 for number in ids)
    assert all(y == 2 * x for _, x, y in found)
    later = [number for number, x, _ in found if x >= 6]
    assert min(later) > max(number for number, x, _ in found if x < 6)


@both
def test_every_type_arrives(spark: SparkSession, tmp_path: Path, write: Write) -> None:
    frame = spark.sql(
        "SELECT true AS b, 1Y AS y, 2S AS h, 3 AS i, 4L AS l, 1.5F AS f, 2.5D AS d, 1.25BD AS n, "
        "'s' AS s, X'00FF' AS r, DATE'2024-02-29' AS day, TIMESTAMP'2024-02-29 12:00:00Z' AS t, "
        "TIMESTAMP_NTZ'2024-02-29 12:00:00' AS z, array(1, NULL) AS a, map('k', 1) AS m, "
        "named_struct('u', 1, 'v', 'w') AS st, parse_json('{\"k\": [1]}') AS va"
    )
    write(frame, tmp_path / "t")
    read = deltalog.spark.read(spark, tmp_path / "t", native=False)
    shown = ["to_json(struct(* EXCEPT (va)))", "to_json(va)"]
    assert read.selectExpr(*shown).collect() == frame.selectExpr(*shown).collect()


def test_modes_that_spark_does_not_hand_on(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    assert deltalog.spark.write(spark.range(2), table) == 0
    assert deltalog.spark.write(spark.range(2), table, mode="ignore") is None
    for mode in ("error", "errorifexists"):
        with pytest.raises(TableExistsError):
            deltalog.spark.write(spark.range(2), table, mode=mode)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("mergeShema", "true", "did you mean 'mergeSchema'"),
        ("mergeSchema", "yes", "expected true or false"),
        ("replaceWhere", "x > 1", "needs mode 'overwrite'"),
        ("txnAppId", "a", "set both"),
        ("partitionOverwriteMode", "some", "expected static or dynamic"),
        ("partitionBy", "nope", "nope"),
    ],
)
def test_options_are_refused_before_any_job(
    spark: SparkSession, tmp_path: Path, option: str, value: str, said: str
) -> None:
    writer = spark.range(1).write.format("deltalog").mode("append").option(option, value)
    with pytest.raises(Exception, match=said):
        writer.save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("where", "is_taken"),
    [
        ("t = '2024-01-01 12:00:00'", False),
        ("t >= TIMESTAMP'2024-01-01'", False),
        ("hour(t) = 3", False),
        ("d = current_date()", False),
        ("t >= TIMESTAMP'2024-01-01 12:00:00Z' AND t < '2024-01-02 12:00:00+09:00'", True),
        ("d = '2024-01-01' AND upper(s) = 'X' AND t IS NULL", False),
        ("d = '2024-01-01' AND upper(s) = 'X'", True),
    ],
)
def test_what_is_replaced_does_not_depend_on_the_session_s_zone(
    tmp_path: Path, where: str, *, is_taken: bool
) -> None:
    fields = [("t", "timestamp"), ("d", "date"), ("s", "string")]
    schema = Schema([Field(name, kind) for name, kind in fields])
    DeltaTable.create(tmp_path, schema)
    place, columns = open_to_write(tmp_path), to_spark_schema(schema)
    options = WriteOptions(mode="overwrite", replace_where=where, time_zone="Asia/Tokyo")
    with nullcontext() if is_taken else pytest.raises(InvalidInputError, match="Asia/Tokyo"):
        assert plan_write(place, columns, options).version == 0


def test_names_that_need_quotes_are_written_and_changed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's `mapInArrow` does not quote the names of the columns that it is given."""
    table = tmp_path / "t"
    frame = spark.sql("SELECT 1 AS `a.b`, 2 AS `x``y`, named_struct('q.r', 3) AS `s.t`")
    deltalog.spark.write(frame, table, properties={"delta.columnMapping.mode": "name"})
    changed = deltalog.spark.DeltaTable.forPath(spark, table).alias("t")
    changed.update("`a.b` = 1", {"`x``y`": "`a.b` + 4", "`s.t`.`q.r`": "9"})
    merge = changed.merge(frame.alias("s"), "t.`a.b` = s.`a.b`")
    merge.whenMatchedUpdate(set={"`a.b`": "s.`x``y`"}).execute()
    assert DeltaTable(table).to_pyarrow_table().to_pylist() == [
        {"a.b": 2, "x`y": 5, "s.t": {"q.r": 9}}
    ]


def test_columns_that_differ_by_case_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(InvalidInputError, match="'x' and 'X'"):
            deltalog.spark.write(spark.sql("SELECT 1 AS x, 2 AS X"), tmp_path / "t")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@both
def test_no_table_is_made_in_a_partition_directory(
    write: Write, spark: SparkSession, tmp_path: Path
) -> None:
    write_deltalake(tmp_path, [{"id": 1, "day": 1}], partition_by="day")
    before = files(tmp_path)
    with pytest.raises(Exception, match="it is in a partition directory of the table"):
        write(spark.range(1), tmp_path / "day=1")
    builder = deltalog.spark.DeltaTable.create(spark).addColumn("id", "LONG")
    with pytest.raises(InvalidInputError, match="it is in a partition directory of the table"):
        builder.location(str(tmp_path / "day=1")).execute()
    assert files(tmp_path) == before
