"""Functions of numbers; the expected values are those of Java's Math and BigDecimal."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import numbers

MOST, LEAST = (1 << 63) - 1, -(1 << 63)


def longs(*values: int | None) -> Any:
    return pa.array(values, pa.int64())


def doubles(*values: float | None) -> Any:
    return pa.array(values, pa.float64())


def decimals(precision: int, scale: int, *values: str | None) -> Any:
    exact = [None if value is None else Decimal(value) for value in values]
    return pa.array(exact, pa.decimal128(precision, scale))


@pytest.mark.parametrize("kernel", [numbers.absolute, numbers.negative])
def test_the_least_integer_has_no_opposite(kernel: Any) -> None:
    assert kernel(longs(-5, 0, None)).to_pylist() == [5, 0, None]
    with pytest.raises(InvalidInputError, match="overflows long"):
        kernel(longs(LEAST))


def test_doubles_become_longs_as_in_java() -> None:
    values = doubles(1.2, -1.2, 1e300, -1e300, math.inf, math.nan, None)
    assert numbers.ceiling(values).to_pylist() == [2, -1, MOST, LEAST, MOST, 0, None]
    assert numbers.floor(values).to_pylist() == [1, -2, MOST, LEAST, MOST, 0, None]


def test_decimals_become_whole() -> None:
    values = decimals(4, 2, "1.01", "-1.01", "99.99", None)
    up, down = numbers.ceiling(values), numbers.floor(values)
    assert up.type == down.type == pa.decimal128(3, 0)
    assert up.to_pylist() == [Decimal(2), Decimal(-1), Decimal(100), None]
    assert down.to_pylist() == [Decimal(1), Decimal(-2), Decimal(99), None]
    assert numbers.ceiling(values[0]).as_py() == Decimal(2)


@pytest.mark.parametrize(
    ("value", "places", "expected"),
    [
        (2.5, 0, 3.0),
        (-2.5, 0, -3.0),
        (2.675, 2, 2.68),  # as a binary number it is below 2.675
        (1.005, 2, 1.01),
        (1234.5, -2, 1200.0),
        (-0.4, 0, 0.0),
        (math.inf, 1, math.inf),
        (None, 1, None),
    ],
)
def test_doubles_round_half_up(value: float | None, places: int, expected: float | None) -> None:
    digits = pa.scalar(places, pa.int32())
    assert numbers.round_half_up(doubles(value), digits).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("kernel", "places", "expected"),
    [
        # Beyond the digits before the point, halves are never reached; up and down are the unit.
        (numbers.round_half_up, -3, ["0", "0", None]),
        (numbers.ceiling, -3, ["1000", "0", None]),
        (numbers.floor, -3, ["0", "-1000", None]),
        (numbers.round_half_up, -2, ["100", "-100", None]),
        (numbers.ceiling, 1, ["100.0", "-99.9", None]),
        (numbers.floor, 1, ["99.9", "-100.0", None]),
        (numbers.ceiling, 5, ["99.99", "-99.99", None]),
    ],
)
def test_decimals_have_as_many_digits_as_asked_for(
    kernel: Any, places: int, expected: list[str | None]
) -> None:
    values = decimals(4, 2, "99.99", "-99.99", None)
    found = kernel(values, pa.scalar(places, pa.int32()))
    assert found.to_pylist() == [one and Decimal(one) for one in expected]
    widths = {-3: (4, 0), -2: (3, 0), 1: (4, 1), 5: (5, 2)}
    assert found.type == pa.decimal128(*widths[places])


def test_numbers_rounded_to_no_known_digits_are_null() -> None:
    nothing = pa.scalar(None, pa.int32())
    found = numbers.round_half_up(decimals(4, 2, "99.99"), nothing)
    assert (found.as_py(), found.type) == (None, pa.decimal128(3, 0))


@pytest.mark.parametrize("kernel", [numbers.round_half_up, numbers.ceiling])
def test_a_rounded_decimal_has_38_digits_at_most(kernel: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"does not fit decimal\(38,0\)"):
        kernel(decimals(38, 0, "9" * 38), pa.scalar(-1, pa.int32()))


def test_other_numbers_round_half_up() -> None:
    one, tens = pa.scalar(1, pa.int32()), pa.scalar(-1, pa.int32())
    floats = pa.array([0.25, None], pa.float32())
    assert numbers.round_half_up(floats, one).to_pylist() == pytest.approx([0.3, None])
    assert numbers.round_half_up(longs(25, -25, None), tens).to_pylist() == [30, -30, None]
    assert numbers.round_half_up(longs(25), one).to_pylist() == [25]
    rounded = numbers.round_half_up(decimals(4, 2, "99.95", "-0.05", None), one)
    assert rounded.type == pa.decimal128(4, 1)
    assert rounded.to_pylist() == [Decimal("100.0"), Decimal("-0.1"), None]
    assert numbers.round_half_up(decimals(4, 1, "125.0"), tens).to_pylist() == [Decimal(130)]
    with pytest.raises(InvalidInputError, match="round overflows byte"):
        numbers.round_half_up(pa.array([127], pa.int8()), tens)


def test_pmod_is_positive_for_positive_divisors() -> None:
    assert numbers.positive_remainder(longs(-7, 7, -7, None), longs(3, -3, -3, 3)).to_pylist() == [
        2,
        1,
        -1,
        None,
    ]
    assert numbers.positive_remainder(doubles(-7.5), doubles(2.0)).to_pylist() == [0.5]
    exact = numbers.positive_remainder(decimals(3, 1, "-7.5"), decimals(3, 1, "2.0"))
    assert exact.to_pylist() == [Decimal("0.5")]


def test_div_truncates_towards_zero() -> None:
    assert numbers.whole_quotient(longs(-7, 7, None), longs(2, -2, 0)).to_pylist() == [-3, -3, None]
    exact = numbers.whole_quotient(decimals(3, 1, "-7.5"), decimals(3, 1, "2.0"))
    assert (exact.type, exact.to_pylist()) == (pa.int64(), [-3])
    with pytest.raises(InvalidInputError, match="division by zero"):
        numbers.whole_quotient(longs(1), longs(0))
    with pytest.raises(InvalidInputError, match="div overflows long"):
        numbers.whole_quotient(longs(LEAST), longs(-1))


def test_signs() -> None:
    found: Any = numbers.sign(doubles(-3.0, 0.0, 2.0, None)).to_pylist()
    assert found == [-1.0, 0.0, 1.0, None]
    negative_zero: Any = numbers.sign(doubles(-0.0)).to_pylist()
    assert math.copysign(1, negative_zero[0]) == -1.0
    assert numbers.is_nan(doubles(math.nan, 1.0, None)).to_pylist() == [True, False, False]


def test_extremes_ignore_null_and_put_nan_last() -> None:
    left, right = doubles(1.0, None, math.nan, None), doubles(2.0, 3.0, 4.0, None)
    assert numbers.least(left, right).to_pylist() == [1.0, 3.0, 4.0, None]
    greatest: Any = numbers.greatest(left, right).to_pylist()
    assert (greatest[0], greatest[1], greatest[3]) == (2.0, 3.0, None)
    assert math.isnan(greatest[2])
