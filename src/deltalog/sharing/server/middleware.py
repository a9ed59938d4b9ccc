"""The outermost layer of the application: request ids, limits, metrics, and the audit log.

This module decides what is logged: the sender, the request and the status. No log line contains a
token, a storage location or the message of an error.

Protocol: REST APIs (errors)
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
import traceback
from bisect import bisect_left
from collections import defaultdict
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from deltalog._util.clock import now_ms
from deltalog._util.json import dumps
from deltalog._util.observing import Fact, ObservedWork, WorkKind, observed
from deltalog.sharing.server.faults import Fault, internal
from deltalog.sharing.server.tokens import decode_base64
from deltalog.sharing.wire import requests as codes
from deltalog.sharing.wire.codec import encode_timestamp
from deltalog.sharing.wire.requests import ErrorBody, encode_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from deltalog.sharing.server.config import RequestLimits

_LOG: Final = logging.getLogger("deltalog.sharing")
_AUDIT: Final = logging.getLogger("deltalog.sharing.audit")
_FACTS: Final = "deltalog.facts"
_WATCHED: Final = "deltalog.watched"
_REQUEST_ID: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
_UNKNOWN: Final = "other"
_MOST_ASKED: Final = 256
CLIENT_CLOSED: Final = 499  # nginx's status for a client that disconnected early


class RequestMiddleware:
    """Checks, counts and logs every request.

    Args:
        app: the application.
        limits: returns the limits of the current configuration.
        metrics: metrics of the server.
    """

    def __init__(self, app: ASGIApp, limits: Callable[[], RequestLimits], metrics: Metrics) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        with observed(WorkKind.REQUEST, "request", headers=headers) as work:
            scope[_WATCHED] = work
            sent = _SentResponse(scope, send, self._limits().send_seconds)
            await self._answer(scope, receive, sent)

    async def _answer(self, scope: Scope, receive: Receive, sent: _SentResponse) -> None:
        self._metrics.begin()
        try:
            fault = _framing_fault(scope) or _size_fault(scope, self._limits())
            app: ASGIApp = self._app if fault is None else fault_response(fault)
            await app(scope, receive, sent.send)
        except (ClientDisconnect, ClientGoneError):
            pass
        except Exception as error:  # noqa: BLE001 -- the web server would log the message
            log_defect(scope, error)
            if not sent.status:
                await fault_response(internal())(scope, receive, sent.send)
        finally:
            self._finish(scope, sent)

    def _finish(self, scope: Scope, sent: _SentResponse) -> None:
        facts = scope[_FACTS]
        facts |= facts.pop("answer", {})  # facts that were added while the answer was sent
        action = facts.get("action", _UNKNOWN)
        seconds = time.perf_counter() - sent.started
        status = sent.status or CLIENT_CLOSED
        self._metrics.end(action, status, seconds, sent.num_bytes, facts.get("files") or 0)
        attributes = {name: value for name, value in facts.items() if isinstance(value, str | int)}
        attributes |= {"action": action, "request_id": sent.request_id, "bytes": sent.num_bytes}
        attributes |= {"http.request.method": scope["method"], "http.response.status_code": status}
        tell_observers(scope, attributes)
        if status >= 400:
            facts["asked"] = _asked(scope)
        client = scope.get("client")
        line = {
            "time": encode_timestamp(now_ms()),
            "requestId": sent.request_id,
            "client": None if client is None else client[0],
            "recipient": None,
            "action": action,
            **facts,
            "status": status,
            "complete": sent.is_complete,
            "bytes": sent.num_bytes,
            "milliseconds": round(seconds * 1000, 1),
        }
        text = dumps(line).decode()
        # Names in URLs are not trusted: control characters could change how a terminal displays the
        # log.
        if not text.isprintable():
            text = "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
        _AUDIT.info("%s", text)


class _SentResponse:
    """Sends a response, and records its status and size."""

    def __init__(self, scope: Scope, send: Send, seconds: int) -> None:
        asked = Headers(scope=scope).get("x-request-id", "")
        self.request_id = asked if _REQUEST_ID.fullmatch(asked) else secrets.token_hex(12)
        self.started = time.perf_counter()
        self.status = 0
        self.num_bytes = 0
        self.is_complete = False
        self._send = send
        self._seconds = seconds
        scope[_FACTS] = {}
        scope["deltalog.request_id"] = self.request_id

    async def send(self, message: Message) -> None:
        """Send one message.

        Raises:
            TimeoutError: the client does not read the response.
            ClientGoneError: the client has disconnected.
        """
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.request_id
            # Answers contain signed URLs, so they must not be cached. Browsers must not guess
            # content types.
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
        with anyio.fail_after(self._seconds):
            try:
                await self._send(message)
            except OSError as error:  # how some ASGI servers report a disconnect
                raise ClientGoneError from error
        if message["type"] == "http.response.body":
            self.num_bytes += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)


def add_audit_facts(scope: MutableMapping[str, Any], **facts: object) -> None:
    """Add fields to the request's line of the audit log."""
    scope.setdefault(_FACTS, {}).update(facts)


def tell_observers(scope: MutableMapping[str, Any], facts: Mapping[str, Fact]) -> None:
    """Add facts about a request for telemetry; they may include facts that must not be logged."""
    work: ObservedWork | None = scope.get(_WATCHED)
    if work is not None:
        work.facts.update(facts)


def fault_response(fault: Fault) -> Response:
    """Return the response for a fault (requirement SHARE-GEN-04)."""
    body = encode_error(ErrorBody(error_code=fault.code, message=fault.message))
    headers = {"Content-Type": "application/json", **fault.headers}
    return Response(body, fault.status, headers)


async def unknown_route(request: Request, _error: Exception) -> Response:
    """Return 404 for a path that is not an endpoint."""
    add_audit_facts(request.scope, error=codes.NOT_FOUND)
    return fault_response(Fault(404, codes.NOT_FOUND, "there is no such endpoint"))


async def unknown_method(request: Request, error: Exception) -> Response:
    """Return 405 for a method that the endpoint does not support."""
    add_audit_facts(request.scope, error=codes.METHOD_NOT_ALLOWED)
    headers = getattr(error, "headers", None) or {}
    fault = Fault(
        405, codes.METHOD_NOT_ALLOWED, "the endpoint does not support this method", headers
    )
    return fault_response(fault)


async def internal_error(_request: Request, _error: Exception) -> Response:
    """Return 500 for any other exception; `RequestMiddleware` logs it."""
    return fault_response(internal())


def log_defect(scope: Scope, error: BaseException) -> None:
    """Log an error's type and position. The message is omitted: it may contain locations."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].name}:{frames[-1].lineno}" if frames else "?"
    request_id = scope.get("deltalog.request_id", "?")
    _LOG.error("request %s failed: %s in %s", request_id, type(error).__name__, where)
    _LOG.debug("request %s failed", request_id, exc_info=error)


def _asked(scope: Scope) -> str:
    """Return the share, schema and table in a request's URL; for other URLs, return the path.

    The query string is omitted, because it may contain signatures and tokens.
    """
    names = scope.get("path_params") or {}
    found = [str(names[kind]) for kind in ("share", "schema", "table") if kind in names]
    if "owner" in names:
        owner = (decode_base64(str(names["owner"])) or b"").decode("utf-8", "replace")
        found = owner.split("\n")[1:2]
    elif not found:
        found = [str(scope.get("path", ""))]
    return "/".join(found)[:_MOST_ASKED].encode("utf-8", "replace").decode()


def _framing_fault(scope: Scope) -> Fault | None:
    """Return a fault if a request's headers state the length of its body in two ways.

    A proxy in front of the server may use the other length (request smuggling), so the connection
    is closed after the answer.

    Protocol: RFC 9112, 6.1 (Transfer-Encoding)
    """
    names = [name.lower() for name, _ in scope["headers"]]
    lengths = names.count(b"content-length")
    if lengths > 1 or (lengths and b"transfer-encoding" in names):
        text = "the request defines the length of its body in two ways"
        return Fault(400, codes.MALFORMED_REQUEST, text, {"Connection": "close"})
    return None


def _size_fault(scope: Scope, limits: RequestLimits) -> Fault | None:
    """Return a fault if a request is too large; called before routing."""
    length = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    if length > limits.url_bytes:
        return Fault(414, codes.TOO_LARGE, f"the URL is longer than {limits.url_bytes} bytes")
    declared = Headers(scope=scope).get("content-length", "0")
    if not declared.isdecimal() or len(declared) > 18 or int(declared) > limits.body_bytes:
        return Fault(413, codes.TOO_LARGE, f"the body is longer than {limits.body_bytes} bytes")
    return None


# --- Metrics of the server in Prometheus' text format


# The upper bounds of the buckets of the histogram, in seconds.
_BOUNDS: Final = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Gauge:
    """A current value.

    Args:
        name: name of the metric, without the common prefix.
        text: description of the metric.
        value: the current value.
    """

    name: str
    text: str
    value: int


class Metrics:
    """Counts requests; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._times: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)
        self._sent_bytes = 0
        self._files = 0
        self._running = 0

    def begin(self) -> None:
        """Count a request that has started."""
        with self._lock:
            self._running += 1

    def end(self, action: str, status: int, seconds: float, sent_bytes: int, files: int) -> None:
        """Count a request that has ended."""
        with self._lock:
            self._running -= 1
            self._requests[action, status] += 1
            self._times[action][bisect_left(_BOUNDS, seconds)] += 1
            self._seconds[action] += seconds
            self._sent_bytes += sent_bytes
            self._files += files

    def text(self, gauges: Iterable[Gauge] = ()) -> str:
        """Return all metrics.

        Args:
            gauges: current values of other parts of the server.
        """
        with self._lock:
            lines = [
                *_head("requests_total", "counter", "Requests by endpoint and status."),
                *(
                    f'deltalog_sharing_requests_total{{action="{action}",status="{status}"}} {n}'
                    for (action, status), n in sorted(self._requests.items())
                ),
                *_head("request_seconds", "histogram", "How long requests took."),
                *(line for action in sorted(self._times) for line in self._histogram(action)),
                *_single("sent_bytes_total", "counter", "Bytes of bodies.", self._sent_bytes),
                *_single("told_files_total", "counter", "Files in answers.", self._files),
                *_single("running_requests", "gauge", "Requests at work.", self._running),
            ]
            for one in gauges:
                lines += _single(one.name, "gauge", one.text, one.value)
        return "\n".join(lines) + "\n"

    def _histogram(self, action: str) -> list[str]:
        name, total = "deltalog_sharing_request_seconds", 0
        lines = []
        for bound, count in zip([*map(str, _BOUNDS), "+Inf"], self._times[action], strict=True):
            total += count
            lines.append(f'{name}_bucket{{action="{action}",le="{bound}"}} {total}')
        return [
            *lines,
            f'{name}_sum{{action="{action}"}} {self._seconds[action]:.6f}',
            f'{name}_count{{action="{action}"}} {total}',
        ]


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP deltalog_sharing_{name} {text}", f"# TYPE deltalog_sharing_{name} {kind}"]


def _single(name: str, kind: str, text: str, value: int) -> list[str]:
    return [*_head(name, kind, text), f"deltalog_sharing_{name} {value}"]


# --- Running work for requests in threads, with limits per recipient


T = TypeVar("T")

_GONE: Final[ContextVar[threading.Event | None]] = ContextVar("deltalog.sharing.gone", default=None)


class ClientGoneError(Exception):
    """The client has disconnected and does not wait for the answer."""


def check_client() -> None:
    """Raise if the client of the current request has disconnected.

    Outside of a request, this does nothing.

    Raises:
        ClientGoneError: the client has disconnected.
    """
    gone = _GONE.get()
    if gone is not None and gone.is_set():
        raise ClientGoneError


class Turns:
    """Limits on the number of working threads.

    Args:
        at_once: maximum number of threads for all recipients together.
        per_recipient: maximum number of threads for one recipient; further requests wait.
    """

    def __init__(self, at_once: int, per_recipient: int) -> None:
        self.all: anyio.CapacityLimiter = anyio.CapacityLimiter(at_once)
        self._per_recipient = per_recipient
        self._own: dict[str, anyio.CapacityLimiter] = {}

    def of(self, recipient: str) -> anyio.CapacityLimiter:
        """Return the limit of one recipient."""
        found = self._own.get(recipient)
        if found is None:
            found = self._own[recipient] = anyio.CapacityLimiter(self._per_recipient)
        return found

    @property
    def num_working(self) -> int:
        """Return the number of threads that are working."""
        return self.all.borrowed_tokens

    @property
    def num_waiting(self) -> int:
        """Return the number of requests that wait for a thread or for their recipient's limit."""
        limits = (*self._own.values(), self.all)
        return sum(limit.statistics().tasks_waiting for limit in limits)


class Work:
    """Runs the work for one request in threads, and notices if the client disconnects.

    Args:
        receive: the request's ASGI `receive`; the body must have been read, unless it is not
            needed.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = threading.Event()

    async def run(self, function: Callable[[], T], turns: Turns, recipient: str) -> T:
        """Run a function in a thread when the recipient may use one, and return its result.

        Raises:
            ClientGoneError: the client disconnected while the function waited or ran.
        """
        found: list[T] = []
        fault: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, group.cancel_scope)
            _GONE.set(self._gone)  # worker threads get a copy of this context
            try:
                # Wait for the recipient's limit first, so that other recipients can use the threads
                # meanwhile.
                async with turns.of(recipient):
                    found.append(await anyio.to_thread.run_sync(function, limiter=turns.all))
            except Exception as error:  # noqa: BLE001 -- raised below: the group would wrap it
                fault = error
            group.cancel_scope.cancel()
        if fault is not None:
            raise fault
        if not found:
            raise ClientGoneError
        return found[0]

    async def _watch(self, scope: anyio.CancelScope) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()
        scope.cancel()


class WorkResponse(Response):
    """A response whose body is made in chunks; each chunk is made in a thread within the limits.

    Args:
        work: work of the request.
        chunks: the body.
        turns: limits on threads.
        recipient: name of the recipient, for its limit.
        status_code: HTTP status.
        headers: headers of the response.
    """

    def __init__(
        self,
        work: Work,
        chunks: Iterator[bytes],
        turns: Turns,
        recipient: str,
        *,
        status_code: int = 200,
        headers: Mapping[str, str],
    ) -> None:
        # Do not call the base class. It would set a content length, but the body is not known yet.
        self.status_code = status_code
        self.background: Any = None
        self.body = b""
        self.init_headers(headers)
        self._make = partial(work.run, partial(next, chunks, None), turns, recipient)
        self._chunks = chunks

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Set the headers without adding any."""
        self.raw_headers: list[tuple[bytes, bytes]] = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in (headers or {}).items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; if the client disconnects, stop making the body."""
        del scope, receive
        start: dict[str, Any] = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        try:
            while (piece := await self._make()) is not None:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except ClientGoneError:
            return
        finally:
            close = getattr(self._chunks, "close", None)
            if close is not None:
                close()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
