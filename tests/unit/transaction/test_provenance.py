"""What a commit says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import (
    InvalidInputError,
    SchemaMismatchError,
)
from deltalog.transaction import (
    CommitProperties,
    commit,
)
from deltalog.transaction.properties import CommitOptions
from tests.support.logs import add
from tests.support.transactions import (
    actions_of,
    commit_info_of,
    new_file,
    of_kind,
    pending,
    remove_all,
    table,
    written_files,
)


@pytest.mark.protocol("PROV-01", "B-04", "LOG-03")
def test_a_commit_has_the_members_that_the_reference_writes_in_its_order() -> None:
    store = table()
    tx = pending(
        store,
        new_file("p=a b/x.parquet", partition_values={"p": "a b"}),
        parameters={"mode": "Append", "partitionBy": ["p"], "auto": False, "predicate": None},
    )
    tx.add_metrics({"numFiles": 1, "numOutputRows": "1"})
    commit(tx)
    info, added = actions_of(store, 1)
    txn_id = info["commitInfo"].pop("txnId")
    assert list(info["commitInfo"].items()) == [
        ("timestamp", info["commitInfo"]["timestamp"]),
        ("operation", "WRITE"),
        (
            "operationParameters",
            {"mode": "Append", "partitionBy": '["p"]', "auto": False, "predicate": None},
        ),
        ("readVersion", 0),
        ("isolationLevel", "Serializable"),
        ("isBlindAppend", True),
        ("operationMetrics", {"numFiles": "1", "numOutputRows": "1"}),
        ("engineInfo", "deltalog/0.2.0"),
    ]
    assert len(txn_id) == 36
    assert list(added["add"].items()) == [
        ("path", "p=a%20b/x.parquet"),
        ("partitionValues", {"p": "a b"}),
        ("size", 1),
        ("modificationTime", 1),
        ("dataChange", True),
        ("stats", '{"numRecords":1}'),
    ]


@pytest.mark.parametrize(
    ("data_change", "level"), [(True, "WriteSerializable"), (False, "SnapshotIsolation")]
)
@pytest.mark.protocol("D-35")
def test_the_isolation_level_is_told(data_change: bool, level: str) -> None:
    store = table([add("x.parquet")], configuration={"delta.isolationLevel": "WriteSerializable"})
    tx = pending(store, operation="OPTIMIZE")
    remove_all(tx, data_change=data_change)
    commit(tx)
    assert commit_info_of(store, 2)["isolationLevel"] == level


def test_custom_metadata_is_kept_and_takes_no_name_of_ours() -> None:
    store = table()
    custom = {"userMetadata": "hello", "job": "7"}
    commit(pending(store), CommitOptions(properties=CommitProperties(custom)))
    assert custom.items() <= commit_info_of(store, 1).items()
    with pytest.raises(InvalidInputError, match="txnId"):
        commit(pending(store), CommitOptions(properties=CommitProperties({"txnId": "x"})))


def test_custom_metadata_may_be_any_json() -> None:
    store = table()
    custom = {"job": 7, "nested": {"flag": True, "items": [1, None]}, "nothing": None}
    commit(pending(store), CommitOptions(properties=CommitProperties(custom)))
    info = commit_info_of(store, 1)
    assert {name: info[name] for name in custom} == custom


def test_parameters_are_added_to_those_of_the_operation_which_win() -> None:
    store = table()
    asked = {"mode": "mine", "more": {"a": 1}, "flag": True, "text": "x"}
    custom = {"operationParameters": asked, "readVersion": 15}
    tx = pending(store, parameters={"mode": "Append"})
    commit(tx, CommitOptions(properties=CommitProperties(custom)))
    info = commit_info_of(store, 1)
    parameters = {"mode": "Append", "more": '{"a":1}', "flag": "true", "text": "x"}
    assert (info["operationParameters"], info["readVersion"]) == (parameters, 15)


@pytest.mark.parametrize(
    ("custom", "message"),
    [
        ({"operationParameters": "x"}, r"\['operationParameters'\]: expected a dictionary"),
        ({"readVersion": 1.0}, "expected a whole number of 0 or more, found 1.0"),
        ({"readVersion": -1}, "found -1"),
        ({"readVersion": True}, "found True"),
        ({"userName": 1}, "expected a string, found 1"),
        ({1: "x"}, "expected strings as keys, found 1"),
        ({"a": [{"b": object()}]}, r"\['a'\]\[0\]\['b'\]: expected a JSON value"),
    ],
)
def test_custom_metadata_that_others_could_not_read_is_refused(custom: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CommitProperties(custom)


IDENTITY = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":'
    '{"delta.identity.start":1,"delta.identity.step":1,"delta.identity.allowExplicitInsert":'
    "false}}]}"
)


def test_identity_marks_are_remembered_and_said_to_be_all_that_changed() -> None:
    store = table(features=("identityColumns",), schemaString=IDENTITY)
    tx = pending(store)
    tx.add_files(written_files(tx, identity_marks={"id": 9}))
    committed = commit(tx)
    [metadata] = of_kind(store, 1, "metaData")
    assert '"delta.identity.highWaterMark":9' in metadata["schemaString"]
    info = commit_info_of(store, 1)
    assert info["tags"] == {"delta.identity.schemaUpdate": "true"}
    assert info["isBlindAppend"] is True
    assert committed.snapshot.metadata.schema_string == metadata["schemaString"]
    # Values that were given before the mark moved may be there already.
    stale = written_files(tx, schema_string=IDENTITY, identity_marks={"id": 12})
    with pytest.raises(SchemaMismatchError):
        pending(store).add_files(stale)
