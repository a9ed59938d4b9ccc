"""Answers to `GET …/changes`, and to queries with a starting version: the changes of a range.

This module decides which ranges may be requested, and the order of the lines.

Protocol: Read Change Data Feed from a Table, Read Data from a Table (startingVersion)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self
from typing import Protocol as Structural

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.json import dumps
from deltalog._util.kernels import compute
from deltalog.data.scan.changes import change_tasks, changes_spec, incompatibility
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.log.history import file_times_ms
from deltalog.log.listing import list_log
from deltalog.log.reader import VERSION_COLUMN, CommitTable, parse_commits, read_in_batches
from deltalog.protocol.configuration import TableConfiguration
from deltalog.schema import StructType, canonical_path_of
from deltalog.sharing.server.answers import Answer, TableRequest, encode_lines
from deltalog.sharing.server.faults import invalid, unsupported
from deltalog.sharing.server.file_lines import FileLines, check_paths
from deltalog.sharing.server.formats import (
    choose_range_format,
    choose_view_format,
    head_lines,
    metadata_line,
)
from deltalog.sharing.server.middleware import check_client
from deltalog.sharing.server.pages import FilePage, end_of_page, start_of_page
from deltalog.sharing.server.urls import ViewFileSource
from deltalog.sharing.server.views import View, ViewFile, column_identity
from deltalog.sharing.wire.lines import DeltaProtocol, encode_file_line, encode_line
from deltalog.sharing.wire.requests import ChangesQuery, TableQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog.data.scan.reader import ScanTask
    from deltalog.data.scan.task import ReadSpec
    from deltalog.log.names import LogFile
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.actions.model import Metadata, Protocol
    from deltalog.sharing.server.formats import ResponseFormat
    from deltalog.sharing.server.tables import ServedTable


# --- Reading the changes of a range, version by version


_MERGE_METRICS: Final = (
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsDeleted",
)


class FileBatch(Structural):
    """A batch of files that can be sliced at the limits of a page."""

    @property
    def num_rows(self) -> int:
        """Return the number of files."""
        ...

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """Return `length` files from `offset` on."""
        ...


@dataclass(frozen=True)
class VersionChanges:
    """The changes of one version.

    Args:
        parts: files by the kind of their lines; in a `CommitRange`, columns of the log.
        protocol: the new protocol, if the version changed it.
        metadata: the new metadata, if the version changed it.
    """

    version: int
    timestamp_ms: int
    parts: tuple[tuple[str, FileBatch], ...]
    protocol: Protocol | None
    metadata: Metadata | None


class CommitRange:
    """The commits from one version to another, both inclusive.

    Args:
        table: table of the commits.
        first: snapshot of the first version.
        last: snapshot of the last version.
        with_feed: whether to return the change data feed. In it, the `cdc` files of a version
            replace the version's other changes.

    Raises:
        Fault: 400 if log clean-up has deleted a commit of the range.
    """

    def __init__(
        self, table: ServedTable, first: Snapshot, last: Snapshot, *, with_feed: bool
    ) -> None:
        self._table = table
        self._first = first
        self._last = last
        self._with_feed = with_feed
        listing = list_log(table.store, from_version=0)
        self._commits: list[LogFile] = []
        for version in range(first.version, last.version + 1):
            if version not in listing.commits:
                raise invalid(f"the changes of version {version} cannot be read any more")
            self._commits.append(listing.commits[version])
        self._times = file_times_ms(listing.commits.values())
        self._single: tuple[list[int], CommitTable] | None = None

    def check(self) -> None:
        """Raise if the range cannot be shared; called before any line is sent.

        Raises:
            Fault: 400 with the version in which the change data feed was disabled.
            UnsafePathError: a commit names a file outside of the table.

        Cost: reads every commit of the range.
        """
        protocol, metadata = self._first.protocol, self._first.metadata
        self._check_version(self._first.version, protocol, metadata)
        for number, (versions, table) in enumerate(self._read()):
            check_client()
            # If the range has only one batch, store it, so that `versions` does not read it again.
            self._single = None if number else (versions, table)
            for files in (table.adds, table.removes, table.cdc):
                check_paths(files.column("path"), self._table.store.root)
            protocols, metadatas = dict(table.protocols), dict(table.metadatas)
            for version in sorted({*protocols, *metadatas}):
                protocol = protocols.get(version, protocol)
                metadata = metadatas.get(version, metadata)
                self._check_version(version, protocol, metadata)

    def versions(self) -> Iterator[VersionChanges]:
        """Yield the changes of each version in ascending order.

        Cost: reads every commit of the range, unless `check` has read them as one batch.
        """
        for versions, table in [self._single] if self._single is not None else self._read():
            protocols, metadatas = dict(table.protocols), dict(table.metadatas)
            for version in versions:
                check_client()
                info = table.commit_infos.get(version, {})
                yield VersionChanges(
                    version=version,
                    timestamp_ms=self._time_ms(version, info),
                    parts=tuple(self._parts(version, table, info)),
                    protocol=protocols.get(version),
                    metadata=metadatas.get(version),
                )

    def _read(self) -> Iterator[tuple[list[int], CommitTable]]:
        """Yield batches of commits: their versions and their actions."""
        for batch in read_in_batches(self._table.store, self._commits):
            yield [file.version for file, _ in batch], parse_commits(batch, commit_infos=True)

    def _check_version(self, version: int, protocol: Protocol, metadata: Metadata) -> None:
        if not self._with_feed:
            return
        if not TableConfiguration(protocol, metadata).is_active("changeDataFeed"):
            raise invalid(f"cdf is not enabled on table in version {version}")

    def _time_ms(self, version: int, info: Mapping[str, Any]) -> int:
        """Return the commit time: the in-commit timestamp, or else the time of the file."""
        # If in-commit timestamps were enabled within the range, use the times of the log files for
        # the versions before that.
        own = self._last.configuration.in_commit_timestamps
        time_ms = info.get("inCommitTimestamp")
        if own is not None and own.covers(version) and isinstance(time_ms, int):
            return time_ms
        return self._times.get(version, 0)

    def _parts(
        self, version: int, table: CommitTable, info: Mapping[str, Any]
    ) -> Iterator[tuple[str, pa.Table]]:
        if self._with_feed:
            # The Delta protocol: "If there are cdc actions in this version, then read only those to
            # get the row-level changes, and skip the remaining add and remove actions in this
            # version."
            cdc = _of_version(table.cdc, version)
            if cdc.num_rows:
                yield "cdf", cdc
                return
            if _changed_no_row(info):
                return
        # As in the reference server, actions with `dataChange: false` are not changes.
        for kind, files in (("remove", table.removes), ("add", table.adds)):
            changing = _of_version(files, version)
            changing = changing.filter(changing.column("dataChange"))
            if kind == "remove":
                changing = self._with_partition_values(changing, version)
            if changing.num_rows:
                yield kind, changing

    def _with_partition_values(self, removes: pa.Table, version: int) -> pa.Table:
        """Return removes with missing partition values added from the adds of the same files."""
        # The log may omit the partition values of removes without `extendedFileMetadata`, but
        # `remove` lines must contain them.
        bare = removes.column("partitionValues").null_count
        if not bare or not self._last.configuration.partition_columns or not version:
            return removes
        files = self._table.at(version - 1).files(["path", "partitionValues"])
        known = dict(zip(*(column.to_pylist() for column in files.columns), strict=True))
        values = [
            own if own is not None else known.get(path)
            for path, own in zip(
                removes.column("path").to_pylist(),
                removes.column("partitionValues").to_pylist(),
                strict=True,
            )
        ]
        place = removes.schema.get_field_index("partitionValues")
        kind = removes.schema.field(place)
        return removes.set_column(place, kind, pa.array(values, kind.type))


def _of_version(files: pa.Table, version: int) -> pa.Table:
    is_of_version = compute.equal(files.column(VERSION_COLUMN), version)
    return files.filter(is_of_version).drop_columns([VERSION_COLUMN])


def _changed_no_row(info: Mapping[str, Any]) -> bool:
    """Return whether a MERGE rewrote files without changing any row (SHARE-CDF-08)."""
    metrics = info.get("operationMetrics")
    if info.get("operation") != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(str(metrics.get(name)) == "0" for name in _MERGE_METRICS)


# --- Answering requests for changes


def answer_changes(request: TableRequest, query: ChangesQuery) -> Answer:
    """Return the change data feed of a range.

    Raises:
        Fault: 400 if the range is missing or not shared, or has no change data feed.
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
        # The protocol: "Converted to a version created greater or equal to this timestamp."
        first = table.first_version_from(query.starting_timestamp_ms or 0, latest)
    if query.ending_timestamp_ms is not None:
        # The protocol: "Converted to a version created earlier than or at the timestamp."
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
    """The source of a range's lines: files of the table, or files that are written for a view.

    Args:
        head: protocol and metadata of the first lines.
        hash_name: name of the hash that made the ids of files.
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
        """Check the whole range, then return the answer."""
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
        # For the format delta, the official client writes a Delta log, and needs the version for
        # this log.
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
            # The page is full. There is a next page only if a later version has lines.
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
        """Yield lines for the protocol and metadata of a version that changed them."""
        if change.version == self._first.version:
            return  # the head of the answer contains these lines
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


# --- The changes of a view, for the change data feed and for queries with a starting version


@dataclass(frozen=True, slots=True)
class ViewTasks:
    """Tasks that read the rows of a view from files of the table."""

    tasks: tuple[ScanTask, ...]

    @property
    def num_rows(self) -> int:
        """Return the number of files."""
        return len(self.tasks)

    def slice(self, offset: int = 0, length: int | None = None) -> ViewTasks:
        """Return `length` files from `offset` on."""
        end = None if length is None else offset + length
        return ViewTasks(self.tasks[offset:end])


class ViewCommitRange(CommitRange):
    """The commits of a range, as seen through a view.

    Args:
        view: the view of the version that determines the schema of the rows.
        table: table of the commits.
        first: snapshot of the first version.
        last: snapshot of the last version.
        with_feed: whether to return the change data feed.
    """

    def __init__(
        self, view: View, table: ServedTable, first: Snapshot, last: Snapshot, *, with_feed: bool
    ) -> None:
        super().__init__(table, first, last, with_feed=with_feed)
        self._view = view

    def versions(self) -> Iterator[VersionChanges]:
        """Yield the changes of each version; a view's protocol and metadata do not change."""
        for change in super().versions():
            parts: dict[str, Any] = dict(change.parts)
            shown = self._feed(parts) if self._with_feed else self._added_and_removed(parts)
            yield replace(change, parts=tuple(shown), protocol=None, metadata=None)

    def _feed(self, parts: dict[str, Any]) -> Iterator[tuple[str, ViewTasks]]:
        tasks = self._changes(_rows(parts, "cdf"), _rows(parts, "add"), _rows(parts, "remove"))
        if shown := self._shown(tasks):
            yield "cdf", ViewTasks(shown)

    def _added_and_removed(self, parts: dict[str, Any]) -> Iterator[tuple[str, ViewTasks]]:
        """Yield removed and added files, except files that were added again with the same rows."""
        removes, adds = _rows(parts, "remove"), _rows(parts, "add")
        removed = {row["path"]: row for row in removes}
        # A commit that replaces a deletion vector removes and adds the same file. If no row of the
        # view is affected, lines for the file would reveal that hidden rows were deleted.
        same = {
            row["path"]
            for row in adds
            if row["path"] in removed and not self._differ(row, removed[row["path"]])
        }
        for kind, rows in (("remove", removes), ("add", adds)):
            tasks = tuple(self._view.task(row) for row in rows if row["path"] not in same)
            if shown := self._shown(tasks):
                yield kind, ViewTasks(shown)

    def _shown(self, tasks: tuple[ScanTask, ...]) -> tuple[ScanTask, ...]:
        """Return the tasks whose files contain rows of the view, in the order of pages."""
        found = sorted(tasks, key=self._view.key)
        return tuple(task for task in found if self._view.make_file(task).num_rows)

    def _differ(self, add: dict[str, Any], remove: dict[str, Any]) -> bool:
        """Return whether two deletion vectors of a file differ in a row of the view."""
        tasks = self._changes([], [add], [remove])
        return any(self._view.make_file(task).num_rows for task in tasks)

    def _changes(
        self,
        cdc: list[dict[str, Any]],
        adds: list[dict[str, Any]],
        removes: list[dict[str, Any]],
    ) -> tuple[ScanTask, ...]:
        snapshot = self._view.snapshot
        return tuple(change_tasks(snapshot, self._spec, cdc=cdc, adds=adds, removes=removes))

    @cached_property
    def _spec(self) -> ReadSpec:
        """Return the view's columns and the columns of the change."""
        view = self._view
        try:
            # Clients take the version and time of the commit from the line, but `_change_type` from
            # the file.
            columns = [*view.columns, "_change_type"]
            return changes_spec(view.snapshot, columns, view.row_filter)
        except InvalidInputError:
            raise unsupported("changes are not shared for this table") from None

    def _check_version(self, version: int, protocol: Protocol, metadata: Metadata) -> None:
        super()._check_version(version, protocol, metadata)
        then = TableConfiguration(protocol, metadata)
        needed = self._needed_columns
        ids = {column_identity(field, self._view.snapshot.configuration) for field in needed}
        own = StructType([field for field in then.schema if column_identity(field, then) in ids])
        # The files of all versions are written with the schema of the last version of the range.
        if incompatibility(own, needed, then.column_mapping_mode) is not None:
            raise invalid(
                f"the table had another schema in version {version}; request the versions before "
                "and after the change separately"
            )

    @cached_property
    def _needed_columns(self) -> StructType:
        """Return the columns of the view and of its row filter."""
        view = self._view
        schema = view.snapshot.configuration.schema
        paths = [canonical_path_of(schema, name) for name in view.columns]
        if view.row_filter is not None:
            paths += [canonical_path_of(schema, path) for path in columns_of(view.row_filter)]
        names = {path[0] for path in paths}
        return StructType([field for field in schema if field.name in names])


@dataclass(frozen=True)
class ViewChangeLines:
    """Encodes the lines of a view's changes.

    Args:
        response_format: response format of the answer.
        view: the shared view.
        request: a recipient's request.
        with_feed: whether the changes are those of the change data feed.
    """

    response_format: ResponseFormat
    view: View
    request: TableRequest
    with_feed: bool

    def chunks(
        self, files: ViewTasks, kind: str, *, version: int, timestamp_ms: int
    ) -> Iterator[bytes]:
        """Yield the lines of files of one version; write each file before its line."""
        source = ViewFileSource(self.view.snapshot.version, version, self.with_feed)
        sign = self.request.signer(source)
        change = {"version": version, "timestamp": timestamp_ms}
        for task in files.tasks:
            file = self.view.make_file(task)
            yield encode_view_line(
                self.response_format,
                kind,
                file,
                url=sign(file.name),
                expires_ms=self.request.url_expiry_ms,
                change=change,
            )


def changed_tasks(view: View, table: ServedTable, source: ViewFileSource) -> Iterator[ScanTask]:
    """Yield the tasks of a view's changes in one commit."""
    snapshot = table.at(source.version if source.commit is None else source.commit)
    commits = ViewCommitRange(view, table, snapshot, snapshot, with_feed=source.with_feed)
    for change in commits.versions():
        for _, files in change.parts:
            if isinstance(files, ViewTasks):
                yield from files.tasks


def _rows(parts: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return parts[kind].to_pylist() if kind in parts else []


# --- Encoding the line of a view's file


def encode_view_line(
    response_format: ResponseFormat,
    kind: str,
    file: ViewFile,
    *,
    url: str,
    expires_ms: int,
    change: dict[str, int] | None = None,
) -> bytes:
    """Return the line of a file of a view.

    Args:
        response_format: response format of the answer.
        kind: `file`, `add`, `cdf` or `remove`.
        file: the file; its name is its id.
        url: URL of the file.
        expires_ms: when the URL expires.
        change: `version` and `timestamp`, if the line describes a change.
    """
    change = change or {}
    values: dict[str, Any] = {"partitionValues": {}, "size": file.size_bytes}
    if kind in {"file", "add"}:
        # Do not send the statistics of the table's file, because they also describe hidden rows.
        values["stats"] = dumps({"numRecords": file.num_rows}).decode()
    if response_format.is_delta:
        values["dataChange"] = kind != "cdf"
        if kind == "remove":
            values |= {"deletionTimestamp": change["timestamp"], "extendedFileMetadata": True}
        elif kind != "cdf":
            values["modificationTime"] = change.get("timestamp", 0)
    return encode_file_line(
        kind,
        is_delta=response_format.is_delta,
        file_id=file.name,
        url=url,
        values=values,
        change=change,
        expires_ms=expires_ms,
    )
