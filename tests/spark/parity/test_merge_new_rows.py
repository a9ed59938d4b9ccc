"""Merges: new versions of rows, and new rows."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.operations.changes.merge import test_new_rows

globals().update(cases_of(test_new_rows, {}))
