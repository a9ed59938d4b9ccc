from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import col, parse_sql, parse_type, to_sql

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
