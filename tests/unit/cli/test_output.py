"""Rows as the command line prints them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.cli.application import lay_out
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
        ["3", "NULL"],
        ["1", "a"],
    ]


def test_facts_are_told_in_units_and_empty_columns_left_out(table: str) -> None:
    text = run("files", table).stdout
    header = text.splitlines()[0].split()
    assert "size_bytes" in header
    assert "partition.x" not in header
    assert " KiB" in text
    year = str(DeltaTable(table).history()[0]["timestamp"])
    assert year not in run("history", table).stdout
    assert "tags" not in header
    assert isinstance(lines("files", table)[0]["size_bytes"], int)


def test_values_that_python_does_not_have_are_texts(tmp_path: Path) -> None:
    day = pa.array([4_000_000], pa.int32()).cast(pa.date32())
    nested = pa.StructArray.from_arrays([day], ["d"])
    write_deltalake(tmp_path, pa.table({"d": day, "s": nested}))
    assert lines("scan", tmp_path) == [{"d": "+12921-08-18", "s": {"d": "+12921-08-18"}}]
    shown = ["d", "s", "+12921-08-18", '{"d":"+12921-08-18"}']
    assert run("scan", tmp_path).stdout.split() == shown
    # A date of CSV is Arrow's.
    csv = '12921-08-18,"{""d"":""+12921-08-18""}"'
    assert run("scan", tmp_path, "-f", "csv").stdout.splitlines()[1:] == [csv]


def test_years_that_arrow_does_not_print_are_texts_in_csv(tmp_path: Path) -> None:
    days = pa.array([2**31 - 1, -(2**31), None], pa.int32()).cast(pa.date32())
    moments = pa.array([2**63 - 1, -(2**63), 0], pa.int64()).cast(pa.timestamp("us", "UTC"))
    write_deltalake(tmp_path, pa.table({"d": days, "t": moments, "n": [1, 2, 3]}))
    assert run("scan", tmp_path, "-f", "csv").stdout.splitlines() == [
        '"d","t","n"',
        '"+5881580-07-11","+294247-01-10 04:00:54.775807+00:00",1',
        '"-5877641-06-23","-290308-12-21 19:59:05.224192+00:00",2',
        ',"1970-01-01 00:00:00+00:00",3',
    ]


def test_rows_of_a_table_are_shown_as_they_are(tmp_path: Path) -> None:
    """A column that is called as a fact of ours is none; a column without a value is a column."""
    uri = str(tmp_path / "sizes")
    write_deltalake(uri, pa.table({"size_bytes": [5000], "none": pa.nulls(1, pa.string())}))
    assert run("scan", uri).stdout.split() == ["size_bytes", "none", "5000", "NULL"]


_WIDE = [["part-0000/very-long-name-of-a-file-that-says-nothing.parquet", "12345", "x" * 30]]


def test_without_a_width_nothing_is_cut() -> None:
    shown, num_left_out = lay_out(["path", "size", "text"], _WIDE, None)
    assert num_left_out == 0
    assert shown[1].split("  ") == _WIDE[0]


@pytest.mark.parametrize("width", [3, 12, 30, 40, 60, 80, 200])
def test_lines_fit_the_width(width: int) -> None:
    shown, num_left_out = lay_out(["path", "size", "text"], _WIDE, width)
    assert all(len(line) <= width for line in shown)
    assert (num_left_out > 0) is (width < 49)


def test_paths_are_cut_in_the_middle() -> None:
    shown, _ = lay_out(["path", "size", "text"], _WIDE, 60)
    path, size, text = shown[1].split("  ")
    assert path.startswith("part-0000")
    assert path.endswith(".parquet")
    assert "…" in path
    assert size == "12345"
    assert text.endswith("…")


def test_wide_letters_take_two_places() -> None:
    shown, _ = lay_out(["a", "b"], [["日本語" * 10, "x"]], 30)
    assert [line.index("b") for line in shown[:1]] == [29]
    assert shown[1].endswith("…  x")


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "2024-01-02 03:04:05Z"),
        (datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=UTC), "2024-01-02 03:04:05.678Z"),
        (datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2024-01-02 03:04:05.000006Z"),
        (datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03:04:05"),  # noqa: DTZ001 - has no time zone
    ],
)
def test_times_of_rows_are_shown_as_those_of_the_history(
    tmp_path: Path, moment: datetime, shown: str
) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"at": [moment]})
    assert run("scan", place).stdout.split("\n")[1] == shown


def test_times_of_branches(table: str) -> None:
    DeltaTable(table).branch("b")
    created = run("branches", table).stdout.splitlines()[1].split("  ")[-2].strip()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", created)
