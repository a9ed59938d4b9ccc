"""Bounds in the binary form of Iceberg's specification, and what files say of themselves."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable
from deltalog.errors import MalformedLogError
from deltalog.iceberg.data_files import FileColumns, _encoder
from deltalog.protocol.stats.parse import parse_stats
from deltalog.schema.types import PrimitiveType


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("integer", 34, struct.pack("<i", 34)),
        ("byte", -1, b"\xff\xff\xff\xff"),
        ("long", -2, struct.pack("<q", -2)),
        ("float", 1.5, struct.pack("<f", 1.5)),
        ("double", -0.0, struct.pack("<d", -0.0)),
        ("double", float("nan"), None),
        ("date", dt.date(1970, 1, 2), struct.pack("<i", 1)),
        ("timestamp_ntz", dt.datetime(1970, 1, 1, 0, 0, 1), struct.pack("<q", 1_000_000)),  # noqa: DTZ001
        ("string", "ü", b"\xc3\xbc"),
        # The specification's sample: 14.20 is the unscaled number 1420.
        ("decimal(9,2)", Decimal("14.20"), b"\x05\x8c"),
        ("decimal(9,2)", Decimal("-1.28"), b"\x80"),
        ("decimal(9,2)", Decimal("1.28"), b"\x00\x80"),
        ("decimal(9,2)", Decimal("0.00"), b"\x00"),
        ("long", None, None),
    ],
)
def test_bounds_have_the_form_of_the_specification(kind: str, value: Any, expected: Any) -> None:
    data_type = PrimitiveType(kind)
    array = pa.array([value], data_type.primitive.arrow(*_parameters(kind)))

    assert _encoder(data_type)(array) == [expected]


def _parameters(kind: str) -> list[str]:
    inner = kind.partition("(")[2].rstrip(")")
    return inner.split(",") if inner else []


def files_of(stats: str) -> Any:
    table = DeltaTable.create(
        "memory://iceberg-data-files",
        schema=pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))]),
        configuration={"delta.enableIcebergCompatV2": "true"},
        mode="overwrite",
    )
    configuration = table.snapshot.configuration
    columns = FileColumns(configuration, "s3://bucket/t", "UTC", has_row_ids=False)
    names = [field.name for field in configuration.physical_schema.fields]
    text = stats.replace("ID", names[0]).replace("AT", names[1])
    adds = pa.table(
        {
            "path": ["a%20b.parquet"],
            "size": [10],
            "partitionValues": pa.array([[]], pa.map_(pa.string(), pa.string())),
        }
    )
    found = parse_stats(pa.array([text]), columns.stats_schema())
    return [one.data_file for one in columns.data_files(adds, found)]


def test_a_maximum_that_was_cut_to_milliseconds_is_later_there() -> None:
    (file,) = files_of(
        '{"numRecords":3,"minValues":{"ID":1,"AT":"1970-01-01T00:00:00.000Z"},'
        '"maxValues":{"ID":9,"AT":"1970-01-01T00:00:00.001Z"},"nullCount":{"ID":0,"AT":2}}'
    )

    assert file.file_path == "s3://bucket/t/a b.parquet"
    assert file.record_count == 3
    assert file.null_value_counts == {1: 0, 2: 2}
    assert file.lower_bounds == {1: struct.pack("<q", 1), 2: struct.pack("<q", 0)}
    (upper,) = struct.unpack("<q", file.upper_bounds[2])
    assert 1_999 <= upper <= 2_000


def test_a_file_without_a_number_of_rows_is_named() -> None:
    with pytest.raises(
        MalformedLogError, match=r"numRecords for each file, found none for 'a%20b\.parquet'"
    ):
        files_of('{"minValues":{"ID":1}}')
