"""What writing a checkpoint leaves in the files, and what it leaves behind when it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltalog.errors import InvalidPartitionValueError
from deltalog.log import names
from deltalog.log.checkpoints.writer import CheckpointLayout, count_parts
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.storage import open_store
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.support import logs
from tests.support.logs import Json
from tests.support.raw_tables import struct_of

NOW = 1_800_000_000_000


V2: Json = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": ["v2Checkpoint"],
    }
}


@pytest.mark.parametrize(
    ("layout", "part_rows"),
    [
        (CheckpointLayout.CLASSIC, None),
        (CheckpointLayout.V2_JSON, 1),
        (CheckpointLayout.V2_PARQUET, 1),
    ],
)
def test_a_failure_leaves_nothing_behind(
    tmp_path: Path, layout: CheckpointLayout, part_rows: int | None
) -> None:
    fields = struct_of(("id", "long"), ("p", "integer"))
    metadata = logs.metadata(schemaString=json.dumps(fields), partitionColumns=["p"])
    good = [logs.add(f"a{n}", partitionValues={"p": "1"}) for n in range(3)]
    commit = logs.ndjson([V2, metadata, *good, logs.add("b", partitionValues={"p": "x"})])
    store = open_store(str(tmp_path))
    store.put_if_absent(names.commit_path(0), commit)
    with pytest.raises(InvalidPartitionValueError):
        create_checkpoint(load_snapshot(utc_context(store)), layout=layout, part_rows=part_rows)
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert left == [names.commit_name(0)]


@pytest.mark.protocol("CKPT-07", "D-22", "B-14")
def test_parts_never_mix_with_those_of_a_torn_attempt(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    actions = [logs.PROTOCOL, logs.metadata(), *[logs.add(f"f{n}") for n in range(4)]]
    store.put_if_absent(names.commit_path(0), logs.ndjson(actions))
    for part in (1, 2):  # another engine's, with other ranges
        foreign = names.log_path(names.checkpoint_part_name(0, part, 2))
        store.put_if_absent(foreign, logs.checkpoint_parquet(actions[:3]))
        if part == 1:
            create_checkpoint(load_snapshot(utc_context(store)), part_rows=2)
    info = load_snapshot(utc_context(store)).segment.checkpoint
    assert info is not None
    assert len(info.files) == 3
    (tmp_path / names.commit_path(0)).unlink()
    paths = load_snapshot(utc_context(store)).files(["path"]).column("path")
    assert sorted(map(str, paths.to_pylist())) == ["f0", "f1", "f2", "f3"]


@pytest.mark.protocol("CKPT-10")
def test_a_table_without_files_may_have_parts() -> None:
    store = logs.table_of([logs.remove("a", deletionTimestamp=NOW)])
    create_checkpoint(load_snapshot(utc_context(store)), part_rows=10, at_ms=NOW)
    parts = [path for path in store.files if ".checkpoint." in path]
    assert parts == [names.log_path(names.checkpoint_part_name(0, 1, 1))]
    del store.files[names.commit_path(0)]
    assert load_snapshot(utc_context(store)).num_files == 0
    assert load_snapshot(utc_context(store)).tombstones(["path"]).to_pylist() == [{"path": "a"}]


@pytest.mark.parametrize(
    ("num_files", "part_rows", "parts"), [(0, 10, 1), (1, 10, 1), (10, 10, 1), (11, 10, 2)]
)
def test_a_checkpoint_has_as_many_parts_as_its_files_fill_and_one_at_least(
    num_files: int, part_rows: int, parts: int
) -> None:
    assert count_parts(logs.DictStore(), 3, num_files, part_rows) == parts
