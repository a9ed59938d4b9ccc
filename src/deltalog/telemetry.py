"""Reports of operations, and of queries of shared tables, to OpenTelemetry and OpenLineage.

The code is in `deltalog.integrations.telemetry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import explain_names
from deltalog.integrations.telemetry import (
    Watching,
    watch_with_openlineage,
    watch_with_opentelemetry,
)

__all__ = ["Watching", "watch_with_openlineage", "watch_with_opentelemetry"]

if not TYPE_CHECKING:  # type checkers must report unknown names
    __getattr__ = explain_names(__name__, __all__)
