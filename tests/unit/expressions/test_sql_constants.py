from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from deltalog.expressions import Expression, lit, parse_sql


def _same(sql: str, expected: Expression) -> None:
    assert parse_sql(sql).same_as(expected), parse_sql(sql)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("1.50", Decimal("1.50")),
        ("1e3", 1000.0),
        ("'it''s'", "it's"),
        (r"'a\'b\tc'", "a'b\tc"),
        (r"r'a\tb'", r"a\tb"),
        ('"double"', "double"),
        ("'a' 'b'", "ab"),
        ("X'0aF'", b"\x00\xaf"),
        ("TRUE", True),
        ("NULL", None),
        ("DATE'2024-02-29'", dt.date(2024, 2, 29)),
        (
            "TIMESTAMP'2024-02-29 10:00:00+02:00'",
            dt.datetime(2024, 2, 29, 8, tzinfo=dt.UTC),
        ),
        ("TIMESTAMP_NTZ'2024-02-29 10:00:00'", dt.datetime(2024, 2, 29, 10)),  # noqa: DTZ001
        ("5 -- five", 5),
        ("/* five */ 5", 5),
    ],
)
def test_constants(sql: str, value: object) -> None:
    _same(sql, lit(value))
