from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_sql, to_sql
from deltalog.expressions.aliases import ALIASES, expand
from deltalog.expressions.functions import FUNCTIONS
from deltalog.expressions.nodes import Column, Literal
from tests.support.sql import values_of

A, B, C = Column(("a",)), Column(("b",)), Column(("c",))


@pytest.mark.parametrize(
    ("name", "arguments", "written"),
    [
        ("nvl", (A, B), "coalesce(a, b)"),
        ("nvl2", (A, B, C), "CASE WHEN a IS NOT NULL THEN b ELSE c END"),
        ("nullif", (A, B), "CASE WHEN a = b THEN NULL ELSE a END"),
        ("if", (A, B, C), "CASE WHEN a THEN b ELSE c END"),
        ("isnull", (A,), "a IS NULL"),
        ("equal_null", (A, B), "a <=> b"),
        ("mod", (A, B), "a % b"),
        ("bigint", (A,), "CAST(a AS bigint)"),
        ("date_part", (Literal("YEAR"), A), "year(a)"),
        ("position", (A, B), "instr(b, a)"),
        ("struct", (A, Literal(1)), "named_struct('a', a, 'col2', 1)"),
    ],
)
def test_what_a_call_abbreviates(name: str, arguments: Any, written: str) -> None:
    found = expand(name, arguments)
    assert found is not None
    assert to_sql(found) == to_sql(parse_sql(written))


def test_what_abbreviates_nothing() -> None:
    assert expand("upper", [A]) is None
    assert expand("nullif", [A]) is None
    with pytest.raises(InvalidInputError, match="does not support the part 'parsec' of a date"):
        expand("date_part", [Literal("parsec"), A])


def test_aliases_stand_for_functions_that_exist() -> None:
    constants = {"current_timestamp", "current_date"}
    assert set(ALIASES.values()) - FUNCTIONS.keys() <= constants
    assert ALIASES.keys() & FUNCTIONS.keys() == set()


def test_values() -> None:
    numbers = pa.array([1, 2, None], pa.int32())
    assert values_of("nullif(n, 2)", n=numbers) == [1, None, None]
    assert values_of("nvl2(n, 'known', 'null')", n=numbers) == ["known", "known", "null"]
    assert values_of("locate('b', 'abcb', n)", n=pa.array([3, 0, None])) == [4, 0, 0]
    moments = pa.array([dt.datetime(2024, 1, 1, 10, 20, 30, 250_000, dt.UTC), None])
    assert values_of("extract(SECOND FROM t)", t=moments) == [Decimal("30.250000"), None]
    # 2024-01-01 was a Monday: day 1 of an ISO week, day 2 of a week that starts with Sunday.
    assert values_of("date_part('dow_iso', t)", t=moments) == [1, None]
    assert values_of("date_part('dow', t)", t=moments) == [2, None]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("d + INTERVAL '1' MONTH", dt.date(2024, 2, 29)),
        ("d - INTERVAL 1 YEAR", dt.date(2023, 1, 31)),
        ("d + INTERVAL 2 WEEKS 1 DAY", dt.date(2024, 2, 15)),
        ("d + INTERVAL 90 MINUTES", dt.datetime(2024, 1, 31, 1, 30, tzinfo=dt.UTC)),
        ("d + INTERVAL '1.5' SECOND", dt.datetime(2024, 1, 31, 0, 0, 1, 500_000, dt.UTC)),
    ],
)
def test_intervals(sql: str, expected: dt.date) -> None:
    assert values_of(sql, d=pa.array([dt.date(2024, 1, 31), None])) == [expected, None]


def test_intervals_that_are_an_error() -> None:
    dates = pa.array([dt.date(2024, 1, 31)])
    with pytest.raises(
        InvalidInputError, match="either years and months, or days and shorter units"
    ):
        values_of("d + INTERVAL 1 MONTH 1 DAY", d=dates)
    with pytest.raises(InvalidInputError, match="must be a constant string"):
        expand("like", [A, B, C])
