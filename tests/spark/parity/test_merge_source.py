"""Merges: sources of any kind."""

from __future__ import annotations

from tests.spark.parity.cases import AS_DELTALAKE, NO_TABLE, cases_of
from tests.unit.operations.changes.merge import test_source

globals().update(
    cases_of(
        test_source,
        {
            "test_two_columns_of_one_name_are_refused": NO_TABLE,
            "test_nanoseconds_of_a_source_are_cut_off": AS_DELTALAKE,
        },
    )
)
