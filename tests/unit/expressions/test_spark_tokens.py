from __future__ import annotations

import pytest

from deltalog.expressions import Expression, col, lit, parse_sql
from deltalog.expressions.nodes import Call

A = col("a")


def _same(sql: str, expected: Expression) -> None:
    assert parse_sql(sql).same_as(expected), parse_sql(sql)


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


@pytest.mark.parametrize("name", ["interval", "array", "end", "all", "unknown", "div", "as", "if"])
def test_words_that_are_no_keywords_here_are_columns(name: str) -> None:
    _same(f"{name} = {name}[0]", col(name) == Call("[]", (col(name), lit(0))))


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("when > 5 AND then IS NULL", "`when` > 5 AND `then` IS NULL"),
        ("CASE WHEN a THEN b ELSE c END = else", "CASE WHEN a THEN b ELSE c END = `else`"),
        ("upper(when)", "upper(`when`)"),
    ],
)
def test_words_of_case_are_names_outside_of_it(sql: str, meant: str) -> None:
    assert parse_sql(sql).same_as(parse_sql(meant))
