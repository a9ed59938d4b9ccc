"""Python values that Arrow or a cast would change are refused, or are NULL as in dataframes."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError, InvalidInputError, SchemaMismatchError

DAY = date(2024, 1, 31)
NAIVE = datetime(2024, 1, 31, 5)  # noqa: DTZ001  # on purpose
AWARE = datetime(2024, 1, 31, 5, tzinfo=UTC)
ELSEWHERE = datetime(2024, 1, 31, 5, tzinfo=timezone(timedelta(hours=5)))
NAN = math.nan


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([DAY, NAIVE], "the values of 'x': they are dates and timestamps"),
        ([NAIVE, DAY], "no common Arrow type|values of several types"),
        ([NAIVE, AWARE], "they are timestamps and timestamps with a time zone"),
        ([AWARE, NAIVE], "they are timestamps and timestamps with a time zone"),
        ([[DAY, NAIVE]], "they are dates and timestamps"),
        ([{"day": DAY}, {"day": NAIVE}], "the values of 'x.day': they are dates and timestamps"),
        ([DAY, pd.Timestamp(NAIVE)], "they are dates and timestamps"),
        ([{"day": DAY}, {"day": pd.NaT}], "NaT is in a nested value"),
    ],
)
def test_mixed_dates_and_timestamps_are_refused(
    tmp_path: Path, values: list[Any], message: str
) -> None:
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    for data in ([{"x": value} for value in values], {"x": values}, {"x": frame["x"]}, frame):
        with pytest.raises(InvalidInputError, match=message):
            write_deltalake(tmp_path / "t", data)


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ([DAY, None, pd.NaT], [DAY, None, None]),
        ([NAIVE, pd.NaT], [NAIVE, None]),
        ([AWARE, pd.NaT, AWARE], [AWARE, None, AWARE]),
        (["a", NAN], ["a", None]),
        ([1, pd.NA], [1, None]),
        ([1.5, NAN, None], [1.5, "NaN", None]),
    ],
)
def test_missing_values_of_pandas_are_null(
    tmp_path: Path, values: list[Any], stored: list[Any]
) -> None:
    write_deltalake(tmp_path / "t", [{"x": value} for value in values])
    rows = DeltaTable(tmp_path / "t").to_pyarrow_table().column("x").to_pylist()
    assert ["NaN" if value != value else value for value in rows] == stored  # noqa: PLR0124  # NaN


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pd.DataFrame({"x": [1, 2]}).to_dict(), "found a dict; to write a DataFrame"),
        ({"x": {1, 2}}, "found a set; a set has no order"),
        ({"x": frozenset({1})}, "found a frozenset"),
    ],
)
def test_a_column_is_a_list(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        write_deltalake(tmp_path / "t", data)
    assert not (tmp_path / "t").exists()


CHANGES: list[tuple[Callable[[DeltaTable], object], str]] = [
    (lambda t: t.upsert({"id": [1.5]}, "id"), "cannot store double values of column 'id'"),
    (lambda t: t.upsert({"id": [Decimal("1.5")]}, "id"), "decimal.* values of column 'id'"),
    (lambda t: t.upsert({"id": [NAN]}, "id"), "cannot store double values of column 'id'"),
    (lambda t: t.upsert({"id": [1], "n": [2.5]}, "id"), "cannot store double values of column 'n'"),
    (lambda t: t.upsert({"id": [1], "name": [NAN]}, "id"), "cannot store NaN in column 'name'"),
    (lambda t: _appended(t, {"id": [5.5]}), "cannot store double values of column 'id'"),
    (lambda t: t.update(new_values={"name": NAN}), "cannot update 'name' with nan"),
    (
        lambda t: write_deltalake(t, [{"id": 1, "name": NAN}], mode="append"),
        "cannot store NaN in column 'name'",
    ),
    (
        lambda t: write_deltalake(t, pl.DataFrame({"name": [NAN]}), mode="append"),
        "cannot store NaN in column 'name'",
    ),
    (lambda t: t.update({"name": "2024-01-31"}), "write a date as DATE'2024-01-31'"),
    (lambda t: t.delete("name = 2024-01-31"), "write a date as DATE'2024-01-31'"),
]


def _appended(table: DeltaTable, rows: Any) -> int:
    with table.appender(upsert="id") as appender:
        future = appender.append(rows)
    return future.result()


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_values_that_a_cast_would_change_are_refused(
    tmp_path: Path, change: Callable[[DeltaTable], object], message: str
) -> None:
    write_deltalake(tmp_path, {"id": [1, 2], "name": ["a", "b"], "n": [1, 2]})
    with pytest.raises(DeltaError, match=message):
        change(DeltaTable(tmp_path))
    table = DeltaTable(tmp_path)
    assert table.version() == 0
    assert table.to_pyarrow_table().column("id").to_pylist() == [1, 2]


VALUES: dict[str, list[Any]] = {
    "day": [NAIVE, AWARE, "2024-01-31", "2024-01-31T05:00", "2024-01", "x", 5],
    "naive": [DAY, AWARE, ELSEWHERE, "2024-01-31 05:00:00", "2024-01-31 05:00:00+02:00", 5],
    "aware": [DAY, NAIVE, ELSEWHERE, "2024-01-31T05:00+02:00", "2024-01", 5],
    "number": [
        1.505,
        1.5,
        "1.505",
        "1.5",
        math.inf,
        Decimal("1.505"),
        Decimal("1.50"),
        Decimal("1e30"),
        True,
        5,
    ],
    "single": [1.1, 2**30 + 1, "1.5", Decimal("1.1"), 1e300],
    "flag": [0, 1, "true", 1.5],
    "name": [5, 1.5, True, DAY, NAIVE, b"x", Decimal("1.0"), NAN],
    "small": [300, 1.0, 1.5, "1", True, -129],
    "data": ["x", 5],
}


@pytest.mark.parametrize("column", VALUES)
def test_upserts_store_values_as_writes_do(tmp_path: Path, column: str) -> None:
    rows = pa.table(
        {
            "id": [1],
            "day": [DAY],
            "naive": [NAIVE],
            "aware": pa.array([AWARE]),
            "number": [Decimal("1.50")],
            "single": pa.array([1.5], pa.float32()),
            "flag": [True],
            "name": ["x"],
            "small": pa.array([1], pa.int8()),
            "data": [b"x"],
        }
    )
    calls: list[Callable[[str, Any], object]] = [
        lambda path, data: write_deltalake(path, data, mode="append"),
        lambda path, data: DeltaTable(path).upsert(data, "id"),
        lambda path, data: _appended(DeltaTable(path), data),
    ]
    for value in VALUES[column]:
        found: list[Any] = []
        for number, call in enumerate(calls):
            path = str(tmp_path / f"{number}-{value!r}".replace("/", ""))
            write_deltalake(path, rows)
            try:
                call(path, {"id": [2], column: [value]})
            except DeltaError as error:
                found.append(type(error))
                assert DeltaTable(path).version() == 0
            else:
                stored = DeltaTable(path).scan(predicate="id = 2").to_table().column(column)
                found.append(stored.to_pylist())
        assert found[0] == found[1] == found[2], value


@pytest.mark.parametrize(
    ("column", "value", "advice"),
    [
        ("day", NAIVE, r"pass value\.date\(\)"),
        ("day", "2024-01-31T05:00", "not just one day; expected YYYY-MM-DD"),
        ("day", "2024-01", "not just one day"),
        ("naive", "2024-01-31 05:00:00+02:00", "has a time zone"),
        ("naive", pd.Timestamp(1), r"pass value\.floor\('us'\)"),
        ("naive", 5, "pass a date or datetime"),
        ("number", "1.505", "round '1.505' to 2 digits"),
        ("number", math.inf, "pass None for a missing value"),
        ("single", 2**24 + 1, r"pass float\(16777217\) to round it"),
        ("single", "1e39", "out of range of float"),
        ("number", Decimal("1.505"), "round it to 2 digits"),
        ("number", Decimal("1.5000000000000000000000000000000000001"), "round it to 2 digits"),
        ("single", 1e300, "pass a smaller number"),
        ("flag", 2, "pass True or False"),
        ("name", NAN, "pass None for a missing value"),
        ("small", 1.5, "pass a whole number"),
    ],
)
def test_new_values_that_a_column_cannot_store(
    tmp_path: Path, column: str, value: Any, advice: str
) -> None:
    rows: dict[str, Any] = {"day": [DAY], "naive": [NAIVE], "flag": [True]}
    rows["number"] = [Decimal("1.50")]
    types: dict[str, Any] = {
        "single": pa.array([1.5], pa.float32()),
        "small": pa.array([1], pa.int8()),
    }
    write_deltalake(tmp_path, pa.table({**rows, **types, "name": ["x"]}))
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidInputError, match=f"cannot update '{column}' with .*{advice}"):
        table.update(new_values={column: value})
    assert table.version() == 0


def test_a_string_with_a_time_is_no_key_of_days(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "day date, n long")
    table.upsert({"day": ["2024-01-31"], "n": [1]}, "day")
    with pytest.raises(SchemaMismatchError, match="'2024-01-31T23:00' is not just one day"):
        table.upsert({"day": ["2024-01-31T23:00"], "n": [2]}, "day")
    assert table.to_pyarrow_table().to_pylist() == [{"day": DAY, "n": 1}]


def _writes(key: str) -> list[Callable[[DeltaTable, Any], object]]:
    return [
        lambda table, rows: write_deltalake(table, rows, mode="append"),
        lambda table, rows: table.upsert(rows, key),
    ]


@pytest.mark.parametrize("values", [[AWARE, ELSEWHERE], [ELSEWHERE, AWARE], [None, ELSEWHERE]])
@pytest.mark.parametrize(
    "rows",
    [
        lambda values: {"at": values},
        lambda values: [{"at": one} for one in values],
        lambda values: pa.table({"at": pa.array(values, pa.timestamp("ns", "Asia/Karachi"))}),
        lambda values: pd.DataFrame({"at": pd.Series(values, dtype=object)}),
    ],
    ids=["columns", "rows", "arrow", "pandas"],
)
def test_times_of_another_zone_do_not_become_local_times(
    tmp_path: Path, rows: Callable[[list[Any]], Any], values: list[Any]
) -> None:
    table = DeltaTable.create(tmp_path, "at timestamp_ntz")
    for write in _writes("at"):
        with pytest.raises(SchemaMismatchError, match=r"cannot store timestamp values of .*'at'"):
            write(table, rows(values))
    assert table.version() == 0


@pytest.mark.parametrize(
    ("kind", "value", "advice"),
    [
        ("map<string, int>", {"a": 1.5}, "cannot store 1.5 .*: round it to a whole number"),
        ("map<string, int>", {"a": Decimal("1.5")}, "round it to a whole number"),
        ("map<int, string>", {1.5: "a"}, "round it to a whole number"),
        ("map<string, float>", {"a": 1e300}, "out of range of float"),
        ("map<string, double>", {"a": True}, r"pass 1\.0"),
        ("map<string, date>", [("a", NAIVE)], r"pass value\.date\(\)"),
        ("map<string, date>", {"a": 5}, "pass a date"),
        ("struct<m: map<string, array<int>>>", {"m": {"a": [1.5]}}, "whole number"),
    ],
)
def test_values_in_maps_are_not_changed(tmp_path: Path, kind: str, value: Any, advice: str) -> None:
    table = DeltaTable.create(tmp_path, {"id": "long", "m": kind})
    frame = pd.DataFrame({"id": [1, 2], "m": [None, value]})
    for data in (
        {"id": [1, 2], "m": [None, value]},
        [{"id": 1, "m": None}, {"id": 2, "m": value}],
        frame,
    ):
        for write in _writes("id"):
            with pytest.raises(SchemaMismatchError, match=f"{advice}; in row 2 of the data"):
                write(table, data)
    assert table.version() == 0


def test_fields_of_another_zone_do_not_become_local_times(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id long, s struct<at: timestamp_ntz>")
    data = {"id": [1], "s": [{"at": ELSEWHERE}]}
    for write in _writes("id"):
        with pytest.raises(
            SchemaMismatchError, match=r"column 's\.at' as timestamp_ntz: they have"
        ):
            write(table, data)


@pytest.mark.parametrize("value", ["1.500", "100", "0.00", "-0.10", "1E+2"])
def test_decimals_without_more_digits_are_stored(tmp_path: Path, value: str) -> None:
    write_deltalake(tmp_path, {"x": [Decimal("123.45")]})
    table = DeltaTable(tmp_path)
    table.update(new_values={"x": Decimal(value)})
    assert table.to_pyarrow_table().column("x").to_pylist() == [Decimal(value)]


def test_whole_numbers_of_data_frames_are_keys(tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"id": [1, 2], "n": [1, 2]})
    table = DeltaTable(tmp_path)
    table.upsert(pd.DataFrame({"id": [2.0, 3.0], "n": [5, None]}), "id")
    rows = table.to_pyarrow_table().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "n": 1}, {"id": 2, "n": 5}, {"id": 3, "n": None}]


@pytest.mark.parametrize(
    "text", ["'2024-01-31'", "DATE'2024-01-31'", "concat('on 2024-01-31', `a-2024-01-31`)"]
)
def test_dates_in_quotes_are_values(tmp_path: Path, text: str) -> None:
    write_deltalake(tmp_path, {"id": [1], "name": ["a"], "a-2024-01-31": ["b"]})
    table = DeltaTable(tmp_path)
    table.update({"name": text})
    assert "2024-01-31" in table.to_pyarrow_table().column("name")[0].as_py()
