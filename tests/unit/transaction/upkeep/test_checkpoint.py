"""Checkpoints on request: what they hold, what points to them, and what a crash leaves."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from deltalog.errors import DeltaError, InternalError, InvalidInputError, UnsupportedFeatureError
from deltalog.log import names
from deltalog.log.checkpoints.writer import CheckpointLayout
from deltalog.log.context import LogTail, RatifiedCommit, utc_context
from deltalog.log.listing import parse_hint
from deltalog.log.snapshot import load_snapshot
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.support import logs
from tests.support.logs import DictStore, Json

NOW = 1_800_000_000_000
V2_PROTOCOL: Json = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": ["v2Checkpoint"],
    }
}
CLASSIC = names.log_path(names.checkpoint_name(2))


def table(configuration: Json | None = None, *, v2: bool = False) -> DictStore:
    store = DictStore()
    first = [V2_PROTOCOL if v2 else logs.PROTOCOL, logs.metadata(configuration=configuration or {})]
    logs.commit(store, 0, *first, logs.add("a", stats='{"numRecords":1}'), logs.txn("app", 7))
    logs.commit(store, 1, logs.add("b"), logs.remove("a", deletionTimestamp=NOW))
    logs.commit(store, 2, logs.add("c"))
    return store


def hint_of(store: DictStore) -> Json:
    found: Json = json.loads(store.files[names.LAST_CHECKPOINT_PATH])
    return found


def parquet(store: DictStore, path: str) -> Any:
    return pq.read_table(io.BytesIO(store.files[path]))


def paths_of(store: Any, version: int | None = None) -> list[str]:
    rows = load_snapshot(utc_context(store), version=version).files(["path"]).to_pylist()
    return sorted(row["path"] for row in rows)


@pytest.mark.protocol("CKPT-02", "CKPT-05", "CKPT-13", "LAST-01", "LAST-03", "LAST-04", "LAST-05")
def test_a_checkpoint_and_what_points_to_it() -> None:
    store = table()
    info = create_checkpoint(load_snapshot(utc_context(store)), at_ms=NOW)
    assert (info.version, info.num_adds, info.num_removes, info.num_actions) == (2, 2, 1, 6)
    rows = parquet(store, CLASSIC)
    assert not {"commitInfo", "cdc"} & set(rows.column_names)
    filled = [
        [kind for kind, value in row.items() if value is not None] for row in rows.to_pylist()
    ]
    assert sorted(filled) == [["add"], ["add"], ["metaData"], ["protocol"], ["remove"], ["txn"]]
    assert parse_hint(store.files[names.LAST_CHECKPOINT_PATH]) is not None
    expected = {"version": 2, "size": 6, "sizeInBytes": len(store.files[CLASSIC])}
    hint = hint_of(store)
    assert len(hint.pop("checksum")) == 32
    assert hint == {**expected, "numOfAddFiles": 2}


@pytest.mark.protocol("CKPT-14", "CKPT-15", "CKPT-16", "CKPT-17")
@pytest.mark.parametrize(
    ("as_json", "as_struct", "expected"),
    [
        ("true", "true", {"stats", "stats_parsed", "partitionValues_parsed"}),
        ("true", "false", {"stats"}),
        ("false", "true", {"stats_parsed", "partitionValues_parsed"}),
        ("false", "false", set()),
    ],
)
def test_properties_decide_on_statistics(as_json: str, as_struct: str, expected: set[str]) -> None:
    store = DictStore()
    configuration = {
        "delta.checkpoint.writeStatsAsJson": as_json,
        "delta.checkpoint.writeStatsAsStruct": as_struct,
    }
    metadata = logs.metadata(configuration=configuration, partitionColumns=["p"])
    logs.commit(store, 0, logs.PROTOCOL, metadata, logs.add("a", partitionValues={"p": "x"}))
    create_checkpoint(load_snapshot(utc_context(store)))
    add = parquet(store, names.log_path(names.checkpoint_name(0))).schema.field("add").type
    optional = {"stats", "stats_parsed", "partitionValues_parsed"}
    assert {field.name for field in add} & optional == expected


@pytest.mark.protocol("CKPT-14", "CKPT-19", "D-29")
def test_typed_partition_values_have_physical_names_and_types() -> None:
    store = DictStore()
    mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    field = {"name": "day", "type": "date", "nullable": False, "metadata": mapping}
    metadata = logs.metadata(
        schemaString=json.dumps({"type": "struct", "fields": [field]}),
        partitionColumns=["day"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    add = logs.add("a", partitionValues={"col-1": "2024-02-29"})
    logs.commit(store, 0, protocol, metadata, add, logs.add("b", partitionValues={"col-1": None}))
    create_checkpoint(load_snapshot(utc_context(store)))
    rows = parquet(store, names.log_path(names.checkpoint_name(0))).column("add").to_pylist()
    values = [str(row["partitionValues_parsed"]["col-1"]) for row in rows if row is not None]
    assert sorted(values) == ["2024-02-29", "None"]


@pytest.mark.protocol("CKPT-06", "CKPT-10", "B-14", "LAST-04")
def test_parts_are_the_same_whoever_writes_them() -> None:
    contents = []
    for order in (1, -1):
        store = table()
        logs.commit(store, 3, *[logs.add(f"x{number}") for number in range(10)][::order])
        create_checkpoint(load_snapshot(utc_context(store)), part_rows=5, at_ms=NOW)
        parts = [path for path in store.files if ".checkpoint." in path]
        assert hint_of(store)["parts"] == 3
        start = f"_delta_log/{3:020d}.checkpoint"
        assert sorted(parts) == [f"{start}.000000000{n}.0000000003.parquet" for n in (1, 2, 3)]
        contents.append(
            [
                sorted(
                    row[kind]["path"]
                    for row in parquet(store, part).to_pylist()
                    for kind in ("add", "remove")
                    if row[kind] is not None
                )
                for part in sorted(parts)
            ]
        )
    assert contents[0] == contents[1]
    assert contents[0][0][0] == "a"  # the tombstone lies where its path does


@pytest.mark.protocol("B-15", "B-14")
def test_the_policy_chooses_the_layout_where_the_feature_allows_it() -> None:
    v2 = table({"delta.checkpointPolicy": "v2"}, v2=True)
    create_checkpoint(load_snapshot(utc_context(v2)), at_ms=NOW)
    top = next(path for path in v2.files if path.endswith(".json") and "checkpoint" in path)
    lines = [next(iter(json.loads(line).items())) for line in v2.files[top].splitlines()]
    assert [kind for kind, _ in lines].count("checkpointMetadata") == 1
    (sidecar,) = [value for kind, value in lines if kind == "sidecar"]
    assert f"{names.SIDECAR_DIRECTORY}/{sidecar['path']}" in v2.files
    assert hint_of(v2)["v2Checkpoint"]["path"] == top.rpartition("/")[2]
    assert hint_of(v2)["size"] == 8
    classic = table({"delta.checkpointPolicy": "v2"})
    create_checkpoint(load_snapshot(utc_context(classic)), at_ms=NOW)
    assert CLASSIC in classic.files


@pytest.mark.protocol("B-14", "B-15")
def test_layouts_that_the_table_forbids_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="v2Checkpoint"):
        create_checkpoint(load_snapshot(utc_context(table())), layout=CheckpointLayout.V2_JSON)
    with pytest.raises(InvalidInputError, match="in parts"):
        create_checkpoint(load_snapshot(utc_context(table(v2=True))), part_rows=1)


def test_unknown_features_are_refused() -> None:
    store = table()
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["fromTheFuture"]}
    logs.commit(store, 3, {"protocol": protocol})
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        create_checkpoint(load_snapshot(utc_context(store)))


@pytest.mark.protocol("CKPT-09")
def test_a_commit_that_is_not_published_has_no_checkpoint() -> None:
    store = table()
    staged = f"{names.STAGED_DIRECTORY}/{3:020d}.{logs.SIDECAR_UUID}.json"
    store.put(staged, logs.ndjson([logs.add("d")]))
    tail = LogTail(commits=(RatifiedCommit(version=3, file=store.stat(staged)),))
    snapshot = load_snapshot(utc_context(store).with_log_tail(tail))
    assert snapshot.version == 3
    with pytest.raises(InvalidInputError, match="not published"):
        create_checkpoint(snapshot)


@pytest.mark.protocol("CKPT-18")
def test_old_protocols_have_no_feature_lists() -> None:
    store = table()
    create_checkpoint(load_snapshot(utc_context(store)))
    protocols = parquet(store, CLASSIC).column("protocol").drop_null().to_pylist()
    assert protocols == [
        {
            "minReaderVersion": 1,
            "minWriterVersion": 2,
            "readerFeatures": None,
            "writerFeatures": None,
        }
    ]


@pytest.mark.protocol("LAST-07", "D-21")
def test_the_hint_is_replaced_and_never_goes_back() -> None:
    store = table()
    create_checkpoint(load_snapshot(utc_context(store), version=1))
    assert hint_of(store)["version"] == 1
    create_checkpoint(load_snapshot(utc_context(store)))
    assert hint_of(store)["version"] == 2
    create_checkpoint(load_snapshot(utc_context(store), version=0))
    assert hint_of(store)["version"] == 2
    assert paths_of(store, 0) == ["a"]


def test_a_checkpoint_that_is_there_is_taken() -> None:
    store = table()
    create_checkpoint(load_snapshot(utc_context(store)))
    content = store.files[CLASSIC]
    del store.files[names.LAST_CHECKPOINT_PATH]
    create_checkpoint(load_snapshot(utc_context(store)))
    assert store.files[CLASSIC] is content
    assert hint_of(store)["version"] == 2


def test_a_checkpoint_beside_those_of_other_kinds_is_taken() -> None:
    store = table(v2=True)
    snapshot = load_snapshot(utc_context(store))
    layouts = (CheckpointLayout.CLASSIC, CheckpointLayout.V2_JSON, CheckpointLayout.V2_PARQUET)
    for layout in layouts:
        create_checkpoint(snapshot, layout=layout)
    there = {path for path in store.files if ".checkpoint." in path}
    assert len(there) == 2  # a V2 checkpoint is there already, in one of its two forms
    for layout in layouts:
        create_checkpoint(snapshot, layout=layout)
    assert {path for path in store.files if ".checkpoint." in path} == there


def test_a_damaged_checkpoint_is_replaced() -> None:
    store = table()
    snapshot = load_snapshot(utc_context(store))
    store.put(CLASSIC, b"PAR1 torn")
    create_checkpoint(snapshot)
    logs_left = DictStore(
        {path: data for path, data in store.files.items() if not path.endswith(".json")}
    )
    assert paths_of(logs_left) == ["b", "c"]


@pytest.mark.protocol("B-17")
def test_an_empty_file_does_not_stand_in_the_way() -> None:
    store = table()
    store.put(CLASSIC, b"")
    create_checkpoint(load_snapshot(utc_context(store)))
    assert hint_of(store)["version"] == 2
    del store.files[names.commit_path(0)]
    assert paths_of(store) == ["b", "c"]


@pytest.mark.protocol("D-60")
def test_a_damaged_checkpoint_before_is_worked_around() -> None:
    store = table(v2=True)
    create_checkpoint(load_snapshot(utc_context(store), version=1), layout=CheckpointLayout.V2_JSON)
    snapshot = load_snapshot(utc_context(store))
    store.delete_many([path for path in store.files if path.startswith(names.SIDECAR_DIRECTORY)])
    create_checkpoint(snapshot, at_ms=NOW)
    del store.files[names.commit_path(0)]
    assert paths_of(store) == ["b", "c"]


def test_a_checkpoint_that_reads_back_wrong_is_removed() -> None:
    class Forgetful(DictStore):
        """Stores less of a checkpoint than it was given."""

        def put_if_absent(self, path: str, data: bytes) -> None:
            if "checkpoint" in path:
                rows = pq.read_table(io.BytesIO(data)).slice(0, 4)
                sink = io.BytesIO()
                pq.write_table(rows, sink)
                data = sink.getvalue()
            super().put_if_absent(path, data)

    store = Forgetful(table().files)
    with pytest.raises(InternalError, match="deleted the new checkpoint"):
        create_checkpoint(load_snapshot(utc_context(store)), at_ms=NOW)
    assert CLASSIC not in store.files
    assert names.LAST_CHECKPOINT_PATH not in store.files


def test_sidecars_that_read_back_wrong_are_removed_with_their_checkpoint() -> None:
    class Forgetful(DictStore):
        """Stores a row less of a sidecar than it was given."""

        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.startswith(names.SIDECAR_DIRECTORY):
                sink = io.BytesIO()
                pq.write_table(pq.read_table(io.BytesIO(data)).slice(1), sink)
                data = sink.getvalue()
            super().put_if_absent(path, data)

    store = Forgetful(table(v2=True).files)
    before = set(store.files)
    with pytest.raises(InternalError, match="deleted the new checkpoint"):
        create_checkpoint(
            load_snapshot(utc_context(store)), layout=CheckpointLayout.V2_JSON, at_ms=NOW
        )
    assert set(store.files) == before


def test_a_checkpoint_is_made_of_the_one_before() -> None:
    store = table()
    create_checkpoint(load_snapshot(utc_context(store)))
    logs.commit(store, 3, logs.add("d"))
    counting = CountingStore(store)
    snapshot = load_snapshot(utc_context(counting))
    snapshot.files()
    snapshot.tombstones()
    counting.reset()
    create_checkpoint(snapshot)
    read = [path for path in counting.paths("read_ranges", "read", "read_many") if path == CLASSIC]
    assert len(read) <= 2  # the typed statistics, which were not in memory
    assert paths_of(store) == ["b", "c", "d"]


LAYOUTS = {
    "classic": (CheckpointLayout.CLASSIC, None, False),
    "parts": (CheckpointLayout.CLASSIC, 1, False),
    "V2 JSON": (CheckpointLayout.V2_JSON, 1, True),
    "V2 Parquet": (CheckpointLayout.V2_PARQUET, 1, True),
}


@pytest.mark.slow("a fault at each call of the store")
@pytest.mark.protocol("CKPT-07", "D-22")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("harm", Harm)
def test_a_fault_at_any_call_leaves_the_table_as_it_was(
    layout: tuple[CheckpointLayout, int | None, bool], harm: Harm
) -> None:
    kind, part_rows, v2 = layout
    whole = FaultyStore(table(v2=v2))
    create_checkpoint(
        load_snapshot(utc_context(whole)), layout=kind, part_rows=part_rows, at_ms=NOW
    )
    for call in range(1, len(whole.calls) + 1):
        store = table(v2=v2)
        faulty = FaultyStore(store, InjectedFault(call=call, harm=harm))
        with contextlib.suppress(DeltaError):
            create_checkpoint(
                load_snapshot(utc_context(faulty)), layout=kind, part_rows=part_rows, at_ms=NOW
            )
        assert paths_of(store) == ["b", "c"]
        assert load_snapshot(utc_context(store)).recorded_app_transactions["app"].version == 7
        # Whatever was left behind does not stand in the way of the next one.
        create_checkpoint(
            load_snapshot(utc_context(store)), layout=kind, part_rows=part_rows, at_ms=NOW
        )
        del store.files[names.commit_path(0)]
        assert paths_of(store) == ["b", "c"]


@pytest.mark.protocol("LAST-02", "LAST-06", "LAST-07")
@pytest.mark.parametrize("version", [3, 50, 2**63 - 1, 10**19])
def test_a_hint_at_a_checkpoint_that_does_not_exist_is_replaced(version: int) -> None:
    store = table()
    store.put(names.LAST_CHECKPOINT_PATH, json.dumps({"version": version, "size": 9}).encode())
    create_checkpoint(load_snapshot(utc_context(store)))
    assert hint_of(store)["version"] == 2


@pytest.mark.protocol("LAST-02")
def test_a_hint_at_a_newer_checkpoint_stays() -> None:
    store = table()
    create_checkpoint(load_snapshot(utc_context(store)))
    newer = store.files[names.LAST_CHECKPOINT_PATH]
    create_checkpoint(load_snapshot(utc_context(store), version=1))
    assert store.files[names.LAST_CHECKPOINT_PATH] == newer
