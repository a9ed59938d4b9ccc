"""Files of rows that `deltalog write` cannot read: the line, what was expected, and advice."""

from __future__ import annotations

import gzip
import os
from concurrent.futures import ThreadPoolExecutor
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
        (
            "a.csv",
            'a,b\n1,"x\n2,y\n',
            "line 2: a value begins with a double quote that is not closed",
        ),
        ("a.csv", 'a,b\n1,"x', "is not closed at the end of the file: '\"x'; close it; a double q"),
        ("a.csv", 'a,b\n1,"x""\n', "line 2: a value begins with a double quote that is not closed"),
        ("a.csv", 'a,b\n1,"x\n', "line 2: a value begins with a double quote that is not closed"),
        (
            "a.csv",
            '\ufeff"a,b\n1,2\n',
            "line 1: a value begins with a double quote that is not closed",
        ),
        (
            "a.csv",
            "a,b\n" + "1,22222\n" * _MANY + '1,"',
            f"line {_MANY + 2}: a value begins with a",
        ),
        (
            "a.csv",
            'a,b\n1,"x" y\n2,z\n',
            "the line after the double quotes around a value, found '\"x\" y'; a double quote wi",
        ),
        ("a.csv", 'a,b\n"1\n","x"y\n', "line 3: expected a comma or the end of the line after th"),
        (
            "a.csv",
            'a,b\n1,"x" \n',
            "expected a comma or the end of the line after the double quote",
        ),
        (
            "a.csv",
            "a,b,a\n1,2,3\n",
            "line 1: the header has the same name more than once, ignoring",
        ),
        (
            "a.csv",
            "ID,b,id\n1,2,3\n",
            "case: 'ID' and 'id' (columns 1, 3); give each column another",
        ),
        (
            "a.csv",
            "\na,,\n1,2,3\n",
            "line 2: the header has no name for column(s) 2, 3 of 3; name th",
        ),
        (
            "a.csv",
            "a,b,\n1,2,\n",
            "line 1: the header ends with a comma, so that column 3 has no name",
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
        ("1234.5", 3, "1234.50 is out of range of decimal"),
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


@pytest.mark.parametrize(
    "content",
    [
        'id,name\n1,"a""b"\n2,5" pipe\n3,"x\n,y"\n4,""\n5,""""\n',
        'id,name\r\n1,"a"\r\n2,"b"\r\n3,"c"\r\n4,"d"\r\n5,"e"',
        'id,name\r1,"a"\r2,b"\r3,"c"\r4,d\r5,"e"',
        '"id","name"\n1,a\n2,b"c"\n3,d\n4,""\n5,"a\n"\n',
    ],
)
def test_quotes_that_are_valid(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.csv").write_bytes(content.encode())
    run("write", tmp_path / "t", tmp_path / "a.csv")
    assert DeltaTable(tmp_path / "t").count() == 5


def test_quotes_across_the_parts_of_a_large_file(tmp_path: Path) -> None:
    # Both kinds of quotes are at all offsets from the ends of the parts in which it is read.
    rows = [f'{number},"a ""{number}"",\n{"x" * (number % 7)}"\n' for number in range(150_000)]
    (tmp_path / "a.csv").write_text("id,name\n" + "".join(rows), "utf-8")
    run("write", tmp_path / "t", tmp_path / "a.csv")
    names = DeltaTable(tmp_path / "t").to_pyarrow_table()["name"].to_pylist()
    assert len(names) == 150_000
    assert names[149_999] == f'a "149999",\n{"x" * (149_999 % 7)}'
    (tmp_path / "a.csv").write_text("id,name\n" + "".join(rows) + '1,"x', "utf-8")
    shown = run("write", tmp_path / "u", tmp_path / "a.csv", code=2).stderr
    assert "line 300002: a value begins with a double quote that is not closed" in shown


def test_quotes_of_compressed_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b'a\n1\n"2\n', mtime=0))
    shown = run("write", tmp_path / "t", tmp_path / "a.csv.gz", "--from", "csv", code=2).stderr
    assert "line 3: a value begins with a double quote that is not closed" in shown
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.csv").write_text("a\n1\n")
    (tmp_path / "d" / "b.csv").write_text('a\n"2\n')
    (tmp_path / "d" / "_log").write_text('"')
    shown = run("write", tmp_path / "t", tmp_path / "d", "--from", "csv", code=2).stderr
    assert f"error: cannot read '{tmp_path / 'd' / 'b.csv'}' as csv: line 2: a value" in shown
    (tmp_path / "d" / "b.csv").write_text("a\n2\n")
    run("write", tmp_path / "t", tmp_path / "d", "--from", "csv")
    assert DeltaTable(tmp_path / "t").count() == 2


def test_quotes_with_another_delimiter(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a;b\n1;"x"\n2;"y,"\n')
    run("write", tmp_path / "t", tmp_path / "a.csv", "-d", ";")
    (tmp_path / "a.csv").write_text('a;b\n1;"x",2\n')
    shown = run("write", tmp_path / "u", tmp_path / "a.csv", "-d", ";", code=2).stderr
    assert "line 2: expected ';' or the end of the line after the double quotes" in shown


def test_a_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "rows"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as writer:
        writer.submit(pipe.write_text, "a,b\n1,2\n")
        run("write", tmp_path / "t", pipe, "--from", "csv")
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist() == [{"a": 1, "b": 2}]
