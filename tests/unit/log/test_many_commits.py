"""Commits parsed together, and what is left to the parser of lines."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from deltalog.log import many_commits, reader
from deltalog.log.many_commits import read_together
from deltalog.log.reader import CommitTable, parse_commits
from deltalog.protocol.actions.arrow import CDC_SCHEMA, FILE_SCHEMA, REMOVE_SCHEMA
from tests.support import logs
from tests.unit.log.test_reader import files_of

VECTOR = logs.vector("x")
ADD: dict[str, Any] = {
    "path": "a%20b",
    "partitionValues": {"p": "1", "q": None},
    "size": 10,
    "modificationTime": 20,
    "dataChange": True,
    "stats": '{"numRecords":1,"minValues":{"s":"\\"é\\u2028"}}',
}


def lines(*objects: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in objects)


def both_ways(
    commits: list[list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> tuple[CommitTable, CommitTable]:
    store = logs.DictStore()
    for version, objects in enumerate(commits):
        store.put(f"_delta_log/{version:020d}.json", lines(*objects))
    read = [(file, store.read(file.info.path)) for file in files_of(store)]
    monkeypatch.setattr(reader, "_TOGETHER_BYTES", 0)
    quick = parse_commits(read, commit_infos=True)
    monkeypatch.setattr(reader, "_TOGETHER_BYTES", 1 << 40)
    return quick, parse_commits(read, commit_infos=True)


def test_regular_commits_are_what_they_are_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    cdc = {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}
    commits: list[list[dict[str, Any]]] = [
        [logs.PROTOCOL, {"add": ADD}, logs.txn("app", 1), {"add": ADD | {"path": "b"}}],
        [],
        [{"commitInfo": {"n": 1e300, "long": 2**63}}, {"remove": {"path": "a%20b"}}],
        [{"add": ADD | {"deletionVector": VECTOR, "baseRowId": 3}}, {"cdc": cdc}],
        [{"remove": {"path": "c", "partitionValues": None, "tags": {"t": "é"}}}, {"other": {}}],
    ]
    read = [(version, lines(*objects)) for version, objects in enumerate(commits)]
    found = read_together(read)
    assert found is not None
    assert [(version, line) for version, line, _ in found.others] == [
        (0, 1),
        (0, 3),
        (2, 1),
        (4, 2),
    ]
    quick, slow = both_ways(commits, monkeypatch)
    nodes: dict[str, Any] = {"protocol_nodes": (), "metadata_nodes": ()}
    assert replace(quick, **nodes) == replace(slow, **nodes)
    assert [node.where for _, node in quick.protocol_nodes] == ["version 0, line 1: protocol"]
    assert [protocol.min_reader_version for _, protocol in quick.protocols] == [1]
    assert quick.adds.schema == FILE_SCHEMA.append(pa.field("version", pa.int64()))
    assert quick.removes.schema == REMOVE_SCHEMA.append(pa.field("version", pa.int64()))
    assert quick.cdc.schema == CDC_SCHEMA.append(pa.field("version", pa.int64()))
    assert quick.adds["version"].to_pylist() == [0, 0, 3]


IRREGULAR = {
    "blank line": lines({"add": ADD}) + b"\n" + lines({"add": ADD}),
    "carriage return": lines({"add": ADD}).replace(b"\n", b"\r\n"),
    "several lines": json.dumps({"add": ADD}, indent=1).encode(),
    "two objects in a line": lines({"add": ADD}).replace(b"\n", b"") + lines({"add": ADD}),
    "cut off": lines({"add": ADD})[:-9],
    "not UTF-8": lines({"add": ADD}).replace(b"a%20b", b"\xff"),
    "lone surrogate": lines({"add": ADD | {"path": "\ud800"}}),
    "unknown member": lines({"add": ADD}, {"add": ADD | {"x": 1}}, *[{"add": ADD}] * 30),
    "member of another type": lines({"add": ADD | {"size": 1.0}}),
    "member stands twice": lines({"add": ADD}).replace(b'"size":10', b'"size":1,"size":10'),
    "key stands twice": lines({"add": ADD}).replace(b'"p":"1"', b'"p":"0","p":"1"'),
    "another kind of action after it": lines({"add": ADD, "txn": {"appId": "a", "version": 1}}),
    "another kind of action before it": lines({"txn": {"appId": "a", "version": 1}, "add": ADD}),
    "no path": lines({"add": {"partitionValues": {}}}),
    "no partition values": lines({"add": {"path": "x"}}),
    "null": lines({"add": None}),
    "a list": lines({"add": []}),
    "a list of pairs": lines({"add": ADD | {"partitionValues": []}}),
    "a number in a map": lines({"add": ADD | {"partitionValues": {"p": 1}}}),
    "statistics that are no text": lines({"add": ADD | {"stats": {}}}),
    "a vector without a member": lines({"add": ADD | {"deletionVector": {"storageType": "u"}}}),
    "a vector that cannot be": lines({"add": ADD | {"deletionVector": VECTOR | {"offset": -1}}}),
    "keys that differ": lines({"add": ADD}, {"add": ADD | {"partitionValues": {"p": "1"}}}),
    "the key of a member": lines({"add": ADD | {"partitionValues": {"size": None}}}),
    "NaN": lines({"add": ADD}, {"commitInfo": {"x": float("nan")}}),
    "two objects in another line": lines({"add": ADD}) + b"{}{}\n",
}


@pytest.mark.parametrize("data", IRREGULAR.values(), ids=IRREGULAR)
def test_what_is_not_certain_is_left_to_the_other_way(data: bytes) -> None:
    assert read_together([(0, lines({"add": ADD}, {"remove": {"path": "x"}}))]) is not None
    assert read_together([(0, lines({"add": ADD})), (1, data)]) is None


def test_a_key_with_an_absent_value_is_told_from_null(monkeypatch: pytest.MonkeyPatch) -> None:
    # `"q":null` stands in a text, too, where it does not count.
    stats = '{"x":{"q":null},"q":null}'
    others = ADD | {"stats": stats, "partitionValues": {"q": None, "p": None}}
    quick, slow = both_ways([[{"add": ADD}, {"add": others}]], monkeypatch)
    values: list[list[Any]] = [t.adds["partitionValues"].to_pylist() for t in (quick, slow)]
    assert [sorted(row) for row in values[0]] == [sorted(row) for row in values[1]]
    assert read_together([(0, lines({"add": ADD}, {"add": others}))]) is not None
    absent = ADD | {"stats": stats, "partitionValues": {"p": "1"}}
    assert read_together([(0, lines({"add": ADD}, {"add": absent}))]) is None


def test_slices_and_long_lines_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    long = ADD | {"path": "x" * 3_000_000, "partitionValues": {}}
    adds = [{"add": ADD | {"path": f"f{n}"}} for n in range(50)]
    commits = [adds, [{"add": long}], adds]
    monkeypatch.setattr(many_commits, "_SLICE_BYTES", 1_000)
    assert read_together([(n, lines(*adds)) for n in range(3)]) is not None
    quick, slow = both_ways(commits, monkeypatch)
    assert quick.adds.equals(slow.adds)


def test_groups_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    commits: list[list[dict[str, Any]]] = [[{"add": ADD | {"path": f"f{n}"}}] for n in range(9)]
    whole, _ = both_ways(commits, monkeypatch)
    monkeypatch.setattr(reader, "_GROUP_BYTES", 500)
    parts, slow = both_ways(commits, monkeypatch)
    assert parts.adds.equals(whole.adds)
    assert slow.adds.equals(whole.adds)
    assert parts.adds["path"].num_chunks > whole.adds["path"].num_chunks
