"""What tests of changed rows share."""

from __future__ import annotations

import pytest

from tests.support.merging import NUMBERS, rows
from tests.support.statements import FEED, VECTORS, StatedTable


@pytest.fixture(params=[{}, VECTORS], ids=["rewritten", "masked"])
def table(request: pytest.FixtureRequest) -> StatedTable:
    """Two files of two rows, with a change feed, in either way of changing them."""
    return StatedTable(NUMBERS, rows(1, 2), rows(3, 4), properties={**FEED, **request.param})
