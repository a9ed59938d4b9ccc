"""Merges: which clause decides."""

from __future__ import annotations

from tests.spark.parity.cases import COUNTS, NO_LIMIT, cases_of
from tests.unit.operations.changes.merge import test_pairs

globals().update(
    cases_of(
        test_pairs,
        {
            "test_without_keys_the_outcome_is_that_with_keys[ranges-1": NO_LIMIT,  # 1 and 1048576
            "test_without_keys_the_outcome_is_that_with_keys[every pair": NO_LIMIT,
            "test_matching_pairs_are_not_kept": COUNTS,
        },
    )
)
