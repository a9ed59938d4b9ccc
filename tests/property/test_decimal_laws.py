"""Decimal arithmetic is Java's, whatever the precision and scale of the operands."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.errors import InvalidInputError
from deltalog.expressions.arithmetic import calculate
from tests.support.examples import examples

EXACT = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)
JAVA = decimal.Context(prec=39, rounding=decimal.ROUND_HALF_UP)


@st.composite
def sides(draw: st.DrawFn, rows: int) -> Any:
    """A column of decimals, of which some have all digits, and some are NULL."""
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    most = 10**precision - 1
    value = st.one_of(
        st.integers(-most, most),
        st.sampled_from([0, 1, -1, 5, most, -most]),
        st.integers(-99, 99).filter(lambda one: abs(one) <= most),
    )
    numbers = draw(st.lists(st.one_of(st.none(), value), min_size=rows, max_size=rows))
    exact = [None if one is None else Decimal(one).scaleb(-scale, EXACT) for one in numbers]
    return pa.array(exact, pa.decimal128(precision, scale))


def expected(operator: str, left: Decimal, right: Decimal, kind: Any) -> Decimal | None:
    """The value as Spark computes it; None if it does not fit the type."""
    match operator:
        case "+":
            value = EXACT.add(left, right)
        case "-":
            value = EXACT.subtract(left, right)
        case "*":
            value = JAVA.multiply(left, right)
        case "/":
            value = EXACT.divide(left, right).quantize(Decimal("1e-39"), context=EXACT)
        case _:
            value = EXACT.remainder(left, right)
    value = value.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)
    whole = kind.precision - kind.scale
    return None if value and value.adjusted() >= whole else value


@pytest.mark.parametrize("operator", "+-*/%")
@given(data=st.data())
@settings(max_examples=examples(200))
def test_a_column_has_the_values_of_its_rows(operator: str, data: st.DataObject) -> None:
    left, right = data.draw(sides(4)), data.draw(sides(4))
    pairs = [
        (a, b)
        for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)
        if b != 0 or operator in "+-*"
    ]
    left = pa.array([a for a, _ in pairs], left.type)
    right = pa.array([b for _, b in pairs], right.type)
    try:
        found = calculate(operator, left, right)
    except InvalidInputError as error:
        found, problem = calculate(operator, left[:0], right[:0]), str(error)
    else:
        problem = ""
    wanted = [
        None if a is None or b is None else expected(operator, a, b, found.type) for a, b in pairs
    ]
    fits = all(
        value is not None for value, pair in zip(wanted, pairs, strict=True) if None not in pair
    )
    assert fits is (problem == ""), problem
    assert not fits or found.to_pylist() == wanted
