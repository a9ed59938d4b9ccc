"""Small files put together."""

from __future__ import annotations

from tests.spark.parity.cases import NO_WORD, cases_of
from tests.unit.operations.optimize import test_compact

globals().update(
    cases_of(test_compact, {"test_files_of_one_moment_stay_as_their_commit_names_them": NO_WORD})
)
