"""`DELETE`, with the deletion vectors that it leaves."""

from __future__ import annotations

from tests.spark.parity.cases import cases_of
from tests.unit.transaction import test_masks

globals().update(cases_of(test_masks, {}))
