"""Schemas that data changes."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.table import test_schema_mode

globals().update(cases_of(test_schema_mode, {}))
