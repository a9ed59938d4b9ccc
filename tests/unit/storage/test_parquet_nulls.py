from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.errors import DataFileUnreadableError
from deltalog.storage.parquet_nulls import null_counts


def footer(table: pa.Table, **options: Any) -> Any:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return pq.ParquetFile(out).metadata


@pytest.mark.parametrize("columns", [1, 40])
def test_counts_are_those_of_pyarrow(columns: int) -> None:
    table = pa.table(
        {
            f"c{number}": pa.array([{"v": None, "w": ["x", None]}, None, {"v": 1.5, "w": []}] * 5)
            for number in range(columns)
        }
        | {"flag": [True, None, False] * 5, "when": pa.array([1, 2, None] * 5, pa.date32())}
    )
    metadata = footer(table, row_group_size=4)
    assert null_counts(metadata) == [
        [
            metadata.row_group(group).column(column).statistics.null_count
            for column in range(metadata.num_columns)
        ]
        for group in range(metadata.num_row_groups)
    ]


def test_what_is_not_told_is_none() -> None:
    assert null_counts(footer(pa.table({"a": [1]}), write_statistics=False)) == [[None]]
    assert null_counts(footer(pa.table({"a": pa.array([], pa.int64())}))) == [[None]]


def test_a_footer_that_is_none_is_refused() -> None:
    class Damaged:
        def write_metadata_file(self, out: pa.BufferOutputStream) -> None:
            out.write(b"PAR1\x19\xfc\x7f")

    with pytest.raises(DataFileUnreadableError, match="footer"):
        null_counts(Damaged())  # type: ignore[arg-type]  # writes what pyarrow never would
