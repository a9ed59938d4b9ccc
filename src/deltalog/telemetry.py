"""Reports of operations, and of queries of shared tables, to OpenTelemetry and OpenLineage.

The code is in `deltalog.integrations.telemetry`.
"""

from __future__ import annotations

from deltalog.integrations.telemetry import (
    Watching,
    watch_with_openlineage,
    watch_with_opentelemetry,
)

__all__ = ["Watching", "watch_with_openlineage", "watch_with_opentelemetry"]
