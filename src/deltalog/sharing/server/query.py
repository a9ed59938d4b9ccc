"""Answers to `POST …/query` and `GET …/metadata`: the files of one version.

Owns which parameters go together, travel in time, and what hints and limits leave out.

Protocol: Query Table Metadata, Read Data from a Table
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.sharing.server.answers import Answer, finished
from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.file_lines import FileLines, check_paths, file_id_hash
from deltalog.sharing.server.formats import choose_format, metadata_line, protocol_line
from deltalog.sharing.server.hints import predicate_of, prune_by
from deltalog.sharing.server.pages import Page, Start, ends_with_action, next_tokens, start_of
from deltalog.sharing.server.view_query import answer_view, answer_view_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.scan.prune import Pruned
    from deltalog.sharing.server.answers import Asked, Tools
    from deltalog.sharing.server.formats import Format
    from deltalog.sharing.wire.lines import EndStreamAction, Line
    from deltalog.sharing.wire.requests import TableQuery
    from deltalog.snapshot import Snapshot


def answer_metadata(
    asked: Asked, tools: Tools, version: int | None = None, timestamp_ms: int | None = None
) -> Answer:
    """The protocol and metadata of the latest version, or of an older one.

    Raises:
        Fault: 400: both a version and a time, history that is not shared, or a format that
            cannot tell the table.
    """
    if version is not None and timestamp_ms is not None:
        raise invalid("Please only provide one of: version, timestamp.")
    snapshot = snapshot_at(asked, version, timestamp_ms)
    if asked.table.config.is_view:
        return answer_view_metadata(asked, snapshot, tools)
    form = replace(choose_format(asked.capabilities, snapshot), ends=False)
    travels = version is not None or timestamp_ms is not None
    heads = (
        protocol_line(form),
        metadata_line(
            form,
            snapshot.configuration,
            version=snapshot.version if travels else None,
            history_shared=asked.table.config.history_shared,
        ),
    )
    return Answer(snapshot.version, form, finished(form, heads, iter(())))


def answer_query(
    asked: Asked, query: TableQuery, tools: Tools, pinned: int | None = None
) -> Answer:
    """The files of one version.

    Args:
        asked: who asks.
        query: what he asks.
        tools: of the server.
        pinned: the version on which a query stays that was begun earlier.

    Raises:
        Fault: 400: parameters that do not go together or that the table cannot follow.
    """
    start = start_of(asked, query, tools.sealer)
    if start is None and pinned is not None:
        start = Start(pinned)
    if start is None:
        snapshot = snapshot_at(asked, query.version, query.timestamp_ms)
    else:
        snapshot = asked.table.at(start.version)
    if asked.table.config.is_view:
        return answer_view(asked, query, snapshot, tools, start)
    form = choose_format(asked.capabilities, snapshot)
    hash_name = file_id_hash(asked.file_id_hash, form)
    pruned = prune_by(snapshot, predicate_of(query, snapshot.configuration.schema, tools.config))
    page = _page(
        query, pruned, 0 if start is None else start.offset, tools.config.limits.page_files
    )
    root = snapshot.store.root
    check_paths(pruned.files(["path"]).column(0), root)
    expires_ms = tools.urls.expiry_ms(asked.now_ms)
    sign = tools.urls.signer(asked.table, asked.recipient, asked.base, expires_ms)
    lines = FileLines(form, root, sign, hash_name, expires_ms)
    travels = query.version is not None or query.timestamp_ms is not None

    def body() -> Iterator[bytes]:
        yield from lines.chunks(
            page.of(pruned.files(lines.columns)),
            "file",
            version=snapshot.version if travels else None,
            timestamp_ms=snapshot.commit_timestamp_ms if travels else None,
        )

    def end() -> EndStreamAction:
        return next_tokens(asked, query, tools, snapshot.version, page, expires_ms)

    return Answer(
        version=snapshot.version,
        form=form,
        chunks=finished(
            form,
            _heads(asked, form, snapshot, travels=travels),
            body(),
            end if ends_with_action(query, form) else None,
        ),
        file_id_hash=hash_name,
        facts={"version": snapshot.version, "files": page.num_rows},
    )


def check_together(query: TableQuery) -> None:
    """Refuse parameters that exclude each other (ledger SHARE-QT-12, SHARE-QT-14).

    Raises:
        Fault: 400.
    """
    moments = (query.version, query.timestamp_ms, query.starting_version)
    given = sum(value is not None for value in moments)
    if given > 1:
        raise invalid("Please only provide one of: version, timestamp, startingVersion.")
    if query.ending_version is not None and query.starting_version is None:
        raise invalid("endingVersion has a meaning only with startingVersion")
    if given and (query.include_refresh_token or query.refresh_token is not None):
        raise invalid("refresh tokens are for the latest version of a table only")
    if query.max_files == 0:
        raise invalid("maxFiles: expected 1 or more")


def snapshot_at(asked: Asked, version: int | None, timestamp_ms: int | None) -> Snapshot:
    """The version that is asked for, if history is shared; the latest if none is.

    Raises:
        Fault: 400.
    """
    table = asked.table
    latest = table.latest()
    if version is not None:
        table.check_history("reading a version")
        table.check_version(version, latest)
        return table.at(version, latest)
    if timestamp_ms is not None:
        table.check_history("reading as of a timestamp")
        return table.at(table.version_at(timestamp_ms, latest), latest)
    return latest


def _heads(asked: Asked, form: Format, snapshot: Snapshot, *, travels: bool) -> tuple[Line, ...]:
    sizes = snapshot.files(["size"]).column("size")
    return (
        protocol_line(form),
        metadata_line(
            form,
            snapshot.configuration,
            version=snapshot.version if travels else None,
            size_bytes=pc.sum(sizes).as_py() or 0,
            num_files=snapshot.num_files,
            history_shared=asked.table.config.history_shared,
        ),
    )


def _page(query: TableQuery, pruned: Pruned, offset: int, most_files: int) -> Page:
    """Which of the files that hints left are told now."""
    if query.max_files is None and offset == 0:
        indices = None
    else:
        # Sorted, so that a page goes on where the last one ended whatever the log looks like then.
        indices = pc.sort_indices(pruned.files(["path"]).column("path"))
    limited = _limited(query, pruned, indices)
    if limited is not None:
        indices = limited
    left = pruned.num_files - pruned.num_by_partition - pruned.num_by_statistics
    total = left if indices is None else len(indices)
    if query.max_files is None:
        return Page(indices, offset, total - offset, total)
    return Page(indices, offset, min(query.max_files, most_files, total - offset), total)


def _limited(
    query: TableQuery, pruned: Pruned, indices: pa.UInt64Array | None
) -> pa.UInt64Array | None:
    """The first files that hold enough rows; None if all are needed.

    A file that does not tell its rows counts for none. Where a condition may leave rows of a file
    out, no number of files is surely enough (ledger SHARE-QT-08, SHARE-QT-09).
    """
    if query.limit_hint is None or not pruned.is_exact:
        return None
    rows: Any = pc.fill_null(pruned.num_records(), pa.scalar(0))
    vectors = pruned.files(["deletionVector"]).column("deletionVector")
    deleted: Any = pc.fill_null(pc.struct_field(vectors, "cardinality"), pa.scalar(0))
    live: Any = pc.subtract(rows, deleted)
    order = pa.array(range(len(live)), pa.uint64()) if indices is None else indices
    reached = pc.cumulative_sum(live.take(order))
    short = pc.sum(pc.less(reached, pa.scalar(query.limit_hint))).as_py() or 0
    return order.slice(0, short + 1 if query.limit_hint else 0)
