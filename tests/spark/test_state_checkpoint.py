"""Checkpoints that tasks write: the state they were written from, laid out as the core does."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable, write_deltalake
from deltalog.log.checkpoints.writer import (
    CheckpointLayout,
    classic_rows,
    file_rows,
    part_paths,
)
from deltalog.log.context import utc_context
from deltalog.log.listing import read_hint
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.spark.engine.checkpoint import _write_part, checkpoint_on_cluster
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from deltalog.transaction.maintenance.checkpoint import content_of_files, create_checkpoint
from tests.property.test_checkpoint_laws import LAYOUTS, NOW, assert_same_state
from tests.property.test_pieces_laws import checkpointed
from tests.spark.large import SMALL_SHARES, put_on_disk
from tests.support import logs
from tests.support.logs import DictStore


def opened(path: Path) -> Snapshot:
    return load_snapshot(utc_context(open_store(str(path))))


def without_commits(path: Path, version: int) -> Snapshot:
    """What the checkpoint alone says."""
    for number in range(version + 1):
        (path / commit_path(number)).unlink(missing_ok=True)
    return opened(path)


@pytest.mark.protocol("CKPT-02", "CKPT-03", "CKPT-12")
@pytest.mark.parametrize("layout", [LAYOUTS["V2 JSON"], LAYOUTS["V2 Parquet"], LAYOUTS["parts"]])
@given(data=st.data())
@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_it_is_the_state_that_it_was_written_from(
    spark: SparkSession, layout: tuple[CheckpointLayout, int | None], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = data.draw(checkpointed(layout))
        version = load_snapshot(utc_context(store)).version + 1
        logs.commit(store, version, logs.add("p=1/new", size=7), logs.remove("a"))
        path = put_on_disk(store, Path(directory))
        before = opened(path)
        info = checkpoint_on_cluster(
            spark, before, layout=layout[0], part_files=2, at_ms=NOW, share_bytes=SMALL_SHARES
        )
        assert (info.version, info.num_adds) == (
            version,
            load_snapshot(utc_context(store)).num_files,
        )
        after = without_commits(path, version)
        assert after.segment.checkpoint is not None
        assert after.segment.checkpoint.name == info.files.name
        assert_same_state(after, load_snapshot(utc_context(store)))


@pytest.mark.protocol("CKPT-06", "CKPT-10", "B-14")
def test_parts_hold_what_the_core_puts_there(spark: SparkSession, tmp_path: Path) -> None:
    """So that two writers of a version may each write some of its parts."""
    store = _old_table()
    ours, theirs = put_on_disk(store, tmp_path / "a"), put_on_disk(store, tmp_path / "b")
    create_checkpoint(opened(theirs), part_rows=8, at_ms=NOW)
    found = checkpoint_on_cluster(
        spark, opened(ours), part_files=8, at_ms=NOW, share_bytes=SMALL_SHARES
    )
    assert len(found.files.files) == 5
    for file in found.files.files:
        one, other = (pq.read_table(path / file.path) for path in (ours, theirs))
        assert one.schema == other.schema
        assert sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist()))
    hints = [read_hint(open_store(str(path))) for path in (ours, theirs)]
    assert hints[0] is not None
    assert hints[1] is not None
    assert hints[0].num_add_files == hints[1].num_add_files == 39


def _old_table() -> DictStore:
    names = [f"d/{number * 7919 % 1000:03}.parquet" for number in range(40)]
    store = logs.table_of([logs.add(name) for name in names])
    multi = [logs.PROTOCOL, logs.metadata(), *[logs.add(name) for name in names]]
    logs.multi_part_checkpoint(store, 0, [multi[:20], multi[20:]])
    gone = [logs.remove(name, deletionTimestamp=NOW) for name in names[3:6]]
    logs.commit(store, 1, *gone, logs.add("z"), logs.add("\u00e9"))
    return store


def test_a_checkpoint_that_is_there_stays(spark: SparkSession, tmp_path: Path) -> None:
    path = put_on_disk(_old_table(), tmp_path)
    first = deltalog.spark.checkpoint(spark, path, part_files=30)
    listed = sorted(file.name for file in (path / "_delta_log").iterdir())
    second = deltalog.spark.checkpoint(spark, path, part_files=30)
    assert (second.num_adds, second.num_removes) == (first.num_adds, first.num_removes) == (39, 3)
    assert sorted(file.name for file in (path / "_delta_log").iterdir()) == listed


def test_a_table_gets_the_layout_that_it_allows(spark: SparkSession, tmp_path: Path) -> None:
    store = CountingStore(open_store(str(tmp_path)))
    v2 = {"delta.checkpointPolicy": "v2"}
    for number in range(4):
        data = pa.table({"id": [number]})
        write_deltalake(str(tmp_path), data, mode="append", configuration=v2)
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, pa.table({"id": [9]}), mode="append")
    row = deltalog.spark.DeltaTable.forPath(spark, store).checkpoint().collect()[0]
    assert (row.version, row.num_files, row.num_tombstones) == (4, 5, 0)
    assert not [path for path in store.paths("open", "put", "read") if "_sidecars" in path]
    after = without_commits(tmp_path, 4)
    assert after.num_files == 5
    assert after.segment.checkpoint is not None
    assert after.segment.checkpoint.name.endswith(".json")


def test_a_part_that_another_attempt_wrote_stays() -> None:
    """Spark tries tasks again, and may run one twice at a time."""
    store = _old_table()
    snapshot = load_snapshot(utc_context(store))
    content = snapshot.read_log(lambda state: content_of_files(snapshot, state, NOW))
    removes, adds = (
        [batch for table in tables for batch in table.to_batches()]
        for tables in file_rows(content, classic_rows(content))
    )
    runs = [*((0, batch) for batch in removes), *((1, batch) for batch in adds)]
    paths = part_paths(1, 2)
    first = _write_part(store, content, paths, 1, iter(runs))
    data = store.read(paths[1])
    second = _write_part(store, content, paths, 1, iter(runs))
    assert first[1] == second[1] == [3, 39]
    assert first[0].path == second[0].path == paths[1]
    assert store.read(paths[1]) is data
