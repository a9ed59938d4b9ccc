"""Delete metadata files that no snapshot names any longer.

Protocol: Iceberg Table Spec: Snapshot Retention Policy
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyiceberg.manifest import ManifestContent

from deltalog.errors import DeltaError
from deltalog.iceberg.manifests import read_entries, read_manifest_list
from deltalog.iceberg.store_io import StoreIO, metadata_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

    from deltalog.iceberg.metadata import TableMetadata

logger: logging.Logger = logging.getLogger(__name__)


def delete_expired(
    io: StoreIO,
    metadata: TableMetadata,
    expired: Sequence[IcebergSnapshot],
    dropped: Sequence[str],
) -> None:
    """Delete metadata that nothing names any longer; a failure costs space, and is logged."""
    try:
        paths = [metadata_path(one, io.store) for one in dropped]
        if expired:
            # A manifest that an expired snapshot has and the oldest one left has not is in no
            # later one either, nor is a deletion vector.
            oldest = min(metadata.snapshots, key=lambda one: one.sequence_number or 0)
            kept = read_manifest_list(io, oldest.manifest_list)
            names = {one.manifest_path for one in kept}
            gone: dict[str, ManifestFile] = {}
            for one in expired:
                paths.append(metadata_path(one.manifest_list, io.store))
                for manifest in read_manifest_list(io, one.manifest_list):
                    if manifest.manifest_path not in names:
                        gone[manifest.manifest_path] = manifest
            vectors = _vectors_of(io, gone.values()) - _vectors_of(io, kept)
            paths += [metadata_path(one, io.store) for one in (*gone, *vectors)]
        if paths:
            io.store.delete_many(sorted(set(paths)))
    except DeltaError as error:
        logger.warning("old Iceberg metadata of %s stays: %s", io.store.root, error)


def _vectors_of(io: StoreIO, manifests: Iterable[ManifestFile]) -> set[str]:
    """The locations of the deletion vectors that manifests list."""
    return {
        entry.data_file.file_path
        for manifest in manifests
        if manifest.content == ManifestContent.DELETES
        for entry in read_entries(io, manifest)
    }
