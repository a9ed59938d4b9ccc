from __future__ import annotations

import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable
from deltalog.errors import CheckpointUnreadableError, InvalidPartitionValueError
from deltalog.log import names
from deltalog.log.checkpoints.rows import stats_leaves
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.support import logs
from tests.support.logs import DictStore, Json
from tests.support.raw_tables import mapped, struct_of

NOW = 1_800_000_000_000


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


@pytest.mark.protocol("CKPT-14")
def test_a_corrupt_partition_value_is_no_null() -> None:
    store = DictStore()
    fields = struct_of(("id", "long"), ("p", "integer"))
    metadata = logs.metadata(schemaString=json.dumps(fields), partitionColumns=["p"])
    logs.commit(store, 0, logs.PROTOCOL, metadata, logs.add("a", partitionValues={"p": "x"}))
    with pytest.raises(InvalidPartitionValueError):
        create_checkpoint(load_snapshot(utc_context(store)))
    assert list(store.files) == [names.commit_path(0)]


@pytest.mark.protocol("B-79", "D-57")
def test_domains_of_the_draft_read_the_same_from_a_checkpoint_beside_those_of_today() -> None:
    lines = [logs.domain("draft", {"k": "v"}), logs.domain("today", '{"k":1}')]
    store = logs.table_of(lines)
    shown = DeltaTable(store).domain_metadata()
    assert shown == {"draft": '{"k":"v"}', "today": '{"k":1}'}
    create_checkpoint(load_snapshot(utc_context(store)))
    del store.files[names.commit_path(0)]
    assert DeltaTable(store).domain_metadata() == shown


@pytest.mark.protocol("CKPT-07")
@pytest.mark.parametrize("kind", ["add", "txn", "domainMetadata", "metaData"])
def test_a_text_of_a_checkpoint_that_is_no_utf8_is_damage(kind: str) -> None:
    lines = {
        "add": logs.add("é.parquet", partitionValues={}),
        "txn": logs.txn("é", 1),
        "domainMetadata": logs.domain("é", "x"),
        "metaData": logs.metadata(description="é"),
    }
    store = logs.table_of([] if kind == "metaData" else [lines[kind]])
    if kind == "metaData":
        logs.commit(store, 0, logs.PROTOCOL, lines[kind])
    create_checkpoint(load_snapshot(utc_context(store)))
    path = names.log_path(names.checkpoint_name(0))
    plain = io.BytesIO()
    rows = pq.read_table(io.BytesIO(store.files[path]))
    pq.write_table(rows, plain, compression="none", use_dictionary=False)
    store.files = {path: plain.getvalue().replace(b"\xc3\xa9", b"\xff\xa9")}

    def read_all() -> None:
        table = DeltaTable(store)
        table.file_uris()
        table.transaction_version("x")
        table.domain_metadata()

    with pytest.raises(CheckpointUnreadableError):
        read_all()
