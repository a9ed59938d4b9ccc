"""Updates: what may be assigned."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.operations.changes import test_assign

globals().update(cases_of(test_assign, {}))
