"""The messages of Delta Sharing: the specification's examples, and what is no message."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from deltalog.errors import InvalidInputError, MalformedMessageError
from deltalog.sharing.wire.capabilities import Capabilities, encode_capabilities, parse_capabilities
from deltalog.sharing.wire.codec import Codec, encode_timestamp, parse_timestamp
from deltalog.sharing.wire.errors import ErrorBody, encode_error, parse_error
from deltalog.sharing.wire.lines import (
    DeltaFileLine,
    DeltaMetadata,
    DeltaProtocol,
    EndStreamAction,
    Line,
    ParquetFileLine,
    ParquetMetadata,
    ParquetProtocol,
    QueryStatus,
    encode_line,
    parse_line,
)
from deltalog.sharing.wire.listing import (
    SCHEMA,
    SHARE,
    TABLE,
    ListingPage,
    Schema,
    Share,
    Table,
    encode_page,
    encode_share,
    parse_page,
    parse_share,
)
from deltalog.sharing.wire.profile import BearerToken, PrivateKeyJwt, encode_profile, parse_profile
from deltalog.sharing.wire.requests import (
    ChangesQuery,
    TableQuery,
    encode_changes_query,
    encode_table_query,
    parse_changes_query,
    parse_table_query,
)

TABLE_SCHEMA = (
    '{"type":"struct","fields":[{"name":"eventTime","type":"timestamp","nullable":true,'
    '"metadata":{}},{"name":"date","type":"date","nullable":true,"metadata":{}}]}'
)
STATS = '{"numRecords":1,"minValues":{"a":123},"maxValues":{"a":123},"nullCount":{"a":0}}'
PROFILE = {
    "shareCredentialsVersion": 1,
    "endpoint": "https://sharing.delta.io/delta-sharing/",
    "bearerToken": "<token>",
    "expirationTime": "2021-11-12T00:12:29.0Z",
}

# Each line of the specification's examples with what it means; all are written back as they came.
GOLDEN: list[tuple[dict[str, Any], Line]] = [
    ({"protocol": {"minReaderVersion": 1}}, ParquetProtocol()),
    (
        {
            "metaData": {
                "id": "f8d5c169-3d01-4ca3-ad9e-7dc3355aedb2",
                "format": {"provider": "parquet"},
                "schemaString": TABLE_SCHEMA,
                "partitionColumns": ["date"],
                "configuration": {"enableChangeDataFeed": "true"},
                "size": 123456,
                "numFiles": 5,
            }
        },
        ParquetMetadata(
            id="f8d5c169-3d01-4ca3-ad9e-7dc3355aedb2",
            schema_string=TABLE_SCHEMA,
            partition_columns=("date",),
            configuration={"enableChangeDataFeed": "true"},
            size_bytes=123456,
            num_files=5,
        ),
    ),
    (
        {
            "file": {
                "url": "https://bucket.s3.us-west-2.amazonaws.com/t/date%3D2021-04-28/p.parquet?X=1",
                "id": "591723a8-6a27-4240-a90e-57426f4736d2",
                "partitionValues": {"date": "2021-04-28"},
                "size": 573,
                "stats": STATS,
                "expirationTimestamp": 1652140800000,
            }
        },
        ParquetFileLine(
            kind="file",
            url="https://bucket.s3.us-west-2.amazonaws.com/t/date%3D2021-04-28/p.parquet?X=1",
            id="591723a8-6a27-4240-a90e-57426f4736d2",
            size_bytes=573,
            partition_values={"date": "2021-04-28"},
            stats=STATS,
            expiration_timestamp_ms=1652140800000,
        ),
    ),
    *(
        (
            {
                kind: {
                    "url": "https://x/",
                    "id": "i",
                    "partitionValues": {},
                    "size": 689,
                    "version": 1,
                    "timestamp": 1652141000000,
                    "expirationTimestamp": 1652144400000,
                }
            },
            ParquetFileLine(
                kind=kind,
                url="https://x/",
                id="i",
                size_bytes=689,
                version=1,
                timestamp_ms=1652141000000,
                expiration_timestamp_ms=1652144400000,
            ),
        )
        for kind in ("add", "cdf", "remove")
    ),
    (
        {"endStreamAction": {"nextPageToken": "n", "minUrlExpirationTimestamp": 5}},
        EndStreamAction(next_page_token="n", min_url_expiration_timestamp_ms=5),  # noqa: S106
    ),
    ({"queryStatus": {"queryId": "q", "status": "pending"}}, QueryStatus(query_id="q")),
]


@pytest.mark.protocol("SHARE-META-03", "SHARE-META-05", "SHARE-QT-16", "SHARE-QT-18", "SHARE-ST-01")
@pytest.mark.parametrize(("wire", "meaning"), GOLDEN, ids=lambda value: type(value).__name__)
def test_lines_of_the_specification(wire: dict[str, Any], meaning: Line) -> None:
    assert parse_line(orjson.dumps(wire)) == meaning
    assert encode_line(meaning) == orjson.dumps(wire) + b"\n"


@pytest.mark.protocol("SHARE-DLT-01", "SHARE-DLT-02", "SHARE-DLT-03")
def test_lines_of_the_format_delta() -> None:
    protocol = parse_line(
        b'{"protocol":{"deltaProtocol":{"minReaderVersion":3,"minWriterVersion":7,'
        b'"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}}}'
    )
    assert isinstance(protocol, DeltaProtocol)
    assert protocol.protocol.reader_features == ("deletionVectors",)
    metadata = parse_line(
        orjson.dumps(
            {
                "metaData": {
                    "version": 20,
                    "size": 123456,
                    "numFiles": 5,
                    "deltaMetadata": {
                        "partitionColumns": ["date"],
                        "format": {"provider": "parquet"},
                        "schemaString": TABLE_SCHEMA,
                        "id": "f8d5c169-3d01-4ca3-ad9e-7dc3355aedb2",
                        "configuration": {"enableChangeDataFeed": "true"},
                    },
                }
            }
        )
    )
    assert isinstance(metadata, DeltaMetadata)
    assert (metadata.version, metadata.num_files) == (20, 5)
    assert metadata.metadata.partition_columns == ("date",)
    file = parse_line(
        b'{"file":{"id":"i","size":573,"expirationTimestamp":"1652140800000",'
        b'"deltaSingleAction":{"add":{"path":"https://x/?s=1","partitionValues":{}}}}}'
    )
    assert isinstance(file, DeltaFileLine)
    assert (file.kind, file.values["path"]) == ("add", "https://x/?s=1")
    assert file.expiration_timestamp_ms == 1652140800000
    for line in (protocol, metadata, file):
        assert parse_line(encode_line(line)) == line


@pytest.mark.protocol("SHARE-QT-02", "SHARE-QT-22")
@pytest.mark.parametrize(
    "text",
    [
        b'{"file":{"url":"https://x/","id":"i","si',
        b'{"protocol":{"minReaderVersion":1},"metaData":{}}',
        b"{}",
        b"[1]",
        b"",
        b'{"file":{"id":"i","size":1,"partitionValues":{}}}',
        b'{"protocol":{}}',
        b'{"file":{"id":"i","deltaSingleAction":{"commitInfo":{}}}}',
        b'{"file":{"url":"u","id":"i","size":"x3"}}',
    ],
)
def test_what_is_no_line(text: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        parse_line(text)


@pytest.mark.protocol("SHARE-META-04")
def test_unknown_lines_and_members_are_ignored() -> None:
    assert parse_line(b'{"later":{"a":1}}') is None
    assert parse_line(b'{"protocol":{"minReaderVersion":1,"later":[]}}') == ParquetProtocol()


@pytest.mark.protocol("SHARE-QT-20")
def test_numbers_may_be_texts() -> None:
    found = parse_line(b'{"file":{"url":"u","id":"i","size":"7","partitionValues":{}}}')
    assert isinstance(found, ParquetFileLine)
    assert found.size_bytes == 7
    assert parse_table_query(b'{"version":"3"}').version == 3
    for text in (b'{"version":"x3"}', b'{"version":"-1"}', b'{"version":1.5}', b'{"version":true}'):
        with pytest.raises(MalformedMessageError):
            parse_table_query(text)


@pytest.mark.protocol("SHARE-LS-01", "SHARE-LS-03", "SHARE-LS-04", "SHARE-LS-T")
def test_pages_are_read_and_written() -> None:
    share = Share(
        name="vaccine_share",
        id="edacc4a7-6600-4fbb-85f3-a62a5ce6761f",
        display_name="Vaccines",
        properties={"a": "b"},
    )
    table = Table(name="t", schema="s", share="vaccine_share", share_id="x", access_modes=("url",))
    pages: list[tuple[ListingPage[Any], Codec[Any]]] = [
        (ListingPage(items=(share,), next_page_token="n"), SHARE),  # noqa: S106
        (ListingPage(items=(Schema(name="s", share="x"),)), SCHEMA),
        (ListingPage(items=(table,)), TABLE),
    ]
    for page, codec in pages:
        assert parse_page(encode_page(page), codec) == page
    assert parse_share(encode_share(share)) == share


@pytest.mark.protocol("SHARE-PG-02")
@pytest.mark.parametrize("body", [b"{}", b'{"items":[],"nextPageToken":""}', b'{"items":null}'])
def test_a_listing_ends(body: bytes) -> None:
    assert parse_page(body, SHARE) == ListingPage()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items":{}}', b'{"items":[1]}', b'{"items":[{}]}'])
def test_what_is_no_page(body: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        parse_page(body, SHARE)


@pytest.mark.protocol("SHARE-CAP-01", "SHARE-CAP-02")
def test_capabilities_in_any_case() -> None:
    found = parse_capabilities(
        " ResponseFormat = DELTA , parquet ; readerFeatures=DeletionVectors,columnMapping;"
        "includeEndStreamAction=TRUE;later=1;asyncquery=true;;="
    )
    assert found == Capabilities(
        response_formats=("delta", "parquet"),
        reader_features=frozenset({"deletionvectors", "columnmapping"}),
        include_end_stream_action=True,
        asynchronous=True,
    )
    assert parse_capabilities(encode_capabilities(found)) == found
    for header in (None, "", "readerfeatures=x"):
        assert parse_capabilities(header).formats == ("parquet",)


@pytest.mark.protocol("SHARE-TS-01")
def test_times() -> None:
    assert parse_timestamp("2022-01-01T00:00:00Z") == 1640995200000
    assert parse_timestamp("2022-01-01T00:00:00.123Z") == 1640995200123
    assert parse_timestamp("2022-01-01T01:00:00+01:00") == 1640995200000
    assert encode_timestamp(1640995200000) == "2022-01-01T00:00:00Z"
    assert encode_timestamp(1640995200123) == "2022-01-01T00:00:00.123Z"
    for text in ("2022-01-01 00:00:00", "2022-01-01", "abc", "", "9999999-01-01T00:00:00Z"):
        with pytest.raises(MalformedMessageError):
            parse_timestamp(text)


@pytest.mark.protocol("SHARE-QT-01", "B-99")
def test_queries_are_read_and_written() -> None:
    query = TableQuery(
        predicate_hints=("date >= '2021-01-01'",),
        json_predicate_hints="{}",
        limit_hint=1000,
        version=123,
        max_files=5,
        page_token="p",  # noqa: S106
        include_refresh_token=True,
    )
    assert parse_table_query(encode_table_query(query)) == query
    assert encode_table_query(TableQuery()) == b"{}"
    assert parse_table_query(b"") == parse_table_query(b' {"foo": 1} ') == TableQuery()
    assert parse_table_query(b'{"predicateHints":"a = 1"}').predicate_hints == ("a = 1",)
    for text in (b"[1]", b"{", b'{"limitHint":-1}', b'{"predicateHints":[1]}', b'{"timestamp":1}'):
        with pytest.raises(MalformedMessageError):
            parse_table_query(text)


def test_changes_are_asked_by_parameters() -> None:
    query = ChangesQuery(
        starting_version=1, ending_timestamp_ms=1640995200000, include_historical_metadata=True
    )
    assert parse_changes_query(encode_changes_query(query)) == query
    with pytest.raises(MalformedMessageError):
        parse_changes_query({"includeHistoricalMetadata": "yes"})


@pytest.mark.protocol("SHARE-PRO-01", "SHARE-PRO-03", "SHARE-PRO-05")
def test_a_profile_of_version_1() -> None:
    profile = parse_profile(orjson.dumps(PROFILE))
    assert profile.endpoint == "https://sharing.delta.io/delta-sharing"
    assert profile.credentials == BearerToken(token="<token>")  # noqa: S106
    assert profile.expiration_ms == 1636675949000
    assert "<token>" not in repr(profile)
    assert parse_profile(encode_profile(profile)) == profile
    bare = {key: value for key, value in PROFILE.items() if key != "expirationTime"}
    assert parse_profile(orjson.dumps(bare)).expiration_ms is None


@pytest.mark.protocol("SHARE-PRO-02", "SHARE-PRO-04")
def test_profiles_of_version_2() -> None:
    start = {"shareCredentialsVersion": 2, "endpoint": "https://x"}
    bodies: list[dict[str, Any]] = [
        {"type": "bearer_token", "bearerToken": "t"},
        {"type": "basic", "username": "u", "password": "secret"},
        {
            "type": "oauth_client_credentials",
            "tokenEndpoint": "https://y/",
            "clientId": "c",
            "clientSecret": "secret",
            "scope": "s",
        },
        {
            "type": "oauth_jwt_bearer_private_key_jwt",
            "auth": {
                "tokenEndpoint": "https://y",
                "issuer": "i",
                "clientId": "c",
                "audience": "a",
                "privateKey": {"privateKeyFile": "/k.pem", "keyId": "k", "algorithm": "ES256"},
            },
        },
    ]
    for body in bodies:
        profile = parse_profile(orjson.dumps({**start, **body}))
        assert "secret" not in repr(profile)
        assert parse_profile(encode_profile(profile)) == profile
    assert isinstance(profile.credentials, PrivateKeyJwt)
    for wrong in ({"type": "later"}, {"shareCredentialsVersion": 999}):
        with pytest.raises(InvalidInputError, match="upgrade"):
            parse_profile(orjson.dumps({**start, **wrong}))


@pytest.mark.protocol("SHARE-GEN-04")
def test_errors_are_read_and_written() -> None:
    error = ErrorBody(error_code="RESOURCE_DOES_NOT_EXIST", message="no")
    assert parse_error(encode_error(error)) == error
    for body in (b"<html>", b"", b"[]", b"{}", b'{"errorCode":1}'):
        assert parse_error(body) is None
