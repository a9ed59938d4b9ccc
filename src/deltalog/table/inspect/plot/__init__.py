"""Plots of a table's log and files. The size of a plot does not grow with the table.

`plots` contains `DeltaTable.plot` and computes the numbers with Arrow. `drawing` draws them with
matplotlib, which the extra `plot` installs.
"""

from __future__ import annotations

from deltalog.table.inspect.plot.drawing import Plot
from deltalog.table.inspect.plot.plots import TablePlots

__all__ = ["Plot", "TablePlots"]
