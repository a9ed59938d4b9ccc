"""Merges: names."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.operations.changes.merge import test_names

globals().update(cases_of(test_names, {}))
