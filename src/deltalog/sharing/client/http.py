"""HTTP requests: sent, retried and redirected, with errors that name what was attempted.

The only importer of aiohttp. Owns sessions (one per event loop and process), time limits, retries,
redirects, and which URLs may be requested at all. Knows nothing of what a body holds.

Protocol: REST APIs (transport); ledger SHARE-GEN-10, SHARE-SEC-09
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast
from urllib.parse import urljoin, urlsplit

import fsspec.asyn

from deltalog import __version__
from deltalog.clock import now_ms
from deltalog.errors import DeltaError, InvalidInputError, SharingError, SharingUnavailableError
from deltalog.sharing.client.retry import Retry, is_retryable, retry_after_ms
from deltalog.storage.faults import redact

try:
    import aiohttp
    import yarl
except ImportError as error:  # pragma: no cover -- the tests' environment has it
    raise InvalidInputError(
        "cannot use Delta Sharing: aiohttp is not installed; pip install 'deltalog[sharing]'"
    ) from error

if TYPE_CHECKING:
    from concurrent.futures import Future

P = ParamSpec("P")
T = TypeVar("T")

_MOST_REDIRECTS: Final = 5
_MOST_ERROR_BYTES: Final = 64 * 1024
_TEMPORARY: Final = (aiohttp.ClientError, asyncio.TimeoutError, OSError)
_LASTING: Final = (aiohttp.InvalidURL, aiohttp.ClientConnectorCertificateError)


def run(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a coroutine function that runs in fsspec's event loop.

    Every asynchronous fsspec file system of the process uses the thread of that loop already, and
    a forked child gets one of its own.
    """
    return cast("T", fsspec.asyn.sync(fsspec.asyn.get_loop(), function, *args, **kwargs))


def start(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine in fsspec's event loop."""
    return asyncio.run_coroutine_threadsafe(coroutine, fsspec.asyn.get_loop())


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How requests are sent; picklable if `session` is.

    Args:
        connect_timeout_s: for opening a connection.
        read_timeout_s: between two pieces of a response; the whole of it may take longer.
        retry: how failed requests are sent again.
        proxy: URL of a proxy for all requests; None takes those of the environment.
        allow_http: permit servers without TLS; loopback addresses are always permitted.
        max_connections: open at once.
        session: makes an `aiohttp.ClientSession` (certificates, resolvers, traces). It is called
            within the event loop that the session is for.
    """

    connect_timeout_s: float = 15
    read_timeout_s: float = 120
    retry: Retry = field(default_factory=Retry)
    proxy: str | None = field(default=None, repr=False)
    allow_http: bool = False
    max_connections: int = 32
    session: Callable[[], aiohttp.ClientSession] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request.

    Args:
        what: the purpose, as it follows "cannot" in an error: `list the shares of …`.
        url: percent-encoded, sent unchanged.
    """

    what: str
    url: str = field(repr=False)
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)


class Reply:
    """A successful response whose body is not read yet.

    Attributes:
        status: 200 to 299.
        headers: names in any case.
    """

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """Return the whole body."""
        return await self._response.read()

    async def blocks(self) -> AsyncIterator[list[bytes]]:
        """Yield the lines of the body that have arrived together, without blank ones."""
        rest = b""
        async for data in self._response.content.iter_any():
            *lines, rest = (rest + data).split(b"\n") if rest else data.split(b"\n")
            yield [line for line in lines if line.strip()]
        if rest.strip():
            yield [rest]


class Http:
    """Sends requests; any number of event loops and threads may share it."""

    def __init__(self, options: HttpOptions) -> None:
        self.options = options
        self._sessions: dict[tuple[int, int], _Session] = {}
        weakref.finalize(self, _close_all, self._sessions)

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickled objects with the same options share one object per process."""
        return shared_http, (self.options,)

    async def fetch(
        self,
        request: Request,
        read: Callable[[Reply], Awaitable[T]],
        make_error: Callable[[int, Mapping[str, str], bytes], DeltaError],
    ) -> T:
        """Return what `read` makes of the response.

        Args:
            request: what to send.
            read: reads the body; called again if the connection breaks while it does.
            make_error: the error for status, headers and body of a response that is no success.

        Raises:
            SharingUnavailableError: no attempt got a response.
            SharingError: the URL may not be requested.
        """
        failures = 0
        while True:
            asked_ms: int | None = None
            try:
                # On any error aiohttp closes a connection whose response was not read to its end.
                async with await self._send(request) as response:
                    if response.status < 300:
                        return await read(Reply(response))
                    body = await response.content.read(_MOST_ERROR_BYTES)
                    error = make_error(response.status, response.headers, body)
                    if not is_retryable(response.status):
                        raise error
                    asked_ms = retry_after_ms(response.headers.get("Retry-After"), now_ms())
                    cause = None
            except DeltaError:
                raise  # some of them are OSErrors
            except _LASTING as fault:
                raise _connection_error(request, fault, 1) from None
            except _TEMPORARY as fault:
                error = _connection_error(request, fault, failures + 1)
                # A signed URL is a secret, which no traceback may show.
                cause = None if request.url in str(fault) else fault
            failures += 1
            delay_ms = self.options.retry.delay_ms(failures, asked_ms)
            if delay_ms is None:
                raise error from cause
            await asyncio.sleep(delay_ms / 1000)

    async def _send(self, request: Request) -> aiohttp.ClientResponse:
        """Return the first response that is no redirect."""
        for _ in range(_MOST_REDIRECTS):
            self._check_url(request)
            response = await self._session().request(
                request.method,
                # Quoting the path of a signed URL again would break its signature.
                yarl.URL(request.url, encoded=True),
                headers=dict(request.headers),
                data=request.body,
                allow_redirects=False,
                proxy=self.options.proxy,
            )
            target = response.headers.get("Location")
            if response.status not in {301, 302, 303, 307, 308} or target is None:
                return response
            response.release()
            request = _redirected(request, urljoin(request.url, target))
        raise SharingError(f"cannot {request.what}: redirected more than {_MOST_REDIRECTS} times")

    def _check_url(self, request: Request) -> None:
        try:
            parts = urlsplit(request.url)
            host = parts.hostname or ""
        except ValueError:
            host = ""
        if not host:
            raise SharingError(f"cannot {request.what}: the server's URL names no host")
        if parts.scheme == "https" or (
            parts.scheme == "http" and (self.options.allow_http or is_loopback(host))
        ):
            return
        raise SharingError(
            f"cannot {request.what}: a URL of scheme {parts.scheme!r} at {host!r} is refused, "
            "because others on the network could read the token; allow_http=True permits http"
        )

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        key = os.getpid(), id(loop)
        held = self._sessions.get(key)
        if held is None or held.loop is not loop or held.session.closed:
            held = self._sessions[key] = _Session(loop, self._open_session())
        return held.session

    def _open_session(self) -> aiohttp.ClientSession:
        options = self.options
        if options.session is not None:
            return options.session()
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=options.max_connections),
            timeout=aiohttp.ClientTimeout(
                total=None,
                connect=None,
                sock_connect=options.connect_timeout_s,
                sock_read=options.read_timeout_s,
            ),
            headers={"User-Agent": f"deltalog/{__version__}"},
            trust_env=options.proxy is None,
            # Signed URLs lead to storage hosts, whose cookies must not be kept.
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=1 << 18,
            max_field_size=1 << 16,
        )

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        held = self._sessions.pop((os.getpid(), id(asyncio.get_running_loop())), None)
        if held is not None:
            await held.session.close()


_SHARED: Final[weakref.WeakValueDictionary[HttpOptions, Http]] = weakref.WeakValueDictionary()


def shared_http(options: HttpOptions) -> Http:
    """Return the process's one object with these options."""
    found = _SHARED.get(options)
    if found is None:
        found = _SHARED[options] = Http(options)
    return found


@dataclass(frozen=True, slots=True)
class _Session:
    loop: asyncio.AbstractEventLoop
    session: aiohttp.ClientSession


def is_loopback(host: str) -> bool:
    """Whether requests to this host stay on the machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_same_origin(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc.lower()) == (second.scheme, second.netloc.lower())


def _redirected(request: Request, target: str) -> Request:
    # A server may redirect to any host; the bearer token is for this one only.
    secret = any(name.lower() == "authorization" for name in request.headers)
    if secret and not is_same_origin(request.url, target):
        raise SharingError(
            f"cannot {request.what}: the server redirects to {urlsplit(target).netloc!r}, to which "
            "the profile's credentials are not sent; set the profile's endpoint to that address"
        )
    if request.url.startswith("https:") and not target.startswith("https:"):
        raise SharingError(f"cannot {request.what}: redirected from https to a URL without TLS")
    return replace(request, url=target)


def _connection_error(
    request: Request, fault: BaseException, attempts: int
) -> SharingUnavailableError:
    host = urlsplit(request.url).netloc.rpartition("@")[2]
    reason = redact(f"{type(fault).__name__}: {fault}".replace(request.url, host))
    times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    return SharingUnavailableError(
        f"cannot {request.what}: no response from {host} after {times}: {reason}"
    )


def _close_all(sessions: dict[tuple[int, int], _Session]) -> None:
    """Close the sessions of an object that nothing refers to, also at the end of the process."""
    for (process, _), held in list(sessions.items()):
        if process != os.getpid() or held.session.closed:
            continue
        if held.loop.is_running():
            asyncio.run_coroutine_threadsafe(held.session.close(), held.loop)
        elif (connector := held.session.connector) is not None:
            connector._close()  # noqa: SLF001  # the public one needs a running loop
    sessions.clear()
