"""Java's powers, roots and lengths, to the last bit; the expected values are Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from deltalog.expressions import java_math as java_powers
from tests.support.java_answers import java_answers, wrong_answers

ANSWERS: Final = java_answers()
FUNCTIONS: Final[dict[str, Callable[..., float]]] = {
    "cbrt": java_powers.cbrt,
    "hypot": java_powers.hypot,
    "pow": java_powers.power,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_answers_are_spark_s_to_the_last_bit(name: str) -> None:
    assert ANSWERS[name]
    assert wrong_answers(FUNCTIONS[name], ANSWERS[name]) == {}
