"""Updates, of a table without a facade."""

from __future__ import annotations

from tests.spark.parity.cases import NO_WORD, cases_of
from tests.unit.operations import test_update

globals().update(
    cases_of(
        test_update,
        {
            "test_an_argument_forces_either_way": NO_WORD,
        },
    )
)
