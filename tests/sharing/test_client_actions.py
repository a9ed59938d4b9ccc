"""Lines of both formats as actions of a log."""

from __future__ import annotations

import datetime as dt

import orjson
import pytest

from deltalog.protocol.actions.codec import deletion_vector_to_json
from deltalog.protocol.actions.model import Metadata, Protocol
from deltalog.protocol.deletion_vectors import DeletionBitmap, inline_descriptor
from deltalog.protocol.features import supported_features
from deltalog.sharing.client.answers import (
    ActionCollector,
    commit_bytes,
    table_metadata,
    table_protocol,
)
from deltalog.sharing.wire.lines import (
    DeltaFileLine,
    DeltaProtocol,
    ParquetFileLine,
    ParquetMetadata,
    ParquetProtocol,
)
from tests.support.shared_files import (
    PROTOCOL,
    delta_file,
    delta_metadata,
    delta_protocol,
    file_line,
    metadata,
    open_shared,
    parquet,
    stats,
)
from tests.support.sharing_server import ScriptedServer


@pytest.mark.protocol("SHARE-DLT-01", "SHARE-DLT-02", "SHARE-DLT-03")
def test_the_specifications_delta_format_is_read(scripted: ScriptedServer) -> None:
    """Its example names no feature lists, and its file has nothing but what is needed."""
    protocol = {"protocol": {"deltaProtocol": {"minReaderVersion": 3, "minWriterVersion": 7}}}
    meta = delta_metadata(columns={"id": "long", "date": "date"}, enableChangeDataFeed="true")
    meta["metaData"] |= {"version": 20, "size": 123456, "numFiles": 5}
    meta["metaData"]["deltaMetadata"]["partitionColumns"] = ["date"]
    line = delta_file(scripted, "591723a8-6a27-4240-a90e-57426f4736d2", parquet(id=[5]))
    line["file"] |= {"size": 573, "expirationTimestamp": 32503680000000}
    add = line["file"]["deltaSingleAction"]["add"]
    for name in ("size", "modificationTime", "dataChange"):
        del add[name]
    add |= {"partitionValues": {"date": "2021-04-28"}, "stats": stats(1, id=(5, 5))}
    table = open_shared(scripted, protocol, meta, line, version=20)
    assert table.to_pyarrow_table().to_pylist() == [{"id": 5, "date": dt.date(2021, 4, 28)}]
    assert table.version() == 20


@pytest.mark.protocol("SHARE-DLT-04", "SHARE-DLT-05", "SHARE-QT-08")
def test_inline_deletion_vectors_are_applied(scripted: ScriptedServer) -> None:
    vector = deletion_vector_to_json(inline_descriptor(DeletionBitmap([0, 2])))
    line = delta_file(
        scripted, "f", parquet(id=[1, 2, 3]), deletionVector=vector, stats=stats(3, id=(1, 3))
    )
    table = open_shared(
        scripted, delta_protocol("deletionVectors"), delta_metadata(columns={"id": "long"}), line
    )
    assert table.count() == 1
    assert table.to_pyarrow_table()["id"].to_pylist() == [2]


def test_a_catalogs_table_is_read_as_the_server_tells_it(scripted: ScriptedServer) -> None:
    line = delta_file(scripted, "f", parquet(id=[1]))
    protocol = delta_protocol("catalogManaged", "deletionVectors")
    table = open_shared(scripted, protocol, delta_metadata(columns={"id": "long"}), line)
    assert table.to_pyarrow_table().num_rows == 1


def test_ids_may_be_anything(scripted: ScriptedServer) -> None:
    line = file_line(scripted, "f", parquet(id=[1]))
    for odd in ("a/b", "a b%20c", "é#?", "x=1&y", "C:\\x"):
        line["file"]["id"] = odd
        table = open_shared(scripted, PROTOCOL, metadata(columns={"id": "long"}), line)
        assert table.to_pyarrow_table().num_rows == 1


ID, SCHEMA = "591723a8", '{"type":"struct","fields":[]}'


def test_files_become_actions_with_urls_beside_them() -> None:
    collector = ActionCollector()
    later = ParquetMetadata(id="t", schema_string=SCHEMA, version=2)
    for line in (
        ParquetFileLine(
            kind="cdf",
            url="https://x/1?sig=a",
            id=ID,
            size_bytes=5,
            partition_values={"p": None},
            version=1,
            timestamp_ms=1652140000000,
            expiration_timestamp_ms=900,
        ),
        later,
        DeltaFileLine(
            id="a b",
            action={
                "remove": {
                    "path": "https://x/2",
                    "deletionVector": {"storageType": "p", "pathOrInlineDv": "https://x/dv"},
                }
            },
            deletion_vector_file_id="d/v",
            expiration_timestamp_ms=800,
        ),
    ):
        collector.take(line)
    found = {version: list(map(orjson.loads, some)) for version, some in collector.lines.items()}
    assert found == {
        1: [
            {
                "cdc": {
                    "path": f"files/{ID}",
                    "partitionValues": {"p": None},
                    "size": 5,
                    "modificationTime": 1652140000000,
                    "dataChange": True,
                    "stats": None,
                }
            }
        ],
        None: [
            {
                "remove": {
                    "path": "files/a%2520b",
                    "modificationTime": 0,
                    "dataChange": True,
                    "deletionVector": {"storageType": "p", "pathOrInlineDv": "vectors/d%252Fv"},
                }
            }
        ],
    }
    assert collector.urls == {
        f"files/{ID}": "https://x/1?sig=a",
        "files/a%20b": "https://x/2",
        "vectors/d%2Fv": "https://x/dv",
    }
    assert collector.times_ms == {1: 1652140000000}
    assert collector.expires_ms == 800
    assert collector.later == [later]


def test_the_format_parquet_lacks_a_prefix_and_a_protocol() -> None:
    line = ParquetMetadata(
        id="t", schema_string=SCHEMA, configuration={"enableChangeDataFeed": "true", "x": "y"}
    )
    metadata = table_metadata(line)
    assert metadata.configuration == {"delta.enableChangeDataFeed": "true", "x": "y"}
    protocol = table_protocol(ParquetProtocol(), metadata)
    assert protocol.min_reader_version == 1
    assert "changeDataFeed" in supported_features(protocol)
    bare = table_metadata(ParquetMetadata(id="t", schema_string=SCHEMA), has_changes=True)
    assert bare.configuration == {"delta.enableChangeDataFeed": "true"}


def test_the_feed_is_a_feature_where_it_is_on() -> None:
    features = ("catalogManaged", "deletionVectors")
    line = DeltaProtocol(
        protocol=Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=features,
            writer_features=features,
        )
    )
    on = Metadata(
        id="t", schema_string=SCHEMA, configuration={"delta.enableChangeDataFeed": "true"}
    )
    protocol = table_protocol(line, on)
    assert protocol.reader_features == ("deletionVectors",)
    assert set(protocol.writer_features or ()) == {"deletionVectors", "changeDataFeed"}


def test_a_commit_starts_with_its_time() -> None:
    data = commit_bytes([b'{"add":{}}\n'], time_ms=5)
    info = b'{"commitInfo":{"inCommitTimestamp":5,"timestamp":5}}\n'
    assert data == info + b'{"add":{}}\n'
    assert commit_bytes([]) == b""
