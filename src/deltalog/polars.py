"""Delta tables as lazy frames of Polars.

The code is in `deltalog.integrations.polars`.
"""

from __future__ import annotations

from deltalog.integrations.polars import scan_delta

__all__ = ["scan_delta"]
