"""Queries that are answered later: an id now, the lines when it is asked for again.

Owns which queries are under way. What takes long is writing the files of a table of which a part is
shared; other tables are ready at once. A query stays on the version that it began with.

Protocol: Asynchronous queries
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog.errors import DeltaError
from deltalog.sharing.server.faults import Fault, fault_of, invalid, not_found
from deltalog.sharing.wire.lines import QueryStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from deltalog.sharing.server.answers import Answer, Asked, Tools
    from deltalog.sharing.wire.requests import TableQuery

_MOST_QUERIES: Final = 1000
_KEEP_MS: Final = 3600 * 1000


@dataclass(frozen=True)
class Job:
    """A query under way.

    Args:
        id: by which it is asked for.
        owner: recipient and table.
        query: what was asked.
        version: on which it stays.
        work: done when the answer can be told.
        until_ms: when it is forgotten.
    """

    id: str
    owner: tuple[str, str]
    query: TableQuery
    version: int
    work: Future[None] | None
    until_ms: int

    @property
    def status(self) -> QueryStatus | None:
        """What is told instead of lines; None when they are ready."""
        if self.work is None:
            return None
        if not self.work.done():
            return QueryStatus(query_id=self.id)
        error = self.work.exception()
        if error is None:
            return None
        told = error if isinstance(error, Fault) else None
        if told is None and isinstance(error, DeltaError):
            told = fault_of(error)
        message = "the server could not handle the query" if told is None else told.message
        return QueryStatus(query_id=self.id, status="failed", error=message)


class Jobs:
    """Queries under way, of all recipients; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="deltalog-sharing-query")

    def start(
        self, asked: Asked, query: TableQuery, tools: Tools, answer: Callable[[TableQuery], Answer]
    ) -> Job:
        """Begin a query, or find the one that was begun with the same key.

        Args:
            asked: who asks.
            query: with its `idempotency_key`.
            tools: of the server.
            answer: makes the answer to a query.

        Raises:
            Fault: 400: there is no key, or the query cannot be answered.
        """
        key = query.idempotency_key
        if key is None:
            raise invalid("idempotencyKey: an asynchronous query needs one")
        owner = (asked.recipient.name, asked.table.name.key)
        job_id = tools.sealer.mark(*(part.encode() for part in (*owner, key)))[:40]
        with self._lock:
            found = self._jobs.get(job_id)
        if found is not None and found.until_ms > asked.now_ms:
            return found
        bare = replace(query, idempotency_key=None, page_token=None, max_files=None)
        first = answer(bare)
        until = first.facts.get("until")
        if isinstance(until, int):
            bare = replace(bare, ending_version=until)  # a range stays what it was, too
        work = None
        if asked.table.config.is_view:
            work = self._pool.submit(_exhaust, first.chunks)
        job = Job(job_id, owner, bare, first.version, work, asked.now_ms + _KEEP_MS)
        with self._lock:
            self._jobs[job_id] = job
            while len(self._jobs) > _MOST_QUERIES:
                self._jobs.popitem(last=False)
        return job

    def find(self, asked: Asked, job_id: str) -> Job:
        """A query by its id.

        Raises:
            Fault: 404: it is not there, not of this recipient and table, or was forgotten.
        """
        with self._lock:
            found = self._jobs.get(job_id)
        owner = (asked.recipient.name, asked.table.name.key)
        if found is None or found.owner != owner or found.until_ms <= asked.now_ms:
            raise not_found("query")
        return found


def _exhaust(chunks: Iterator[bytes]) -> None:
    for _ in chunks:
        pass
