"""What the root states for lower packages, and values that are known before they are computed."""

from __future__ import annotations

import pytest

from deltalog._util.cached import cached_property
from deltalog._util.lazy_names import _HIGHER, higher


@pytest.mark.parametrize("name", _HIGHER)
def test_a_higher_name_is_there(name: str) -> None:
    if "spark" in _HIGHER[name]:
        pytest.importorskip("pyspark")
    assert higher(name).__name__ == name


class Sum:
    """Computes once, or never."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    @cached_property
    def total(self) -> int:
        """The sum."""
        return sum(self.numbers)


def test_a_value_that_is_set_is_not_computed() -> None:
    one, other = Sum(1, 2), Sum(1, 2)
    Sum.total.set(one, 7)
    assert (one.total, other.total) == (7, 3)
