"""Lines of both formats as actions of a log."""

from __future__ import annotations

import datetime as dt

import pytest

from deltalog.actions.codec import deletion_vector_to_json
from deltalog.deletion_vectors import DeletionBitmap, inline_descriptor
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
