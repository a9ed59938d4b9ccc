"""What changed in tables of which a share shows a part.

Owns which changes may be seen: each changed row is judged by itself, as any row is. The row before
an update and the row after it are two rows, and what is not shown of them is cut. Files of changes
are written anew, all in one schema, that of the last version asked for.

Protocol: Read Change Data Feed from a Table, Read Data from a Table (startingVersion)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import dumps
from deltalog.configuration import TableConfiguration
from deltalog.errors import InvalidInputError
from deltalog.expressions import columns as columns_of
from deltalog.scan.changes import change_tasks, changes_spec, incompatibility
from deltalog.schema import StructType, canonical_path_of
from deltalog.sharing.server.faults import invalid, not_found, unsupported
from deltalog.sharing.server.history import History
from deltalog.sharing.server.urls import ShownOf
from deltalog.sharing.server.views import identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.actions.model import Metadata, Protocol
    from deltalog.scan.task import ReadSpec, ScanTask
    from deltalog.sharing.server.answers import Asked, Tools
    from deltalog.sharing.server.formats import Format
    from deltalog.sharing.server.history import VersionChanges
    from deltalog.sharing.server.tables import SharedTable
    from deltalog.sharing.server.views import ShownFile, View
    from deltalog.snapshot import Snapshot

_DELTA_KINDS: Final = {"file": "add", "add": "add", "cdf": "cdc", "remove": "remove"}


@dataclass(frozen=True, slots=True)
class ShownTasks:
    """Files whose shown rows are to be told."""

    tasks: tuple[ScanTask, ...]

    @property
    def num_rows(self) -> int:
        """How many files."""
        return len(self.tasks)

    def slice(self, offset: int = 0, length: int | None = None) -> ShownTasks:
        """Some of them."""
        end = None if length is None else offset + length
        return ShownTasks(self.tasks[offset:end])


class ViewHistory(History):
    """The commits of a range, as far as a share shows them; arguments as those of `History`.

    Args:
        view: what is shown, of the version in whose schema rows are written.
    """

    def __init__(
        self, view: View, table: SharedTable, first: Snapshot, last: Snapshot, *, with_feed: bool
    ) -> None:
        super().__init__(table, first, last, with_feed=with_feed)
        self._view = view

    def versions(self) -> Iterator[VersionChanges]:
        """What each version changed; protocol and metadata are those of the view throughout."""
        for change in super().versions():
            parts: dict[str, Any] = dict(change.parts)
            shown = self._feed(parts) if self._with_feed else self._moved(parts)
            yield replace(change, parts=tuple(shown), protocol=None, metadata=None)

    def _feed(self, parts: dict[str, Any]) -> Iterator[tuple[str, ShownTasks]]:
        tasks = self._changes(_rows(parts, "cdf"), _rows(parts, "add"), _rows(parts, "remove"))
        if tasks:
            yield "cdf", ShownTasks(tasks)

    def _moved(self, parts: dict[str, Any]) -> Iterator[tuple[str, ShownTasks]]:
        """Added and removed files, without those that went on with the same shown rows."""
        removes, adds = _rows(parts, "remove"), _rows(parts, "add")
        removed = {row["path"]: row for row in removes}
        same = {
            row["path"]
            for row in adds
            if row["path"] in removed and not self._differ(row, removed[row["path"]])
        }
        for kind, rows in (("remove", removes), ("add", adds)):
            tasks = tuple(self._view.task(row) for row in rows if row["path"] not in same)
            if tasks:
                yield kind, ShownTasks(tasks)

    def _differ(self, add: dict[str, Any], remove: dict[str, Any]) -> bool:
        """Whether deletion vectors of the same file differ in any shown row."""
        tasks = self._changes([], [add], [remove])
        return any(self._view.show(self._view.name(t), t).made.num_rows for t in tasks)

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
        """The shown columns, and what happened to each row."""
        view = self._view
        try:
            columns = [*view.columns, "_change_type"]
            return changes_spec(view.snapshot, columns, view.row_filter)
        except InvalidInputError:
            raise unsupported("changes are not shared for this table") from None

    def _check_version(self, version: int, protocol: Protocol, metadata: Metadata) -> None:
        super()._check_version(version, protocol, metadata)
        then = TableConfiguration(protocol, metadata)
        needed = self._needed
        ids = {identity(field, self._view.snapshot.configuration) for field in needed}
        own = StructType([field for field in then.schema if identity(field, then) in ids])
        if incompatibility(own, needed, then.column_mapping_mode) is not None:
            raise invalid(
                f"the table had another schema in version {version}; ask for the versions before "
                "and after the change apart"
            )

    @cached_property
    def _needed(self) -> StructType:
        """The columns that are shown or decide what is shown."""
        view = self._view
        schema = view.snapshot.configuration.schema
        paths = [canonical_path_of(schema, name) for name in view.columns]
        if view.row_filter is not None:
            paths += [canonical_path_of(schema, path) for path in columns_of(view.row_filter)]
        names = {path[0] for path in paths}
        return StructType([field for field in schema if field.name in names])


@dataclass(frozen=True)
class ShownLines:
    """Writes the lines of changes; files without a shown row are not mentioned.

    Args:
        form: of the answer.
        view: what is shown.
        asked: who asks.
        tools: of the server.
        with_feed: the changes are those of the change data feed.
        expires_ms: when the URLs end.
    """

    form: Format
    view: View
    asked: Asked
    tools: Tools
    with_feed: bool
    expires_ms: int

    def chunks(
        self, files: ShownTasks, kind: str, *, version: int, timestamp_ms: int
    ) -> Iterator[bytes]:
        """The lines of some files of one version, written while they are told."""
        asked = self.asked
        sign = self.tools.urls.own_signer(
            asked.table.name,
            asked.recipient,
            asked.base,
            self.expires_ms,
            view=ShownOf(self.view.snapshot.version, version, self.with_feed),
        )
        moment = {"version": version, "timestamp": timestamp_ms}
        for task in files.tasks:
            shown = self.view.show(self.view.name(task), task)
            if shown.made.num_rows:
                url = sign(shown.name)
                yield shown_line(self.form, kind, shown, url, self.expires_ms, moment)


def find_change(view: View, table: SharedTable, of: ShownOf, name: str) -> ShownFile:
    """What is shown of a file of changes; see `View.find`.

    Raises:
        Fault: 404: the commit has no such file.
    """
    found = view.known(name)
    if found is not None:
        return found
    snapshot = table.at(of.version if of.commit is None else of.commit)
    history = ViewHistory(view, table, snapshot, snapshot, with_feed=of.with_feed)
    for change in history.versions():
        for _, files in change.parts:
            for task in files.tasks if isinstance(files, ShownTasks) else ():
                if view.name(task) == name:
                    return view.show(name, task)
    raise not_found("file")


def shown_line(
    form: Format,
    kind: str,
    shown: ShownFile,
    url: str,
    expires_ms: int,
    moment: dict[str, int] | None = None,
) -> bytes:
    """The line of a file that was written for an answer.

    Args:
        form: of the answer.
        kind: `file`, `add`, `cdf` or `remove`.
        shown: the file.
        url: where it is fetched.
        expires_ms: when the URL ends.
        moment: `version` and `timestamp` of a change.
    """
    moment = moment or {}
    told: dict[str, Any] = {"partitionValues": {}, "size": shown.made.size_bytes}
    if kind in {"file", "add"}:
        # How many rows are shown is known to who reads them; all other statistics are left out.
        told["stats"] = dumps({"numRecords": shown.made.num_rows}).decode()
    values: dict[str, Any] = {"id": shown.name}
    if form.is_delta:
        action = {"path": url, **told, "dataChange": kind != "cdf"}
        if kind == "remove":
            action |= {"deletionTimestamp": moment["timestamp"], "extendedFileMetadata": True}
        elif kind != "cdf":
            action["modificationTime"] = moment.get("timestamp", 0)
        values |= moment
        values["deltaSingleAction"] = {_DELTA_KINDS[kind]: action}
        kind = "file"
    else:
        values |= {"url": url, **told, **moment}
    values["expirationTimestamp"] = expires_ms
    return dumps({kind: values}) + b"\n"


def _rows(parts: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return parts[kind].to_pylist() if kind in parts else []
