"""Asynchronous queries: the client receives an id at once, and the lines when it polls.

This module creates the ids and runs the work. An id is a sealed token that contains the query and
its version, so any process with the signing key can answer a poll. Only writing the files of a view
takes long: each process that is polled writes the files into its own cache. Queries of other tables
are ready at once.

Protocol: Asynchronous queries
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import dumps, loads
from deltalog.sharing.server.answers import Answer, TableRequest
from deltalog.sharing.server.faults import fault_of, invalid, not_found, too_many_requests
from deltalog.sharing.server.tokens import InvalidTokenError
from deltalog.sharing.wire.lines import QueryStatus
from deltalog.sharing.wire.requests import TableQuery, encode_table_query, parse_table_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future


_KIND: Final = "query"


_MOST_QUERIES: Final = 1000


_WAIT_SECONDS: Final = 5


_LIFETIME_MS: Final = 3600 * 1000


# The maximum length of a query id. The id is part of a URL, and proxies limit the length of URLs to
# a few kilobytes.
_MOST_CHARACTERS: Final = 4096


@dataclass(frozen=True)
class AsyncQuery:
    """An asynchronous query.

    Args:
        id: the id with which clients poll.
        owner: recipient and table.
        query: the query without the parameters of a page.
        version: version of the table.
        work: the task that writes the files; None if no files must be written.
        expires_ms: when the id expires.
    """

    id: str
    owner: tuple[str, str]
    query: TableQuery
    version: int
    work: Future[None] | None
    expires_ms: int

    @property
    def status(self) -> QueryStatus | None:
        """Return the status to send instead of lines; None when the lines are ready."""
        if self.work is None:
            return None
        if not self.work.done():
            return QueryStatus(query_id=self.id)
        error = self.work.exception()
        if error is None:
            return None
        return QueryStatus(query_id=self.id, status="failed", error=fault_of(error).message)


@dataclass(frozen=True)
class _Known:
    """The queries of one recipient in this process, in order of their start.

    Args:
        queries: queries by id.
        ids: ids by the hash of the client's idempotency key.
    """

    queries: OrderedDict[str, AsyncQuery] = field(default_factory=OrderedDict)
    ids: OrderedDict[str, str] = field(default_factory=OrderedDict)


class AsyncQueries:
    """The asynchronous queries of all recipients; the oldest queries of a recipient are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="deltalog-sharing-query")

    @property
    def num_running(self) -> int:
        """Return the number of queries whose files are being written or wait for a thread."""
        with self._lock:
            known = list(self._known.values())
            works = [one.work for own in known for one in own.queries.values()]
        return sum(1 for work in works if work is not None and not work.done())

    def start(
        self,
        request: TableRequest,
        query: TableQuery,
        answer: Callable[[TableQuery, int | None], Answer],
    ) -> AsyncQuery:
        """Start a query, or return the query that was started in this process with the same key.

        Args:
            request: a recipient's request.
            query: the query, with an `idempotency_key`.
            answer: answers a query for a version; None means the latest version.

        Raises:
            Fault: 400 without a key, and for a query that cannot be answered; 429 while too many
                of the recipient's queries are running.
        """
        key = query.idempotency_key
        if key is None:
            raise invalid("idempotencyKey: an asynchronous query needs one")
        # The same idempotency key names different queries for different recipients or tables.
        parts = (part.encode() for part in (*_owner(request), key))
        key = request.services.sealer.keyed_hash(*parts)[:40]
        found = self._with_key(request, key)
        if found is not None:
            return found
        self._check_number(request)
        whole = replace(query, idempotency_key=None, page_token=None, max_files=None)
        first = answer(whole, None)
        if first.until is not None:
            # Set the end of the range, so that all polls of the query return the same range.
            whole = replace(whole, ending_version=first.until)
        expires_ms = request.now_ms + _LIFETIME_MS
        query_id = _seal(request, whole, first.version, expires_ms)
        if len(query_id) > _MOST_CHARACTERS:
            # The id contains the query. Omit the optional hints and the limit, so that the id is
            # short enough.
            whole = replace(whole, predicate_hints=(), json_predicate_hints=None, limit_hint=None)
            query_id = _seal(request, whole, first.version, expires_ms)
            first = answer(whole, first.version)
        started = AsyncQuery(query_id, _owner(request), whole, first.version, None, expires_ms)
        return self._begin(request, started, first, key)

    def find(
        self,
        request: TableRequest,
        query_id: str,
        answer: Callable[[TableQuery, int | None], Answer],
    ) -> AsyncQuery:
        """Return a query by its id; start it here if another process created the id.

        Args:
            request: a recipient's request.
            query_id: the id from `start`, in this or another process with the same signing key.
            answer: see `start`.

        Raises:
            Fault: 404 if the id is unknown or expired, belongs to another recipient or table, or
                names a version that is no longer shared; 429 as in `start`.
        """
        found = self._live(request, query_id)
        if found is not None:
            return found
        sealed = _unseal(request, query_id)
        if not request.table.config.is_view:
            return sealed
        self._check_number(request)
        return self._begin(request, sealed, answer(sealed.query, sealed.version), None)

    def _begin(
        self, request: TableRequest, query: AsyncQuery, first: Answer, key: str | None
    ) -> AsyncQuery:
        with self._lock:
            own = self._known.setdefault(request.recipient.name, _Known())
            other = own.queries.get(query.id)
            if other is not None:  # another request started the query first
                return other
            if request.table.config.is_view:
                query = replace(query, work=self._pool.submit(_write_all, first.chunks))
            own.queries[query.id] = query
            if key is not None:
                own.ids[key] = query.id
            while len(own.queries) > _MOST_QUERIES:
                own.queries.popitem(last=False)
            while len(own.ids) > _MOST_QUERIES:
                own.ids.popitem(last=False)
        return query

    def _with_key(self, request: TableRequest, key: str) -> AsyncQuery | None:
        with self._lock:
            own = self._known.get(request.recipient.name)
            query_id = None if own is None else own.ids.get(key)
        return None if query_id is None else self._live(request, query_id)

    def _live(self, request: TableRequest, query_id: str) -> AsyncQuery | None:
        with self._lock:
            own = self._known.get(request.recipient.name)
            found = None if own is None else own.queries.get(query_id)
        if found is None or found.owner != _owner(request) or found.expires_ms <= request.now_ms:
            return None
        return found

    def _check_number(self, request: TableRequest) -> None:
        """Raise if the recipient has too many running queries; recipients share the threads."""
        with self._lock:
            own = self._known.get(request.recipient.name)
            works = [] if own is None else [one.work for one in own.queries.values()]
        running = sum(1 for work in works if work is not None and not work.done())
        if running >= request.services.config.limits.queries_per_recipient:
            raise too_many_requests(_WAIT_SECONDS)


def _seal(request: TableRequest, query: TableQuery, version: int, expires_ms: int) -> str:
    recipient, table = _owner(request)
    body = loads(encode_table_query(query), "query")
    values: dict[str, Any] = {"r": recipient, "t": table, "v": version, "q": body}
    return request.services.sealer.seal(_KIND, values, expires_ms)


def _unseal(request: TableRequest, query_id: str) -> AsyncQuery:
    """Return the query in an id that any process has created.

    Raises:
        Fault: 404 if the id is not valid.
    """
    try:
        sealed = request.services.sealer.unseal(_KIND, query_id, request.now_ms)
    except InvalidTokenError:
        raise not_found("query") from None
    values = sealed.values
    if (values["r"], values["t"]) != _owner(request):
        raise not_found("query")
    if values["v"] < request.table.config.start_version:
        raise not_found("query")
    query = parse_table_query(dumps(values["q"]))
    return AsyncQuery(query_id, _owner(request), query, values["v"], None, sealed.expires_ms)


def _owner(request: TableRequest) -> tuple[str, str]:
    return (request.recipient.name, request.table.token_key)


def _write_all(chunks: Iterator[bytes]) -> None:
    for _ in chunks:
        pass
