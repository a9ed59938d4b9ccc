"""Features dropped: what uses them goes, history is protected or cut off, the protocol shrinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from deltalog._util.json import loads
from deltalog.errors import InvalidInputError
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations import alter
from deltalog.operations.alter.drop_feature import Commit, drop_feature
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import execute
from deltalog.operations.operation import Operation
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from tests.support.raw_tables import DataTable

PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"


def committing(table: DataTable) -> Commit:
    def commit(operation: Operation[Any]) -> Snapshot:
        done = execute(operation, lambda: load_snapshot(utc_context(table.store)), LocalEngine())
        return done.committed.snapshot

    return commit


def drop(table: DataTable, feature: str, **options: Any) -> Snapshot:
    snapshot = load_snapshot(utc_context(table.store))
    return drop_feature(snapshot, feature, commit=committing(table), **options)


def make(properties: dict[str, str] | None = None, features: Sequence[str] = ()) -> DataTable:
    table = DataTable([("id", "long"), ("n", "integer")])
    commit = committing(table)
    if features:
        commit(alter.AddFeature(features, allow_protocol_versions_increase=True))
    if properties:
        commit(alter.SetTableProperties(properties))
    table._version = load_snapshot(utc_context(table.store)).version  # it counts its own commits
    table.commit(table.add({"id": [1, 2, 3], "n": [1, 2, 3]}))
    return table


def operations(table: DataTable) -> list[str]:
    return [
        entry.get("operation", "") for entry in load_snapshot(utc_context(table.store)).history()
    ][::-1]


def last(table: DataTable) -> list[dict[str, Any]]:
    version = load_snapshot(utc_context(table.store)).version
    return [loads(line, "") for line in table.store.read(commit_path(version)).splitlines()]


@pytest.mark.protocol("B-07", "B-55")
@pytest.mark.parametrize(
    ("feature", "properties"),
    [
        ("vacuumProtocolCheck", {}),
        ("v2Checkpoint", {"delta.checkpointPolicy": "v2"}),
        ("deletionVectors", {"delta.enableDeletionVectors": "true"}),
        ("typeWidening", {"delta.enableTypeWidening": "true"}),
    ],
)
def test_a_readers_feature_leaves_behind_protected_checkpoints(
    feature: str, properties: dict[str, str]
) -> None:
    table = make(properties, [feature])
    after = drop(table, feature)
    protocol = after.protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 7)
    assert set(protocol.writer_features or ()) == {
        "appendOnly",
        "invariants",
        "checkpointProtection",
    }
    assert after.metadata.configuration == {PROTECTED: str(after.version)}
    assert operations(table)[-1] == "DROP FEATURE"
    # A reader without the feature needs nothing from before the checkpoint.
    fresh = load_snapshot(utc_context(table.store))
    assert fresh.segment.checkpoint is not None
    assert fresh.segment.checkpoint.version == after.version - 1
    assert sorted(table.rows(columns=["id"])) == [1, 2, 3]


@pytest.mark.protocol("B-07")
def test_files_with_deletion_vectors_are_written_anew() -> None:
    table = make({"delta.enableDeletionVectors": "true"})
    table.commit(table.add({"id": [4, 5], "n": [4, 5]}, deletionVector=table.vector(0)))
    after = drop(table, "deletionVectors")
    vectors = after.files(["deletionVector"]).column("deletionVector")
    assert (after.num_files, vectors.null_count) == (2, 2)
    assert sorted(table.rows(columns=["id"])) == [1, 2, 3, 5]
    assert "REORG" in operations(table)


@pytest.mark.protocol("APP-02")
def test_rows_of_an_append_only_table_may_move_to_other_files() -> None:
    table = make({"delta.enableDeletionVectors": "true"})
    table.commit(table.add({"id": [4, 5], "n": [4, 5]}, deletionVector=table.vector(0)))
    asked = {"delta.appendOnly": "true"}
    committing(table)(alter.SetTableProperties(asked))
    drop(table, "deletionVectors")
    assert sorted(table.rows(columns=["id"])) == [1, 2, 3, 5]


@pytest.mark.protocol("B-07", "CM-17")
def test_column_mapping_leaves_with_every_file() -> None:
    table = make({"delta.columnMapping.mode": "name"})
    commit = committing(table)
    commit(alter.RenameColumn("n", "m"))
    after = drop(table, "columnMapping")
    assert after.configuration.column_mapping_mode == "none"
    assert after.metadata.configuration == {PROTECTED: str(after.version)}
    assert all(not field.metadata for field in after.configuration.schema)
    assert sorted(table.rows()) == [(1, 1), (2, 2), (3, 3)]
    assert "REMOVE COLUMN MAPPING" in operations(table)


@pytest.mark.protocol("B-35", "UPG-10")
def test_column_mapping_stays_where_names_need_it() -> None:
    table = make({"delta.columnMapping.mode": "name"})
    committing(table)(alter.RenameColumn("n", "a b"))
    version = load_snapshot(utc_context(table.store)).version
    with pytest.raises(InvalidInputError, match="'a b'"):
        drop(table, "columnMapping")
    assert load_snapshot(utc_context(table.store)).version == version


@pytest.mark.protocol("B-50")
def test_widened_columns_are_written_in_their_type_of_today() -> None:
    table = make({"delta.enableTypeWidening": "true"})
    committing(table)(alter.SetColumnType("n", "long"))
    before = set(load_snapshot(utc_context(table.store)).files(["path"]).column("path").to_pylist())
    after = drop(table, "typeWidening")
    assert before.isdisjoint(after.files(["path"]).column("path").to_pylist())
    assert all(not field.metadata for field in after.configuration.schema)
    assert sorted(table.rows()) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.protocol("B-76", "ROWID-09")
def test_row_tracking_leaves_nothing_behind() -> None:
    table = make()
    commit = committing(table)
    commit(alter.SetTableProperties({"delta.enableRowTracking": "true"}))
    after = drop(table, "rowTracking")
    assert set(after.configuration.features) == {"appendOnly", "invariants", "domainMetadata"}
    assert after.metadata.configuration == {}
    assert after.domain_metadata == {}
    assert after.files(["baseRowId"]).column("baseRowId").null_count == after.num_files == 1
    assert {next(iter(action)) for action in last(table)} == {
        "commitInfo",
        "protocol",
        "metaData",
        "domainMetadata",
        "add",
    }
    assert drop(table, "domainMetadata").protocol.min_writer_version == 2


@pytest.mark.protocol("B-22", "B-60")
def test_in_commit_timestamps_are_dropped_in_one_commit() -> None:
    table = make()
    commit = committing(table)
    asked = {"delta.enableInCommitTimestamps": "true"}
    on = commit(alter.SetTableProperties(asked))
    assert on.configuration.in_commit_timestamps is not None
    after = drop(table, "inCommitTimestamp-preview")
    assert after.version == on.version + 1
    assert after.metadata.configuration == {}
    assert after.protocol.min_writer_version == 2


def test_constraints_go_before_their_feature() -> None:
    table = make()
    commit = committing(table)
    commit(alter.AddConstraints({"c": "id > 0"}))
    with pytest.raises(InvalidInputError, match="drop the constraints c first"):
        drop(table, "checkConstraints")
    commit(alter.DropConstraint("c"))
    after = drop(table, "checkConstraints")
    assert (after.protocol.min_reader_version, after.protocol.min_writer_version) == (1, 2)


@pytest.mark.protocol("TF-04", "DOM-04")
@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ("nope", "no such table feature"),
        ("rowTracking", "does not have it"),
        ("domainMetadata", "'clustering' requires it"),
        ("clustering", "it cannot be dropped"),
        ("appendOnly", "it cannot be dropped"),
        ("checkpointProtection", "truncate_history=True"),
    ],
)
def test_features_that_cannot_be_dropped(feature: str, message: str) -> None:
    table = make(features=["clustering", "checkpointProtection"])
    version = load_snapshot(utc_context(table.store)).version
    with pytest.raises(InvalidInputError, match=message):
        drop(table, feature)
    assert load_snapshot(utc_context(table.store)).version == version


def test_domains_of_users_go_before_their_feature() -> None:
    table = make(features=["domainMetadata"])
    committing(table)(alter.SetDomainMetadata("mine", "{}"))
    with pytest.raises(InvalidInputError, match="mine"):
        drop(table, "domainMetadata")


NOW = 1_700_000_000_000
DAY = 86_400_000


def let_it_be(table: DataTable, time_ms: int) -> None:
    """All files of the log are as old as that."""
    for path in table.store.files:
        if path.startswith("_delta_log/"):
            table.store.times_ms[path] = time_ms


@pytest.mark.protocol("B-07")
def test_history_that_needs_the_feature_is_cut_off() -> None:
    table = make({"delta.enableDeletionVectors": "true"})
    table.commit(table.add({"id": [4, 5], "n": [4, 5]}, deletionVector=table.vector(0)))
    let_it_be(table, NOW)
    with pytest.raises(InvalidInputError, match="24 hours old at midnight"):
        drop(table, "deletionVectors", truncate_history=True, at_ms=NOW)
    # The table does not use it any more; what is left is to wait.
    assert not load_snapshot(utc_context(table.store)).configuration.writes_deletion_vectors
    let_it_be(table, NOW)
    after = drop(table, "deletionVectors", truncate_history=True, at_ms=NOW + 2 * DAY)
    assert after.configuration.features.keys() == {"appendOnly", "invariants"}
    assert after.metadata.configuration == {}
    assert sorted(table.rows(columns=["id"])) == [1, 2, 3, 5]


@pytest.mark.protocol("B-07", "B-15")
def test_checkpoints_of_the_new_kind_are_history_too() -> None:
    table = make({"delta.checkpointPolicy": "v2"})
    create_checkpoint(load_snapshot(utc_context(table.store)))
    let_it_be(table, NOW)
    with pytest.raises(InvalidInputError, match="24 hours old at midnight"):
        drop(table, "v2Checkpoint", truncate_history=True, at_ms=NOW)
    let_it_be(table, NOW)
    after = drop(table, "v2Checkpoint", truncate_history=True, at_ms=NOW + 2 * DAY)
    assert after.configuration.features.keys() == {"appendOnly", "invariants"}
    assert not [path for path in table.store.files if "checkpoint." in path and len(path) > 60]


@pytest.mark.protocol("B-55")
def test_checkpoint_protection_leaves_with_the_history_that_it_protects() -> None:
    table = make({"delta.checkpointPolicy": "v2"})
    protected = drop(table, "v2Checkpoint")
    assert protected.configuration.supports("checkpointProtection")
    let_it_be(table, NOW)
    with pytest.raises(InvalidInputError, match="24 hours old at midnight"):
        drop(table, "checkpointProtection", truncate_history=True, at_ms=NOW)
    let_it_be(table, NOW)
    after = drop(table, "checkpointProtection", truncate_history=True, at_ms=NOW + 2 * DAY)
    assert after.configuration.features.keys() == {"appendOnly", "invariants"}
    assert after.metadata.configuration == {}
