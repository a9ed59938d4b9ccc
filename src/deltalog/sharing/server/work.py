"""Work for requests, in threads: whose turn it is, and whether anybody still waits for the result.

Owns how many threads work at once, for all recipients and for one, and that work ends soon after
its client is gone: long work calls `check_client` from time to time.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from starlette.types import Receive, Scope, Send

T = TypeVar("T")

_GONE: Final[ContextVar[threading.Event | None]] = ContextVar("deltalog.sharing.gone", default=None)


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


def check_client() -> None:
    """Raise an error if the client of the request at work is gone; do nothing outside of one.

    Raises:
        ClientGoneError: nobody waits for the answer.
    """
    gone = _GONE.get()
    if gone is not None and gone.is_set():
        raise ClientGoneError


class Turns:
    """Bounds how much is done at once.

    Args:
        at_once: threads at work for all recipients together.
        per_recipient: threads at work for one recipient, whose other requests wait.
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
        """Threads at work."""
        return self.all.borrowed_tokens

    @property
    def num_waiting(self) -> int:
        """Requests that wait for a thread, or for their recipient's turn."""
        limits = (*self._own.values(), self.all)
        return sum(limit.statistics().tasks_waiting for limit in limits)


class Work:
    """The work for one request, whose body was read or is not needed.

    Args:
        receive: of the request.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = threading.Event()

    async def run(self, function: Callable[[], T], turns: Turns, recipient: str) -> T:
        """Return the result of a function that runs in a thread when it is the recipient's turn.

        Raises:
            ClientGoneError: the client left while the function waited for its turn, or ran.
        """
        found: list[T] = []
        fault: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, group.cancel_scope)
            _GONE.set(self._gone)  # threads get a copy of the context
            try:
                # First the recipient's own turn: who waits for it keeps nobody else waiting.
                async with turns.of(recipient):
                    found.append(await anyio.to_thread.run_sync(function, limiter=turns.all))
            except Exception as error:  # noqa: BLE001 -- raised outside of the group, as it is
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
    """A response whose body is made piece by piece, each in a thread when it is its turn.

    Args:
        work: of the request.
        chunks: the body.
        turns: of the work.
        recipient: for whom it is.
        status_code: of HTTP.
        headers: of the response.
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
        # No call of the base class's: it would declare the length of a body that is not there.
        self.status_code = status_code
        self.background: Any = None
        self.body = b""
        self.init_headers(headers)
        self._make = partial(work.run, partial(next, chunks, None), turns, recipient)
        self._chunks = chunks

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Take the headers as they are."""
        self.raw_headers: list[tuple[bytes, bytes]] = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in (headers or {}).items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; what is left of the body is not made when the client is gone."""
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
