"""The lines of a response: the specification's examples, and what is no line."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from deltalog.errors import MalformedMessageError
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
    encode_file_line,
    encode_line,
    parse_line,
)

TABLE_SCHEMA = (
    '{"type":"struct","fields":[{"name":"eventTime","type":"timestamp","nullable":true,'
    '"metadata":{}},{"name":"date","type":"date","nullable":true,"metadata":{}}]}'
)


STATS = '{"numRecords":1,"minValues":{"a":123},"maxValues":{"a":123},"nullCount":{"a":0}}'


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


@pytest.mark.parametrize("kind", ["file", "add", "cdf", "remove"])
@pytest.mark.parametrize("is_delta", [False, True])
def test_lines_that_are_made_of_columns_have_the_members_of_the_messages(
    kind: str, *, is_delta: bool
) -> None:
    values: dict[str, Any] = {"partitionValues": {"p": "1"}, "size": 5}
    if not is_delta:
        values["stats"] = "{}"
    line = encode_file_line(
        kind,
        is_delta=is_delta,
        file_id="a",
        url="https://files/1",
        values=values,
        change={"version": 3, "timestamp": 4},
        expires_ms=9,
        vector_id="v" if is_delta else None,
    )
    message = parse_line(line)
    assert isinstance(message, DeltaFileLine if is_delta else ParquetFileLine)
    assert orjson.loads(encode_line(message)) == orjson.loads(line)
