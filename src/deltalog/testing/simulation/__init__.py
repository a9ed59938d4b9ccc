"""A deterministic simulation of one table with many writers, a failing store and a model.

A history is a random sequence of statements and failures. `history` draws a history from a seed and
runs it. `workers` interleaves the writers at every call of their store. `model` computes the
expected rows, and contains the simulated clock, machines and store. `examination` compares the
table with the model at the end.
"""

from __future__ import annotations

from deltalog.testing.simulation.examination import HistoryReport, simulate
from deltalog.testing.simulation.history import WrongHistoryError

__all__ = ["HistoryReport", "WrongHistoryError", "simulate"]
