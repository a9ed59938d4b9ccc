"""Existing files, as lines of a commit."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.transaction import (
    commit,
)
from tests.support.logs import add, vector
from tests.support.transactions import (
    commit_info_of,
    of_kind,
    pending,
    remove_all,
    table,
)

DV_FEATURES = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
}


@pytest.mark.protocol("REM-01", "REM-02", "ROWID-16", "LOG-04")
def test_a_remove_says_what_the_add_said() -> None:
    members = {
        "partitionValues": {"p": None},
        "tags": {"a": "b"},
        "deletionVector": vector("ab^-aqEH.-t@S}K{vb[*k^"),
        "baseRowId": 3,
        "defaultRowCommitVersion": 1,
        "stats": '{"numRecords":7}',
    }
    store = table([DV_FEATURES, add("a%20b.parquet", **members)])
    tx = pending(store, operation="DELETE")
    remove_all(tx)
    committed = commit(tx)
    [removed] = of_kind(store, 2, "remove")
    assert removed == {
        "path": "a%20b.parquet",
        "deletionTimestamp": commit_info_of(store, 2)["timestamp"],
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"p": None},
        "size": 1,
        "tags": {"a": "b"},
        "deletionVector": members["deletionVector"],
        "baseRowId": 3,
        "defaultRowCommitVersion": 1,
    }
    assert committed.snapshot.files().num_rows == 0
    assert load_snapshot(utc_context(store)).tombstones(["path"]).num_rows == 1


def test_an_existing_file_is_added_again_with_all_it_has() -> None:
    store = table([DV_FEATURES, add("a%20b.parquet", tags={"k": "v"}, stats='{"numRecords":2}')])
    tx = pending(store, operation="DELETE")
    assert tx.snapshot is not None
    files = tx.snapshot.files()
    dv = vector("ab^-aqEH.-t@S}K{vb[*k^")
    with_vector = files.set_column(
        FILE_SCHEMA.get_field_index("deletionVector"),
        FILE_SCHEMA.field("deletionVector"),
        pa.array([dv], FILE_SCHEMA.field("deletionVector").type),
    )
    tx.remove_files(files, data_change=True)
    tx.add_again(with_vector)
    commit(tx)
    [added] = of_kind(store, 2, "add")
    assert added == {
        "path": "a%20b.parquet",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
        "stats": '{"numRecords":2}',
        "tags": {"k": "v"},
        "deletionVector": dv,
    }
    assert commit_info_of(store, 2)["isBlindAppend"] is False
