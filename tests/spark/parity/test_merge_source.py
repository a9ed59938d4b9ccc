"""Merges: sources of any kind."""

from __future__ import annotations

from tests.spark.parity.cases import NO_TABLE, cases_of
from tests.unit.rows.merge import test_source

globals().update(
    cases_of(
        test_source,
        {
            "test_two_columns_of_one_name_are_refused": NO_TABLE,
        },
    )
)
