"""The state of large tables, read and pruned by tasks: what the core finds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.data.scan.prune import prune
from deltalog.errors import CheckpointUnreadableError, InvalidInputError
from deltalog.expressions import as_expression, resolve_predicate
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.spark.reading.scan import ClusterPlan, files_frame
from deltalog.spark.reading.state import MOST_FILES_HERE, prune_on_cluster
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.property.test_checkpoint_laws import LAYOUTS
from tests.property.test_pieces_laws import WHERE, checkpointed
from tests.spark.large import SMALL_SHARES, put_on_disk
from tests.spark.shapes import (
    Build,
    mapped,
    mapped_by_id,
    partitioned_with_vectors,
    plain,
    tracked,
    with_odd_names,
)
from tests.spark.test_native import rows

NAMES = FILE_SCHEMA.names


@pytest.fixture
def always(spark: SparkSession) -> Iterator[None]:
    """Tasks look after the state of every table with a checkpoint."""
    spark.conf.set(MOST_FILES_HERE, "0")
    yield
    spark.conf.unset(MOST_FILES_HERE)


def with_checkpoint(build: Build, path: Path) -> DeltaTable:
    """A table of a shape whose files are in a checkpoint."""
    build(path)
    DeltaTable(path).create_checkpoint()
    return DeltaTable(path)


def files(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@given(data=st.data())
@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_files_are_those_that_the_core_finds(spark: SparkSession, data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from(sorted(LAYOUTS)))
    with tempfile.TemporaryDirectory() as directory:
        path = put_on_disk(data.draw(checkpointed(LAYOUTS[layout])), Path(directory))
        store = open_store(str(path))
        whole = load_snapshot(utc_context(store))
        schema = whole.configuration.schema
        where = as_expression(data.draw(st.sampled_from(WHERE)), schema)
        predicate = resolve_predicate(where, schema)
        want = prune(whole, predicate)
        again = load_snapshot(utc_context(store))
        found = prune_on_cluster(spark, again, predicate, share_bytes=SMALL_SHARES)
        assert files(found.files(NAMES)) == files(want.files(NAMES))
        assert found.explain() == want.explain()
        frame = files_frame(spark, again, predicate, share_bytes=SMALL_SHARES)
        assert files(frame.select(*NAMES).toArrow()) == files(want.files(NAMES))
        assert not again.read_log(lambda state: state.holds_columns)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    "build", [partitioned_with_vectors, mapped, mapped_by_id, tracked, with_odd_names]
)
def test_rows_are_those_of_the_core(spark: SparkSession, tmp_path: Path, build: Build) -> None:
    """Both where the driver lists the files that are left, and where they stay on the cluster."""
    table = with_checkpoint(build, tmp_path)
    want = rows(table.to_pyarrow_table())
    names = ["file_path", "row_index", *(["row_id"] if build is tracked else [])]
    scan = deltalog.spark.scan(spark, tmp_path, metadata_columns=names)
    assert isinstance(scan._plan, ClusterPlan)
    found = scan.to_df()
    assert rows(found.drop("_metadata")) == want
    hidden = table.scan(columns=[f"_metadata.{name}" for name in names])
    assert rows(found.select("_metadata.*")) == rows(hidden.to_table())
    listed = deltalog.spark.scan(spark, tmp_path, state_on_spark_files=1)
    assert rows(listed.to_df()) == want


@pytest.mark.usefixtures("always")
def test_columns_keep_their_comments(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema([Field("id", "long", metadata={"comment": "the key"})])
    DeltaTable.create(tmp_path, schema=schema)
    write_deltalake(tmp_path, pa.table({"id": [1]}), mode="append")
    DeltaTable(tmp_path).create_checkpoint()
    scan = deltalog.spark.scan(spark, tmp_path)
    assert isinstance(scan._plan, ClusterPlan)
    assert scan.to_df().schema["id"].metadata == {"comment": "the key"}


def test_few_files_that_are_left_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    for start in range(0, 40, 10):
        write_deltalake(tmp_path, pa.table({"id": range(start, start + 10)}), mode="append")
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, pa.table({"id": [100]}), mode="append")
    scan = deltalog.spark.scan(spark, tmp_path, state_on_spark_files=3).where("id in (15, 100)")
    assert sorted(row.id for row in scan.to_df().collect()) == [15, 100]
    assert len(scan.to_df().inputFiles()) == 2
    text = scan.explain()
    assert "files pruned by tasks: more than 3 are in the table" in text
    assert "files: 5 in the table, 2 to read" in text
    assert "read by Spark's own Parquet reader: 2 files" in text
    many = deltalog.spark.scan(spark, tmp_path, state_on_spark_files=3).where("id > 0")
    assert many.to_df().count() == 40
    assert "read by Python workers: 5 files\n  because they are more than 3" in many.explain()
    shown = scan.files()
    assert shown.columns == [*NAMES, "numRecords"]
    assert sorted(row.numRecords for row in shown.collect()) == [1, 10]


def test_small_tables_stay_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    with_checkpoint(plain, tmp_path)
    assert "pruned by tasks" not in deltalog.spark.scan(spark, tmp_path).explain()
    asked = deltalog.spark.scan(spark, tmp_path, state_on_spark_files=0)
    assert "pruned by tasks" in asked.explain()


@pytest.mark.parametrize("text", ["many", "-1", "1.5"])
def test_the_setting_is_a_number(spark: SparkSession, tmp_path: Path, text: str) -> None:
    plain(tmp_path)
    spark.conf.set(MOST_FILES_HERE, text)
    try:
        with pytest.raises(InvalidInputError, match="expected a whole number of files"):
            deltalog.spark.read(spark, tmp_path)
    finally:
        spark.conf.unset(MOST_FILES_HERE)


def test_the_driver_reads_no_file_of_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    store, snapshot = _with_sidecars(tmp_path)
    store.reset()
    schema = snapshot.configuration.schema
    predicate = resolve_predicate(as_expression("id = 3", schema), schema)
    found = prune_on_cluster(spark, snapshot, predicate)
    assert found.num_left == 1
    assert not [path for path in store.paths() if "_sidecars" in path]
    assert not snapshot.read_log(lambda state: state.holds_columns)


def _with_sidecars(path: Path) -> tuple[CountingStore, Snapshot]:
    configuration = {"delta.checkpointPolicy": "v2"}
    for number in range(4):
        data = pa.table({"id": [number]})
        write_deltalake(path, data, mode="append", configuration=configuration)
    DeltaTable(path).create_checkpoint()
    store = CountingStore(open_store(str(path)))
    return store, load_snapshot(utc_context(store))


def test_what_is_damaged_is_read_another_way(spark: SparkSession, tmp_path: Path) -> None:
    _, snapshot = _with_sidecars(tmp_path)
    sidecar = next((tmp_path / "_delta_log" / "_sidecars").iterdir())
    sidecar.write_bytes(sidecar.read_bytes()[:100])
    found = prune_on_cluster(spark, snapshot, None)
    assert found.num_left == 4  # by the commits
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(CheckpointUnreadableError, match=r"checkpoint .* is unusable"):
        prune_on_cluster(spark, load_snapshot(utc_context(open_store(str(tmp_path)))), None)


@pytest.mark.usefixtures("always")
def test_changes_find_their_files_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    with_checkpoint(partitioned_with_vectors, tmp_path)
    table = deltalog.spark.DeltaTable.forPath(spark, tmp_path)
    table.delete("id = 3")
    table.update("id in (5, 7)", {"name": "'changed'"})
    more = spark.createDataFrame([(9, "merged"), (50, "new")], "id LONG, name STRING")
    merge = table.alias("t").merge(more.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"name": "s.name"}).whenNotMatchedInsert(
        values={"id": "s.id", "name": "s.name"}
    ).execute()
    found = {row.id: row.name for row in table.toDF().select("id", "name").collect()}
    assert found == {1: "n1", 5: "changed", 7: "changed", 9: "merged", 11: "n11", 50: "new"}
    assert rows(table.toDF()) == rows(DeltaTable(tmp_path).to_pyarrow_table())
    assert not table._table.snapshot.read_log(lambda state: state.holds_columns)
