"""HTTP requests: sent, retried and redirected, with errors that name what was attempted.

Owns time limits, retries, redirects, and which URLs may be requested at all. Connections are those
of `sessions`, bodies are read by `replies`.

Protocol: REST APIs (transport); ledger SHARE-GEN-10, SHARE-SEC-09
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import IntEnum
from ipaddress import IPv6Address, IPv6Network, ip_address
from socket import AF_INET, AF_UNSPEC, SOCK_STREAM, AddressFamily, gaierror
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import fsspec.asyn

from deltalog._util.clock import now_ms
from deltalog._util.version import __version__
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.storage.faults import redact
from deltalog.storage.http.replies import (
    AnswerLimits,
    BrokenBodyError,
    Budget,
    Reply,
    printable,
    shown_location,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future
    from ipaddress import IPv4Address

    import aiohttp
    import yarl

    from deltalog.storage.http.replies import HttpFaults

# How near to this machine an address is: a server may name no file nearer than itself.


_NAT64: Final = IPv6Network("64:ff9b::/96")


class Reach(IntEnum):
    """From where an address can be reached; a higher value is nearer to this machine."""

    INTERNET = 0
    NETWORK = 1
    MACHINE = 2


def reach_of(address: str) -> Reach:
    """Return the reach of an IP address.

    Link-local addresses count as this machine's: clouds give credentials there.
    """
    found = _inner(ip_address(address))
    if found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast:
        return Reach.MACHINE
    return Reach.INTERNET if found.is_global else Reach.NETWORK


def reach_of_host(host: str) -> Reach | None:
    """Return the reach of an address, or of a name of this machine; None for other names."""
    try:
        return reach_of(host)
    except ValueError:
        name = host.rstrip(".").lower()
        is_own = name == "localhost" or name.endswith(".localhost")
        return Reach.MACHINE if is_own else None


def reach_of_all(addresses: Iterable[str]) -> Reach:
    """Return the reach of the farthest of some addresses; without one, that of the internet."""
    return min(map(reach_of, addresses), default=Reach.INTERNET)


async def resolve_addresses(host: str) -> list[str]:
    """Return the addresses of a name; none if it has none here."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, family=AF_UNSPEC, type=SOCK_STREAM)
    except OSError:
        return []
    internet = {AddressFamily.AF_INET, AddressFamily.AF_INET6}
    return [str(address[0]) for family, _, _, _, address in found if family in internet]


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address embeds, or None."""
    if not isinstance(address, IPv6Address):
        return address
    if address in _NAT64:
        return ip_address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


# Sessions of aiohttp: one for each event loop and process.


try:
    import aiohttp
    import yarl
except ImportError as _error:  # pragma: no cover -- the tests' environment has it
    raise InvalidInputError(
        "cannot send requests to a server of shares or a catalog: aiohttp is not installed; "
        "pip install 'deltalog[sharing]' or 'deltalog[catalogs]'"
    ) from _error


CONNECTION_FAULTS: Final = (aiohttp.ClientError,)


UNREACHED_FAULTS: Final = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    gaierror,
)
"""No connection was made: the name does not resolve, nobody listens, or nobody answers."""
LASTING_FAULTS: Final = (aiohttp.InvalidURL, aiohttp.ClientConnectorCertificateError)

_SessionKey = tuple[int, int, Reach]


def is_slow(fault: BaseException) -> bool:
    """Whether it took the whole time limit to find out that no connection can be made."""
    return isinstance(fault, TimeoutError)


def parse_url(text: str) -> yarl.URL:
    """Return a URL with the host that is connected to; its quoting stays, which is often signed.

    Raises:
        ValueError: it is malformed.
    """
    return yarl.URL(text, encoded=True)


class TooNearError(Exception):
    """A name resolves to an address that is nearer to this machine than it may be."""


class Sessions:
    """The sessions of one object that sends requests.

    Args:
        options: of the connections.
    """

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._held: dict[_SessionKey, _LoopSession] = {}
        self._reaches: dict[str, Reach] = {}
        weakref.finalize(self, _close_all, self._held)

    def get(self, nearest: Reach) -> aiohttp.ClientSession:
        """Return the session of the running event loop.

        Args:
            nearest: how near to this machine the addresses may be that names resolve to.
        """
        loop = asyncio.get_running_loop()
        if self._options.session is not None:
            nearest = Reach.MACHINE
        key = os.getpid(), id(loop), nearest
        held = self._held.get(key)
        if held is None or held.loop is not loop or held.session.closed:
            held = self._held[key] = _LoopSession(loop, self._open(nearest))
        return held.session

    def _open(self, nearest: Reach) -> aiohttp.ClientSession:
        options = self._options
        if options.session is not None:
            return options.session()
        resolver = _NearnessResolver(nearest, self._reaches, options.connect_timeout_s)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=options.max_connections, resolver=resolver),
            timeout=aiohttp.ClientTimeout(
                total=None,
                connect=None,
                sock_connect=options.connect_timeout_s,
                sock_read=options.read_timeout_s,
            ),
            headers={"User-Agent": f"deltalog/{__version__}"},
            # It would also send the logins in ~/.netrc to whatever host a server names.
            trust_env=False,
            # Signed URLs lead to storage hosts, whose cookies must not be kept.
            cookie_jar=aiohttp.DummyCookieJar(),
            # A short body may hold gigabytes; `Reply` decompresses it piece by piece.
            auto_decompress=False,
            read_bufsize=1 << 18,
            max_field_size=1 << 16,
        )

    def reach(self, host: str) -> Reach | None:
        """Return the reach of the addresses at which a name was asked; None if it was not."""
        return self._reaches.get(host.lower())

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        for nearest in Reach:
            key = os.getpid(), id(asyncio.get_running_loop()), nearest
            if (held := self._held.pop(key, None)) is not None:
                await held.session.close()


@dataclass(frozen=True, slots=True)
class _LoopSession:
    loop: asyncio.AbstractEventLoop
    session: aiohttp.ClientSession


class _NearnessResolver(aiohttp.abc.AbstractResolver):
    """Resolves names; the addresses that it allows are those that are connected to.

    Args:
        nearest: how near an address may be.
        reaches: into which the reach of each name is written.
        seconds: that it may take.
    """

    def __init__(self, nearest: Reach, reaches: dict[str, Reach], seconds: float) -> None:
        self._nearest = nearest
        self._seconds = seconds
        self._reaches = reaches
        self._inner = aiohttp.DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: AddressFamily = AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        """Return the addresses of a name."""
        async with asyncio.timeout(self._seconds):
            found = await self._inner.resolve(host, port, family)
        addresses = [one["host"] for one in found]
        if any(reach_of(address) > self._nearest for address in addresses):
            raise TooNearError
        key, reach = host.lower(), reach_of_all(addresses)
        # A server that was on the internet once stays there, whatever its name resolves to later.
        self._reaches[key] = min(reach, self._reaches.get(key, reach))
        return found

    async def close(self) -> None:
        """Release what the resolver holds."""
        await self._inner.close()


def _close_all(sessions: dict[_SessionKey, _LoopSession]) -> None:
    """Close the sessions of an object that nothing refers to, also at the end of the process."""
    for (process, _, _), held in list(sessions.items()):
        if process != os.getpid() or held.session.closed:
            continue
        if held.loop.is_running():
            asyncio.run_coroutine_threadsafe(held.session.close(), held.loop)
        elif (connector := held.session.connector) is not None:
            connector._close()  # noqa: SLF001  # the public one needs a running loop
    sessions.clear()


# HTTP requests: sent, retried and redirected, with errors that name what was attempted.


P = ParamSpec("P")
T = TypeVar("T")

_MOST_REDIRECTS: Final = 5
_MOST_HOSTS: Final = 1000  # whose proxies are remembered: servers may name any number of hosts
_MOST_ERROR_BYTES: Final = 64 * 1024
_CONTROLS: Final = re.compile(r"[\x00- \x7f]")
_TEMPORARY: Final = (*CONNECTION_FAULTS, BrokenBodyError, asyncio.TimeoutError, OSError)


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
class Request:
    """One request.

    Args:
        what: the purpose, as it follows "cannot" in an error: `list the shares of …`.
        url: percent-encoded, sent unchanged.
        is_secret: the body proves who asks, so it is for this server only.
        named_by: URL of the server that gave this URL; None is the user.
    """

    what: str
    url: str = field(repr=False)
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    is_secret: bool = False
    named_by: str | None = None


class Http:
    """Sends requests; any number of event loops and threads may share it.

    Args:
        options: of the connections.
        faults: the errors that are raised.
    """

    def __init__(self, options: HttpOptions, faults: HttpFaults) -> None:
        self.options = options
        self.faults = faults
        self._sessions = Sessions(options)
        self._proxies: dict[tuple[str, str], str | None] = {}
        self._answered: set[tuple[str | None, int | None]] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickled objects with the same arguments share one object per process."""
        return shared_http, (self.options, self.faults)

    def budget(self, *, for_file: bool = False) -> Budget:
        """Return a new budget for one answer."""
        return Budget(self.options.limits, self.faults, for_file=for_file)

    async def fetch(
        self,
        request: Request,
        read: Callable[[Reply], Awaitable[T]],
        make_error: Callable[[int, Mapping[str, str], bytes], DeltaError],
        budget: Budget | None = None,
        *,
        repeats: Callable[[int, bytes], bool] | None = None,
    ) -> T:
        """Return what `read` makes of the response.

        Args:
            request: what to send.
            read: reads the body; called again if the connection breaks while it does.
            make_error: the error for status, headers and body of an unsuccessful response.
            budget: of the answer that the response is a part of; None is one of its own.
            repeats: whether the request is sent again after a response with this status and body;
                None decides by the status alone.

        Raises:
            DeltaError: of `faults`; `unavailable` if no attempt got a response, or not in time,
                `refused` if the URL may not be requested, or the response is too long.
        """
        budget = budget or self.budget()
        try:
            async with asyncio.timeout(budget.seconds_left()):
                return await self._attempts(request, read, make_error, budget, repeats)
        except TimeoutError:
            raise self.faults.unavailable(
                f"cannot {request.what}: no whole answer within {budget.limits.seconds:g} s; "
                "HttpOptions(limits=AnswerLimits(seconds=…)) permits more"
            ) from None

    async def _attempts(
        self,
        request: Request,
        read: Callable[[Reply], Awaitable[T]],
        make_error: Callable[[int, Mapping[str, str], bytes], DeltaError],
        budget: Budget,
        repeats: Callable[[int, bytes], bool] | None,
    ) -> T:
        repeats = repeats or _by_status
        failures = 0
        while True:
            asked_ms: int | None = None
            is_unreached = False
            try:
                # On any error aiohttp closes a connection whose response was not read to its end.
                response, is_decoded = await self._send(request)
                async with response:
                    reply = Reply(response, request.what, budget, is_decoded=is_decoded)
                    if response.status < 300:
                        found = await read(reply)
                        # What a broken attempt has read is not kept, so it is not counted.
                        budget.used_bytes += reply.num_bytes
                        return found
                    body = await reply.read_start(_MOST_ERROR_BYTES)
                    error = make_error(response.status, response.headers, body)
                    if not repeats(response.status, body):
                        raise error
                    asked_ms = retry_after_ms(response.headers.get("Retry-After"), now_ms())
                    cause = None
            except DeltaError:
                raise  # some of them are OSErrors
            except LASTING_FAULTS as fault:
                raise self._connection_error(request, fault, 1) from None
            except _TEMPORARY as fault:
                is_unreached = self._is_unreached(request, fault)
                error = self._connection_error(request, fault, failures + 1)
                # A signed URL is a secret, which no traceback may show.
                cause = None if request.url in str(fault) else fault
                if is_unreached and is_slow(fault):
                    raise error from cause
            failures += 1
            delay_ms = self.options.retry.delay_ms(failures, asked_ms, is_unreached=is_unreached)
            if delay_ms is None:
                raise error from cause
            await asyncio.sleep(delay_ms / 1000)

    async def _send(self, request: Request) -> tuple[aiohttp.ClientResponse, bool]:
        """Return the first response that is no redirect; and whether its body is decompressed."""
        for _ in range(_MOST_REDIRECTS):
            url = self._checked_url(request)
            nearest = await self._nearest(request, url)
            session = self._sessions.get(nearest)
            try:
                response = await session.request(
                    request.method,
                    url,
                    headers={"Accept-Encoding": "gzip", **request.headers},
                    data=request.body,
                    allow_redirects=False,
                    proxy=self._proxy(url),
                )
            except TooNearError:
                raise self._too_near(request, url) from None
            self._note_answer(url)
            target = response.headers.get("Location")
            if response.status not in {301, 302, 303, 307, 308} or target is None:
                return response, session.auto_decompress
            response.release()
            try:
                request = self._redirected(request, urljoin(request.url, target))
            except ValueError:  # of Python's own reading of URLs
                raise self.faults.refused(
                    f"cannot {request.what}: the server redirects to {shown_location(target)!r}, "
                    "which is no URL"
                ) from None
        raise self.faults.refused(
            f"cannot {request.what}: redirected more than {_MOST_REDIRECTS} times"
        )

    def _checked_url(self, request: Request) -> yarl.URL:
        """Return the URL of a request, whose host is the one that is connected to."""
        if _CONTROLS.search(request.url):
            raise self.faults.refused(
                f"cannot {request.what}: the server's URL has control characters"
            )
        try:
            url = parse_url(request.url)
            host = url.raw_host or ""
        except ValueError:
            host = ""
        if not host:
            raise self.faults.refused(f"cannot {request.what}: the server's URL names no host")
        if url.raw_user or url.raw_password:
            raise self.faults.refused(
                f"cannot {request.what}: the URL at {host!r} has a login in it; give name and "
                "password apart from it (a profile of type 'basic' has both)"
            )
        if url.scheme == "https" or (
            url.scheme == "http" and (self.options.allow_http or is_loopback(host))
        ):
            return url
        raise self.faults.refused(
            f"cannot {request.what}: a URL of scheme {url.scheme!r} at {host!r} is refused, "
            "because others on the network could read the token; allow_http=True permits http"
        )

    async def _nearest(self, request: Request, url: yarl.URL) -> Reach:
        """Return how near the address of a request may be.

        Raises:
            DeltaError: `faults.refused`; the URL names a host that is nearer.
        """
        if request.named_by is None or self.options.allow_private_files:
            return Reach.MACHINE
        nearest = await self._reach(urlsplit(request.named_by).hostname or "")
        host = url.raw_host or ""
        found = reach_of_host(host)
        if self._proxy(url) is not None:
            # The proxy resolves names, from where it is.
            found, limit = found or Reach.INTERNET, Reach.MACHINE
        else:
            limit = nearest
            if found is None and self.options.session is not None:
                # A session of the user's own has a resolver of its own.
                found = reach_of_all(await resolve_addresses(host))
        if found is not None and found > nearest:
            raise self._too_near(request, url)
        return limit

    def _proxy(self, url: yarl.URL) -> str | None:
        """Return the URL of the proxy for a request; those of the environment unless one is set."""
        if self.options.proxy is not None:
            return self.options.proxy
        if self.options.session is not None:
            return None  # a session of the user's own looks at the environment if it is told to
        # Going through the environment takes longer than all else that a request needs here.
        key = url.scheme, url.raw_host or ""
        if key not in self._proxies:
            if len(self._proxies) >= _MOST_HOSTS:
                self._proxies.clear()
            self._proxies[key] = None if proxy_bypass(key[1]) else getproxies().get(key[0])
        return self._proxies[key]

    async def _reach(self, host: str) -> Reach:
        """Return the reach of a server, by the addresses that it was asked at."""
        found = reach_of_host(host)
        if found is None:
            found = self._sessions.reach(host)
        if found is None:  # in workers, which have URLs and did not ask for them
            found = reach_of_all(await resolve_addresses(host))
        return found

    def _too_near(self, request: Request, url: yarl.URL) -> DeltaError:
        return self.faults.refused(
            f"cannot {request.what}: the server names a file at {url.raw_host!r}, an address of "
            "this machine or its own network, and lies farther away itself; "
            "allow_private_files=True permits that"
        )

    def _redirected(self, request: Request, target: str) -> Request:
        # A server may redirect to any host; the bearer token is for this one only.
        in_header = any(name.lower() == "authorization" for name in request.headers)
        if (in_header or request.is_secret) and not is_same_origin(request.url, target):
            raise self.faults.refused(
                f"cannot {request.what}: the server redirects to {shown_location(target)!r}, to "
                "which the credentials are not sent; set the endpoint to that address"
            )
        if request.url.startswith("https:") and not target.startswith("https:"):
            raise self.faults.refused(
                f"cannot {request.what}: redirected from https to a URL without TLS"
            )
        return replace(request, url=target)

    def _note_answer(self, url: yarl.URL) -> None:
        if len(self._answered) >= _MOST_HOSTS:
            self._answered.clear()
        proxy = self._proxy(url)
        for one in (url, *([] if proxy is None else [parse_url(proxy)])):
            self._answered.add((one.raw_host, one.port))

    def _is_unreached(self, request: Request, fault: BaseException) -> bool:
        """Whether no connection was made, and none ever was."""
        if not isinstance(fault, UNREACHED_FAULTS):
            return False
        url = parse_url(request.url)
        # A redirect, or a proxy, is another server than that of the request.
        place = getattr(fault, "host", url.raw_host), getattr(fault, "port", url.port)
        return place not in self._answered

    def _connection_error(
        self, request: Request, fault: BaseException, attempts: int
    ) -> DeltaError:
        host = _host_of(request)
        reason = redact(
            f"{type(fault).__name__}: {printable(str(fault).replace(request.url, host))}"
        )
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        advice = ""
        if self._is_unreached(request, fault):
            advice = "; see that the address is right, and that this machine reaches it"
        return self.faults.unavailable(
            f"cannot {request.what}: no response from {host} after {times}: {reason}{advice}"
        )

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._sessions.close()


_SHARED: Final[weakref.WeakValueDictionary[Any, Http]] = weakref.WeakValueDictionary()


def shared_http(options: HttpOptions, faults: HttpFaults) -> Http:
    """Return the process's one object with these arguments."""
    key = options, faults
    found = _SHARED.get(key)
    if found is None:
        found = _SHARED[key] = Http(options, faults)
    return found


def _host_of(request: Request) -> str:
    return urlsplit(request.url).netloc.rpartition("@")[2]


def _by_status(status: int, body: bytes) -> bool:
    del body
    return is_retryable(status)


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


# When a failed request is sent again, and how long to wait before that.


_RETRYABLE: Final = frozenset({408, 425, 429})
_LASTING: Final = frozenset({501, 505})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often and how soon a failed request is sent again.

    Args:
        attempts: in all, the first one included.
        first_delay_ms: before the second attempt; each following delay is twice as long.
        longest_delay_ms: no delay grows beyond this.
        longest_wait_ms: the request fails at once if the server asks to wait longer than this.
        unreached_attempts: as `attempts`, where no connection can be made to a server that has
            answered nothing yet: its name may be misspelt. Once a time limit is over, there is no
            further one.
    """

    # The numbers of the official Python client.
    attempts: int = 10
    first_delay_ms: int = 100
    longest_delay_ms: int = 20_000
    longest_wait_ms: int = 120_000
    unreached_attempts: int = 3

    def delay_ms(
        self,
        failures: int,
        asked_ms: int | None = None,
        *,
        is_unreached: bool = False,
        jitter: Callable[[], float] = random.random,
    ) -> int | None:
        """Return the milliseconds until the next attempt, or None if there is none.

        Args:
            failures: attempts that failed so far, 1 or more.
            asked_ms: what the server asks for.
            is_unreached: whether the server has never answered.
            jitter: a number from 0 to 1, so that many clients do not come back together.
        """
        attempts = min(self.attempts, self.unreached_attempts) if is_unreached else self.attempts
        if failures >= attempts:
            return None
        if asked_ms is not None:
            return asked_ms if asked_ms <= self.longest_wait_ms else None
        doublings: int = 1 << min(failures - 1, 30)
        grown = min(self.longest_delay_ms, self.first_delay_ms * doublings)
        return round(grown * (0.5 + jitter() / 2))


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status in _RETRYABLE or (status >= 500 and status not in _LASTING)


def retry_after_ms(header: str | None, now_ms: int) -> int | None:
    """Return the wait that a `Retry-After` header requests (seconds or a date), or None."""
    text = (header or "").strip()
    if text.isascii() and text.isdecimal():
        return int(text[:12]) * 1000
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round(moment.timestamp() * 1000) - now_ms)


# How requests are sent, as users choose it.


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How requests are sent; picklable if `session` is.

    Args:
        connect_timeout_s: for opening a connection.
        read_timeout_s: between two pieces of a response; the whole of it may take longer.
        retry: how failed requests are sent again.
        proxy: URL of a proxy for all requests; None takes those of the environment.
        allow_http: permit servers without TLS; loopback addresses are always permitted.
        allow_private_files: permit a server to name files at addresses that are nearer to this
            machine than its own, such as private ones; S3 may have those within its cloud.
        limits: the most that is taken from a server.
        max_connections: open at once.
        session: makes an `aiohttp.ClientSession` (certificates, resolvers, traces). It is called
            within the event loop that the session is for. One that decompresses by itself, as
            aiohttp's do unless told otherwise, is not bound by `limits.expansion`.
    """

    connect_timeout_s: float = 15
    read_timeout_s: float = 120
    retry: Retry = field(default_factory=Retry)
    proxy: str | None = field(default=None, repr=False)
    allow_http: bool = False
    allow_private_files: bool = False
    limits: AnswerLimits = field(default_factory=AnswerLimits)
    max_connections: int = 32
    session: Callable[[], aiohttp.ClientSession] | None = None
