"""Asynchronous queries: an id at once, the lines when the client polls.

Owns the running queries. Only writing the files of a view takes long; queries of other tables are
ready at once. A query stays on the version with which it was started.

Protocol: Asynchronous queries
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog.sharing.server.faults import fault_of, invalid, not_found, too_many_requests
from deltalog.sharing.wire.lines import QueryStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from deltalog.sharing.server.answers import Answer, TableRequest
    from deltalog.sharing.wire.requests import TableQuery

_MOST_QUERIES: Final = 1000
_WAIT_SECONDS: Final = 5
_LIFETIME_MS: Final = 3600 * 1000


@dataclass(frozen=True)
class AsyncQuery:
    """An asynchronous query.

    Args:
        id: by which clients poll it.
        owner: recipient and table.
        query: without the page's parameters.
        version: of the table.
        work: writes the files; None if there are none to write.
        expires_ms: when it is forgotten.
    """

    id: str
    owner: tuple[str, str]
    query: TableQuery
    version: int
    work: Future[None] | None
    expires_ms: int

    @property
    def status(self) -> QueryStatus | None:
        """The status that is sent instead of lines; None when the lines are ready."""
        if self.work is None:
            return None
        if not self.work.done():
            return QueryStatus(query_id=self.id)
        error = self.work.exception()
        if error is None:
            return None
        return QueryStatus(query_id=self.id, status="failed", error=fault_of(error).message)


class AsyncQueries:
    """The asynchronous queries of all recipients; the oldest of each one are forgotten first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, OrderedDict[str, AsyncQuery]] = {}
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="deltalog-sharing-query")

    def start(
        self, request: TableRequest, query: TableQuery, answer: Callable[[TableQuery], Answer]
    ) -> AsyncQuery:
        """Start a query, or find the one that was started with the same key.

        Args:
            request: of a recipient.
            query: with its `idempotency_key`.
            answer: answers the query.

        Raises:
            Fault: 400 without a key, and for a query that cannot be answered; 429 while too many
                of the recipient's queries are at work.
        """
        key = query.idempotency_key
        if key is None:
            raise invalid("idempotencyKey: an asynchronous query needs one")
        owner = _owner(request)
        # The same key of another recipient or table must name another query.
        parts = (part.encode() for part in (*owner, key))
        query_id = request.services.sealer.keyed_hash(*parts)[:40]
        found = self._known(request, query_id)
        if found is not None:
            return found
        self._check_number(request)
        whole = replace(query, idempotency_key=None, page_token=None, max_files=None)
        first = answer(whole)
        if first.until is not None:
            whole = replace(whole, ending_version=first.until)  # a range keeps its end
        work = None
        if request.table.config.is_view:
            work = self._pool.submit(_write_all, first.chunks)
        expires_ms = request.now_ms + _LIFETIME_MS
        started = AsyncQuery(query_id, owner, whole, first.version, work, expires_ms)
        with self._lock:
            own = self._queries.setdefault(request.recipient.name, OrderedDict())
            own[query_id] = started
            while len(own) > _MOST_QUERIES:
                own.popitem(last=False)
        return started

    def find(self, request: TableRequest, query_id: str) -> AsyncQuery:
        """Return a query by its id.

        Raises:
            Fault: 404 for an unknown or forgotten id, and one of another recipient or table.
        """
        found = self._known(request, query_id)
        if found is None:
            raise not_found("query")
        return found

    def _known(self, request: TableRequest, query_id: str) -> AsyncQuery | None:
        with self._lock:
            own = self._queries.get(request.recipient.name)
            found = None if own is None else own.get(query_id)
        if found is None or found.owner != _owner(request) or found.expires_ms <= request.now_ms:
            return None
        return found

    def _check_number(self, request: TableRequest) -> None:
        """Refuse a query while too many are at work: others' queries wait for the same threads."""
        with self._lock:
            own = self._queries.get(request.recipient.name) or OrderedDict()
            works = [one.work for one in own.values() if one.work is not None]
        running = sum(1 for work in works if not work.done())
        if running >= request.services.config.limits.queries_per_recipient:
            raise too_many_requests(_WAIT_SECONDS)


def _owner(request: TableRequest) -> tuple[str, str]:
    return (request.recipient.name, request.table.name.key)


def _write_all(chunks: Iterator[bytes]) -> None:
    for _ in chunks:
        pass
