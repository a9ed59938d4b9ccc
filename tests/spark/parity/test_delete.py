"""`DELETE`, with what it leaves of files."""

from __future__ import annotations

from tests.spark.parity.cases import FAULTS, NO_WORD, RACES, cases_of
from tests.unit.operations import test_delete

globals().update(
    cases_of(
        test_delete,
        {
            "test_vectors_are_written_when_asked_for_and_allowed": NO_WORD,
            "test_a_store_that_refuses_a_call_leaves_nothing": FAULTS,
            "test_rows_that_somebody_added_meanwhile_are_deleted_too": RACES,
            "test_vectors_of_a_lost_race_are_removed": RACES,
        },
    )
)
