from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.protocol.stats import parse
from deltalog.protocol.stats.parse import parse_stats
from deltalog.protocol.stats.schema import schema_of_leaves
from tests.support.stats_texts import LONG, Leaf, bound, minima, read


@pytest.mark.protocol("STAT-01")
def test_only_the_leaves_asked_for_come_out() -> None:
    text = (
        '{"numRecords":3,"minValues":{"a":{"b":1,"c":"x"}},"maxValues":{"a":{"b":5}},'
        '"nullCount":{"a":{"b":0}},"tightBounds":true,"later":[{"x":1}]}'
    )
    leaves: list[Leaf] = [
        (("numRecords",), pa.int64()),
        (("minValues", "a", "b"), pa.int32()),
        (("nullCount", "a", "b"), pa.int64()),
        (("tightBounds",), pa.bool_()),
    ]
    table = parse_stats(pa.array([text]), schema_of_leaves(leaves))
    assert table.schema == schema_of_leaves(leaves)
    assert table.to_pylist() == [
        {
            "numRecords": 3,
            "minValues": {"a": {"b": 1}},
            "nullCount": {"a": {"b": 0}},
            "tightBounds": True,
        }
    ]


def test_rows_with_blanks_around_and_inside_are_read() -> None:
    texts: list[str | None] = [' {"minValues": {"x": 1}}\r\n', '{\n "minValues":\n {"x": 2}\n}']
    assert [bound(row) for row in read(texts, *LONG)] == [1, 2]


def test_a_row_longer_than_a_block_is_read() -> None:
    long = '{"minValues":{"x":1,"text":"' + "a" * (3 << 20) + '"}}'
    assert [bound(row) for row in read([long, '{"minValues":{"x":2}}'], *LONG)] == [1, 2]


@pytest.mark.protocol("D-11")
def test_whole_numbers_are_exact_and_a_writers_habit_of_a_point_is_understood() -> None:
    values = ["9007199254740993", "1.0", "-9223372036854775808", "2e3"]
    assert minima(values, pa.int64()) == [9007199254740993, 1, -(2**63), 2000]
    assert minima([f"{i}.0" for i in range(200)], pa.int64()) == list(range(200))


def test_a_number_beyond_a_narrow_type_is_null() -> None:
    assert minima(["127", "128", "-129"], pa.int8()) == [127, None, None]


@pytest.mark.protocol("D-10", "STAT-14")
def test_decimals_are_exact() -> None:
    values = ["12345678901234567890.0123456789", "1.5", "0E-10", "-1E-9", '"2.5"']
    assert minima(values, pa.decimal128(38, 10)) == [
        Decimal("12345678901234567890.0123456789"),
        Decimal("1.5"),
        Decimal(0),
        Decimal("-1E-9"),
        Decimal("2.5"),
    ]


@pytest.mark.protocol("D-10")
def test_decimals_with_too_many_digits_are_rounded_to_the_safe_side() -> None:
    kind = pa.decimal128(5, 2)
    text = '{"minValues":{"x":1.239},"maxValues":{"x":1.231}}'
    (row,) = read([text], (("minValues", "x"), kind), (("maxValues", "x"), kind))
    assert row == {"minValues": {"x": Decimal("1.23")}, "maxValues": {"x": Decimal("1.24")}}
    assert minima(["-1.239", "1000", "true", "null"], kind) == [Decimal("-1.24"), None, None, None]


@pytest.mark.protocol("D-13", "D-14", "STAT-14")
@pytest.mark.parametrize("others", [0, 100])
def test_quoted_floats_are_read(others: int) -> None:
    values = ['"NaN"', '"Infinity"', '"-Infinity"', "-0.0", '"other"', *["1.5"] * others]
    found = minima(values, pa.float64())
    assert math.isnan(found[0])
    assert found[1:3] == [math.inf, -math.inf]
    assert math.copysign(1, found[3]) == -1
    assert found[4] is None
    assert found[5:] == [1.5] * others


def test_narrow_floats_are_those_of_the_column() -> None:
    assert minima(["0.1", '"NaN"', "1e300"], pa.float32())[::2] == [0.10000000149011612, None]


def test_a_text_that_looks_like_a_float_stays_a_text() -> None:
    leaves: list[Leaf] = [(("minValues", "x"), pa.string()), (("minValues", "y"), pa.float64())]
    texts: list[str | None] = ['{"minValues":{"x":"NaN","y":1}}'] * 30
    assert read(texts, *leaves) == [{"minValues": {"x": "NaN", "y": 1.0}}] * 30


@pytest.mark.protocol("STAT-14")
def test_dates() -> None:
    values = ['"2024-02-29"', '"0001-01-01"', '"9999-12-31"']
    assert minima(values, pa.date32()) == [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)]
    odd = ['"2024-02-30"', '"2024-01-01T23:59:59Z"', '"1969-12-31 10:00:00"', '"soon"', "5"]
    assert minima(odd, pa.date32()) == [None, date(2024, 1, 1), date(1969, 12, 31), None, None]


@pytest.mark.protocol("D-15", "STAT-07")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01T00:00:00.999Z", datetime(2024, 1, 1, 0, 0, 0, 999_000, UTC)),
        ("2022-10-24T22:59:32.846-05:00", datetime(2022, 10, 25, 3, 59, 32, 846_000, UTC)),
        ("2022-10-24 22:59:32+0530", datetime(2022, 10, 24, 17, 29, 32, 0, UTC)),
        ("2024-01-01 00:00:00", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01T00:00:00.123456789Z", datetime(2024, 1, 1, 0, 0, 0, 123_456, UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("10000-01-01T00:00:00.000Z+", None),
        ("+294247-01-10T04:00:54.775808Z", None),
        ("-290308-12-21T19:59:05.224Z", None),
        ("2024-01-01T25:00:00Z+", None),
    ],
)
def test_timestamps_in_every_writers_form(text: str, expected: datetime | None) -> None:
    assert minima([f'"{text}"'], pa.timestamp("us", "UTC")) == [expected]


@pytest.mark.protocol("D-15")
@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("+10000-01-01T00:00:00.000Z", 2_932_897),
        ("-0044-03-15 00:00:00", -735_525),
        ("0000-01-01", -719_528),
        ("+12022-11-05", 3_671_726),
    ],
)
def test_bounds_of_years_that_python_does_not_have(text: str, days: int) -> None:
    leaves = [
        (("minValues", name), kind)
        for name, kind in (("d", pa.date32()), ("t", pa.timestamp("us", "UTC")))
    ]
    parsed = parse_stats(
        pa.array([f'{{"minValues":{{"d":"{text}","t":"{text}"}}}}'], pa.string()),
        schema_of_leaves(leaves),
    )
    low: Any = parsed.column("minValues").combine_chunks()
    assert low.field("d").cast(pa.int32()).to_pylist() == [days]
    assert low.field("t").cast(pa.int64()).to_pylist() == [days * 86_400_000_000]


@pytest.mark.protocol("D-15")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01T00:00:00.999", datetime(2024, 1, 1, 0, 0, 0, 999_000)),  # noqa: DTZ001
        ("2023-11-14 22:13:20.123", datetime(2023, 11, 14, 22, 13, 20, 123_000)),  # noqa: DTZ001
        ("1983-07-20T00:00:00Z", datetime(1983, 7, 20)),  # noqa: DTZ001
        ("1983-07-20T00:00:00+02:00", None),
    ],
)
def test_timestamps_without_zone(text: str, expected: datetime | None) -> None:
    assert minima([f'"{text}"'], pa.timestamp("us")) == [expected]


@pytest.mark.protocol("B-50", "D-68")
def test_statistics_of_a_narrower_type_are_read_as_the_wider_one() -> None:
    assert minima(["5"], pa.int64()) == [5]
    assert minima(["5"], pa.float64()) == [5.0]
    assert minima(["5"], pa.decimal128(12, 2)) == [Decimal("5.00")]
    assert minima(["12.34"], pa.decimal128(8, 4)) == [Decimal("12.3400")]
    assert minima(['"2024-09-09"'], pa.timestamp("us")) == [datetime(2024, 9, 9)]  # noqa: DTZ001


def test_names_with_dots_quotes_and_escapes() -> None:
    names = ["a.b", "ü", 'q"x', "new\nline", "a`b", ""]
    leaves: list[Leaf] = [(("minValues", name), pa.int64()) for name in names]
    text = r'{"minValues":{"a.b":1,"\u00fc":2,"q\"x":3,"new\nline":4,"a`b":5,"":6}}'
    assert read([text], *leaves) == [{"minValues": dict(zip(names, range(1, 7), strict=True))}]


@pytest.mark.protocol("CKPT-22", "B-13")
def test_the_samples_name_of_the_null_count_is_read() -> None:
    leaf = (("nullCount", "a"), pa.int64())
    texts: list[str | None] = ['{"nullCounts":{"a":2}}', '{"nullCount":{"a":1}}', "{}"]
    found = [(row["nullCount"] or {}).get("a") for row in read(texts, leaf)]
    assert found == [2, 1, None]


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_other_layouts_of_texts(kind: pa.DataType) -> None:
    texts = pa.array(['{"minValues":{"x":1}}', None]).cast(kind)
    table = parse_stats(
        pa.chunked_array([texts, texts.slice(1), texts[:0]]), schema_of_leaves(LONG)
    )
    assert [bound(row) for row in table.to_pylist()] == [1, None, None]


def test_no_rows_and_no_leaves() -> None:
    assert parse_stats(pa.array([], pa.string()), schema_of_leaves(LONG)).num_rows == 0
    assert parse_stats(pa.chunked_array([], pa.string()), schema_of_leaves(LONG)).num_rows == 0
    assert parse_stats(pa.array(["{}", None]), pa.schema([])).num_rows == 2


def test_slices_are_read_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "_SLICE_BYTES", 200)
    assert minima([str(row) for row in range(100)], pa.int64()) == list(range(100))
