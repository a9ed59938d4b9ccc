"""Delta tables as data frames of Daft, and data frames of Daft as versions of Delta tables.

The code is in `deltalog.integrations.daft`.
"""

from __future__ import annotations

from deltalog.integrations.daft import read, write

__all__ = ["read", "write"]
