"""Values of pandas and NumPy: what is stored has the same meaning, or is refused."""

from __future__ import annotations

import datetime as dt
import math
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from deltalog import DeltaTable, sql, write_deltalake
from deltalog.errors import InvalidInputError, SchemaMismatchError, VersionNotFoundError


@pytest.mark.parametrize("nested", [False, True])
def test_periods_are_not_stored_as_numbers(nested: bool, tmp_path: Path) -> None:
    frame = pd.DataFrame({"p": pd.period_range("2024-01", periods=2, freq="M")})
    rows = pa.Table.from_pandas(frame)
    if nested:
        periods = rows.column("p").combine_chunks()
        rows = pa.table({"p": pa.StructArray.from_arrays([periods], ["of"])})
    with pytest.raises(InvalidInputError, match=r"pandas periods of column 'p.*to_timestamp"):
        write_deltalake(tmp_path, rows)
    number = pa.table({"p": pa.array([{"of": 1}] if nested else [1])})
    write_deltalake(tmp_path, number)
    with pytest.raises(InvalidInputError, match=r"pandas periods of column 'p"):
        write_deltalake(tmp_path, rows, mode="append")
    assert DeltaTable(tmp_path).to_pyarrow_table().equals(number)


def test_a_column_of_nulls_gets_a_type_by_a_merged_schema(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pd.DataFrame({"a": [1], "s": [None]}))
    rows = pa.table({"a": [2], "s": ["x"]})
    with pytest.raises(SchemaMismatchError, match=r"'s' is of type void.*schema_mode='merge'"):
        write_deltalake(tmp_path, rows, mode="append")
    write_deltalake(tmp_path, rows, mode="append", schema_mode="merge")
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("a").to_pylist()
    assert found == [{"a": 1, "s": None}, {"a": 2, "s": "x"}]


@pytest.mark.parametrize("mode", [None, "merge"])
@pytest.mark.parametrize("rows", [{"b": [1]}, {"a": ["x"]}])
def test_an_overwrite_with_other_columns_names_the_option(
    rows: dict[str, list[object]], mode: Any, tmp_path: Path
) -> None:
    write_deltalake(tmp_path, pa.table({"a": pa.array([b"1"])}))
    given = pa.table(rows) if "b" in rows else pa.table({"a": pa.array([[1]])})
    if mode is None or "a" in rows:
        with pytest.raises(SchemaMismatchError, match=r"schema_mode='overwrite' .*replaces the"):
            write_deltalake(tmp_path, given, mode="overwrite", schema_mode=mode)
    with pytest.raises(SchemaMismatchError) as caught:
        write_deltalake(tmp_path, given, mode="append")
    assert "schema_mode='overwrite'" not in str(caught.value)
    write_deltalake(tmp_path, given, mode="overwrite", schema_mode="overwrite")
    assert DeltaTable(tmp_path).to_pyarrow_table().equals(given)


def test_integers_of_numpy_are_versions_and_limits(tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, pa.table({"a": [1]}), configuration=feed)
    write_deltalake(tmp_path, pa.table({"a": [2]}), mode="append")
    zero: Any = np.int64(0)
    one: Any = np.int32(1)
    assert DeltaTable(tmp_path, version=zero).version() == 0
    table = DeltaTable(tmp_path)
    assert table.load_cdf(zero, one).to_table().num_rows == 2
    assert table.head(one).num_rows == len(table.history(one)) == 1
    assert table.vacuum(keep_versions=[zero]) == []
    assert table.branch("draft", version=zero).version() == 0
    table.restore(zero)
    assert table.history(1)[0]["operationParameters"] == {"version": 0, "timestamp": None}
    wrong: Any
    for wrong in (True, np.float64(0)):
        with pytest.raises(InvalidInputError, match="is not a version: expected a number"):
            DeltaTable(tmp_path, version=wrong)
    with pytest.raises(InvalidInputError, match="version='a': expected a whole number"):
        table.branch("other", version=_any("a"))


def test_a_date_is_a_version_like_its_string(tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, pa.table({"a": [1]}), configuration=feed)
    write_deltalake(tmp_path, pa.table({"a": [2]}), mode="append")
    day = dt.date(2020, 1, 2)
    for version, midnight in enumerate((day, day + dt.timedelta(days=1))):
        seconds = dt.datetime.combine(midnight, dt.time(), dt.UTC).timestamp()
        os.utime(tmp_path / "_delta_log" / f"{version:020}.json", (seconds, seconds))
    assert DeltaTable(tmp_path, version=day).version() == 0
    table = DeltaTable(tmp_path)
    assert table.load_cdf(starting_timestamp=day, ending_timestamp=day).to_arrow().num_rows == 1
    assert table.diff(day).to_arrow().num_rows == 1
    assert next(iter(table.follow(start=day, max_files_per_step=1))).to_arrow().num_rows == 1
    table.load_as_version(day)
    assert table.version() == 0
    table = DeltaTable(tmp_path)
    table.restore(day)
    assert table.to_arrow().num_rows == 1
    errors = []
    early: Any
    for early in (day - dt.timedelta(days=1), "2020-01-01"):
        with pytest.raises(VersionNotFoundError) as caught:
            DeltaTable(tmp_path, version=early)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_all_rows_have_one_name(tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, pa.table({"a": [1, 2]}), configuration=feed)
    table = DeltaTable(tmp_path)
    rows: Any
    for rows in (table, table.scan(), sql("SELECT a FROM t", t=table)):
        assert rows.to_arrow()["a"].to_pylist() == [1, 2]
    for rows in (table.load_cdf(), table.diff(0)):
        assert rows.to_arrow() == rows.to_table()
    selected = table.to_arrow(columns=["a"], filters="a > :n", parameters={"n": 1})
    assert selected.to_pylist() == [{"a": 2}]
    wrong: Any = table
    with pytest.raises(TypeError, match=r"^DeltaTable\.to_arrow\(\) .*'limit': use scan\(limit=…"):
        wrong.to_arrow(limit=1)
    with pytest.raises(InvalidInputError, match=r"call to_arrow with .*columns="):
        wrong.to_arrow(["a"])


def _any(found: Any) -> Any:
    """The same object, for mypy without a class."""
    return found


def test_a_string_is_no_truth_value(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    table: Any = DeltaTable(tmp_path)
    for call in (table.vacuum, table.repair):
        with pytest.raises(InvalidInputError, match="dry_run='no': expected True or False"):
            call(dry_run="no")
    with pytest.raises(InvalidInputError, match="dry_run='false': expected True or False"):
        table.delete("a = 1", dry_run="false")
    assert table.count() == 1


def test_a_location_is_no_source(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    table: Any = DeltaTable(tmp_path)
    for source in (tmp_path, str(tmp_path)):
        with pytest.raises(InvalidInputError, match=r"found a location; pass DeltaTable\("):
            table.merge(source, "source.a = target.a")
    rows: Any = "rows.csv"
    with pytest.raises(InvalidInputError, match=r"a str: expected .*; read a file first"):
        write_deltalake(tmp_path, rows, mode="append")


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("FETCH FIRST 2 ROWS ONLY", [0, 1]),
        ("WHERE id > 3 FETCH NEXT 2 ROWS ONLY", [4, 5]),
        ("FETCH FIRST ROW ONLY", [0]),
        ("ORDER BY id DESC OFFSET 1 ROW FETCH FIRST 2 ROWS ONLY", [8, 7]),
    ],
)
def test_fetch_limits_the_rows(end: str, expected: list[int], tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"id": list(range(10))})
    found = sql(f"SELECT id FROM t {end}", t=tmp_path).to_pylist()  # noqa: S608  # constants
    assert [row["id"] for row in found] == expected


@pytest.mark.parametrize(
    "end",
    [
        "LIMIT 50 PERCENT",
        "FETCH FIRST 50 PERCENT ROWS ONLY",
        "ORDER BY 1 FETCH FIRST ROW WITH TIES",
    ],
)
def test_limits_that_are_no_number_of_rows_are_refused(end: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"id": [1, 2]})
    with pytest.raises(InvalidInputError, match="write LIMIT n"):
        sql(f"SELECT id FROM t {end}", t=tmp_path)  # noqa: S608  # constants


@pytest.mark.parametrize("value", [1.5, Decimal("1.5"), np.float64(0.5), math.nan, math.inf])
def test_an_update_loses_no_fraction(value: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"id": [1], "x": [1.0]})
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidInputError, match="pass a whole number"):
        table.update(new_values={"id": value})
    with (
        pytest.raises(InvalidInputError, match="pass a whole number"),
        table.transaction() as transaction,
    ):
        transaction.update(new_values={"ID": value})
    table.update(new_values={"id": 2.0, "x": value})
    assert table.to_pyarrow_table()["id"].to_pylist() == [2]
