"""Small files put together."""

from __future__ import annotations

from tests.spark.parity.cases import COUNTS, NO_TABLE, NO_WORD, RACES, cases_of
from tests.unit.verbs.optimize import test_compact

globals().update(
    cases_of(
        test_compact,
        {
            "test_quantiles_are_delta_sparks": NO_TABLE,
            "test_files_are_packed_up_to_the_target_size": NO_WORD,
            "test_full_files_stay": NO_WORD,
            "test_commits_follow_one_another": NO_WORD,
            "test_several_bins_at_a_time_are_the_same_as_one": NO_WORD,
            "test_progress_is_told_and_may_end_the_work": NO_WORD,
            "test_an_append_meanwhile_is_let_in_and_a_delete_is_not": RACES,
            "test_every_file_is_opened_once": COUNTS,
            "test_numbers_that_mean_nothing_are_refused": NO_WORD,
        },
    )
)
