"""A table feature dropped: what uses it goes first, then the history is seen to, then the protocol.

A reader of today's version may read files of the log that are older. So a feature that readers
must know leaves in one of two ways: checkpoints stand before everything that needs it and are
protected from then on; or the history that needs it is cut off, once it is old enough.

Protocol: Table Features, Checkpoint Protection
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from deltalog._json import loads
from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.features.registry import canonical_name
from deltalog.features.row_ids import ROW_TRACKING_DOMAIN
from deltalog.features.type_widening import has_type_changes
from deltalog.log.listing import list_log
from deltalog.log.segment import CheckpointKind
from deltalog.rows.copy import copy_rows
from deltalog.rows.files import FileOptions
from deltalog.snapshot import load_snapshot
from deltalog.table_change import check_droppable, deactivated, without_feature
from deltalog.upkeep.checkpoint import create_checkpoint
from deltalog.upkeep.cleanup import cleanup_metadata
from deltalog.verbs.verb import Nothing, Verb
from deltalog.write.files import FileWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.engine import Engine
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction

_REWRITES: Final = {
    "columnMapping": "REMOVE COLUMN MAPPING",
    "deletionVectors": "REORG",
    "typeWidening": "REORG",
}


class Commit(Protocol):
    """Does one verb, which is a commit."""

    def __call__(self, verb: Verb[Any]) -> Snapshot:
        """Return the version that was made, or the table as it is if nothing was staged."""


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
        feature: by any of its names.
        commit: does a verb.
        truncate_history: False leaves the history, and protects the checkpoints that stand before
            it; True deletes the log before the last checkpoint, as far as it is older than
            `delta.dropFeatureTruncateHistory.retentionDuration`.
        options: of the files that are written anew.
        at_ms: the moment to count the retention from; None is now.

    Returns:
        The table without the feature.

    Raises:
        InvalidInputError: the feature cannot be dropped, or history that needs it is not old
            enough to be cut off; the table does not use it any more then, and the same call
            goes on later.

    Cost: files that need the feature are written anew; one checkpoint; with `truncate_history`,
    every commit of the log is read.
    """
    name = canonical_name(feature)
    droppable = check_droppable(snapshot.configuration, feature)
    if name == "checkpointProtection" and not truncate_history:
        raise InvalidInputError(
            "cannot drop checkpointProtection while the history that it protects stays: pass "
            "truncate_history=True"
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
    """What was written for a feature to be used no longer: Delta Spark's metrics."""

    counts: Mapping[str, int]

    def metrics(self) -> Mapping[str, int]:
        """Return the counts; none where no file needed the feature."""
        return self.counts

    def result(self) -> None:
        """Return nothing."""
        return


@dataclass(frozen=True, slots=True)
class StopUsing(Verb[FilesRewritten]):
    """End every use of a feature; the files that need it are written anew.

    Args:
        feature: by any of its names.
        options: of the new files.
    """

    feature: str
    options: FileOptions
    skips_empty: ClassVar[bool] = True

    @property
    def name(self) -> str:  # type: ignore[override]  # as Delta Spark calls what it does here
        """What the feature's end takes."""
        return _REWRITES.get(canonical_name(self.feature), "UNSET TBLPROPERTIES")

    def logged_parameters(self) -> dict[str, str]:
        """The feature."""
        return {"featureName": self.feature}

    def stage(self, transaction: PendingTransaction, engine: Engine) -> FilesRewritten:
        """Change the metadata, and write the files anew.

        Cost: reads and writes every file that needs the feature.
        """
        del engine
        snapshot, name = transaction.base, canonical_name(self.feature)
        if name == "checkpointProtection":
            return FilesRewritten({})
        after = deactivated(transaction.configuration, self.feature)
        if after.metadata != transaction.configuration.metadata:
            transaction.set_configuration(after)
        files = _files_in_need(snapshot, name)
        if not files.num_rows:
            return FilesRewritten({})
        transaction.read(None)
        spec = self.options.spec_for(transaction, data_change=False)
        with FileWriter(spec) as writer:
            copied = copy_rows(snapshot, files, writer, spec.configuration.arrow_schema)
            written = writer.finish()
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
class DropFeature(Verb[Nothing]):
    """Remove a feature that nothing uses any more from the protocol.

    Args:
        feature: by any of its names.
        truncates_history: whether the history that needs it is gone; otherwise it is protected.
    """

    feature: str
    truncates_history: bool = False
    name: ClassVar[str] = "DROP FEATURE"
    skips_empty: ClassVar[bool] = True

    def logged_parameters(self) -> dict[str, Any]:
        """The arguments."""
        return {"featureName": self.feature, "truncateHistory": self.truncates_history}

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Nothing:
        """Change the protocol.

        Raises:
            InvalidInputError: the feature cannot be dropped, or something uses it.
        """
        del engine
        snapshot, name = transaction.base, canonical_name(self.feature)
        droppable = check_droppable(transaction.configuration, self.feature)
        if droppable.has_history and uses(snapshot, name):
            raise InvalidInputError(
                f"cannot drop {self.feature!r} of {transaction.store.root}: it came to use "
                "meanwhile; repeat"
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
    """Whether a version holds anything that only readers with the feature understand."""
    configuration = snapshot.configuration
    if deactivated(configuration, feature).metadata != configuration.metadata:
        return True
    return feature == "deletionVectors" and _files_in_need(snapshot, feature).num_rows > 0


def _stage_leftovers(transaction: PendingTransaction, feature: str) -> None:
    """Stage what goes in the same commit as a feature of writers only."""
    snapshot = transaction.base
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
        # Ids that stayed would be given a second time, should the feature ever come back.
        transaction.read(None)
        transaction.add_rows(files)


def _files_in_need(snapshot: Snapshot, feature: str) -> pa.Table:
    """The files that hold what only readers with the feature understand."""
    if feature == "deletionVectors":
        vectors: Any = snapshot.files(["deletionVector"]).column("deletionVector")
        if not vectors.null_count < len(vectors):
            return FILE_SCHEMA.empty_table()
        return snapshot.files().filter(pc.is_valid(vectors))
    configuration = snapshot.configuration
    is_mapped = feature == "columnMapping" and configuration.column_mapping_mode != "none"
    # Which file has which type stands in its footer only; all are written anew.
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
    """Cut the history that needs a feature.

    Raises:
        InvalidInputError: some of it is too young.
    """
    retention_ms = snapshot.configuration.properties.truncate_history_retention_ms
    if not _history_uses(snapshot, feature):
        return
    cleanup_metadata(snapshot, retention_ms=retention_ms, at_ms=at_ms)
    if _history_uses(snapshot, feature):
        raise InvalidInputError(
            f"cannot drop {feature} of {snapshot.store.root} yet: the table does not use it any "
            f"more, but its history does. Once the last commit that did is {_hours(retention_ms)} "
            "old at midnight UTC (delta.dropFeatureTruncateHistory.retentionDuration), repeat "
            "the call; or drop the feature without truncate_history"
        )


def _hours(duration_ms: int) -> str:
    return f"{duration_ms / 3_600_000:g} hours"


def _history_uses(snapshot: Snapshot, feature: str) -> bool:
    """Whether any version that the log still gives needs a feature."""
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
    """The oldest version that can be read."""
    for version in versions:
        try:
            return load_snapshot(snapshot.context, version=version)
        except DeltaError:
            continue
    return None


def _line_uses(line: bytes, feature: str, version: int) -> bool:
    action: Mapping[str, Any] = loads(line, f"version {version}")
    if feature == "deletionVectors":
        # A file that goes, goes for readers who overlook its vector, too.
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
