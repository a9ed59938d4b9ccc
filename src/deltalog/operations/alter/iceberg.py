"""What a table and its files need so that Iceberg clients can read them (UniForm).

Protocol: Iceberg Compatibility V1, V2; RFC IcebergCompatV3
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.cards import ShownFields
from deltalog._util.kernels import compute
from deltalog._util.readable import FILE, counted
from deltalog.errors import InvalidInputError
from deltalog.operations.clone import hidden_columns, with_other_row_ids
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.column_mapping import Mode
from deltalog.protocol.features.iceberg_compat import VERSIONS, with_required_properties
from deltalog.protocol.stats.schema import NUM_RECORDS
from deltalog.protocol.table_change.change import changed_table
from deltalog.schema.columns import naming_the_attempt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.transaction import PendingTransaction

_COMPATIBLE: Final = "delta.enableIcebergCompatV"
_VECTORS: Final = "delta.enableDeletionVectors"
_FORMATS: Final = "delta.universalFormat.enabledFormats"


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformUpgrade(ShownFields):
    """The changes that make a table readable as Iceberg, and the metrics of the rewrite.

    Args:
        iceberg_compat_version: 1, 2 or 3.
        properties: the properties to set, as key → string.
        num_files: the number of files of the table.
        num_files_to_rewrite: the number of files to rewrite. V1 and V2: the files with deletion
            vectors. V3: the files in which Iceberg would find no row ids or wrong ones.
        size_bytes_to_rewrite: the total size of the files to rewrite.
        metrics: metrics of the rewrite, as `optimize.purge` returns them; None for a dry run.
    """

    iceberg_compat_version: int
    properties: Mapping[str, str]
    num_files: int
    num_files_to_rewrite: int
    size_bytes_to_rewrite: int
    metrics: Mapping[str, Any] | None = None

    @property
    def preparation(self) -> dict[str, str]:
        """The subset of `properties` that must be set before files are rewritten."""
        late = (_COMPATIBLE, _FORMATS)
        return {key: text for key, text in self.properties.items() if not key.startswith(late)}

    @property
    def rewrites_with_properties(self) -> bool:
        """Whether one commit rewrites the files and sets the properties.

        V3 needs this, because its properties affect how the new files are written.
        """
        return VERSIONS[self.iceberg_compat_version].needs_row_tracking

    def done(self, metrics: Mapping[str, Any]) -> UniformUpgrade:
        """Return a copy of this upgrade that contains the metrics of the rewrite."""
        return replace(self, metrics=metrics)


def plan_upgrade(snapshot: Snapshot, version: int) -> UniformUpgrade:
    """Return the changes that make a table readable as Iceberg.

    Args:
        snapshot: snapshot of the table.
        version: the version of icebergCompat, 1 to 3.

    Raises:
        InvalidInputError: there is no such version, or the table does not meet its requirements.

    Cost: V1 and V2: reads the deletion vector descriptors from the log. V3, unless it is enabled
    already: reads the footer of every file.
    """
    if version not in VERSIONS:
        raise InvalidInputError(
            f"cannot upgrade {snapshot.store.root} for Iceberg: expected one of "
            f"{', '.join(map(str, VERSIONS))} as iceberg_compat_version, found {version!r}"
        )
    configuration = snapshot.configuration
    changed = missing_properties(configuration, version)
    if changed:
        # Check the new properties now, so that an invalid change fails before a file is rewritten.
        stored = configuration.metadata.configuration
        with naming_the_attempt("run REORG on", snapshot.store.root):
            changed_table(configuration, configuration={**stored, **changed})
    files = snapshot.files(["path", "size", "deletionVector"])
    rewritten = files.slice(0, 0)
    if not VERSIONS[version].allows_vectors:
        rewritten = files.filter(files.column("deletionVector").is_valid())
    elif _COMPATIBLE + str(version) in changed:
        check_counts(snapshot, version)
        own = hidden_columns(configuration)
        rewritten = files.filter(with_other_row_ids(snapshot.store, files, own))
    return UniformUpgrade(
        iceberg_compat_version=version,
        properties=changed,
        num_files=len(files),
        num_files_to_rewrite=len(rewritten),
        size_bytes_to_rewrite=compute.sum(rewritten.column("size")).as_py() or 0,
    )


def missing_properties(configuration: TableConfiguration, version: int) -> dict[str, str]:
    """Return the properties to set so that Iceberg clients can read a table, as key → string.

    Properties that have the right value already are left out.
    """
    stored = configuration.metadata.configuration
    wanted = _wanted(configuration, version)
    return {key: text for key, text in wanted.items() if stored.get(key) != text}


def _wanted(configuration: TableConfiguration, version: int) -> dict[str, str]:
    properties = configuration.properties
    wanted = {
        _COMPATIBLE + str(number): "false"
        for number in VERSIONS
        if number != version and _COMPATIBLE + str(number) in properties.configuration
    }
    wanted[_COMPATIBLE + str(version)] = "true"
    needed = with_required_properties({}, TableProperties(wanted))
    if configuration.column_mapping_mode is not Mode.NONE:
        needed.pop(TableProperties.column_mapping_mode.key, None)
    wanted |= needed
    if properties.enable_deletion_vectors and not VERSIONS[version].allows_vectors:
        wanted[_VECTORS] = "false"
    formats = [one for one in properties.universal_format_enabled_formats if one != "iceberg"]
    wanted[_FORMATS] = ",".join([*formats, "iceberg"])
    return wanted


def check_files(transaction: PendingTransaction, snapshot: Snapshot, version: int) -> None:
    """Raise if existing files violate the rules of an icebergCompat version.

    Args:
        transaction: the transaction that enables the version. For V3, files that are added
            concurrently conflict with it.
        snapshot: snapshot of the table before the change.
        version: the icebergCompat version to enable.

    Raises:
        InvalidInputError: V1 and V2: a file has a deletion vector. V3: a file lacks `numRecords`,
            or Delta and Iceberg readers would find different row ids in a file.

    Cost: V3: reads the footer of every file.
    """
    attempt = _attempt(snapshot, version)
    if not VERSIONS[version].allows_vectors:
        vectors = snapshot.files(["deletionVector"]).column("deletionVector")
        if vectors.null_count < len(vectors):
            raise InvalidInputError(
                f"{attempt}: some files have deletion vectors; call optimize.purge() to rewrite "
                "them, or optimize.upgrade_uniform() to rewrite them and set the properties"
            )
        return
    check_counts(snapshot, version)
    transaction.record_read(None)
    files = snapshot.files(["path", "size"])
    others = with_other_row_ids(snapshot.store, files, hidden_columns(snapshot.configuration))
    if others.true_count:
        raise InvalidInputError(
            f"{attempt}: the row ids of {others.true_count} of {counted(len(files), FILE)} are in "
            "columns without the field ids that Iceberg expects; optimize.upgrade_uniform(3) "
            "rewrites these files, and its dry run shows the cost"
        )


def check_counts(snapshot: Snapshot, version: int) -> None:
    """Raise if a file lacks `numRecords`: row ids cannot be assigned to such a file."""
    counts = snapshot.stats(pa.schema([(NUM_RECORDS, pa.int64())])).column(NUM_RECORDS)
    if counts.null_count:
        raise InvalidInputError(
            f"{_attempt(snapshot, version)}: numRecords is missing in the "
            f"statistics of {counted(counts.null_count, FILE)}; rewrite these files first"
        )


def _attempt(snapshot: Snapshot, version: int) -> str:
    return f"cannot enable icebergCompatV{version} of {snapshot.store.root}"
