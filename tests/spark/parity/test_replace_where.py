"""Overwriting by predicate."""

from __future__ import annotations

from tests.spark.parity.cases import RACES, cases_of
from tests.unit.data.write import test_replace_where

globals().update(
    cases_of(
        test_replace_where,
        {
            "test_a_lost_race_is_run_again": RACES,
            "test_rows_that_are_read_once_are_not_replaced_twice": RACES,
        },
    )
)
