"""The commits of a range of versions, taken apart version by version.

Owns which files of a version tell its changes. Commits are read in batches of bounded size: once to
check them all before anything is answered, and where they are many once more to tell them.

Protocol: Data Change Files, Change Data Files
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self
from typing import Protocol as Structural

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.actions.codec import metadata_from_json, protocol_from_json
from deltalog.configuration import TableConfiguration
from deltalog.log.history import file_times_ms
from deltalog.log.listing import list_log
from deltalog.log.reader import VERSION_COLUMN, parse_commits, read_in_batches
from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.file_lines import check_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog.actions.model import Metadata, Protocol
    from deltalog.log.names import LogFile
    from deltalog.log.reader import CommitTable
    from deltalog.sharing.server.tables import SharedTable
    from deltalog.snapshot import Snapshot

_ROWS_OF_A_MERGE: Final = (
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsDeleted",
)


class Part(Structural):
    """Some files, of which a page may take a slice."""

    @property
    def num_rows(self) -> int:
        """How many files."""
        ...

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """Some of them."""
        ...


@dataclass(frozen=True)
class VersionChanges:
    """What one version changed.

    Args:
        parts: kind of line and its files; `History` gives the columns of these.
        protocol: if it changed.
        metadata: if it changed.
    """

    version: int
    timestamp_ms: int
    parts: tuple[tuple[str, Part], ...]
    protocol: Protocol | None
    metadata: Metadata | None


class History:
    """The commits from one version to another, both included.

    Args:
        table: whose commits.
        first: of the first version.
        last: of the last version.
        with_feed: change files tell the changes of versions that have some.

    Raises:
        Fault: 400: a commit of the range was cleaned up.
    """

    def __init__(
        self, table: SharedTable, first: Snapshot, last: Snapshot, *, with_feed: bool
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
        self._single: CommitTable | None = None

    def check(self) -> None:
        """Refuse a range that cannot be told, before anything of it is.

        Raises:
            Fault: 400: the change data feed was off in a version, which the message names.
            UnsafePathError: a version names a file outside of the table.

        Cost: every commit of the range.
        """
        self._check_version(self._first.version, self._first.protocol, self._first.metadata)
        protocol, metadata = self._first.protocol, self._first.metadata
        for number, table in enumerate(self._read()):
            self._single = None if number else table
            for files in (table.adds, table.removes, table.cdc):
                check_paths(files.column("path"), self._table.store.root)
            protocols = {v: protocol_from_json(node) for v, node in table.protocol_nodes}
            metadatas = {v: metadata_from_json(node) for v, node in table.metadata_nodes}
            for version in sorted({*protocols, *metadatas}):
                protocol = protocols.get(version, protocol)
                metadata = metadatas.get(version, metadata)
                self._check_version(version, protocol, metadata)

    def versions(self) -> Iterator[VersionChanges]:
        """What each version changed, ascending.

        Cost: every commit of the range, unless they were few and have been read by `check`.
        """
        position = 0
        tables = [self._single] if self._single is not None else self._read()
        for table in tables:
            last = position + self._count(table, position)
            for commit in self._commits[position:last]:
                yield self._version(commit.version, table)
            position = last

    def _read(self) -> Iterator[CommitTable]:
        self._ends: list[int] = []
        for batch in read_in_batches(self._table.store, self._commits):
            self._ends.append(batch[-1][0].version)
            yield parse_commits(batch, commit_infos=True)

    def _count(self, table: CommitTable, position: int) -> int:
        """How many versions a batch holds."""
        if table is self._single:
            return len(self._commits)
        return self._ends[-1] - self._commits[position].version + 1

    def _check_version(self, version: int, protocol: Protocol, metadata: Metadata) -> None:
        if not self._with_feed:
            return
        if not TableConfiguration(protocol, metadata).is_active("changeDataFeed"):
            raise invalid(f"cdf is not enabled on table in version {version}")

    def _version(self, version: int, table: CommitTable) -> VersionChanges:
        info = table.commit_infos.get(version, {})
        protocols = {v: node for v, node in table.protocol_nodes if v == version}
        metadatas = {v: node for v, node in table.metadata_nodes if v == version}
        return VersionChanges(
            version=version,
            timestamp_ms=self._time_ms(version, info),
            parts=tuple(self._parts(version, table, info)),
            protocol=protocol_from_json(protocols[version]) if protocols else None,
            metadata=metadata_from_json(metadatas[version]) if metadatas else None,
        )

    def _time_ms(self, version: int, info: Mapping[str, Any]) -> int:
        """When a version was committed: by itself where the table has in-commit timestamps."""
        own = self._last.configuration.in_commit_timestamps
        time_ms = info.get("inCommitTimestamp")
        if own is not None and own.covers(version) and isinstance(time_ms, int):
            return time_ms
        return self._times.get(version, 0)

    def _parts(
        self, version: int, table: CommitTable, info: Mapping[str, Any]
    ) -> Iterator[tuple[str, pa.Table]]:
        if self._with_feed:
            cdc = _of_version(table.cdc, version)
            if cdc.num_rows:
                yield "cdf", cdc
                return
            if _changed_no_row(info):
                return
        for kind, files in (("remove", table.removes), ("add", table.adds)):
            changing = _of_version(files, version)
            changing = changing.filter(pc.field("dataChange"))
            if kind == "remove":
                changing = self._with_partition_values(changing, version)
            if changing.num_rows:
                yield kind, changing

    def _with_partition_values(self, removes: pa.Table, version: int) -> pa.Table:
        """Removes that lack their partition values take them from the adds that they end."""
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
    return files.filter(pc.field(VERSION_COLUMN) == version).drop_columns([VERSION_COLUMN])


def _changed_no_row(info: Mapping[str, Any]) -> bool:
    """Whether a MERGE found nothing to do: what it rewrote are the same rows (SHARE-CDF-08)."""
    metrics = info.get("operationMetrics")
    if info.get("operation") != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(str(metrics.get(name)) == "0" for name in _ROWS_OF_A_MERGE)
