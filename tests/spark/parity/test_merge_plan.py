"""Merges: the schema of the table."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.rows.merge import test_plan

globals().update(cases_of(test_plan, {}))
