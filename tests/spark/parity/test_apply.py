"""Updates: what becomes of files."""

from __future__ import annotations

from tests.spark.parity.cases import FAULTS, cases_of
from tests.unit.operations.changes import test_apply

globals().update(
    cases_of(
        test_apply,
        {
            "test_a_write_that_fails_leaves_the_old_version_and_no_file": FAULTS,
        },
    )
)
