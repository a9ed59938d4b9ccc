"""Merges: which clause decides."""

from __future__ import annotations

from tests.spark.parity.cases import COUNTS, TOO_LONG, cases_of
from tests.unit.rows.merge import test_pairs

globals().update(
    cases_of(
        test_pairs,
        {
            "test_without_keys_the_outcome_is_that_with_keys": TOO_LONG,
            "test_matching_pairs_are_not_kept": COUNTS,
        },
    )
)
