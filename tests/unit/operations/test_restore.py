"""Restore: the table becomes what it was, and promises made since are kept."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog._util.json import iter_objects
from deltalog.data.scan.changes import open_changes
from deltalog.errors import DataFileMissingError, DeltaError
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations import alter
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import execute
from deltalog.operations.restore import Restore, Restored
from deltalog.schema import Field
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from deltalog.transaction.properties import CommitOptions
from tests.support.aging import FEATURES, NO_HOOKS, AgingTable
from tests.support.contexts import moved
from tests.support.examples import examples
from tests.support.logs import Json

VECTORS = {"delta.enableDeletionVectors": "true"}
ROW_ID = "_metadata.row_id"


def make(**properties: str) -> AgingTable:
    table = AgingTable()
    table.create({"id": [1, 2, 3], "p": [0, 0, 1]}, partition_by=["p"], properties=properties)
    return table


def restore(table: AgingTable, version: int, **options: Any) -> Restored:
    return table.do(Restore(target=table.snapshot(version), asked=version, **options))


def last(table: AgingTable) -> list[Json]:
    return iter_objects(table.kept.files[commit_path(table.snapshot().version)])


def kinds(table: AgingTable) -> list[str]:
    return sorted(kind for action in last(table) for kind in action)


def properties(snapshot: Snapshot) -> dict[str, str]:
    return dict(snapshot.metadata.configuration)


@pytest.mark.parametrize("features", [{}, VECTORS, FEATURES], ids=["plain", "vectors", "all"])
def test_rows_of_every_version_come_back(features: dict[str, str]) -> None:
    table = make(**features)
    table.delete("id = 2")
    table.append({"id": [4], "p": [2]})
    table.delete("p = 0")
    expected = [table.rows(version) for version in range(4)]
    for version in (0, 3, 1, 2, 2):
        restore(table, version)
        assert table.rows() == expected[version]
    assert [table.rows(version) for version in range(4)] == expected


def test_only_the_difference_is_committed() -> None:
    table = make()
    table.append({"id": [4], "p": [2]})
    table.delete("p = 1")
    restored = restore(table, 0)
    assert kinds(table) == ["add", "commitInfo", "remove"]
    assert (restored.num_restored_files, restored.num_removed_files) == (1, 1)
    assert all(
        action[kind]["dataChange"]
        for action in last(table)
        for kind in action
        if kind != "commitInfo"
    )
    metrics = last(table)[0]["commitInfo"]["operationMetrics"]
    sizes = table.snapshot().files(["size"]).column("size").to_pylist()
    assert metrics == {
        "numRestoredFiles": "1",
        "restoredFilesSize": str(restored.restored_bytes),
        "numRemovedFiles": "1",
        "removedFilesSize": str(restored.removed_bytes),
        "numOfFilesAfterRestore": "2",
        "tableSizeAfterRestore": str(sum(map(int, map(str, sizes)))),
    }
    assert restored.result()["numRestoredFile"] == 1


@pytest.mark.protocol("D-18")
def test_a_file_gets_its_old_deletion_vector_back() -> None:
    table = make(**VECTORS)
    table.delete("id = 1")
    restore(table, 0)
    add, remove = sorted(
        (action for action in last(table) if "commitInfo" not in action),
        key=lambda a: "remove" in a,
    )
    assert add["add"]["path"] == remove["remove"]["path"]
    assert "deletionVector" not in add["add"]
    assert "deletionVector" in remove["remove"]


@pytest.mark.protocol("D-42")
def test_the_change_feed_tells_of_it() -> None:
    table = make(**FEATURES)
    table.delete("id = 1")
    restore(table, 0)
    found = open_changes(table.snapshot(), start=2).to_table().to_pylist()
    assert {(row["id"], row["_change_type"]) for row in found} >= {(1, "insert")}
    net: dict[int, int] = {}
    for row in found:
        step = 1 if row["_change_type"] == "insert" else -1
        net[row["id"]] = net.get(row["id"], 0) + step
    assert net[1] == 1
    assert not any(count for number, count in net.items() if number != 1)


@pytest.mark.protocol("ROWID-17")
def test_rows_keep_their_ids() -> None:
    table = make(**FEATURES)
    before = table.rows(columns=["id", ROW_ID])
    table.delete("id = 3")
    table.append({"id": [9], "p": [1]})
    restore(table, 0)
    assert table.rows(columns=["id", ROW_ID]) == before
    table.append({"id": [10], "p": [1]})
    ids = [found for _, found in table.rows(columns=["id", ROW_ID])]
    assert max(ids) > 3  # 3 was given to the row that is gone
    assert len(set(ids)) == len(ids)


def test_missing_files_are_named_before_anything_happens() -> None:
    table = make()
    table.delete("p = 1")
    table.wait(8)
    (gone,) = table.vacuum()
    before = table.snapshot().version
    with pytest.raises(DataFileMissingError, match=gone.split("/")[-1]):
        restore(table, 0)
    assert table.snapshot().version == before


def test_missing_files_can_be_left_out() -> None:
    table = make()
    table.delete()
    table.wait(8)
    gone = min(table.data_files())
    table.kept.delete_many([gone])
    restored = restore(table, 0, ignore_missing_files=True)
    assert (restored.num_restored_files, restored.num_missing_files) == (1, 1)
    assert table.rows() == [(3, 1)]


def test_a_missing_deletion_vector_is_a_missing_file() -> None:
    table = AgingTable()
    table.create({"id": list(range(4000))}, properties=VECTORS)
    table.delete("id % 3 = 0")
    table.delete()
    table.kept.delete_many([path for path in table.data_files() if path.endswith(".bin")])
    with pytest.raises(DataFileMissingError, match="deletion_vector_"):
        restore(table, 1)


def test_only_files_that_come_back_are_asked_for() -> None:
    table = make()
    table.append({"id": [4], "p": [2]})
    table.delete("p = 1")
    target = table.snapshot(0)
    counted = CountingStore(table.kept)
    moved(target, store=counted)
    table.do(Restore(target=target, asked=0))
    assert counted.counts["stat"] == 1


def with_more(table: AgingTable) -> None:
    table.do(alter.AddFeature("v2Checkpoint", allow_protocol_versions_increase=True))
    table.do(alter.SetTableProperties({"my.key": "1"}))


def test_metadata_comes_back_and_features_stay() -> None:
    table = make()
    before = table.snapshot()
    with_more(table)
    restore(table, 0)
    after = table.snapshot()
    assert after.metadata == before.metadata
    assert after.configuration.supports("v2Checkpoint")
    assert kinds(table) == ["commitInfo", "metaData"]


def test_features_go_where_that_is_allowed() -> None:
    table = make()
    before = table.snapshot()
    with_more(table)
    restore(table, 0, protocol_downgrade_allowed=True)
    assert table.snapshot().protocol == before.protocol


def test_ids_of_columns_are_not_given_twice() -> None:
    table = make(**{"delta.columnMapping.mode": "name"})
    table.do(alter.AddColumns([Field("extra", "long")]))
    restore(table, 0)
    assert properties(table.snapshot())["delta.columnMapping.maxColumnId"] == "3"
    table.do(alter.AddColumns([Field("other", "long")]))
    added = table.snapshot().configuration.schema.fields[-1]
    assert added.metadata["delta.columnMapping.id"] == 4


def test_clustering_comes_back() -> None:
    table = AgingTable()
    table.create({"id": [1], "v": [2]}, properties={"delta.feature.clustering": "supported"})
    table.do(alter.SetClusteringColumns(["id"]))
    table.do(alter.SetClusteringColumns(["v"]))
    wanted = table.snapshot(1).domain_metadata["delta.clustering"]
    restore(table, 1)
    assert table.snapshot().domain_metadata["delta.clustering"] == wanted
    restore(table, 0)
    assert "delta.clustering" not in table.snapshot().domain_metadata


def test_who_appends_meanwhile_is_taken_back_too() -> None:
    table = make()
    table.append({"id": [4], "p": [2]})
    target = table.snapshot(0)
    stale = [table.snapshot()]
    table.append({"id": [5], "p": [2]})
    done = execute(
        Restore(target=target, asked=0),
        lambda: stale.pop() if stale else load_snapshot(utc_context(table.store)),
        LocalEngine(),
        CommitOptions(hooks=NO_HOOKS),
    )
    assert done.committed.version == 3
    assert table.rows() == table.rows(0)


def test_a_crash_anywhere_leaves_the_old_version_or_the_new_one() -> None:
    for number in range(1, 200):
        table = make(**VECTORS)
        table.delete("id = 1")
        table.delete("p = 1")
        old, new = table.rows(), table.rows(0)
        table.store = faulty = FaultyStore(table.kept, InjectedFault(call=number, harm=Harm.CRASH))
        with contextlib.suppress(DeltaError):
            restore(table, 0)
        table.store = table.kept
        assert table.rows() in (old, new)
        if not faulty.crashed:
            assert table.rows() == new
            break
    assert number > 4


@pytest.mark.slow("a long property")
@settings(max_examples=examples(30))
@given(st.data())
def test_law_restoring_gives_the_rows_of_the_version(data: st.DataObject) -> None:
    table = AgingTable()
    table.create(
        {"id": list(range(1500)), "p": [0, 1, 2] * 500},
        partition_by=["p"],
        properties=data.draw(st.sampled_from([{}, VECTORS, FEATURES])),
    )
    expected = [table.rows()]
    for _ in range(data.draw(st.integers(1, 6))):
        match data.draw(st.sampled_from(["delete", "partition", "append", "restore"])):
            case "delete":
                table.delete(f"id % 7 = {data.draw(st.integers(0, 6))}")
            case "partition":
                table.delete(f"p = {data.draw(st.integers(0, 2))}")
            case "append":
                table.append({"id": list(range(5)), "p": [1] * 5})
            case _:
                version = data.draw(st.integers(0, len(expected) - 1))
                restore(table, version)
                assert table.rows() == expected[version]
        expected.append(table.rows())
    assert [table.rows(version) for version in range(len(expected))] == expected
