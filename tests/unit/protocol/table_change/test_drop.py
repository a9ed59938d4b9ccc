from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.protocol.actions import Protocol
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.table_change.change import new_table
from deltalog.protocol.table_change.drop import (
    check_droppable,
    deactivated,
    with_current_row_ids,
    without_feature,
)
from deltalog.schema import Field, StructType
from deltalog.schema.columns import walk

SCHEMA = StructType([Field("id", "long"), Field("n", "integer")])


def table(features: tuple[str, ...] = (), **properties: str) -> TableConfiguration:
    configuration = {f"delta.{key.replace('__', '.')}": text for key, text in properties.items()}
    return new_table(SCHEMA, configuration=configuration, features=features, created_time_ms=1)


@pytest.mark.protocol("B-07")
@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ("nonsense", "no such table feature"),
        ("deletionVectors", "the table does not have it"),
        ("appendOnly", "it cannot be dropped"),
        ("domainMetadata", "'rowTracking' requires it"),
    ],
)
def test_features_that_stay(feature: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_droppable(table(enableRowTracking="true"), feature)


def test_what_readers_of_old_versions_need_counts_in_the_history() -> None:
    vectors = table(enableDeletionVectors="true")
    assert check_droppable(vectors, "deletionVectors").has_history
    assert not check_droppable(table(enableRowTracking="true"), "rowTracking").has_history


def test_an_inactive_feature_is_still_supported() -> None:
    after = deactivated(table(enableDeletionVectors="true"), "deletionVectors")
    assert after.supports("deletionVectors")
    assert not after.is_active("deletionVectors")
    assert after.metadata.configuration == {}


@pytest.mark.protocol("B-07", "B-57")
def test_partition_columns_need_no_longer_be_in_data_files() -> None:
    before = table(enableMaterializePartitionColumnsFeature="true")
    assert not check_droppable(before, "materializePartitionColumns").has_history
    after = without_feature(before, "materializePartitionColumns")
    assert not after.supports("materializePartitionColumns")
    assert after.metadata.configuration == {}


def test_constraints_hold_their_feature() -> None:
    held = table(constraints__positive="id > 0")
    with pytest.raises(InvalidInputError, match="drop the constraints positive first"):
        deactivated(held, "checkConstraints")


@pytest.mark.protocol("B-35")
def test_column_mapping_goes_with_its_ids_and_names() -> None:
    after = without_feature(table(columnMapping__mode="name"), "columnMapping")
    assert not after.supports("columnMapping")
    assert all(not field.metadata for _, field in walk(after.schema))
    assert after.metadata.configuration == {}


@pytest.mark.protocol("B-55")
def test_protected_history_brings_its_own_feature() -> None:
    vectors = table(enableDeletionVectors="true")
    after = without_feature(vectors, "deletionVectors", protected_before_version=9)
    assert set(after.protocol.writer_features or ()) == {
        "appendOnly",
        "invariants",
        "checkpointProtection",
    }
    key = "delta.requireCheckpointProtectionBeforeVersion"
    assert after.metadata.configuration == {key: "9"}


@pytest.mark.protocol("B-78")
def test_the_drafts_row_ids_become_todays_and_keep_their_column() -> None:
    draft = table(("rowIds",), enableRowIds="true")
    after = with_current_row_ids(draft)
    assert after.row_id_dialect == "rowTracking"
    assert after.row_ids_enabled
    assert after.row_id_column == draft.row_id_column
    with pytest.raises(InvalidInputError, match="does not have it"):
        with_current_row_ids(
            TableConfiguration(
                Protocol(min_reader_version=1, min_writer_version=2), table().metadata
            )
        )
