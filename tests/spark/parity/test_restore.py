"""Tables as they were."""

from __future__ import annotations

from tests.spark.parity.cases import COUNTS, FAULTS, NO_WORD, RACES, TOO_LONG, cases_of
from tests.unit.operations import test_restore

globals().update(
    cases_of(
        test_restore,
        {
            "test_missing_files_can_be_left_out": NO_WORD,
            "test_only_files_that_come_back_are_asked_for": COUNTS,
            "test_features_go_where_that_is_allowed": NO_WORD,
            "test_who_appends_meanwhile_is_taken_back_too": RACES,
            "test_a_crash_anywhere_leaves_the_old_version_or_the_new_one": FAULTS,
            "test_law_restoring_gives_the_rows_of_the_version": TOO_LONG,
        },
    )
)
