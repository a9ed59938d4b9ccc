from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    as_expression,
    col,
    filter_mask,
    from_filters,
    lit,
    parse_type,
    to_sql,
)
from deltalog.schema import ArrayType, Field, Schema, StructType, from_arrow_schema

DATA = pa.table(
    {
        "n": pa.array([1, 2, None, 4], pa.int32()),
        "price": pa.array([Decimal("1.00"), None, Decimal("3.00"), Decimal("4.50")]),
        "name": pa.array(["a", "", None, "5"]),
        "d": pa.array([dt.date(2024, 1, day) for day in (1, 2, 3)] + [None]),
        "flag": pa.array([True, False, None, True]),
        "s": pa.array([{"x": 1}, {"x": 2}, None, {"x": None}], pa.struct([("x", pa.int32())])),
        "a.b": pa.array([1, 2, 3, 4], pa.int32()),
    }
)
SCHEMA: Schema = from_arrow_schema(DATA.schema)


def _rows(filters: Any) -> list[int]:
    mask = filter_mask(as_expression(filters, SCHEMA), DATA).to_pylist()
    return [row for row, holds in enumerate(mask) if holds]


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        ([("n", "=", 2)], [1]),
        ([("n", "==", "2")], [1]),
        ([("n", "!=", 2)], [0, 3]),
        ([("n", "<>", 2)], [0, 3]),
        ([("n", ">", 1), ("n", "<=", 4)], [1, 3]),
        ([[("n", "=", 1)], [("n", ">=", 4)]], [0, 3]),
        ([[("n", ">", 1), ("name", "=", "")], [("n", "=", 4)]], [1, 3]),
        ([("n", "in", [1, 4, 9])], [0, 3]),
        ([("n", "IN", ("1", "4"))], [0, 3]),
        ([("n", "not in", [1])], [1, 3]),
        ([("n", "Not  In", {1})], [1, 3]),
        ([("n", "in", [])], []),
        ([("n", "in", [1, None])], [0, 2]),
        ([("n", "not in", [1, None])], [1, 3]),
        ([("n", "=", None)], [2]),
        ([("n", "!=", None)], [0, 1, 3]),
        ([("n", "=", "")], [2]),
        ([("name", "=", "")], [1]),
        ([("name", "=", None)], [2]),
        ([("name", "=", 5)], [3]),
        ([("d", ">=", "2024-01-02")], [1, 2]),
        ([("d", "=", dt.date(2024, 1, 1))], [0]),
        ([("flag", "=", True)], [0, 3]),
        ([("flag", "=", "true")], [0, 3]),
        ([("price", ">", 2.5)], [2, 3]),
        ([("price", ">", "2.5")], [2, 3]),
        ([("N", "=", 1)], [0]),
        ([("s.x", "=", 2)], [1]),
        ([("a.b", "=", 2)], [1]),
        ([("`a.b`", "=", 2)], [1]),
        ([["n", "=", 1]], [0]),
        ((("n", "=", 1),), [0]),
        (("n", "=", 1), [0]),
        ([], [0, 1, 2, 3]),
        ([[("n", "=", 1)]], [0]),
    ],
)
def test_filters_choose_rows_as_deltalake_does(filters: Any, rows: list[int]) -> None:
    assert _rows(filters) == rows


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ([("n", "~", 1)], "operator '~' is not one of =, ==, "),
        ([("n", "like", "x")], "operator 'like' is not one of"),
        ([("n", "=")], "cannot read the filters"),
        ([("n", "=", 1, 2)], "cannot read the filters"),
        ([(5, "=", 1)], "cannot read the filters"),
        ([("n", 5, 1)], "cannot read the filters"),
        ([("n", "=", 1), [("n", "=", 2)]], "cannot read the filters"),
        ([[]], "cannot read the filters"),
        ([[("n", "=", 1)], []], "cannot read the filters"),
        (["n = 1"], "cannot read the filters"),
        ([("n", "in", "12")], "needs a list of values, found '12'"),
        ([("n", "in", 1)], "needs a list of values, found 1"),
        ([("nn", "=", 1)], "no column 'nn'.*did you mean 'n'"),
        ([("n", "=", "x")], "cannot cast 'x'"),
        ([("d", "=", "soon")], "cannot cast 'soon' to date"),
        ([("n", "=", object())], "cannot use <object"),
        (5, "cannot use 5 as a condition"),
        (None, "cannot use None as a condition"),
        ({"n": 1}, "cannot use .* as a condition"),
        ("n", "n is of type integer, but a condition is expected"),
        (lit(5), "a condition is expected"),
    ],
)
def test_what_is_no_filter_is_an_error(filters: Any, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        as_expression(filters, SCHEMA)


@pytest.mark.parametrize(
    "predicate",
    [col("N") > 1, "n > 1", [("n", ">", 1)], pc.field("n") > 1, "n > 1L", "1 < n"],
)
def test_every_form_of_a_condition_means_the_same(predicate: Any) -> None:
    assert _rows(predicate) == [1, 3]


def test_parameters_go_into_sql() -> None:
    found = as_expression("n > ? AND name = ?", SCHEMA, [1, "x"])
    assert to_sql(found) == "n > 1 AND name = 'x'"
    assert to_sql(as_expression("n > :low", SCHEMA, {"low": 1})) == "n > 1"


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("\"name\" = 'a'", "name = 'a'"),
        ('"NAME" = "other"', "name = 'other'"),
        ('"s"."x" = int\'1\'', "s.x = 1"),
        ("n = bigint'-5' OR n > double'1.5'", "n = -5L OR n > 1.5D"),
        ("d = date'2024-01-02'", "d = DATE'2024-01-02'"),
    ],
)
def test_conditions_of_callers_may_be_written_as_for_deltalake(sql: str, meant: str) -> None:
    assert to_sql(as_expression(sql, SCHEMA)) == to_sql(as_expression(meant, SCHEMA))


def test_a_typed_literal_is_checked() -> None:
    with pytest.raises(InvalidInputError, match="this is not a valid INT"):
        as_expression("n = int'x'", SCHEMA)


def test_filters_without_a_schema_keep_their_values() -> None:
    assert to_sql(from_filters([("a", "=", 1), ("b", "in", ["x"])])) == "a = 1 AND b IN ('x')"


_INT = parse_type("int")


def _struct(**fields: Any) -> StructType:
    """A struct whose names have dots where Python has two underscores."""
    return StructType([Field(name.replace("__", "."), kind) for name, kind in fields.items()])


NESTED = _struct(
    a__b=_INT,
    a=_struct(b=_INT, c__d=_INT, t=parse_type("string")),
    x=_struct(y__z=_INT, y=_struct(w=_INT)),
    x__y=_struct(z=_INT),
    l=ArrayType(_struct(e__f=_INT)),
)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("a.b", "`a.b`"),  # the column of that name, though `a` has such a field
        ("A.B", "`a.b`"),
        (("a", "b"), "a.b"),
        ("`a`.b", "a.b"),
        ("a.c.d", "a.`c.d`"),
        ("A.C.D", "a.`c.d`"),
        ("a.`c.d`", "a.`c.d`"),
        (("a", "c.d"), "a.`c.d`"),
        (("a.b",), "`a.b`"),
        ("x.y.w", "x.y.w"),
        (("x", "y.z"), "x.`y.z`"),
    ],
)
def test_names_with_dots(name: str | tuple[str, ...], column: str) -> None:
    assert to_sql(as_expression([(name, "=", 1)], NESTED)) == f"{column} = 1"
    assert to_sql(as_expression([(name, "in", [1])], NESTED)) == f"{column} IN (1)"
    values = [(("a", "t"), "=", 1)]
    assert to_sql(as_expression(values, NESTED)) == "a.t = '1'"  # a value as text, as of columns


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("x.y.z", "may be `x`.`y.z` or `x.y`.`z`"),
        ("a.c.e", r"there is no column 'a\.c\.e'"),
        ("l.element.e.f", "there is no column"),
        ((), "cannot read the filters"),
        (("a", 1), "cannot read the filters"),
    ],
)
def test_names_with_dots_that_no_column_has(name: Any, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        as_expression([(name, "=", 1)], NESTED)
