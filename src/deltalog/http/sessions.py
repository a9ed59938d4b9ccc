"""Sessions of aiohttp: one for each event loop and process.

The only importer of aiohttp. Owns how connections are opened, to which addresses names may resolve,
and which exceptions mean what.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from dataclasses import dataclass
from socket import AF_INET, AddressFamily, gaierror
from typing import TYPE_CHECKING, Final

from deltalog._version import __version__
from deltalog.errors import InvalidInputError
from deltalog.http.reach import Reach, reach_of, reach_of_all

try:
    import aiohttp
    import yarl
except ImportError as _error:  # pragma: no cover -- the tests' environment has it
    raise InvalidInputError(
        "cannot send requests to a server of shares or a catalog: aiohttp is not installed; "
        "pip install 'deltalog[sharing]' or 'deltalog[catalogs]'"
    ) from _error

if TYPE_CHECKING:
    from deltalog.http.options import HttpOptions

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
