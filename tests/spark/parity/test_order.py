"""Rows in an order."""

from __future__ import annotations

from tests.spark.parity.cases import NO_WORD, cases_of
from tests.unit.operations.optimize import test_order

globals().update(
    cases_of(
        test_order,
        {
            "test_little_memory_gives_the_same_order": NO_WORD,
            "test_temporary_files_may_be_limited": NO_WORD,
        },
    )
)
