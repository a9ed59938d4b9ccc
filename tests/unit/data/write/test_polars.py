"""Frames of Polars that Arrow has no words for: queries, integers of 128 bits, categories."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from polars.io.plugins import register_io_source

from deltalog import DeltaTable, write_deltalake
from deltalog.data.write import open_batches
from deltalog.errors import InvalidInputError


def test_a_lazy_frame_runs_while_it_is_read() -> None:
    asked = 0

    def numbers(*_: Any) -> Iterator[pl.DataFrame]:
        nonlocal asked
        for start in range(1_000):
            asked += 1
            yield pl.DataFrame({"id": range(1_000 * start, 1_000 * start + 1_000)})

    lazy = register_io_source(numbers, schema={"id": pl.Int64}).with_columns(twice=pl.col("id") * 2)
    reader = open_batches(lazy)
    assert asked == 0
    assert reader.schema == pa.schema([("id", pa.int64()), ("twice", pa.int64())])
    first = reader.read_next_batch()
    assert 0 < asked < 1_000
    assert first.num_rows + sum(batch.num_rows for batch in reader) == 1_000_000
    assert asked == 1_000


def test_a_lazy_frame_without_rows_has_a_schema(tmp_path: Path) -> None:
    lazy = pl.LazyFrame({"id": [1], "c": ["x"]}).filter(pl.col("id") > 1)
    write_deltalake(tmp_path, lazy)
    assert DeltaTable(tmp_path).schema().names == ("id", "c")
    assert DeltaTable(tmp_path).count() == 0


def test_an_error_of_a_query_leaves_no_table(tmp_path: Path) -> None:
    lazy = pl.LazyFrame({"id": ["1", "x"]}).with_columns(pl.col("id").cast(pl.Int64))
    with pytest.raises(pl.exceptions.InvalidOperationError, match="conversion"):
        write_deltalake(tmp_path, lazy)
    assert not DeltaTable.is_deltatable(tmp_path)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        (pl.Categorical, ["b", None, "a", "b"], pa.string()),
        (pl.Enum(["b", "a"]), ["a", "b", None], pa.string()),
        (pl.List(pl.Categorical), [["a", None], None, ["b", "a"]], None),
        (pl.Struct({"q": pl.Enum(["b", "a"])}), [{"q": "a"}, {"q": None}], None),
        (pl.Int128, [Decimal(10**38 - 1), None, Decimal(1 - 10**38)], pa.decimal128(38)),
        (pl.UInt128, [Decimal(10**38 - 1), None, Decimal(0)], pa.decimal128(38)),
    ],
    ids=str,
)
def test_types_of_polars_are_written(
    tmp_path: Path, kind: Any, values: list[Any], stored: pa.DataType | None, *, lazy: bool
) -> None:
    numbers = [int(value) if isinstance(value, Decimal) else value for value in values]
    frame = pl.DataFrame({"c": pl.Series(numbers, dtype=kind)})
    write_deltalake(tmp_path, frame.lazy() if lazy else frame)
    write_deltalake(tmp_path, frame, mode="append")
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table()["c"].to_pylist() == [*values, *values]
    assert "_PL_" not in table.schema().to_json()
    if stored is not None:
        assert table.schema().to_arrow().field("c").type == stored


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        (pl.Int128, 10**38, r"\['c'\], integers of 128 bits.*\[1000"),
        (pl.List(pl.Int128), [1], r"'c', a List\(Int128\).*pl.Decimal\(38, 0\)"),
        (pl.Struct({"q": pl.UInt128}), {"q": 1}, r"'c', a Struct.*UInt128"),
    ],
    ids=str,
)
def test_numbers_that_do_not_fit_are_refused(kind: Any, value: Any, problem: str) -> None:
    frame = pl.DataFrame({"c": pl.Series([value], dtype=kind)})
    with pytest.raises(InvalidInputError, match=problem):
        open_batches(frame)
