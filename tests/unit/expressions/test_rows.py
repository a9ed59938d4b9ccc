from __future__ import annotations

import operator
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import rows

NUMBERS: Any = pa.array([1, None, 3])


def test_a_function_by_row_skips_null() -> None:
    product = rows.by_row(operator.mul, pa.int64(), NUMBERS, pa.scalar(10))
    assert product.to_pylist() == [10, None, 30]
    nothing = rows.by_row(operator.mul, pa.int64(), NUMBERS, pa.scalar(None, pa.int64()))
    assert nothing.to_pylist() == [None, None, None]


def test_a_function_of_constants_is_a_constant() -> None:
    product = rows.by_row(operator.mul, pa.int64(), pa.scalar(6), pa.scalar(7))
    assert product == pa.scalar(42)
    nothing = rows.by_row(operator.mul, pa.int64(), pa.scalar(6), pa.scalar(None, pa.int64()))
    assert nothing == pa.scalar(None, pa.int64())


def test_arrows_errors_are_raised_in_sparks_terms() -> None:
    with pytest.raises(InvalidInputError, match="no number"), rows.refusing("no number"):
        pa.array(["x"]).cast(pa.int64())
    with rows.refusing("no number"):
        pa.array(["1"]).cast(pa.int64())


def test_constants() -> None:
    assert rows.is_constant(pa.scalar(1), pa.scalar("x"))
    assert not rows.is_constant(pa.scalar(1), pa.scalar(None, pa.int64()))
    assert not rows.is_constant(pa.scalar(1), NUMBERS)
    assert rows.python_values(pa.scalar(7), 2) == [7, 7]
    assert rows.python_values(NUMBERS, 3) == [1, None, 3]


def test_arrays_of_constants() -> None:
    assert rows.as_array(pa.scalar(7), 2).to_pylist() == [7, 7]
    assert rows.as_array(NUMBERS, 3) is NUMBERS
    nothing = rows.as_array(pa.scalar(None, pa.date32()), 2)
    assert (nothing.type, nothing.to_pylist()) == (pa.date32(), [None, None])
    assert rows.row_numbers(3).to_pylist() == [0, 1, 2]


def test_functions_of_arrays_take_constants_too() -> None:
    def doubled(array: Any) -> Any:
        return pa.array([value and value * 2 for value in array.to_pylist()], array.type)

    assert rows.on_array(doubled, NUMBERS).to_pylist() == [2, None, 6]
    assert rows.on_array(doubled, pa.scalar(4)).as_py() == 8
    assert rows.on_array(doubled, pa.scalar(None, pa.int64())).as_py() is None


def test_the_volume_of_null_and_of_negative_sizes_is_nothing() -> None:
    for size in (None, -5):
        rows.check_volume("f", pa.scalar(size, pa.int32()), rows=10)
        rows.check_volume("f", pa.array([size], pa.int32()))
    rows.check_volume("f", pa.array([], pa.int32()))


@pytest.mark.parametrize("constant", [True, False])
def test_a_value_that_would_exhaust_the_memory_is_refused(*, constant: bool) -> None:
    beyond: Any = pa.scalar(1 << 32) if constant else pa.array([1, 1 << 32])
    with pytest.raises(InvalidInputError, match="f makes 4,294,967,296 characters"):
        rows.check_volume("f", beyond)
