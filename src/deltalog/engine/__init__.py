"""Engines: the seam for work on rows and files, by local threads or by tasks of a cluster."""

from __future__ import annotations

from deltalog.engine.local import LocalEngine
from deltalog.engine.protocol import Engine, RowSource

__all__ = ["Engine", "LocalEngine", "RowSource"]
