"""Who does the work on rows and files: one seam, threads here or tasks on a cluster."""

from __future__ import annotations

from deltalog.engine.local import LocalEngine
from deltalog.engine.protocol import Engine, RowSource

__all__ = ["Engine", "LocalEngine", "RowSource"]
