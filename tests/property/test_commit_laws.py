"""Commits parsed together are what they are line by line, whatever stands in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog._util.paths import FileInfo
from deltalog.errors import DeltaError
from deltalog.log import reader
from deltalog.log.names import LogFile, parse_log_name
from deltalog.log.reader import CommitTable, parse_commits

texts = st.text(st.sampled_from('ab"\\{}:,/é\u2028\x00\x1f\ud800😀'), max_size=4) | st.sampled_from(
    ["p", "2024-01-01", "2024-01-01 00:00:00", '"p":null', ""]
)
odd: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, 1.0, -0.0, 2**31, 2**63, 2**70, True, "x", [], {}, {"x": 1}]
)
keys = st.sampled_from(["p", "q", "size", "x y", 'q"', "é"])
maps: st.SearchStrategy[Any] = (
    st.dictionaries(keys, st.none() | texts, max_size=2) | st.just({"p": "1"}) | st.just({})
)
vectors = st.fixed_dictionaries(
    {
        "storageType": st.sampled_from(["u", "i", "p", "x"]),
        "pathOrInlineDv": texts,
        "sizeInBytes": st.integers(-1, 2**31),
        "cardinality": st.integers(-1, 2**40),
    },
    optional={"offset": st.none() | st.integers(0, 9), "maxRowIndex": st.none() | st.just(4)},
)
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "size": st.integers(-(2**63), 2**63 - 1),
    "modificationTime": st.integers(0, 2**40),
    "deletionTimestamp": st.integers(0, 2**40),
    "dataChange": st.booleans(),
    "stats": texts,
    "tags": maps,
    "deletionVector": st.none() | vectors,
    "baseRowId": st.none() | st.integers(0, 9),
    "clusteringProvider": texts,
}
regular = st.fixed_dictionaries({"path": texts, "partitionValues": maps}, optional=MEMBERS)
irregular = regular.flatmap(
    lambda action: st.dictionaries(st.sampled_from([*action, "path", "X", "Path"]), odd).map(
        lambda more: action | more
    )
)
others = st.sampled_from(
    [
        {"commitInfo": {"operation": "WRITE", "n": 2**64}},
        {"txn": {"appId": "a", "version": 1}},
        {"txn": {"appId": "a"}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"future": {"add": {}}},
        {"add": None},
        {},
        [],
    ]
)
kinds = st.sampled_from(["add", "remove", "cdc"])


def _line(value: Any, *, is_compact: bool) -> bytes:
    separators = (",", ":") if is_compact else (", ", ": ")
    text = json.dumps(value, separators=separators, ensure_ascii=not is_compact)
    return text.encode("utf-8", "surrogatepass")


file_lines = st.builds(lambda kind, action: {kind: action}, kinds, regular)
odd_lines = st.builds(lambda kind, action: {kind: action}, kinds, irregular | odd) | others
good_commits = st.lists(file_lines | others.filter(bool), max_size=6).map(
    lambda objects: b"".join(_line(one, is_compact=True) + b"\n" for one in objects)
)
odd_commits = st.lists(
    st.builds(lambda one, compact: _line(one, is_compact=compact), odd_lines, st.booleans())
    | st.sampled_from([b"", b" ", b"{", b"}", b"{}{}", b"\xef\xbb\xbf{}", b"\xff", b"\x00"]),
    max_size=4,
).flatmap(lambda parts: st.sampled_from([b"\n", b"\r\n", b"\n\n"]).map(lambda end: end.join(parts)))


def _file(version: int, data: bytes) -> LogFile:
    found = parse_log_name(FileInfo(f"_delta_log/{version:020d}.json", len(data), 0))
    assert found is not None
    return found


def _shown(table: CommitTable) -> Any:
    def rows(files: Any) -> list[dict[str, Any]]:
        # The keys of a map have no order.
        return [
            {
                name: sorted(value, key=str) if isinstance(value, list) else value
                for name, value in row.items()
            }
            for row in files.to_pylist()
        ]

    files = [table.adds, table.removes, table.cdc]
    values = [table.txns, table.domains, table.high_water_marks, table.commit_infos]
    nodes = [(v, n.values, n.where) for v, n in (*table.protocol_nodes, *table.metadata_nodes)]
    return [rows(one) for one in files], [one.schema for one in files], values, nodes


def _outcome(commits: list[bytes], least_bytes: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_TOGETHER_BYTES", least_bytes)
        read = [(_file(version, data), data) for version, data in enumerate(commits)]
        try:
            return _shown(parse_commits(read, commit_infos=True))
        except (DeltaError, UnicodeError) as error:
            return type(error), str(error)


@given(st.lists(good_commits, max_size=3), st.lists(odd_commits, max_size=1))
def test_both_ways_give_the_same(good: list[bytes], odd_ones: list[bytes]) -> None:
    commits = [*good, *odd_ones, *good]
    assert _outcome(commits, 0) == _outcome(commits, 1 << 40)
