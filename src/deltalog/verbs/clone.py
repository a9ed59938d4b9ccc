"""Clone: a table with the files of another table's version, referenced (shallow) or copied (deep).

Owns how files of one table are referenced from another, and which metadata is taken over. Repeated
clones are incremental: files that the clone has are neither added nor copied again.

Protocol: Add File and Remove File (absolute paths), Deletion Vector Descriptor Schema, Row Tracking
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.actions.properties import TableProperties
from deltalog.configuration import TableConfiguration
from deltalog.deletion_vectors import location
from deltalog.errors import InvalidInputError, UnsafePathError
from deltalog.features.clustering import CLUSTERING_DOMAIN
from deltalog.features.iceberg_compat import VERSIONS, enabled_versions
from deltalog.features.protocol_change import merge, supported_features, without_feature
from deltalog.features.support import check_readable
from deltalog.kernels import compute, exact_sum
from deltalog.log.listing import list_log
from deltalog.paths import (
    canonical_path,
    canonical_paths,
    is_absolute,
)
from deltalog.scan.plan import descriptor_of
from deltalog.table_change import changed_table, with_row_ids_of
from deltalog.table_change.properties import stored_configuration
from deltalog.verbs.cloned_files import ABSOLUTE, Copied, FileNames, copy_files, root_location
from deltalog.verbs.foreign_row_ids import with_other_row_ids
from deltalog.verbs.new_vectors import with_own_vectors
from deltalog.verbs.restore import difference, has_same_partitions
from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.engine import Engine
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction

_TIED_FEATURES: Final = ("catalogManaged", "checkpointProtection")
_TIED_PROPERTIES: Final = (
    TableProperties.require_checkpoint_protection_before_version.key,
    TableProperties.materialized_row_id_column_name.key,
    TableProperties.materialized_row_commit_version_column_name.key,
    TableProperties.row_ids_physical_column_name.key,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloned:
    """The result of a clone.

    Args:
        num_source_files: logical files of the source.
        source_bytes: their size.
        num_added_files: files that the clone did not have before.
        num_removed_files: files of the clone that are no longer in the source.
        removed_bytes: their size.
        num_copied_files: physical files that were copied.
        copied_bytes: their size.
    """

    num_source_files: int
    source_bytes: int
    num_added_files: int
    num_removed_files: int
    removed_bytes: int
    num_copied_files: int = 0
    copied_bytes: int = 0

    def result(self) -> None:
        """Return nothing: callers get the clone itself."""
        return

    def metrics(self) -> dict[str, int]:
        """Return the metrics as Delta Spark's operationMetrics."""
        return {
            "sourceTableSize": self.source_bytes,
            "sourceNumOfFiles": self.num_source_files,
            "numRemovedFiles": self.num_removed_files,
            "removedFilesSize": self.removed_bytes,
            "numCopiedFiles": self.num_copied_files,
            "copiedFilesSize": self.copied_bytes,
        }


@dataclass(frozen=True, slots=True)
class Origin:
    """What the source of a clone is.

    Args:
        format: of the source, for the history.
        version: its own number of what is cloned, for the history; None is the version of the
            snapshot.
        has_log: whether the source's log is stored. Otherwise the snapshot was planned for the
            clone, with deletion vectors in memory, which the clone stores as its own.
    """

    format: str = "delta"
    version: int | None = None
    has_log: bool = True


DELTA: Final = Origin()


def cloned_configuration(
    source: TableConfiguration,
    *,
    target: TableConfiguration | None = None,
    properties: Mapping[str, str] | None = None,
) -> TableConfiguration:
    """Return protocol and metadata of a clone: the source's, with a table id of its own.

    The clone assigns its own row ids, so it also has its own materialized row id columns.

    Args:
        source: of the version that is cloned.
        target: of the table that the clone replaces; its features stay.
        properties: set on the clone in addition.

    Raises:
        InvalidInputError: a property is invalid.
    """
    if target is not None:
        source = with_row_ids_of(source, target)
    protocol = source.protocol
    for feature in _TIED_FEATURES:
        if feature in supported_features(protocol):
            protocol = without_feature(protocol, feature)
    texts = dict(source.metadata.configuration)
    own = {} if target is None else target.metadata.configuration
    for key in _TIED_PROPERTIES:
        texts.pop(key, None)
        if key in own:
            texts[key] = own[key]
    if target is not None:
        protocol = merge(target.protocol, protocol)
    metadata = replace(
        source.metadata,
        id=str(uuid.uuid4()) if target is None else target.metadata.id,
        configuration=stored_configuration(texts, protocol),
    )
    made = TableConfiguration(protocol, metadata)
    if not properties:
        return made
    return changed_table(made, configuration={**metadata.configuration, **properties})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone(Verb[Cloned]):
    """Replace the files of the table by those of another table's version.

    Args:
        source: the version to clone; its store can be another one for a deep clone.
        is_shallow: name the source's files by their location. Vacuum in the source must leave
            them alone as long as the clone is needed. Otherwise they are copied.
        origin: what the source is.
        properties: set on the clone besides the source's.
        allows_foreign_files: whether files outside of the source's root, which its log names as
            that of a shallow clone does, may be copied or named, too. A log is not to be trusted:
            it could name any file that the caller can read.
    """

    source: Snapshot
    is_shallow: bool
    origin: Origin = DELTA
    allows_foreign_files: bool = False
    properties: Mapping[str, str] | None = None
    name: ClassVar[str] = "CLONE"
    doing: ClassVar[str] = "copying files"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Cloned:
        """Copy or reference the new files, and take over the source's configuration.

        Raises:
            InvalidInputError: another file exists at the path of a copy.
            DeltaProtocolError: deltalog cannot read the source.
            TableNotFoundError, VersionNotFoundError: the source is not there any more.

        Cost: a request for the version of the source, and the log's columns of its files; a deep
        clone also copies each new file through memory.
        """
        del engine
        target = transaction.snapshot
        if target is not None:
            transaction.record_read(None)
            transaction.set_configuration(
                cloned_configuration(
                    self.source.configuration,
                    target=target.configuration,
                    properties=self.properties,
                )
            )
        check_readable(
            self.source.configuration,
            table=self.source.store.root,
            version=self.source.version,
            operation="clone",
            has_log_tail=self.source.log_tail is not None,
        )
        if self.origin.has_log:
            _check_there(self.source)
        root = transaction.store.root
        files = self.source.files()
        if not self.allows_foreign_files:
            self._check_own(files)
        if _shows_row_ids(transaction.configuration):
            self._check_row_ids(files)
        names = FileNames(self.source.store.root, root, is_shallow=self.is_shallow)
        now = FILE_SCHEMA.empty_table() if target is None else target.files()
        wanted = names.of(files)
        if not self.origin.has_log:
            wanted = with_own_vectors(transaction, now, wanted)
        found = difference(
            now,
            wanted,
            root,
            has_same_partitions=target is None
            or has_same_partitions(target.configuration, self.source.configuration),
        )
        copied = Copied()
        if not self.is_shallow:
            copied = copy_files(
                transaction,
                self.source.store,
                names.copies(files, found.added),
                transaction.progress,
            )
        found.stage(transaction)
        _clone_clustering(transaction, self.source)
        transaction.parameters |= {
            "source": f"{self.origin.format}.`{root_location(self.source.store.root)}`",
            "sourceVersion": (
                self.source.version if self.origin.version is None else self.origin.version
            ),
            "isShallow": self.is_shallow,
        }
        return Cloned(
            num_source_files=files.num_rows,
            source_bytes=exact_sum(files.column("size")),
            num_added_files=found.added.num_rows,
            num_removed_files=found.removed.num_rows,
            removed_bytes=exact_sum(found.removed.column("size")),
            num_copied_files=copied.num_files,
            copied_bytes=copied.num_bytes,
        )

    def _check_row_ids(self, files: pa.Table) -> None:
        """Refuse files with ids of rows, which are other rows' ids in the clone.

        Raises:
            InvalidInputError: a file holds some.
        """
        others = with_other_row_ids(self.source.store, files, {})
        if others.true_count:
            raise InvalidInputError(
                f"cannot clone {self.source.store.root} with icebergCompatV3: {others.true_count} "
                "of its files hold row ids, which Iceberg's readers would take for those of the "
                "clone; clone it with delta.enableIcebergCompatV3 = false and "
                "delta.universalFormat.enabledFormats = '', then optimize.upgrade_uniform(3) "
                "rewrites those files"
            )

    def _check_own(self, files: pa.Table) -> None:
        """Refuse files outside of the source's root.

        Raises:
            UnsafePathError: a data file, or the file of a deletion vector.
        """
        root = self.source.store.root
        paths: Any = canonical_paths(files.column("path"), root)
        outside = paths.filter(compute.match_substring_regex(paths, ABSOLUTE)).to_pylist()[:1]
        vectors: Any = files.column("deletionVector")
        # Only these name their file by a path; the others are below the root.
        by_path = compute.equal(compute.struct_field(vectors, "storageType"), "p")
        for row in vectors.filter(by_path).to_pylist():
            descriptor = descriptor_of(row)
            place = None if descriptor is None else location(descriptor)
            if place is not None and is_absolute(canonical_path(place, root)):
                outside.append(place)
        if outside:
            raise UnsafePathError(
                f"cannot clone {root}: its log names {outside[0]!r}, which is not in the table; "
                "where that is meant, as in a shallow clone, allow_foreign_files=True clones such "
                "files, too"
            )


def _check_there(source: Snapshot) -> None:
    """Refuse a version whose table was removed, made anew or set back since it was read.

    A shallow clone of it would have files that do not exist. Old commits may be cleaned up.

    Raises:
        TableNotFoundError, VersionNotFoundError: it was.
    """
    if not source.is_in_place():
        source.refresh(same_table=True)
        source.check_listed(list_log(source.store, from_version=source.version))


def _shows_row_ids(configuration: TableConfiguration) -> bool:
    """Whether Iceberg's readers find ids of rows in the table's files."""
    versions = enabled_versions(configuration.properties)
    return any(VERSIONS[version].needs_row_tracking for version in versions)


def _clone_clustering(pending: PendingTransaction, source: Snapshot) -> None:
    if not pending.configuration.supports("domainMetadata"):
        return
    known = {} if pending.snapshot is None else pending.snapshot.domain_metadata
    current, wanted = known.get(CLUSTERING_DOMAIN), source.domain_metadata.get(CLUSTERING_DOMAIN)
    if wanted is not None and wanted != current:
        pending.set_domain(wanted)
    elif wanted is None and current is not None:
        pending.remove_domain(CLUSTERING_DOMAIN)
