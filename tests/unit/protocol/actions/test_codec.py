from __future__ import annotations

from typing import Any

import pytest

from deltalog._util.json import iter_objects
from deltalog.errors import InvalidMetadataError, InvalidProtocolError, MalformedLogError
from deltalog.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    action_to_json,
    actions_from_json,
    encode_actions,
)
from deltalog.protocol.actions.codec import action_from_json
from deltalog.protocol.actions.model import (
    CheckpointMetadata,
    Format,
    RemoveFile,
    RowIdHighWaterMark,
    Sidecar,
)

DRAFT_ADD = {
    "path": "date=2017-12-10/part-000...c000.gz.parquet",
    "partitionValues": {"date": "2017-12-10"},
    "size": 841454,
    "modificationTime": 1512909768000,
    "dataChange": True,
    "baseRowId": 4071,
    "stats": '{"numRecords":1,"minValues":{"val..."}}',
}


@pytest.mark.protocol("ADD-01", "ADD-11", "ADD-13")
def test_the_add_of_the_text() -> None:
    assert action_from_json({"add": DRAFT_ADD}) == AddFile(
        path="date=2017-12-10/part-000...c000.gz.parquet",
        partition_values={"date": "2017-12-10"},
        size_bytes=841454,
        modification_time_ms=1512909768000,
        data_change=True,
        base_row_id=4071,
        stats='{"numRecords":1,"minValues":{"val..."}}',
    )


@pytest.mark.protocol("REM-01", "REM-02")
def test_the_remove_of_the_text() -> None:
    remove = {
        "path": "part-00001-9…..snappy.parquet",
        "deletionTimestamp": 1515488792485,
        "baseRowId": 4071,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"p": None},
        "size": 12,
        "tags": {"a": "b"},
        "defaultRowCommitVersion": 4,
        "stats": "{}",
    }
    assert action_from_json({"remove": remove}) == RemoveFile(
        path="part-00001-9…..snappy.parquet",
        deletion_timestamp_ms=1515488792485,
        base_row_id=4071,
        data_change=True,
        extended_file_metadata=True,
        partition_values={"p": None},
        size_bytes=12,
        tags={"a": "b"},
        default_row_commit_version=4,
        stats="{}",
    )


@pytest.mark.protocol("REM-05", "B-40", "B-41")
def test_a_remove_of_the_first_protocol() -> None:
    old = action_from_json({"remove": {"path": "f", "dataChange": False}})
    assert old == RemoveFile(path="f", data_change=False)


@pytest.mark.protocol("CDC-01")
def test_the_cdc_of_the_text() -> None:
    cdc = {
        "path": "_change_data/cdc-00001-c…..snappy.parquet",
        "partitionValues": {},
        "size": 1213,
        "dataChange": False,
    }
    parsed = action_from_json({"cdc": cdc})
    assert parsed == AddCDCFile(
        path="_change_data/cdc-00001-c…..snappy.parquet", partition_values={}, size_bytes=1213
    )
    assert parsed is not None
    assert action_to_json(parsed)["cdc"]["dataChange"] is False


@pytest.mark.protocol("ADD-02")
def test_paths_are_decoded_once_and_encoded_once() -> None:
    parsed = action_from_json({"add": {**DRAFT_ADD, "path": "p=x%253Ay/a%20b%25.parquet"}})
    assert isinstance(parsed, AddFile)
    assert parsed.path == "p=x%3Ay/a b%.parquet"
    assert action_to_json(parsed)["add"]["path"] == "p=x%253Ay/a%20b%25.parquet"


@pytest.mark.protocol("DV-02")
@pytest.mark.parametrize(
    ("values", "unique_id"),
    [
        (
            {
                "storageType": "u",
                "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
                "offset": 4,
                "sizeInBytes": 40,
                "cardinality": 6,
            },
            "uab^-aqEH.-t@S}K{vb[*k^@4",
        ),
        (
            {
                "storageType": "p",
                "pathOrInlineDv": "s3://mytable/deletion_vector_d2c639aa.bin",
                "offset": 4,
                "sizeInBytes": 40,
                "cardinality": 6,
            },
            "ps3://mytable/deletion_vector_d2c639aa.bin@4",
        ),
        (
            {
                "storageType": "i",
                "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
                "sizeInBytes": 40,
                "cardinality": 6,
            },
            "iwi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        ),
    ],
)
def test_the_descriptors_of_the_text(values: dict[str, Any], unique_id: str) -> None:
    parsed = action_from_json({"add": {**DRAFT_ADD, "deletionVector": values}})
    assert isinstance(parsed, AddFile)
    assert isinstance(parsed.deletion_vector, DeletionVectorDescriptor)
    assert parsed.deletion_vector.unique_id == unique_id
    assert parsed.deletion_vector.cardinality == 6
    assert action_to_json(parsed)["add"]["deletionVector"] == values


@pytest.mark.protocol("DV-02")
def test_an_incomplete_descriptor_is_an_error() -> None:
    with pytest.raises(MalformedLogError, match=r"add\.deletionVector\.sizeInBytes: required int"):
        action_from_json(
            {"add": {**DRAFT_ADD, "deletionVector": {"storageType": "i", "pathOrInlineDv": "x"}}}
        )


METADATA = {
    "id": "af23c9d7-fff1-4a5a-a2c8-55c59bd782aa",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": '{"type":"struct","fields":[]}',
    "partitionColumns": [],
    "configuration": {"appendOnly": "true"},
}


@pytest.mark.protocol("META-01", "META-07", "D-59")
def test_the_metadata_of_the_text() -> None:
    assert action_from_json({"metaData": METADATA}) == Metadata(
        id="af23c9d7-fff1-4a5a-a2c8-55c59bd782aa",
        schema_string='{"type":"struct","fields":[]}',
        configuration={"appendOnly": "true"},
    )


@pytest.mark.protocol("META-01", "B-40")
def test_a_metadata_of_the_first_protocol_gets_defaults() -> None:
    old = {name: METADATA[name] for name in ("id", "format", "schemaString", "partitionColumns")}
    parsed = action_from_json({"metaData": old})
    assert isinstance(parsed, Metadata)
    assert parsed.configuration == {}
    assert parsed.created_time_ms is None
    assert parsed.description is None
    assert parsed.format == Format()


@pytest.mark.protocol("META-01")
def test_metadata_without_a_schema_is_invalid() -> None:
    with pytest.raises(InvalidMetadataError, match=r"line 7: metaData\.schemaString: required str"):
        action_from_json({"metaData": {**METADATA, "schemaString": None}}, "version 0, line 7")


def test_format_options_and_all_members_of_metadata_are_kept() -> None:
    full = Metadata(
        id="1",
        schema_string="{}",
        partition_columns=("b", "a"),
        configuration={"delta.x": "y"},
        format=Format(provider="csv", options={"header": "true"}),
        name="n",
        description="d",
        created_time_ms=5,
    )
    assert action_from_json(action_to_json(full)) == full


@pytest.mark.protocol("TXN-01")
def test_the_txn_of_the_text() -> None:
    values = {"appId": "3ba13872-2d47-4e17-86a0-21afd2a22395", "version": 364475}
    assert action_from_json({"txn": values}) == SetTransaction(
        app_id="3ba13872-2d47-4e17-86a0-21afd2a22395", version=364475
    )
    with_time = action_from_json({"txn": {**values, "lastUpdated": 7}})
    assert isinstance(with_time, SetTransaction)
    assert with_time.last_updated_ms == 7


def test_protocols_with_lists() -> None:
    values = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "appendOnly"],
    }
    parsed = action_from_json({"protocol": values})
    assert parsed == Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=("deletionVectors",),
        writer_features=("deletionVectors", "appendOnly"),
    )
    assert action_to_json(parsed) == {"protocol": values}


@pytest.mark.protocol("PROTO-06", "B-05", "D-59")
def test_short_names_of_protocol_versions_are_read_and_never_written() -> None:
    parsed = action_from_json({"protocol": {"readerVersion": 1, "writerVersion": 2}})
    assert parsed == Protocol(min_reader_version=1, min_writer_version=2)
    assert action_to_json(parsed) == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def test_empty_lists_say_nothing_below_their_versions() -> None:
    parsed = action_from_json(
        {
            "protocol": {
                "minReaderVersion": 1,
                "minWriterVersion": 2,
                "readerFeatures": [],
                "writerFeatures": [],
            }
        }
    )
    assert parsed == Protocol(min_reader_version=1, min_writer_version=2)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"minReaderVersion": 1},
        {"minReaderVersion": "1", "minWriterVersion": 2},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": "dv"},
        [],
    ],
)
def test_a_broken_protocol_is_invalid(values: object) -> None:
    with pytest.raises(InvalidProtocolError):
        action_from_json({"protocol": values})


@pytest.mark.protocol("HWM-01")
def test_the_high_water_mark_of_the_draft() -> None:
    values = {"highWaterMark": 1432, "preservedRowIds": True}
    parsed = action_from_json({"rowIdHighWaterMark": values})
    assert parsed == RowIdHighWaterMark(high_water_mark=1432, preserved_row_ids=True)
    assert action_to_json(parsed) == {"rowIdHighWaterMark": values}
    for name in values:
        with pytest.raises(MalformedLogError, match=name):
            action_from_json({"rowIdHighWaterMark": {**values, name: None}})


@pytest.mark.protocol("DOM-01", "D-57", "B-79")
@pytest.mark.parametrize("configuration", ['{"key":"value"}', {"key1": "value1"}])
def test_a_domain_as_text_and_as_map(configuration: str | dict[str, str]) -> None:
    values = {"domain": "delta.myDomain", "configuration": configuration, "removed": False}
    parsed = action_from_json({"domainMetadata": values})
    assert parsed == DomainMetadata(domain="delta.myDomain", configuration=configuration)
    assert action_to_json(parsed) == {"domainMetadata": values}


@pytest.mark.protocol("PROV-01")
def test_commit_info_is_kept_whole() -> None:
    values = {
        "timestamp": 1515491537026,
        "userId": "100121",
        "operation": "INSERT",
        "operationParameters": {"mode": "Append", "n": [1, None, {"x": 2.5}]},
        "notebook": {"notebookId": "4443029", "notebookPath": "Users/actions"},
        "clusterId": "1027-202406-pooh991",
        "inCommitTimestamp": 3,
        "txnId": "abc",
    }
    parsed = action_from_json({"commitInfo": values})
    assert isinstance(parsed, CommitInfo)
    assert parsed.values == values
    assert parsed.in_commit_timestamp_ms == 3
    assert parsed.txn_id == "abc"
    assert action_to_json(parsed) == {"commitInfo": values}


@pytest.mark.protocol("LOG-10", "PROTO-04")
def test_what_nobody_knows_is_ignored() -> None:
    lines: list[dict[str, Any]] = [
        {"futureAction": {"x": 1}},
        {"txn": {"appId": "a", "version": 1, "future": [1]}},
        {},
        {"add": None},
    ]
    assert actions_from_json(lines) == [SetTransaction(app_id="a", version=1)]


def test_a_row_of_a_checkpoint_is_an_action() -> None:
    row = {
        "txn": None,
        "add": {**DRAFT_ADD, "partitionValues": [("date", "2017-12-10")], "tags": []},
        "remove": None,
        "metaData": None,
    }
    parsed = action_from_json(row)
    assert isinstance(parsed, AddFile)
    assert parsed.partition_values == {"date": "2017-12-10"}
    assert parsed.tags == {}
    metadata = action_from_json({"metaData": {**METADATA, "configuration": [("delta.a", "b")]}})
    assert isinstance(metadata, Metadata)
    assert metadata.configuration == {"delta.a": "b"}


def test_the_actions_of_v2_checkpoints() -> None:
    top = CheckpointMetadata(version=3, tags={"a": "b"})
    sidecar = Sidecar(path="a b.parquet", size_bytes=4, modification_time_ms=5)
    assert action_to_json(top) == {"checkpointMetadata": {"version": 3, "tags": {"a": "b"}}}
    assert action_to_json(sidecar) == {
        "sidecar": {"path": "a%20b.parquet", "sizeInBytes": 4, "modificationTime": 5}
    }
    assert action_from_json(action_to_json(top)) == top
    assert action_from_json(action_to_json(sidecar)) == sidecar
    timeless = action_from_json({"sidecar": {"path": "a", "sizeInBytes": 4}})
    assert timeless == Sidecar(path="a", size_bytes=4, modification_time_ms=0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"add": {}}, r"line 2: add\.path: required str is missing"),
        ({"add": {**DRAFT_ADD, "size": "5"}}, r"line 2: add\.size: expected int, found str '5'"),
        ({"remove": 5}, r"line 2: remove: expected object, found int 5"),
        ({"txn": {"appId": "a"}}, r"line 2: txn\.version: required int is missing"),
    ],
)
def test_errors_name_line_action_and_member(line: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedLogError, match=message):
        actions_from_json([{"commitInfo": {}}, line], "version 12")


@pytest.mark.protocol("LOG-03")
def test_a_commit_is_a_line_each() -> None:
    actions: list[Action] = [
        CommitInfo(values={"operation": "a\nb"}),
        Protocol(min_reader_version=1, min_writer_version=2),
        SetTransaction(app_id="x", version=1),
    ]
    data = encode_actions(actions)
    assert data.count(b"\n") == 3
    assert data.endswith(b"\n")
    assert actions_from_json(iter_objects(data)) == actions
