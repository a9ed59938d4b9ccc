"""Every test is in one tier, and `.ci/run` runs all of them."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
MARKS: Final = ("spark", "emulator", "corpus", "slow")


def _makefile() -> str:
    text = (ROOT / "Makefile").read_text("utf-8")
    names = dict(re.findall(r"^([A-Z]+) := (.*)$", text, re.MULTILINE))
    return re.sub(r"\$\(([A-Z]+)\)", lambda match: names.get(match[1], match[0]), text)


def _tiers() -> dict[str, str]:
    """The target of each tier → the marks that it selects."""
    found = re.findall(
        r"^(test[a-z-]*):[^\n]*\n(?:\t[^\n]*\n)*?\t[^\n]*-m \"([^\"]+)\"", _makefile(), re.MULTILINE
    )
    return dict(found)


def test_the_tiers_are_known() -> None:
    assert sorted(_tiers()) == ["test", "test-slow", "test-spark", "test-stores"]


@pytest.mark.parametrize("marks", list(product((False, True), repeat=len(MARKS))))
def test_a_test_is_in_exactly_one_tier(marks: tuple[bool, ...]) -> None:
    has = dict(zip(MARKS, marks, strict=True))
    tiers = [
        name
        for name, marks_of in _tiers().items()
        if eval(marks_of, {}, has)  # noqa: S307 - of our Makefile
    ]
    assert len(tiers) == 1, tiers


def test_all_tiers_are_run() -> None:
    assert re.search(r"^test-all: test-spark test-stores test-slow ", _makefile(), re.MULTILINE)
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert re.search(r"^ +make test$", script, re.MULTILINE)
    assert re.search(r"^ +make test-all$", script, re.MULTILINE)
