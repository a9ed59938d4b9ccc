"""Checkpoints of every layout give the same columns, and only what was asked for is read."""

from __future__ import annotations

import os
import pickle
import random
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog._util.paths import FileInfo
from deltalog.errors import CheckpointUnreadableError, StorageError
from deltalog.log import names
from deltalog.log.checkpoints.layout import CheckpointFile, open_checkpoint_file
from deltalog.log.checkpoints.reader import Checkpoint
from deltalog.log.listing import list_log
from deltalog.log.segment import build_segment
from deltalog.protocol.actions.arrow import ADD_TYPE, FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.storage.store import Store
from deltalog.testing import CountingStore
from tests.support import logs
from tests.support.logs import DictStore
from tests.support.raw_tables import DataTable, mapped

Layout = Callable[[DictStore], object]


ADDS = [
    logs.add("a", partitionValues={"p": "1"}, stats='{"numRecords":3}', tags={"t": "x"}),
    logs.add("b%20c", deletionVector=logs.vector("v"), baseRowId=4, defaultRowCommitVersion=2),
    logs.add("d", partitionValues={"p": None}, size=2**40, clusteringProvider="liquid"),
]


ACTIONS = [
    logs.PROTOCOL,
    logs.metadata(configuration={"delta.appendOnly": "true"}, partitionColumns=["p"]),
    *ADDS,
    logs.remove("gone", partitionValues={}, size=7, extendedFileMetadata=True, baseRowId=1),
    logs.txn("app", 5, 9),
    logs.domain("d1", '{"x":1}'),
    {"rowIdHighWaterMark": {"highWaterMark": 11, "preservedRowIds": False}},
]


LAYOUTS: dict[str, Layout] = {
    "classic": lambda store: logs.classic_checkpoint(store, 3, ACTIONS),
    "three parts": lambda store: logs.multi_part_checkpoint(
        store, 3, [ACTIONS[:3], ACTIONS[3:5], ACTIONS[5:]]
    ),
    "V2 JSON": lambda store: logs.v2_checkpoint(store, 3, ACTIONS),
    "V2 Parquet": lambda store: logs.v2_checkpoint(store, 3, ACTIONS, suffix="parquet"),
    "V2 two sidecars": lambda store: logs.v2_checkpoint(store, 3, ACTIONS, sidecars=2),
    "V2 absolute": lambda store: logs.v2_checkpoint(store, 3, ACTIONS, absolute=True),
    "V2 without sidecars": lambda store: logs.v2_checkpoint(store, 3, ACTIONS, sidecars=0),
    "V2 Parquet without sidecars": lambda store: logs.v2_checkpoint(
        store, 3, ACTIONS, sidecars=0, suffix="parquet"
    ),
    "V2 under the classic name": lambda store: logs.v2_checkpoint(
        store, 3, ACTIONS, name=names.checkpoint_name(3)
    ),
}


class RootedStore(DictStore):
    """A store that finds its own absolute paths."""

    def read(self, path: str) -> bytes:
        return super().read(path.removeprefix(f"{self.root}/"))


def opened(layout: Layout) -> tuple[Checkpoint, CountingStore]:
    store = RootedStore()
    layout(store)
    counting = CountingStore(store)
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    return Checkpoint(counting, files), counting


@pytest.mark.protocol(
    "CKPT-01", "CKPT-05", "CKPT-06", "CKPT-11", "CKPT-18", "CKPT-20", "CKPT-21", "B-14", "B-15",
    "B-26", "D-60",
)  # fmt: skip
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_gives_the_same(layout: Layout) -> None:
    checkpoint, _ = opened(layout)
    adds = checkpoint.columns("add", FILE_SCHEMA.names).sort_by("path")
    assert adds.schema == FILE_SCHEMA
    first, second, third = adds.to_pylist()
    assert first["partitionValues"] == [("p", "1")]
    assert (first["stats"], first["tags"]) == ('{"numRecords":3}', [("t", "x")])
    assert first["deletionVector"] is None
    assert second["path"] == "b%20c"
    assert second["deletionVector"]["pathOrInlineDv"] == "v"
    assert (second["baseRowId"], second["defaultRowCommitVersion"]) == (4, 2)
    assert third["partitionValues"] == [("p", None)]
    assert (third["size"], third["clusteringProvider"]) == (2**40, "liquid")
    (gone,) = checkpoint.columns("remove", REMOVE_SCHEMA.names).to_pylist()
    assert (gone["path"], gone["size"], gone["baseRowId"]) == ("gone", 7, 1)
    assert checkpoint.num_actions("add") == 3
    values = checkpoint.values(["protocol", "metaData", "txn", "domainMetadata"])
    assert values["protocol"][0]["minWriterVersion"] == 2
    assert values["protocol"][0].get("readerFeatures") is None
    assert values["metaData"][0]["schemaString"] == logs.SCHEMA
    assert [row["version"] for row in values["txn"]] == [5]
    assert [row["domain"] for row in values["domainMetadata"]] == ["d1"]
    (mark,) = checkpoint.values(["rowIdHighWaterMark"])["rowIdHighWaterMark"]
    assert mark == {"highWaterMark": 11, "preservedRowIds": False}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_columns_read_apart_have_the_same_rows(layout: Layout) -> None:
    checkpoint, store = opened(layout)
    together = checkpoint.columns("add", ["path", "size", "stats"])
    apart, _ = opened(layout)
    for name in ("stats", "size", "path"):
        assert apart.columns("add", [name]).column(name).equals(together.column(name))
    store.reset()
    assert checkpoint.columns("add", ["size", "path"]).column_names == ["size", "path"]
    assert store.total_calls == 0
    assert checkpoint.columns("add", []).num_columns == 0


@pytest.mark.parametrize("held", [[], ["path", "stats"]], ids=["nothing held", "some held"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_adds_in_batches_are_all_of_them(layout: Layout, held: list[str]) -> None:
    whole, _ = opened(layout)
    checkpoint, _ = opened(layout)
    checkpoint.columns("add", held)
    batches = [batch.decode()[0] for batch in checkpoint.iter_adds([], batch_rows=2)]
    assert pa.concat_tables(batches).equals(whole.columns("add", FILE_SCHEMA.names))


def test_only_the_leaves_asked_for_are_read() -> None:
    store = DictStore()
    padding = [logs.add(f"{n:04d}" * 20, stats="x" * 500 + str(n)) for n in range(500)]
    path = logs.classic_checkpoint(store, 3, [logs.PROTOCOL, logs.metadata(), *padding])
    # A large file, so that its footer's read does not bring the columns along.
    counting = CountingStore(store)
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    checkpoint = Checkpoint(counting, files)
    checkpoint.values(["protocol", "metaData"])
    checkpoint.columns("add", ["size"])
    footers = counting.footers_opened
    assert footers == 1
    assert counting.paths() == [path] * counting.total_calls


def test_small_actions_of_a_small_checkpoint_are_read_at_once() -> None:
    checkpoint, counting = opened(LAYOUTS["three parts"])
    checkpoint.values(["protocol", "metaData"])
    counting.reset()
    found = checkpoint.values(["txn", "domainMetadata", "rowIdHighWaterMark", "sidecar"])
    assert counting.calls == []
    assert {kind: len(values) for kind, values in found.items()} == {
        "txn": 1, "domainMetadata": 1, "rowIdHighWaterMark": 1, "sidecar": 0,
    }  # fmt: skip


def test_what_is_damaged_besides_protocol_and_metadata_does_not_hide_them() -> None:
    store = DictStore()
    actions = [*ACTIONS, logs.txn("quux", 1)]
    path = logs.classic_checkpoint(store, 3, actions)
    assert b"quux" in store.files[path]
    store.files[path] = store.files[path].replace(b"quux", b"\xff\xfe\xfd\xfc")  # no UTF-8
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    checkpoint = Checkpoint(store, files)
    assert [len(rows) for rows in checkpoint.values(["protocol", "metaData"]).values()] == [1, 1]
    with pytest.raises(CheckpointUnreadableError):
        checkpoint.values(["txn"])


@pytest.mark.protocol("CKPT-23")
def test_kinds_and_members_that_are_missing_are_null() -> None:
    store = DictStore()
    few = pa.struct([ADD_TYPE.field("path"), ADD_TYPE.field("size")])
    path = names.log_path(names.checkpoint_name(3))
    store.put(path, logs.checkpoint_parquet(ADDS, types={"add": few}))
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    checkpoint = Checkpoint(store, files)
    adds = checkpoint.columns("add", FILE_SCHEMA.names)
    assert adds.schema == FILE_SCHEMA
    assert adds.num_rows == 3
    assert adds.column("deletionVector").null_count == 3
    assert adds.column("partitionValues").null_count == 3
    assert checkpoint.columns("remove", ["path"]).num_rows == 0
    assert checkpoint.values(["domainMetadata", "txn"]) == {"domainMetadata": [], "txn": []}
    only_tags = Checkpoint(store, files).columns("add", ["tags"])
    assert (only_tags.num_rows, only_tags.column("tags").null_count) == (3, 3)


def test_row_groups_without_such_actions_are_left_alone() -> None:
    store = DictStore()
    path = names.log_path(names.checkpoint_name(3))
    padding = [logs.add(f"{random.Random(n).getrandbits(2000):x}") for n in range(2000)]
    actions = [logs.PROTOCOL, logs.metadata(), *padding]
    store.put(path, logs.checkpoint_parquet(actions, row_group_rows=100))
    counting = CountingStore(store)
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    checkpoint = Checkpoint(counting, files)
    checkpoint.values(["protocol", "metaData"])
    assert counting.bytes_read < len(store.files[path]) / 2
    assert checkpoint.values(["txn"]) == {"txn": []}
    assert checkpoint.num_actions("add") == 2000


@pytest.mark.protocol("CKPT-19")
def test_parsed_columns_go_by_physical_name() -> None:
    table = DataTable(
        [mapped("id", "long", 1, "col-1"), mapped("p", "date", 2, "col-2")],
        partition_by=["p"],
        features=["columnMapping"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    bounds = pa.struct([("col-1", pa.int64()), ("id", pa.int64())])
    parsed: list[pa.Field[Any]] = [
        pa.field("partitionValues_parsed", pa.struct([("col-2", pa.date32())])),
        pa.field(
            "stats_parsed",
            pa.struct([("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds)]),
        ),
    ]
    texts = {"stats", "partitionValues"}
    kept: list[pa.Field[Any]] = [member for member in ADD_TYPE if member.name not in texts]
    adds = []
    for number in (1, 2):
        add = table.add({"col-1": [number]})
        # What stands under the columns' own names is not theirs.
        low = {"col-1": number, "id": 99}
        typed = {"numRecords": 1, "minValues": low, "maxValues": low}
        day = {"col-2": date(2024, 1, number)}
        adds.append({"add": {**add["add"], "stats_parsed": typed, "partitionValues_parsed": day}})
    version = table.commit(*adds)
    actions = [table.protocol(), table.metadata(), *adds]
    types = {**logs.TYPES, "add": pa.struct([*kept, *parsed])}
    path = names.log_path(names.checkpoint_name(version))
    table.store.put(path, logs.checkpoint_parquet(actions, types=types))
    del table.store.files[names.commit_path(0)]
    assert table.rows() == [(1, date(2024, 1, 1)), (2, date(2024, 1, 2))]
    for where in ("id = 2", "p > date'2024-01-01'"):
        assert [task.path for task in table.scan(where).tasks()] == ["part-1.parquet"]


@pytest.mark.protocol("D-60")
@pytest.mark.parametrize("harm", ["missing sidecar", "torn", "no Parquet", "unsafe sidecar"])
def test_what_cannot_be_read_says_so(harm: str) -> None:
    store = DictStore()
    top, sidecar = logs.v2_checkpoint(store, 3, ACTIONS)
    if harm == "missing sidecar":
        del store.files[sidecar]
    elif harm == "torn":
        store.files[top] = store.files[top][:-20]
    elif harm == "no Parquet":
        store.files[sidecar] = b"x" * 100
    else:
        store.files[top] = store.files[top].replace(b'"path":"0', b'"path":"../../0')
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    with pytest.raises(CheckpointUnreadableError):
        Checkpoint(store, files).columns("add", ["path"])


class FailingStore(DictStore):
    def read_ranges(self, path: str, ranges: object) -> list[bytes]:
        raise StorageError(f"network: {path}, {ranges}")


def test_a_store_that_fails_is_no_damaged_checkpoint() -> None:
    store = FailingStore()
    logs.classic_checkpoint(store, 3, ACTIONS)
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    with pytest.raises(StorageError, match="network"):
        Checkpoint(store, files).columns("add", ["path"])


def test_a_pickled_checkpoint_forgets_its_columns() -> None:
    store = DictStore()
    logs.classic_checkpoint(store, 3, ACTIONS)
    files = build_segment(list_log(store)).checkpoint
    assert files is not None
    checkpoint = Checkpoint(store, files)
    expected = checkpoint.columns("add", ["path"])
    assert checkpoint.holds_columns
    copy: Checkpoint = pickle.loads(pickle.dumps(checkpoint))
    assert not copy.holds_columns
    assert copy.columns("add", ["path"]).equals(expected)


def test_a_local_checkpoint_is_opened_once_for_all_who_open_the_table(tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"x": [number]}), mode="append")
    DeltaTable(tmp_path).create_checkpoint()
    (path,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    long_ago = time.time_ns() - 60_000_000_001
    os.utime(path, ns=(long_ago, long_ago))
    opened: list[str] = []

    def counted(store: Store, info: FileInfo, **options: Any) -> CheckpointFile:
        opened.append(info.name)
        return open_checkpoint_file(store, info, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deltalog.log.checkpoints.reader.open_checkpoint_file", counted)
        names = [DeltaTable(tmp_path).metadata().id for _ in range(3)]
        assert len(set(names)) == 1
        assert opened == [path.name]
        # Another file in its place is another checkpoint.
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
        assert DeltaTable(tmp_path).metadata().id == names[0]
        assert opened == [path.name] * 2
        path.write_bytes(b"PAR1" + bytes(len(data) - 8) + b"PAR1")
        assert DeltaTable(tmp_path).metadata().id == names[0]  # from the log's commits
        assert opened == [path.name] * 3
