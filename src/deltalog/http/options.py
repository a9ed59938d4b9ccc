"""How requests are sent, as users choose it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalog.http.replies import AnswerLimits
from deltalog.http.retry import Retry

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp


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
