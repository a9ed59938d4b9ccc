"""pandas gets the dtypes of its own readers, and frames of all of them are written exactly."""

from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.rows import DtypeBackend
from deltalog.errors import InvalidInputError
from tests.support.engines import DAY, bag, make_table

BACKENDS: tuple[DtypeBackend, ...] = ("pyarrow", "numpy_nullable")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    return make_table(str(tmp_path_factory.mktemp("table")))


@pytest.mark.parametrize("backend", BACKENDS)
def test_dtypes_are_those_of_pandas_own_readers(table: DeltaTable, backend: DtypeBackend) -> None:
    rows, stored = table.to_pyarrow_table(), io.BytesIO()
    pq.write_table(rows, stored)
    expected: dict[Any, Any] = dict(pd.read_parquet(stored, dtype_backend=backend).dtypes)
    # In pandas' readers these are Python's lists and dicts, with NaN where a number is NULL.
    expected |= {name: pd.ArrowDtype(rows.schema.field(name).type) for name in ("st", "li")}
    assert dict(table.to_pandas(dtype_backend=backend).dtypes) == expected
    assert dict(table.scan().to_pandas(dtype_backend=backend).dtypes) == expected


def test_values_are_exact(table: DeltaTable) -> None:
    for backend in BACKENDS:
        frame = table.to_pandas(
            filters="i is null or i < 2",
            dtype_backend=backend,
            columns=["i", "big", "x", "t", "d", "li"],
        ).sort_values("i")
        one, null = frame.iloc[1], frame.iloc[-1]
        assert (one["big"], one["x"]) == (2**62 + 1, Decimal("0.25"))
        assert (one["t"], one["d"]) == (DAY + dt.timedelta(days=1), dt.date(2024, 1, 2))
        assert list(one["li"]) == [1, None]
        assert all(pd.isna(value) for value in null)


@pytest.mark.parametrize("backend", [*BACKENDS, None], ids=str)
def test_frames_are_written_as_they_are(
    table: DeltaTable, backend: DtypeBackend | None, tmp_path: Path
) -> None:
    rows = table.to_pyarrow_table()
    if backend is None:  # NumPy has neither integers with NULL nor NULL beside NaN
        rows = table.to_pyarrow_table(
            columns=["i", "big", "s", "y", "b", "d", "t", "n", "x"], filters="i is not null"
        )
    frame = rows.to_pandas() if backend is None else table.to_pandas(dtype_backend=backend)
    # Where decimals are objects of Python's, their precision is that of the table.
    DeltaTable.create(tmp_path / "copy", rows.schema)
    write_deltalake(tmp_path / "copy", frame, mode="append")
    found = DeltaTable(tmp_path / "copy").to_pyarrow_table()
    if backend == "numpy_nullable":  # where NaN counts as NA, as everywhere in pandas
        nan_as_null = pc.if_else(pc.is_nan(rows["f"]), None, rows["f"])
        rows = rows.set_column(rows.column_names.index("f"), "f", nan_as_null)
    assert found.schema.types == rows.schema.types
    assert bag(found) == bag(rows)


def test_nan_is_no_null_with_arrow(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "table", pa.table({"f": [math.nan, None, 1.0]}))
    found = DeltaTable(tmp_path / "table").to_pandas(dtype_backend="pyarrow")["f"]
    assert (math.isnan(found[0]), found[1] is pd.NA, found[2]) == (True, True, 1.0)


def test_frames_without_rows_have_the_same_dtypes(table: DeltaTable) -> None:
    for backend in BACKENDS:
        empty = table.to_pandas(filters="i > 1000", dtype_backend=backend)
        assert len(empty) == 0
        assert list(empty.dtypes) == list(table.to_pandas(dtype_backend=backend).dtypes)


def test_without_a_backend_nothing_changes(table: DeltaTable) -> None:
    assert str(table.to_pandas()["i"].dtype) == "float64"
    mapped = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    assert str(mapped["i"].dtype) == "Int64"


def test_misuse_is_refused(table: DeltaTable) -> None:
    unknown: Any = "numpy"
    with pytest.raises(InvalidInputError, match="numpy_nullable"):
        table.to_pandas(dtype_backend=unknown)
    with pytest.raises(InvalidInputError, match="types_mapper"):
        table.to_pandas(dtype_backend="pyarrow", types_mapper=pd.ArrowDtype)
