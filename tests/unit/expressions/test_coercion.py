"""The common type of two values, and the result type of arithmetic, by Spark's ANSI rules."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_type
from deltalog.expressions.coercion import (
    adjusted_decimal,
    arithmetic_type,
    can_assign,
    can_cast,
    common_type,
    decimal_of,
    decimal_of_constant,
    is_decimal,
    is_numeric,
    wider_decimal,
)
from deltalog.schema.types import VOID, DataType, PrimitiveType


def typed(text: str) -> DataType:
    return VOID if text == "void" else parse_type(text)


def decimal(text: str) -> PrimitiveType:
    found = typed(text)
    assert isinstance(found, PrimitiveType)
    return found


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("int", "int", "int"),
        ("tinyint", "bigint", "bigint"),
        ("void", "date", "date"),
        ("float", "float", "float"),
        ("float", "int", "double"),
        ("float", "decimal(5,2)", "double"),
        ("bigint", "decimal(5,2)", "decimal(22,2)"),
        ("decimal(5,2)", "decimal(4,3)", "decimal(6,3)"),
        ("date", "timestamp", "timestamp"),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("string", "int", "bigint"),
        ("string", "decimal(5,2)", "double"),
        ("string", "boolean", "boolean"),
        ("string", "array<int>", None),
        ("boolean", "int", None),
        ("date", "int", None),
        ("array<int>", "array<bigint>", "array<bigint>"),
        ("array<int>", "array<boolean>", None),
        ("map<int,string>", "map<bigint,int>", "map<bigint,bigint>"),
        ("struct<a:int,b:date>", "struct<A:bigint,B:date>", "struct<a:bigint,b:date>"),
        ("struct<a:int,b:date>", "struct<x:bigint,y:date>", None),
        ("struct<a:int>", "struct<a:int,b:int>", None),
        ("array<int>", "map<int,int>", None),
    ],
)
def test_the_common_type_of_two(left: str, right: str, expected: str | None) -> None:
    wanted = None if expected is None else typed(expected)
    assert common_type(typed(left), typed(right)) == wanted
    if not left.startswith("struct"):  # whose names are those of the left side
        assert common_type(typed(right), typed(left)) == wanted


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("+", "decimal(10,2)", "decimal(5,3)", "decimal(12,3)"),
        ("-", "decimal(38,10)", "decimal(38,10)", "decimal(38,9)"),
        ("*", "decimal(10,2)", "decimal(5,3)", "decimal(16,5)"),
        ("*", "decimal(38,18)", "decimal(38,18)", "decimal(38,6)"),
        ("/", "decimal(10,2)", "decimal(5,3)", "decimal(19,8)"),
        ("/", "decimal(1,0)", "decimal(1,0)", "decimal(7,6)"),
        ("%", "decimal(10,2)", "decimal(5,3)", "decimal(5,3)"),
    ],
)
def test_arithmetic_of_decimals(operator: str, left: str, right: str, expected: str) -> None:
    assert arithmetic_type(operator, decimal(left), decimal(right)) == typed(expected)


@pytest.mark.parametrize(
    ("precision", "scale", "expected"),
    [
        (38, 38, "decimal(38,38)"),
        (39, 3, "decimal(38,3)"),
        (40, 20, "decimal(38,18)"),
        (60, 10, "decimal(38,6)"),
        (77, 36, "decimal(38,6)"),
    ],
)
def test_the_fraction_shrinks_first(precision: int, scale: int, expected: str) -> None:
    assert adjusted_decimal(precision, scale) == typed(expected)


def test_decimals_that_hold_both() -> None:
    assert wider_decimal(decimal("decimal(38,0)"), decimal("decimal(10,5)")) == typed(
        "decimal(38,0)"
    )
    assert wider_decimal(decimal("decimal(3,1)"), decimal("decimal(3,3)")) == typed("decimal(5,3)")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("tinyint", "decimal(3,0)"),
        ("smallint", "decimal(5,0)"),
        ("int", "decimal(10,0)"),
        ("bigint", "decimal(20,0)"),
        ("decimal(7,3)", "decimal(7,3)"),
    ],
)
def test_exact_numbers_as_decimals(kind: str, expected: str) -> None:
    assert decimal_of(typed(kind)) == typed(expected)


def test_inexact_numbers_are_no_decimals() -> None:
    for kind in ("double", "string", "array<int>"):
        with pytest.raises(InvalidInputError, match="not an exact number"):
            decimal_of(typed(kind))


def test_constants_have_the_digits_that_they_have() -> None:
    assert decimal_of_constant(2, typed("int")) == typed("decimal(1,0)")
    assert decimal_of_constant(-100, typed("bigint")) == typed("decimal(3,0)")
    assert decimal_of_constant(2, typed("tinyint")) == typed("decimal(3,0)")
    assert decimal_of_constant(None, typed("int")) == typed("decimal(10,0)")


@pytest.mark.parametrize(
    ("source", "to", "casts", "assigns"),
    [
        ("int", "int", True, True),
        ("void", "array<int>", True, True),
        ("int", "string", True, True),
        ("string", "int", True, True),
        ("array<int>", "string", True, False),
        ("int", "decimal(5,2)", True, True),
        ("int", "boolean", True, False),
        ("int", "timestamp", True, False),
        ("int", "date", False, False),
        ("boolean", "int", True, False),
        ("date", "int", False, False),
        ("timestamp", "bigint", True, False),
        ("timestamp_ntz", "bigint", False, False),
        ("date", "timestamp", True, True),
        ("binary", "int", False, False),
        ("array<int>", "array<string>", True, True),
        ("struct<a:int>", "struct<b:date>", False, False),
        ("struct<a:int>", "struct<b:int,c:int>", False, False),
        ("map<int,date>", "map<string,timestamp>", True, False),
    ],
)
def test_casts_and_arguments(source: str, to: str, casts: bool, assigns: bool) -> None:
    assert can_cast(typed(source), typed(to)) is casts
    assert can_assign(typed(source), typed(to)) is assigns


def test_kinds_of_numbers() -> None:
    kinds = ("int", "double", "decimal(5,2)", "date", "array<int>")
    assert [is_numeric(typed(kind)) for kind in kinds] == [True, True, True, False, False]
    assert [is_decimal(typed(kind)) for kind in kinds] == [False, False, True, False, False]
