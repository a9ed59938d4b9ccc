"""Drop a table feature: stop using it, then handle the old commits that use it, then drop it.

The log still contains commits that use the feature, and a reader may have to replay them. So there
are two ways to drop a reader feature. By default a checkpoint is written after the last use, and
cleanup may not delete the checkpoints before the version of the drop. With `truncate_history`, the
commits that use the feature are deleted once they are old enough.

Protocol: Table Features, Checkpoint Protection
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import pyarrow as pa

from deltalog._util.json import loads
from deltalog._util.kernels import pc
from deltalog._util.readable import counted
from deltalog.data.write.files import FileWriter
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.log.listing import list_log
from deltalog.log.segment import CheckpointKind
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.changes.kept_groups import copy_rows
from deltalog.operations.operation import Nothing, Operation
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.features.registry import canonical_name, requested_name
from deltalog.protocol.features.row_ids import ROW_TRACKING_DOMAIN
from deltalog.protocol.features.type_widening import has_type_changes
from deltalog.protocol.table_change.drop import check_droppable, deactivated, without_feature
from deltalog.transaction.maintenance.checkpoint import create_checkpoint
from deltalog.transaction.maintenance.cleanup import cleanup_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction

_REWRITES: Final = {
    "columnMapping": "REMOVE COLUMN MAPPING",
    "deletionVectors": "REORG",
    "typeWidening": "REORG",
}


class Commit(Protocol):
    """A function that stages and commits one operation."""

    def __call__(self, operation: Operation[Any]) -> Snapshot:
        """Stage and commit the operation.

        Returns:
            The committed snapshot, or the current snapshot if nothing was staged.
        """


def drop_feature(
    snapshot: Snapshot,
    feature: str,
    *,
    commit: Commit,
    truncate_history: bool = False,
    options: FileOptions | None = None,
    at_ms: int | None = None,
) -> Snapshot:
    """Drop a table feature.

    Args:
        snapshot: the newest version.
        feature: any name of the feature, in any case.
        commit: stages and commits an operation.
        truncate_history: False preserves the history, and protects its checkpoints from cleanup.
            True deletes the log before the last checkpoint if it is older than
            `delta.dropFeatureTruncateHistory.retentionDuration`.
        options: options of rewritten files.
        at_ms: the time that counts as now for the retention, in ms since the epoch; None means the
            current time.

    Returns:
        The snapshot of the table without the feature.

    Raises:
        InvalidInputError: the feature cannot be dropped, or the commits that use it are too recent
            to be deleted. In the second case the newest version no longer uses the feature; repeat
            the call later.

    Cost: rewrites the files that need the feature, and writes one checkpoint. With
    `truncate_history`, it also reads every commit of the log.
    """
    feature = requested_name(feature) or feature
    name = canonical_name(feature)
    droppable = check_droppable(snapshot.configuration, feature)
    if name == "checkpointProtection" and not truncate_history:
        raise InvalidInputError(
            "cannot drop checkpointProtection while the log contains the history that it protects: "
            "pass truncate_history=True"
        )
    if not droppable.has_history and name != "checkpointProtection":
        return commit(DropFeature(feature))
    snapshot = commit(StopUsing(feature, options or FileOptions()))
    create_checkpoint(snapshot)
    if truncate_history:
        _cut_history(snapshot, name, at_ms)
    return commit(DropFeature(feature, truncates_history=truncate_history))


@dataclass(frozen=True, slots=True)
class FilesRewritten:
    """The metrics of rewriting files without a feature, under the names of Delta Spark."""

    counts: Mapping[str, int]

    def metrics(self) -> Mapping[str, int]:
        """Return the counts; empty if no file was rewritten."""
        return self.counts

    def result(self) -> None:
        """Return nothing."""
        return


@dataclass(frozen=True, slots=True)
class StopUsing(Operation[FilesRewritten]):
    """Remove every use of a feature from the properties, the column metadata and the files.

    Args:
        feature: any name of the feature.
        options: options of the new files.
    """

    feature: str
    options: FileOptions
    skips_empty: ClassVar[bool] = True

    @property
    def name(self) -> str:  # type: ignore[override]  # a constant in other operations
        """The operation that Delta Spark records in the log when it stops using this feature."""
        return _REWRITES.get(canonical_name(self.feature), "UNSET TBLPROPERTIES")

    def logged_parameters(self) -> dict[str, str]:
        """Return the feature."""
        return {"featureName": self.feature}

    def stage(self, transaction: PendingTransaction, engine: Engine) -> FilesRewritten:
        """Change the metadata, and rewrite the files.

        Cost: reads and writes every file that needs the feature.
        """
        del engine
        snapshot, name = transaction.read_snapshot, canonical_name(self.feature)
        if name == "checkpointProtection":
            return FilesRewritten({})
        after = deactivated(transaction.configuration, self.feature)
        if after.metadata != transaction.configuration.metadata:
            transaction.set_configuration(after)
        files = _files_in_need(snapshot, name)
        if not files.num_rows:
            return FilesRewritten({})
        transaction.record_read(None)
        spec = self.options.spec_for(transaction, data_change=False)
        with FileWriter(spec) as writer:
            copied = copy_rows(snapshot, files, writer, spec.configuration.arrow_schema)
            written = writer.finish()
        transaction.copies_rows = True
        transaction.add_files(written)
        transaction.remove_files(files, data_change=False)
        return FilesRewritten(
            {
                "numRemovedFiles": files.num_rows,
                "numAddedFiles": len(written.adds),
                "numCopiedRows": copied,
                "numOutputBytes": written.num_bytes,
            }
        )


@dataclass(frozen=True, slots=True)
class DropFeature(Operation[Nothing]):
    """Remove an unused feature from the protocol.

    Args:
        feature: any name of the feature.
        truncates_history: True if the history that needs the feature has been deleted; False
            protects the checkpoints of this history from cleanup.
    """

    feature: str
    truncates_history: bool = False
    name: ClassVar[str] = "DROP FEATURE"
    skips_empty: ClassVar[bool] = True

    def logged_parameters(self) -> dict[str, Any]:
        """Return the arguments."""
        return {"featureName": self.feature, "truncateHistory": self.truncates_history}

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Nothing:
        """Change the protocol.

        Raises:
            InvalidInputError: the feature cannot be dropped, or the table uses it.
        """
        del engine
        snapshot, name = transaction.read_snapshot, canonical_name(self.feature)
        droppable = check_droppable(transaction.configuration, self.feature)
        if droppable.has_history and uses(snapshot, name):
            raise InvalidInputError(
                f"cannot drop {self.feature!r} of {transaction.store.root}: another writer used it "
                "in the meantime; repeat the call"
            )
        _stage_leftovers(transaction, name)
        protects = droppable.has_history and not self.truncates_history
        transaction.set_configuration(
            without_feature(
                transaction.configuration,
                self.feature,
                protected_before_version=snapshot.version + 1 if protects else None,
            )
        )
        return Nothing()


def uses(snapshot: Snapshot, feature: str) -> bool:
    """Whether the metadata or files of a version need the feature."""
    configuration = snapshot.configuration
    if deactivated(configuration, feature).metadata != configuration.metadata:
        return True
    return feature == "deletionVectors" and _files_in_need(snapshot, feature).num_rows > 0


def _stage_leftovers(transaction: PendingTransaction, feature: str) -> None:
    """Stage the removal of domains and row ids that belong to a writer feature."""
    snapshot = transaction.read_snapshot
    if feature == "domainMetadata" and snapshot.domain_metadata:
        raise InvalidInputError(
            "cannot drop domainMetadata: the table has the metadata domain(s) "
            f"{', '.join(sorted(snapshot.domain_metadata))}; remove them first"
        )
    if feature != "rowTracking":
        return
    if ROW_TRACKING_DOMAIN in snapshot.domain_metadata:
        transaction.remove_domain(ROW_TRACKING_DOMAIN)
    files = _files_with_ids(snapshot)
    if files.num_rows:
        # Remove the row ids of all files. If row tracking is added again later, new row ids start
        # at 0. Without the removal, they could equal the row ids of existing files.
        transaction.record_read(None)
        transaction.add_again(files)


def _files_in_need(snapshot: Snapshot, feature: str) -> pa.Table:
    """Return the files that readers without the feature cannot read."""
    if feature == "deletionVectors":
        vectors: Any = snapshot.files(["deletionVector"]).column("deletionVector")
        if not vectors.null_count < len(vectors):
            return FILE_SCHEMA.empty_table()
        return snapshot.files().filter(pc.is_valid(vectors))
    configuration = snapshot.configuration
    is_mapped = feature == "columnMapping" and configuration.column_mapping_mode != "none"
    # The log does not show which files contain a column's old type. So all files are rewritten.
    is_widened = feature == "typeWidening" and has_type_changes(configuration.data_schema)
    return snapshot.files() if is_mapped or is_widened else FILE_SCHEMA.empty_table()


def _files_with_ids(snapshot: Snapshot) -> pa.Table:
    ids: Any = snapshot.files(["baseRowId"]).column("baseRowId")
    if ids.null_count == len(ids):
        return FILE_SCHEMA.empty_table()
    files = snapshot.files().filter(pc.is_valid(ids))
    for name, value in (
        ("baseRowId", None),
        ("defaultRowCommitVersion", None),
        ("dataChange", False),
    ):
        place = files.column_names.index(name)
        column = pa.repeat(pa.scalar(value, FILE_SCHEMA.field(name).type), files.num_rows)
        files = files.set_column(place, name, column)
    return files


def _cut_history(snapshot: Snapshot, feature: str, at_ms: int | None) -> None:
    """Delete the part of the log that needs a feature.

    Raises:
        InvalidInputError: a commit or checkpoint that needs the feature is not old enough.
    """
    retention_ms = snapshot.configuration.properties.truncate_history_retention_ms
    if not _history_uses(snapshot, feature):
        return
    cleanup_metadata(snapshot, retention_ms=retention_ms, at_ms=at_ms)
    if _history_uses(snapshot, feature):
        raise InvalidInputError(
            f"cannot drop {feature} of {snapshot.store.root} yet: the newest version does not use "
            "the feature, but older commits do; repeat the call when the last of these commits is "
            f"{_hours(retention_ms)} old at midnight UTC "
            "(delta.dropFeatureTruncateHistory.retentionDuration), or drop the feature without "
            "truncate_history"
        )


def _hours(duration_ms: int) -> str:
    return counted(duration_ms / 3_600_000, "hour")


def _history_uses(snapshot: Snapshot, feature: str) -> bool:
    """Whether the log still has a commit or checkpoint that needs a feature."""
    listing = list_log(snapshot.store, from_version=0, log_tail=snapshot.log_tail)
    versions = sorted(version for version in listing.commits if version <= snapshot.version)
    if feature == "checkpointProtection":
        protected = snapshot.configuration.properties.require_checkpoint_protection_before_version
        return bool(versions) and versions[0] < protected
    if feature == "v2Checkpoint" and any(
        files.kind is CheckpointKind.V2 for files in listing.checkpoints
    ):
        return True
    for version in versions:
        data = snapshot.store.read(listing.commits[version].info.path)
        if any(_line_uses(line, feature, version) for line in data.splitlines() if line.strip()):
            return True
    first = _first_snapshot(snapshot, versions)
    return first is not None and uses(first, feature)


def _first_snapshot(snapshot: Snapshot, versions: list[int]) -> Snapshot | None:
    """Return the oldest version that can be read."""
    for version in versions:
        try:
            return load_snapshot(snapshot.context, version=version)
        except DeltaError:
            continue
    return None


def _line_uses(line: bytes, feature: str, version: int) -> bool:
    action: Mapping[str, Any] = loads(line, f"version {version}")
    if feature == "deletionVectors":
        # Ignore `remove` actions: readers without deletion vectors apply them correctly.
        return (action.get("add") or {}).get("deletionVector") is not None
    metadata = action.get("metaData")
    if metadata is None:
        return False
    keys = _TRACES.get(feature, ())
    texts = (metadata.get("schemaString") or "", *(metadata.get("configuration") or {}))
    return any(key in text for key in keys for text in texts)


_TRACES: Final[Mapping[str, tuple[str, ...]]] = {
    "columnMapping": ("delta.columnMapping.",),
    "typeWidening": ("delta.typeChanges", "delta.enableTypeWidening"),
    "v2Checkpoint": ("delta.checkpointPolicy",),
}
