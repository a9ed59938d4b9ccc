"""The configured telemetry of the server's process.

Owns that it is begun once, however many applications a process makes of one configuration.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from deltalog.telemetry import watch_with_openlineage, watch_with_opentelemetry

if TYPE_CHECKING:
    from deltalog.sharing.server.config import TelemetryConfig

_LOG: Final = logging.getLogger("deltalog.sharing")
_lock = threading.Lock()
_begun: Final[set[TelemetryConfig]] = set()


def start_telemetry(config: TelemetryConfig) -> None:
    """Begin what is configured and not begun yet.

    Raises:
        InvalidInputError: a library is not installed.
    """
    with _lock:
        if config in _begun:
            return
        if config.opentelemetry:
            watch_with_opentelemetry(trusts_parents=config.trusts_parents)
            _warn_without_provider()
        if config.openlineage_url is not None:
            watch_with_openlineage(
                url=config.openlineage_url,
                api_key=config.openlineage_api_key,
                namespace=config.namespace,
            )
        _begun.add(config)


def _warn_without_provider() -> None:
    """Log that spans go nowhere: the SDK is set up by whoever starts the process."""
    from opentelemetry import trace  # noqa: PLC0415 -- an extra

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        _LOG.warning(
            "telemetry.openTelemetry: the process has no tracer provider, spans go nowhere; start "
            "it by opentelemetry-instrument"
        )
