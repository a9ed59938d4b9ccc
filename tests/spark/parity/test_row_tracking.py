"""Row ids."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.table import test_row_tracking

globals().update(cases_of(test_row_tracking, {}))
