"""The changes of a range of versions, version by version.

Owns which files of a commit are its changes. Commits are read in batches of bounded size: once to
check all of them before anything is answered and, if they are more than one batch, again to answer.

Protocol: Data Change Files, Change Data Files
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self
from typing import Protocol as Structural

import pyarrow as pa

from deltalog._util.kernels import compute
from deltalog.log.history import file_times_ms
from deltalog.log.listing import list_log
from deltalog.log.reader import VERSION_COLUMN, parse_commits, read_in_batches
from deltalog.protocol.configuration import TableConfiguration
from deltalog.sharing.server.faults import invalid
from deltalog.sharing.server.file_lines import check_paths
from deltalog.sharing.server.middleware import check_client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog.log.names import LogFile
    from deltalog.log.reader import CommitTable
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.actions.model import Metadata, Protocol
    from deltalog.sharing.server.tables import ServedTable

_MERGE_METRICS: Final = (
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsDeleted",
)


class FileBatch(Structural):
    """Some files, of which a page may take a slice."""

    @property
    def num_rows(self) -> int:
        """The number of files."""
        ...

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """Return some of the files."""
        ...


@dataclass(frozen=True)
class VersionChanges:
    """The changes of one version.

    Args:
        parts: files by the kind of their lines; `CommitRange` gives columns of the log.
        protocol: if the version changed it.
        metadata: if the version changed it.
    """

    version: int
    timestamp_ms: int
    parts: tuple[tuple[str, FileBatch], ...]
    protocol: Protocol | None
    metadata: Metadata | None


class CommitRange:
    """The commits from one version to another, both included.

    Args:
        table: of the commits.
        first: snapshot of the first version.
        last: snapshot of the last version.
        with_feed: for the change data feed: versions with change files have no other changes.

    Raises:
        Fault: 400 if a commit of the range was cleaned up.
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
        """Refuse a range that cannot be shared, before a part of it is answered.

        Raises:
            Fault: 400 with the version in which the change data feed was off.
            UnsafePathError: a commit names a file outside of the table.

        Cost: every commit of the range.
        """
        protocol, metadata = self._first.protocol, self._first.metadata
        self._check_version(self._first.version, protocol, metadata)
        for number, (versions, table) in enumerate(self._read()):
            check_client()
            # Kept, so that `versions` does not read the commits of a short range again.
            self._single = None if number else (versions, table)
            for files in (table.adds, table.removes, table.cdc):
                check_paths(files.column("path"), self._table.store.root)
            protocols, metadatas = dict(table.protocols), dict(table.metadatas)
            for version in sorted({*protocols, *metadatas}):
                protocol = protocols.get(version, protocol)
                metadata = metadatas.get(version, metadata)
                self._check_version(version, protocol, metadata)

    def versions(self) -> Iterator[VersionChanges]:
        """Yield the changes of each version, ascending.

        Cost: every commit of the range, unless `check` has read them as one batch.
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
        """Return the commit time: the in-commit timestamp where the table has them."""
        # They may have been enabled within the range; earlier versions have times of files.
        own = self._last.configuration.in_commit_timestamps
        time_ms = info.get("inCommitTimestamp")
        if own is not None and own.covers(version) and isinstance(time_ms, int):
            return time_ms
        return self._times.get(version, 0)

    def _parts(
        self, version: int, table: CommitTable, info: Mapping[str, Any]
    ) -> Iterator[tuple[str, pa.Table]]:
        if self._with_feed:
            # "If there are cdc actions in this version, then read only those to get the row-level
            # changes, and skip the remaining add and remove actions in this version."
            cdc = _of_version(table.cdc, version)
            if cdc.num_rows:
                yield "cdf", cdc
                return
            if _changed_no_row(info):
                return
        # Commits that only rearrange rows have no changes, as in the reference server.
        for kind, files in (("remove", table.removes), ("add", table.adds)):
            changing = _of_version(files, version)
            changing = changing.filter(changing.column("dataChange"))
            if kind == "remove":
                changing = self._with_partition_values(changing, version)
            if changing.num_rows:
                yield kind, changing

    def _with_partition_values(self, removes: pa.Table, version: int) -> pa.Table:
        """Return removes, with missing partition values taken from the adds of the same files."""
        # Writers may leave them out of removes (`extendedFileMetadata` is false), but the protocol
        # requires them in `remove` lines.
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
    """Whether a MERGE changed nothing: the files it rewrote hold the same rows (SHARE-CDF-08)."""
    metrics = info.get("operationMetrics")
    if info.get("operation") != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(str(metrics.get(name)) == "0" for name in _MERGE_METRICS)
