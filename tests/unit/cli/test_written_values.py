"""`deltalog write` stores the values of a file as they are, in the types of an existing table."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.command_line import run

KINDS: dict[str, pa.DataType] = {
    "zip": pa.string(),
    "price": pa.decimal128(20, 2),
    "x": pa.float64(),
    "note": pa.string(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "flag": pa.bool_(),
    "n": pa.int32(),
}
TYPES = pa.schema(KINDS)
AT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "t", TYPES.empty_table())
    return tmp_path / "t"


def test_csv(table: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(
        "zip,price,X,note,day,at,flag,n\n"
        '"00705",12345678901234567.89,2.5,,2024-01-02,2024-01-02T03:04:05Z,TRUE,7\n'
        '01234,1.10,1e3,"",,,false,\n'
        "1.10,1,,N/A,2024-01-03,2024-01-02 03:04:05,,-1\n",
        "utf-8",
    )
    run("write", table, tmp_path / "rows.csv", "--mode", "append")
    rows = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("00705", Decimal("12345678901234567.89"), 2.5, None, date(2024, 1, 2), AT, True, 7),
        ("01234", Decimal("1.10"), 1000.0, "", None, None, False, None),
        ("1.10", Decimal("1.00"), None, "N/A", date(2024, 1, 3), AT, None, -1),
    ]


def test_json(table: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(
        '{"zip": "2024-01-01", "price": 12345678901234567.89, "day": "2024-01-02", '
        '"at": "2024-01-02T03:04:05Z", "n": 3}\n{"zip": "00705", "x": 1.5}\n',
        "utf-8",
    )
    run("write", table, tmp_path / "rows.json", "--mode", "append")
    rows = DeltaTable(table).to_pyarrow_table().select(["zip", "price", "day", "at", "n", "x"])
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        ("2024-01-01", Decimal("12345678901234567.89"), date(2024, 1, 2), AT, 3, None),
        ("00705", None, None, None, None, 1.5),
    ]


def test_a_value_of_another_kind_is_an_error(table: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"zip": 5}\n', "utf-8")
    found = run("write", table, tmp_path / "rows.json", "--mode", "append", code=2)
    assert "line 1, column 'zip': expected a string" in found.output
    (tmp_path / "rows.csv").write_text("n\nx\n", "utf-8")
    found = run("write", table, tmp_path / "rows.csv", "--mode", "append", code=3)
    assert "cannot store string values of column 'n' as integer" in found.output
    assert "in row 1 of " in found.output
    assert "rows.csv', without its header" in found.output.replace("\n", "")
    assert DeltaTable(table).version() == 0


def test_printed_rows_can_be_written_again(table: Path, tmp_path: Path) -> None:
    rows = {"zip": ["00705", None, ""], "note": ["NULL", "N/A", None], "x": [None, 1.5, 2.0]}
    write_deltalake(table, rows, mode="append")
    (tmp_path / "out.csv").write_text(run("scan", table, "--csv").stdout, "utf-8")
    run("write", table, tmp_path / "out.csv", "--mode", "overwrite")
    again = DeltaTable(table).to_pyarrow_table().select(list(rows))
    assert again.to_pydict() == rows


def test_json_with_two_columns_of_one_name_is_refused() -> None:
    found = run("sql", "SELECT 1 AS x, 2 AS x", "--json", code=2)
    assert "several columns are called 'x'" in found.output


def _written(tmp_path: Path, text: str, *options: str) -> pa.Table:
    (tmp_path / "new.csv").write_text(text, "utf-8")
    run("write", tmp_path / "new", tmp_path / "new.csv", *options)
    return DeltaTable(tmp_path / "new").to_pyarrow_table()


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("01234", "01234"),
        ("00", "00"),
        ("-07", "-07"),
        ("01.50", "01.50"),
        ("01e3", "01e3"),
        ('"01"', "01"),
        ("+491234", "+491234"),
        ("0x10", "0x10"),
        ("12345678901234567890", "12345678901234567890"),
        ("08:30", "08:30"),
        ("0", 0),
        ("-0.5", -0.5),
        ("+1.5", 1.5),
        ("0e3", 0.0),
        ("1234567890123456789", 1234567890123456789),
    ],
)
def test_a_new_column_of_csv_keeps_what_a_number_would_lose(
    tmp_path: Path, value: str, kept: object
) -> None:
    rows = _written(tmp_path, f"id,x\n1,{value}\n")
    assert rows["x"].to_pylist()[0] == kept


def test_a_leading_zero_far_behind(tmp_path: Path) -> None:
    text = "id,x\n" + "1,22222\n" * 200_000 + "2,01234\n"
    assert _written(tmp_path, text)["x"].to_pylist()[-1] == "01234"


def test_leading_zeros_in_a_column_of_the_table(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "new", {"id": pa.array([], pa.int64())})
    rows = _written(tmp_path, "id,zip\n01,01\n", "-m", "append", "--schema-mode", "merge")
    assert rows.to_pylist() == [{"id": 1, "zip": "01"}]


def test_types_that_the_user_gives(tmp_path: Path) -> None:
    rows = _written(
        tmp_path,
        "id,zip,Big,day,x\n1,01234,12345678901234567890,2024-01-02,\n",
        *("--type", "zip=bigint", "--type", "big=decimal(20,0)", "--type", "day=string"),
        *("--type", "x=timestamp"),
    )
    assert rows.to_pylist() == [
        {"id": 1, "zip": 1234, "Big": Decimal(12345678901234567890), "day": "2024-01-02", "x": None}
    ]
    assert [str(field.type) for field in DeltaTable(tmp_path / "new").schema()] == [
        *("long", "long", "decimal(20,0)", "string", "timestamp")
    ]


def test_types_of_json(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a":"2024-01-02","b":1,"c":1}\n')
    types = ("--type", "a=string", "--type", "b=int", "--type", "c=double")
    run("write", tmp_path / "t", tmp_path / "a.jsonl", *types)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist() == [
        {"a": "2024-01-02", "b": 1, "c": 1.0}
    ]


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        (["zp=string"], "cannot use --type 'zp=string': '{file}' has no column 'zp': did you mean"),
        (
            ["zip=strinng"],
            "--type 'zip=strinng': column 'zip': cannot make a type of 'strinng': did you mean",
        ),
        (["zip"], "cannot use --type 'zip': expected column=type, as in --type zip=string"),
        (["zip=array<int>"], "the text of a CSV file is not converted to array<integer>; write"),
        (["zip=binary"], "the text of a CSV file is not converted to binary; write the rows in"),
        (["zip=int", "zip=long"], "cannot use --type 'zip=long': 'zip' has a type already"),
    ],
)
def test_types_that_are_not_valid(tmp_path: Path, types: list[str], reason: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,zip\n1,2\n")
    options = [word for one in types for word in ("--type", one)]
    shown = run("write", tmp_path / "t", file, *options, code=2).stderr
    assert reason.format(file=file) in shown
    assert not (tmp_path / "t").exists()


def test_values_that_do_not_have_the_type(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,zip\n1,2\n2,x\n")
    shown = run("write", tmp_path / "t", tmp_path / "a.csv", "--type", "zip=int", code=3).stderr
    assert "cannot cast 'x' to integer" in shown
    assert f"in row 2 of '{tmp_path / 'a.csv'}', without its header" in shown
    assert not list(tmp_path.glob("t/_delta_log/*"))


def test_types_and_the_columns_of_a_table(table: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("zip,n\n1,2\n")
    write = ("write", table, tmp_path / "a.csv", "-m", "append")
    shown = run(*write, "--type", "n=string", code=2).stderr
    assert "the column of the table is of type integer; omit it" in shown
    run(*write, "--type", "n=int")
    pq = tmp_path / "a.parquet"
    shown = run("write", tmp_path / "u", pq, "--type", "n=int", code=2).stderr
    assert "as parquet with --type: a Parquet file has types" in shown


def test_csv_without_a_header(tmp_path: Path) -> None:
    rows = _written(tmp_path, "1,a\n2,b\n", "--no-header", "--type", "col1=int")
    assert rows.to_pylist() == [{"col1": 1, "col2": "a"}, {"col1": 2, "col2": "b"}]
    alter = DeltaTable(tmp_path / "new").to_pyarrow_table().rename_columns(["id", "name"])
    write_deltalake(tmp_path / "new", alter, mode="overwrite", schema_mode="overwrite")
    rows = _written(tmp_path, "3,c\n", "--no-header", "-m", "append")
    assert {"id": 3, "name": "c"} in rows.to_pylist()
    (tmp_path / "a.csv").write_text("4,d,e\n")
    write = ("write", tmp_path / "new", tmp_path / "a.csv", "--no-header", "-m", "append")
    assert (
        "with --no-header: expected 2 values in its first line, as the table has the columns id, "
        "name, found 3"
    ) in run(*write, code=2).stderr
    (tmp_path / "a.csv").write_text("x,d\n")
    assert "in row 1 of" in run(*write, code=3).stderr
    (tmp_path / "a.jsonl").write_text('{"a":1}\n')
    shown = run("write", tmp_path / "t", tmp_path / "a.jsonl", "--no-header", code=2).stderr
    assert "as json with --no-header: only CSV files have headers" in shown


def test_a_header_of_numbers(tmp_path: Path) -> None:
    for header, is_odd in (("1,a", True), ("a,1.5", True), ("a,2023,2024", False)):
        (tmp_path / "a.csv").write_text(f"{header}\n{header}\n")
        found = run("write", tmp_path / header, tmp_path / "a.csv")
        assert (
            "if the line is no header, write the file again with --no-header" in found.stderr
        ) == (is_odd)
        assert "warning" not in found.stdout
    (tmp_path / "a.csv").write_text("1,a\n2,b\n")
    assert not run("write", tmp_path / "t", tmp_path / "a.csv", "--no-header").stderr


def test_the_columns_of_a_new_table_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,a\n")
    write = ("write", tmp_path / "t", tmp_path / "a.csv")
    assert run(*write).stdout.splitlines() == [
        "1 row written as version 0",
        "  columns: id long, name string",
    ]
    assert run(*write, "-m", "append").stdout == "1 row written as version 1\n"
    assert run("write", tmp_path / "u", tmp_path / "a.csv", "--json").stdout.count("\n") == 1
    (tmp_path / "a.csv").write_text(",".join(map("c{}".format, range(30))) + "\n" + "1," * 29 + "1")
    assert run("write", tmp_path / "w", tmp_path / "a.csv").stdout.endswith(", and 10 more\n")


def test_columns_without_values_get_advice(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n")
    shown = run("write", tmp_path / "t", tmp_path / "a.csv", code=2).stderr
    assert "give the columns types, as in --type column=string" in shown
    run("write", tmp_path / "t", tmp_path / "a.csv", "--type", "id=long", "--type", "name=string")
    assert DeltaTable(tmp_path / "t").count() == 0
