"""Answers to `POST …/query` and `GET …/metadata`: the files of one version.

`view_query` answers queries about views, `changes` answers queries with a starting version, and
`async_queries` answers asynchronous queries.

Protocol: Read Data from a Table, Query Table Metadata
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog._util.kernels import compute, exact_sum
from deltalog.sharing.server.answers import Answer, TableRequest, encode_lines
from deltalog.sharing.server.changes import answer_stream
from deltalog.sharing.server.faults import invalid
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
from deltalog.sharing.server.view_query import answer_view
from deltalog.sharing.server.views import View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.data.scan.prune import Pruned
    from deltalog.log.snapshot import Snapshot
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
