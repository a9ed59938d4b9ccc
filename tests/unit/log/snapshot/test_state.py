"""What the log says at one version, read as it is asked for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog._util.json import loads
from deltalog.errors import MalformedLogError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.actions.arrow import FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.testing import CountingStore
from tests.support import logs


def paths(snapshot: Snapshot) -> list[str]:
    return [str(path) for path in snapshot.files(["path"])["path"].to_pylist()]


@pytest.mark.protocol("ADD-05", "REC-07")
def test_adding_again_replaces_the_facts_of_the_checkpoint() -> None:
    store = logs.table_of([logs.add("a", size=1), logs.add("b")])
    logs.classic_checkpoint(
        store, 0, [logs.PROTOCOL, logs.metadata(), logs.add("a"), logs.add("b")]
    )
    logs.commit(store, 1, logs.add("a", size=9, stats='{"numRecords":4}', dataChange=False))
    rows = load_snapshot(utc_context(store)).files(["path", "size", "stats"]).to_pylist()
    assert sorted((row["path"], row["size"], row["stats"]) for row in rows) == [
        ("a", 9, '{"numRecords":4}'),
        ("b", 1, None),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (logs.metadata(name="new"), (2, "new")),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, (4, None)),
        (logs.add("a"), (2, None)),
    ],
    ids=["metadata", "protocol", "neither"],
)
def test_what_no_commit_sets_is_that_of_the_checkpoint(
    line: logs.Json, expected: tuple[int, str | None]
) -> None:
    store = logs.table_of([])
    logs.classic_checkpoint(store, 0, [logs.PROTOCOL, logs.metadata()])
    logs.commit(store, 1, line)
    found = load_snapshot(utc_context(store))
    assert (found.protocol.min_writer_version, found.metadata.name) == expected


@pytest.mark.protocol("REM-01", "REM-03", "REM-05", "B-41", "D-17")
def test_tombstones_of_checkpoint_and_commits() -> None:
    store = logs.table_of([])
    state = [logs.PROTOCOL, logs.metadata(), logs.remove("old"), logs.remove("back"), logs.add("n")]
    logs.classic_checkpoint(store, 0, state)
    logs.commit(
        store,
        1,
        logs.add("back"),
        {"remove": {"path": "n", "dataChange": True}},
        logs.remove("never seen", extendedFileMetadata=True, size=3, stats="{}"),
    )
    snapshot = load_snapshot(utc_context(store))
    dead = snapshot.tombstones()
    assert dead.schema == REMOVE_SCHEMA
    assert {row["path"]: row["deletionTimestamp"] for row in dead.to_pylist()} == {
        "old": 1,
        "n": None,
        "never seen": 1,
    }
    assert paths(snapshot) == ["back"]


def test_columns_are_those_asked_for_and_in_step() -> None:
    store = logs.table_of([logs.add("x", size=5)])
    state = [logs.PROTOCOL, logs.metadata(), *[logs.add(f"c{n}", size=n) for n in range(5)]]
    logs.classic_checkpoint(store, 0, state)
    logs.commit(store, 1, logs.remove("c2"), logs.add("z", size=26))
    snapshot = load_snapshot(utc_context(store))
    sizes = snapshot.files(["size"])
    assert sizes.column_names == ["size"]
    table = snapshot.files(["path", "size"])
    assert table["size"].equals(sizes["size"])
    pairs = zip(table["path"].to_pylist(), table["size"].to_pylist(), strict=True)
    assert dict(pairs) == {"c0": 0, "c1": 1, "c3": 3, "c4": 4, "z": 26}
    assert snapshot.files([]).num_rows == 5
    assert snapshot.files().schema == FILE_SCHEMA


STATS = pa.schema(
    [
        ("numRecords", pa.int64()),
        ("minValues", pa.struct([("id", pa.int64())])),
        ("nullCount", pa.struct([("id", pa.int64())])),
    ]
)


def parsed_checkpoint(store: logs.DictStore, *, with_json: bool, counts: str) -> None:
    parsed = pa.struct(
        [
            ("numRecords", pa.int64()),
            ("minValues", pa.struct([("id", pa.int32())])),
            (counts, pa.struct([("id", pa.int64())])),
        ]
    )
    members = [("path", pa.string()), ("stats_parsed", parsed)]
    if with_json:
        members.append(("stats", pa.string()))
    types = {**logs.TYPES, "add": pa.struct(members)}
    stats = {"numRecords": 3, "minValues": {"id": 1}, counts: {"id": 2}}
    adds = [
        logs.add("a", stats_parsed=stats, stats='{"numRecords":99}'),
        logs.add("b"),
        logs.add("c", stats_parsed={"numRecords": 4}),
    ]
    state = [logs.PROTOCOL, logs.metadata(), *adds]
    path = "_delta_log/00000000000000000000.checkpoint.parquet"
    store.put(path, logs.checkpoint_parquet(state, types=types))


@pytest.mark.protocol("CKPT-16", "CKPT-22", "B-13", "B-25", "STAT-01")
@pytest.mark.parametrize("with_json", [True, False])
@pytest.mark.parametrize("counts", ["nullCount", "nullCounts"])
def test_parsed_statistics_are_used_where_they_are(with_json: bool, counts: str) -> None:
    store = logs.table_of([])
    parsed_checkpoint(store, with_json=with_json, counts=counts)
    logs.commit(store, 1, logs.remove("c"), logs.add("d", stats='{"minValues":{"id":8}}'))
    table = load_snapshot(utc_context(store)).stats(STATS)
    assert table.schema == STATS
    nothing = {"id": None}
    assert table.to_pylist() == [
        {"numRecords": 3, "minValues": {"id": 1}, "nullCount": {"id": 2}},
        {"numRecords": None, "minValues": nothing, "nullCount": nothing},
        {"numRecords": None, "minValues": {"id": 8}, "nullCount": nothing},
    ]


@pytest.mark.protocol("CKPT-15")
@pytest.mark.parametrize("counts", ["nullCount", "nullCounts"])
def test_texts_are_made_of_parsed_statistics_where_there_are_none(counts: str) -> None:
    store = logs.table_of([])
    parsed_checkpoint(store, with_json=False, counts=counts)
    first, second, third = load_snapshot(utc_context(store)).files(["stats"])["stats"].to_pylist()
    assert first is not None
    assert loads(first) == {"numRecords": 3, "minValues": {"id": 1}, "nullCount": {"id": 2}}
    assert second is None
    assert third is not None
    assert loads(third) == {"numRecords": 4}


@pytest.mark.protocol("CKPT-15", "CKPT-23")
def test_leaves_that_only_the_json_has_come_from_there() -> None:
    store = logs.table_of([])
    parsed_checkpoint(store, with_json=True, counts="nullCount")
    both = pa.schema([("numRecords", pa.int64()), ("maxValues", pa.struct([("id", pa.int64())]))])
    table = load_snapshot(utc_context(store)).stats(both)
    assert table["numRecords"].to_pylist() == [3, None, 4]
    assert table["maxValues"].to_pylist() == [{"id": None}] * 3


@pytest.mark.protocol("D-63", "STAT-02")
def test_statistics_that_are_none_are_null() -> None:
    adds = [
        logs.add("a", stats=stats)
        for stats in ('{"numRecords":3}', None, "", "{bad", '{"numRecords":"x"}')
    ]
    named = [{"add": {**line["add"], "path": f"f{n}"}} for n, line in enumerate(adds)]
    snapshot = load_snapshot(utc_context(logs.table_of(named)))
    assert snapshot.stats(STATS)["numRecords"].to_pylist() == [3, None, None, None, None]
    assert snapshot.stats(pa.schema([])).num_rows == 5


def test_statistics_are_read_once() -> None:
    store = CountingStore(logs.table_of([]))
    parsed_checkpoint(store.store, with_json=True, counts="nullCount")  # type: ignore[arg-type]  # the DictStore from above
    snapshot = load_snapshot(utc_context(store))
    first = snapshot.stats(STATS)
    store.reset()
    assert snapshot.stats(STATS).equals(first)
    assert snapshot.stats(pa.schema([STATS.field("numRecords")])).num_rows == 3
    assert store.calls == []


def test_many_commits_are_parsed_in_groups_that_keep_their_order() -> None:
    commits = [[logs.add(f"f{number}")] for number in range(1_100)]
    commits[700].append(logs.remove("f3"))
    snapshot = load_snapshot(utc_context(logs.table_of(*commits)))
    assert paths(snapshot) == [f"f{number}" for number in range(1_100) if number != 3]
    commits[800].append({"add": {"path": 1}})
    snapshot = load_snapshot(utc_context(logs.table_of(*commits)))
    with pytest.raises(MalformedLogError, match="version 800, line 2"):
        paths(snapshot)
