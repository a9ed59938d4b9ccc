"""Decimals that are rounded as numbers of 64 bits are those of Python's module."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from deltalog._util.decimals import rounded
from tests.support.examples import examples

EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[list[Decimal | None], Any, Any]:
    """Values, their type, and a type with at most as many decimal places."""
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    places = draw(st.integers(0, scale))
    most = 10 ** min(precision, draw(st.integers(1, 38))) - 1
    numbers = st.one_of(
        st.integers(-most, most),
        st.sampled_from([0, most, -most]),
        st.integers(0, most).map(lambda whole: whole // 10 * 10 + 5 if whole >= 10 else whole),
    )
    made = draw(st.lists(st.one_of(st.none(), numbers), max_size=6))
    values = [None if one is None else Decimal(one).scaleb(-scale, EXACT) for one in made]
    to = pa.decimal128(draw(st.integers(max(1, places), 38)), places)
    return values, pa.decimal128(precision, scale), to


@settings(max_examples=examples(500))
@given(given_=decimals(), skipped=st.integers(0, 3))
def test_halves_are_rounded_away_from_zero(
    given_: tuple[list[Decimal | None], Any, Any], skipped: int
) -> None:
    values, kind, to = given_
    found = rounded(pa.array(values, kind)[skipped:], to)
    event(f"rounded: {found is not None}")
    unit = Decimal(1).scaleb(-to.scale)
    wanted = [None if one is None else one.quantize(unit, context=EXACT) for one in values]
    if found is not None:
        found.validate(full=True)
        assert found.type == to
        assert found.to_pylist() == wanted[skipped:]


@pytest.mark.parametrize(
    ("values", "kind", "to", "is_rounded"),
    [
        (["0.5", "-0.5", None], pa.decimal128(2, 1), pa.decimal128(2, 0), True),
        (["99.5"], pa.decimal128(3, 1), pa.decimal128(2, 0), False),  # 100 has three digits
        (["99.4"], pa.decimal128(3, 1), pa.decimal128(2, 0), True),
        (["99999999999999999.9"], pa.decimal128(38, 1), pa.decimal128(38, 0), True),
        (["100000000000000000.0"], pa.decimal128(38, 1), pa.decimal128(38, 0), False),
        (["1.5"], pa.decimal256(50, 1), pa.decimal128(38, 0), False),
        (["1.5"], pa.decimal128(2, 1), pa.decimal128(3, 1), False),  # nothing to round
        ([None], pa.decimal128(2, 1), pa.decimal128(2, 0), True),
    ],
)
def test_long_values_are_left_to_arrow(
    values: list[str | None], kind: Any, to: Any, is_rounded: bool
) -> None:
    made = pa.array([None if one is None else Decimal(one) for one in values], kind)
    assert (rounded(made, to) is not None) == is_rounded
