"""Every operation that takes rows takes every kind of rows, and converts their values alike."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError
from deltalog.table import appender as appenders

COLUMNS: dict[str, Any] = {
    "id": ["b", "c"],
    "day": [date(2024, 1, 2), date(2024, 1, 3)],
    "tags": [["x"], ["y", None]],
    "info": [{"city": "Rome"}, {"city": None}],
}
FIRST: dict[str, Any] = {
    "id": ["a", "b"],
    "day": [date(2023, 1, 1), date(2023, 1, 1)],
    "tags": [["u"], []],
    "info": [{"city": "Oslo"}, None],
}


def _views() -> pa.Table:
    """Strings at every depth as views."""
    view = pa.string_view()
    table = pa.table(COLUMNS)
    info = pa.StructArray.from_arrays([pa.array(["Rome", None], view)], ["city"])
    tags = pa.ListArray.from_arrays([0, 1, 3], pa.array(["x", "y", None], view))
    return table.set_column(0, "id", pa.array(["b", "c"], view)).set_column(
        2, "tags", tags
    ).set_column(3, "info", info)  # fmt: skip


def _dictionaries() -> pa.Table:
    ids = pa.DictionaryArray.from_arrays(
        pa.array([0, 1], pa.int8()), pa.array(["b", "c"], pa.string_view())
    )
    return pa.table(COLUMNS).set_column(0, "id", ids)


KINDS: dict[str, Callable[[], Any]] = {
    "a dict": lambda: COLUMNS,
    "rows": lambda: pa.table(COLUMNS).to_pylist(),
    "a table": lambda: pa.table(COLUMNS),
    "views": _views,
    "dictionaries": _dictionaries,
    "a reader": lambda: pa.table(COLUMNS).to_reader(),
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "Polars": lambda: pl.DataFrame(COLUMNS),
    "lazy Polars": lambda: pl.LazyFrame(COLUMNS),
    "Polars categories": lambda: pl.DataFrame(COLUMNS).with_columns(
        pl.col("id").cast(pl.Categorical)
    ),
    "DuckDB": lambda: duckdb.from_arrow(pa.table(COLUMNS)),
    "strings of days": lambda: {**COLUMNS, "day": ["2024-01-02", "2024-01-03"]},
    "Polars strings": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("day").cast(pl.String)),
}


def _merged(table: DeltaTable, rows: Any) -> object:
    merger = table.merge(rows, "target.id = source.id")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


def _by_appender(table: DeltaTable, rows: Any, **options: Any) -> object:
    with table.appender(**options) as appender:
        future = appender.append(rows)
    return future.result()


def _in_transaction(table: DeltaTable, rows: Any) -> None:
    with table.transaction() as transaction:
        transaction.append(rows)


APPENDS: dict[str, Callable[[DeltaTable, Any], object]] = {
    "write_deltalake": lambda t, rows: write_deltalake(t, rows, mode="append"),
    "appender": _by_appender,
    "transaction": _in_transaction,
}
UPSERTS: dict[str, Callable[[DeltaTable, Any], object]] = {
    "upsert": lambda t, rows: t.upsert(rows, "id"),
    "merge": _merged,
    "appender": lambda t, rows: _by_appender(t, rows, upsert="id"),
    "SQL": lambda t, rows: deltalog.sql(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *", t=t, s=rows,
    ),
}  # fmt: skip


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["id"], row["day"]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", [*APPENDS, "write_files"])
def test_appended(tmp_path: Path, operation: str, kind: str) -> None:
    first, new = pa.table(FIRST), pa.table(COLUMNS)
    write_deltalake(tmp_path, first)
    table = DeltaTable(tmp_path)
    if operation == "write_files":
        table.commit(deltalog.write_files(table.write_spec(), KINDS[kind]()))
    else:
        APPENDS[operation](table, KINDS[kind]())
    expected = [*first.to_pylist(), *new.to_pylist()]
    assert _rows(tmp_path) == sorted(expected, key=lambda row: (row["id"], row["day"]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", UPSERTS)
def test_upserted(tmp_path: Path, operation: str, kind: str) -> None:
    write_deltalake(tmp_path, pa.table(FIRST))
    UPSERTS[operation](DeltaTable(tmp_path), KINDS[kind]())
    assert _rows(tmp_path) == [pa.table(FIRST).to_pylist()[0], *pa.table(COLUMNS).to_pylist()]


def test_a_table_is_upserted_into_itself_by_polars(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table(FIRST))
    table = DeltaTable(tmp_path)
    changed = table.to_polars().with_columns(day=date(2025, 1, 1))
    assert table.upsert(changed, "id")["num_target_rows_updated"] == 2


def test_an_error_of_the_appender_itself_reaches_every_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, {"id": [1]})
    entered, go_on = threading.Event(), threading.Event()

    def failing(*_: object) -> object:
        entered.set()
        go_on.wait(60)
        raise MemoryError("no memory is left")

    monkeypatch.setattr(appenders.Appender, "_let_in", failing)
    appender = DeltaTable(tmp_path).appender()
    first = appender.append({"id": [2]})
    assert entered.wait(60)
    second = appender.append({"id": [3]})
    go_on.set()
    assert first.result(60) == 1
    with pytest.raises(MemoryError, match="no memory is left"):
        second.result(60)
    with pytest.raises(DeltaError, match="the appender is closed"):
        appender.append({"id": [4]})
    appender.close()
    ids: list[Any] = DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()
    assert sorted(ids) == [1, 2]
