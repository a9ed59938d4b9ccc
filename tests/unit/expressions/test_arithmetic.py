"""Spark's rules of `+ - * / %` in ANSI mode; the numbers are worked out by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions.arithmetic import calculate, fmod, remainder
from tests.support.sql import values_of

LEAST = -(1 << 31)


def ints(*values: int | None) -> Any:
    return pa.array(values, pa.int32())


def decimals(precision: int, scale: int, *values: str | None) -> Any:
    exact = [None if value is None else Decimal(value) for value in values]
    return pa.array(exact, pa.decimal128(precision, scale))


@pytest.mark.parametrize(("operator", "overflowing"), [("+", 1), ("-", -1), ("*", 2)])
def test_integers_that_overflow_are_an_error(operator: str, overflowing: int) -> None:
    most = ints((1 << 31) - 1)
    with pytest.raises(InvalidInputError, match="overflows integer"):
        calculate(operator, most, pa.scalar(overflowing, pa.int32()))
    assert calculate(operator, ints(None), pa.scalar(overflowing, pa.int32())).to_pylist() == [None]


@pytest.mark.parametrize("operator", ["/", "%"])
def test_a_divisor_of_zero_is_an_error_unless_the_left_side_is_null(operator: str) -> None:
    zeros = pa.array([0.0, 2.0])
    assert calculate(operator, pa.array([None, 6.0]), zeros).to_pylist()[0] is None
    with pytest.raises(InvalidInputError, match="division by zero"):
        calculate(operator, pa.array([1.0, 6.0]), zeros)
    assert calculate(operator, pa.array([1.0]), pa.array([None], pa.float64())).to_pylist() == [
        None
    ]


def test_the_remainder_has_the_sign_of_the_left_side() -> None:
    left, right = ints(7, -7, 7, -7, LEAST, None), ints(3, 3, -3, -3, -1, 3)
    assert remainder(left, right).to_pylist() == [1, -1, 1, -1, 0, None]
    assert calculate("%", pa.array([7.5, -7.5]), pa.scalar(2.0)).to_pylist() == [1.5, -1.5]
    assert fmod(-1.0, 0.25) == 0.0
    assert math.isnan(fmod(math.inf, 2.0))
    assert math.isnan(fmod(1.0, 0.0))
    assert fmod(3.0, math.inf) == 3.0


@pytest.mark.parametrize(
    ("operator", "left", "right", "result", "expected"),
    [
        ("+", (5, 2, "999.99"), (5, 2, "0.01"), (6, 2), "1000.00"),
        ("-", (5, 2, "-999.99"), (5, 2, "0.01"), (6, 2), "-1000.00"),
        ("*", (5, 2, "1.50"), (5, 2, "0.25"), (11, 4), "0.3750"),
        # decimal(5,2) / decimal(5,2): scale max(6, 2 + 5 + 1) = 8, precision 5 - 2 + 2 + 8 = 13.
        ("/", (5, 2, "1.00"), (5, 2, "3.00"), (13, 8), "0.33333333"),
        ("/", (5, 2, "2.00"), (5, 2, "3.00"), (13, 8), "0.66666667"),
        ("%", (5, 2, "-7.50"), (5, 2, "2.00"), (5, 2), "-1.50"),
        # 38 digits cannot hold the exact type (39,2): the scale stays, the range shrinks.
        ("+", (38, 2, "1.05"), (38, 2, "2.10"), (38, 2), "3.15"),
    ],
)
def test_decimals_have_sparks_types_and_round_half_up(
    operator: str,
    left: tuple[int, int, str],
    right: tuple[int, int, str],
    result: tuple[int, int],
    expected: str,
) -> None:
    (a, b, x), (c, d, y) = left, right
    found = calculate(operator, decimals(a, b, x, None), decimals(c, d, y, y))
    assert found.type == pa.decimal128(*result)
    assert found.to_pylist() == [Decimal(expected), None]
    constant = calculate(operator, decimals(a, b, x)[0], decimals(c, d, y)[0])
    assert constant.as_py() == Decimal(expected)


@pytest.mark.parametrize(("precision", "operator"), [(38, "+"), (38, "*")])
def test_a_decimal_that_does_not_fit_is_an_error(precision: int, operator: str) -> None:
    most = decimals(precision, 0, "9" * precision)
    with pytest.raises(InvalidInputError, match="does not fit decimal"):
        calculate(operator, most, most)


def test_in_sql() -> None:
    assert values_of("n / 2", n=ints(1, None)) == [0.5, None]
    assert values_of("n % 0", n=ints(None)) == [None]
    # An integer is a decimal(10,0): the scale is 1 + 10 + 1.
    assert values_of("1.0 / n", n=ints(3)) == [Decimal("0.333333333333")]
