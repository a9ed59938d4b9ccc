"""Java's angles, to the last bit; the expected values are Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from deltalog.expressions import java_math as java_angles
from tests.support.java_answers import java_answers, wrong_answers

ANSWERS: Final = java_answers()
FUNCTIONS: Final[dict[str, Callable[..., float]]] = {
    "acos": java_angles.acos,
    "asin": java_angles.asin,
    "atan": java_angles.atan,
    "atan2": java_angles.atan2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_answers_are_spark_s_to_the_last_bit(name: str) -> None:
    assert ANSWERS[name]
    assert wrong_answers(FUNCTIONS[name], ANSWERS[name]) == {}
