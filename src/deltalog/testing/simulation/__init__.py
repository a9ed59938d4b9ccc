"""A deterministic simulation of one table with several writers, a store that fails, and a model.

A history is a random sequence of statements and failures. `history` draws a history from a seed,
and runs it. `workers` makes the writers take turns: at each turn, one writer makes one call of the
store. `model` computes the expected rows, and contains the simulated clock, machines and store.
`examination` compares the table at the end with the model.
"""

from __future__ import annotations

from deltalog.testing.simulation.examination import HistoryReport, simulate
from deltalog.testing.simulation.history import WrongHistoryError

__all__ = ["HistoryReport", "WrongHistoryError", "simulate"]
