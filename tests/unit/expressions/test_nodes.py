from __future__ import annotations

import pickle

import pandas as pd
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import Column, Expression, Literal, col, lit, parse_sql, to_sql

A, B = col("a"), col("b")


@pytest.mark.parametrize(
    ("built", "sql"),
    [
        (A > 5, "a > 5"),
        (A >= 5, "a >= 5"),
        (A < 5, "a < 5"),
        (A <= 5, "a <= 5"),
        (A == "x", "a = 'x'"),
        (A != "x", "a <> 'x'"),
        (A.equals_null_safe(None), "a <=> NULL"),
        ((A > 1) & (B < 2), "a > 1 AND b < 2"),
        ((A > 1) | (B < 2), "a > 1 OR b < 2"),
        ((A > 1) & (B < 2) & A.is_null(), "a > 1 AND b < 2 AND a IS NULL"),
        (((A > 1) | (B < 2)) & A.is_null(), "(a > 1 OR b < 2) AND a IS NULL"),
        (~(A > 1), "NOT a > 1"),
        (A.is_not_null(), "a IS NOT NULL"),
        (A.is_in([1, None, B]), "a IN (1, NULL, b)"),
        (A.between(1, 5), "a >= 1 AND a <= 5"),
        (A.like("x%"), "a LIKE 'x%'"),
        (A.starts_with("x"), "startswith(a, 'x')"),
        (A.cast("integer"), "CAST(a AS INT)"),
        (A + 1 - B, "a + 1 - b"),
        (A * (B + 1), "a * (b + 1)"),
        (A / 2 % 3, "a / 2 % 3"),
        (1 + A, "1 + a"),
        (1 - A, "1 - a"),
        (2 * A, "2 * a"),
        (2 / A, "2 / a"),
        (2 % A, "2 % a"),
        (-A, "negative(a)"),
        (-(A + 1), "negative(a + 1)"),
    ],
)
def test_operators_build_what_sql_says(built: Expression, sql: str) -> None:
    assert built.same_as(parse_sql(sql))
    assert to_sql(built) == sql


@pytest.mark.parametrize(
    ("built", "shown"),
    [
        (col("a") > 5, "a > 5"),
        ((col("a") > 5) & col("b").is_null(), "a > 5 AND b IS NULL"),
        (col("info.city") == "x", "info.city = 'x'"),
        (col("`a b`"), "`a b`"),
        (col("a") > 1.5, "a > 1.5"),
        (col("a") > 1e300, "a > 1E300"),
        (~col("a").is_in([1, 2]), "a NOT IN (1, 2)"),
    ],
)
def test_an_expression_is_shown_as_sql(built: Expression, shown: str) -> None:
    assert repr(built) == str(built) == f"<Expression {shown}>"


def test_a_column_is_an_attribute_too() -> None:
    assert col.id.same_as(col("id"))
    assert (col.amount > 5).same_as(parse_sql("amount > 5"))
    assert repr(col) == "deltalog.col"
    assert pickle.loads(pickle.dumps(col)).id.same_as(col("id"))
    with pytest.raises(AttributeError, match=r"use col\('_change_type'\)"):
        col._change_type  # noqa: B018
    with pytest.raises(AttributeError, match=r"use col\('info.city'\) for a field of a struct"):
        col.info.city  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(col.info, "_repr_html_")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ("`a.b`.c", ("a.b", "c")),
        ("`a``b`", ("a`b",)),
        ("a b", ("a b",)),
    ],
)
def test_names_of_columns(name: str, path: tuple[str, ...]) -> None:
    assert col(name).path == path


@pytest.mark.parametrize("name", ["", "a.", ".a", "a..b", "`a"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot make a column"):
        col(name)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: bool(A > 5),
        lambda: (A > 5) and (A < 7),
        lambda: 5 < A < 7,
        lambda: not A,
        lambda: A in [B, A],
    ],
)
def test_python_cannot_decide_an_expression(misuse: object) -> None:
    assert callable(misuse)
    with pytest.raises(InvalidInputError, match="write & for and"):
        misuse()


def test_a_comparison_with_none_names_what_finds_nulls() -> None:
    with pytest.raises(InvalidInputError, match=r"use is_null\(\), or equals_null_safe\(value\)"):
        A == None  # noqa: B015, E711
    with pytest.raises(InvalidInputError, match=r"use is_not_null\(\)"):
        A != None  # noqa: B015, E711
    for missing in (pd.NaT, pd.NA):
        with pytest.raises(InvalidInputError, match=f"expression with {missing!r}: .*is_null"):
            col("a") == missing  # noqa: B015
    assert to_sql(col("a") == lit(None)) == "a = NULL"


def test_an_expression_as_literal_stays_itself() -> None:
    assert lit(A) is A
    assert lit(5).same_as(Literal(5))


def test_trees_compare_node_by_node_and_constants_with_their_type() -> None:
    assert (A > 5).same_as(A > 5)
    assert not (A > 5).same_as(A >= 5)
    assert not lit(1).same_as(lit(True))
    assert not lit(1).same_as(lit(1.0))
    assert not A.same_as("a")


def test_expressions_cross_processes() -> None:
    found = pickle.loads(pickle.dumps((A > 5) & B.is_in([1, "x"])))
    assert found.same_as((A > 5) & B.is_in([1, "x"]))


def test_nodes_are_values_in_sets() -> None:
    assert len({Column(("a",)), A}) == 2
