"""Answers to `GET …/changes`, and to queries from a starting version: what a range changed.

Owns which ranges may be asked for, and the order of the lines.

Protocol: Read Change Data Feed from a Table, Read Data from a Table (startingVersion)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from typing import Protocol as Structural

from deltalog.configuration import TableConfiguration
from deltalog.sharing.server.answers import Answer, finished
from deltalog.sharing.server.commit_range import History
from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.file_lines import FileLines, file_id_hash
from deltalog.sharing.server.formats import (
    choose_format_of_plain,
    choose_format_of_range,
    metadata_line,
    protocol_line,
)
from deltalog.sharing.server.pages import Page, ends_with_action, next_tokens, start_of
from deltalog.sharing.server.view_changes import ShownLines, ViewHistory
from deltalog.sharing.server.views import View
from deltalog.sharing.wire.lines import DeltaProtocol, encode_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.actions.model import Protocol
    from deltalog.sharing.server.answers import Asked, Tools
    from deltalog.sharing.server.commit_range import VersionChanges
    from deltalog.sharing.server.formats import Format
    from deltalog.sharing.wire.lines import EndStreamAction, Line
    from deltalog.sharing.wire.requests import ChangesQuery, TableQuery
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class _Told:
    """What of the history is told besides files."""

    metadata: bool
    protocol: bool = False
    version_of_head: bool = False


def answer_changes(asked: Asked, query: ChangesQuery, tools: Tools) -> Answer:
    """The change data feed of a range.

    Raises:
        Fault: 400: no range, one that is not shared, or one without a change data feed.
    """
    table = asked.table
    _check_bounds(query)
    table.check_history("reading changes")
    latest = table.latest()
    first, last = _range(asked, query, latest)
    start = start_of(asked, query, tools.sealer)
    if start is not None:
        last = start.version
    told = _Told(
        metadata=query.include_historical_metadata,
        protocol=query.include_historical_protocol,
        version_of_head=True,
    )
    ends = (table.at(first, latest), table.at(last, latest))
    return _Telling(asked, tools, query, ends, latest, told).answer(with_feed=True)


def answer_stream(asked: Asked, query: TableQuery, tools: Tools) -> Answer:
    """The data that came and went from a starting version on.

    Raises:
        Fault: 400: a range that is not there or not shared.
    """
    table = asked.table
    table.check_history("reading from a startingVersion")
    latest = table.latest()
    first = query.starting_version or 0
    start = start_of(asked, query, tools.sealer)
    last = latest.version if query.ending_version is None else query.ending_version
    if start is not None:
        last = start.version
    table.check_version(first, latest)
    table.check_version(last, latest)
    if last < first:
        raise invalid("endingVersion is before startingVersion")
    ends = (table.at(first, latest), table.at(last, latest))
    told = _Told(metadata=True)
    return _Telling(asked, tools, query, ends, latest, told).answer(with_feed=False)


def _check_bounds(query: ChangesQuery) -> None:
    starts = (query.starting_version, query.starting_timestamp_ms)
    if sum(value is not None for value in starts) != 1:
        raise invalid("Please provide exactly one of: startingVersion, startingTimestamp.")
    if query.ending_version is not None and query.ending_timestamp_ms is not None:
        raise invalid("Please only provide one of: endingVersion, endingTimestamp.")
    if query.max_files == 0:
        raise invalid("maxFiles: expected 1 or more")


def _range(asked: Asked, query: ChangesQuery, latest: Snapshot) -> tuple[int, int]:
    """The first and the last version that are asked for."""
    table = asked.table
    if query.starting_version is not None:
        first = query.starting_version
        table.check_version(first, latest)
    else:
        first = table.first_version_from(query.starting_timestamp_ms or 0, latest)
    if query.ending_timestamp_ms is not None:
        last = table.last_version_until(query.ending_timestamp_ms, latest)
    elif query.ending_version is not None:
        last = min(query.ending_version, latest.version)
    else:
        last = latest.version
    if last < first:
        raise invalid("the range of changes ends before it starts")
    return first, last


class _Lines(Structural):
    """Writes the lines of one kind of files."""

    def chunks(
        self, files: Any, kind: str, *, version: int, timestamp_ms: int
    ) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class _Source:
    """Where the lines of a range come from: the table's files, or files written for a share.

    Args:
        head: what the first lines tell.
        hash_name: of the files' ids.
    """

    form: Format
    history: History
    lines: _Lines
    head: TableConfiguration
    hash_name: str | None = None


class _Telling:
    """Tells one range."""

    def __init__(
        self,
        asked: Asked,
        tools: Tools,
        query: ChangesQuery | TableQuery,
        ends: tuple[Snapshot, Snapshot],
        latest: Snapshot,
        told: _Told,
    ) -> None:
        self._asked = asked
        self._tools = tools
        self._query = query
        self._first, self._last = ends
        self._latest = latest
        self._told = told
        start = start_of(asked, query, tools.sealer)
        self._offset = 0 if start is None else start.offset
        self._most = query.max_files
        if self._most is not None:
            self._most = min(self._most, tools.config.limits.page_files)
        self._num_rows = 0
        self._goes_on = False

    def answer(self, *, with_feed: bool) -> Answer:
        """The lines, after everything that may be refused was looked at."""
        asked, tools = self._asked, self._tools
        expires_ms = tools.urls.expiry_ms(asked.now_ms)
        make = self._of_part if asked.table.config.is_view else self._of_whole
        source = make(expires_ms, with_feed=with_feed)
        source.history.check()
        form = source.form
        facts: dict[str, object] = {"version": self._first.version, "until": self._last.version}

        def end() -> EndStreamAction:
            total = self._offset + self._num_rows + (1 if self._goes_on else 0)
            page = Page(None, self._offset, self._num_rows, total)
            return next_tokens(asked, self._query, tools, self._last.version, page, expires_ms)

        def body() -> Iterator[bytes]:
            yield from self._body(source)
            facts["files"] = self._num_rows

        heads = self._heads(form, source.head)
        is_paged = ends_with_action(self._query, form)
        chunks = finished(form, heads, body(), end if is_paged else None)
        return Answer(self._first.version, form, chunks, source.hash_name, facts)

    def _of_whole(self, expires_ms: int, *, with_feed: bool) -> _Source:
        asked, tools = self._asked, self._tools
        form = choose_format_of_range(asked.capabilities, self._first, self._last)
        if self._told.protocol:
            form = replace(form, protocol=self._first.protocol)
        hash_name = file_id_hash(asked.file_id_hash, form)
        sign = tools.urls.signer(asked.table, asked.recipient, asked.base, expires_ms)
        lines = FileLines(form, asked.table.store.root, sign, hash_name, expires_ms)
        history = History(asked.table, self._first, self._last, with_feed=with_feed)
        head = self._first if self._told.metadata else self._latest
        return _Source(form, history, lines, head.configuration, hash_name)

    def _of_part(self, expires_ms: int, *, with_feed: bool) -> _Source:
        asked, tools = self._asked, self._tools
        view = View(self._last, asked.table.config, tools, self._latest)
        form = choose_format_of_plain(asked.capabilities, view.configuration)
        history = ViewHistory(view, asked.table, self._first, self._last, with_feed=with_feed)
        lines = ShownLines(form, view, asked, tools, with_feed, expires_ms)
        return _Source(form, history, lines, view.configuration)

    def _heads(self, form: Format, head: TableConfiguration) -> tuple[Line, ...]:
        # The official client makes a log of its own of the format delta, and needs the version.
        shows = self._told.metadata or form.is_delta
        version = self._first.version if shows and self._told.version_of_head else None
        return (
            protocol_line(form, self._first.version if self._told.protocol else None),
            self._metadata_line(form, head, version),
        )

    def _metadata_line(self, form: Format, told: TableConfiguration, version: int | None) -> Line:
        return metadata_line(
            form,
            told,
            version=version,
            history_shared=self._asked.table.config.history_shared,
        )

    def _body(self, source: _Source) -> Iterator[bytes]:
        seen = 0
        protocol = self._first.protocol
        for change in source.history.versions():
            protocol = change.protocol or protocol
            if self._is_full and (change.parts or change.metadata or change.protocol):
                self._goes_on = True
                return
            if seen >= self._offset:
                yield from self._others(change, protocol, source.form)
            for kind, files in change.parts:
                skipped = min(max(0, self._offset - seen), files.num_rows)
                seen += files.num_rows
                left = files.slice(skipped)
                if self._most is not None and left.num_rows > self._most - self._num_rows:
                    left = left.slice(0, self._most - self._num_rows)
                    self._goes_on = True
                self._num_rows += left.num_rows
                yield from source.lines.chunks(
                    left, kind, version=change.version, timestamp_ms=change.timestamp_ms
                )
                if self._goes_on:
                    return

    @property
    def _is_full(self) -> bool:
        return self._most is not None and self._num_rows >= self._most

    def _others(self, change: VersionChanges, protocol: Protocol, form: Format) -> Iterator[bytes]:
        """Lines that tell of a new protocol or of new metadata."""
        if change.version == self._first.version:
            return  # the first lines have told
        if self._told.protocol and form.is_delta and change.protocol is not None:
            yield encode_line(DeltaProtocol(protocol=change.protocol, version=change.version))
        if self._told.metadata and change.metadata is not None:
            told = TableConfiguration(protocol, change.metadata)
            line = self._metadata_line(form, told, change.version)
            yield encode_line(line)
