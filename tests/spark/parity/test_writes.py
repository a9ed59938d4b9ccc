"""Writes by mode."""

from __future__ import annotations

from tests.spark.parity.cases import (
    AS_DELTA,
    AS_DELTALAKE,
    FAULTS,
    LATEST,
    NO_TABLE,
    NO_WORD,
    RACES,
    cases_of,
)
from tests.unit.table import test_write

globals().update(
    cases_of(
        test_write,
        {
            "test_what_does_not_go_together[options1-": NO_WORD,
            "test_what_does_not_go_together[options4-": AS_DELTA,
            "test_what_does_not_go_together[options5-": AS_DELTA,
            "test_what_does_not_go_together[options8-": AS_DELTA,
            "test_what_does_not_go_together[options9-": AS_DELTA,
            "test_a_location_that_names_a_version_takes_no_rows": LATEST,
            "test_a_table_that_went_back_in_time_takes_no_change": LATEST,
            "test_rows_that_fail_half_way_leave_nothing": FAULTS,
            "test_a_store_that_refuses_a_call_leaves_nothing": FAULTS,
            "test_rows_that_are_read_once_are_not_staged_anew": RACES,
            "test_files_have_the_size_that_is_asked_for": NO_TABLE,
            "test_parquet_is_written_as_asked": NO_TABLE,
            "test_two_that_make_a_table_with_the_same_step_write_it_once": RACES,
            "test_a_table_that_somebody_else_makes_meanwhile": RACES,
            "test_a_table_that_somebody_else_makes_meanwhile_is_an_error_by_default": RACES,
            "test_rows_that_are_read_once_cannot_go_to_the_table_of_somebody_else": RACES,
            "test_rows_that_somebody_added_meanwhile_are_overwritten": RACES,
            "test_retries_can_be_forbidden": NO_WORD,
            "test_columns_of_other_types_are_cast_by_every_write": AS_DELTALAKE,
            "test_other_columns_change_beside_a_null_struct_whose_field_is_not_null": AS_DELTALAKE,
            "test_a_schema_that_is_overwritten_where_a_predicate_holds_only_grows": AS_DELTALAKE,
        },
    )
)
