"""The one door to HTTP: requests sent, tried again, followed, and their failures named.

The only importer of aiohttp. Owns sessions (one for each event loop and process), time limits,
retries, redirects and which URLs may be asked at all. Refuses to know what is in a body.

Protocol: REST APIs (transport); ledger SHARE-GEN-10, SHARE-SEC-09
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any, Final, TypeVar
from urllib.parse import urljoin, urlsplit

from deltalog import __version__
from deltalog.clock import now_ms
from deltalog.errors import DeltaError, InvalidInputError, SharingError, SharingUnavailableError
from deltalog.sharing.client.retry import Retry, is_passing, retry_after_ms
from deltalog.storage.faults import redact

try:
    import aiohttp
    import yarl
except ImportError as error:  # pragma: no cover -- the tests' environment has it
    raise InvalidInputError(
        "cannot use Delta Sharing: aiohttp is not installed; pip install 'deltalog[sharing]'"
    ) from error

_Result = TypeVar("_Result")

_MOST_REDIRECTS: Final = 5
_MOST_ERROR_BYTES: Final = 64 * 1024
_TEMPORARY: Final = (aiohttp.ClientError, asyncio.TimeoutError, OSError)
_LASTING: Final = (aiohttp.InvalidURL, aiohttp.ClientConnectorCertificateError)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How requests are sent; picklable if `session` is.

    Args:
        connect_timeout_s: for a connection to come about.
        read_timeout_s: between two pieces of an answer; an answer may take longer as a whole.
        retry: how failed requests are sent again.
        proxy: URL of a proxy for all requests; None takes those of the environment.
        allow_http: ask servers without TLS too; loopback addresses always may.
        max_connections: open at once.
        session: makes an `aiohttp.ClientSession` of one's own (certificates, resolvers, traces).
            It is called within the event loop that the session is for.
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
        what: what it is for, to stand behind "cannot": `list the shares of …`.
        url: percent-encoded, sent as it stands.
    """

    what: str
    url: str = field(repr=False)
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)


class Reply:
    """An answer whose body is still to come.

    Attributes:
        status: 200 to 299.
        headers: names in any case.
    """

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """The whole body."""
        return await self._response.read()

    async def blocks(self) -> AsyncIterator[list[bytes]]:
        """The lines of the body, as many at a time as have come; blank ones are left out."""
        rest = b""
        async for data in self._response.content.iter_any():
            *lines, rest = (rest + data).split(b"\n") if rest else data.split(b"\n")
            yield [line for line in lines if line.strip()]
        if rest.strip():
            yield [rest]


class Http:
    """Sends requests; for any number of event loops and threads."""

    def __init__(self, options: HttpOptions) -> None:
        self.options = options
        self._sessions: dict[tuple[int, int], _Session] = {}
        weakref.finalize(self, _close_all, self._sessions)

    def __reduce__(self) -> tuple[Any, ...]:
        """All that come back to one process share its connections."""
        return shared_http, (self.options,)

    async def fetch(
        self,
        request: Request,
        consume: Callable[[Reply], Awaitable[_Result]],
        refuse: Callable[[int, Mapping[str, str], bytes], DeltaError],
    ) -> _Result:
        """What `consume` makes of the answer.

        Args:
            request: what to send.
            consume: reads the body; called anew if the connection breaks while it does.
            refuse: the error for a status, headers and body that are no success.

        Raises:
            SharingUnavailableError: no answer, at no attempt.
            SharingError: the URL may not be asked.
        """
        failures = 0
        while True:
            asked_ms: int | None = None
            try:
                async with self._send(request) as response:
                    if response.status < 300:
                        return await consume(Reply(response))
                    body = await response.content.read(_MOST_ERROR_BYTES)
                    error = refuse(response.status, response.headers, body)
                    if not is_passing(response.status):
                        raise error
                    asked_ms = retry_after_ms(response.headers.get("Retry-After"), now_ms())
                    cause = None
            except DeltaError:
                raise  # some of them are OSErrors
            except _LASTING as fault:
                raise _unanswered(request, fault, 1) from None
            except _TEMPORARY as fault:
                error = _unanswered(request, fault, failures + 1)
                # A signed URL is a secret, which no traceback shall show.
                cause = None if request.url in str(fault) else fault
            failures += 1
            delay_ms = self.options.retry.delay_ms(failures, asked_ms)
            if delay_ms is None:
                raise error from cause
            await asyncio.sleep(delay_ms / 1000)

    def _send(self, request: Request) -> _Sending:
        return _Sending(self, request)

    async def exchange(self, request: Request) -> aiohttp.ClientResponse:
        """The first answer that sends nowhere else."""
        for _ in range(_MOST_REDIRECTS):
            self._check(request)
            response = await self._session().request(
                request.method,
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

    def _check(self, request: Request) -> None:
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
            f"cannot {request.what}: a URL of scheme {parts.scheme!r} at {host!r} is refused, as "
            "whoever listens on the way could read what is sent; allow_http=True permits http"
        )

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        key = os.getpid(), id(loop)
        held = self._sessions.get(key)
        if held is None or held.loop is not loop or held.session.closed:
            held = self._sessions[key] = _Session(loop, self._open())
        return held.session

    def _open(self) -> aiohttp.ClientSession:
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
    """One for the whole process."""
    found = _SHARED.get(options)
    if found is None:
        found = _SHARED[options] = Http(options)
    return found


@dataclass(frozen=True, slots=True)
class _Session:
    loop: asyncio.AbstractEventLoop
    session: aiohttp.ClientSession


class _Sending:
    """A response that is given back to its connection, however its use ends."""

    def __init__(self, http: Http, request: Request) -> None:
        self._http = http
        self._request = request
        self._response: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> aiohttp.ClientResponse:
        self._response = await self._http.exchange(self._request)
        return self._response

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._response is not None:
            self._response.release() if kind is None else self._response.close()


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
    secret = any(name.lower() == "authorization" for name in request.headers)
    if secret and not is_same_origin(request.url, target):
        raise SharingError(
            f"cannot {request.what}: the server redirects to {urlsplit(target).netloc!r}, where "
            "the profile's secret must not go; set the profile's endpoint to that address"
        )
    if request.url.startswith("https:") and not target.startswith("https:"):
        raise SharingError(f"cannot {request.what}: redirected from https to less")
    return replace(request, url=target)


def _unanswered(request: Request, fault: BaseException, attempts: int) -> SharingUnavailableError:
    host = urlsplit(request.url).netloc.rpartition("@")[2]
    told = redact(f"{type(fault).__name__}: {fault}".replace(request.url, host))
    times = "once" if attempts == 1 else f"{attempts} times"
    return SharingUnavailableError(f"cannot {request.what}: asked {host} {times}: {told}")


def _close_all(sessions: dict[tuple[int, int], _Session]) -> None:
    """Close what nobody will use any more, be it at the end of the process."""
    for (process, _), held in list(sessions.items()):
        if process != os.getpid() or held.session.closed:
            continue
        if held.loop.is_running():
            asyncio.run_coroutine_threadsafe(held.session.close(), held.loop)
        elif (connector := held.session.connector) is not None:
            connector._close()  # noqa: SLF001  # the public one needs a running loop
    sessions.clear()
