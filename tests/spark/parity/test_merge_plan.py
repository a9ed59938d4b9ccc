"""Merges: the schema of the table."""

from __future__ import annotations

from tests.spark.parity.cases import OTHER_MISTAKE, cases_of
from tests.unit.operations.changes.merge import test_plan

globals().update(
    cases_of(
        test_plan,
        {"test_an_upsert_does_not_lose_columns_and_says_what_to_do": OTHER_MISTAKE},
    )
)
