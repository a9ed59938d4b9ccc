"""Merges: how rows are found."""

from __future__ import annotations

from tests.spark.parity.cases import COUNTS, NO_TABLE, RACES, cases_of
from tests.unit.rows.merge import test_search

globals().update(
    cases_of(
        test_search,
        {
            "test_keys_of_every_type_find_their_rows": NO_TABLE,
            "test_zeros_are_equal_and_so_are_nans": NO_TABLE,
            "test_keys_of_several_parts_are_equal_part_by_part": NO_TABLE,
            "test_without_keys_every_pair_is_looked_at": NO_TABLE,
            "test_only_files_that_keys_may_be_in_are_opened": COUNTS,
            "test_partitions_are_pruned_by_keys": COUNTS,
            "test_many_keys_prune_by_the_gaps_between_them": COUNTS,
            "test_rows_without_a_match_are_looked_for_where_their_clauses_may_be": COUNTS,
            "test_explain_says_what_is_compared_and_read": NO_TABLE,
            "test_preview_counts_and_writes_nothing": NO_TABLE,
            "test_two_columns_of_one_name_are_refused": NO_TABLE,
            "test_a_merge_that_lost_is_evaluated_again": RACES,
            "test_rows_that_cannot_match_are_no_conflict": RACES,
        },
    )
)
