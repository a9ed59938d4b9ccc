"""Columns of Python's objects in frames of Polars, whose streams of Arrow have addresses."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.data.write import open_batches
from deltalog.errors import DeltaError, InvalidInputError

ONE = UUID(int=5)
TEXT = "00000000-0000-0000-0000-000000000005"


def _frame(*values: object) -> pl.DataFrame:
    numbers = list(range(len(values)))
    return pl.DataFrame({"id": numbers, "c": pl.Series(values, dtype=pl.Object)})


def _narwhals(frame: pl.DataFrame) -> Any:
    return pytest.importorskip("narwhals").from_native(frame)


def _narwhals_columns(frame: pl.DataFrame) -> Any:
    return {name: _narwhals(frame)[name] for name in frame.columns}


FORMS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "frame": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "list": lambda frame: [frame],
    "generator": lambda frame: (one for one in [frame]),
    "narwhals": _narwhals,
    "lazy narwhals": lambda frame: _narwhals(frame).lazy(),
    "columns": lambda frame: frame.to_dict(),
    "narwhals columns": _narwhals_columns,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("values", "stored", "kind"),
    [
        ([ONE, None], [TEXT, None], pa.string()),
        ([PurePosixPath("/a/b")], ["/a/b"], pa.string()),
        ([ONE, PurePosixPath("x")], [TEXT, "x"], pa.string()),
        (
            [Decimal("1.5"), None, Decimal("1E+5"), Decimal("-0.001")],
            [Decimal("1.500"), None, Decimal(100_000), Decimal("-0.001")],
            pa.decimal128(9, 3),
        ),
        ([Decimal(10**38 - 1)], [Decimal(10**38 - 1)], pa.decimal128(38, 0)),
        ([None], [None], pa.null()),
    ],
)
def test_objects_that_have_a_type_are_its_values(
    tmp_path: Path, values: list[Any], stored: list[Any], kind: Any, form: Any
) -> None:
    write_deltalake(tmp_path, form(_frame(*values)))
    found = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")["c"]
    assert found.to_pylist() == stored
    assert found.type == kind


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([{1, 2}], "set"),
        ([object(), None], "object"),
        ([ONE, "x"], "UUID, str"),
        ([Decimal(1), 1], "Decimal, int"),
        ([Decimal("NaN")], "Decimal"),
        ([Decimal("1.5"), Decimal("1E+37")], "Decimal"),
        ([Decimal(10**38)], "Decimal"),
        ([PurePosixPath("/\udcff")], "PurePosixPath"),
        (["x"], "str"),
        ([b"12345678"], "bytes"),
    ],
)
def test_other_objects_are_refused(values: list[Any], found: str, form: Any) -> None:
    with pytest.raises(InvalidInputError, match=rf"'c', a Polars Object.*found {found};"):
        open_batches(form(_frame(*values))).read_all()


def test_a_field_may_be_called_as_a_type() -> None:
    frame = pl.DataFrame({"c": [{"Object": 1, "Int128": 2}]})
    assert open_batches(frame).read_all().to_pylist() == [{"c": {"Object": 1, "Int128": 2}}]


def _merge(table: DeltaTable, frame: pl.DataFrame) -> object:
    merge = table.merge(frame, "s.id = t.id", "s", "t").when_matched_update_all()
    return merge.when_not_matched_insert_all().execute()


def _append_later(table: DeltaTable, frame: pl.DataFrame) -> object:
    with table.appender() as appender:
        answer = appender.append(frame)
    return answer.result()


def _transaction(table: DeltaTable, frame: pl.DataFrame) -> None:
    with table.transaction() as transaction:
        transaction.append(frame)


WAYS: dict[str, Callable[[DeltaTable, pl.DataFrame], object]] = {
    "append": lambda table, frame: write_deltalake(table, frame, mode="append"),
    "overwrite": lambda table, frame: write_deltalake(table, frame, mode="overwrite"),
    "merge": _merge,
    "appender": _append_later,
    "transaction": _transaction,
    "INSERT": lambda table, frame: deltalog.sql("INSERT INTO t SELECT * FROM f", t=table, f=frame),
    "INSERT lazy": lambda table, frame: deltalog.sql(
        "INSERT INTO t SELECT * FROM f", t=table, f=frame.lazy()
    ),
    "MERGE": lambda table, frame: deltalog.sql(
        "MERGE INTO t USING f ON t.id = f.id WHEN NOT MATCHED THEN INSERT *", t=table, f=frame
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_way_into_a_table_stores_addresses(tmp_path: Path, way: Any) -> None:
    write_deltalake(tmp_path, pa.table({"id": [7], "c": ["x"]}))
    way(DeltaTable(tmp_path), _frame(ONE))
    rows = DeltaTable(tmp_path).to_pyarrow_table().to_pylist()
    assert {"id": 0, "c": TEXT} in rows
    before = DeltaTable(tmp_path).version()
    with pytest.raises(DeltaError, match="Polars Object"):
        way(DeltaTable(tmp_path), _frame(object()))
    assert DeltaTable(tmp_path).version() == before


def test_a_binary_column_takes_no_addresses(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [7], "c": [b"x"]}))
    with pytest.raises(DeltaError):
        write_deltalake(tmp_path, _frame(object()), mode="append")
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == [{"id": 7, "c": b"x"}]


def test_queries_read_no_addresses() -> None:
    pytest.importorskip("duckdb")
    found = deltalog.sql("SELECT c FROM f", f=_frame(ONE))
    assert found.to_arrow().to_pylist() == [{"c": TEXT}]
    with pytest.raises(InvalidInputError, match="Polars Object"):
        deltalog.sql("SELECT c FROM f", f=_frame(object()))
