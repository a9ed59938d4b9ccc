"""HTTP requests: sent, retried and redirected, with errors that name what was attempted.

Owns time limits, retries, redirects, and which URLs may be requested at all. Connections are those
of `sessions`, bodies are read by `replies`.

Protocol: REST APIs (transport); ledger SHARE-GEN-10, SHARE-SEC-09
"""

from __future__ import annotations

import asyncio
import re
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import fsspec.asyn

from deltalog.clock import now_ms
from deltalog.errors import DeltaError
from deltalog.http.reach import (
    Reach,
    reach_of_all,
    reach_of_host,
    resolve_addresses,
)
from deltalog.http.replies import BrokenBodyError, Budget, Reply
from deltalog.http.retry import is_retryable, retry_after_ms
from deltalog.http.sessions import (
    CONNECTION_FAULTS,
    LASTING_FAULTS,
    UNREACHED_FAULTS,
    Sessions,
    TooNearError,
    is_slow,
    parse_url,
)
from deltalog.http.texts import printable, shown_location
from deltalog.storage.faults import redact

if TYPE_CHECKING:
    from concurrent.futures import Future

    import aiohttp
    import yarl

    from deltalog.http.faults import HttpFaults
    from deltalog.http.options import HttpOptions

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
            make_error: the error for status, headers and body of a response that is no success.
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
