"""Commits of a journal: made again as they were, or refused if they are not the table's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog._util.json import dumps, loads
from deltalog.errors import (
    DataFileMissingError,
    DeletionVectorError,
    DeltaProtocolError,
    MalformedLogError,
    UnsafePathError,
)
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.transaction import AppTransaction, PendingTransaction, commit
from deltalog.transaction.commit import commit_loop
from deltalog.transaction.journal import APP_VERSION, PreparedCommit, pending_again
from tests.support.facade import FEED, NO_VECTORS, VECTORS, actions, rows
from tests.support.logs import DictStore

APP = "deltalog-transaction-x"
ROW_TRACKING = {"delta.enableRowTracking": "true"}
DATA = [{"id": number, "v": number} for number in range(4)]
Operation = Callable[[Any], object]
Change = Callable[[list[dict[str, Any]]], object]


def prepared(store: DictStore, *operations: Operation) -> PreparedCommit:
    """What a transaction would journal, whose run ends before the commit."""
    table = DeltaTable(store)
    tx = table.transaction()
    tx._begin()
    for operation in operations:
        operation(tx)
    pending = tx._take()
    pending.set_app_transaction(AppTransaction(APP, APP_VERSION))
    made = commit_loop(pending).prepare()
    assert made is not None
    return PreparedCommit(
        name=("s", "t"), table_id=table.metadata().id, base_version=0, data=made.data
    )


def again(store: DictStore, what: PreparedCommit) -> PendingTransaction:
    context = utc_context(store)
    return pending_again(what, load_snapshot(context, version=what.base_version), APP)


OPERATIONS: dict[str, Operation] = {
    "append": lambda tx: tx.append([{"id": 9, "v": 9}]),
    "new column": lambda tx: tx.append([{"id": 9, "w": 9}], schema_mode="merge"),
    "delete some": lambda tx: tx.delete("id = 1"),
    "delete all": lambda tx: tx.delete(),
    "update": lambda tx: tx.update({"v": "v + 1"}, predicate="id > 1"),
    "overwrite": lambda tx: tx.overwrite([{"id": 9, "v": 9}]),
    "upsert": lambda tx: tx.upsert([{"id": 3, "v": 30}, {"id": 9, "v": 9}], "id"),
    "mark": lambda tx: tx.set_app_transaction("mine", 7),
}


@pytest.mark.parametrize("configuration", [NO_VECTORS, VECTORS, FEED, ROW_TRACKING], ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_commit_made_again_is_the_commit(name: str, configuration: dict[str, str]) -> None:
    """Compared with the same transaction that commits itself, in a copy of the table."""
    store = DictStore()
    write_deltalake(store, DATA, configuration=configuration)
    straight = DictStore(files=dict(store.files))
    commit(again(store, prepared(store, OPERATIONS[name])))
    with DeltaTable(straight).transaction() as tx:
        OPERATIONS[name](tx)
        tx.set_app_transaction(APP, APP_VERSION)
    recovered, expected = DeltaTable(store), DeltaTable(straight)
    assert rows(recovered) == rows(expected)
    assert recovered.schema() == expected.schema()
    assert kinds(recovered) == kinds(expected)
    if configuration is FEED and name != "mark":
        assert feed(recovered) == feed(expected)
    infos = [table.history()[0] for table in (recovered, expected)]
    for member in ("operation", "operationParameters", "isBlindAppend", "readVersion", "tags"):
        assert infos[0].get(member) == infos[1].get(member), member
    assert infos[0]["operationMetrics"].keys() == infos[1]["operationMetrics"].keys()


def kinds(table: DeltaTable) -> list[Any]:
    """The actions of the last version, without what differs from run to run."""
    return sorted(
        (kind, action[kind].get("dataChange"), action[kind].get("baseRowId"))
        for action in actions(table)
        for kind in action
    )


def feed(table: DeltaTable) -> list[Any]:
    found = table.load_cdf(starting_version=1).to_table()
    return sorted(found.select(["id", "v", "_change_type"]).to_pylist(), key=str)


def edited(what: PreparedCommit, change: Change) -> PreparedCommit:
    lines = [loads(line) for line in what.data.splitlines()]
    change(lines)
    return replace(what, data=b"\n".join(map(dumps, lines)))


def of_kind(lines: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(line[kind] for line in lines if kind in line)
    return found


@pytest.mark.parametrize("path", ["../../other/x.parquet", "/etc/passwd", "s3://b/x", "a/%2e%2e/x"])
def test_a_file_elsewhere_is_refused(path: str) -> None:
    store = DictStore()
    write_deltalake(store, DATA)
    what = prepared(store, OPERATIONS["append"])
    hostile = edited(what, lambda lines: of_kind(lines, "add").update(path=path))
    with pytest.raises(UnsafePathError, match="is refused"):
        again(store, hostile)


REFUSED: dict[str, tuple[str, Change, str]] = {
    "a file of the log": (
        "append",
        lambda lines: of_kind(lines, "add").update(path="_delta_log/00000000000000000000.json"),
        "the path is in _delta_log",
    ),
    "a file of another size": (
        "append",
        lambda lines: of_kind(lines, "add").update(size=1),
        "expected 1 bytes, found",
    ),
    "a file that is not there": (
        "append",
        lambda lines: of_kind(lines, "add").update(path="gone.parquet"),
        "the file no longer exists",
    ),
    "a removal of no live file": (
        "update",
        lambda lines: of_kind(lines, "remove").update(path="x.parquet"),
        "removes 1 file, but version 0 has only 0 of them",
    ),
    "another application": (
        "append",
        lambda lines: of_kind(lines, "txn").update(appId="other"),
        "it does not record the application deltalog-transaction-x",
    ),
    "a backfill": (
        "append",
        lambda lines: of_kind(lines, "commitInfo").update(operation="ROW TRACKING BACKFILL"),
        "contain the operation ROW TRACKING BACKFILL",
    ),
    "another id": (
        "new column",
        lambda lines: of_kind(lines, "metaData").update(id="another"),
        "it would change the table's id",
    ),
    "no path": ("append", lambda lines: of_kind(lines, "add").pop("path"), "path"),
}


def test_metrics_that_are_no_numbers_stay_texts() -> None:
    store = DictStore()
    write_deltalake(store, DATA)
    what = prepared(store, OPERATIONS["append"])
    metrics = {"long": "9" * 5000, "word": "x", "none": None, "count": "12"}
    odd = edited(what, lambda lines: of_kind(lines, "commitInfo").update(operationMetrics=metrics))
    assert again(store, odd).metrics == {
        "long": "9" * 5000, "word": "x", "none": "None", "count": 12,
    }  # fmt: skip


@pytest.mark.parametrize("data", [b"", b"{", b"[]\n", b'{"add":1}\n', b"\xed\xa0\x80", b"\xff"])
def test_what_is_no_commit_is_refused(data: bytes) -> None:
    store = DictStore()
    write_deltalake(store, DATA)
    what = replace(prepared(store, OPERATIONS["append"]), data=data)
    with pytest.raises(MalformedLogError):
        again(store, what)


@pytest.mark.parametrize("what", REFUSED)
def test_a_damaged_commit_is_refused(what: str) -> None:
    operation, change, message = REFUSED[what]
    store = DictStore()
    write_deltalake(store, DATA, configuration=NO_VECTORS)
    found = edited(prepared(store, OPERATIONS[operation]), change)
    with pytest.raises(DeltaProtocolError, match=message):
        again(store, found)


def test_the_commit_of_another_table_is_refused() -> None:
    store = DictStore()
    write_deltalake(store, DATA)
    what = replace(prepared(store, OPERATIONS["append"]), table_id="another")
    with pytest.raises(MalformedLogError, match="it was prepared for the table with id 'another'"):
        again(store, what)


def test_a_damaged_vector_is_refused() -> None:
    store = DictStore()
    write_deltalake(store, DATA, configuration=VECTORS)
    what = prepared(store, OPERATIONS["delete some"])
    broken = edited(
        what, lambda lines: of_kind(lines, "add")["deletionVector"].update(cardinality=3)
    )
    with pytest.raises(DeletionVectorError):
        again(store, broken)


def test_a_vector_of_another_file_is_refused() -> None:
    """It marks a row that the file does not have."""
    store = DictStore()
    write_deltalake(store, DATA, configuration=VECTORS)
    what = prepared(store, OPERATIONS["delete some"])
    # Row 28168.
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg2YoRx",
        "sizeInBytes": 34,
        "cardinality": 1,
    }

    def exchange(lines: list[dict[str, Any]]) -> None:
        of_kind(lines, "add")["deletionVector"] = vector

    with pytest.raises(DeletionVectorError, match="found row 28168"):
        again(store, edited(what, exchange))


@pytest.mark.parametrize("place", ["/etc/vector", "file:///x", "s3://b/x"])
def test_a_vector_elsewhere_is_refused(place: str) -> None:
    store = DictStore()
    write_deltalake(store, DATA, configuration=VECTORS)
    what = prepared(store, OPERATIONS["delete some"])
    vector = {"storageType": "p", "pathOrInlineDv": place}
    broken = edited(what, lambda lines: of_kind(lines, "add")["deletionVector"].update(vector))
    with pytest.raises(UnsafePathError, match="is refused"):
        again(store, broken)


def test_a_vacuumed_file_is_not_committed() -> None:
    store = DictStore()
    write_deltalake(store, DATA)
    before = set(store.files)
    what = prepared(store, OPERATIONS["append"])
    store.delete_many([path for path in store.files if path not in before])
    with pytest.raises(DataFileMissingError, match="vacuum"):
        again(store, what)
