"""Mistakes that a reader of the guide made at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.command_line import lines, run

ROWS: dict[str, list[Any]] = {"id": [1, 2], "name": ["a", "b"]}


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("describe", "deltalog show TABLE"),
        ("detail", "deltalog show TABLE"),
        ("info", "deltalog show TABLE"),
        ("ls", "deltalog files TABLE"),
        ("cat", "deltalog scan TABLE"),
        ("delete", "'DELETE FROM t WHERE …'"),
        ("merge", "'MERGE INTO t USING s ON … WHEN …'"),
        ("append", "deltalog write TABLE FILE --mode append"),
        ("compact", "deltalog optimize TABLE"),
        ("rm", "Delete the directory of a table"),
    ],
)
def test_commands_of_other_programs(command: str, advice: str) -> None:
    shown = run(command, "t", code=2).stderr
    assert f"No such command '{command}'." in shown
    assert advice in shown


def test_a_directory_with_tables_is_not_converted(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "a" / "t", ROWS)
    pq.write_table(pa.table(ROWS), tmp_path / "plain.parquet")
    shown = run("convert", tmp_path, code=2).stderr
    assert "found 1 table in it: a/t (Delta)" in shown


@pytest.mark.parametrize("at", ["2024-01-31", "2024-01-31T12:00:00Z"])
def test_a_time_after_the_table(table: str, at: str) -> None:
    assert (
        "the earliest version that can be read is 0" in run("count", f"{table}@{at}", code=3).stderr
    )
    assert lines("count", f"{table}@v0") == [{"rows": 3}]


def test_the_table_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id\n1\n")
    shown = run("write", file, tmp_path / "t", code=2).stderr
    assert f"deltalog write {tmp_path / 't'} {file}" in shown
    run("write", tmp_path / "t", file)
    shown = run("write", file, tmp_path / "t", "--mode", "append", code=2).stderr
    assert "The table is the first argument" in shown


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("d.xlsx", "pandas.read_excel"),
        ("d.csv.gz", "gunzip -c"),
        ("d.feather", "write_deltalake"),
        ("d.txt", "add --from csv, json or parquet"),
    ],
)
def test_files_of_other_formats(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_text("x")
    assert advice in run("write", tmp_path / "t", tmp_path / name, code=2).stderr


def test_an_array_in_a_json_file(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(' [{"id": 1},\n {"id": 2}]')
    shown = run("write", tmp_path / "t", tmp_path / "d.json", code=2).stderr
    assert "expected one object per line, found an array; jq -c '.[]' FILE" in shown


@pytest.mark.parametrize(
    ("sign", "options"), [(";", ["-d", ";"]), ("\t", ["--delimiter", "tab"]), ("|", ["-d", "|"])]
)
def test_values_between_other_signs(tmp_path: Path, sign: str, options: list[str]) -> None:
    file = tmp_path / "d.csv"
    file.write_text(f'"id"{sign}name\n1{sign}"a,b"\n')
    shown = run("write", tmp_path / "t", file, code=2).stderr
    shown_sign = {"\t": "tab"}.get(sign, f"'{sign}'")
    assert f"has no comma; add --delimiter {shown_sign}" in shown
    run("write", tmp_path / "t", file, *options)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().to_pydict() == {
        "id": [1],
        "name": ["a,b"],
    }
    file.rename(tmp_path / "d.tsv")
    if sign == "\t":
        run("write", tmp_path / "t", tmp_path / "d.tsv", "--mode", "append")
        assert DeltaTable(tmp_path / "t").count() == 2


def test_one_column_with_such_a_sign(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text('"a|b"\n1\n')
    run("write", tmp_path / "t", file)
    file.write_text("a|b\n1\n")
    options = ["--mode", "append", "-d", ","]
    run("write", tmp_path / "t", file, *options)
    assert DeltaTable(tmp_path / "t").schema().names == ("a|b",)


def test_delimiters_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a\n1\n")
    (tmp_path / "d.json").write_text('{"a": 1}\n')
    shown = run("write", tmp_path / "t", tmp_path / "d.csv", "-d", ";;", code=2).stderr
    assert "expected one ASCII character, or tab" in shown
    shown = run("write", tmp_path / "t", tmp_path / "d.json", "-d", ";", code=2).stderr
    assert "only CSV files have delimiters" in shown


def test_a_file_where_the_table_should_be(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    (tmp_path / "d.csv").write_text("a\n1\n")
    shown = run("write", tmp_path / "notes", tmp_path / "d.csv", code=2).stderr
    assert "notes is a file, and a table is a directory" in shown
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize(("name", "options"), [("d.csv", ["-d", ";"]), ("d.tsv", [])])
def test_a_delimiter_that_the_file_lacks(tmp_path: Path, name: str, options: list[str]) -> None:
    file = tmp_path / name
    file.write_text("month,carrier,delay\n1,AA,5\n")
    shown = run("write", tmp_path / "t", file, *options, code=2).stderr
    assert f"has no {(options[1:] and repr(';')) or 'tab'}; add --delimiter ','" in shown
    run("write", tmp_path / "t", file, "-d", ",")
    assert DeltaTable(tmp_path / "t").schema().names == ("month", "carrier", "delay")
    file.write_text('"month|carrier"\n1\n')
    run("write", tmp_path / "one", file, *options)
    assert DeltaTable(tmp_path / "one").schema().names == ("month|carrier",)


def test_a_table_without_properties(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", {"id": [1]})
    shown = run("properties", tmp_path / "t")
    assert "the table has no properties" in shown.stderr
