"""Updates, of a table without a facade."""

from __future__ import annotations

from tests.spark.parity.cases import COUNTS, FAULTS, NO_WORD, cases_of
from tests.unit.verbs import test_update

globals().update(
    cases_of(
        test_update,
        {
            "test_an_argument_forces_either_way": NO_WORD,
            "test_only_files_that_may_match_are_opened": COUNTS,
            "test_a_write_that_fails_leaves_the_old_version_and_no_file": FAULTS,
            "test_only_row_groups_with_such_rows_are_decoded": COUNTS,
        },
    )
)
