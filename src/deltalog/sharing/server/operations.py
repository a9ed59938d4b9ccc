"""What the operators of the server ask it: whether it lives, whether it is ready, its metrics.

Owns that these answers tell nothing of shares, recipients and places, and who may see the metrics.
They stand beside the protocol's endpoints, without its prefix.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

from deltalog.clock import now_ms
from deltalog.sharing.server.faults import unauthenticated
from deltalog.sharing.server.metrics import CONTENT_TYPE, Gauge
from deltalog.sharing.server.middleware import add_audit_facts, fault_response
from deltalog.sharing.server.readiness import Readiness
from deltalog.sharing.server.recipients import is_loopback
from deltalog.sharing.server.tokens import token_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.server.endpoints import Server
    from deltalog.sharing.server.metrics import Metrics

_JSON: Final = {"Content-Type": "application/json"}


def operator_routes(current: Callable[[], Server], metrics: Metrics) -> list[Route]:
    """Return the routes for operators.

    Args:
        current: returns the server of the current configuration.
        metrics: that are shown, unless the configuration turns them off.
    """
    readiness = Readiness(current)

    async def live(request: Request) -> Response:
        """Answer: the event loop does. No thread, table or store is asked."""
        add_audit_facts(request.scope, action="live")
        return Response(b'{"status":"ok"}', headers=_JSON)

    async def ready(request: Request) -> Response:
        add_audit_facts(request.scope, action="ready")
        if await readiness.is_ready():
            return Response(b'{"status":"ok"}', headers=_JSON)
        return Response(b'{"status":"unavailable"}', 503, _JSON)

    async def show(request: Request) -> Response:
        add_audit_facts(request.scope, action="metrics")
        server = current()
        if not _may_see_metrics(request, server.services.config):
            return fault_response(unauthenticated())
        text = metrics.text(_gauges(server, readiness))
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    endpoints = {"/health": live, "/health/live": live, "/health/ready": ready}
    if current().services.config.metrics:
        endpoints["/metrics"] = show
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in endpoints.items()]


def _gauges(server: Server, readiness: Readiness) -> list[Gauge]:
    queries, downloads, known = server.query_turns, server.downloads, readiness.is_known_ready
    ready = Gauge("ready", "Whether the last check found all well.", int(bool(known)))
    return [
        *([] if known is None else [ready]),  # nobody has asked yet
        Gauge("working_queries", "Threads that plan queries or write files.", queries.num_working),
        Gauge("waiting_queries", "Queries that wait for a thread.", queries.num_waiting),
        Gauge("working_downloads", "Threads that read files.", downloads.num_working),
        Gauge("waiting_downloads", "Downloads that wait for a thread.", downloads.num_waiting),
        Gauge(
            "pending_async_queries",
            "Asynchronous queries whose files are written.",
            server.async_queries.num_running,
        ),
        Gauge("cache_bytes", "Files of parts of tables.", server.services.cache.size_bytes),
    ]


def _may_see_metrics(request: Request, config: ServerConfig) -> bool:
    """Whether a request came over loopback to a server that is bound to it, or with the token."""
    token = config.metrics_token
    if token is None:
        bound = (request.scope.get("server") or ("",))[0]
        return is_loopback(config.host) and is_loopback(bound)
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    is_equal = hmac.compare_digest(token.digest, token_digest(given.strip()))
    is_over = token.expires_ms is not None and token.expires_ms <= now_ms()
    return scheme.lower() == "bearer" and is_equal and not is_over
