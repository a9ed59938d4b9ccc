"""Decimal arithmetic is Java's, whatever the precision and scale of the operands."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog._util.decimals import cast_decimals, fit_decimals, parse_decimals
from deltalog.errors import InvalidInputError
from deltalog.expressions.arithmetic import calculate
from deltalog.expressions.casts import cast
from deltalog.schema import from_arrow_type
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
        # Arrow divides numbers of 32 bits, and corrects some quotients of such ones wrongly.
        st.integers(0, 126).map(lambda bits: min(most, 1 << bits)),
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


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (680564733836925166769607693763939926016, 9_999_999_999_999),
        (79228162513976107217392238592, 999_999_999_999_999),
        (36893488147418841088, 999_999_999_999_999_999),
    ],
)
def test_quotients_that_arrow_computes_wrongly(left: int, right: int) -> None:
    dividend = pa.array([Decimal(left % 10**38)], pa.decimal128(38, 0))
    divisor = pa.array([Decimal(right)], pa.decimal128(18, 0))
    found = calculate("/", dividend, divisor)
    assert found.to_pylist() == [expected("/", dividend[0].as_py(), Decimal(right), found.type)]


# --- Casts: Arrow's own returns wrong values for some that are out of range

_TYPES: dict[int, Any] = {9: pa.decimal32, 18: pa.decimal64, 38: pa.decimal128, 76: pa.decimal256}


@st.composite
def kinds(draw: st.DrawFn, digits: tuple[int, ...] = (38, 76)) -> Any:
    most = draw(st.sampled_from(digits))
    precision = draw(st.one_of(st.integers(1, most), st.just(most)))
    return _TYPES[most](precision, draw(st.integers(0, precision)))


@st.composite
def decimals(draw: st.DrawFn, kind: Any) -> list[Decimal | None]:
    """Values of any number of digits."""
    lengths = st.one_of(st.integers(1, kind.precision), st.just(kind.precision))
    numbers = lengths.flatmap(lambda digits: st.integers(10 ** (digits - 1), 10**digits - 1))
    signed = st.tuples(numbers, st.sampled_from([1, -1])).map(lambda pair: pair[0] * pair[1])
    made = draw(st.lists(st.one_of(st.none(), signed), max_size=5))
    return [None if one is None else Decimal(one).scaleb(-kind.scale, EXACT) for one in made]


def fitted(value: Decimal, kind: Any) -> Decimal | None:
    """The value, rounded half up to a type; None if it is out of range."""
    found = value.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)
    return None if found and found.adjusted() >= kind.precision - kind.scale else found


def is_over(value: Decimal, kind: Any) -> bool:
    """Whether a value has more digits before the decimal point than a type."""
    return bool(value) and value.adjusted() >= kind.precision - kind.scale


@given(data=st.data(), kind=kinds((9, 18, 38, 76)), to=kinds())
@settings(max_examples=examples(500))
def test_a_value_in_another_type_is_the_same_or_refused(
    data: st.DataObject, kind: Any, to: Any
) -> None:
    given_ = data.draw(decimals(kind))
    # Values in range that would be rounded are an error, also if the rounded value is out of range
    # (9.5 as decimal(1, 0)); a test of them is below.
    values = [one for one in given_ if one is None or fitted(one, to) == one or is_over(one, to)]
    wanted = [None if one is None else fitted(one, to) for one in values]
    array = pa.array([None, *values], kind)[1:]
    found, refused = fit_decimals(array, to)
    assert found.type == to
    assert found.to_pylist() == wanted
    is_refused = [one is not None and two is None for one, two in zip(values, wanted, strict=True)]
    assert (refused is not None) == any(is_refused)
    if refused is not None:
        assert [bool(one) for one in refused.to_pylist()] == is_refused
        with pytest.raises(pa.ArrowInvalid, match="does not fit in"):
            cast_decimals(array, to)
    else:
        assert cast_decimals(array, to).equals(found)


@pytest.mark.parametrize(("value", "digits"), [("1.5", 5), ("9.5", 1)])
@pytest.mark.parametrize("make", _TYPES.values())
def test_a_value_that_would_be_rounded_is_an_error(value: str, digits: int, make: Any) -> None:
    with pytest.raises(pa.ArrowInvalid, match="data loss"):
        fit_decimals(pa.array([Decimal(value)], make(2, 1)), pa.decimal128(digits, 0))


@given(data=st.data(), kind=kinds(), to=kinds((38,)), form=st.sampled_from(["f", "e", "E"]))
@settings(max_examples=examples(500))
def test_a_string_is_the_decimal_or_refused(
    data: st.DataObject, kind: Any, to: Any, form: str
) -> None:
    values = data.draw(decimals(kind))
    strings = pa.array([None if one is None else f"{one:{form}}" for one in values], pa.string())
    wanted = [None if one is None else fitted(one, to) for one in values]
    found = cast(strings, from_arrow_type(pa.string()), from_arrow_type(to), is_try=True)
    assert found.to_pylist() == wanted
    if all(one is None or one == two for one, two in zip(values, wanted, strict=True)):
        assert parse_decimals(strings, to).to_pylist() == wanted
    else:
        with pytest.raises(pa.ArrowInvalid):
            parse_decimals(strings, to)


@given(data=st.data(), kind=kinds((38,)), to=kinds((38,)))
@settings(max_examples=examples(500))
def test_a_cast_is_rounded_or_refused(data: st.DataObject, kind: Any, to: Any) -> None:
    values = data.draw(decimals(kind))
    found = cast(pa.array(values, kind), from_arrow_type(kind), from_arrow_type(to), is_try=True)
    assert found.to_pylist() == [None if one is None else fitted(one, to) for one in values]


@pytest.mark.parametrize(
    ("number", "to"),
    [
        ("460331602691505663798073246748", pa.decimal128(38, 18)),
        ("99999999999999999999999999999999999999.5", pa.decimal128(38, 0)),
        ("1" * 60, pa.decimal128(38, 0)),
        ("9" * 70 + ".5", pa.decimal128(38, 2)),
        ("1e50", pa.decimal128(38, 18)),
        ("0.5", pa.decimal128(38, 38)),
        ("-12345678901234567890.1234567890123456785", pa.decimal128(38, 18)),
        ("9e-60", pa.decimal128(38, 38)),
    ],
)
def test_long_strings(number: str, to: Any) -> None:
    found = cast(
        pa.array([number, "1x", None, "0"]),
        from_arrow_type(pa.string()),
        from_arrow_type(to),
        is_try=True,
    )
    assert found.to_pylist() == [fitted(Decimal(number), to), None, None, Decimal(0)]


@pytest.mark.parametrize("number", ["12345678901234567890123456789012345678", "-9e37"])
def test_a_decimal_of_many_digits_is_no_timestamp(number: str) -> None:
    values = pa.array([Decimal(number), Decimal(1)], pa.decimal128(38, 0))
    kinds_ = from_arrow_type(values.type), from_arrow_type(pa.timestamp("us", "UTC"))
    assert cast(values, *kinds_, is_try=True).is_valid().to_pylist() == [False, True]
