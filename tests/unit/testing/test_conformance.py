"""The program that scores readers: when rows are the same, what a case is worth, and the board."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.testing.conformance import digest, load_corpus
from deltalog.testing.conformance.__main__ import main


def _digest_of(names: list[str], rows: list[str]) -> str:
    """The definition itself, of texts that are written by hand."""
    header = json.dumps(names, separators=(",", ":")) + "\n"
    hashes = sorted(hashlib.sha256(row.encode()).digest() for row in rows)
    return "v1:" + hashlib.sha256(header.encode() + b"".join(hashes)).hexdigest()


MOMENT = dt.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=dt.UTC)
VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
EMPTY_NAMES = b"\x01\x00\x00"
NAMES_A = b"\x01\x01\x00\x01a"  # one name, of one byte
MAPS = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array([1, None], pa.int8()), ['"i:1"', "null"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.nulls(1), ["null"]),
        (pa.array([0.1, float("nan")]), ['"f:0.1"', '"f:nan"']),
        (pa.array([-0.0, float("-inf")]), ['"f:-0.0"', '"f:-inf"']),
        (pa.array([0.5], pa.float32()), ['"f:0.5"']),
        (pa.array([Decimal("1.50"), Decimal("-0.00")]), ['"d:1.5"', '"d:0"']),
        (pa.array(['a"é', ""], pa.large_string()), ['"s:a\\"é"', '"s:"']),
        (pa.array([b"\x00\xff"]), ['"x:00ff"']),
        (pa.array([dt.date(1970, 1, 3)]), ['"D:2"']),
        (pa.array([dt.date(1969, 12, 31)], pa.date64()), ['"D:-1"']),
        (pa.array([MOMENT], pa.timestamp("us", "UTC")), ['"T:1000005"']),
        (pa.array([1], pa.int64()).view(pa.timestamp("s")), ['"N:1000000"']),
        (pa.array([-1], pa.int64()).view(pa.timestamp("ns")), ['"N:-1"']),
        (pa.array([dt.time(0, 0, 2)], pa.time32("ms")), ['"H:2000000"']),
        (pa.array([dt.timedelta(milliseconds=3)], pa.duration("ms")), ['"U:3000"']),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ['"s:a"', '"s:b"', '"s:a"']),
        (pa.array([[1, None], None, []], pa.list_(pa.int32())), ['["i:1",null]', "null", "[]"]),
        (pa.array([[1], [2, 3]], pa.list_(pa.int32())).slice(1), ['["i:2","i:3"]']),
        (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), ['["i:1","i:2"]']),
        (
            pa.array([[("b", 1), ("a", None)], None, []], MAPS),
            ['{"@map":[["s:a",null],["s:b","i:1"]]}', "null", '{"@map":[]}'],
        ),
        (pa.array([[("a", 1)], [("b", 2)]], MAPS).slice(1), ['{"@map":[["s:b","i:2"]]}']),
        (pa.array([{"b": 1, "a": "x"}, None]), ['{"a":"s:x","b":"i:1"}', "null"]),
        (
            pa.array(
                [
                    {"metadata": EMPTY_NAMES, "value": b"\x0c\x05"},  # int8 5
                    {"metadata": EMPTY_NAMES, "value": b"\x00"},  # the variant null
                    {"metadata": EMPTY_NAMES, "value": b"\x20\x02\xf4\x01\x00\x00"},  # 5.00
                    {"metadata": NAMES_A, "value": b"\x02\x01\x00\x00\x02\x0c\x07"},  # {"a": 7}
                    None,
                ],
                VARIANT,
            ),
            [
                '{"@variant":"n:5"}',
                '{"@variant":null}',
                '{"@variant":"n:5"}',
                '{"@variant":{"a":"n:7"}}',
                "null",
            ],
        ),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)  # fmt: skip
def test_a_digest_is_that_of_its_texts(column: Any, texts: list[str]) -> None:
    table = pa.table({"v": column})
    assert digest(table) == _digest_of(["v"], [f"[{text}]" for text in texts])


def test_neither_order_nor_chunks_nor_widths_change_a_digest() -> None:
    one = pa.table({"a": pa.array([1, 2, 2], pa.int64()), "b": ["x", "y", "y"]})
    parts = [one.slice(2), one.slice(0, 2)]
    narrow = pa.table({"b": pa.array([], pa.large_string()), "a": pa.array([], pa.int8())}).schema
    other = pa.concat_tables(parts).select(["b", "a"]).cast(narrow)
    assert digest(one) == digest(other)
    assert digest(one) != digest(one.slice(0, 2))  # equal rows count


def test_columns_that_share_a_name_have_no_digest() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(InvalidInputError, match="duplicate column names"):
        digest(table)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Two tables as a release of Delta Acceptance Testing has them; one with a deletion vector."""
    for name in ("plain", "vectors"):
        home = tmp_path / name
        home.mkdir()
        (home / "test_case_info.json").write_text(json.dumps({"name": name}))
        vectors = {"delta.enableDeletionVectors": "true"} if name == "vectors" else {}
        write_deltalake(str(home / "delta"), [{"a": n} for n in range(4)], configuration=vectors)
        if vectors:
            DeltaTable(str(home / "delta")).delete("a = 0", use_deletion_vectors=True)
        for version, rows in {
            "v0": [0, 1, 2, 3],
            "latest": [1, 2, 3] if vectors else [0, 1, 2, 3],
        }.items():
            expected = home / "expected" / version
            (expected / "table_content").mkdir(parents=True)
            (expected / "table_version_metadata.json").write_text("{}")
            pq.write_table(
                pa.table({"a": pa.array(rows, pa.int64())}),
                expected / "table_content" / "part-0.parquet",
            )
    return tmp_path


def test_a_release_is_scored_with_a_peer(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board, lines = tmp_path / "board.md", tmp_path / "cases.jsonl"
    peers = ["--peer", "deltalake-pyarrow"]
    assert main([str(release), *peers, "--markdown", str(board), "--json", str(lines), "-v"]) == 0
    printed = capsys.readouterr().out
    assert "4 reads of 2 tables." in printed
    assert "refused: vectors, latest: " in printed
    rows = [
        line.split("|")[1:-1] for line in board.read_text().splitlines() if line.startswith("| ")
    ]
    assert [[cell.strip() for cell in row] for row in rows[1:]] == [
        ["all", "4 of 4", "2 of 4 (2 refused)"],
        ["plain", "2 of 2", "2 of 2"],
        ["vectors", "2 of 2", "0 of 2 (2 refused)"],
    ]
    cases = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [case["verdict"] for case in cases].count("right") == 6


def test_other_rows_than_expected_are_wrong(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_deltalake(str(release / "plain" / "delta"), [{"a": 9}], mode="append")
    assert main([str(release)]) == 1
    assert "wrong: plain, latest: other rows than expected" in capsys.readouterr().out


def test_a_manifest_says_what_must_be_refused(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "ours" / "t"), [{"a": 1}])
    facts: dict[str, Any] = {
        "id": "ours/t",
        "path": "ours/t",
        "partition_columns": [],
        "column_mapping": "none",
        "types": ["long"],
        "features": ["path:odd"],
        "expected": {
            "latest": {"outcome": "error", "error": ["log-gap"]},
            "versions": {
                "0": {"outcome": "rows", "digest": _digest_of(["a"], ['["i:1"]'])},
                "1": {"outcome": "rows", "digest": "v1:", "optional": True},
                "2": {"outcome": "log_only", "num_files": 0},
                "7": {"outcome": "error", "error": ["table-not-found"]},
            },
            "cdf": [],
        },
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"tables": [facts]}))
    corpus = load_corpus(tmp_path, ["ours"])
    assert [(case.version, case.digest is None) for case in corpus.cases] == [
        (0, False),
        (7, True),
        (None, True),
    ]
    assert corpus.cases[0].features == ("all", "unusual paths", "older versions")
    assert sum(corpus.left_out.values()) == 2
    assert main([str(tmp_path)]) == 1  # the latest version can be read, and is said to be broken


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{}"], "expected a manifest.json"),
        (["{}", "--peer", "nobody"], "cannot score 'nobody'"),
    ],
)
def test_a_wrong_call_says_what_is_expected(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([part.format(tmp_path) for part in arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_writer_that_is_not_there_is_named_with_those_that_are(release: Path) -> None:
    with pytest.raises(InvalidInputError, match="expected one of plain, vectors"):
        load_corpus(release, ["nobody"])
