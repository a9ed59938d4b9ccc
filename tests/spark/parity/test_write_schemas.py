"""Schemas and partitions that data changes."""

from __future__ import annotations

from tests.spark.parity.cases import RACES, cases_of
from tests.unit.operations import test_write

globals().update(
    cases_of(
        test_write,
        {
            "test_rows_that_another_writer_added_meanwhile_go_too": RACES,
        },
    )
)
