"""Merges through the facade."""

from __future__ import annotations

from tests.spark.parity.cases import NO_TABLE, cases_of
from tests.unit.table import test_merge

globals().update(
    cases_of(
        test_merge,
        {
            "test_merges_that_mean_nothing": NO_TABLE,
        },
    )
)
