"""Mistakes of the readers who tried the library for the third time, and what they are answered."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, col, write_deltalake
from deltalog.errors import DataFileMissingError, DeltaError, InvalidInputError

OTHER_MODE: Any = {"mode": "upsert"}
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["a", "b", None],
        "dec": pa.array([Decimal("1.50"), None, None], pa.decimal128(6, 2)),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", ROWS)
    return DeltaTable(tmp_path / "t")


def grouped() -> pd.DataFrame:
    return pd.DataFrame({"g": ["a"], "v": [1]}).groupby("g").agg({"v": ["min", "max"]})


WRONG_ROWS: dict[str, tuple[Callable[[], Any], str]] = {
    "levels": (grouped, r"names of 2 levels, such as \('v', 'min'\); join them first"),
    "objects": (
        lambda: pd.DataFrame({"id": [1, "two"]}),
        r"column 'id' has values of several types: 1 \(int, in row 1\) and 'two' \(str, in row 2\)",
    ),
    "batches": (
        lambda: [pa.record_batch({"id": [1]}), pa.record_batch({"id": ["x"]})],
        "batch 2 has another schema than the first one.*cast the batches to one schema",
    ),
    "case": (lambda: pa.table({"ID": [1], "id": [2]}), "'ID', 'id'.*rename"),
    "text": (lambda: "rows.csv", "read a file first"),
}


@pytest.mark.parametrize("name", WRONG_ROWS)
@pytest.mark.parametrize("mode", ["error", "append"])
def test_rows_that_cannot_be_written_name_the_table(name: str, mode: Any, tmp_path: Path) -> None:
    place = tmp_path / "rows"
    if mode == "append":
        write_deltalake(place, ROWS)
    rows, message = WRONG_ROWS[name]
    with pytest.raises(DeltaError, match=message) as caught:
        write_deltalake(place, rows(), mode=mode)
    assert str(place) in str(caught.value)


def divided() -> Iterator[dict[str, float]]:
    for number in (1, 0):
        yield {"id": 1 / number}


@pytest.mark.parametrize("mode", ["error", "append"])
@pytest.mark.parametrize(
    "rows",
    [
        lambda: pl.LazyFrame({"id": ["x"]}).select(pl.col("id").cast(pl.Int64)),
        lambda: duckdb.sql("SELECT CAST(x AS INT) AS id FROM (VALUES ('1'), ('a')) v(x)"),
        divided,
    ],
    ids=["polars", "duckdb", "generator"],
)
def test_errors_of_the_rows_themselves_get_a_note(
    rows: Callable[[], Any], mode: Any, tmp_path: Path
) -> None:
    place = tmp_path / "rows"
    if mode == "append":
        write_deltalake(place, ROWS)
    with pytest.raises(Exception, match=r"(?s).") as caught:
        write_deltalake(place, rows(), mode=mode)
    assert not isinstance(caught.value, DeltaError)
    assert [note for note in caught.value.__notes__ if str(place) in note]


@pytest.mark.parametrize(
    ("rows", "wider"),
    [
        (pa.table({"dec": [Decimal("123456.78")]}), ("dec", "decimal(8,2)")),
        (pa.table({"id": pa.array([2**63], pa.uint64())}), ("id", "decimal(20,0)")),
    ],
    ids=["decimal", "uint64"],
)
def test_a_number_out_of_range_names_the_type_that_stores_it(
    rows: pa.Table, wider: tuple[str, str], table: DeltaTable
) -> None:
    with pytest.raises(DeltaError, match="out of range") as caught:
        write_deltalake(table, rows, mode="append")
    assert f"alter.set_column_type{wider}" in str(caught.value)
    table.alter.set_table_properties({"delta.enableTypeWidening": "true"})
    table.alter.set_column_type(*wider)
    write_deltalake(table, rows, mode="append")
    assert table.count() == 4


def test_a_table_that_was_replaced_by_another(table: DeltaTable) -> None:
    place = Path(table.table_uri)
    shutil.rmtree(place)
    write_deltalake(place, {"z": ["new"]})
    with pytest.raises(DataFileMissingError, match=r"replaced by a table with id .*open the"):
        table.to_pandas()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.load_cdf(3, 1), "changes 3 to 1 of .*the range ends before it starts"),
        (
            lambda t: write_deltalake(t, ROWS, mode="append", predicate="id = 1"),
            "cannot write to .*t: a predicate needs mode='overwrite'.*filter them first",
        ),
        (
            lambda t: write_deltalake(t, ROWS, **OTHER_MODE),
            r"cannot write to .*DeltaTable\.upsert",
        ),
        (
            lambda t: t.update({"name": "FR"}),
            r"there is no column 'FR'.*'FR', and new_values=\{'name': 'FR'\} passes Python values",
        ),
        (
            lambda t: t.alter.add_columns({"x": "texts"}),
            "cannot add columns to .*t: column 'x': cannot make a type of 'texts'",
        ),
        (lambda t: t.optimize.compact("id > 5.0"), "where id > 5: expected a condition"),
        (lambda _: deltalog.enable_preview("branches"), "branches need not be enabled"),
        (
            lambda t: t.to_pyarrow_dataset().to_table(columns="id"),
            r"cannot read .* with columns='id': expected a list of names, such as \['id'\]",
        ),
        (lambda t: t.to_pyarrow_dataset().head("5"), "num_rows='5': expected a whole number"),
        (
            lambda t: t.to_pyarrow_dataset().scanner(batch_size="x"),
            "batch_size='x': expected a whole number",
        ),
    ],
)
def test_mistakes(call: Callable[[DeltaTable], object], message: str, table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call(table)
    assert DeltaTable(table.table_uri).version() == 0


def test_none_among_the_options_of_is_in(
    table: DeltaTable, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert table.scan(predicate=col("name").is_in(["a", None])).count() == 1
    assert "does not match NULL: write … OR name IS NULL for it" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert table.scan(predicate=~col("name").is_in(["a", None])).count() == 0
    assert [record.getMessage() for record in caplog.records] == [
        "name NOT IN ('a', NULL) is never true, because of the NULL; use IS NOT NULL for it"
    ]


def test_an_upsert_of_null_keys(table: DeltaTable, caplog: pytest.LogCaptureFixture) -> None:
    rows = pa.table({"id": pa.array([None, 1, None], pa.int64()), "name": ["x", "y", "z"]})
    with caplog.at_level(logging.WARNING):
        table.upsert(rows, "id")
    (record,) = caplog.records
    assert record.getMessage().startswith(
        f"2 rows of the data with a NULL key match no row of {table.table_uri}, and are inserted"
    )
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        table.upsert(rows.slice(0, 1), ["id", "name"], null_safe=True)
        table.upsert(rows.slice(1, 1), "id")
    assert not caplog.records


def test_a_new_column_of_nulls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        write_deltalake(tmp_path, pd.DataFrame({"id": [1, 2], "note": [None, None]}))
    assert "columns with only NULLs, whose type is void: 'note'; cast them" in caplog.text
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidInputError, match="schema_mode='merge' gives it the type of the new"):
        table.update({"note": "date'2024-01-31'"})
    rows = pa.table({"id": [3], "note": [date(2024, 1, 31)]})
    write_deltalake(table, rows, mode="append", schema_mode="merge")
    assert table.update({"note": "date'2024-01-31'"})["num_updated_rows"] == 3
