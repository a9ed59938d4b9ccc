"""Statements of the documentation, run by the reference and by us on tables of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.reference import Spark
from tests.support.reference_scenarios import FULL
from tests.support.sql_by_both import assert_same_tables, by_both, cases, sampled

CASES = cases(Path(__file__).with_name("statements.sql"))


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sql-", ignore_cleanup_errors=True) as path:
        yield Path(path)


@pytest.mark.parametrize("case", sampled(list(CASES), every=8, is_full=FULL))
def test_statements_do_the_same_by_both(spark: Spark, place: Path, case: str) -> None:
    theirs, mine = by_both(spark, place, CASES[case])
    assert_same_tables(spark, theirs, mine)
