"""Commits whose bytes are no actions: nothing is read or committed on top of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import MalformedLogError
from deltalog.log.names import commit_path
from deltalog.schema import Field, PrimitiveType
from tests.support.logs import DictStore

FEED = {"delta.enableChangeDataFeed": "true"}
COMMIT_INFO = b'{"commitInfo":{"operation":"WRITE"}}\n'
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda data: b"\0" * len(data),
    "binary": lambda _: b"\x00\xff" * 50,
    "null": lambda _: b"null",
    "list": lambda _: b"[]",
    "no JSON": lambda _: b"{oops}",
    "no JSON, closed": lambda _: COMMIT_INFO + b'{"oops":1\n',
    "truncated": lambda _: COMMIT_INFO + b'{"add":{"path":"x',
    "text after a line": lambda _: COMMIT_INFO + b"oops\n" + COMMIT_INFO,
    "zeros within a line": lambda data: b'{"add":{"path":"' + b"\0" * len(data) + b'"}}\n',
}
NEW_ROW = {"id": [-5]}


def table_of(store: DictStore) -> DeltaTable:
    """Return the table at version 0; version 1 adds a constraint."""
    write_deltalake(store, {"id": [1]}, configuration=FEED)
    old = DeltaTable(store)
    DeltaTable(store).alter.add_constraint({"p": "id > 0"})
    for path in [path for path in store.files if path.endswith(".crc")]:
        del store.files[path]
    return old


def add_column(table: DeltaTable) -> None:
    table.alter.add_columns(Field("b", PrimitiveType("string"), True))


ENTRIES: dict[str, Callable[[DictStore, DeltaTable], Any]] = {
    "open": lambda store, _: DeltaTable(store),
    "append": lambda store, _: write_deltalake(store, NEW_ROW, mode="append"),
    "append by an older handle": lambda _, old: write_deltalake(old, NEW_ROW, mode="append"),
    "insert": lambda store, _: deltalog.sql("INSERT INTO t VALUES (-5)", t=DeltaTable(store)),
    "insert by an older handle": lambda _, old: deltalog.sql("INSERT INTO t VALUES (-5)", t=old),
    "add a column": lambda store, _: add_column(DeltaTable(store)),
    "add a column by an older handle": lambda _, old: add_column(old),
    "refresh": lambda _, old: old.update_incremental(),
}


def ids(table: DeltaTable) -> list[Any]:
    found: list[Any] = table.to_pyarrow_table()["id"].to_pylist()
    return sorted(found)


def check_advice(error: MalformedLogError, root: str, version: int = 1) -> None:
    advice = str(error)
    assert root in advice
    assert advice.count("is damaged") == 1
    assert f"the commit of version {version}" in advice
    for part in ("restore this file from a backup", "DeltaTable(…, version=…)", "deltalog doctor"):
        assert part in advice


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_commit_is_refused(damage: str, entry: str) -> None:
    store = DictStore()
    old = table_of(store)
    path = commit_path(1)
    store.files[path] = DAMAGE[damage](store.files[path])
    with pytest.raises(MalformedLogError) as caught:
        ENTRIES[entry](store, old)
    check_advice(caught.value, store.root)
    assert commit_path(2) not in store.files
    assert ids(DeltaTable(store, version=0)) == [1]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_winner_is_refused(damage: str) -> None:
    store = DictStore()
    table_of(store)
    data = store.files.pop(commit_path(1))

    def rows() -> Any:
        # The other writer is faster, while this writer already reads its rows.
        store.files[commit_path(1)] = DAMAGE[damage](data)
        yield pa.record_batch({"id": pa.array([5], pa.int64())})

    source = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), rows())
    with pytest.raises(MalformedLogError) as caught:
        write_deltalake(DeltaTable(store), source, mode="append")
    check_advice(caught.value, store.root)
    assert commit_path(2) not in store.files


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_history_and_the_feed_refuse_an_older_damaged_commit(damage: str) -> None:
    store = DictStore()
    table_of(store)
    write_deltalake(store, {"id": [2]}, mode="append")
    DeltaTable(store).create_checkpoint()
    path = commit_path(1)
    store.files[path] = DAMAGE[damage](store.files[path])
    table = DeltaTable(store)
    with pytest.raises(MalformedLogError) as caught:
        table.load_cdf(starting_version=0, ending_version=2).read_all()
    check_advice(caught.value, store.root)
    with pytest.raises(MalformedLogError) as caught:
        table.history()
    check_advice(caught.value, store.root)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_commit_of_a_branch_is_refused(damage: str) -> None:
    store = DictStore()
    write_deltalake(store, {"id": [1]})
    draft = DeltaTable(store).branch("draft")
    before = set(store.files)
    write_deltalake(draft, {"id": [2]}, mode="append")
    (path,) = [path for path in store.files if path not in before and path.endswith(".json")]
    store.files[path] = DAMAGE[damage](store.files[path])
    with pytest.raises(MalformedLogError) as caught:
        DeltaTable(store).branch("draft", exist_ok=True)
    assert "is damaged" in str(caught.value)
    with pytest.raises(MalformedLogError):
        draft.publish()
    assert ids(DeltaTable(store)) == [1]


def test_a_damaged_compaction_is_replaced_by_its_commits() -> None:
    store = DictStore()
    table_of(store)
    write_deltalake(store, {"id": [2]}, mode="append")
    write_deltalake(store, {"id": [3]}, mode="append")
    DeltaTable(store).compact_logs(1, 3)
    (path,) = [path for path in store.files if path.endswith(".compacted.json")]
    for damage in DAMAGE.values():
        store.files[path] = damage(store.files[path])
        table = DeltaTable(store)
        assert table.metadata().configuration["delta.constraints.p"] == "id > 0"
        assert ids(table) == [1, 2, 3]


def test_unusual_lines_are_no_damage(tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"id": [1]})
    lines = (b"", b"\r", b' { "commitInfo" : {} } ', b'{"ofLaterVersions":{"a":1}}', b"{}", b"\t")
    for end in (b"\n", b"\r\n"):
        (tmp_path / commit_path(1)).write_bytes(end.join(lines))
        assert DeltaTable(tmp_path).version() == 1
    write_deltalake(tmp_path, {"id": [2]}, mode="append")
    assert ids(DeltaTable(tmp_path)) == [1, 2]
