"""A deterministic simulation of one table: many writers, a failing store, a clock, and a model.

`history` draws a history from a seed and plays it. `workers` interleaves the writers at every call
of their store. `model` computes the expected rows, and contains the simulated clock, machines and
store. `examination` compares the table with the model at the end.
"""

from __future__ import annotations

from deltalog.testing.simulation.examination import HistoryReport, simulate
from deltalog.testing.simulation.history import WrongHistoryError

__all__ = ["HistoryReport", "WrongHistoryError", "simulate"]
