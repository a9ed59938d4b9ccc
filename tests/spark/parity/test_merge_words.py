"""Merges: clauses that mean nothing."""

from __future__ import annotations

from tests.spark.parity.cases import NO_TABLE, NO_WORD, cases_of
from tests.unit.operations.changes import test_request

globals().update(
    cases_of(
        test_request,
        {
            "test_a_change_of_nothing_counts_nothing": NO_TABLE,
            "test_clauses_that_mean_nothing_are_refused[rewritten-clauses3-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[rewritten-clauses4-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[rewritten-clauses16-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[masked-clauses3-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[masked-clauses4-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[masked-clauses16-": NO_WORD,
        },
    )
)
