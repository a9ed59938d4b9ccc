"""Merges through the facade."""

from __future__ import annotations

from tests.spark.parity.cases import AS_DELTALAKE, NO_TABLE, cases_of
from tests.unit.table import test_merge

globals().update(
    cases_of(
        test_merge,
        {
            "test_merges_that_mean_nothing": NO_TABLE,
            "test_a_merge_that_was_never_run_warns": NO_TABLE,
            "test_a_merge_that_was_tried_does_not_warn": NO_TABLE,
            "test_nothing_to_merge_is_no_mistake": AS_DELTALAKE,
        },
    )
)
