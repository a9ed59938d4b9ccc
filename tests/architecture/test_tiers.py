"""Every test is in one tier, and `.ci/run` runs all of them."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from tests.support.tiers import MARKS, TESTS, can_hold

ROOT: Final = Path(__file__).resolve().parents[2]


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
    assert sorted(_tiers()) == ["test", "test-cluster", "test-slow", "test-spark", "test-stores"]


@pytest.mark.parametrize("marks", list(product((False, True), repeat=len(MARKS))))
def test_a_test_is_in_exactly_one_tier(marks: tuple[bool, ...]) -> None:
    has = dict(zip(MARKS, marks, strict=True))
    tiers = [
        name
        for name, marks_of in _tiers().items()
        if eval(marks_of, {}, has)  # noqa: S307 - of our Makefile
    ]
    assert len(tiers) == 1, tiers


def test_every_file_is_read_by_a_tier() -> None:
    """What a test is marked with, `tests/conftest.py` compares with what its file names."""
    files = sorted(TESTS.rglob("test_*.py"))
    assert len(files) > 500
    of_tiers = [{file for file in files if can_hold(file, marks)} for marks in _tiers().values()]
    assert set().union(*of_tiers) == set(files)
    assert all(can_hold(file, "") and can_hold(file, "protocol or slow") for file in files)


@pytest.mark.parametrize(
    ("text", "tiers"),
    [
        ("", {"test"}),
        ("@pytest.mark.slow('one of them')\n", {"test", "test-slow"}),
        ("pytestmark = pytest.mark.slow('all')\n", {"test-slow"}),
        (
            "pytestmark = [\n    pytest.mark.corpus,\n    pytest.mark.emulator,\n]\n",
            {"test-stores"},
        ),
    ],
)
def test_files_are_read_for_their_marks(text: str, tiers: set[str], tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(text, "utf-8")
    assert {name for name, marks in _tiers().items() if can_hold(file, marks)} == tiers


def test_all_tiers_are_run() -> None:
    assert re.search(
        r"^test-all: test-spark test-stores test-slow test-cluster ", _makefile(), re.MULTILINE
    )
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert re.search(r"^ +make test$", script, re.MULTILINE)
    assert re.search(r"^ +make test-all$", script, re.MULTILINE)
