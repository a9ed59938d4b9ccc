"""Complete answers about a table: all pages of a query, converted to commits of a Delta log.

This module follows page tokens, polls asynchronous queries, and checks that all pages describe the
same version.

Protocol: Read Data from a Table, Read Change Data Feed from a Table, EndStreamAction, Asynchronous
queries
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote

from deltalog._util.json import dumps
from deltalog._util.paths import encode_path
from deltalog.errors import InvalidInputError, MalformedMessageError, SharingError
from deltalog.protocol.actions.codec import action_to_json
from deltalog.protocol.actions.model import Metadata, Protocol
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features import canonical_name, supported_features, with_features
from deltalog.protocol.features.protocol_change import least_protocol
from deltalog.schema import parse_schema
from deltalog.sharing.client.pages import TableHead, TablePage
from deltalog.sharing.wire.lines import (
    ACTION_OF_KIND,
    DeltaFileLine,
    DeltaMetadata,
    DeltaProtocol,
    ParquetFileLine,
    ParquetMetadata,
    ParquetProtocol,
)
from deltalog.sharing.wire.requests import ChangesQuery, TableQuery
from deltalog.storage.http.replies import Budget, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.wire.lines import Line, QueryStatus, Table

_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionHead:
    """Protocol and metadata of one version of a shared table, without its files.

    Args:
        version: number of the version.
        protocol: protocol of that version.
        metadata: metadata of that version.
        size_bytes: size of all files, if the server sends it.
        num_files: number of all files, if the server sends it.
    """

    version: int
    protocol: Protocol
    metadata: Metadata
    size_bytes: int | None = None
    num_files: int | None = None

    def __call__(self, num_rows: object = 5, *_args: object, **_options: object) -> NoReturn:
        """Refuse a call: `DeltaTable.head()` returns rows, but `SharedTable.head` is this object.

        Raises:
            InvalidInputError: always.
        """
        raise InvalidInputError(
            "cannot call SharedTable.head: it is no method, but the version, protocol and metadata "
            f"of the table; scan(limit={num_rows}) reads its first rows"
        )

    @property
    def configuration(self) -> TableConfiguration:
        """Return protocol and metadata, after checking that they are consistent."""
        return TableConfiguration(self.protocol, self.metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAnswer:
    """A server's answer about a table's files or changes.

    Args:
        head: protocol and metadata of the version, or of the first version of the changes.
        commits: the commit files (JSON lines) by version; all files of one version are one commit.
        times_ms: commit times by version, if the server sent them.
        urls: signed URLs of files and deletion vectors, by their paths in `commits`.
        expires_ms: when the first URL expires; None if unknown.
        refresh_token: the token for requesting new URLs of the same files.
    """

    head: VersionHead
    commits: Mapping[int, bytes] = field(repr=False)
    times_ms: Mapping[int, int] = field(repr=False)
    urls: Mapping[str, str] = field(repr=False)
    expires_ms: int | None
    refresh_token: str | None = None


async def fetch_head(
    rest: AsyncRestClient,
    table: Table,
    *,
    version: int | None = None,
    timestamp_ms: int | None = None,
) -> VersionHead:
    """Return version, protocol and metadata, without files.

    Raises:
        MalformedMessageError: the response has no version.
    """
    head = await rest.table_metadata(table, version=version, timestamp_ms=timestamp_ms)
    metadata = table_metadata(head.metadata)
    protocol = table_protocol(head.protocol, metadata)
    return VersionHead(
        version=_version_of(head, version),
        protocol=protocol,
        metadata=metadata,
        size_bytes=head.metadata.size_bytes,
        num_files=head.metadata.num_files,
    )


async def fetch_file_list(rest: AsyncRestClient, table: Table, query: TableQuery) -> TableAnswer:
    """Return the files of one version, from all pages.

    Raises:
        MalformedMessageError: the pages describe different versions, or no version.
        SharingError: the server refused the request, or stopped before the end of the response.
    """
    head, files, refresh_token = await _all_pages(rest, table, query)
    metadata = table_metadata(head.metadata)
    version = _version_of(head, query.version)
    # Put all files into one commit, because servers send the versions of files only if the query
    # names a version.
    actions = [action for some in files.lines.values() for action in some]
    protocol = table_protocol(head.protocol, metadata)
    return TableAnswer(
        head=VersionHead(version=version, protocol=protocol, metadata=metadata),
        commits={version: commit_bytes(actions)},
        times_ms=files.times_ms,
        urls=files.urls,
        expires_ms=files.expires_ms,
        refresh_token=refresh_token,
    )


async def fetch_changes(
    rest: AsyncRestClient, table: Table, query: ChangesQuery | TableQuery
) -> TableAnswer:
    """Return the changes of a range of versions, from all pages, as one commit per version.

    Args:
        rest: the server.
        table: a table of a share.
        query: requests the change data feed (`ChangesQuery`), or the files that were added and
            removed (`TableQuery` with a starting version).

    Raises:
        MalformedMessageError: a file has no version.
        SharingError: the server refused the request, or stopped before the end of the response.
    """
    head, files, _ = await _all_pages(rest, table, query)
    is_feed = isinstance(query, ChangesQuery)
    metadata = table_metadata(head.metadata, has_changes=is_feed)
    versions = sorted(version for version in files.lines if version is not None)
    first = _first_known(query.starting_version, head.version, *versions)
    # The protocol requires a version in each line of a change. The version becomes the column
    # `_commit_version`.
    if first is None or None in files.lines:
        raise MalformedMessageError(
            f"changes of shared table {table.full_name}: expected a version in each line"
        )
    protocols, metadatas = _later(files, has_changes=is_feed)
    commits = {
        version: commit_bytes(
            files.lines.get(version, []),
            protocol=protocols.get(version),
            metadata=metadatas.get(version),
            time_ms=files.times_ms.get(version),
        )
        for version in sorted({*versions, *protocols, *metadatas})
        if version >= first
    }
    protocol = table_protocol(head.protocol, metadata)
    return TableAnswer(
        head=VersionHead(version=first, protocol=protocol, metadata=metadata),
        commits=commits,
        times_ms=files.times_ms,
        urls=files.urls,
        expires_ms=files.expires_ms,
    )


def _later(
    files: ActionCollector, *, has_changes: bool
) -> tuple[dict[int, Protocol], dict[int, Metadata]]:
    """Return the changed protocols and metadata, by version."""
    protocols, metadatas = {}, {}
    for line in files.later:
        if isinstance(line, DeltaProtocol) and line.version is not None:
            protocols[line.version] = line.protocol
        elif isinstance(line, ParquetMetadata | DeltaMetadata) and line.version is not None:
            metadatas[line.version] = table_metadata(line, has_changes=has_changes)
    return protocols, metadatas


async def _all_pages(
    rest: AsyncRestClient, table: Table, query: TableQuery | ChangesQuery
) -> tuple[TableHead, ActionCollector, str | None]:
    """Return the head of the first page, the files of all pages, and the refresh token."""
    what = f"query shared table {table.full_name}"
    files = ActionCollector()
    head: TableHead | None = None
    query_id: str | None = None
    seen: set[str] = set()
    budget = rest.http.budget()
    while True:
        budget.count_page(what)
        page, query_id = await _finished_page(rest, table, query, query_id, budget)
        head = head or page.head
        _check_same(head, page.head, what)
        files.extend(page.files)
        if page.end is None:
            return head, files, None
        files.expires_by(page.end.min_url_expiration_timestamp_ms)
        token = page.end.next_page_token
        if not token:
            return head, files, page.end.refresh_token
        # A faulty server may send the same token forever.
        if token in seen:
            raise MalformedMessageError(f"{what}: the server sent the same page token twice")
        seen.add(token)
        query = replace(query, page_token=token)


async def _finished_page(
    rest: AsyncRestClient,
    table: Table,
    query: TableQuery | ChangesQuery,
    query_id: str | None,
    budget: Budget,
) -> tuple[TablePage[ActionCollector], str | None]:
    """Return a page and the id of the asynchronous query; poll until the page is ready."""
    wait_s = _FIRST_WAIT_S
    while True:
        found = await _page(rest, table, query, query_id, budget)
        if isinstance(found, TablePage):
            return found, query_id
        if found.status.lower() not in {"pending", "running", "succeeded"}:
            raise SharingError(
                f"cannot query shared table {table.full_name}: the query "
                f"{printable(found.status, 40)}: "
                f"{printable(found.error or 'the server gave no reason')}"
            )
        query_id = found.query_id
        await asyncio.sleep(min(wait_s, budget.seconds_left()))
        wait_s = min(_LONGEST_WAIT_S, wait_s * 2)


async def _page(
    rest: AsyncRestClient,
    table: Table,
    query: TableQuery | ChangesQuery,
    query_id: str | None,
    budget: Budget,
) -> TablePage[ActionCollector] | QueryStatus:
    if query_id is not None:
        return await rest.poll_query(
            table,
            query_id,
            ActionCollector,
            max_files=query.max_files,
            page_token=query.page_token,
            budget=budget,
        )
    if isinstance(query, ChangesQuery):
        return await rest.query_changes(table, query, ActionCollector, budget=budget)
    return await rest.query_table(table, query, ActionCollector, budget=budget)


def _check_same(first: TableHead, head: TableHead, what: str) -> None:
    """Raise if a page does not describe the version of the first page (requirement SHARE-QT-23)."""
    same = (first.version, first.protocol, first.metadata)
    if (head.version, head.protocol, head.metadata) != same:
        raise MalformedMessageError(f"{what}: the pages describe different versions of the table")


def _version_of(head: TableHead, asked: int | None) -> int:
    version = _first_known(head.version, asked, head.metadata.version)
    if version is None:
        raise MalformedMessageError(
            "the response has no table version: expected the header Delta-Table-Version"
        )
    return version


def _first_known(*versions: int | None) -> int | None:
    return next((version for version in versions if version is not None), None)


# --- Converting the lines of a response to actions of a Delta log


_CHANGE_DATA_FEED: Final = "delta.enableChangeDataFeed"
_URL_STORAGE: Final = "p"
# The table features that do not affect the client. For `catalogManaged`, the server has already
# asked the catalog for the commits.
_WITHOUT_MEANING: Final = frozenset({"catalogManaged"})


class ActionCollector:
    """Collects the file lines of a page as encoded actions of a Delta log.

    Attributes:
        lines: by version, the encoded actions with their line ends. The key is None for lines
            without a version.
        urls: signed URLs, by the path in the action.
        times_ms: commit times by version, for lines that contain them.
        expires_ms: the earliest expiry of the URLs; None if unknown.
        later: the lines with the changed protocols and metadata of versions after the first.
    """

    def __init__(self) -> None:
        self.lines: dict[int | None, list[bytes]] = {}
        self.urls: dict[str, str] = {}
        self.times_ms: dict[int, int] = {}
        self.expires_ms: int | None = None
        self.later: list[Line] = []

    def take(self, line: Line) -> None:
        """Collect a file line, or the protocol or metadata of a later version."""
        if not isinstance(line, ParquetFileLine | DeltaFileLine):
            self.later.append(line)
            return
        path = f"files/{_path_part(line.id)}"
        if isinstance(line, ParquetFileLine):
            self.urls[path] = line.url
            action = {ACTION_OF_KIND[line.kind]: _parquet_action(line, path)}
        else:
            self.urls[path] = line.values["path"]
            action = {line.kind: self._delta_action(line, path)}
        self.lines.setdefault(line.version, []).append(dumps(action) + b"\n")
        if line.version is not None and line.timestamp_ms is not None:
            self.times_ms[line.version] = line.timestamp_ms
        self.expires_by(line.expiration_timestamp_ms)

    def expires_by(self, time_ms: int | None) -> None:
        """Record when a URL expires; None if unknown."""
        if time_ms is not None and (self.expires_ms is None or time_ms < self.expires_ms):
            self.expires_ms = time_ms

    def extend(self, page: ActionCollector) -> None:
        """Append the content of the next page."""
        for version, lines in page.lines.items():
            self.lines.setdefault(version, []).extend(lines)
        self.urls.update(page.urls)
        self.times_ms.update(page.times_ms)
        self.later.extend(page.later)
        self.expires_by(page.expires_ms)

    def _delta_action(self, line: DeltaFileLine, path: str) -> dict[str, Any]:
        values = {
            "modificationTime": line.timestamp_ms or 0,
            "dataChange": True,
            **line.values,
            "path": _encoded(path),
        }
        vector: Any = values.get("deletionVector")
        is_remote = isinstance(vector, dict) and vector.get("storageType") == _URL_STORAGE
        # Deletion vectors are not validated here, because the parser of the log raises an error for
        # a malformed deletion vector.
        if is_remote and isinstance(url := vector.get("pathOrInlineDv"), str):
            name = line.deletion_vector_file_id or f"{line.kind}-{line.version}-{line.id}"
            vector_path = f"vectors/{_path_part(name)}"
            self.urls[vector_path] = url
            values["deletionVector"] = {**vector, "pathOrInlineDv": _encoded(vector_path)}
        return values


def _path_part(name: str) -> str:
    """Return an id as one element of a path; ids may contain any characters."""
    return name if name.isalnum() and name.isascii() else quote(name, safe="")


def _encoded(path: str) -> str:
    """Return the path percent-encoded, as in a log; most paths need no encoding."""
    return encode_path(path) if "%" in path else path


def _parquet_action(line: ParquetFileLine, path: str) -> dict[str, Any]:
    return {
        "path": _encoded(path),
        "partitionValues": dict(line.partition_values),
        "size": line.size_bytes,
        "modificationTime": line.timestamp_ms or 0,
        "dataChange": True,
        "stats": line.stats,
    }


def table_metadata(line: ParquetMetadata | DeltaMetadata, *, has_changes: bool = False) -> Metadata:
    """Return the table's metadata.

    Args:
        line: the line of a response.
        has_changes: whether the response is about changes. If so, the change data feed is enabled.
    """
    if isinstance(line, DeltaMetadata):
        metadata = line.metadata
    else:
        metadata = Metadata(
            id=line.id,
            schema_string=line.schema_string,
            partition_columns=line.partition_columns,
            # In the response format `parquet`, the configuration contains only the property
            # `delta.enableChangeDataFeed`, and its name has no prefix.
            configuration={
                f"delta.{name}" if name == "enableChangeDataFeed" else name: value
                for name, value in line.configuration.items()
            },
            name=line.name,
            description=line.description,
        )
    if has_changes:
        on = {**metadata.configuration, _CHANGE_DATA_FEED: "true"}
        return replace(metadata, configuration=on)
    return metadata


def table_protocol(line: ParquetProtocol | DeltaProtocol, metadata: Metadata) -> Protocol:
    """Return the table's Delta protocol; for the format `parquet`, the lowest sufficient one."""
    if isinstance(line, ParquetProtocol):
        schema = parse_schema(metadata.schema_string)
        current = Protocol(min_reader_version=1, min_writer_version=2)
        return least_protocol(TableProperties(metadata.configuration), schema, current=current)
    protocol = _for_reading(line.protocol)
    if metadata.configuration.get(_CHANGE_DATA_FEED, "").lower() == "true" and (
        "changeDataFeed" not in supported_features(protocol)
    ):
        return with_features(protocol, ["changeDataFeed"])
    return protocol


def _for_reading(protocol: Protocol) -> Protocol:
    """Return the protocol with complete feature lists, without features irrelevant here."""
    reader, writer = protocol.reader_features, protocol.writer_features
    if protocol.min_reader_version >= 3:
        reader = _meaningful(reader)
    if protocol.min_writer_version >= 7:
        writer = _meaningful(writer)
    return replace(protocol, reader_features=reader, writer_features=writer)


def _meaningful(names: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(name for name in names or () if canonical_name(name) not in _WITHOUT_MEANING)


def commit_bytes(
    lines: list[bytes],
    *,
    protocol: Protocol | None = None,
    metadata: Metadata | None = None,
    time_ms: int | None = None,
) -> bytes:
    """Return one commit of a log.

    Args:
        lines: encoded actions, each with its line end.
        protocol: protocol of this version, if it changed.
        metadata: metadata of this version, if it changed.
        time_ms: the time of the commit.
    """
    first: list[Mapping[str, Any]] = []
    if time_ms is not None:
        # Readers of a change feed take `_commit_timestamp` from the commitInfo, because these log
        # files have no modification times.
        first.append({"commitInfo": {"inCommitTimestamp": time_ms, "timestamp": time_ms}})
    first += [action_to_json(action) for action in (protocol, metadata) if action is not None]
    return b"".join([*(dumps(action) + b"\n" for action in first), *lines])
