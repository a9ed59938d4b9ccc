"""Overwriting partitions."""

from __future__ import annotations

from tests.spark.parity.cases import RACES, cases_of
from tests.unit.table import test_dynamic_overwrite

globals().update(
    cases_of(
        test_dynamic_overwrite,
        {
            "test_rows_that_another_writer_added_meanwhile_go_too": RACES,
        },
    )
)
