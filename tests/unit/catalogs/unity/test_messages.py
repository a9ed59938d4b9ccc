"""Messages of the Delta API: what is made of answers, and what becomes of actions."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog._util.json import JsonObject
from deltalog.catalogs import TableType
from deltalog.catalogs.unity.committer import metadata_updates, own_properties, property_updates
from deltalog.catalogs.unity.messages import (
    columns_of,
    domains_to_json,
    manages_commits,
    parse_commit,
    parse_credentials,
    parse_loaded,
    parse_staging,
    protocol_to_json,
    removed_domains,
    schema_of,
    tail_of,
)
from deltalog.errors import InvalidInputError, MalformedLogError, MalformedMessageError
from deltalog.log.names import STAGED_DIRECTORY
from deltalog.protocol.actions import DomainMetadata, Metadata, Protocol
from deltalog.schema import ArrayType, Field, MapType, PrimitiveType, StructType, encode_schema

ID = "123e4567-e89b-12d3-a456-426614174000"
LONG = PrimitiveType("long")
SCHEMA = StructType(
    (
        Field("id", LONG, nullable=False, metadata={"elementType": "of the user", "comment": "c"}),
        Field("list", ArrayType(ArrayType(LONG), contains_null=False)),
        Field("map", MapType(PrimitiveType("string"), StructType((Field("x", LONG),)))),
    )
)
METADATA = Metadata(id="1", schema_string=encode_schema(SCHEMA))


def _node(values: Any) -> JsonObject:
    return JsonObject(values, "answer", MalformedMessageError)


def _commit(version: int, **more: Any) -> dict[str, Any]:
    return {
        "version": version,
        "timestamp": 7,
        "file-name": f"{version:020}.{ID}.json",
        "file-size": 10,
        "file-modification-timestamp": 8,
        **more,
    }


def _loaded(**more: Any) -> dict[str, Any]:
    metadata = {
        "etag": "e",
        "table-type": "MANAGED",
        "table-uuid": ID,
        "location": "s3://b/t",
        "created-time": 1,
        "updated-time": 1,
        "columns": columns_of(METADATA),
        "properties": {"delta.feature.catalogOwned-preview": "supported"},
    }
    return {"metadata": {**metadata, **more.pop("metadata", {})}, **more}


def test_columns_have_the_wires_names_and_users_keep_theirs() -> None:
    columns = columns_of(METADATA)
    assert columns["fields"][0]["metadata"] == {"elementType": "of the user", "comment": "c"}
    assert columns["fields"][1]["type"] == {
        "type": "array",
        "element-type": {"type": "array", "element-type": "long", "contains-null": True},
        "contains-null": False,
    }
    assert columns["fields"][2]["type"]["value-contains-null"] is True
    assert schema_of(columns) == SCHEMA


@pytest.mark.parametrize("columns", [None, {}, 7, {"type": "struct", "fields": [{"name": 1}]}])
def test_columns_that_cannot_be_read_are_unknown(columns: Any) -> None:
    assert schema_of(columns) is None


def test_columns_without_end_are_unknown() -> None:
    tree: Any = "long"
    for _ in range(5000):
        tree = {"type": "array", "element-type": tree, "contains-null": True}
    field = {"name": "a", "type": tree, "nullable": True, "metadata": {}}
    assert schema_of({"type": "struct", "fields": [field]}) is None


def test_a_table_is_loaded_with_its_commits() -> None:
    answer = _loaded(commits=[_commit(4), _commit(3)], **{"latest-table-version": 4})
    found = parse_loaded(_node(answer), ("c", "s", "t"))
    assert [commit.version for commit in found.tail.commits] == [3, 4]
    assert found.tail.last_version == 4
    [first, _] = found.tail.commits
    assert first.file.path == f"{STAGED_DIRECTORY}/{3:020}.{ID}.json"
    assert (first.file.size_bytes, first.file.modified_ms) == (10, 8)
    assert found.is_catalog_managed
    described = found.described()
    assert (described.table_type, described.table_id) == (TableType.MANAGED, ID)


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"table-uuid": "no id"}},
        {"metadata": {"table-type": "VIEW"}},
        {"metadata": {"location": None}},
        {"metadata": {"properties": [1]}},
        {"commits": {}, "metadata": {"etag": 1}},
        {"commits": 7},
        {"commits": [7]},
        {"commits": [_commit(1), _commit(3)], "latest-table-version": 3},
        {"commits": [_commit(1), _commit(1)], "latest-table-version": 1},
        {"commits": [_commit(1)], "latest-table-version": 2},
        {"commits": [_commit(1, **{"file-size": -1})]},
        {"commits": [_commit(-1)]},
        {"commits": [_commit(1, **{"file-name": "../x"})]},
        {"latest-table-version": "1"},
    ],
)
def test_damaged_answers_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises((MalformedLogError, InvalidInputError)):
        parse_loaded(_node(_loaded(**more)), ("c", "s", "t"))


def test_a_table_without_commits_yet() -> None:
    assert tail_of((), -1).last_version is None
    assert tail_of((), 0).last_version == 0


def test_both_spellings_of_commits_are_read() -> None:
    older = {key.replace("-", "_"): value for key, value in _commit(3).items()}
    assert parse_commit(_node(older)) == parse_commit(_node(_commit(3)))


def test_which_tables_a_catalog_manages() -> None:
    assert manages_commits({"delta.feature.catalogManaged": "supported"})
    assert manages_commits({"delta.feature.catalogOwned": "supported"})
    assert not manages_commits({"delta.feature.deletionVectors": "supported"})
    assert not manages_commits({"catalogManaged": "true"})


def test_credentials_become_storage_options() -> None:
    lent = {
        "prefix": "s3://b/t",
        "operation": "READ",
        "expiration-time-ms": 5,
        "config": {
            "s3.access-key-id": "a",
            "s3.endpoint": "http://elsewhere",
            "gcs.oauth-token": None,
        },
    }
    [found] = parse_credentials(_node({"storage-credentials": [lent, {**lent, "config": {}}]}))
    # What is no credential has no effect: no server names an endpoint.
    assert found.options == {"aws_access_key_id": "a"}
    assert (found.prefix, found.expires_ms) == ("s3://b/t", 5)
    assert "'a'" not in repr(found)


def test_what_a_catalog_wants_of_a_new_table() -> None:
    found = parse_staging(
        _node(
            {
                "table-id": ID,
                "table-type": "MANAGED",
                "location": "s3://b/t",
                "storage-credentials": [],
                "required-protocol": {
                    "min-reader-version": 3,
                    "min-writer-version": 7,
                    "reader-features": ["catalogManaged"],
                    "writer-features": ["catalogManaged", "inCommitTimestamp"],
                },
                "required-properties": {"a": "1", "engine": None},
                "suggested-properties": {"b": "2", "engine's": None},
            }
        )
    )
    assert found.features == ("catalogManaged", "inCommitTimestamp")
    assert (found.properties, found.suggested_properties) == ({"a": "1"}, {"b": "2"})


def test_protocols_and_domains() -> None:
    protocol = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=("deletionVectors",),
        writer_features=("deletionVectors", "clustering"),
    )
    assert protocol_to_json(protocol) == {
        "min-reader-version": 3,
        "min-writer-version": 7,
        "reader-features": ["deletionVectors"],
        "writer-features": ["deletionVectors", "clustering"],
    }
    assert protocol_to_json(Protocol(min_reader_version=1, min_writer_version=2)) == {
        "min-reader-version": 1,
        "min-writer-version": 2,
    }
    texts = {
        "delta.clustering": '{"clusteringColumns": [["a", "b"]]}',
        "delta.rowTracking": '{"rowIdHighWaterMark": 9}',
        "mine": "whatever",
    }
    domains = [DomainMetadata(domain=name, configuration=text) for name, text in texts.items()]
    domains.append(DomainMetadata(domain="delta.clustering", configuration="{}", removed=True))
    assert domains_to_json(domains) == {
        "delta.clustering": {"clusteringColumns": [["a", "b"]]},
        "delta.rowTracking": {"rowIdHighWaterMark": 9},
    }
    assert removed_domains(domains) == ["delta.clustering"]


def test_what_a_catalog_derives_is_not_sent_back() -> None:
    stored = {
        "a": "1",
        "delta.appendOnly": "true",
        "delta.feature.x": "supported",
        "delta.minReaderVersion": "3",
        "delta.lastUpdateVersion": "4",
    }
    assert own_properties(stored) == {"a": "1", "delta.appendOnly": "true"}
    assert property_updates(stored, {"a": "2", "b": "3"}) == [
        {"action": "set-properties", "updates": {"a": "2", "b": "3"}},
        {"action": "remove-properties", "removals": ["delta.appendOnly"]},
    ]
    assert property_updates(stored, stored) == []


def test_only_what_differs_is_told() -> None:
    assert metadata_updates(METADATA, METADATA) == []
    after = Metadata(
        id="1",
        schema_string=METADATA.schema_string,
        partition_columns=("id",),
        description="new",
    )
    assert metadata_updates(METADATA, after) == [
        {"action": "set-partition-columns", "partition-columns": ["id"]},
        {"action": "set-table-comment", "comment": "new"},
    ]
