"""Small files put together."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.verbs.optimize import test_compact

globals().update(cases_of(test_compact, {}))
