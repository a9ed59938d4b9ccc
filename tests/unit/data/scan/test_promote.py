"""Leaf values of older files in the type that the table has today."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.scan.transform import promotion
from deltalog.errors import DataFileUnreadableError
from tests.support.raw_tables import DataTable

NOON = dt.datetime(2024, 1, 1, 12, 0, 0, 1, tzinfo=dt.UTC)
DAY = dt.date(2024, 1, 1)
# Every change that the protocol knows: type in the file, type of the table, a value in both, and
# how the log writes the old one.
WIDENINGS = [
    (pa.int8(), "short", -128, -128),
    (pa.int8(), "integer", -128, -128),
    (pa.int8(), "long", -128, -128),
    (pa.int8(), "double", -128, -128.0),
    (pa.int16(), "integer", 32767, 32767),
    (pa.int16(), "long", 32767, 32767),
    (pa.int16(), "double", 32767, 32767.0),
    (pa.int32(), "long", -(2**31), -(2**31)),
    (pa.int32(), "double", 2**31 - 1, 2147483647.0),
    (pa.float32(), "double", 1.5, 1.5),
    (pa.date32(), "timestamp_ntz", DAY, dt.datetime(2024, 1, 1)),  # noqa: DTZ001
    (pa.decimal128(4, 2), "decimal(10,2)", Decimal("12.34"), Decimal("12.34")),
    (pa.decimal128(4, 2), "decimal(10,4)", Decimal("12.34"), Decimal("12.3400")),
    (pa.int8(), "decimal(10,0)", 7, Decimal(7)),
    (pa.int32(), "decimal(12,2)", 2**31 - 1, Decimal("2147483647.00")),
    (pa.int64(), "decimal(20,0)", 2**63 - 1, Decimal(2**63 - 1)),
]


def widened(kind: str, *, partitioned: bool = False) -> DataTable:
    fields = [("c", kind), ("id", "long")]
    keys = ["c"] if partitioned else []
    return DataTable(fields, features=["typeWidening", "timestampNtz"], partition_by=keys)


@pytest.mark.protocol("B-50")
@pytest.mark.parametrize(("stored", "kind", "old", "new"), WIDENINGS)
def test_widened_values(stored: pa.DataType, kind: str, old: Any, new: Any) -> None:
    table = widened(kind)
    table.commit(table.add(pa.table({"c": pa.array([old, None], stored), "id": [1, 2]})))
    assert table.rows() == [(new, 1), (None, 2)]
    assert table.rows("c is not null", ["id"]) == [1]


def log_form(value: Any) -> Any:
    """The value as an old writer put it into statistics."""
    return value.isoformat() if isinstance(value, dt.date) else value


@pytest.mark.protocol("B-50")
@pytest.mark.parametrize(("stored", "kind", "old", "new"), WIDENINGS)
def test_statistics_of_the_old_type_never_lose_a_row(
    stored: pa.DataType, kind: str, old: Any, new: Any
) -> None:
    table = widened(kind)
    bound = str(old) if isinstance(old, Decimal) else json.dumps(log_form(old))
    stats = f'{{"numRecords":1,"minValues":{{"c":{bound}}},"maxValues":{{"c":{bound}}}}}'
    add = table.add(pa.table({"c": pa.array([old], stored), "id": [1]}))
    add["add"]["stats"] = stats
    table.commit(add)
    text = f"timestamp_ntz'{new}'" if isinstance(new, dt.datetime) else str(new)
    for where in (f"c = {text}", f"c >= {text}", f"c <= {text}"):
        assert table.rows(where, ["id"]) == [1], where
    for where in (f"c < {text}", f"c > {text}"):
        assert table.rows(where, ["id"]) == [], where


@pytest.mark.protocol("B-50")
@pytest.mark.parametrize(("stored", "kind", "old", "new"), WIDENINGS)
def test_partition_values_of_the_old_type(
    stored: pa.DataType, kind: str, old: Any, new: Any
) -> None:
    del stored
    table = widened(kind, partitioned=True)
    table.commit(table.add({"id": [1]}, partitionValues={"c": str(log_form(old))}))
    assert table.rows() == [(new, 1)]


def test_footer_bounds_of_the_old_type_keep_the_right_row_groups() -> None:
    table = widened("decimal(12,2)")
    stored = pa.table({"c": pa.array([1, 2, 3], pa.int32()), "id": [1, 2, 3]})
    table.commit(table.add(stored, options={"row_group_size": 1}))
    assert table.rows("c = 2", ["id"]) == [2]
    assert table.rows("c > 1.5", ["id"]) == [2, 3]


@pytest.mark.parametrize(
    ("stored", "kind", "value"),
    [
        (pa.dictionary(pa.int8(), pa.string()), "string", "a"),
        (pa.large_string(), "string", "a"),
        (pa.binary(), "string", b"a"),
        (pa.large_binary(), "binary", b"a"),
        (pa.binary(1), "binary", b"a"),
        (pa.string_view(), "string", "a"),
        (pa.int64(), "integer", 7),
        (pa.uint32(), "long", 7),
        (pa.float64(), "float", 1.5),
        (pa.timestamp("ms", "UTC"), "timestamp", NOON.replace(microsecond=0)),
        (pa.timestamp("ns", "UTC"), "timestamp", NOON),
        (pa.timestamp("us", "Europe/Paris"), "timestamp", NOON),
        (pa.timestamp("us"), "timestamp", NOON.replace(tzinfo=None)),
        (pa.timestamp("us", "UTC"), "timestamp_ntz", NOON),
    ],
)
def test_flavours_of_other_writers(stored: pa.DataType, kind: str, value: Any) -> None:
    table = widened(kind)
    table.commit(table.add(pa.table({"c": pa.array([value, None], stored)})))
    if kind.startswith("timestamp"):
        value = value.replace(tzinfo=dt.UTC if kind == "timestamp" else None)
    if kind == "string":
        value = "a"
    assert table.rows(columns=["c"]) == [value, None]


@pytest.mark.protocol("D-69")
def test_int96_before_and_after_what_nanoseconds_hold() -> None:
    table = DataTable([("t", "timestamp")])
    times = [dt.datetime(year, 12, 31, tzinfo=dt.UTC) for year in (1, 1600, 2024, 9999)]
    options = {"use_deprecated_int96_timestamps": True}
    stored = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))})
    table.commit(table.add(stored, options=options))
    assert table.rows() == times


def test_nanoseconds_are_cut_off_before_1970_too() -> None:
    adapt = promotion(pa.timestamp("ns"), pa.timestamp("us"))
    assert adapt is not None
    cut = adapt(pa.array([-1, 1, 1001, None], pa.timestamp("ns")))
    assert cut.view(pa.int64()).to_pylist() == [-1, 0, 1, None]


@pytest.mark.parametrize(
    ("stored", "kind", "value"),
    [
        (pa.int64(), "integer", 2**40),
        (pa.int64(), "decimal(4,0)", 12345),
        (pa.decimal128(6, 4), "decimal(6,2)", Decimal("1.2345")),
        # Arrow's own cast wraps around
        (pa.decimal128(38, 0), "decimal(38,18)", Decimal(460331602691505663798073246748)),
        (pa.binary(), "string", b"\xff"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(stored: pa.DataType, kind: str, value: Any) -> None:
    table = widened(kind)
    table.commit(table.add(pa.table({"c": pa.array([value], stored)})))
    with pytest.raises(DataFileUnreadableError, match="'c'"):
        table.rows(columns=["c"])


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.string(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.float64(), pa.int64()),
        (pa.timestamp("us"), pa.date32()),
        (pa.date32(), pa.timestamp("us", "UTC")),
        (pa.date32(), pa.int32()),
        (pa.bool_(), pa.int8()),
        (pa.string(), pa.binary()),
        (pa.decimal128(4, 2), pa.float64()),
    ],
)
def test_what_is_no_form_of_the_type(found: pa.DataType, wanted: pa.DataType) -> None:
    with pytest.raises(TypeError):
        promotion(found, wanted)


def test_the_same_type_costs_nothing() -> None:
    assert promotion(pa.int64(), pa.int64()) is None
