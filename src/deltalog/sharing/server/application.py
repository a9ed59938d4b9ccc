"""The application: endpoints, guard and a configuration that may change while it runs.

Owns how a configuration becomes a server.

Protocol: REST APIs
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import anyio
import pyarrow as pa
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from deltalog.sharing.server.answers import Tools
from deltalog.sharing.server.async_queries import Jobs
from deltalog.sharing.server.cache import FileCache
from deltalog.sharing.server.config import ServerConfig, parse_config
from deltalog.sharing.server.endpoints import Endpoints, Server
from deltalog.sharing.server.metrics import CONTENT_TYPE, Metrics
from deltalog.sharing.server.middleware import Guard, unforeseen, unknown_method, unknown_route
from deltalog.sharing.server.oauth import TokenVerifier
from deltalog.sharing.server.rates import RateLimit
from deltalog.sharing.server.recipients import Recipients
from deltalog.sharing.server.tables import Tables
from deltalog.sharing.server.tokens import Sealer
from deltalog.sharing.server.urls import UrlSigner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from deltalog.sharing.server.config import TableConfig
    from deltalog.storage import Store


def app(
    config: ServerConfig | Mapping[str, object],
    *,
    make_store: Callable[[TableConfig], Store] | None = None,
) -> ASGIApp:
    """An ASGI application that shares tables; run it, or mount it into another.

    Args:
        config: what to share with whom; a mapping has the shape of the configuration file.
        make_store: gives the store of a table, if not its location and storage options do.

    Raises:
        InvalidInputError: the configuration is wrong; the message says where.
    """
    if not isinstance(config, ServerConfig):
        config = parse_config(config)
    key = config.signing_key or secrets.token_bytes(32)
    server = make_server(config, key, make_store)
    return make_app(lambda: server)


def make_server(
    config: ServerConfig,
    key: bytes,
    make_store: Callable[[TableConfig], Store] | None = None,
    before: Server | None = None,
) -> Server:
    """The server that a configuration describes.

    Args:
        config: what to share with whom.
        key: of signatures, if the configuration has none.
        make_store: as in `app`.
        before: the server so far, whose cache and queries go on.
    """
    key = config.signing_key or key
    verify = None if config.oauth is None else TokenVerifier(config.oauth).subject
    return Server(
        tools=Tools(
            config=config,
            sealer=Sealer(key),
            urls=UrlSigner(key, config.url_seconds, own_urls=config.own_urls),
            cache=FileCache(config.limits.cache_bytes, config.cache_directory)
            if before is None
            else before.tools.cache,
        ),
        tables=Tables(config, make_store),
        recipients=Recipients(config, verify),
        jobs=Jobs() if before is None else before.jobs,
        rates=RateLimit(config.limits.requests_per_minute),
        limiter=anyio.CapacityLimiter(config.limits.concurrent_queries),
    )


def make_app(current: Callable[[], Server]) -> ASGIApp:
    """The application over a server that may be another one at the next request."""
    pa.array([None])  # pyarrow imports pandas with the first one: not while somebody waits
    metrics = Metrics()
    config = current().tools.config
    routes = Endpoints(current).routes(config.endpoint)
    routes.append(Route("/health", _health, methods=["GET"]))
    if config.metrics:

        async def show(_request: Request) -> Response:
            return Response(metrics.text(), headers={"Content-Type": CONTENT_TYPE})

        routes.append(Route("/metrics", show, methods=["GET"]))
    inner = Starlette(
        routes=routes,
        exception_handlers={404: unknown_route, 405: unknown_method, Exception: unforeseen},
    )
    inner.router.redirect_slashes = False
    return Guard(inner, lambda: current().tools.config.limits, metrics)


async def _health(_request: Request) -> Response:
    return Response(b'{"status":"ok"}', headers={"Content-Type": "application/json"})
