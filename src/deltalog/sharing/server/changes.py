"""Answers to `GET …/changes`, and to queries with a starting version: the changes of a range.

Owns which ranges may be requested, and the order of the lines.

Protocol: Read Change Data Feed from a Table, Read Data from a Table (startingVersion)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from typing import Protocol as Structural

from deltalog.configuration import TableConfiguration
from deltalog.sharing.server.answers import Answer, encode_lines
from deltalog.sharing.server.commit_range import CommitRange
from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.file_lines import FileLines
from deltalog.sharing.server.formats import (
    choose_range_format,
    choose_view_format,
    head_lines,
    metadata_line,
)
from deltalog.sharing.server.pages import FilePage, end_of_page, start_of_page
from deltalog.sharing.server.view_changes import ViewChangeLines, ViewCommitRange
from deltalog.sharing.server.views import View
from deltalog.sharing.wire.lines import DeltaProtocol, encode_line
from deltalog.sharing.wire.requests import ChangesQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.actions.model import Protocol
    from deltalog.sharing.server.answers import TableRequest
    from deltalog.sharing.server.commit_range import VersionChanges
    from deltalog.sharing.server.formats import ResponseFormat
    from deltalog.sharing.wire.requests import TableQuery
    from deltalog.snapshot import Snapshot


def answer_changes(request: TableRequest, query: ChangesQuery) -> Answer:
    """Return the change data feed of a range.

    Raises:
        Fault: 400 for a missing range, one that is not shared, or one without change data feed.
    """
    table = request.table
    starts = (query.starting_version, query.starting_timestamp_ms)
    if sum(value is not None for value in starts) != 1:
        raise invalid("Please provide exactly one of: startingVersion, startingTimestamp.")
    if query.ending_version is not None and query.ending_timestamp_ms is not None:
        raise invalid("Please only provide one of: endingVersion, endingTimestamp.")
    if query.max_files == 0:
        raise invalid("maxFiles: expected 1 or more")
    table.check_history("reading changes")
    latest = table.latest()
    if query.starting_version is not None:
        first = query.starting_version
        table.check_version(first, latest)
    else:
        # "Converted to a version created greater or equal to this timestamp."
        first = table.first_version_from(query.starting_timestamp_ms or 0, latest)
    if query.ending_timestamp_ms is not None:
        # "Converted to a version created earlier than or at the timestamp."
        last = table.last_version_until(query.ending_timestamp_ms, latest)
    elif query.ending_version is not None:
        last = min(query.ending_version, latest.version)
    else:
        last = latest.version
    if last < first:
        raise invalid("the range of changes ends before it starts")
    return _RangeAnswer(request, query, first, last, latest).answer()


def answer_stream(request: TableRequest, query: TableQuery) -> Answer:
    """Return the files that were added and removed since a starting version.

    Raises:
        Fault: 400 for a range that does not exist or is not shared.
    """
    table = request.table
    table.check_history("reading from a startingVersion")
    latest = table.latest()
    first = query.starting_version or 0
    last = latest.version if query.ending_version is None else query.ending_version
    table.check_version(first, latest)
    table.check_version(last, latest)
    if last < first:
        raise invalid("endingVersion is before startingVersion")
    return _RangeAnswer(request, query, first, last, latest).answer()


class _Lines(Structural):
    """Encodes the lines of files."""

    def chunks(
        self, files: Any, kind: str, *, version: int, timestamp_ms: int
    ) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class _Source:
    """Where the lines of a range come from: the table's files, or files written for a view.

    Args:
        head: protocol and metadata in the first lines.
        hash_name: of the hash that made the ids of files.
    """

    response_format: ResponseFormat
    commits: CommitRange
    lines: _Lines
    head: TableConfiguration
    hash_name: str | None = None


class _RangeAnswer:
    """The answer about one range of versions."""

    def __init__(
        self,
        request: TableRequest,
        query: ChangesQuery | TableQuery,
        first: int,
        last: int,
        latest: Snapshot,
    ) -> None:
        self._query = query
        self._start = start = start_of_page(request, query)
        if start is not None:
            request = replace(request, services=request.services.with_key(start.key))
        self._request = request
        self._offset = 0 if start is None else start.offset
        self._first = request.table.at(first, latest)
        self._last = request.table.at(last if start is None else start.version, latest)
        self._latest = latest
        self._with_feed = isinstance(query, ChangesQuery)
        self._with_protocols = False
        self._with_metadata = True
        if isinstance(query, ChangesQuery):
            self._with_protocols = query.include_historical_protocol
            self._with_metadata = query.include_historical_metadata
        self._most = query.max_files
        if self._most is not None:
            self._most = min(self._most, request.services.config.limits.page_files)
        self._num_rows = 0
        self._has_more = False

    def answer(self) -> Answer:
        """Return the lines, after the whole range was checked."""
        is_view = self._request.table.config.is_view
        source = self._view_source() if is_view else self._table_source()
        source.commits.check()
        facts: dict[str, object] = {"version": self._first.version, "until": self._last.version}

        def page() -> FilePage:
            total = self._offset + self._num_rows + (1 if self._has_more else 0)
            return FilePage(None, self._offset, self._num_rows, total)

        def body() -> Iterator[bytes]:
            yield from self._body(source)
            facts["files"] = self._num_rows

        response_format = source.response_format
        # The official client writes a log of its own for the format delta, and needs the version.
        has_version = self._with_feed and (self._with_metadata or response_format.is_delta)
        heads = head_lines(
            response_format,
            source.head,
            protocol_version=self._first.version if self._with_protocols else None,
            version=self._first.version if has_version else None,
            history_shared=self._request.table.config.history_shared,
        )
        end = end_of_page(
            self._request,
            self._query,
            response_format,
            self._last.version,
            page,
            start=self._start,
        )
        chunks = encode_lines(response_format, heads, body(), end)
        until = self._last.version
        return Answer(
            self._first.version, response_format, chunks, source.hash_name, facts, until=until
        )

    def _table_source(self) -> _Source:
        request = self._request
        response_format = choose_range_format(request.capabilities, self._first, self._last)
        if self._with_protocols:
            response_format = replace(response_format, protocol=self._first.protocol)
        lines = FileLines(request, response_format)
        commits = CommitRange(request.table, self._first, self._last, with_feed=self._with_feed)
        head = self._first if self._with_metadata else self._latest
        return _Source(response_format, commits, lines, head.configuration, lines.hash_name)

    def _view_source(self) -> _Source:
        request = self._request
        view = View(self._last, request.table, request.services, self._latest)
        response_format = choose_view_format(request.capabilities, view.configuration)
        commits = ViewCommitRange(
            view, request.table, self._first, self._last, with_feed=self._with_feed
        )
        lines = ViewChangeLines(response_format, view, request, self._with_feed)
        return _Source(response_format, commits, lines, view.configuration)

    def _body(self, source: _Source) -> Iterator[bytes]:
        seen = 0
        protocol = self._first.protocol
        for change in source.commits.versions():
            protocol = change.protocol or protocol
            # Only a version that has lines makes another page.
            if self._is_full and (change.parts or change.metadata or change.protocol):
                self._has_more = True
                return
            if seen >= self._offset:
                yield from self._historical_lines(change, protocol, source.response_format)
            for kind, files in change.parts:
                skipped = min(max(0, self._offset - seen), files.num_rows)
                seen += files.num_rows
                left = files.slice(skipped)
                if self._most is not None and left.num_rows > self._most - self._num_rows:
                    left = left.slice(0, self._most - self._num_rows)
                    self._has_more = True
                self._num_rows += left.num_rows
                yield from source.lines.chunks(
                    left, kind, version=change.version, timestamp_ms=change.timestamp_ms
                )
                if self._has_more:
                    return

    @property
    def _is_full(self) -> bool:
        return self._most is not None and self._num_rows >= self._most

    def _historical_lines(
        self, change: VersionChanges, protocol: Protocol, response_format: ResponseFormat
    ) -> Iterator[bytes]:
        """Yield the lines of a protocol and metadata that a later version changed."""
        if change.version == self._first.version:
            return  # the first lines have them
        if self._with_protocols and response_format.is_delta and change.protocol is not None:
            yield encode_line(DeltaProtocol(protocol=change.protocol, version=change.version))
        if self._with_metadata and change.metadata is not None:
            line = metadata_line(
                response_format,
                TableConfiguration(protocol, change.metadata),
                version=change.version,
                history_shared=self._request.table.config.history_shared,
            )
            yield encode_line(line)
