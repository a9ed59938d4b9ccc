"""How many examples a property is tried with: as many as the tier has time for."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

WHOLE: Final = 100
"""Examples of a property that says no number, in `make test-long`; other profiles have fewer."""
_FEWEST: Final = 5


def examples(whole: int) -> int:
    """The share of examples that the loaded profile takes.

    Args:
        whole: how many `make test-long` takes.
    """
    profile = settings.default
    assert profile is not None
    return max(_FEWEST, whole * profile.max_examples // WHOLE)
