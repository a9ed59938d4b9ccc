"""Delta tables as datasets of Ray, and datasets of Ray as versions of Delta tables.

The code is in `deltalog.integrations.ray`.
"""

from __future__ import annotations

from deltalog.integrations.ray import RayEngine, read, write

__all__ = ["RayEngine", "read", "write"]
