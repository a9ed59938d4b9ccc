"""Restore a table: to the contents of an older version, or to the files that still exist.

A restore adds and removes only the files that differ. Table features, column ids and high
water marks of identity columns are never rolled back.

A repair removes files that the log references but that no longer exist. Their rows are already
lost. After the repair, the other rows can be read again.

Protocol: Add File and Remove File, Column Mapping, Identity Columns
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import pyarrow as pa

from deltalog._util.kernels import compute, exact_sum
from deltalog._util.paths import canonical_paths, decode_path
from deltalog.errors import DataFileMissingError
from deltalog.log.replay import file_keys
from deltalog.operations.operation import Operation
from deltalog.operations.vacuum import existing, vector_path
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.column_mapping import (
    HAS_DROPPED_OR_RENAMED_PROPERTY,
    Mode,
    has_lost_names,
    physical_name,
)
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features.clustering import CLUSTERING_DOMAIN
from deltalog.protocol.features.identity_columns import identity_columns, with_high_water_marks
from deltalog.protocol.features.protocol_change import merge, supported_features
from deltalog.protocol.table_change.drop import with_row_ids_of
from deltalog.schema import StructType, encode_schema, find_field

if TYPE_CHECKING:
    from deltalog._util.cards import ProgressCount
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.protocol.actions import Protocol
    from deltalog.transaction import PendingTransaction


_MAX_COLUMN_ID: Final = "delta.columnMapping.maxColumnId"
_CHECKPOINT_PROTECTION: Final = TableProperties.require_checkpoint_protection_before_version.key
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a RESTORE.

    Args:
        num_restored_files: number of logical files that were added again.
        restored_bytes: total size of the restored files.
        num_removed_files: number of logical files that were removed.
        removed_bytes: total size of the removed files.
        num_files: number of live files after the restore.
        num_bytes: total size of the live files after the restore.
        num_missing_files: number of files of the older version that no longer exist.
    """

    num_restored_files: int
    restored_bytes: int
    num_removed_files: int
    removed_bytes: int
    num_files: int
    num_bytes: int
    num_missing_files: int = 0

    def metrics(self) -> dict[str, int]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        return {
            "numRestoredFiles": self.num_restored_files,
            "restoredFilesSize": self.restored_bytes,
            "numRemovedFiles": self.num_removed_files,
            "removedFilesSize": self.removed_bytes,
            "numOfFilesAfterRestore": self.num_files,
            "tableSizeAfterRestore": self.num_bytes,
        }

    def result(self) -> dict[str, Any]:
        """Return the result for the caller: the keys of deltalake, and additional keys."""
        return {
            "numRemovedFile": self.num_removed_files,
            "numRestoredFile": self.num_restored_files,
            "num_missing_files": self.num_missing_files,
            "removed_bytes": self.removed_bytes,
            "restored_bytes": self.restored_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(Operation[Restored]):
    """Restore the table to an older version.

    Args:
        target: an older version of the table.
        asked: the version or timestamp that the user requested.
        ignore_missing_files: whether to omit files that no longer exist, instead of raising.
        protocol_downgrade_allowed: whether to restore the older protocol. Otherwise the protocol
            keeps all current features.
    """

    target: Snapshot
    asked: object
    ignore_missing_files: bool = False
    protocol_downgrade_allowed: bool = False
    name: ClassVar[str] = "RESTORE"

    def logged_parameters(self) -> dict[str, Any]:
        """Return the version or the timestamp."""
        is_version = isinstance(self.asked, int)
        return {
            "version": self.target.version if is_version else None,
            "timestamp": None if is_version else str(self.asked),
        }

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Restored:
        """Stage the files and the metadata of the older version.

        Files that were removed since that version are added again. Files that were added since are
        removed.

        Raises:
            DataFileMissingError: files of the older version no longer exist.

        Cost: reads the file lists of both versions; one request for each file that is added again.
        """
        del engine
        snapshot = transaction.read_snapshot
        root = snapshot.store.root
        now, then = snapshot.files(), self.target.files()
        found = difference(
            now,
            then,
            root,
            has_same_partitions=has_same_partitions(
                snapshot.configuration, self.target.configuration
            ),
        )
        back = found.added
        missing = missing_files(self.target, back, transaction.progress)
        if missing and not self.ignore_missing_files:
            shown = ", ".join(sorted(missing)[:_SHOWN])
            raise DataFileMissingError(
                f"cannot restore {root} to version {self.target.version}: {len(missing)} of "
                f"its files no longer exist ({shown}{', …' if len(missing) > _SHOWN else ''}"
                "); vacuum has deleted them. "
                "ignore_missing_files=True restores the files that still exist"
            )
        kept = _without(back, missing)
        transaction.record_read(None)
        transaction.set_configuration(
            restored_configuration(
                snapshot.configuration,
                self.target.configuration,
                downgrades=self.protocol_downgrade_allowed,
            )
        )
        _restore_clustering(transaction, snapshot, self.target)
        found._replace(added=kept).stage(transaction)
        lost = back.num_rows - kept.num_rows
        return Restored(
            num_restored_files=kept.num_rows,
            restored_bytes=exact_sum(kept.column("size")),
            num_removed_files=found.removed.num_rows,
            removed_bytes=exact_sum(found.removed.column("size")),
            num_files=then.num_rows - lost,
            num_bytes=exact_sum(then.column("size"))
            - exact_sum(back.column("size"))
            + exact_sum(kept.column("size")),
            num_missing_files=lost,
        )


class Difference(NamedTuple):
    """The logical files that differ between two versions of a table (schema `FILE_SCHEMA`).

    Args:
        added: files that are only in the wanted version.
        removed: files that are only in the current version.
        renewed: files in both versions whose `add` must be written again, because their partition
            values differ.
    """

    added: pa.Table
    removed: pa.Table
    renewed: pa.Table

    def stage(self, transaction: PendingTransaction) -> None:
        """Add and remove the files in the transaction; renewed files have `dataChange` false."""
        transaction.add_again(_changing(self.added, data_change=True))
        transaction.add_again(_changing(self.renewed, data_change=False))
        transaction.remove_files(self.removed, data_change=True)


def difference(
    now: pa.Table, then: pa.Table, root: str, *, has_same_partitions: bool
) -> Difference:
    """Return the logical files that differ between two versions.

    Args:
        now: files of the current version.
        then: files of the wanted version.
        root: the table's location.
        has_same_partitions: whether both versions have the same partition columns. Otherwise the
            files in both versions have different partition values, and are `renewed`.
    """
    now_keys, then_keys = _keys(now, root), _keys(then, root)
    known = compute.is_in(then_keys, value_set=now_keys)
    both = then.filter(known)
    return Difference(
        added=then.filter(compute.invert(known)),
        removed=now.filter(compute.invert(compute.is_in(now_keys, value_set=then_keys))),
        renewed=both.slice(0, 0) if has_same_partitions else both,
    )


def has_same_partitions(now: TableConfiguration, then: TableConfiguration) -> bool:
    """Return whether both configurations have the same physical partition columns."""
    return {*now.physical_partition_columns} == {*then.physical_partition_columns}


def _changing(files: pa.Table, *, data_change: bool) -> pa.Table:
    place = FILE_SCHEMA.get_field_index("dataChange")
    changes = pa.repeat(pa.scalar(value=data_change), files.num_rows)
    return files.set_column(place, FILE_SCHEMA.field(place), changes)


def restored_configuration(
    now: TableConfiguration, then: TableConfiguration, *, downgrades: bool = False
) -> TableConfiguration:
    """Return protocol and metadata of the new version, which restores an older version.

    Column ids and identity values must never be assigned twice, so their high water marks are not
    restored. The property of checkpoint protection is not restored either.

    Args:
        now: configuration of the current version.
        then: configuration of the older version.
        downgrades: whether to restore the older protocol.
    """
    if not downgrades:
        then = with_row_ids_of(then, now)
    protocol = then.protocol if downgrades else _risen(now.protocol, then.protocol)
    properties = dict(then.metadata.configuration)
    current = now.metadata.configuration
    if then.column_mapping_mode is not Mode.NONE and _MAX_COLUMN_ID in current:
        highest = max(int(current[_MAX_COLUMN_ID]), int(properties.get(_MAX_COLUMN_ID, 0)))
        properties[_MAX_COLUMN_ID] = str(highest)
    # The protocol about this property: "After it is set to `true` it must never be set back to
    # `false` again."
    tracked = current.get(HAS_DROPPED_OR_RENAMED_PROPERTY)
    if tracked is not None:
        lost = tracked == "true" or has_lost_names(now.schema, then.schema)
        properties[HAS_DROPPED_OR_RENAMED_PROPERTY] = str(lost).lower()
    supported = supported_features(protocol)
    if _CHECKPOINT_PROTECTION in current and "checkpointProtection" in supported:
        properties[_CHECKPOINT_PROTECTION] = current[_CHECKPOINT_PROTECTION]
    schema = _with_marks_of(then.schema, now.schema)
    metadata = replace(
        then.metadata,
        id=now.metadata.id,
        configuration=properties,
        schema_string=then.metadata.schema_string
        if schema == then.schema
        else encode_schema(schema),
    )
    return TableConfiguration(protocol, metadata)


def _risen(now: Protocol, then: Protocol) -> Protocol:
    merged = merge(now, then)
    return now if supported_features(merged).keys() == supported_features(now).keys() else merged


def _with_marks_of(schema: StructType, newer: StructType) -> StructType:
    """Return a schema with the marks of identity columns, which may have been renamed since."""
    newest = {
        physical_name(find_field(newer, (column.name,))): column.high_water_mark
        for column in identity_columns(newer)
    }
    marks: dict[str, int] = {}
    for column in identity_columns(schema):
        mark = newest.get(physical_name(find_field(schema, (column.name,))))
        if mark is not None:
            marks[column.name] = mark
    return with_high_water_marks(schema, marks)


def _restore_clustering(pending: PendingTransaction, now: Snapshot, then: Snapshot) -> None:
    """Restore only the clustering domain, because the row id high water mark must not decrease."""
    if not pending.configuration.supports("domainMetadata"):
        return
    current = now.domain_metadata.get(CLUSTERING_DOMAIN)
    wanted = then.domain_metadata.get(CLUSTERING_DOMAIN)
    if wanted is not None and wanted != current:
        pending.set_domain(wanted)
    elif wanted is None and current is not None:
        pending.remove_domain(CLUSTERING_DOMAIN)


def _keys(files: pa.Table, root: str) -> Any:
    keys: Any = file_keys(files.column("path"), files.column("deletionVector"), root)
    return keys.combine_chunks()


def missing_files(target: Snapshot, files: pa.Table, progress: ProgressCount) -> set[str]:
    """Return the decoded paths of missing data files and deletion vector files."""
    named = {path for pair in _places(files) for path in pair if path is not None}
    return named - existing(target, named, progress)


def _places(files: pa.Table) -> list[tuple[str, str | None]]:
    """Return for each file its decoded path, and the path of its deletion vector file or None."""
    paths: list[Any] = files.column("path").to_pylist()
    vectors: list[Any] = files.column("deletionVector").to_pylist()
    return [
        (decode_path(path), None if vector is None else vector_path(vector))
        for path, vector in zip(paths, vectors, strict=True)
    ]


def _without(files: pa.Table, missing: set[str]) -> pa.Table:
    if not missing:
        return files
    sound = [missing.isdisjoint(pair) for pair in _places(files)]
    return files.filter(pa.array(sound, pa.bool_()))


# --- Repair


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFiles:
    """Live files whose data file or deletion vector file is missing.

    Args:
        files: rows of `snapshot.files` whose data file is missing.
        without_vector: decoded paths of data files whose deletion vector file is missing. It is
            unknown which of their rows are deleted.
    """

    files: pa.Table
    without_vector: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """Decoded paths of the missing data files."""
        encoded: list[Any] = self.files.column("path").to_pylist()
        return [decode_path(path) for path in encoded]

    def result(self) -> dict[str, Any]:
        """Return the paths of removed files, and of files whose deletion vector file is missing."""
        return {
            "dry_run": False,
            "files_removed": self.paths,
            "files_without_deletion_vector": list(self.without_vector),
        }

    def metrics(self) -> dict[str, int]:
        """Return the `operationMetrics`; empty if nothing was removed."""
        if not self.files.num_rows:
            return {}
        return {
            "numRemovedFiles": self.files.num_rows,
            "numRemovedBytes": exact_sum(self.files.column("size")),
        }


def find_lost_files(snapshot: Snapshot, progress: ProgressCount | None = None) -> LostFiles:
    """Find the live files whose data file or deletion vector file is missing.

    Args:
        snapshot: the version whose files are looked for.
        progress: counts the files that need a request.

    Cost: one listing of the table, one request for each data file that is not in the listing (such
    as files outside of the table's root), and one for each deletion vector file.
    """
    files = snapshot.files()
    listed = pa.array([info.path for info in snapshot.store.list_all("")], pa.string())
    paths = canonical_paths(files.column("path"), snapshot.store.root)
    doubtful = files.filter(compute.invert(compute.is_in(paths, value_set=listed)))
    encoded: list[Any] = doubtful.column("path").to_pylist()
    decoded = [decode_path(path) for path in encoded]
    # Check each file again, because the listing may be stale or spell paths differently.
    there = existing(snapshot, decoded, progress)
    lost = [path not in there for path in decoded]
    gone = doubtful.filter(pa.array(lost, pa.bool_()))
    return LostFiles(files=gone, without_vector=_without_vector(snapshot, files, progress))


@dataclass(frozen=True, slots=True)
class Repair(Operation[LostFiles]):
    """Remove the files whose data file is missing.

    A file whose deletion vector file is missing does not change, because removing the file would
    lose rows, and removing its deletion vector would restore deleted rows.
    """

    name: ClassVar[str] = "FSCK"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> LostFiles:
        """Find the missing files and remove them from the table."""
        del engine
        lost = find_lost_files(transaction.read_snapshot, transaction.progress)
        if lost.files.num_rows:
            transaction.record_read_files(lost.files)
            transaction.remove_files(lost.files, data_change=True)
        return lost

    def preview(self, transaction: PendingTransaction, engine: Engine) -> dict[str, Any]:
        """Return the missing files; nothing is removed."""
        del engine
        return {**find_lost_files(transaction.read_snapshot).result(), "dry_run": True}


def _without_vector(
    snapshot: Snapshot, files: pa.Table, progress: ProgressCount | None
) -> tuple[str, ...]:
    masked = files.select(["path", "deletionVector"])
    masked = masked.filter(masked.column("deletionVector").is_valid())
    rows: list[dict[str, Any]] = masked.to_pylist()
    places = [(decode_path(row["path"]), vector_path(row["deletionVector"])) for row in rows]
    there = existing(snapshot, {place for _, place in places if place is not None}, progress)
    return tuple(path for path, place in places if place is not None and place not in there)
