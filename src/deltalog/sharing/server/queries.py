"""Answers to `POST …/query` and `GET …/metadata`: the files of one version.

`changes` answers queries with a starting version, and
`async_queries` answers asynchronous queries.

Protocol: Read Data from a Table, Query Table Metadata
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog._util.kernels import compute, exact_sum
from deltalog.sharing.server.answers import Answer, Services, TableRequest, encode_lines
from deltalog.sharing.server.changes import answer_stream, changed_tasks, encode_view_line
from deltalog.sharing.server.downloads import Download, download_open
from deltalog.sharing.server.faults import invalid, not_found, unavailable
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
from deltalog.sharing.server.urls import SignedFile, ViewFileSource
from deltalog.sharing.server.views import View

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog.data.scan.prune import Pruned
    from deltalog.log.snapshot import Snapshot
    from deltalog.sharing.server.tables import ServedTable
    from deltalog.sharing.wire.requests import TableQuery


# --- Answers to `POST …/query` and `GET …/metadata`: the files of one version


def answer_metadata(
    request: TableRequest, version: int | None = None, timestamp_ms: int | None = None
) -> Answer:
    """Return protocol and metadata of the latest or the requested version.

    Raises:
        Fault: 400 if both a version and a timestamp are given, if the history is not shared, or if
            the client accepts no format in which the table can be sent.
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
        pinned: the version, if an asynchronous query was started earlier; otherwise None.

    Raises:
        Fault: 400 if parameters exclude each other or are invalid for the table.
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
    # The protocol: "The server should apply predicateHints first then limitHint."
    hints = read_hints(
        query,
        snapshot.configuration.schema,
        config,
        snapshot.num_files,
        None if start is None else start.num_read_hints,
    )
    pruned = prune_by(snapshot, hints.predicate)
    num_sent = len(query.predicate_hints) + (query.json_predicate_hints is not None)
    # Use the limit only if the server uses all hints. A recipient also filters by the hints that
    # the server ignores, so it may need more files than the limit requires.
    limited = query if hints.num_used == num_sent else replace(query, limit_hint=None)
    page = _page(limited, pruned, offset, config.limits.page_files)
    check_paths(pruned.files(["path"]).column(0), snapshot.store.root)
    # The protocol about the version and timestamp of a file: "Returned when querying a table data
    # with a version or timestamp parameter."
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
    """Raise if parameters exclude each other (requirements SHARE-QT-12, SHARE-QT-14)."""
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
    """Return the requested version if history is shared; by default the latest version."""
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
    """Return the page of the files that remain after evaluating hints."""
    indices = None
    if query.max_files is not None or offset:
        # Sort by path, because a new checkpoint may change the order of the files before the next
        # page is requested.
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

    A file without `numRecords` counts as 0 rows. If a condition may be false for rows of a file,
    the limit is ignored (requirements SHARE-QT-08, SHARE-QT-09).
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


_ATTEMPTS: Final = 3


# --- Queries about views, whose files are written while their lines are sent


def answer_view(
    request: TableRequest, query: TableQuery, snapshot: Snapshot, start: PageStart
) -> Answer:
    """Return the files of a view; they are written while their lines are sent.

    Args:
        request: a recipient's request.
        query: query of the request.
        snapshot: the version.
        start: the start of the page.
    """
    table, config = request.table, request.services.config
    view = View(snapshot, table, request.services)
    response_format = choose_view_format(request.capabilities, view.configuration)
    found = view.source_files(query, start.num_read_hints)
    hints, most = found.hints, query.max_files
    most = None if most is None else min(most, config.limits.page_files)
    sign = request.signer(ViewFileSource(snapshot.version))
    facts: dict[str, object] = {"version": snapshot.version, "files": 0, "hints": hints.num_used}
    has_hints = query.predicate_hints or query.json_predicate_hints
    # If there are hints, ignore the limit, because the sent files may contain rows that do not
    # match the hints.
    limit = None if has_hints else query.limit_hint
    page = FilePage(None, 0, 0, 0)

    def body() -> Iterator[bytes]:
        nonlocal page
        rows = files = 0
        last = None
        # Count only files with rows of the view, because the number of other files would reveal
        # hidden rows.
        for key, task in found.tasks(start.after):
            if limit is not None and rows >= limit:
                break
            file = view.make_file(task)
            if not file.num_rows:
                continue
            if files == most:
                page = FilePage(None, 0, files, files, after=last)
                return
            rows += file.num_rows
            files += 1
            last = key
            facts["files"] = files
            page = FilePage(None, 0, files, files)
            yield encode_view_line(
                response_format,
                "file",
                file,
                url=sign(file.name),
                expires_ms=request.url_expiry_ms,
            )

    shared = table.config.history_shared
    heads = head_lines(response_format, view.configuration, history_shared=shared)
    end = end_of_page(
        request,
        query,
        response_format,
        snapshot.version,
        lambda: page,
        num_read_hints=hints.num_read,
        start=start,
    )
    chunks = encode_lines(response_format, heads, body(), end)
    return Answer(snapshot.version, response_format, chunks, None, facts)


def download_view(
    table: ServedTable,
    signed: SignedFile,
    services: Services,
    headers: Mapping[str, str],
    *,
    with_body: bool,
) -> Download:
    """Return a file of a view; write it again if it is no longer in the file cache.

    Raises:
        Fault: 404 if the version has no such file, or the table is no longer shared as a view; 503
            if the cache is too small for the requested files.
    """
    if not table.config.is_view or signed.source is None:
        raise not_found("file")
    source, config = signed.source, table.config
    is_change = source.commit is not None
    least = source.version if source.commit is None else min(source.version, source.commit)
    # The configuration may have changed since the URL was signed.
    if least < config.start_version or (is_change and not config.history_shared):
        raise not_found("file")
    services = services.with_key(signed.key)
    view = View(table.at(source.version), table, services)
    # Try several times, because other requests may evict the file from a small cache before it is
    # opened.
    for _ in range(_ATTEMPTS):
        tasks = changed_tasks(view, table, source) if is_change else view.tasks()
        file = view.open(signed.path, tasks)
        if file is not None:
            return download_open(file, headers, with_body=with_body)
    raise unavailable("the file cannot be sent now")
