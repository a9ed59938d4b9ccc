"""Rows clustered once more."""

from __future__ import annotations

from tests.spark.parity.cases import NO_WORD, cases_of
from tests.unit.operations.optimize import test_cubes

globals().update(
    cases_of(
        test_cubes,
        {
            "test_full_cubes_stay": NO_WORD,
        },
    )
)
