from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, Literal, col, lit, parse_sql, parse_type, to_sql
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


@pytest.mark.parametrize(
    ("sql", "path"),
    [
        ("`a b`", ("a b",)),
        ("`a``b`", ("a`b",)),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`order`.b", ("a", "order", "b")),
        ("date", ("date",)),
        ("timestamp", ("timestamp",)),
        ("interval", ("interval",)),
        ("größe", ("größe",)),
        ("`select`", ("select",)),
        ("a.select", ("a", "select")),
    ],
)
def test_names(sql: str, path: tuple[str, ...]) -> None:
    found = parse_sql(sql)
    assert found.same_as(type(A)(path))


def test_a_text_in_double_quotes_that_is_a_column_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match=r"write `ID` for the column, or 'id' for the text"):
        parse_sql('"id" = 5', columns=["ID"])
    _same("\"other\" = 'id'", Comparison("=", lit("other"), lit("id")))


@pytest.mark.parametrize(
    ("sql", "position", "problem"),
    [
        ("a >", 4, "expected a value"),
        ("a = = 1", 5, "expected a value"),
        ("(a > 1", 7, r"expected \)"),
        ("a > 1)", 6, "expected the end"),
        ("a b", 3, "expected the end"),
        ("a in (1", 8, r"expected \)"),
        ("a in ()", 7, "expected a value"),
        ("a BETWEEN 1 OR 2", 13, "expected AND"),
        ("a NOT 5", 3, "expected the end"),
        ("a IS 5", 6, "expected NULL, TRUE"),
        ("a ; b", 3, "has no meaning"),
        ("a = 'x", 5, "never closed"),
        ("a = `x", 5, "never closed"),
        ("a /* x", 3, "comment is never closed"),
        ("a = ``", 5, "backticks is empty"),
        ("1a", 1, "no number"),
        ("300Y", 1, "out of the range of byte"),
        ("1.5L", 1, "whole number"),
        ("DATE'2024-02-30'", 5, "no DATE"),
        ("a LIKE 'x' ESCAPE 5", 19, "expected a text"),
        ("CASE a END", 8, "expected WHEN"),
        ("CASE WHEN a THEN b", 19, "expected END"),
        ("CAST(a AS nothing)", 11, "nothing"),
        ("CAST(a AS varchar(5))", 11, "use STRING"),
        ("a > (SELECT 1)", 6, "keyword"),
        ("a IN (SELECT 1)", 7, "subquery"),
        ("count(DISTINCT a)", 7, "aggregates"),
        ("f(a) OVER (b)", 6, "window"),
        ("x.f(a)", 4, "schema or catalog"),
        ("*", 1, "all columns"),
        ("select", 1, "backticks quote names"),
        ("a + INTERVAL 1 PARSEC", 14, "number and a unit"),
        ("a + INTERVAL '1.5' DAY", 14, "no whole number of days"),
        ("", 1, "expected a value"),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_place(
    sql: str, position: int, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        parse_sql(sql)
    assert f"at character {position}" in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "position", "problem"),
    [
        ("> 5", 1, "expected a value"),
        ("ELSE", 1, "expected a value"),
        (". 5", 3, "after the dot"),
        ("a NOT NULL", 3, "expected the end"),
        ("a ! IN (1)", 3, "expected the end"),
        ("a IS NULL::string", 10, "expected the end"),
        ("a BETWEEN 1 2", 13, "expected AND"),
        ("a LIKE b = c", 10, "expected the end"),
        ("a LIKE ANY ('x') ESCAPE '#'", 18, "expected the end"),
        ("a RLIKE 'x' ESCAPE '#'", 13, "expected the end"),
        ("a IN b", 6, r"expected \("),
        ("a IN (1,)", 9, "expected a value"),
        ("f(,a)", 3, "expected a value"),
        ("f(a AS b)", 5, r"expected \)"),
        ("f(ALL a)", 7, r"expected \)"),
        ("f(x -> x)", 6, "expected a value"),
        ("f(a) IGNORE NULLS", 6, "expected the end"),
        ("a + NOT b", 5, "keyword"),
        ("(a, b)", 3, r"expected \)"),
        ("(a b)", 4, r"expected \)"),
        ("a.(b)", 3, "expected a value"),
        ("a.'b'", 3, "expected a name"),
        ("a[1:2]", 4, r"expected \]"),
        ("a[1, 2]", 1, "one value"),
        ("a[]", 3, "expected a value"),
        ("[1]", 2, "ARRAY cannot stand here"),
        ("a << 1", 4, "expected a value"),
        ("a AT TIME ZONE 'UTC'", 1, "ATTIMEZONE cannot stand here"),
        ("CASE WHEN a b END", 13, "expected THEN"),
        ("CAST(a AS int", 14, r"expected \)"),
        ("CAST(a, 'x')", 6, "CASTTOSTRTYPE cannot stand here"),
        ("CAST(a AS date, 'yyyy')", 6, "FORMAT cannot stand here"),
        ("substring(a, 1 FROM 2)", 16, r"expected \)"),
        ("DATE'2024' '-01-01'", 5, "expected a text"),
        ("a {# b #}", 3, "has no meaning"),
        ("a /*+ b */ {", 12, "has no meaning"),
        ("0x1F", 1, "no number"),
        ("1_000", 1, "no number"),
        ("X'0G'", 1, "hexadecimal"),
        ("`[]`(a, 1)", 1, "no function"),
    ],
)
def test_what_sqlglot_would_let_pass_is_an_error_with_its_place(
    sql: str, position: int, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        parse_sql(sql)
    assert f"at character {position} " in f"{caught.value} ".replace(":", " "), caught.value


@pytest.mark.parametrize(
    "name",
    ["nvl", "if", "ifnull", "date", "left", "map", "to_date", "date_add", "dayofweek", "year",
     "any", "rlike", "array", "struct", "log", "concat", "current_user", "transform"],
)  # fmt: skip
def test_a_call_keeps_its_name_and_its_arguments(name: str) -> None:
    _same(f"{name}(a, 'yyyy')", Call(name, (A, lit("yyyy"))))


@pytest.mark.parametrize("name", ["interval", "array", "end", "all", "unknown", "div", "as", "if"])
def test_words_that_are_no_keywords_here_are_columns(name: str) -> None:
    _same(f"{name} = {name}[0]", col(name) == Call("[]", (col(name), lit(0))))


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


@pytest.mark.parametrize("joined", ["+", "||", "="])
def test_long_chains_to_the_left_are_read(joined: str) -> None:
    assert isinstance(parse_sql(f" {joined} ".join(["a"] * 5000)), Expression)


def test_sql_is_a_text() -> None:
    with pytest.raises(InvalidInputError, match="expected SQL as a text, found 5"):
        parse_sql(5)  # type: ignore[arg-type]  # what callers do


def test_deep_nesting_is_an_error_and_no_recursion_error() -> None:
    _same("(" * 40 + "a" + ")" * 40, A)
    with pytest.raises(InvalidInputError, match="nested more than"):
        parse_sql("(" * 500 + "a" + ")" * 500)


def test_long_chains_are_flat() -> None:
    found = parse_sql(" OR ".join(f"a = {number}" for number in range(5000)))
    assert isinstance(found, Or)
    assert len(found.operands) == 5000


def test_positional_parameters() -> None:
    found = parse_sql("a > ? AND b LIKE ?", parameters=[5, "x%"])
    assert found.same_as(And((A > 5, B.like("x%"))))


def test_named_parameters_may_stand_twice() -> None:
    found = parse_sql("a > :p OR b < :p", parameters={"p": 5})
    assert found.same_as(Or((A > 5, B < 5)))


def test_a_mapping_may_hold_values_for_other_texts_too() -> None:
    assert parse_sql("a > :p", parameters={"p": 5, "q": 6}).same_as(A > 5)


def test_a_parameter_is_a_value_and_never_sql() -> None:
    found = parse_sql("a = ?", parameters=["x' OR TRUE --"])
    assert found.same_as(A == "x' OR TRUE --")
    assert parse_sql(to_sql(found)).same_as(found)


@pytest.mark.parametrize(
    ("sql", "parameters", "problem"),
    [
        ("a > ?", None, r"character 5 \(\?\): a parameter \? needs a list"),
        ("a > ? AND b > ?", [1], r"character 15 \(\?\): only 1 parameters"),
        ("a > ?", [1, 2], "2 parameters were given .* which has 1"),
        ("a > 1", [1], "1 parameters were given .* which has 0"),
        ("a > ?", {"p": 1}, "needs a list"),
        ("a > :p", [1], "no value was given for the parameter :p"),
        ("a > :p", {"q": 1}, "no value was given for the parameter :p"),
    ],
)
def test_parameters_that_do_not_fit(sql: str, parameters: object, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        parse_sql(sql, parameters=parameters)  # type: ignore[arg-type]  # parametrised


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
    "sql",
    ["int", "decimal(10,2)", "array<map<string, struct<a: int, `b c`: array<date>>>>", "struct<>"],
)
def test_types_are_read_from_text(sql: str) -> None:
    operand = parse_sql(f"CAST(a AS {sql})")
    assert operand.same_as(A.cast(parse_type(sql)))
    assert parse_sql(to_sql(operand)).same_as(operand)


@pytest.mark.parametrize("sql", ["", "array<int", "map<int>", "decimal(39,0)", "int int", "'int'"])
def test_texts_that_are_no_types(sql: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_type(sql)
