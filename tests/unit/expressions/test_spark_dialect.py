from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, Literal, col, lit, parse_sql
from deltalog.expressions.nodes import And, Arithmetic, Call, Case, Comparison, In, Like, Not, Or
from deltalog.schema import PrimitiveType

A, B, C = col("a"), col("b"), col("c")


def _same(sql: str, expected: Expression) -> None:
    assert parse_sql(sql).same_as(expected), parse_sql(sql)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a OR b AND c", Or((A, And((B, C))))),
        ("NOT a AND b", And((Not(A), B))),
        ("NOT a = b", Not(A == B)),
        ("! a", Not(A)),
        ("a + b * c", A + B * C),
        ("(a + b) * c", (A + B) * C),
        ("a - b - c", (A - B) - C),
        ("a - (b - c)", A - (B - C)),
        ("a || b + c", Arithmetic("+", Call("concat", (A, B)), C)),
        ("a | b & c", Call("|", (A, Call("&", (B, C))))),
        ("a ^ b & ~c", Call("^", (A, Call("&", (B, Call("~", (C,))))))),
        ("a & b + 1 = c", Comparison("=", Call("&", (A, B + 1)), C)),
        ("-a", Call("negative", (A,))),
        ("- -a", A),
        ("a + b BETWEEN c AND 5", And((A + B >= C, A + B <= 5))),
        ("a BETWEEN 1 AND 2 AND b", And((And((A >= 1, A <= 2)), B))),
        ("a = b = c", Comparison("=", A == B, C)),
        ("a NOT IN (1, b)", Not(In(A, (lit(1), B)))),
        ("a IS NOT NULL", A.is_not_null()),
        ("a IS DISTINCT FROM b", Not(A.equals_null_safe(B))),
        ("a LIKE 'x%'", A.like("x%")),
        ("a NOT LIKE 'x%' ESCAPE '#'", Not(Like(A, lit("x%"), "#"))),
        ("a ILIKE b", Like(A, B, ignore_case=True)),
        ("a NOT LIKE ANY ('x', 'y')", Or((Not(A.like("x")), Not(A.like("y"))))),
        ("a NOT LIKE ALL ('x', 'y')", And((Not(A.like("x")), Not(A.like("y"))))),
        ("CASE a WHEN 1 THEN b END", Case(((A == 1, B),))),
        ("CASE WHEN a THEN b ELSE c END", Case(((A, B),), C)),
        ("CAST(a AS bigint)", A.cast("long")),
        ("a::double", A.cast("double")),
        ("a[0]", Call("[]", (A, lit(0)))),
        ("current_timestamp()", Call("current_timestamp")),
        ("CURRENT_TIMESTAMP", Call("current_timestamp")),
        ("current_date() > a", Call("current_date") > A),
        ("extract(YEAR FROM a)", Call("date_part", (lit("year"), A))),
        ("trim(LEADING 'x' FROM a)", Call("ltrim", (lit("x"), A))),
        ("substring(a FROM 2 FOR 3)", Call("substring", (A, lit(2), lit(3)))),
    ],
)
def test_operators_bind_as_in_spark(sql: str, expected: Expression) -> None:
    _same(sql, expected)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a = b IN (c)", In(A == B, (C,))),
        ("a = b IS NULL", (A == B).is_null()),
        ("-9223372036854775808L", Literal(-(1 << 63), PrimitiveType("long"))),
        ("INTERVAL 1 DAY + '5'", Call("interval", (lit(1), lit("DAY"))) + "5"),
        ("INTERVAL -1 DAY", Call("interval", (lit(-1), lit("DAY")))),
        ("trim(a, b)", Call("trim", (A, B))),
        ("trim(b FROM a)", Call("btrim", (A, B))),
        ("position(a IN b)", Call("instr", (B, A))),
        ("f(a).b.c", Call("[]", (Call("[]", (Call("f", (A,)), lit("b"))), lit("c")))),
        ("timestampadd(HOUR, 1, a)", Call("timestampadd", (lit("HOUR"), lit(1), A))),
        ("timestampadd(`HOUR`, 1, a)", Call("timestampadd", (col("HOUR"), lit(1), A))),
        ("a AND (b AND c)", And((A, And((B, C))))),
        ("(a AND b) AND c", And((And((A, B)), C))),
        ("a IS NOT UNKNOWN", A.is_not_null()),
    ],
)
def test_sqlglot_reads_what_spark_reads(sql: str, expected: Expression) -> None:
    _same(sql, expected)


@pytest.mark.parametrize("sign", ["- ", "~", "NOT ", "! ", "+"])
def test_many_signs_are_an_error_and_no_recursion_error(sign: str) -> None:
    assert isinstance(parse_sql(sign * 20 + "a"), Expression)
    with pytest.raises(InvalidInputError, match="at character"):
        parse_sql(sign * 5000 + "a")


def test_deep_nesting_is_an_error_and_no_recursion_error() -> None:
    _same("(" * 40 + "a" + ")" * 40, A)
    with pytest.raises(InvalidInputError, match="nested more than"):
        parse_sql("(" * 500 + "a" + ")" * 500)
