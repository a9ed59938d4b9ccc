"""Bounds of footers: what pyarrow makes of sound ones, and nothing of damaged ones."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.storage.parquet.footer import column_chunks
from deltalog.storage.parquet.parts import decode_bounds

DAY = dt.date(2020, 2, 29)
MOMENT = dt.datetime(2020, 2, 29, 1, 2, 3, 4005, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.int8(), -128, 127),
        (pa.int16(), -5, 5),
        (pa.int32(), -(2**31), 2**31 - 1),
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.uint32(), 1, 2**32 - 1),
        (pa.bool_(), False, True),
        (pa.string(), "", "ÿé"),
        (pa.large_string(), "a", "b"),
        (pa.binary(), b"", b"\xff"),
        (pa.date32(), dt.date(1, 1, 1), DAY),
        (pa.timestamp("us", "UTC"), MOMENT, MOMENT + dt.timedelta(days=9)),
        (pa.timestamp("us"), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)),  # noqa: DTZ001
        (pa.decimal128(9, 2), Decimal("-1.25"), Decimal("9999999.99")),
        (pa.decimal128(18, 0), Decimal(-5), Decimal(10**17)),
        (pa.decimal128(38, 4), Decimal("-1.0001"), Decimal(10**33)),
    ],
    ids=str,
)
def test_bounds_are_the_values(kind: pa.DataType, low: Any, high: Any) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array([high, None, low], kind)}), out)
    data = out.getvalue()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    ((chunk,),) = column_chunks(footer)
    physical = pq.read_metadata(pa.BufferReader(data)).schema.column(0).physical_type
    assert (chunk.null_count, chunk.is_ordered) == (1, True)
    for stored, value in ((chunk.min_value, low), (chunk.max_value, high)):
        found = decode_bounds(
            [stored, None], are_ordered=True, physical_type=physical, arrow_type=kind
        )
        assert found is not None
        assert found.to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("physical", "kind", "stored"),
    [
        ("INT32", pa.int32(), b"\1\0\0"),
        ("INT32", pa.int32(), b"\1\0\0\0\0"),
        ("INT64", pa.int64(), b""),
        ("INT64", pa.timestamp("us", "UTC"), b"\1"),
        ("INT32", pa.int8(), b"\xff\xff\0\0"),
        ("BOOLEAN", pa.bool_(), b""),
        ("BYTE_ARRAY", pa.string(), b"\xff\xfe"),
        ("FIXED_LEN_BYTE_ARRAY", pa.decimal128(10, 2), b""),
        ("FIXED_LEN_BYTE_ARRAY", pa.decimal128(10, 2), b"\x7f" * 33),
        ("FIXED_LEN_BYTE_ARRAY", pa.decimal128(3, 0), b"\x7f" * 16),
    ],
)
def test_damaged_bounds_are_none(physical: str, kind: pa.DataType, stored: bytes) -> None:
    found = decode_bounds([stored], are_ordered=True, physical_type=physical, arrow_type=kind)
    assert found is None


@pytest.mark.parametrize(
    ("physical", "kind"),
    [
        ("DOUBLE", pa.float64()),
        ("FLOAT", pa.float32()),
        ("INT96", pa.timestamp("us")),
        ("INT64", pa.string()),
        ("FIXED_LEN_BYTE_ARRAY", pa.binary(4)),
        ("BYTE_ARRAY", pa.int32()),
    ],
)
def test_columns_without_usable_bounds(physical: str, kind: pa.DataType) -> None:
    found = decode_bounds([b"abcd"], are_ordered=True, physical_type=physical, arrow_type=kind)
    assert found is None


def test_bounds_of_old_writers_are_those_of_signed_numbers() -> None:
    def bound(physical: str, kind: pa.DataType, stored: bytes) -> list[Any] | None:
        found = decode_bounds([stored], are_ordered=False, physical_type=physical, arrow_type=kind)
        return None if found is None else found.to_pylist()

    assert bound("INT32", pa.int32(), b"\5\0\0\0") == [5]
    assert bound("INT32", pa.date32(), b"\0\0\0\0") == [dt.date(1970, 1, 1)]
    assert bound("INT32", pa.uint32(), b"\5\0\0\0") is None
    assert bound("BYTE_ARRAY", pa.string(), b"a") is None
    assert bound("FIXED_LEN_BYTE_ARRAY", pa.decimal128(5, 0), b"\5") is None
