"""Plots of a table: its log and its files, in bounded size.

`plots` contains `DeltaTable.plot` and counts in Arrow; `drawing` draws with matplotlib, which the
extra `plot` installs.
"""

from __future__ import annotations

from deltalog.table.inspect.plot.drawing import Plot
from deltalog.table.inspect.plot.plots import TablePlots

__all__ = ["Plot", "TablePlots"]
