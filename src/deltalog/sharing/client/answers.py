"""Whole answers about a table: all pages, waited for if need be, as one small log.

Owns paging, queries that go on under an id, and that all pages tell of one version.

Protocol: Read Data from a Table, Read Change Data Feed from a Table, EndStreamAction, Asynchronous
queries
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from deltalog.errors import MalformedMessageError, SharingError
from deltalog.sharing.client.actions import LogLines, commit_bytes, table_metadata, table_protocol
from deltalog.sharing.client.pages import TablePage
from deltalog.sharing.wire.lines import DeltaMetadata, DeltaProtocol, ParquetMetadata, QueryStatus
from deltalog.sharing.wire.requests import ChangesQuery, TableQuery

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from deltalog.actions.model import Metadata, Protocol
    from deltalog.sharing.client.pages import TableHead
    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.wire.listing import Table

    Ask = Callable[[str | None], Awaitable[TablePage[LogLines] | QueryStatus]]

_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAnswer:
    """What a server told of a table's files or changes.

    Args:
        version: of the files, or the first of the changes.
        protocol: of that version.
        metadata: of that version.
        commits: bytes of a log, by version; the files of a version are one commit.
        times_ms: of versions, as far as they were told.
        urls: of the files and deletion vectors, by the paths that stand in the log.
        expires_ms: when the first URL ends; None is unknown.
        refresh_token: gives new URLs for the same files.
    """

    version: int
    protocol: Protocol
    metadata: Metadata
    commits: Mapping[int, bytes] = field(repr=False)
    times_ms: Mapping[int, int] = field(repr=False)
    urls: Mapping[str, str] = field(repr=False)
    expires_ms: int | None = None
    refresh_token: str | None = None


async def ask_head(
    rest: AsyncRestClient,
    table: Table,
    *,
    version: int | None = None,
    timestamp_ms: int | None = None,
) -> TableAnswer:
    """Version, protocol and metadata, without files.

    Raises:
        MalformedMessageError: the answer does not tell its version.
    """
    head = await rest.table_metadata(table, version=version, timestamp_ms=timestamp_ms)
    metadata = table_metadata(head.metadata)
    return TableAnswer(
        version=_version_of(head, version),
        protocol=table_protocol(head.protocol, metadata),
        metadata=metadata,
        commits={},
        times_ms={},
        urls={},
    )


async def ask_files(rest: AsyncRestClient, table: Table, query: TableQuery) -> TableAnswer:
    """The files of one version, all pages of them.

    Raises:
        MalformedMessageError: the pages do not tell of one version, or it is not told.
        SharingError: the server refused, or gave up.
    """
    head, lines, refresh_token = await _all_pages(*_asking(rest, table, query))
    metadata = table_metadata(head.metadata)
    version = _version_of(head, query.version)
    actions = [action for some in lines.lines.values() for action in some]
    return TableAnswer(
        version=version,
        protocol=table_protocol(head.protocol, metadata),
        metadata=metadata,
        commits={version: commit_bytes(actions)},
        times_ms=lines.times_ms,
        urls=lines.urls,
        expires_ms=lines.expires_ms,
        refresh_token=refresh_token,
    )


async def ask_changes(
    rest: AsyncRestClient, table: Table, query: ChangesQuery | TableQuery
) -> TableAnswer:
    """The changes of a range of versions, all pages of them, one commit a version.

    Args:
        rest: the server.
        table: which.
        query: the change data feed (`ChangesQuery`), or files added and removed from a version on
            (`TableQuery` with a starting version).

    Raises:
        MalformedMessageError: a file does not tell its version.
        SharingError: the server refused, or gave up.
    """
    head, lines, _ = await _all_pages(*_asking(rest, table, query))
    feed = isinstance(query, ChangesQuery)
    metadata = table_metadata(head.metadata, has_changes=feed)
    starting = query.starting_version
    version = head.version if starting is None else starting
    told = sorted(number for number in lines.lines if number is not None)
    if version is None:
        version = told[0] if told else None
    if version is None or None in lines.lines:
        raise MalformedMessageError(
            f"changes of {table.share}.{table.schema}.{table.name}: expected a version with each"
        )
    later = _later(lines, has_changes=feed)
    commits = {
        number: commit_bytes(
            lines.lines.get(number, []),
            protocol=later.get(number, (None, None))[0],
            metadata=later.get(number, (None, None))[1],
            time_ms=lines.times_ms.get(number),
        )
        for number in sorted({*told, *later})
        if number >= version
    }
    return TableAnswer(
        version=version,
        protocol=table_protocol(head.protocol, metadata),
        metadata=metadata,
        commits=commits,
        times_ms=lines.times_ms,
        urls=lines.urls,
        expires_ms=lines.expires_ms,
    )


def _later(
    lines: LogLines, *, has_changes: bool
) -> dict[int, tuple[Protocol | None, Metadata | None]]:
    """Protocol and metadata of later versions, where they are told."""
    found: dict[int, tuple[Protocol | None, Metadata | None]] = {}
    for line in lines.later:
        version = getattr(line, "version", None)
        if version is None:
            continue
        protocol, metadata = found.get(version, (None, None))
        if isinstance(line, DeltaProtocol):
            protocol = line.protocol
        elif isinstance(line, ParquetMetadata | DeltaMetadata):
            metadata = table_metadata(line, has_changes=has_changes)
        found[version] = protocol, metadata
    return found


def _asking(
    rest: AsyncRestClient, table: Table, query: TableQuery | ChangesQuery
) -> tuple[str, Ask, Callable[[str], Ask]]:
    """How the pages of a query are asked for, and those of the same query under an id."""

    async def ask(token: str | None) -> TablePage[LogLines] | QueryStatus:
        if isinstance(query, ChangesQuery):
            return await rest.query_changes(table, replace(query, page_token=token), LogLines)
        return await rest.query_table(table, replace(query, page_token=token), LogLines)

    def poll(query_id: str) -> Ask:
        async def ask_again(token: str | None) -> TablePage[LogLines] | QueryStatus:
            return await rest.poll_query(
                table, query_id, LogLines, max_files=query.max_files, page_token=token
            )

        return ask_again

    return f"query shared table {table.share}.{table.schema}.{table.name}", ask, poll


async def _all_pages(
    what: str, ask: Ask, poll: Callable[[str], Ask]
) -> tuple[TableHead, LogLines, str | None]:
    lines = LogLines()
    first: TableHead | None = None
    token: str | None = None
    seen: set[str] = set()
    while True:
        page, ask = await _finished(what, ask, poll, token)
        first = _same(first, page.head, what)
        lines.extend(page.files)
        end = page.end
        if end is None:
            return first, lines, None
        lines.expires_before(end.min_url_expiration_timestamp_ms)
        token = end.next_page_token
        if not token:
            return first, lines, end.refresh_token
        if token in seen:
            raise MalformedMessageError(f"{what}: the server gave the same page token twice")
        seen.add(token)


async def _finished(
    what: str, ask: Ask, poll: Callable[[str], Ask], token: str | None
) -> tuple[TablePage[LogLines], Ask]:
    """A page, and how the following ones are asked for; waits while the server works on it."""
    wait_s = _FIRST_WAIT_S
    while True:
        found = await ask(token)
        if isinstance(found, TablePage):
            return found, ask
        if found.status.lower() not in {"pending", "running", "succeeded"}:
            raise SharingError(f"cannot {what}: it {found.status}: {found.error or 'no reason'}")
        ask = poll(found.query_id)
        await asyncio.sleep(wait_s)
        wait_s = min(_LONGEST_WAIT_S, wait_s * 2)


def _same(first: TableHead | None, head: TableHead, what: str) -> TableHead:
    """The first page's head, which all others must repeat (ledger SHARE-QT-23)."""
    if first is None:
        return head
    if (head.version, head.protocol, head.metadata) != (
        first.version,
        first.protocol,
        first.metadata,
    ):
        raise MalformedMessageError(f"{what}: the pages tell of different versions of the table")
    return first


def _version_of(head: TableHead, asked: int | None) -> int:
    for version in (head.version, asked, head.metadata.version):
        if version is not None:
            return version
    raise MalformedMessageError(
        "the answer does not tell the table's version: expected the header Delta-Table-Version"
    )
