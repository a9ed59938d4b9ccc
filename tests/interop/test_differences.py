"""What is different from deltalake on purpose is so, and the page `from-deltalake` lists it."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pytest

import deltalog
from tests.support.differences import DIFFERENCES, PAGE, Difference, answer, with_table


@pytest.mark.parametrize(
    "row", [row for row in DIFFERENCES if row.tested is None], ids=lambda row: row.what
)
def test_the_answers_differ_as_the_page_says(row: Difference, tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("theirs", "ours")]
    for place in places:
        place.mkdir()
    theirs = answer(row.ask, deltalake, str(places[0]))
    ours = answer(row.ask, deltalog, str(places[1]))
    assert (theirs, ours) == (row.theirs, row.ours)
    assert theirs != ours


@pytest.mark.parametrize(
    "row", [row for row in DIFFERENCES if row.tested is not None], ids=lambda row: row.what
)
def test_other_rows_have_a_test_of_their_own(row: Difference) -> None:
    assert row.ask is None
    file, name = row.tested or ("", "")
    tests = Path(__file__).resolve().parents[1]
    assert f"def {name}(" in (tests / file).read_text("utf-8")


def test_the_page_is_up_to_date() -> None:
    """`python -m tests.support.differences` writes it."""
    page = PAGE.read_text("utf-8")
    assert with_table(page) == page
    assert all(row.what in page for row in DIFFERENCES)
