"""Protocol, metadata and schema after each change of a table."""

from __future__ import annotations

import re
from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.protocol.actions import Protocol
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.support import check_protocol
from deltalog.protocol.table_change.change import changed_table
from deltalog.schema import Field, StructType
from tests.support.table_changes import (
    IDENTITY,
    MAPPED,
    PLAIN,
    columns,
    table,
    versions,
    with_properties,
)


@pytest.mark.protocol("UPG-03", "UPG-04", "B-08", "B-39", "TF-02", "TF-03", "GEN-03", "IDN-08")
@pytest.mark.parametrize(
    ("schema", "options", "reader", "writer", "readers", "writers"),
    [
        (PLAIN, {}, 1, 2, None, None),
        (PLAIN, {"configuration": {"delta.appendOnly": "true"}}, 1, 2, None, None),
        (PLAIN, {"configuration": {"delta.constraints.c": "id > 0"}}, 1, 3, None, None),
        (
            PLAIN,
            {"configuration": {"delta.enableChangeDataFeed": "true"}},
            *(1, 7, None, {"changeDataFeed"}),
        ),
        (PLAIN, {"configuration": MAPPED}, 3, 7, {"columnMapping"}, {"columnMapping"}),
        (
            PLAIN,
            {"configuration": {"delta.enableDeletionVectors": "true"}},
            *(3, 7, {"deletionVectors"}, {"deletionVectors"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.enableRowTracking": "true"}},
            *(1, 7, None, {"rowTracking", "domainMetadata"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.enableInCommitTimestamps": "true"}},
            *(1, 7, None, {"inCommitTimestamp"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.checkpointPolicy": "v2"}},
            *(3, 7, {"v2Checkpoint"}, {"v2Checkpoint"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.enableTypeWidening": "true"}},
            *(3, 7, {"typeWidening"}, {"typeWidening"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.enableIcebergCompatV2": "true"}},
            *(3, 7, {"columnMapping"}, {"columnMapping", "icebergCompatV2"}),
        ),
        (
            PLAIN,
            {"configuration": {"delta.feature.vacuumProtocolCheck": "supported"}},
            *(3, 7, {"vacuumProtocolCheck"}, {"vacuumProtocolCheck"}),
        ),
        (
            PLAIN,
            {"clustering_columns": ["id"]},
            *(1, 7, None, {"clustering", "domainMetadata"}),
        ),
        (PLAIN, {"features": ["domainMetadata"]}, 1, 7, None, {"domainMetadata"}),
        (
            PLAIN,
            {"configuration": {"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"}},
            *(1, 4, None, None),
        ),
        (
            PLAIN,
            {"configuration": {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}},
            *(1, 2, None, None),
        ),
        (
            columns(Field("t", "timestamp_ntz")),
            {},
            *(3, 7, {"timestampNtz"}, {"timestampNtz"}),
        ),
        (columns(Field("v", "variant")), {}, 3, 7, {"variantType"}, {"variantType"}),
        (
            columns(Field("g", "long", metadata={"delta.generationExpression": "id + 1"})),
            {},
            *(1, 7, None, {"generatedColumns"}),
        ),
        (columns(Field("i", "long", metadata=IDENTITY)), {}, 1, 7, None, {"identityColumns"}),
        (
            columns(Field("d", "integer", metadata={"CURRENT_DEFAULT": "3"})),
            {},
            *(1, 7, None, {"allowColumnDefaults"}),
        ),
    ],
)
def test_a_new_table_has_the_least_protocol(
    schema: StructType,
    options: dict[str, Any],
    reader: int,
    writer: int,
    readers: set[str] | None,
    writers: set[str] | None,
) -> None:
    made = table(schema, **options)
    protocol = made.protocol
    assert versions(protocol) == (reader, writer)
    assert (None if readers is None else set(protocol.reader_features or ())) == readers
    if writers is not None:
        assert set(protocol.writer_features or ()) == writers | {"appendOnly", "invariants"}
    check_protocol(protocol)


@pytest.mark.protocol("META-01", "META-04", "META-06", "UPG-06")
def test_metadata_of_a_new_table() -> None:
    made = table(
        partition_columns=["P"],
        configuration={
            "delta.appendonly": "true",
            "mine": "kept",
            "delta.feature.domainMetadata": "supported",
            "delta.minWriterVersion": "3",
        },
        name="t",
        description="about t",
    )
    metadata = made.metadata
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata.id)
    assert metadata.partition_columns == ("p",)
    assert metadata.configuration == {"delta.appendOnly": "true", "mine": "kept"}
    assert (metadata.name, metadata.description) == ("t", "about t")
    assert metadata.created_time_ms == 1_700_000_000_000
    assert (metadata.format.provider, metadata.format.options) == ("parquet", {})
    assert table(table_id="x").metadata.id == "x"


@pytest.mark.protocol("UPG-05", "UPG-07", "B-09", "TF-06")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [((1, 3), (1, 3)), ((1, 1), (1, 2)), ((2, 5), (2, 5)), ((1, 2), (1, 2)), ((3, 7), (1, 2))],
)
def test_versions_only_rise(asked: tuple[int, int], expected: tuple[int, int]) -> None:
    reader, writer = asked
    after = with_properties(table(), minReaderVersion=str(reader), minWriterVersion=str(writer))
    assert versions(after.protocol) == expected
    assert after.metadata.configuration == {}


@pytest.mark.protocol("B-08", "B-10")
def test_a_protocol_that_says_the_same_in_other_words_stays() -> None:
    listed = Protocol(
        min_reader_version=1,
        min_writer_version=7,
        writer_features=("appendOnly", "columnInvariants"),
    )
    theirs = TableConfiguration(listed, table().metadata)
    assert with_properties(theirs, appendOnly="true").protocol == listed
    more = with_properties(theirs, enableChangeDataFeed="true").protocol
    assert more.writer_features == ("appendOnly", "changeDataFeed", "columnInvariants")


@pytest.mark.protocol("TF-04", "TF-06", "TF-07")
def test_a_feature_stays_when_it_is_no_longer_used() -> None:
    before = table(configuration={"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"})
    on = with_properties(before, enableChangeDataFeed="true")
    off = changed_table(on, configuration={})
    upgraded = changed_table(off, features=["deletionVectors"])
    assert set(upgraded.features) == {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "deletionVectors",
    }


@pytest.mark.protocol("META-08")
def test_what_is_not_said_stays() -> None:
    before = table(partition_columns=["p"], name="t", description="d")
    after = with_properties(before, appendOnly="true")
    assert after.metadata.id == before.metadata.id
    assert after.metadata.schema_string == before.metadata.schema_string
    assert after.metadata.partition_columns == ("p",)
    assert (after.metadata.name, after.metadata.description) == ("t", "d")


@pytest.mark.parametrize("mode", ["none", "name"])
def test_replaced_data_keeps_its_partitioning_by_name(mode: str) -> None:
    before = table(partition_columns=["p"], configuration={"delta.columnMapping.mode": mode})
    schema = StructType([Field("P", "integer"), Field("x", "long")])
    assert changed_table(before, schema=schema, replaces_data=True).partition_columns == ("P",)
    with pytest.raises(InvalidInputError, match="no column 'p'"):
        changed_table(before, schema=StructType([Field("x", "long")]), replaces_data=True)


def test_a_renamed_partition_column_stays_one_and_cannot_be_dropped() -> None:
    before = table(configuration=MAPPED, partition_columns=["p"])
    id_, p, n = before.schema.fields
    renamed = StructType([id_, Field("q", "string", metadata=p.metadata), n])
    assert changed_table(before, schema=renamed).partition_columns == ("q",)
    with pytest.raises(InvalidInputError, match="partition column"):
        changed_table(before, schema=StructType([id_, n]))


def test_deletion_vectors_bring_no_other_feature() -> None:
    made = table(configuration={"delta.enableDeletionVectors": "true"})
    assert made.protocol.reader_features == ("deletionVectors",)
