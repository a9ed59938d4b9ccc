"""Telling others of commits and of shared tables' queries: OpenTelemetry and OpenLineage.

Off until one of the functions is called; then for the whole process. Work is never failed by it,
and never waits for a backend.
"""

from __future__ import annotations

from deltalog.telemetry.lineage import watch_with_openlineage
from deltalog.telemetry.spans import watch_with_opentelemetry
from deltalog.telemetry.watching import Watching

__all__ = ["Watching", "watch_with_openlineage", "watch_with_opentelemetry"]
