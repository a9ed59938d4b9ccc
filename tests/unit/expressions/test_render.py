"""Expressions as Spark SQL: where brackets and quotes stand."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest

from deltalog.expressions import lit, parse_sql, parse_type
from deltalog.expressions.nodes import as_calls
from deltalog.expressions.render import begins_literal, quote_name, quote_text, to_sql, type_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", "a = 1"),
        ("(a and b) or c", "a AND b OR c"),
        ("a and (b or c)", "a AND (b OR c)"),
        ("not (a or b)", "NOT (a OR b)"),
        ("(a + b) * c - (d - e)", "(a + b) * c - (d - e)"),
        ("((a * b) + c)", "a * b + c"),
        ("a - (b + c)", "a - (b + c)"),
        ("not a is null", "a IS NOT NULL"),
        ("not (a in (1, 2))", "a NOT IN (1, 2)"),
        ("a not like 'x%'", "a NOT LIKE 'x%'"),
        ("a ilike 'x' escape '!'", "a ILIKE 'x' ESCAPE '!'"),
        ("cast(a as bigint)", "CAST(a AS BIGINT)"),
        ("try_cast(a as array<int>)", "TRY_CAST(a AS ARRAY<INT>)"),
        ("case when a then 1 end", "CASE WHEN a THEN 1 END"),
        ("case when a then 1 else b end", "CASE WHEN a THEN 1 ELSE b END"),
        ("s.`a b`", "s.`a b`"),
        ("a[0]", "a[0]"),
    ],
)
def test_sql_has_the_brackets_that_it_needs(text: str, expected: str) -> None:
    tree = parse_sql(text)
    assert to_sql(tree) == expected
    assert as_calls(parse_sql(expected)) == as_calls(tree)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-7, "-7"),
        (1.5, "1.5E0"),
        (math.nan, "CAST('NaN' AS DOUBLE)"),
        (-math.inf, "CAST('-Infinity' AS DOUBLE)"),
        (Decimal("1.50"), "1.50"),
        (Decimal(3), "3."),
        ("it's", r"'it\'s'"),
        (b"\x00\xff", "X'00FF'"),
        (dt.date(2024, 1, 2), "DATE'2024-01-02'"),
        (dt.datetime(2024, 1, 2, tzinfo=dt.UTC), "TIMESTAMP'2024-01-02 00:00:00Z'"),
    ],
)
def test_constants(value: object, expected: str) -> None:
    assert to_sql(lit(value)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a_1", "a_1"),
        ("1a", "`1a`"),
        ("", "``"),
        ("a b", "`a b`"),
        ("a`b", "`a``b`"),
        ("SELECT", "`SELECT`"),
        ("date", "`date`"),
        ("ä", "`ä`"),
    ],
)
def test_names(name: str, expected: str) -> None:
    assert quote_name(name) == expected


def test_words_that_begin_a_literal() -> None:
    assert begins_literal("Timestamp_NTZ")
    assert not begins_literal("bigint")
    assert not begins_literal("x")


def test_texts() -> None:
    assert quote_text("") == "''"
    assert quote_text("a\\b'c\n\r\0") == r"'a\\b\'c\n\r\0'"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("tinyint", "TINYINT"),
        ("decimal(5,2)", "DECIMAL(5,2)"),
        ("map<string,array<double>>", "MAP<STRING, ARRAY<DOUBLE>>"),
        ("struct<a:int,`b c`:date>", "STRUCT<a: INT, `b c`: DATE>"),
    ],
)
def test_types(kind: str, expected: str) -> None:
    found = parse_type(kind)
    assert type_name(found) == expected
    assert parse_type(expected) == found
