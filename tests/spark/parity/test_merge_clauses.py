"""Merges: what each clause does."""

from __future__ import annotations

from tests.spark.parity.cases import NO_WORD, cases_of
from tests.unit.rows.merge import test_clauses

globals().update(
    cases_of(
        test_clauses,
        {
            "test_clauses_that_mean_nothing_are_refused[rewritten-clauses3-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[rewritten-clauses4-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[rewritten-clauses16-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[masked-clauses3-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[masked-clauses4-": NO_WORD,
            "test_clauses_that_mean_nothing_are_refused[masked-clauses16-": NO_WORD,
        },
    )
)
