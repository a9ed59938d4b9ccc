"""One more snapshot: the change of manifests that it is made of, and what it says of it.

The sequence number of a snapshot is the table version, and row ids are the table's, so that the
lineage of rows is the same in both formats.

Protocol: Iceberg Table Spec: Snapshots, Row Lineage
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

from deltalog.iceberg.manifests import ManifestChange
from deltalog.iceberg.metadata import next_row_id, with_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.iceberg.metadata import TableMetadata
    from deltalog.iceberg.store_io import StoreIO

_ID_BITS: Final = 63
_TOTALS: Final = (
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
)


def new_change(io: StoreIO, metadata: TableMetadata, version: int) -> ManifestChange:
    """The change of manifests for the next snapshot, which shows a table version."""
    return ManifestChange(
        io=io,
        format_version=metadata.format_version,
        schemas=[*metadata.schemas, metadata.schema()],
        specs=metadata.specs(),
        spec=metadata.spec(),
        snapshot_id=secrets.randbits(_ID_BITS),
        sequence_number=version,
        first_row_id=next_row_id(metadata),
    )


def operation_of(change: ManifestChange) -> Operation:
    """The operation that changed rows so."""
    if change.added.files:
        is_append = not change.removed.files and not change.added_vectors.files
        return Operation.APPEND if is_append else Operation.OVERWRITE
    # A vector that is replaced by a smaller one brings rows back.
    brings_rows = change.removed_vectors.rows > change.added_vectors.rows and not (
        change.removed.files
    )
    return Operation.OVERWRITE if brings_rows else Operation.DELETE


def with_change(
    metadata: TableMetadata,
    change: ManifestChange,
    timestamp_ms: int,
    operation: Operation,
    earlier: Mapping[str, Any],
) -> TableMetadata:
    """The metadata with a snapshot of the changed manifests; `earlier` has the totals before."""
    parent = metadata.current_snapshot_id
    manifest_list = change.write_list(parent)
    members: dict[str, Any] = {
        "snapshot-id": change.snapshot_id,
        "parent-snapshot-id": parent,
        "sequence-number": change.sequence_number,
        "timestamp-ms": timestamp_ms,
        "manifest-list": manifest_list,
        "summary": Summary(operation=operation, **_summary(change, earlier)),
        "schema-id": metadata.current_schema_id,
    }
    if change.first_row_id is not None:
        members["first-row-id"] = change.first_row_id
        members["added-rows"] = change.next_row_id - change.first_row_id
    return with_snapshot(metadata, IcebergSnapshot(**members))


def _summary(change: ManifestChange, earlier: Mapping[str, Any]) -> dict[str, str]:
    added, removed = change.added, change.removed
    counts = {
        "added-data-files": added.files,
        "added-records": added.rows,
        "added-files-size": added.size_bytes,
        "deleted-data-files": removed.files,
        "deleted-records": removed.rows,
        "removed-files-size": removed.size_bytes,
        "added-delete-files": change.added_vectors.files,
        "added-dvs": change.added_vectors.files,
        "added-position-deletes": change.added_vectors.rows,
        "removed-delete-files": change.removed_vectors.files,
        "removed-dvs": change.removed_vectors.files,
        "removed-position-deletes": change.removed_vectors.rows,
    }
    totals = {
        total: int(earlier.get(total) or 0) + counts[plus] - counts[minus]
        for total, plus, minus in _TOTALS
    }
    named = {name: str(number) for name, number in counts.items() if number}
    return {**named, **{name: str(max(0, number)) for name, number in totals.items()}}
