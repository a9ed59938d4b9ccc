from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from deltalog.errors import InternalError
from deltalog.protocol.stats.collect import (
    encode_stats,
    encode_stats_column,
    truncate_max,
    truncate_min,
    with_wide_bounds,
)
from deltalog.protocol.stats.parse import parse_stats
from deltalog.protocol.stats.schema import schema_of_leaves

DEL = "\x7f"
LAST = "\U0010ffff"


@pytest.mark.protocol("STAT-06", "D-12")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 32, "a" * 32),
        ("a" * 40, "a" * 32 + DEL),
        ("a" * 32 + "é" + "a" * 7, "a" * 32 + LAST),
        ("a" * 31 + "😀" + "b" * 10, "a" * 31 + "😀" + DEL),
        (LAST * 40, None),
        (DEL * 40, DEL * 32 + LAST),
        ("😀" * 40, "😀" * 16 + LAST),
        ("\uffff" * 40, "\uffff" * 32 + LAST),
        ("a" * 32 + LAST + "b" * 20, "a" * 32 + LAST + DEL),
        ("a" * 32 + LAST * 16, "a" * 32 + LAST * 16),
        ("a" * 32 + LAST * 16 + "b", "a" * 32 + LAST * 16 + DEL),
        ("a" * 32 + LAST * 17, None),
        ("a" * 32 + LAST * 17 + "b", None),
        ("a" * 32 + LAST * 20, None),
        ("", ""),
    ],
    ids=ascii,
)
def test_greatest_texts_are_cut_to_something_not_below_them(
    text: str, expected: str | None
) -> None:
    assert truncate_max(text) == expected
    assert expected is None or expected.encode() >= text.encode()


@pytest.mark.protocol("STAT-06")
def test_smallest_texts_are_cut_to_a_prefix() -> None:
    assert truncate_min("a" * 40) == "a" * 32
    assert truncate_min("😀" * 40) == "😀" * 32
    assert truncate_min("abc", 2) == "ab"
    assert truncate_max("abc", 2) == "ab" + DEL


@pytest.mark.protocol("D-12")
def test_a_cut_text_still_covers_what_was_cut() -> None:
    highest = truncate_max("a" * 32 + "z")
    assert highest is not None
    assert highest > "a" * 32 + "z"


@pytest.mark.protocol("STAT-01", "STAT-14", "D-13", "D-14", "STAT-08")
def test_every_value_in_its_stored_form() -> None:
    stats = {
        "numRecords": 3,
        "minValues": {
            "long": 9007199254740993,
            "double": -0.0,
            "nan": math.nan,
            "low": -math.inf,
            "decimal": Decimal("-1E-9"),
            "text": 'é"\n',
            "date": date(1, 1, 1),
            "struct": {"x": math.inf, "all null": None},
        },
        "maxValues": {"struct": {}},
        "tightBounds": True,
    }
    assert encode_stats(stats) == (
        '{"numRecords":3,"minValues":{"long":9007199254740993,"double":-0.0,"nan":"NaN",'
        '"low":"-Infinity","decimal":-0.000000001,"text":"é\\"\\n","date":"0001-01-01",'
        '"struct":{"x":"Infinity"}},"maxValues":{"struct":{}},"tightBounds":true}'
    )


@pytest.mark.protocol("STAT-07", "D-15")
@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2024, 1, 1, 0, 0, 57, 955_123, UTC), "2024-01-01T00:00:57.955Z"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), "1969-12-31T23:59:59.999Z"),
        (datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2023-12-31T23:00:00.000Z"),
        (datetime(2024, 1, 1, 0, 0, 0, 999_999), "2024-01-01T00:00:00.999"),  # noqa: DTZ001
    ],
)
def test_times_are_cut_down_to_milliseconds(moment: datetime, text: str) -> None:
    assert encode_stats({"minValues": {"x": moment}}) == f'{{"minValues":{{"x":"{text}"}}}}'


def test_values_without_a_stored_form_are_a_defect() -> None:
    with pytest.raises(InternalError, match="a statistic cannot have"):
        encode_stats({"minValues": {"x": b"bytes"}})


def test_struct_columns_become_texts_and_back() -> None:
    schema = schema_of_leaves(
        [
            (("numRecords",), pa.int64()),
            (("minValues", "d"), pa.decimal128(38, 10)),
            (("minValues", "s", "t"), pa.timestamp("us", "UTC")),
            (("maxValues", "f"), pa.float64()),
            (("nullCount", "d"), pa.int64()),
        ]
    )
    texts = [
        (
            '{"numRecords":1,"minValues":{"d":12345678901234567890.0123456789,'
            '"s":{"t":"2024-01-01T00:00:00.123Z"}},"maxValues":{"f":"NaN"},"nullCount":{"d":0}}'
        ),
        None,
    ]
    parsed = parse_stats(pa.array(texts), schema)
    assert encode_stats_column(parsed).to_pylist() == texts
    assert encode_stats_column(schema.empty_table()).to_pylist() == []


def test_a_time_that_python_cannot_hold_costs_only_itself() -> None:
    schema = schema_of_leaves(
        [(("minValues", "t"), pa.timestamp("us")), (("numRecords",), pa.int64())]
    )
    far = pa.array([(1 << 63) - 1, 0]).cast(pa.timestamp("us"))
    minimum = pa.StructArray.from_arrays([far], names=["t"])
    texts = encode_stats_column(pa.table([minimum, pa.array([7, 8])], schema=schema)).to_pylist()
    assert texts == [
        '{"minValues":{},"numRecords":7}',
        '{"minValues":{"t":"1970-01-01T00:00:00.000"},"numRecords":8}',
    ]


@pytest.mark.protocol("D-56", "DV-11", "STAT-03", "STAT-09")
def test_a_deletion_vector_leaves_bounds_that_are_no_longer_tight() -> None:
    text = (
        '{"numRecords":3,"minValues":{"d":12345678901234567890.0123456789,"f":"NaN"},'
        '"nullCount":{"d":1},"tightBounds":true}'
    )
    assert with_wide_bounds(text, num_records=3) == text.replace("true", "false")


@pytest.mark.protocol("D-56", "DV-11")
@pytest.mark.parametrize("text", [None, "", "{bad", "[]"])
def test_a_file_without_statistics_gets_the_number_of_its_rows(text: str | None) -> None:
    assert with_wide_bounds(text, num_records=5) == '{"numRecords":5,"tightBounds":false}'
