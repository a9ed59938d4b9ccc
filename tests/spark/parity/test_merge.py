"""Merges: what they count, and upserts."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.operations import test_merge

globals().update(cases_of(test_merge, {}))
