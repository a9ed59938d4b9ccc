"""Vacuum: what goes, what stays, and that it never takes what a version within reach needs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog import DeltaTable
from deltalog._json import loads
from deltalog.engine import LocalEngine
from deltalog.errors import (
    DataFileMissingError,
    DeltaError,
    InvalidInputError,
    StorageError,
    UnsupportedFeatureError,
)
from deltalog.scan.changes import open_changes
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from deltalog.upkeep import create_checkpoint
from deltalog.verbs.restore import Restore
from deltalog.verbs.vacuum import (
    VACUUM_SCHEMA,
    VacuumEnd,
    VacuumPlan,
    VacuumStart,
    confirm_vacuum,
    delete_planned,
    remember_lite,
)
from tests.support.aging import DAY_MS, FEATURES, START_MS, AgingStore, AgingTable
from tests.support.logs import PROTOCOL, add, commit, metadata, remove

WEEK = 7
LITE: Mapping[str, Any] = {"mode": "lite"}
FULL: Mapping[str, Any] = {"mode": "full"}
BOTH = pytest.mark.parametrize("how", [LITE, FULL], ids=["lite", "full"])
VECTORS = {"delta.enableDeletionVectors": "true"}


def rows(*numbers: int) -> dict[str, list[int]]:
    return {"id": list(numbers)}


def old_and_new(**properties: str) -> AgingTable:
    """One file that left the table eight days ago, one that is live."""
    table = AgingTable()
    table.create(rows(1, 2), properties=properties)
    table.append(rows(3))
    table.delete("id < 3")
    table.wait(WEEK + 1)
    return table


def logged(*actions: dict[str, Any], **members: Any) -> AgingTable:
    """A table whose log is written by hand; its files are as old as the log."""
    table = AgingTable()
    commit(table.kept, 0, PROTOCOL, metadata(**members), *actions, time_ms=START_MS)
    table.wait(30)
    return table


def put(table: AgingTable, *paths: str, age_days: float = 30) -> None:
    for path in paths:
        table.kept.files[path] = b"x"
        table.kept.times_ms[path] = table.kept.now_ms - round(age_days * DAY_MS)


@BOTH
def test_a_plan_names_files_and_deletes_none(how: Mapping[str, Any]) -> None:
    table = old_and_new()
    before = dict(table.kept.files)
    plan = table.plan(**how)
    (gone,) = table.snapshot().tombstones(["path"]).column("path").to_pylist()
    assert plan.files.schema == VACUUM_SCHEMA
    assert plan.paths == [gone]
    assert plan.files.column("reason").to_pylist() == ["removed from the table"]
    assert plan.size_bytes == len(table.kept.files[str(gone)])
    assert table.kept.files == before


@pytest.mark.protocol("OV-08", "REC-04", "REM-07")
@BOTH
def test_what_left_the_table_a_week_ago_is_deleted(how: Mapping[str, Any]) -> None:
    table = old_and_new()
    assert len(table.data_files()) == 2
    assert len(table.vacuum(**how)) == 1
    assert len(table.data_files()) == 1
    assert table.rows() == [(3,)]


@pytest.mark.protocol("REM-04", "D-17", "B-23", "B4-delta.deletedFileRetentionDuration")
@pytest.mark.parametrize(("late_ms", "found"), [(-1, 0), (0, 0), (1, 1)])
@BOTH
def test_a_tombstone_expires_after_the_retention(
    how: Mapping[str, Any], late_ms: int, found: int
) -> None:
    table = logged(remove("a", deletionTimestamp=START_MS))
    put(table, "a", age_days=60)
    table.kept.now_ms = START_MS + WEEK * DAY_MS + late_ms
    assert len(table.plan(**how).paths) == found


@pytest.mark.protocol("D-17", "REM-05")
@BOTH
def test_a_tombstone_without_a_time_has_expired(how: Mapping[str, Any]) -> None:
    table = logged({"remove": {"path": "a", "dataChange": True}})
    put(table, "a")
    assert table.plan(**how).paths == ["a"]


@pytest.mark.protocol("D-46")
def test_hidden_files_are_not_touched_unless_they_are_partitions() -> None:
    table = logged(
        partitionColumns=["_p"],
        schemaString=metadata()["metaData"]["schemaString"].replace('"p"', '"_p"'),
    )
    seen = ["x", "a/b/x", "_p=1/x", "_delta_index/x", "_change_data/x", "a/_p=1/x", "metadata_x"]
    hidden = ["_x", ".x", "a/.x", "_x/y", "a/_tmp/y", ".a/y", "metadata/x", "_q=1/x", "_p/x"]
    put(table, *seen, *hidden, "_delta_log/junk")
    assert sorted(table.plan(**FULL).paths) == sorted(seen)


@pytest.mark.protocol("D-47")
@BOTH
def test_change_files_go_by_age_alone(how: Mapping[str, Any]) -> None:
    table = AgingTable()
    table.create(rows(1, 2), properties={"delta.enableChangeDataFeed": "true"})
    table.delete("id = 1")
    table.wait(WEEK - 1)
    table.delete("id = 2")
    table.append(rows(3))
    old, *young = sorted(
        (path for path in table.data_files() if path.startswith("_change_data/")),
        key=lambda path: table.kept.times_ms[path],
    )
    table.wait(2)
    plan = table.plan(**how)
    assert old in plan.paths
    assert not set(young) & set(plan.paths)
    reasons = dict(zip(plan.paths, plan.files.column("reason").to_pylist(), strict=True))
    assert reasons[old] == "change data"


def masked(*, days: float) -> AgingTable:
    """A table with two generations of deletion vectors in files."""
    table = AgingTable()
    table.create({"id": list(range(4000))}, properties=VECTORS)
    table.delete("id % 5 = 0")
    table.delete("id % 5 = 1")
    table.wait(days)
    return table


@pytest.mark.protocol("D-48", "D-18")
@BOTH
def test_deletion_vectors_of_live_files_stay(how: Mapping[str, Any]) -> None:
    table = masked(days=30)
    live = table.rows()
    vectors = [path for path in table.data_files() if path.endswith(".bin")]
    assert len(vectors) == 2
    (gone,) = table.vacuum(**how)
    assert gone in vectors
    assert table.rows() == live


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_file_with_many_tombstones_is_named_once(*, checkpointed: bool) -> None:
    table = masked(days=0)
    table.delete()
    table.wait(30)
    if checkpointed:
        create_checkpoint(table.snapshot(), at_ms=START_MS)
    assert table.snapshot().tombstones().num_rows == 3
    paths = table.plan(**LITE).paths
    assert len(paths) == len(set(paths)) == 3  # the file and two vectors


@pytest.mark.protocol("D-48")
@BOTH
def test_deletion_vectors_of_young_tombstones_stay(how: Mapping[str, Any]) -> None:
    table = masked(days=WEEK - 1)
    assert table.vacuum(**how) == []
    assert len(table.rows(1)) == 3200


@pytest.mark.protocol("D-48")
@pytest.mark.parametrize("where", ["memory://table/", "memory:/table/", "s3://elsewhere/"])
def test_absolute_vectors_below_the_root_are_this_tables(where: str) -> None:
    name = "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin"
    vector = {
        "storageType": "p",
        "pathOrInlineDv": f"{where}{name}",
        "offset": 1,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    table = AgingTable(AgingStore(root="memory:///table"))
    actions = [PROTOCOL, metadata(), add("a", deletionVector=vector)]
    commit(table.kept, 0, *actions, time_ms=START_MS)
    table.wait(30)
    put(table, "a", name, "other.bin")
    assert table.plan(**FULL).paths == ["other.bin"]


@pytest.mark.protocol("D-06")
@pytest.mark.parametrize(
    ("spelled", "path"),
    [
        ("a%20b", "a b"),
        ("a b", "a b"),
        ("memory:///table/x", "x"),
        ("memory:/table/x", "x"),
        ("./x", "x"),
        ("d//x", "d/x"),
        ("p=a%253Ab/x", "p=a%3Ab/x"),
    ],
)
def test_a_live_file_stays_however_it_is_spelled(spelled: str, path: str) -> None:
    table = AgingTable(AgingStore(root="memory:///table"))
    commit(table.kept, 0, PROTOCOL, metadata(), add(spelled), time_ms=START_MS)
    table.wait(30)
    put(table, path, "junk")
    assert table.plan(**FULL).paths == ["junk"]
    commit(table.kept, 1, remove(spelled, deletionTimestamp=START_MS), time_ms=START_MS)
    assert sorted(table.plan(**FULL).paths) == sorted([path, "junk"])
    assert table.plan(**LITE).paths == [path]


@pytest.mark.protocol("D-45")
@BOTH
def test_nothing_outside_of_the_root_is_touched(how: Mapping[str, Any]) -> None:
    paths = ["memory:///other/x", "file:///x", "s3://b/x", "/x", "../other/x", "a/../../x"]
    table = AgingTable(AgingStore(root="memory:///table"))
    removes = [remove(path, deletionTimestamp=1) for path in paths]
    commit(table.kept, 0, PROTOCOL, metadata(), *removes, time_ms=START_MS)
    table.wait(30)
    assert table.plan(**how).paths == []


@pytest.mark.protocol("D-45")
def test_a_root_spelled_in_an_unknown_way_costs_no_file() -> None:
    """Who mounts a bucket has two names for a file; only the last part is the same."""
    table = logged(add("s3://bucket/mounted/part-1.parquet"))
    put(table, "part-1.parquet", "part-2.parquet")
    assert table.plan(**FULL).paths == ["part-2.parquet"]


def test_a_log_that_removes_its_own_files_keeps_them() -> None:
    table = logged(
        *(
            remove(path, deletionTimestamp=1)
            for path in ("_delta_log/00000000000000000000.json", "_secret/x", "a")
        )
    )
    assert table.plan(**LITE).paths == ["a"]


@pytest.mark.protocol("D-49")
def test_a_short_retention_has_to_be_forced() -> None:
    table = old_and_new()
    table.delete("id = 3")
    with pytest.raises(InvalidInputError, match="enforce_retention_duration=False"):
        table.plan(retention_hours=WEEK * 24 - 1)
    with pytest.raises(InvalidInputError, match="negative"):
        table.plan(retention_hours=-1, enforce_retention_duration=False)
    assert len(table.plan(retention_hours=WEEK * 24).paths) == 1
    table.wait(1)
    assert len(table.plan(retention_hours=0, enforce_retention_duration=False).paths) == 2


@pytest.mark.protocol("D-49")
def test_the_table_says_how_long_files_stay() -> None:
    table = old_and_new(**{"delta.deletedFileRetentionDuration": "interval 9 days"})
    assert table.plan().paths == []
    with pytest.raises(InvalidInputError, match="216"):
        table.plan(retention_hours=200)


@pytest.mark.protocol("D-49", "OV-01")
def test_files_of_writers_under_way_stay() -> None:
    table = old_and_new()
    put(table, "young", age_days=WEEK - 0.5)
    put(table, "old", age_days=WEEK + 0.5)
    assert set(table.plan(**FULL).paths) & {"young", "old"} == {"old"}


@pytest.mark.protocol("D-49", "B-54")
@BOTH
def test_who_may_not_write_may_not_vacuum(how: Mapping[str, Any]) -> None:
    table = AgingTable()
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["vacuumProtocolCheck"],
        "writerFeatures": ["vacuumProtocolCheck", "soonToCome"],
    }
    commit(table.kept, 0, {"protocol": protocol}, metadata(), time_ms=START_MS)
    with pytest.raises(UnsupportedFeatureError, match="soonToCome"):
        table.plan(**how)


def changes_of(table: AgingTable, version: int) -> int:
    found = open_changes(table.snapshot(), start=version, end=version)
    return found.to_table().num_rows


@BOTH
def test_kept_versions_stay_readable(how: Mapping[str, Any]) -> None:
    table = AgingTable()
    table.create({"id": list(range(3000))}, properties=FEATURES)
    for step in range(3):
        table.delete(f"id % 4 = {step}")
    table.delete()
    table.append(rows(1))
    table.wait(30)
    before = table.rows(2)
    expected = changes_of(table, 2)
    gone = table.vacuum(keep_versions=[2], **how)
    assert gone
    assert table.rows(2) == before
    assert changes_of(table, 2) == expected
    with pytest.raises(DataFileMissingError):
        table.rows(3)
    assert table.plan(**how).files.num_rows


def test_lite_finds_what_a_checkpoint_has_forgotten() -> None:
    table = old_and_new()
    create_checkpoint(table.snapshot(), at_ms=table.kept.now_ms)
    assert table.snapshot().tombstones().num_rows == 0
    assert len(table.vacuum()) == 1


def test_lite_asks_for_no_data_file() -> None:
    table = old_and_new()
    table.store = counted = CountingStore(table.kept)
    table.plan()
    assert "list_all" not in counted.counts
    assert "stat" not in counted.counts


def test_lite_remembers_what_it_has_deleted() -> None:
    table = old_and_new()
    plan = table.plan()
    delete_planned(table.store, plan, LocalEngine())
    remember_lite(table.store, plan)
    note = loads(table.kept.files["_delta_log/_last_vacuum_info"], "")
    assert note["latestCommitVersionOutsideOfRetentionWindow"] == 2
    assert table.plan().paths == []
    table.delete()
    table.wait(WEEK + 1)
    assert len(table.plan().paths) == 1
    assert len(table.plan(**FULL).paths) == 1


@pytest.mark.parametrize("note", [b"{}", b"", b'{"latestCommitVersionOutsideOfRetentionWindow":1}'])
def test_lite_goes_by_the_notes_of_others(note: bytes) -> None:
    table = old_and_new()
    table.kept.files["_delta_log/_last_vacuum_info"] = note
    assert len(table.plan().paths) == 1


def test_what_is_kept_for_a_version_is_not_forgotten() -> None:
    table = old_and_new()
    plan = table.plan(keep_versions=[1])
    remember_lite(table.store, plan)
    assert plan.paths == []
    assert len(table.plan().paths) == 1


def inventory_of(table: AgingTable, **renamed: str) -> pa.RecordBatchReader:
    found = [
        {
            "path": f"{table.kept.root}/{path}",
            "length": len(data),
            "isDir": False,
            "modificationTime": table.kept.times_ms[path],
        }
        for path, data in table.kept.files.items()
    ]
    found.append({"path": "some/dir", "length": 0, "isDir": True, "modificationTime": 0})
    found.append(
        {"path": "memory:///elsewhere/x", "length": 0, "isDir": False, "modificationTime": 0}
    )
    rows = pa.Table.from_pylist(found)
    names = [renamed.get(name, name) for name in rows.column_names]
    return rows.rename_columns(names).to_reader()


@pytest.mark.parametrize(
    "renamed", [{}, {"length": "size", "modificationTime": "MODIFICATION_TIME"}]
)
def test_an_inventory_stands_for_a_listing(renamed: dict[str, str]) -> None:
    table = old_and_new()
    put(table, "left/behind")
    expected = table.plan(**FULL)
    table.store = counted = CountingStore(table.kept)
    found = table.plan(mode="inventory", inventory=inventory_of(table, **renamed))
    assert sorted(found.files.to_pylist(), key=str) == sorted(expected.files.to_pylist(), key=str)
    assert "list_all" not in counted.counts


def test_an_inventory_needs_its_columns() -> None:
    table = old_and_new()
    with pytest.raises(InvalidInputError, match="lacks size_bytes"):
        table.plan(mode="inventory", inventory=inventory_of(table, length="len"))
    with pytest.raises(InvalidInputError, match="mode='inventory'"):
        table.plan(mode="inventory")


def test_what_a_newer_version_needs_is_left_out_of_the_plan() -> None:
    table = old_and_new()
    plan = table.plan()
    table.do(Restore(target=table.snapshot(1), asked=1))
    confirmed = confirm_vacuum(plan, table.snapshot())
    assert (len(plan.paths), confirmed.paths) == (1, [])


def vacuum_logged(table: AgingTable, plan: VacuumPlan) -> None:
    """As the facade does it."""
    table.do(VacuumStart(plan))
    plan = confirm_vacuum(plan, table.snapshot())
    deleted = delete_planned(table.store, plan, LocalEngine())
    table.do(VacuumEnd(num_deleted=deleted))
    remember_lite(table.store, plan)


def test_the_history_tells_of_it_as_the_reference_does() -> None:
    table = old_and_new()
    plan = table.plan(retention_hours=24, enforce_retention_duration=False)
    vacuum_logged(table, plan)
    end, start = table.snapshot().history(2)
    assert (start["operation"], start["operationParameters"], start["operationMetrics"]) == (
        "VACUUM START",
        {
            "retentionCheckEnabled": False,
            "defaultRetentionMillis": WEEK * DAY_MS,
            "specifiedRetentionMillis": DAY_MS,
        },
        {"numFilesToDelete": "1", "sizeOfDataToDelete": str(plan.size_bytes)},
    )
    assert (end["operation"], end["operationParameters"], end["operationMetrics"]) == (
        "VACUUM END",
        {"status": "COMPLETED"},
        {"numDeletedFiles": "1"},
    )


def test_progress_is_told_and_can_stop_it() -> None:
    engine = LocalEngine()
    engine.files_per_deletion = 2
    table = logged()
    put(table, *"abcde")
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        delete_planned(table.store, table.plan(**FULL), engine, progress=stop)
    assert told == [(2, 5), (4, 5)]
    assert len(table.data_files()) == 1


@BOTH
def test_a_crash_anywhere_leaves_the_table_and_the_rest_for_next_time(
    how: Mapping[str, Any],
) -> None:
    number = 0
    while True:
        number += 1
        table = masked(days=30)
        live = table.rows()
        table.store = faulty = FaultyStore(table.kept, InjectedFault(call=number, harm=Harm.CRASH))
        with contextlib.suppress(DeltaError):
            vacuum_logged(table, table.plan(**how))
        if not faulty.crashed:
            break
        table.store = table.kept
        assert table.rows() == live
        table.vacuum(**how)
        assert table.rows() == live
        assert table.plan(**FULL).paths == []
    assert number > 5


@settings(max_examples=40)
@given(st.data())
def test_law_every_version_within_the_retention_stays_readable(data: st.DataObject) -> None:
    table = AgingTable()
    properties = data.draw(st.sampled_from([{}, VECTORS, FEATURES]))
    table.create(
        {"id": list(range(1500)), "p": [0, 1, 2] * 500}, partition_by=["p"], properties=properties
    )
    expected = {0: (table.kept.now_ms, table.rows())}
    for _ in range(data.draw(st.integers(1, 6))):
        table.wait(data.draw(st.sampled_from([0.0, 3.0, 8.0])))
        match data.draw(st.sampled_from(["delete", "truncate", "append", "restore", "vacuum"])):
            case "delete":
                table.delete(f"id % 7 = {data.draw(st.integers(0, 6))}")
            case "truncate":
                table.delete(f"p = {data.draw(st.integers(0, 2))}")
            case "append":
                table.append({"id": list(range(5)), "p": [1] * 5})
            case "restore":
                within = [v for v, (_, _) in expected.items() if _is_reachable(table, expected, v)]
                target = table.snapshot(data.draw(st.sampled_from(within)))
                table.do(Restore(target=target, asked=target.version))
            case _:
                table.vacuum(mode=data.draw(st.sampled_from(["lite", "full"])))
                continue
        expected[table.snapshot().version] = (table.kept.now_ms, table.rows())
    table.vacuum(**data.draw(st.sampled_from([LITE, FULL])))
    for version, (_, found) in expected.items():
        if _is_reachable(table, expected, version):
            assert table.rows(version) == found


def _is_reachable(table: AgingTable, expected: Mapping[int, tuple[int, Any]], version: int) -> bool:
    """Whether a version was the latest one at some moment within the retention."""
    later = [time for other, (time, _) in expected.items() if other > version]
    return not later or min(later) >= table.kept.now_ms - WEEK * DAY_MS


def forced(table: AgingTable, **options: Any) -> list[str]:
    facade = DeltaTable(table.store)
    return facade.vacuum(0, enforce_retention_duration=False, **options)


@pytest.mark.parametrize("harm", [Harm.REFUSE, Harm.CRASH])
def test_a_deletion_that_fails_says_so(harm: Harm) -> None:
    table = old_and_new()
    table.store = FaultyStore(table.kept, InjectedFault(verb="delete_many", harm=harm))
    with pytest.raises(StorageError, match="delete_many"):
        forced(table, dry_run=False)
    table.store = table.kept
    logged = [entry["operationParameters"].get("status") for entry in table.snapshot().history(2)]
    assert logged == (["FAILED", None] if harm is Harm.REFUSE else [None, None])
    assert len(forced(table, dry_run=False)) == 1
    assert table.rows() == [(3,)]


def test_vacuum_deletes_only_when_told_and_logs_only_when_it_deletes() -> None:
    table = old_and_new()
    before = table.snapshot().version
    assert len(forced(table)) == 1
    assert table.snapshot().version == before
    assert len(forced(table, dry_run=False)) == 1
    assert forced(table, dry_run=False) == []
    assert table.snapshot().version == before + 2
