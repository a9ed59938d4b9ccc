from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_sql, to_sql
from deltalog.expressions.sql import with_backticks


@pytest.mark.parametrize(
    ("sql", "position", "problem"),
    [
        ("a >", 4, "expected a value"),
        ("a = = 1", 5, "expected a value"),
        ("(a > 1", 7, r"expected \)"),
        ("a > 1)", 6, "expected the end"),
        ("a b", 3, "expected the end"),
        ("a in (1", 8, r"expected \)"),
        ("a in ()", 7, r"IN needs at least one value; a list that may be empty is a parameter"),
        ("a = N'x'", 5, "a string has no prefix here; write 'x'"),
        ("a = E'x'", 6, "a string has no prefix here; write 'x'"),
        ("a BETWEEN 1 OR 2", 13, "expected AND"),
        ("a NOT 5", 3, "expected the end"),
        ("a IS 5", 6, "expected NULL, TRUE"),
        ("a ; b", 3, "has no meaning"),
        ("a = 'x", 5, "never closed"),
        ("a = `x", 5, "never closed"),
        ("a /* x", 3, "comment is never closed"),
        ("a = ``", 5, "backticks is empty"),
        ("1a", 1, "not a number"),
        ("300Y", 1, "out of range for byte"),
        ("1.5L", 1, "whole number"),
        ("DATE'2024-02-30'", 5, "not a valid DATE"),
        ("a LIKE 'x' ESCAPE 5", 19, "expected a string"),
        ("CASE a END", 8, "expected WHEN"),
        ("CASE WHEN a THEN b", 19, "expected END"),
        ("CAST(a AS nothing)", 11, "nothing"),
        ("CAST(a AS varchar(5))", 11, "use STRING"),
        ("a > (SELECT 1)", 6, "a subquery cannot be part of an expression; deltalog.sql runs"),
        ("a IN (SELECT 1)", 7, "subquery"),
        ("count(DISTINCT a)", 7, "aggregates"),
        ("f(a) OVER (b)", 6, "window"),
        ("x.f(a)", 4, "schema or catalog"),
        ("*", 1, "all columns"),
        ("select", 1, "expected a condition or a value, found a query"),
        ("a + INTERVAL 1 PARSEC", 14, "number and a unit"),
        ("a + INTERVAL '1.5' DAY", 14, "not a whole number of days"),
        ("", 1, "expected a value"),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_place(
    sql: str, position: int, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        parse_sql(sql)
    assert f"at character {position}" in str(caught.value)


def test_sql_is_a_text() -> None:
    with pytest.raises(InvalidInputError, match="expected SQL as a string, found 5"):
        parse_sql(5)  # type: ignore[arg-type]  # what callers do


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("a.`b c`=5", "a.`b c` = 5"),
        ("((a))and(b or c)", "a AND (b OR c)"),
        ("a-(b-c)", "a - (b - c)"),
        ("not(a=1)", "NOT a = 1"),
        ("not(a is null)", "a IS NOT NULL"),
        ("a is not distinct from b", "a <=> b"),
        ("`order` = 'it''s'", r"order = 'it\'s'"),
        ("`select` = 1", "`select` = 1"),
        ("a between 1 and 2", "a >= 1 AND a <= 2"),
        ("cast(a as int)", "CAST(a AS INT)"),
        ("d + interval 2 days", "d + INTERVAL '2' DAY"),
        ("timestamp'2024-01-01'", "TIMESTAMP'2024-01-01 00:00:00Z'"),
        ("s['x']", "s['x']"),
        ("timestampadd()", "timestampadd()"),
    ],
)
def test_rendering(sql: str, shown: str) -> None:
    assert to_sql(parse_sql(sql)) == shown
    assert to_sql(parse_sql(shown)) == shown


@pytest.mark.parametrize(
    ("sql", "spelled"),
    [
        ("a > 0 and b = 'x'", "a > 0 and b = 'x'"),
        ('"A" > 0 and b = "x"', '`A` > 0 and b = "x"'),
        ('"high price" >= 0', "`high price` >= 0"),
        ('t."x" = \'"a"\'', "t.`x` = '\"a\"'"),
        ('"t"."x" = 1 -- "a"', '`t`.`x` = 1 -- "a"'),
    ],
)
def test_names_in_double_quotes_get_backticks(sql: str, spelled: str) -> None:
    assert with_backticks(sql, ["a", "high price"]) == spelled
    assert with_backticks(spelled, ["a", "high price"]) == spelled


def test_only_a_text_gets_backticks() -> None:
    with pytest.raises(InvalidInputError, match="expected SQL as a string, found 5"):
        with_backticks(5, [])  # type: ignore[arg-type]  # what callers do
