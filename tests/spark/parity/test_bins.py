"""Which small files are put together."""

from __future__ import annotations

from tests.spark.parity.cases import NO_WORD, cases_of
from tests.unit.operations.optimize import test_bins

globals().update(
    cases_of(
        test_bins,
        {
            "test_files_are_packed_up_to_the_target_size": NO_WORD,
            "test_full_files_stay": NO_WORD,
        },
    )
)
