"""Sending, retrying and redirecting HTTP requests.

This module contains time limits, retries, redirects, connections, and the check which URLs may be
requested. `replies` reads the bodies.

Protocol: REST APIs (transport); requirements SHARE-GEN-10, SHARE-SEC-09
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
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

from deltalog._util.argument_types import checks_types
from deltalog._util.clock import now_ms
from deltalog._util.readable import counted
from deltalog._util.similar_names import suggests_arguments
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
    from concurrent.futures import Future
    from ipaddress import IPv4Address

    import aiohttp
    import yarl

    from deltalog.storage.http.replies import HttpFaults

# --- The reach of addresses: a server on the internet must not send clients to private addresses


_NAT64: Final = IPv6Network("64:ff9b::/96")


class Reach(IntEnum):
    """Where an address can be reached from; a higher value is nearer to this machine."""

    INTERNET = 0
    NETWORK = 1
    MACHINE = 2


def reach_of(address: str) -> Reach:
    """Return the reach of an IP address.

    Link-local addresses count as addresses of this machine, because clouds serve credentials there.
    """
    found = _inner(ip_address(address))
    if found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast:
        return Reach.MACHINE
    return Reach.INTERNET if found.is_global else Reach.NETWORK


def reach_of_host(host: str) -> Reach | None:
    """Return the reach of an IP address or of a local host name; None for other names."""
    try:
        return reach_of(host)
    except ValueError:
        name = host.rstrip(".").lower()
        is_own = name == "localhost" or name.endswith(".localhost")
        return Reach.MACHINE if is_own else None


def reach_of_all(addresses: Iterable[str]) -> Reach:
    """Return the reach of the farthest address; `INTERNET` if there are no addresses."""
    return min(map(reach_of, addresses), default=Reach.INTERNET)


async def resolve_addresses(host: str) -> list[str]:
    """Return the addresses of a host name; empty if it does not resolve."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, family=AF_UNSPEC, type=SOCK_STREAM)
    except OSError:
        return []
    internet = {AddressFamily.AF_INET, AddressFamily.AF_INET6}
    return [str(address[0]) for family, _, _, _, address in found if family in internet]


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address embeds, otherwise the address."""
    if not isinstance(address, IPv6Address):
        return address
    if address in _NAT64:
        return ip_address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


# --- Sessions of aiohttp: one for each event loop and process


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
"""Errors of connecting: the name does not resolve, or the server refuses or does not respond."""
LASTING_FAULTS: Final = (aiohttp.InvalidURL, aiohttp.ClientConnectorCertificateError)

_SessionKey = tuple[int, int, Reach]


def is_slow(fault: BaseException) -> bool:
    """Whether connecting failed by a timeout."""
    return isinstance(fault, TimeoutError)


def parse_url(text: str) -> yarl.URL:
    """Parse a URL without changing its quoting, which a signature often includes.

    Raises:
        ValueError: the URL is malformed.
    """
    return yarl.URL(text, encoded=True)


class TooNearError(Exception):
    """A name resolves to an address that is nearer to this machine than allowed."""


class Sessions:
    """The sessions of one `Http` object.

    Args:
        options: the options of the connections.
    """

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._held: dict[_SessionKey, _LoopSession] = {}
        self._reaches: dict[str, Reach] = {}
        weakref.finalize(self, _close_all, self._held)

    def get(self, nearest: Reach) -> aiohttp.ClientSession:
        """Return the session of the running event loop.

        Args:
            nearest: the maximum `Reach` of resolved addresses.
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
            # With True, aiohttp would also send logins from ~/.netrc to any host that a server
            # returns.
            trust_env=False,
            # Do not store cookies from the hosts of signed URLs.
            cookie_jar=aiohttp.DummyCookieJar(),
            # Do not let aiohttp decompress bodies, because a short body may expand to gigabytes.
            # `Reply` decompresses them with a limit.
            auto_decompress=False,
            read_bufsize=1 << 18,
            max_field_size=1 << 16,
        )

    def reach(self, host: str) -> Reach | None:
        """Return the reach to which a host name was resolved; None if it was not resolved."""
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
    """Resolves names for connections, and refuses addresses that are too near.

    Args:
        nearest: the maximum allowed `Reach`.
        reaches: a dictionary to which the reach of each name is added.
        seconds: the time limit.
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
        # Record the farthest reach of a name. If the name later resolves to a nearer address (DNS
        # rebinding), the limits of the farthest reach still apply.
        self._reaches[key] = min(reach, self._reaches.get(key, reach))
        return found

    async def close(self) -> None:
        """Release the resolver's resources."""
        await self._inner.close()


def _close_all(sessions: dict[_SessionKey, _LoopSession]) -> None:
    """Close the sessions when their object is garbage-collected, or when the process ends."""
    for (process, _, _), held in list(sessions.items()):
        if process != os.getpid() or held.session.closed:
            continue
        if held.loop.is_running():
            asyncio.run_coroutine_threadsafe(held.session.close(), held.loop)
        elif (connector := held.session.connector) is not None:
            connector._close()  # noqa: SLF001  # the public method needs a running loop
    sessions.clear()


# --- Sending, retrying and redirecting requests


P = ParamSpec("P")
T = TypeVar("T")

_MOST_REDIRECTS: Final = 5
# The maximum number of hosts in the cache of proxies. The cache needs a limit, because servers may
# return URLs of any number of hosts.
_MOST_HOSTS: Final = 1000
_MOST_ERROR_BYTES: Final = 64 * 1024
_CONTROLS: Final = re.compile(r"[\x00- \x7f]")
_TEMPORARY: Final = (*CONNECTION_FAULTS, BrokenBodyError, asyncio.TimeoutError, OSError)


def run(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a coroutine function that runs in fsspec's event loop.

    The loop's thread already exists if the process uses asynchronous file systems of fsspec. A
    forked child gets a new thread.
    """
    return cast("T", fsspec.asyn.sync(fsspec.asyn.get_loop(), function, *args, **kwargs))


def start(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine in fsspec's event loop."""
    return asyncio.run_coroutine_threadsafe(coroutine, fsspec.asyn.get_loop())


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request.

    Args:
        what: the purpose, to follow "cannot" in an error: `list the shares of …`.
        url: the percent-encoded URL; it is sent unchanged.
        is_secret: whether the body contains a secret, which must not be sent to another server.
        named_by: the URL of the server that returned `url`; None if the user gave `url`.
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
        options: the options of the connections.
        faults: the errors to raise.
    """

    def __init__(self, options: HttpOptions, faults: HttpFaults) -> None:
        self.options = options
        self.faults = faults
        self._sessions = Sessions(options)
        self._proxies: dict[tuple[str, str], str | None] = {}
        self._answered: set[tuple[str | None, int | None]] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments; equal arguments return the same object in a process."""
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
        """Send a request, and return the result of `read` for its response.

        Args:
            request: the request.
            read: reads the body; if the connection breaks, it is called again for the next attempt.
            make_error: returns the error for status, headers and body of a failed response.
            budget: the budget of the answer to which the response belongs; None makes a new budget.
            repeats: whether to send the request again after a response with this status and body;
                None decides by the status alone.

        Raises:
            DeltaError: an error of `faults`: `unavailable` if no attempt received a response in
                time, `refused` if the URL may not be requested or the response is too long.
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
                # After an error, aiohttp closes a connection whose response was not read to its
                # end.
                response, is_decoded = await self._send(request)
                async with response:
                    reply = Reply(response, request.what, budget, is_decoded=is_decoded)
                    if response.status < 300:
                        found = await read(reply)
                        # Count only the bytes of the successful attempt, because the data of failed
                        # attempts is dropped.
                        budget.used_bytes += reply.num_bytes
                        return found
                    body = await reply.read_start(_MOST_ERROR_BYTES)
                    error = make_error(response.status, response.headers, body)
                    if not repeats(response.status, body):
                        raise error
                    asked_ms = retry_after_ms(response.headers.get("Retry-After"), now_ms())
                    cause = None
            except DeltaError:
                raise  # not retried, although some DeltaErrors are OSErrors
            except LASTING_FAULTS as fault:
                raise self._connection_error(request, fault, 1) from None
            except _TEMPORARY as fault:
                is_unreached = self._is_unreached(request, fault)
                error = self._connection_error(request, fault, failures + 1)
                # A signed URL is a secret, so omit a cause whose message contains it.
                cause = None if request.url in str(fault) else fault
                if is_unreached and is_slow(fault):
                    raise error from cause
            failures += 1
            delay_ms = self.options.retry.delay_ms(failures, asked_ms, is_unreached=is_unreached)
            if delay_ms is None:
                raise error from cause
            await asyncio.sleep(delay_ms / 1000)

    async def _send(self, request: Request) -> tuple[aiohttp.ClientResponse, bool]:
        """Return the first response without a redirect, and whether the session decompresses it."""
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
            except ValueError:  # `urllib` cannot parse the URL
                raise self.faults.refused(
                    f"cannot {request.what}: the server redirects to {shown_location(target)!r}, "
                    "which is not a URL"
                ) from None
        raise self.faults.refused(
            f"cannot {request.what}: redirected more than {_MOST_REDIRECTS} times"
        )

    def _checked_url(self, request: Request) -> yarl.URL:
        """Return the checked URL of a request."""
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
            raise self.faults.refused(
                f"cannot {request.what}: the server's URL names no host; expected an endpoint such "
                "as https://host/path"
            )
        if url.raw_user or url.raw_password:
            raise self.faults.refused(
                f"cannot {request.what}: the URL at {host!r} contains a login; give name and "
                "password separately (a profile of type 'basic' has both)"
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
        """Return the nearest reach that addresses of a request may have.

        Raises:
            DeltaError: `faults.refused`: the host of the URL is nearer.
        """
        if request.named_by is None or self.options.allow_private_files:
            return Reach.MACHINE
        nearest = await self._reach(urlsplit(request.named_by).hostname or "")
        host = url.raw_host or ""
        found = reach_of_host(host)
        if self._proxy(url) is not None:
            # The proxy resolves the name itself, and may be in another network, so the address is
            # unknown here.
            found, limit = found or Reach.INTERNET, Reach.MACHINE
        else:
            limit = nearest
            if found is None and self.options.session is not None:
                # Resolve the name here, because the resolver of the user's session does not check
                # addresses.
                found = reach_of_all(await resolve_addresses(host))
        if found is not None and found > nearest:
            raise self._too_near(request, url)
        return limit

    def _proxy(self, url: yarl.URL) -> str | None:
        """Return the URL of the proxy for a request, by default from the environment."""
        if self.options.proxy is not None:
            return self.options.proxy
        if self.options.session is not None:
            return None  # the user's session chooses its own proxy
        # Cache the proxy, because reading the environment is the slowest part of preparing a
        # request.
        key = url.scheme, url.raw_host or ""
        if key not in self._proxies:
            if len(self._proxies) >= _MOST_HOSTS:
                self._proxies.clear()
            self._proxies[key] = None if proxy_bypass(key[1]) else getproxies().get(key[0])
        return self._proxies[key]

    async def _reach(self, host: str) -> Reach:
        """Return the reach of a server, by the addresses to which requests were sent."""
        found = reach_of_host(host)
        if found is None:
            found = self._sessions.reach(host)
        # A worker may have received the URL in a task, and never have sent a request to this
        # server.
        if found is None:
            found = reach_of_all(await resolve_addresses(host))
        return found

    def _too_near(self, request: Request, url: yarl.URL) -> DeltaError:
        return self.faults.refused(
            f"cannot {request.what}: the server names a file at {url.raw_host!r}, an address of "
            "this machine or its network, but the server itself is farther away; "
            "allow_private_files=True permits that"
        )

    def _redirected(self, request: Request, target: str) -> Request:
        # A server may redirect to any host. Credentials must not be sent to another server.
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
        """Whether no connection to the server has ever succeeded."""
        if not isinstance(fault, UNREACHED_FAULTS):
            return False
        url = parse_url(request.url)
        # After a redirect, or if a proxy is used, the exception may be about another server.
        place = getattr(fault, "host", url.raw_host), getattr(fault, "port", url.port)
        return place not in self._answered

    def _connection_error(
        self, request: Request, fault: BaseException, attempts: int
    ) -> DeltaError:
        host = _host_of(request)
        reason = redact(
            f"{type(fault).__name__}: {printable(str(fault).replace(request.url, host))}"
        )
        times = counted(attempts, "attempt")
        advice = ""
        if self._is_unreached(request, fault):
            advice = "; check that the address is right and that this machine can reach it"
        return self.faults.unavailable(
            f"cannot {request.what}: no response from {host} after {times}: {reason}{advice}"
        )

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._sessions.close()


_SHARED: Final[weakref.WeakValueDictionary[Any, Http]] = weakref.WeakValueDictionary()


def shared_http(options: HttpOptions, faults: HttpFaults) -> Http:
    """Return the process's `Http` object for these arguments."""
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
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_same_origin(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc.lower()) == (second.scheme, second.netloc.lower())


# --- Retries: when a failed request is sent again, and the wait before it


_RETRYABLE: Final = frozenset({408, 425, 429})
_LASTING: Final = frozenset({501, 505})


@checks_types
@suggests_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The number of attempts for a request, and the delays between them.

    Args:
        attempts: the number of attempts, including the first.
        first_delay_ms: the delay before the second attempt; each further delay is twice as long.
        longest_delay_ms: the maximum delay.
        longest_wait_ms: the maximum wait that a server may request; for a longer wait, the request
            fails at once.
        unreached_attempts: used instead of `attempts` if connecting fails and the server has never
            answered: its name may be misspelt. A timeout is not retried then.
    """

    # These defaults are those of the official Python client.
    attempts: int = 10
    first_delay_ms: int = 100
    longest_delay_ms: int = 20_000
    longest_wait_ms: int = 120_000
    unreached_attempts: int = 3

    def __post_init__(self) -> None:
        """Refuse a number of attempts without any request."""
        for name in ("attempts", "unreached_attempts"):
            if getattr(self, name) < 1:
                raise InvalidInputError(
                    f"cannot use Retry({name}={getattr(self, name)}): expected 1 or more; 1 sends "
                    "each request once"
                )

    def delay_ms(
        self,
        failures: int,
        asked_ms: int | None = None,
        *,
        is_unreached: bool = False,
        jitter: Callable[[], float] = random.random,
    ) -> int | None:
        """Return the delay before the next attempt in milliseconds, or None to give up.

        Args:
            failures: the number of failed attempts so far, 1 or more.
            asked_ms: the wait that the server requests; None if it requests none.
            is_unreached: whether the server has never answered.
            jitter: returns a random number from 0 to 1, so that clients do not retry at the same
                time.
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


# --- The options of requests that users set


@checks_types
@suggests_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Options of requests and connections; picklable if `session` is.

    Args:
        connect_timeout_s: the time limit for opening a connection.
        read_timeout_s: the time limit between two pieces of a response, not for the whole response.
        retry: the rules for sending failed requests again.
        proxy: the URL of a proxy for all requests; None uses the proxies of the environment.
        allow_http: whether servers without TLS are permitted; loopback addresses are always
            permitted.
        allow_private_files: whether a server on the internet may return URLs of files at private
            addresses. Within a cloud, S3 may have private addresses.
        limits: the limits for answers of servers.
        max_connections: the maximum number of open connections.
        session: a function that returns an `aiohttp.ClientSession` with other certificates,
            resolvers or traces. It is called in the event loop that uses the session.
            `limits.expansion` has no effect if the session decompresses bodies, which is aiohttp's
            default.
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
