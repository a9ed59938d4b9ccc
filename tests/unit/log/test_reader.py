"""Commits as columns."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidMetadataError, MalformedLogError
from deltalog.log import reader
from deltalog.log.names import LogFile, parse_log_name
from deltalog.log.reader import (
    concat_commits,
    find_protocol_and_metadata,
    parse_commits,
    read_commits,
)
from deltalog.protocol.actions.arrow import CDC_SCHEMA, FILE_SCHEMA, REMOVE_SCHEMA
from deltalog.testing import CountingStore
from tests.support import logs


def files_of(store: logs.DictStore) -> list[LogFile]:
    found = [parse_log_name(info) for info in store.list_from("_delta_log", "")]
    return [file for file in found if file is not None]


def test_actions_are_split_by_kind() -> None:
    store = logs.table_of(
        [logs.add("a"), logs.txn("app", 3), logs.domain("d")],
        [
            logs.remove("a", deletionVector=logs.vector("x")),
            {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
            {"rowIdHighWaterMark": {"highWaterMark": 4, "preservedRowIds": True}},
            {"commitInfo": {"operation": "DELETE"}},
        ],
    )
    table = read_commits(store, files_of(store), commit_infos=True)
    assert table.adds.column_names == [*FILE_SCHEMA.names, "version"]
    assert table.removes.column_names == [*REMOVE_SCHEMA.names, "version"]
    assert table.cdc.column_names == [*CDC_SCHEMA.names, "version"]
    assert table.adds.select(["path", "version"]).to_pylist() == [{"path": "a", "version": 0}]
    assert table.removes["deletionVector"][0].as_py()["pathOrInlineDv"] == "x"
    assert table.cdc["version"].to_pylist() == [1]
    assert [version for version, _ in table.protocols] == [0]
    assert [metadata.schema_string for _, metadata in table.metadatas] == [logs.SCHEMA]
    assert [(version, txn.version) for version, txn in table.txns] == [(0, 3)]
    assert [domain.domain for _, domain in table.domains] == ["d"]
    assert [mark.high_water_mark for _, mark in table.high_water_marks] == [4]
    assert table.commit_infos == {1: {"operation": "DELETE"}}
    assert read_commits(store, files_of(store)).commit_infos == {}


@pytest.mark.protocol("LOG-03", "LOG-10", "D-70", "D-71")
def test_odd_lines_are_no_problem() -> None:
    store = logs.DictStore()
    text = (
        '{"commitInfo":{}}\r\n\r\n{"futureAction":{}}\r\n'
        '{"add":{"path":"\u2028é","partitionValues":{},"size":1,"modificationTime":1,'
        '"dataChange":true,"x":1},"remove":null}\r\n\n'
    )
    store.put("_delta_log/00000000000000000000.json", text.encode())
    store.put("_delta_log/00000000000000000001.json", b"\n")
    pretty = b'{\n  "add": {\n    "path": "b", "size": 1,\n "partitionValues": {}\n }\n}\n'
    store.put("_delta_log/00000000000000000002.json", pretty)
    table = read_commits(store, files_of(store))
    assert table.adds["path"].to_pylist() == ["\u2028é", "b"]
    assert table.adds["version"].to_pylist() == [0, 2]


@pytest.mark.protocol("OV-09")
def test_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CountingStore(logs.table_of(*[[logs.add(f"f{n}"), logs.txn("a", n)] for n in range(9)]))
    files = files_of(store.store)  # type: ignore[arg-type]  # it is the DictStore from above
    whole = read_commits(store, files)
    assert store.counts == {"read_many": 1}
    monkeypatch.setattr(reader, "_BATCH_FILES", 2)
    parts = read_commits(store, files)
    assert store.counts["read_many"] == 6
    assert parts.adds.equals(whole.adds)
    assert parts.txns == whole.txns
    assert concat_commits([]).adds.num_rows == 0


def test_errors_say_where() -> None:
    store = logs.table_of([], [logs.add("a"), {"add": {"size": 3}}])
    with pytest.raises(MalformedLogError, match=r"version 1, line 2: add\.path"):
        read_commits(store, files_of(store))
    torn = logs.table_of([], [logs.add("a")])
    torn.put("_delta_log/00000000000000000001.json", b'{"add":{"path"')
    with pytest.raises(MalformedLogError, match="version 1, line 1"):
        read_commits(torn, files_of(torn))


@pytest.mark.protocol("META-02")
def test_metadata_that_was_replaced_is_not_checked() -> None:
    store = logs.table_of([])
    logs.commit(store, 0, {"metaData": {"id": "x"}})
    files = files_of(store)
    table = parse_commits([(files[0], store.read(files[0].info.path))])
    assert len(table.metadata_nodes) == 1
    with pytest.raises(InvalidMetadataError):
        _ = table.metadatas


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n"])
@pytest.mark.parametrize("count", [1, 999, 1000, 1001, 2500])
def test_a_line_without_an_action_is_found_among_many(count: int, end: bytes) -> None:
    lines = [b'{"add":{"path":"%d"}}' % number for number in range(count)]
    assert find_protocol_and_metadata(7, b"\n".join(lines) + end) == (None, None)
    for place in {0, count // 2, count - 1}:
        for damage in (b"[]", b"null", b"oops", b'{"add":{"path":"x"', b'"add":{}}', b"\0"):
            damaged = [*lines[:place], damage, *lines[place + 1 :]]
            with pytest.raises(MalformedLogError, match="version 7, line"):
                find_protocol_and_metadata(7, b"\n".join(damaged) + end)
