from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, col, lit, parse_sql, to_sql
from deltalog.expressions.nodes import And, Call, Comparison, Or

A, B = col("a"), col("b")


def _same(sql: str, expected: Expression) -> None:
    assert parse_sql(sql).same_as(expected), parse_sql(sql)


def test_a_text_in_double_quotes_that_is_a_column_is_an_error() -> None:
    with pytest.raises(
        InvalidInputError, match=r"write `ID` for the column, or 'id' for the string"
    ):
        parse_sql('"id" = 5', columns=["ID"])
    _same("\"other\" = 'id'", Comparison("=", lit("other"), lit("id")))


def test_rules_of_tables_know_no_spelling_that_spark_lacks() -> None:
    with pytest.raises(InvalidInputError, match="int"):
        parse_sql("a = int'5'", columns=["a"])


@pytest.mark.parametrize(
    "name",
    ["nvl", "if", "ifnull", "date", "left", "map", "to_date", "date_add", "dayofweek", "year",
     "any", "rlike", "array", "struct", "log", "concat", "current_user", "transform"],
)  # fmt: skip
def test_a_call_keeps_its_name_and_its_arguments(name: str) -> None:
    _same(f"{name}(a, 'yyyy')", Call(name, (A, lit("yyyy"))))


@pytest.mark.parametrize("joined", ["+", "||", "="])
def test_long_chains_to_the_left_are_read(joined: str) -> None:
    assert isinstance(parse_sql(f" {joined} ".join(["a"] * 5000)), Expression)


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
        ("a > ? AND b > ?", [1], r"character 15 \(\?\): found only 1 value for parameters"),
        ("a > ?", [1, 2], "2 values for parameters, but .* has 1 parameter$"),
        ("a > 1", [1], "1 value for parameters, but .* has 0 parameters$"),
        ("a > ?", {"p": 1}, "needs a list"),
        ("a > :p", [1], "no value was given for the parameter :p"),
        ("a > :p", {"q": 1}, "no value was given for the parameter :p"),
    ],
)
def test_parameters_that_do_not_fit(sql: str, parameters: object, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        parse_sql(sql, parameters=parameters)  # type: ignore[arg-type]  # parametrised
