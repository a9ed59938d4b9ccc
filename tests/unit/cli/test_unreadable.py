"""Files of rows that `deltalog write` cannot read: the line, what was expected, and advice."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from deltalog import DeltaTable, write_deltalake
from deltalog.cli import app
from tests.support.command_line import run

if TYPE_CHECKING:
    from pathlib import Path

_MANY = 200_000  # so many lines that Arrow reads them in several blocks


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.jsonl", '{"a":1}\n\nnope\n', "as json: line 3, column 1: expected value, found 'nope'"),
        ("a.jsonl", "{'a':1}\n", "line 1, column 2: expected property name enclosed in double"),
        ("a.jsonl", '{"a":1}\r\n{"a":2}x\r\n', "line 2, column 8: expected value, found 'x'"),
        ("a.jsonl", '{"a":', "line 1: the value is not complete at the end of the file"),
        ("a.jsonl", '{"a":1}\n' * _MANY + "x", f"line {_MANY + 1}, column 1: expected value"),
        ("a.jsonl", '{\n"a":1}\n{"a":1,\n"b":x}', "line 4, column 5 of the value that begins in l"),
        ("a.jsonl", '{"a":1}\n5\n', 'line 2: expected a JSON object, such as {"column": 1}, found'),
        ("a.jsonl", '{"a":1,"a":2}\n', "line 1: an object contains the key 'a' twice"),
        ("a.jsonl", '{"a":1}\n{"a":"x"}', "line 2, column 'a': expected a number, as in the lines"),
        ("a.jsonl", '{"a":[{"b":1}]}\n{"a":[{"b":[]}]}', "column 'a.b': expected a number"),
        ("a.jsonl", '{"a":1}\n' * _MANY + '{"a":true}', f"line {_MANY + 1}, column 'a': expected"),
        ("a.jsonl", "", "as json: it is empty; expected one JSON object per line"),
        ("a.jsonl", b'{"a":1}\n{"a":"\xe9"}', "line 2: expected UTF-8, found the byte 0xe9; conv"),
        ("a.csv", "a,b\n1,2\n\n3\n", "as csv: line 4: expected 2 values, as in the first line, fo"),
        ("a.csv", 'a,b\n1,"x\ny"\n1,2,3\n', "line 4: expected 2 values, as in the first line, fou"),
        ("a.csv", "a,b\n" + "1,22222\n" * _MANY + "1,x\n", f"line {_MANY + 2}, column 'b': exp"),
        (
            "a.jsonl",
            '{"a":1}\n{"a":"' + "x" * (3 << 20) + '"}',
            "line 2: expected a row of at most",
        ),
        ("a.csv", "a\n1\n" + "x" * (3 << 20), "line 3: expected a row of at most 1 MiB, found a l"),
        ("a.csv", 'a\n1\n"' + "x\n" * (2 << 20), "line 3: expected a row of at most 1 MiB, found"),
        ("a.csv", "", "as csv: it is empty; expected a first line with the names of the columns"),
        ("a.csv", b"a,b\n1,\xe9\n", "line 2: expected UTF-8, found the byte 0xe9; convert the fil"),
        ("a.csv", b"a" * (1 << 20) + b"\n\xc3", "line 2: expected UTF-8, found the byte 0xc3"),
        ("a.csv", "a\n1\n".encode("utf-16"), "expected UTF-8, found UTF-16; iconv -f UTF-16"),
        (
            "a.csv",
            gzip.compress(b"a\n1\n", mtime=0),
            "it is compressed; decompress it, as in gunzip -c",
        ),
        ("a.parquet", "hello", "as parquet: expected a Parquet file, which begins with b'PAR1'"),
        ("a.parquet", "PAR1....", "it begins as a Parquet file, but its end is missing"),
    ],
)
def test_a_file_that_cannot_be_read(
    tmp_path: Path, name: str, content: str | bytes, reason: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    shown = run("write", tmp_path / "t", file, code=2).stderr
    assert f"error: cannot read '{file}' as {name.partition('.')[2].removesuffix('l')}: " in shown
    assert reason in shown
    assert not (tmp_path / "t").exists()


def test_a_column_of_the_table_has_another_type(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), {"a": ["x"]})
    (tmp_path / "a.jsonl").write_text('{"a":"y"}\n{"a":5}\n')
    shown = run("write", tmp_path / "t", tmp_path / "a.jsonl", "-m", "append", code=2).stderr
    assert "line 2, column 'a': expected a string" in shown
    assert "in the table, found the number 5" in shown


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [
        ("1234.5", 3, "1234.50 is out of range; cast the column to a decimal with more digits"),
        ("1.125", 2, "expected numbers of at most 2 digits after the point, as in the table, fou"),
        ("1" * 40, 2, "expected numbers of at most 38 digits, as in the table, found 1111"),
    ],
)
def test_a_number_that_does_not_fit_the_column(
    tmp_path: Path, number: str, code: int, reason: str
) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"a": pa.array([], pa.decimal128(5, 2))}))
    (tmp_path / "a.jsonl").write_text(f'{{"a":{number}}}\n')
    shown = run("write", tmp_path / "t", tmp_path / "a.jsonl", "-m", "append", code=code).stderr
    assert reason in shown
    assert DeltaTable(tmp_path / "t").count() == 0


@pytest.mark.parametrize("part", [slice(1000, 60_000), slice(-60, -8)])
def test_a_damaged_parquet_file(tmp_path: Path, part: slice) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(100_000)}), file)
    data = bytearray(file.read_bytes())
    data[part] = bytes(len(data[part]))
    file.write_bytes(data)
    shown = run("write", tmp_path / "t", file, code=2).stderr
    assert shown.startswith(f"error: cannot read '{file}' as parquet: ")
    assert shown.endswith("; if the file is damaged, copy or write it again\n")


def test_line_breaks_in_values_of_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + '1,"x\ny"\n' * _MANY)
    run("write", tmp_path / "t", tmp_path / "a.csv")
    assert DeltaTable(tmp_path / "t").count(predicate="b = 'x\ny'") == _MANY


@pytest.mark.parametrize("suffix", ["csv.gz", "csv"])
def test_what_is_read_remains_read(tmp_path: Path, suffix: str) -> None:
    text = "a\nä\n" * 2
    file = tmp_path / f"a.{suffix}"
    file.write_bytes(gzip.compress(text.encode()) if suffix == "csv.gz" else text.encode())
    run("write", tmp_path / "t", file, "--from", "csv")
    assert DeltaTable(tmp_path / "t").count() == 3


def test_standard_input_that_cannot_be_read(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["write", str(tmp_path / "t"), "-", "--from", "csv"], input="")
    assert found.exit_code == 2
    assert found.stderr.startswith("error: cannot read standard input as csv: it is empty; ")
