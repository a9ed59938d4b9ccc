"""Pictures of a table: what its log and its files look like, in bounded size.

`measures` counts, in Arrow; `drawing` draws by matplotlib, which the extra `plot` brings; `plots`
is what `DeltaTable.plot` gives.
"""

from __future__ import annotations

from deltalog.table.inspect.plot.drawing import Plot
from deltalog.table.inspect.plot.plots import TablePlots

__all__ = ["Plot", "TablePlots"]
