"""Rows in Z-order."""

from __future__ import annotations

from tests.spark.parity.cases import NO_WORD, cases_of
from tests.unit.operations.optimize import test_z_order

globals().update(
    cases_of(
        test_z_order,
        {
            "test_files_become_narrow_in_every_column": NO_WORD,
        },
    )
)
