"""Tests of `deltalog.schema.arrow`."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.schema.arrow import parquet_field_id, parquet_id_metadata


@pytest.mark.parametrize("number", [0, 7, 2_147_483_647])
def test_ids_are_those_of_the_file(number: int) -> None:
    assert parquet_field_id(_stored(parquet_id_metadata(number))) == number


@pytest.mark.parametrize("text", ["", "x", "-3", " 5", "1.0", "9" * 5_000])
def test_a_text_that_is_no_id_is_none(text: str) -> None:
    stored = _stored({"PARQUET:field_id": text})
    assert (stored.metadata or {}).get(b"PARQUET:field_id") == text.encode()
    assert parquet_field_id(stored) is None


def test_a_column_may_have_no_id() -> None:
    assert parquet_id_metadata(None) is None
    assert parquet_field_id(_stored(None)) is None


def _stored(metadata: dict[str, str] | None) -> pa.Field[Any]:
    """What is read of a file that has a column with this metadata."""
    file = io.BytesIO()
    schema = pa.schema([pa.field("a", pa.int64(), metadata=metadata)])
    pq.write_table(pa.table({"a": [1]}, schema=schema), file)
    field: pa.Field[Any] = pq.ParquetFile(file).schema_arrow.field("a")
    return field
