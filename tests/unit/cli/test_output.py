"""Rows as the command line prints them."""

from __future__ import annotations

import pyarrow as pa

from deltalog import DeltaTable
from tests.support.command_line import lines, run


def test_scan_as_json_lines(table: str) -> None:
    found = lines("scan", table, "--where", "id = 2")
    assert found == [
        {
            "id": 2,
            "name": "b,c",
            "at": "2024-01-01T00:00:00+00:00",
            "day": "2024-01-01",
            "price": "1.50",
            "raw": "",
            "part": {"x": "nan", "y": None},
        }
    ]


def test_scan_as_csv(table: str) -> None:
    text = run("scan", table, "-c", "name", "-c", "id", "-c", "part", "-n", 2, "-f", "csv").stdout
    assert text.splitlines() == [
        '"name","id","part"',
        '"a",1,"{""x"":1.5,""y"":[1]}"',
        '"b,c",2,"{""x"":""nan"",""y"":null}"',
    ]
    assert run("scan", table, "-f", "csv").stdout.count("\n") == 5


def test_scan_as_arrow(table: str) -> None:
    data = run("scan", table, "--where", "id <> 2", "-f", "arrow").stdout_bytes  # 2 has a NaN
    rows = DeltaTable(table).scan(predicate="id <> 2").to_table()
    assert pa.ipc.open_stream(data).read_all().equals(rows)


def test_scan_as_a_table(table: str) -> None:
    text = run("scan", table, "-c", "id", "-c", "name").stdout
    assert " \n" not in text
    assert [line.split() for line in text.splitlines()] == [
        ["id", "name"],
        ["1", "a"],
        ["2", "b,c"],
        ["3"],
        ["1", "a"],
    ]
