# ruff: noqa: S608  # locations of tables are in the statements
"""Tables with a column `_metadata` of their own: it hides what tells the place of a row.

Each is changed by Spark and, a copy of it, by the core.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog import write_deltalake
from deltalog.data.scan import plan_scan
from deltalog.errors import InvalidInputError
from deltalog.expressions.sql_session import SqlSession
from deltalog.operations.arguments import as_condition
from deltalog.schema import Field, StructType
from deltalog.spark import DeltaTable
from deltalog.spark.reading.conditions import knows_no_zone
from tests.spark.test_batch_source import load, partitions, reader
from tests.spark.test_door import is_native
from tests.spark.test_native import rows
from tests.spark.test_stream_source import Query
from tests.support.reference_scenarios import FULL

VECTORS: Final = {"delta.enableDeletionVectors": "true"}
MAPPED: Final = {"delta.columnMapping.mode": "name"}
FEED_AND_IDS: Final = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}


@dataclass(frozen=True, kw_only=True)
class Own:
    """A column of the table.

    Args:
        name: as the table spells it.
        values: of the rows 0…9, and of two that come.
        part: of it, by which rows are found; increases from row to row.
        texts: whether that is a text.
        partition_by: whether the table is partitioned by it.
    """

    name: str = "_metadata"
    values: pa.Array[Any]
    part: str = ""
    texts: bool = False
    partition_by: bool = False

    def rows(self, first: int, end: int) -> pa.Table:
        ids = pa.array(range(first, end), pa.int64())
        return pa.table({"id": ids, self.name: self.values.slice(first, end - first)})

    def place(self, number: int) -> str:
        """The column's part for a row, as SQL."""
        value = self.values[number].as_py()
        if self.part:
            value = value[self.part]
        return f"'{value}'" if self.texts else str(value)

    @property
    def path(self) -> str:
        return f"{self.name}.{self.part}" if self.part else self.name


_PLACES: Final = [
    {"file_path": f"f{n:02}", "row_index": 10 * n, "row_id": -n, "file_name": None}
    for n in range(12)
]
KINDS: Final = {
    "long": Own(values=pa.array([10 * n for n in range(12)])),
    "upper": Own(name="_METADATA", values=pa.array([10 * n for n in range(12)])),
    "struct": Own(
        values=pa.array(
            _PLACES,
            pa.struct(
                [
                    ("file_path", pa.string()),
                    ("row_index", pa.int64()),
                    ("row_id", pa.int64()),
                    ("file_name", pa.string()),
                ]
            ),
        ),
        part="file_path",
        texts=True,
    ),
    "partition": Own(
        values=pa.array([f"p{n // 3}" for n in range(12)]), texts=True, partition_by=True
    ),
}


@pytest.fixture
def registered(spark: SparkSession) -> SparkSession:
    deltalog.spark.register(spark)
    return spark


kinds = pytest.mark.parametrize("own", KINDS.values(), ids=KINDS)
PROPERTIES: Final = {
    "copied": {},
    "masked": VECTORS,
    "masked-feed-ids": VECTORS | FEED_AND_IDS,
    "copied-feed-ids": FEED_AND_IDS,
    "masked-mapped": VECTORS | MAPPED,
}


def in_turn(turn: int) -> pytest.MarkDecorator:
    """A third of the pairs, or all: each operation has every kind, and all properties."""
    return pytest.mark.parametrize(
        ("own", "properties"),
        [
            pytest.param(own, properties, id=f"{name}-{kind}")
            for column, (kind, own) in enumerate(KINDS.items())
            for line, (name, properties) in enumerate(PROPERTIES.items())
            if FULL or (line + column) % 3 == turn
        ],
    )


def make(path: Path, own: Own, properties: dict[str, str]) -> CoreTable:
    """Rows 0…9 in two files, or more by partition."""
    by = [own.name] if own.partition_by else None
    write_deltalake(path, own.rows(0, 6), configuration=properties, partition_by=by)
    write_deltalake(path, own.rows(6, 10), mode="append")
    return CoreTable(path)


def ids_of(table: CoreTable) -> list[int]:
    found: list[Any] = table.to_pyarrow_table()["id"].to_pylist()
    return sorted(found)


def both(
    spark: SparkSession, path: Path, own: Own, properties: dict[str, str]
) -> tuple[DeltaTable, CoreTable]:
    make(path / "spark", own, properties)
    return DeltaTable.forPath(spark, path / "spark"), make(path / "core", own, properties)


def assert_same(path: Path, own: Own) -> None:
    """The same rows, with the same row ids, and the same changes."""
    mine, theirs = CoreTable(path / "spark"), CoreTable(path / "core")
    report = mine.doctor()
    assert report.is_healthy, report.summary
    assert rows(mine.to_pyarrow_table()) == rows(theirs.to_pyarrow_table())
    if mine.snapshot.configuration.row_ids_enabled:
        known = [
            {row["id"]: row["_metadata.row_id"] for row in scan.to_table().to_pylist()}
            for scan in (
                plan_scan(one.snapshot, columns=["id"], hidden=["_metadata.row_id"])
                for one in (mine, theirs)
            )
        ]
        old = [{n: number for n, number in ids.items() if n < 10} for ids in known]
        assert old[0] == old[1]
    if mine.snapshot.configuration.change_data_feed_enabled:
        names = ["id", own.name, "_change_type", "_commit_version"]
        feeds = [one.load_cdf(starting_version=2, columns=names) for one in (mine, theirs)]
        assert rows(feeds[0].read_all()) == rows(feeds[1].read_all())


@in_turn(0)
def test_rows_are_deleted(
    spark: SparkSession, tmp_path: Path, own: Own, properties: dict[str, str]
) -> None:
    table, core = both(spark, tmp_path, own, properties)
    for condition in (
        f"{own.path} = {own.place(4)} AND id % 2 = 0",
        f"{own.path} > {own.place(7)}",
        "id = 1",
    ):
        table.delete(condition)
        core.delete(condition)
    assert_same(tmp_path, own)
    table.delete(F.col(own.path) == F.expr(own.place(0)))
    core.delete(f"{own.path} = {own.place(0)}")
    assert_same(tmp_path, own)


@in_turn(1)
def test_rows_are_updated(
    spark: SparkSession, tmp_path: Path, own: Own, properties: dict[str, str]
) -> None:
    table, core = both(spark, tmp_path, own, properties)
    condition = f"{own.path} = {own.place(4)} OR id = 8"
    for values in ({"id": "id * 1"}, {own.name: f"{own.name}"}):
        table.update(condition, set=values)
        core.update(values, predicate=condition)
    if own.part:
        value = {f"{own.name}.file_path": "concat('new', id)", f"{own.name}.row_index": "id"}
    else:
        value = {own.name: "'p9'" if own.texts else f"{own.name} + id"}
    table.update(condition, set=value)
    core.update(value, predicate=condition)
    assert_same(tmp_path, own)


@in_turn(2)
def test_rows_are_merged(
    spark: SparkSession, tmp_path: Path, own: Own, properties: dict[str, str]
) -> None:
    table, core = both(spark, tmp_path, own, properties)
    given = own.rows(8, 12)
    on = f"t.{own.path} = s.{own.path} AND t.id = s.id"
    theirs = spark.createDataFrame(given).alias("s")
    merge = (
        table.alias("t")
        .merge(theirs, on)
        .whenMatchedUpdate(f"t.{own.path} = {own.place(8)}", set={own.name: f"s.{own.name}"})
    )
    merge = merge.whenMatchedDelete().whenNotMatchedInsertAll()
    merge.whenNotMatchedBySourceUpdate(
        f"t.{own.path} < {own.place(4)}", set={"id": "t.id"}
    ).execute()
    ours = core.merge(given, on, source_alias="s", target_alias="t")
    ours = ours.when_matched_update({own.name: f"s.{own.name}"}, f"t.{own.path} = {own.place(8)}")
    ours = ours.when_matched_delete().when_not_matched_insert_all()
    ours.when_not_matched_by_source_update(
        {"id": "t.id"}, f"t.{own.path} < {own.place(4)}"
    ).execute()
    assert_same(tmp_path, own)


@kinds
def test_statements_change_rows(spark: SparkSession, tmp_path: Path, own: Own) -> None:
    make(tmp_path, own, VECTORS)
    name = f"delta.`{tmp_path}`"
    where = f"WHERE {own.path} = {own.place(5)} AND id = 5"
    assert deltalog.spark.sql(spark, f"UPDATE {name} SET id = 50 {where}").collect() == [(1,)]
    where = f"WHERE {own.path} < {own.place(3)}"
    assert deltalog.spark.sql(spark, f"DELETE FROM {name} {where}").collect() == [(3,)]
    assert ids_of(CoreTable(tmp_path)) == [3, 4, 6, 7, 8, 9, 50]


@kinds
@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copied", "masked"])
def test_rows_that_python_workers_read_are_changed(
    spark: SparkSession, tmp_path: Path, own: Own, properties: dict[str, str]
) -> None:
    make(tmp_path, own, properties)
    table = DeltaTable.forPath(spark, tmp_path, native=False)
    condition = f"{own.path} >= {own.place(3)} AND {own.path} <= {own.place(5)} AND id <> 4"
    table.delete(condition)
    core = CoreTable(tmp_path)
    assert ids_of(core) == [0, 1, 2, 4, 6, 7, 8, 9]
    assert rows(table.toDF()) == rows(core.to_pyarrow_table())


def test_rows_are_changed_of_more_files_than_the_driver_lists(
    spark: SparkSession, tmp_path: Path
) -> None:
    own = KINDS["struct"]
    make(tmp_path, own, VECTORS)
    spark.conf.set("spark.deltalog.stateOnSparkFiles", "0")
    try:
        DeltaTable.forPath(spark, tmp_path).delete("_metadata.row_index = 30")
        found = deltalog.spark.read(spark, tmp_path, where="_metadata.row_index > 70")
        assert rows(found) == rows(own.rows(8, 10))
    finally:
        spark.conf.unset("spark.deltalog.stateOnSparkFiles")
    assert len(CoreTable(tmp_path).to_pyarrow_table()) == 9


@kinds
@pytest.mark.parametrize("native", [True, False], ids=["native", "workers"])
def test_conditions_mean_the_column_that_the_table_has(
    spark: SparkSession, tmp_path: Path, own: Own, native: bool
) -> None:
    core = make(tmp_path, own, VECTORS)
    core.delete("id = 2")
    where = f"{own.path} = {own.place(5)}"
    wanted = core.scan(["id"], where).to_table()
    assert wanted.num_rows

    def read(**arguments: Any) -> DataFrame:
        return deltalog.spark.read(spark, tmp_path, native=native, **arguments)

    assert rows(read()) == rows(core.to_pyarrow_table())
    assert rows(read(where=where, columns=["id"])) == rows(wanted)
    assert rows(read().where(where).select("id")) == rows(wanted)
    assert rows(read(where=where)) == rows(core.scan(predicate=where).to_table())


@kinds
def test_the_format_reads_the_column(spark: SparkSession, tmp_path: Path, own: Own) -> None:
    core = make(tmp_path, own, VECTORS)
    core.delete("id = 2")
    wanted = rows(core.to_pyarrow_table())
    assert rows(load(spark, tmp_path)) == wanted
    found = reader(tmp_path)
    batches = [batch for part in partitions(found) for batch in found.read(part)]
    assert rows(pa.Table.from_batches(batches)) == wanted
    where = f"{own.path} = {own.place(5)}"
    assert rows(load(spark, tmp_path).where(where)) == rows(core.scan(predicate=where).to_table())


@kinds
def test_the_change_feed_has_the_column(registered: SparkSession, tmp_path: Path, own: Own) -> None:
    core = make(tmp_path, own, VECTORS | FEED_AND_IDS)
    core.delete("id = 2 OR id = 7")
    core.update({"id": "id + 100"}, predicate=f"{own.path} = {own.place(5)}")
    names = ["id", own.name, "_change_type", "_commit_version"]
    read = registered.read.format("deltalog").options(readChangeFeed=True, startingVersion=0)
    found = read.load(str(tmp_path))
    assert is_native(found)
    wanted = core.load_cdf(starting_version=0, columns=names).read_all()
    assert rows(found.select(*names)) == rows(wanted)


@kinds
def test_a_stream_reads_the_column(tmp_path: Path, own: Own) -> None:
    core = make(tmp_path, own, {})
    found = [row for batch in Query(tmp_path).batches() for row in batch]
    assert len(found) == 10
    values = [tuple(row.values()) for row in core.to_pyarrow_table().to_pylist()]
    assert sorted(map(str, found)) == sorted(map(str, values))


def test_metadata_columns_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    make(tmp_path, KINDS["long"], {})
    message = "the table has a column '_metadata'"
    for names in (["file_path"], ["*"]):
        with pytest.raises(InvalidInputError, match=message):
            deltalog.spark.read(spark, tmp_path, metadata_columns=names)
    with pytest.raises(InvalidInputError, match=message):
        reader(tmp_path, metadataColumns="row_index")
    with pytest.raises(InvalidInputError, match=message):
        Query(tmp_path, metadataColumns="row_index")


def test_a_moment_in_the_column_is_one_of_the_session() -> None:
    schema = StructType([Field("_metadata", StructType([Field("at", "timestamp")]))])
    session = SqlSession(now=None, time_zone="Asia/Tokyo")
    part = as_condition(schema, "_metadata.at > '2024-01-01 00:00:00'", session=session)
    assert part is not None
    assert not knows_no_zone(part, schema, "Asia/Tokyo", is_text=True)
    assert knows_no_zone(part, schema, "UTC", is_text=True)
