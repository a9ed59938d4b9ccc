"""The changes of a view, for the change data feed and for queries with a starting version.

Owns which changes a recipient sees: those of the rows that the view shows, where the row before an
update and the row after it are two rows. The changed rows are written to new files in one schema,
that of the last version of the range.

Protocol: Read Change Data Feed from a Table, Read Data from a Table (startingVersion)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltalog.cached import cached_property
from deltalog.configuration import TableConfiguration
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.scan.changes import change_tasks, changes_spec, incompatibility
from deltalog.schema import StructType, canonical_path_of
from deltalog.sharing.server.commit_range import CommitRange
from deltalog.sharing.server.faults import invalid, unsupported
from deltalog.sharing.server.urls import ViewFileSource
from deltalog.sharing.server.view_lines import encode_view_line
from deltalog.sharing.server.views import column_identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.actions.model import Metadata, Protocol
    from deltalog.scan.task import ReadSpec, ScanTask
    from deltalog.sharing.server.answers import TableRequest
    from deltalog.sharing.server.commit_range import VersionChanges
    from deltalog.sharing.server.formats import ResponseFormat
    from deltalog.sharing.server.tables import ServedTable
    from deltalog.sharing.server.views import View
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ViewTasks:
    """Files of which the view's rows are to be written."""

    tasks: tuple[ScanTask, ...]

    @property
    def num_rows(self) -> int:
        """The number of files."""
        return len(self.tasks)

    def slice(self, offset: int = 0, length: int | None = None) -> ViewTasks:
        """Return some of the files."""
        end = None if length is None else offset + length
        return ViewTasks(self.tasks[offset:end])


class ViewCommitRange(CommitRange):
    """The commits of a range, as a view shows them.

    Args:
        view: of the version in whose schema rows are written.
        table: of the commits.
        first: snapshot of the first version.
        last: snapshot of the last version.
        with_feed: for the change data feed.
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
        """Yield the files without those that were added again with the same rows of the view."""
        removes, adds = _rows(parts, "remove"), _rows(parts, "add")
        removed = {row["path"]: row for row in removes}
        # A commit that replaces a deletion vector removes and adds the same file. If no row of the
        # view is affected, its lines would reveal that hidden rows were deleted.
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
        """Return the tasks with rows of the view: pages count these, in an order of their own."""
        found = sorted(tasks, key=self._view.key)
        return tuple(task for task in found if self._view.make_file(task).num_rows)

    def _differ(self, add: dict[str, Any], remove: dict[str, Any]) -> bool:
        """Whether two deletion vectors of the same file differ in a row of the view."""
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
        """The view's columns, and what changed in each row."""
        view = self._view
        try:
            # Clients take version and time of the commit from the line; `_change_type` is in rows.
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
        # Files of all versions are written in the schema of the last one.
        if incompatibility(own, needed, then.column_mapping_mode) is not None:
            raise invalid(
                f"the table had another schema in version {version}; request the versions before "
                "and after the change separately"
            )

    @cached_property
    def _needed_columns(self) -> StructType:
        """The view's columns and those of its row filter."""
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
        response_format: of the answer.
        view: that is shared.
        request: of a recipient.
        with_feed: the changes are those of the change data feed.
    """

    response_format: ResponseFormat
    view: View
    request: TableRequest
    with_feed: bool

    def chunks(
        self, files: ViewTasks, kind: str, *, version: int, timestamp_ms: int
    ) -> Iterator[bytes]:
        """Yield the lines of some files of one version; each file is written before its line."""
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
