"""What the history says of files that were put together."""

from __future__ import annotations

from tests.spark.parity.cases import NO_WORD, RACES, cases_of
from tests.unit.operations.optimize import test_rewrite

globals().update(
    cases_of(
        test_rewrite,
        {
            "test_commits_follow_one_another": NO_WORD,
            "test_an_append_meanwhile_is_let_in_and_a_delete_is_not": RACES,
        },
    )
)
