"""Which changes of metadata another commit need not mind."""

from __future__ import annotations

import pytest

from deltalog.errors import (
    MetadataChangedError,
)
from deltalog.transaction import commit
from tests.support.conflicting import (
    FEATURES,
    append,
    outcome,
    two_partitions,
)
from tests.support.logs import (
    SCHEMA,
    Json,
    metadata,
)
from tests.support.logs import (
    commit as write_commit,
)
from tests.support.transactions import NOW_MS, new_file, pending

MAPPED = SCHEMA.replace(
    '"name":"id","type":"long","nullable":true,"metadata":{}',
    '"name":"id","type":"long","nullable":true,"metadata":'
    '{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"id"}',
).replace(
    '"name":"p","type":"string","nullable":true,"metadata":{}',
    '"name":"p","type":"string","nullable":true,"metadata":'
    '{"delta.columnMapping.id":2,"delta.columnMapping.physicalName":"p"}',
)


ALL = (*FEATURES, "rowTracking", "inCommitTimestamp", "columnMapping")


ROW_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_a",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_b",
}


OWN_TIMES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.inCommitTimestampEnablementVersion": "2",
    "delta.inCommitTimestampEnablementTimestamp": str(NOW_MS + 2),
}


NAMES = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}


@pytest.mark.protocol("D-34")
@pytest.mark.parametrize(
    ("configuration", "members", "loses"),
    [
        (ROW_TRACKING, {}, False),
        (OWN_TIMES, {}, False),
        (NAMES, {"schemaString": MAPPED}, False),
        ({"delta.enableRowTracking": "false"}, {}, True),
        ({"delta.appendOnly": "true"}, {}, True),
        ({}, {"description": "changed"}, True),
        ({}, {"schemaString": SCHEMA.replace('"id"', '"id2"')}, True),
        (NAMES, {"schemaString": MAPPED.replace('"long"', '"integer"')}, True),
    ],
)
def test_metadata_that_changed(configuration: Json, members: Json, loses: bool) -> None:
    store = two_partitions(features=ALL)
    level = {"delta.isolationLevel": "Serializable"}
    winner = metadata(configuration=level | configuration, partitionColumns=["p"], **members)
    error = outcome(store, append, winner, operation="SET TBLPROPERTIES")
    assert isinstance(error, MetadataChangedError) == loses


@pytest.mark.protocol("D-34")
def test_identity_marks_alone_are_no_change_of_metadata() -> None:
    store = two_partitions()
    tx = pending(store, new_file("mine.parquet"))
    tags = {"delta.identity.schemaUpdate": "true"}
    info = {"commitInfo": {"operation": "WRITE", "tags": tags}}
    write_commit(store, 2, info, metadata(schemaString=SCHEMA.replace("{}", '{"a":1}')))
    assert commit(tx).version == 3
