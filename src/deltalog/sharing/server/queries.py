"""Queries of a table and their answers; asynchronous queries, which return an id at once.

This module owns the ids and the running work. An id is a sealed token of the query and its version,
so any process with the signing key can answer it. Only writing the files of a view takes long; each
process writes them into its own cache. Queries of other tables are ready at once.

Protocol: Asynchronous queries
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.json import dumps, loads
from deltalog._util.kernels import compute, exact_sum
from deltalog.sharing.server.answers import Answer, TableRequest, encode_lines
from deltalog.sharing.server.changes import answer_stream
from deltalog.sharing.server.faults import fault_of, invalid, not_found, too_many_requests
from deltalog.sharing.server.file_lines import LINES_PER_CHUNK, FileLines, check_paths
from deltalog.sharing.server.formats import choose_format, choose_view_format, head_lines
from deltalog.sharing.server.pages import (
    FilePage,
    PageStart,
    end_of_page,
    prune_by,
    read_hints,
    start_of_page,
)
from deltalog.sharing.server.tokens import InvalidTokenError
from deltalog.sharing.server.view_query import answer_view
from deltalog.sharing.server.views import View
from deltalog.sharing.wire.lines import QueryStatus
from deltalog.sharing.wire.requests import TableQuery, encode_table_query, parse_table_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from deltalog.data.scan.prune import Pruned
    from deltalog.log.snapshot import Snapshot

_KIND: Final = "query"
_MOST_QUERIES: Final = 1000
_WAIT_SECONDS: Final = 5
_LIFETIME_MS: Final = 3600 * 1000
# An id is part of a URL; servers and proxies limit URLs to a few kilobytes.
_MOST_CHARACTERS: Final = 4096


@dataclass(frozen=True)
class AsyncQuery:
    """An asynchronous query.

    Args:
        id: clients poll with it.
        owner: recipient and table.
        query: without the parameters of a page.
        version: version of the table.
        work: writes the files; None if there is nothing to write.
        expires_ms: when the query is forgotten.
    """

    id: str
    owner: tuple[str, str]
    query: TableQuery
    version: int
    work: Future[None] | None
    expires_ms: int

    @property
    def status(self) -> QueryStatus | None:
        """The status to send instead of lines; None when the lines are ready."""
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
    """The queries of one recipient in this process, the oldest first.

    Args:
        queries: by id.
        ids: by the hash of the client's key.
    """

    queries: OrderedDict[str, AsyncQuery] = field(default_factory=OrderedDict)
    ids: OrderedDict[str, str] = field(default_factory=OrderedDict)


class AsyncQueries:
    """The asynchronous queries of all recipients; each recipient's oldest are dropped first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="deltalog-sharing-query")

    @property
    def num_running(self) -> int:
        """The number of queries whose files are being written, or wait to be written."""
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
        """Start a query, or return the one that was started here with the same key.

        Args:
            request: a recipient's request.
            query: with its `idempotency_key`.
            answer: answers a query of the latest version, or of a given version.

        Raises:
            Fault: 400 without a key, and for a query that cannot be answered; 429 while too many
                of the recipient's queries are running.
        """
        key = query.idempotency_key
        if key is None:
            raise invalid("idempotencyKey: an asynchronous query needs one")
        # The same key of another recipient or table must name another query.
        parts = (part.encode() for part in (*_owner(request), key))
        key = request.services.sealer.keyed_hash(*parts)[:40]
        found = self._with_key(request, key)
        if found is not None:
            return found
        self._check_number(request)
        whole = replace(query, idempotency_key=None, page_token=None, max_files=None)
        first = answer(whole, None)
        if first.until is not None:
            whole = replace(whole, ending_version=first.until)  # the end of a range must not change
        expires_ms = request.now_ms + _LIFETIME_MS
        query_id = _seal(request, whole, first.version, expires_ms)
        if len(query_id) > _MOST_CHARACTERS:
            # Hints only leave out files; a limit counts the remaining rows.
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
        """Return a query by its id; start it here, too, if it comes from another process.

        Args:
            request: a recipient's request.
            query_id: from `start`, here or in another process with the same signing key.
            answer: as for `start`.

        Raises:
            Fault: 404 for an id that is unknown, expired, of another recipient or table, or of a
                version that is not shared any more; 429 as for `start`.
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
            if other is not None:  # another request was faster
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
        """Raise while too many queries are running: other recipients need the same threads."""
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
    """Return the query of an id that any process has made.

    Raises:
        Fault: 404.
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
    return (request.recipient.name, request.table.name.key)


def _write_all(chunks: Iterator[bytes]) -> None:
    for _ in chunks:
        pass


# Answers to `POST …/query` and `GET …/metadata`: the files of one version.


def answer_metadata(
    request: TableRequest, version: int | None = None, timestamp_ms: int | None = None
) -> Answer:
    """Return protocol and metadata of the latest version, or of an older one.

    Raises:
        Fault: 400 for both a version and a timestamp, for history that is not shared, and for a
            format that the table cannot be sent in.
    """
    if version is not None and timestamp_ms is not None:
        raise invalid("Please only provide one of: version, timestamp.")
    table = request.table
    snapshot = _snapshot_at(request, version, timestamp_ms)
    configuration, head_version = snapshot.configuration, None
    if table.config.is_view:
        configuration = View(snapshot, table, request.services).configuration
        response_format = choose_view_format(request.capabilities, configuration)
    else:
        response_format = choose_format(request.capabilities, snapshot)
        if version is not None or timestamp_ms is not None:
            head_version = snapshot.version
    response_format = replace(response_format, ends=False)
    shared = table.config.history_shared
    heads = head_lines(response_format, configuration, version=head_version, history_shared=shared)
    chunks = encode_lines(response_format, heads, iter(()))
    return Answer(snapshot.version, response_format, chunks, is_short=True)


def answer_query(request: TableRequest, query: TableQuery, pinned: int | None = None) -> Answer:
    """Return the files of one version, or the changes since a starting version.

    Args:
        request: a recipient's request.
        query: query of the request.
        pinned: the version of an asynchronous query that was started earlier.

    Raises:
        Fault: 400 for parameters that exclude each other or do not fit the table.
    """
    _check_together(query)
    if query.starting_version is not None:
        return answer_stream(request, query)
    start = start_of_page(request, query)
    if start is not None:
        request = replace(request, services=request.services.with_key(start.key))
    if start is None and pinned is not None:
        start = PageStart(pinned)
    if start is None:
        snapshot = _snapshot_at(request, query.version, query.timestamp_ms)
    else:
        snapshot = request.table.at(start.version)
    offset = 0 if start is None else start.offset
    if request.table.config.is_view:
        return answer_view(request, query, snapshot, start or PageStart(snapshot.version))
    response_format = choose_format(request.capabilities, snapshot)
    lines = FileLines(request, response_format)
    config = request.services.config
    # "The server should apply predicateHints first then limitHint."
    hints = read_hints(
        query,
        snapshot.configuration.schema,
        config,
        snapshot.num_files,
        None if start is None else start.num_read_hints,
    )
    pruned = prune_by(snapshot, hints.predicate)
    num_sent = len(query.predicate_hints) + (query.json_predicate_hints is not None)
    # The recipient also evaluates hints that are ignored here; its limit counts the rows after
    # that.
    limited = query if hints.num_used == num_sent else replace(query, limit_hint=None)
    page = _page(limited, pruned, offset, config.limits.page_files)
    check_paths(pruned.files(["path"]).column(0), snapshot.store.root)
    # "Returned when querying a table data with a version or timestamp parameter."
    travels = query.version is not None or query.timestamp_ms is not None

    def body() -> Iterator[bytes]:
        yield from lines.chunks(
            page.of(pruned.files(lines.columns)),
            "file",
            version=snapshot.version if travels else None,
            timestamp_ms=snapshot.commit_timestamp_ms if travels else None,
        )

    heads = head_lines(
        response_format,
        snapshot.configuration,
        version=snapshot.version if travels else None,
        size_bytes=exact_sum(snapshot.files(["size"]).column("size")),
        num_files=snapshot.num_files,
        history_shared=request.table.config.history_shared,
    )
    end = end_of_page(
        request,
        query,
        response_format,
        snapshot.version,
        lambda: page,
        num_read_hints=hints.num_read,
        start=start,
    )
    return Answer(
        version=snapshot.version,
        response_format=response_format,
        chunks=encode_lines(response_format, heads, body(), end),
        file_id_hash=lines.hash_name,
        facts={"version": snapshot.version, "files": page.num_rows, "hints": hints.num_used},
        is_short=page.num_rows <= LINES_PER_CHUNK,
    )


def _check_together(query: TableQuery) -> None:
    """Raise for parameters that exclude each other (ledger SHARE-QT-12, SHARE-QT-14)."""
    moments = (query.version, query.timestamp_ms, query.starting_version)
    given = sum(value is not None for value in moments)
    if given > 1:
        raise invalid("Please only provide one of: version, timestamp, startingVersion.")
    if query.ending_version is not None and query.starting_version is None:
        raise invalid("endingVersion needs a startingVersion")
    if given and (query.include_refresh_token or query.refresh_token is not None):
        raise invalid("refresh tokens are for the latest version of a table only")
    if query.max_files == 0:
        raise invalid("maxFiles: expected 1 or more")


def _snapshot_at(request: TableRequest, version: int | None, timestamp_ms: int | None) -> Snapshot:
    """Return the requested version, if history is shared; the latest if none is requested."""
    table = request.table
    latest = table.latest()
    if version is not None:
        table.check_history("reading a version")
        table.check_version(version, latest)
        return table.at(version, latest)
    if timestamp_ms is not None:
        table.check_history("reading as of a timestamp")
        return table.at(table.version_at(timestamp_ms, latest), latest)
    return latest


def _page(query: TableQuery, pruned: Pruned, offset: int, most_files: int) -> FilePage:
    """Return the files of the page, from the files that remain after hints."""
    indices = None
    if query.max_files is not None or offset:
        # Sorted, so that the next page continues this one even if the order in the log changes.
        indices = compute.sort_indices(pruned.files(["path"]).column("path"))
    indices = _limited(query, pruned, indices)
    left = pruned.num_files - pruned.num_by_partition - pruned.num_by_statistics
    total = left if indices is None else len(indices)
    num_rows = total - offset
    if query.max_files is not None:
        num_rows = min(query.max_files, most_files, num_rows)
    return FilePage(indices, offset, num_rows, total)


def _limited(
    query: TableQuery, pruned: Pruned, indices: pa.UInt64Array | None
) -> pa.UInt64Array | None:
    """Return the first files that contain enough rows for the limit, or all files.

    A file without `numRecords` counts as empty. If a condition may leave out rows of a file, no
    number of files is certain to suffice (ledger SHARE-QT-08, SHARE-QT-09).
    """
    if query.limit_hint is None or not pruned.is_exact:
        return indices
    rows = compute.fill_null(pruned.num_records(), 0)
    vectors = pruned.files(["deletionVector"]).column("deletionVector")
    deleted = compute.fill_null(compute.struct_field(vectors, "cardinality"), 0)
    live = compute.subtract(rows, deleted)
    order = pa.array(range(len(live)), pa.uint64()) if indices is None else indices
    reached = compute.cumulative_sum(live.take(order))
    short = compute.sum(compute.less(reached, query.limit_hint)).as_py() or 0
    return order.slice(0, short + 1 if query.limit_hint else 0)
