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
