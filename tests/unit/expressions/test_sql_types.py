from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import col, parse_sql, parse_type, to_sql
from deltalog.expressions.render import type_name

A = col("a")


@pytest.mark.parametrize(
    "sql",
    ["int", "decimal(10,2)", "array<map<string, struct<a: int, `b c`: array<date>>>>", "struct<>"],
)
def test_types_are_read_from_text(sql: str) -> None:
    operand = parse_sql(f"CAST(a AS {sql})")
    assert operand.same_as(A.cast(parse_type(sql)))
    assert parse_sql(to_sql(operand)).same_as(operand)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "array<int",
        "map<int>",
        "decimal(39,0)",
        "int int",
        "'int'",
        "struct<",
        "struct<a: int,",
        "struct<a:",
    ],
)
def test_texts_that_are_no_types(sql: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_type(sql)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("INTERVAL YEAR TO MONTH", "interval year to month"),
        ("interval year", "interval year to month"),
        ("INTERVAL MONTH", "interval year to month"),
        ("INTERVAL DAY TO SECOND", "interval day to second"),
        ("INTERVAL HOUR TO MINUTE", "interval day to second"),
        ("INTERVAL SECOND", "interval day to second"),
        ("STRUCT<a: INTERVAL DAY, b INTERVAL YEAR TO MONTH>",
         "struct<a:interval day to second,b:interval year to month>"),
        ("ARRAY<INTERVAL MINUTE TO SECOND>", "array<interval day to second>"),
        ("TIMESTAMP_NANOS", "timestamp_nanos"),
        ("timestamp_nanos_ntz", "timestamp_nanos_ntz"),
    ],
)  # fmt: skip
def test_intervals_and_nanoseconds_are_types(sql: str, kind: str) -> None:
    found = parse_type(sql)
    assert str(found) == kind
    assert parse_type(type_name(found)) == found


@pytest.mark.parametrize(
    "sql",
    ["INTERVAL", "INTERVAL MONTH TO DAY", "INTERVAL SECOND TO DAY", "INTERVAL DAY TO",
     "INTERVAL WEEK", "INTERVAL DAYS", "INTERVAL DAY TO MONTH", "TIMESTAMP_NANOS(9)"],
)  # fmt: skip
def test_intervals_have_fields_of_one_kind(sql: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_type(sql)


@pytest.mark.parametrize("sql", ["INTERVAL YEAR", "INTERVAL DAY", "INTERVAL HOUR TO SECOND"])
def test_a_cast_to_few_fields_would_count_them(sql: str) -> None:
    with pytest.raises(InvalidInputError, match="write an INTERVAL literal"):
        parse_sql(f"CAST(a AS {sql})")
