"""The files of a Delta table as a PyArrow file system.

The code is in `deltalog.integrations.fs`.
"""

from __future__ import annotations

from deltalog.integrations.fs import DeltaStorageHandler

__all__ = ["DeltaStorageHandler"]
