"""Merges: the schema, types and rules of the table."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.rows.merge import test_schema

globals().update(cases_of(test_schema, {}))
