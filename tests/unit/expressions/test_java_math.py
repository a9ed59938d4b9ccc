"""Java's exponentials, logarithms and hyperbolic functions; the expected values are Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from deltalog.expressions import java_math
from tests.support.java_answers import java_answers, wrong_answers

ANSWERS: Final = java_answers()
FUNCTIONS: Final[dict[str, Callable[..., float]]] = {
    "acosh": java_math.acosh,
    "asinh": java_math.asinh,
    "atanh": java_math.atanh,
    "cosh": java_math.cosh,
    "exp": java_math.exp,
    "expm1": java_math.expm1,
    "ln": java_math.log,
    "log10": java_math.log10,
    "log1p": java_math.log1p,
    "log2": java_math.log2,
    "sinh": java_math.sinh,
    "tanh": java_math.tanh,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_answers_are_spark_s_to_the_last_bit(name: str) -> None:
    assert ANSWERS[name]
    assert wrong_answers(FUNCTIONS[name], ANSWERS[name]) == {}
