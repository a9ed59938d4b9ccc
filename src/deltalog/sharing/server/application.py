"""The ASGI application: how a configuration becomes a server.

Protocol: REST APIs
"""

from __future__ import annotations

import secrets
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa
from starlette.applications import Starlette

from deltalog.errors import DeltaError
from deltalog.sharing.server.answers import Services
from deltalog.sharing.server.async_queries import AsyncQueries
from deltalog.sharing.server.cache import FileCache
from deltalog.sharing.server.config import ServerConfig
from deltalog.sharing.server.config_settings import parse_config
from deltalog.sharing.server.endpoints import Server, routes
from deltalog.sharing.server.faults import Fault
from deltalog.sharing.server.formats import needed_features
from deltalog.sharing.server.metrics import Metrics
from deltalog.sharing.server.middleware import (
    RequestMiddleware,
    internal_error,
    unknown_method,
    unknown_route,
)
from deltalog.sharing.server.oauth import TokenVerifier
from deltalog.sharing.server.operations import operator_routes
from deltalog.sharing.server.recipients import RateLimit, Recipient, Recipients
from deltalog.sharing.server.tables import TableName, Tables, tables_of
from deltalog.sharing.server.telemetry import start_telemetry
from deltalog.sharing.server.tokens import Sealer
from deltalog.sharing.server.urls import UrlSigner
from deltalog.sharing.server.views import View
from deltalog.sharing.server.work import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from starlette.types import ASGIApp

    from deltalog.sharing.server.config import TableConfig
    from deltalog.storage import Store


def app(
    config: ServerConfig | Mapping[str, object],
    *,
    make_store: Callable[[TableConfig], Store] | None = None,
) -> ASGIApp:
    """Return an ASGI application that shares tables; run it, or mount it into another.

    Args:
        config: what to share with whom; a mapping has the shape of the configuration file.
        make_store: opens the store of a table; None uses its location and storage options.

    Raises:
        InvalidInputError: the configuration is wrong; the message says where.
    """
    if not isinstance(config, ServerConfig):
        config = parse_config(config)
    server = make_server(config, secrets.token_bytes(32), make_store)
    return make_app(lambda: server)


def make_server(
    config: ServerConfig,
    key: bytes,
    make_store: Callable[[TableConfig], Store] | None = None,
    before: Server | None = None,
) -> Server:
    """Return the server of a configuration.

    Args:
        config: what to share with whom.
        key: for signatures, if the configuration has none.
        make_store: as in `app`.
        before: the server that is replaced, whose file cache and asynchronous queries are kept.
    """
    key, *previous = config.signing_keys or (key,)
    verify = None if config.oauth is None else TokenVerifier(config.oauth).subject
    if before is None:
        cache = FileCache(config.limits.cache_bytes, config.cache_directory)
    else:
        cache = before.services.cache
    return Server(
        services=Services(
            config=config,
            sealer=Sealer(key, *previous),
            urls=UrlSigner(key, config.url_seconds, own_urls=config.own_urls, previous=previous),
            cache=cache,
        ),
        tables=Tables(config, make_store),
        recipients=Recipients(config, verify),
        async_queries=AsyncQueries() if before is None else before.async_queries,
        rates=RateLimit(config.limits.requests_per_minute),
        query_turns=Turns(config.limits.concurrent_queries, config.limits.queries_per_recipient),
        # Reading is short, so that one recipient may have more of it at once.
        downloads=Turns(
            config.limits.concurrent_downloads, max(1, config.limits.concurrent_downloads // 2)
        ),
    )


def make_app(current: Callable[[], Server]) -> ASGIApp:
    """Return the application of a server that may be replaced between two requests."""
    # What would be imported during the first request: pandas by pyarrow, and what a snapshot needs.
    pa.array([None])
    import_module("deltalog.checkpoints.reader")
    metrics = Metrics()
    config = current().services.config
    start_telemetry(config.telemetry)
    all_routes = [*routes(config.endpoint, current), *operator_routes(current, metrics)]
    inner = Starlette(
        routes=all_routes,
        exception_handlers={404: unknown_route, 405: unknown_method, Exception: internal_error},
    )
    inner.router.redirect_slashes = False
    return RequestMiddleware(inner, lambda: current().services.config.limits, metrics)


def check_tables(config: ServerConfig) -> Iterator[tuple[str, str | None]]:
    """Yield the name of each table with the reason why it cannot be shared; None if it can.

    Cost: the log of each table.
    """
    server = make_server(config, secrets.token_bytes(32))
    for share in config.shares:
        for schema, table in tables_of(share):
            name = TableName(share.name, schema.name, table.name)
            yield f"{share.name}.{schema.name}.{table.name}", _problem(server, name)


def _problem(server: Server, name: TableName) -> str | None:
    try:
        table = server.tables.table(Recipient("", None), name)
        latest = table.latest()
        if table.config.is_view:
            View(latest, table, server.services)
        else:
            needed_features(latest)
    except (DeltaError, Fault) as error:
        # Recipients do not see the underlying error; whoever runs the server does.
        return str(error.__context__ or error)
    return None
