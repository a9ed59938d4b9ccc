"""A deterministic simulation of one table: many writers, a failing store, time, and a model.

`history` plays what `schedule` draws from a seed; `writers` are interleaved by `workers` at every
call of `store`, in a `process` whose time and chance come from the seed; `model` says what the rows
must be, and `examination` compares the end.
"""

from __future__ import annotations

from deltalog.testing.simulation.examination import HistoryReport, simulate
from deltalog.testing.simulation.history import WrongHistoryError

__all__ = ["HistoryReport", "WrongHistoryError", "simulate"]
