"""What callers get wrong."""

from __future__ import annotations

from tests.spark.parity.cases import NO_TABLE, NO_WORD, cases_of
from tests.unit.table import test_misuse

globals().update(
    cases_of(
        test_misuse,
        {
            "test_a_forgotten_predicate_is_not_every_row": NO_WORD,
            "test_updates_are_a_dictionary": NO_WORD,
            "test_values_that_mean_nothing": NO_TABLE,
            "test_options_of_the_wrong_kind": NO_TABLE,
            "test_no_table_is_created_with_metadata_that_cannot_be_read": NO_TABLE,
            "test_a_clone_lies_outside_of_its_table": NO_TABLE,
            "test_parts_of_the_facade_say_of_which_table_they_are": NO_TABLE,
        },
    )
)
