"""Making the ASGI application and its server from a configuration.

Protocol: REST APIs
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
import pyarrow as pa
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from deltalog._util.clock import now_ms
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.integrations.telemetry import watch_with_openlineage, watch_with_opentelemetry
from deltalog.sharing.server.answers import Services
from deltalog.sharing.server.async_queries import (
    AsyncQueries,
)
from deltalog.sharing.server.cache import FileCache
from deltalog.sharing.server.config import ServerConfig, TableConfig, TelemetryConfig
from deltalog.sharing.server.config_settings import parse_config
from deltalog.sharing.server.endpoints import Server, routes
from deltalog.sharing.server.faults import Fault, unauthenticated
from deltalog.sharing.server.formats import needed_features
from deltalog.sharing.server.middleware import (
    CONTENT_TYPE,
    Gauge,
    Metrics,
    RequestMiddleware,
    Turns,
    add_audit_facts,
    fault_response,
    internal_error,
    unknown_method,
    unknown_route,
)
from deltalog.sharing.server.recipients import (
    RateLimit,
    Recipient,
    Recipients,
    TokenVerifier,
)
from deltalog.sharing.server.tables import TableName, Tables, tables_of
from deltalog.sharing.server.tokens import Sealer, token_digest
from deltalog.sharing.server.urls import UrlSigner
from deltalog.sharing.server.views import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.requests import Request
    from starlette.types import ASGIApp

from deltalog.storage import Store
from deltalog.storage.http.client import is_loopback

_REFERENCE: Final = re.compile(r"\$\{\w+\}|\$\{file:[^}]*\}")


def app(
    config: ServerConfig | Mapping[str, object],
    *,
    make_store: Callable[[TableConfig], Store] | None = None,
) -> ASGIApp:
    """Return an ASGI application that shares tables; run it, or mount it into another.

    Args:
        config: the configuration; a mapping has the structure of the configuration file.
        make_store: opens the store of a table; None uses the table's location and storage options.

    Raises:
        InvalidInputError: the configuration is wrong; the message names the setting.
    """
    if not isinstance(config, ServerConfig):
        _check_values(config)
        config = parse_config(config)
    server = make_server(config, secrets.token_bytes(32), make_store)
    return make_app(lambda: server)


def _check_values(values: object, where: str = "") -> None:
    """Raise for a reference, such as `${KEY}`: only configuration files have references."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            _check_values(value, f"{where}.{key}".lstrip("."))
    elif isinstance(values, list | tuple):
        for index, value in enumerate(values):
            _check_values(value, f"{where}[{index}]")
    elif isinstance(values, str) and (found := _REFERENCE.search(values)) is not None:
        raise InvalidInputError(
            f"{where}: {found[0]} is a reference, which only configuration files have; pass the "
            "value itself, such as os.environ['KEY'], or the result of load_config(path)"
        )


def make_server(
    config: ServerConfig,
    key: bytes,
    make_store: Callable[[TableConfig], Store] | None = None,
    before: Server | None = None,
) -> Server:
    """Return the server of a configuration.

    Args:
        config: the configuration.
        key: the signing key, if the configuration has no key.
        make_store: see `app`.
        before: the previous server; the new server uses its file cache and asynchronous queries.
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
        # A recipient may run more downloads than queries at the same time, because each read of a
        # download is short.
        downloads=Turns(
            config.limits.concurrent_downloads, max(1, config.limits.concurrent_downloads // 2)
        ),
    )


def make_app(current: Callable[[], Server]) -> ASGIApp:
    """Return the application of a server that may be replaced between two requests."""
    # Import these modules now. Otherwise, the first request would wait for pandas, which pyarrow
    # imports when it first converts a list, and for the module that reads checkpoints.
    pa.array([None])
    import deltalog.log.checkpoints.reader  # noqa: F401, PLC0415

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
    """Yield each table's name, with the reason why it cannot be shared or None.

    Cost: reads the log of each table.
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
        # The operator sees the underlying error, which recipients never see.
        return str(error.__context__ or error)
    return None


# --- The configured telemetry of the server's process


_LOG: Final = logging.getLogger("deltalog.sharing")
_lock = threading.Lock()
_begun: Final[set[TelemetryConfig]] = set()


def start_telemetry(config: TelemetryConfig) -> None:
    """Start the configured kinds of telemetry, except those that are running.

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
    """Log a warning if spans are not exported, because the process has no tracer provider."""
    from opentelemetry import trace  # noqa: PLC0415 -- an optional dependency

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        _LOG.warning(
            "telemetry.openTelemetry: the process has no tracer provider, so spans are lost; start "
            "it with opentelemetry-instrument"
        )


# --- Routes for operators: liveness, readiness and metrics


_JSON: Final = {"Content-Type": "application/json"}


def operator_routes(current: Callable[[], Server], metrics: Metrics) -> list[Route]:
    """Return the routes for operators.

    Args:
        current: returns the server of the current configuration.
        metrics: the metrics to return, unless the configuration disables them.
    """
    readiness = Readiness(current)

    async def live(request: Request) -> Response:
        """Answer immediately, without a thread, table or store."""
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
    ready = Gauge(
        "ready", "1 if the last check found that all tables can be read.", int(bool(known))
    )
    return [
        *([] if known is None else [ready]),  # None: no check has finished
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
    """Return whether a request has the metrics token or, if no token is set, comes to loopback."""
    token = config.metrics_token
    if token is None:
        bound = (request.scope.get("server") or ("",))[0]
        return is_loopback(config.host) and is_loopback(bound)
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    is_equal = hmac.compare_digest(token.digest, token_digest(given.strip()))
    is_over = token.expires_ms is not None and token.expires_ms <= now_ms()
    return scheme.lower() == "bearer" and is_equal and not is_over


# --- Readiness: load balancers ask whether this process can answer requests


# The number of seconds for which the result of a finished check is used.
_KEEP_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.01
_OPERATOR: Final = Recipient("", None)


@dataclass
class _Check:
    """A running or finished check."""

    began_s: float
    done_s: float | None = None
    problem: str | None = None


class Readiness:
    """Checks in a separate thread whether tables can be read.

    Args:
        current: returns the server of the current configuration.

    Attributes:
        is_known_ready: result of the last check; None before the first one.
    """

    def __init__(self, current: Callable[[], Server]) -> None:
        self.is_known_ready: bool | None = None
        self._current = current
        self._lock = threading.Lock()
        self._check: _Check | None = None
        self._reported: str | None = None

    async def is_ready(self) -> bool:
        """Return whether `readiness.tables` were read within `readiness.timeoutSeconds`.

        While a check hangs, no other check starts, and the process is not ready.

        Cost: one listing for each of the tables, at most once per second.
        """
        check = self._running_or_new()
        seconds = self._current().services.config.readiness.timeout_seconds
        while check.done_s is None:
            left = check.began_s + seconds - time.monotonic()
            if left <= 0:
                return self._conclude(f"no answer in {seconds} s")
            await anyio.sleep(min(_LOOK_SECONDS, left))
        return self._conclude(check.problem)

    def _running_or_new(self) -> _Check:
        with self._lock:
            known, now = self._check, time.monotonic()
            if known is not None and (known.done_s is None or now - known.done_s < _KEEP_SECONDS):
                return known
            check = self._check = _Check(now)
        # Use a daemon thread, so that the process can end while the check waits for a store.
        threading.Thread(target=self._look, args=[check], daemon=True).start()
        return check

    def _look(self, check: _Check) -> None:
        try:
            check.problem = _unreadiness(self._current())
        except Exception as error:  # noqa: BLE001 -- after any error, not ready
            check.problem = type(error).__name__
        check.done_s = time.monotonic()

    def _conclude(self, problem: str | None) -> bool:
        with self._lock:
            before, self._reported = self._reported, problem
            was_ready, self.is_known_ready = self.is_known_ready, problem is None
        if problem is not None and problem != before:
            _LOG.warning("not ready: %s", problem)
        elif problem is None and not was_ready and before is not None:
            _LOG.info("ready again")
        return problem is None


def _unreadiness(server: Server) -> str | None:
    """Return the reason why the process cannot answer; None if it can."""
    config = server.services.config
    if _has_views(config) and not os.access(
        config.cache_directory or tempfile.gettempdir(), os.W_OK | os.X_OK
    ):
        return "cacheDirectory cannot be written to"
    for name in config.readiness.tables:
        try:
            server.tables.table(_OPERATOR, TableName(*name.rsplit(".", 2))).latest()
        except (DeltaError, Fault) as error:
            # Show only the error's type: its message may contain a location.
            return f"{name}: {type(error).__name__}"
    return None


def _has_views(config: ServerConfig) -> bool:
    return any(table.is_view for share in config.shares for _, table in tables_of(share))
