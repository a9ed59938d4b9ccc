"""Journals: kept, read back, and refused if they are damaged or another's."""

from __future__ import annotations

import pytest

from deltalog._util.json import dumps, loads
from deltalog._util.paths import FileInfo
from deltalog.errors import (
    AlreadyExistsError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
)
from deltalog.transaction import journal as journals
from deltalog.transaction.journal import (
    Journal,
    Journals,
    PreparedCommit,
    decode_journal,
    encode_journal,
)
from tests.support.logs import DictStore

ID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
OTHER = "1f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
COMMITS = tuple(
    PreparedCommit(
        name=("my schema", name), table_id=f"id-{name}", base_version=4, data='{"é":1}\n'.encode()
    )
    for name in "ab"
)
JOURNAL = Journal(transaction_id=ID, created_ms=1_700_000_000_000, commits=COMMITS)


def test_a_journal_is_read_as_it_was_kept() -> None:
    folder = Journals(DictStore(files={"notes.txt": b"", "x.json": b"{}", f"{ID}.json.tmp": b""}))
    folder.put(JOURNAL)
    folder.put(JOURNAL)  # a request that is repeated
    assert folder.ids() == [ID]
    assert folder.read(ID) == JOURNAL
    assert folder.read(OTHER) is None
    folder.remove([ID, OTHER])
    assert folder.ids() == []


def test_a_file_in_its_place_is_another_journal() -> None:
    store = DictStore(files={JOURNAL.path: b"{}"})
    with pytest.raises(AlreadyExistsError):
        Journals(store).put(JOURNAL)
    assert store.files[JOURNAL.path] == b"{}"


def changed(**members: object) -> bytes:
    return dumps({**loads(encode_journal(JOURNAL)), **members})


def with_table(**members: object) -> bytes:
    tables = loads(encode_journal(JOURNAL))["tables"]
    return changed(tables=[{**tables[0], **members}, tables[1]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "line 1, column 1: Expecting value"),
        (encode_journal(JOURNAL)[:-9], "line 1, column 251: Unterminated"),
        (b"[" * 100_000, "JSON|nest|recursion"),
        (b"[]", "expected object, found list"),
        (changed(deltalogTransaction=2), "expected format 1, found 2"),
        (changed(deltalogTransaction=None), "deltalogTransaction"),
        (changed(id=OTHER), "expected the id in the file name"),
        (changed(createdTime="now"), "createdTime"),
        (changed(createdTime=2**70), "createdTime|fit|JSON"),
        (changed(createdTime=-1), "createdTime: expected a time"),
        (changed(createdTime=2**62), "createdTime: expected a time"),
        (changed(tables=[]), "expected different tables"),
        (changed(tables={}), "tables"),
        (changed(tables=[1]), "table 1: expected object"),
        (with_table(tableId="id-b"), "expected different tables"),
        (with_table(name=[]), "name: expected strings"),
        (with_table(name=["a", 1]), "name: expected strings"),
        (with_table(name=["a", ""]), "name: expected strings"),
        (with_table(version=-1), "expected a version"),
        (with_table(version=None), "version"),
        (with_table(commit=None), "commit"),
    ],
)
def test_what_is_no_journal_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(MalformedLogError, match=message):
        decode_journal(data, JOURNAL.path)


def test_a_journal_that_is_too_long_is_neither_written_nor_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = DictStore(files={f"{OTHER}.json": b"x" * 1000})
    monkeypatch.setattr(journals, "MOST_BYTES", 100)
    with pytest.raises(InvalidInputError, match="the limit is 100"):
        Journals(store).put(JOURNAL)
    assert Journals(store).ids() == [OTHER]
    with pytest.raises(MalformedLogError, match="has 1000 bytes, but the limit is 100"):
        Journals(store).read(OTHER)


def test_a_long_journal_is_not_fetched() -> None:
    class LongStore(DictStore):
        def stat(self, path: str) -> FileInfo:
            return FileInfo(path, 1 << 40, 0)

        def read(self, path: str) -> bytes:
            raise ObjectNotFoundError(f"nobody reads {path}")

    with pytest.raises(MalformedLogError, match=f"has {1 << 40} bytes"):
        Journals(LongStore()).read(ID)


@pytest.mark.parametrize("text", ["", "../x", f"{ID}/../{ID}", ID.upper(), f"{ID}\n"])
def test_what_is_no_id_is_refused(text: str) -> None:
    folder = Journals(DictStore())
    for act in (folder.read, lambda one: folder.remove([one])):
        with pytest.raises(InvalidInputError, match="expected a UUID"):
            act(text)
