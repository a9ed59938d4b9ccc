from __future__ import annotations

import pickle

import pytest

from deltalog.errors import InvalidMetadataError
from deltalog.protocol.actions.properties import PROPERTIES, TableProperties

DAY_MS = 86_400_000


@pytest.mark.protocol("OV-08", "CKPT-04", "STAT-10")
def test_defaults() -> None:
    properties = TableProperties({})
    assert properties.log_retention_ms == 30 * DAY_MS
    assert properties.deleted_file_retention_ms == 7 * DAY_MS
    assert properties.checkpoint_retention_ms == 2 * DAY_MS
    assert properties.set_transaction_retention_ms is None
    assert properties.checkpoint_interval == 10
    assert properties.enable_expired_log_cleanup
    assert properties.enable_full_retention_rollback
    assert properties.checkpoint_write_stats_as_json
    assert properties.checkpoint_write_stats_as_struct
    assert properties.checkpoint_policy == "classic"
    assert properties.isolation_level == "Serializable"
    assert properties.data_skipping_num_indexed_cols == 32
    assert properties.data_skipping_stats_columns is None
    assert properties.data_skipping_string_prefix_length == 32
    assert properties.column_mapping_mode == "none"
    assert properties.column_mapping_max_column_id == 0
    assert properties.random_prefix_length == 2
    off = (
        properties.append_only,
        properties.enable_change_data_feed,
        properties.enable_deletion_vectors,
        properties.enable_row_tracking,
        properties.enable_type_widening,
        properties.enable_in_commit_timestamps,
        properties.randomize_file_prefixes,
    )
    assert not any(off)


@pytest.mark.protocol(
    "B4-delta.logRetentionDuration",
    "B4-delta.deletedFileRetentionDuration",
    "B4-delta.checkpointRetentionDuration",
    "B4-delta.checkpointInterval",
    "B4-delta.enableExpiredLogCleanup",
    "B4-delta.enableFullRetentionRollback",
    "B4-delta.appendOnly",
    "B4-delta.enableChangeDataFeed",
    "B4-delta.columnMapping.mode",
    "B4-delta.dataSkippingNumIndexedCols",
    "B4-delta.isolationLevel",
    "B4-delta.setTransactionRetentionDuration",
    "B4-delta.checkpoint.writeStatsAsJson",
    "B4-delta.checkpointPolicy",
    "B4-delta.randomizeFilePrefixes",
    "B4-delta.enableInCommitTimestamps",
)
@pytest.mark.parametrize(
    ("key", "attribute", "default", "text", "value"),
    [
        ("logRetentionDuration", "log_retention_ms", 30 * DAY_MS, "interval 1 day", DAY_MS),
        ("deletedFileRetentionDuration", "deleted_file_retention_ms", 7 * DAY_MS, "0 days", 0),
        ("checkpointRetentionDuration", "checkpoint_retention_ms", 2 * DAY_MS, "1 hour", 3_600_000),
        ("checkpointInterval", "checkpoint_interval", 10, "100", 100),
        ("enableExpiredLogCleanup", "enable_expired_log_cleanup", True, "false", False),
        ("enableFullRetentionRollback", "enable_full_retention_rollback", True, "FALSE", False),
        ("appendOnly", "append_only", False, "true", True),
        ("enableChangeDataFeed", "enable_change_data_feed", False, "true", True),
        ("enableChangeDataCapture", "enable_change_data_feed", False, "true", True),
        ("columnMapping.mode", "column_mapping_mode", "none", "name", "name"),
        ("columnMapping.maxColumnId", "column_mapping_max_column_id", 0, "7", 7),
        (
            "columnMapping.hasDroppedOrRenamed",
            "column_mapping_has_dropped_or_renamed",
            False,
            "true",
            True,
        ),
        ("dataSkippingNumIndexedCols", "data_skipping_num_indexed_cols", 32, "-1", -1),
        ("dataSkippingStatsColumns", "data_skipping_stats_columns", None, "a", (("a",),)),
        ("dataSkippingStringPrefixLength", "data_skipping_string_prefix_length", 32, "5", 5),
        (
            "isolationLevel",
            "isolation_level",
            "Serializable",
            "writeserializable",
            "WriteSerializable",
        ),
        (
            "setTransactionRetentionDuration",
            "set_transaction_retention_ms",
            None,
            "interval 2 days",
            2 * DAY_MS,
        ),
        ("checkpoint.writeStatsAsJson", "checkpoint_write_stats_as_json", True, "false", False),
        ("checkpoint.writeStatsAsStruct", "checkpoint_write_stats_as_struct", True, "false", False),
        ("checkpointPolicy", "checkpoint_policy", "classic", "v2", "v2"),
        ("randomizeFilePrefixes", "randomize_file_prefixes", False, "true", True),
        ("randomPrefixLength", "random_prefix_length", 2, "3", 3),
        ("enableInCommitTimestamps", "enable_in_commit_timestamps", False, "true", True),
        ("enableDeletionVectors", "enable_deletion_vectors", False, "true", True),
        ("enableRowTracking", "enable_row_tracking", False, "true", True),
        ("enableTypeWidening", "enable_type_widening", False, "true", True),
    ],
)
def test_a_property_has_its_default_and_its_type(
    key: str, attribute: str, default: object, text: str, value: object
) -> None:
    assert getattr(TableProperties({}), attribute) == default
    assert getattr(TableProperties({f"delta.{key}": text}), attribute) == value


def test_a_misspelt_property_brings_the_right_one_to_mind() -> None:
    with pytest.raises(AttributeError, match="did you mean 'checkpoint_interval'"):
        getattr(TableProperties({}), "chekpoint_interval")  # noqa: B009
    with pytest.raises(AttributeError, match=r"no table property 'colour'$"):
        getattr(TableProperties({}), "colour")  # noqa: B009


def test_every_default_is_reached() -> None:
    properties = TableProperties({})
    attributes = {
        prop.key: name for name, prop in vars(TableProperties).items() if hasattr(prop, "key")
    }
    assert set(attributes) == set(PROPERTIES)
    for key, prop in PROPERTIES.items():
        assert getattr(properties, attributes[key]) == prop.default
        assert prop.doc.endswith(".")


@pytest.mark.protocol("APP-04", "D-38")
@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), (" False ", False)])
def test_booleans_in_any_case(text: str, value: bool) -> None:
    assert TableProperties({"delta.appendOnly": text}).append_only is value


@pytest.mark.protocol("APP-04")
def test_a_bad_value_harms_only_who_asks_for_it() -> None:
    properties = TableProperties({"delta.appendOnly": "yes", "delta.checkpointInterval": "3"})
    assert properties.checkpoint_interval == 3
    with pytest.raises(
        InvalidMetadataError, match=r"delta\.appendOnly: expected true or false, found 'yes'"
    ):
        _ = properties.append_only


@pytest.mark.protocol("META-07")
def test_a_key_without_prefix_means_nothing() -> None:
    assert not TableProperties({"appendOnly": "true"}).append_only


def test_an_old_key_of_the_change_feed() -> None:
    assert TableProperties({"delta.enableChangeDataCapture": "true"}).enable_change_data_feed
    both = {"delta.enableChangeDataCapture": "true", "delta.enableChangeDataFeed": "false"}
    assert not TableProperties(both).enable_change_data_feed


@pytest.mark.protocol("CON-03")
def test_constraints_by_name() -> None:
    properties = TableProperties({"delta.constraints.c1": "a > 1", "delta.appendOnly": "true"})
    assert properties.constraints == {"c1": "a > 1"}


def test_properties_pickle() -> None:
    assert pickle.loads(pickle.dumps(TableProperties({"delta.appendOnly": "true"}))).append_only
