"""What writing a checkpoint leaves in the files, and what it leaves behind when it fails."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from deltalog.checkpoints.rows import stats_leaves
from deltalog.checkpoints.writer import CheckpointLayout
from deltalog.context import utc_context
from deltalog.errors import InvalidPartitionValueError
from deltalog.log import names
from deltalog.snapshot import load_snapshot
from deltalog.storage import open_store
from deltalog.upkeep import create_checkpoint
from tests.support import logs
from tests.support.logs import DictStore, Json
from tests.support.raw_tables import mapped, struct_of

NOW = 1_800_000_000_000
V2: Json = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": ["v2Checkpoint"],
    }
}


def adds_of(store: DictStore, version: int = 0) -> list[Any]:
    data = store.files[names.log_path(names.checkpoint_name(version))]
    rows = pq.read_table(io.BytesIO(data)).column("add").drop_null().to_pylist()
    return sorted(rows, key=lambda row: str(row["path"]) if row else "")


@pytest.mark.protocol("CKPT-16", "CKPT-22", "B-13", "D-63")
def test_a_file_without_statistics_has_none_that_are_typed() -> None:
    texts = ['{"numRecords":2,"nullCount":{"id":1}}', None, "{", "{}"]
    lines = [
        logs.add(f"f{n}", **({} if text is None else {"stats": text}))
        for n, text in enumerate(texts)
    ]
    store = logs.table_of(lines)
    create_checkpoint(load_snapshot(utc_context(store)))
    first, *others = [row["stats_parsed"] for row in adds_of(store)]
    assert first["numRecords"] == 2
    assert first["nullCount"] == {"id": 1, "p": None}
    assert others == [None, None, None]


@pytest.mark.protocol("CKPT-19", "B-25", "D-29")
def test_the_leaves_of_typed_statistics() -> None:
    fields = [mapped(name, "long", n, f"c{n}") for n, name in enumerate(["a", "b", "p"], 1)]
    nested = struct_of(mapped("x", "string", 5, "c5"), mapped("y", "boolean", 6, "c6"))
    fields.append(mapped("s", nested, 4, "c4"))
    store = DictStore()
    metadata = logs.metadata(
        schemaString=json.dumps(struct_of(*fields)),
        partitionColumns=["p"],
        configuration={
            "delta.columnMapping.mode": "name",
            "delta.dataSkippingStatsColumns": "S,`b`,gone",
        },
    )
    logs.commit(store, 0, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, metadata)
    leaves = [path for path, _ in stats_leaves(load_snapshot(utc_context(store)).configuration)]
    assert leaves == [
        ("numRecords",),
        ("minValues", "c2"),
        ("minValues", "c4", "c5"),
        ("maxValues", "c2"),
        ("maxValues", "c4", "c5"),
        ("nullCount", "c2"),
        ("nullCount", "c4", "c5"),
        ("nullCount", "c4", "c6"),
    ]


@pytest.mark.protocol("CKPT-12", "ROWID-20", "B-72", "B-79")
def test_the_drafts_actions_are_kept_as_they_are() -> None:
    mark: Json = {"rowIdHighWaterMark": {"highWaterMark": 11, "preservedRowIds": True}}
    store = logs.table_of([logs.add("a", baseRowId=3), mark, logs.domain("d", {"k": "v"})])
    before = load_snapshot(utc_context(store))
    create_checkpoint(before)
    del store.files[names.commit_path(0)]
    after = load_snapshot(utc_context(store))
    assert after.row_id_high_water_mark == 11
    assert after.domain_metadata == before.domain_metadata
    data = store.files[names.log_path(names.checkpoint_name(0))]
    column = pq.read_table(io.BytesIO(data)).column("rowIdHighWaterMark").drop_null()
    assert column.to_pylist() == [mark["rowIdHighWaterMark"]]


@pytest.mark.protocol("CKPT-11")
def test_what_a_checkpoint_adds_changes_no_data() -> None:
    store = logs.table_of([logs.add("a"), logs.remove("b", deletionTimestamp=NOW, tags={"x": "y"})])
    create_checkpoint(load_snapshot(utc_context(store)), at_ms=NOW)
    assert [row["dataChange"] for row in adds_of(store)] == [False]
    data = store.files[names.log_path(names.checkpoint_name(0))]
    schema = pq.read_schema(io.BytesIO(data))
    assert not {"stats", "tags"} & {field.name for field in schema.field("remove").type}


def test_types_are_plain_parquet() -> None:
    """No flavour of Arrow's own: no large or view types, no dictionaries, no stored schema."""
    store = logs.table_of([logs.add("a", stats='{"numRecords":1}')])
    create_checkpoint(load_snapshot(utc_context(store)))
    data = store.files[names.log_path(names.checkpoint_name(0))]
    footer = pq.read_metadata(io.BytesIO(data))
    assert footer.metadata is None
    kinds = {str(footer.schema.column(n).logical_type) for n in range(len(footer.schema))}
    assert kinds <= {"String", "None"}
    group = footer.row_group(0)
    assert {group.column(n).compression for n in range(group.num_columns)} == {"SNAPPY"}


@pytest.mark.protocol("CKPT-14")
def test_a_corrupt_partition_value_is_no_null() -> None:
    store = DictStore()
    fields = struct_of(("id", "long"), ("p", "integer"))
    metadata = logs.metadata(schemaString=json.dumps(fields), partitionColumns=["p"])
    logs.commit(store, 0, logs.PROTOCOL, metadata, logs.add("a", partitionValues={"p": "x"}))
    with pytest.raises(InvalidPartitionValueError):
        create_checkpoint(load_snapshot(utc_context(store)))
    assert list(store.files) == [names.commit_path(0)]


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
    del store.files[names.commit_path(0)]
    assert load_snapshot(utc_context(store)).num_files == 0
    assert load_snapshot(utc_context(store)).tombstones(["path"]).to_pylist() == [{"path": "a"}]
