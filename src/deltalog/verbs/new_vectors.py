"""Deletion vectors of files that come from elsewhere, stored as those of the table that gets them.

Protocol: Deletion Vectors, Deletion Vector Descriptor Schema
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.actions.arrow import DELETION_VECTOR_TYPE
from deltalog.actions.codec import deletion_vector_to_json
from deltalog.deletion_vectors import location, parse_inline
from deltalog.paths import canonical_paths
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.plan import descriptor_of
from deltalog.storage.pool import map_in_pool
from deltalog.write.deletion_vectors import store_vectors
from deltalog.write.open_files import random_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.actions import DeletionVectorDescriptor
    from deltalog.deletion_vectors import DeletionBitmap
    from deltalog.transaction import PendingTransaction

_COLUMN: Final = "deletionVector"


def stage_vectors(
    pending: PendingTransaction, bitmaps: Sequence[DeletionBitmap]
) -> tuple[DeletionVectorDescriptor, ...]:
    """Store deletion vectors for a transaction, and return a descriptor for each.

    Cost: one request, or none if the vectors are few and small enough to be in the log.
    """
    properties = pending.configuration.properties
    prefix = random_prefix(properties) if properties.randomize_file_prefixes else ""
    stored = store_vectors(pending.store, bitmaps, prefix=prefix)
    pending.own_paths.extend(stored.paths)
    return stored.descriptors


def with_own_vectors(pending: PendingTransaction, now: pa.Table, files: pa.Table) -> pa.Table:
    """Return files whose inline vectors are stored as the table stores its own.

    A file that the table has with the same deleted rows keeps the vector that it has there, so that
    it counts as the same file.

    Args:
        pending: on the table.
        now: the files that it has, `FILE_SCHEMA`.
        files: those that it gets, `FILE_SCHEMA`, by paths in its log.

    Cost: as `stage_vectors`, and a request for each known vector of as many rows.
    """
    vectors: list[Any] = files.column(_COLUMN).to_pylist()
    inline = [
        (number, descriptor)
        for number, row in enumerate(vectors)
        if (descriptor := descriptor_of(row)) is not None and location(descriptor) is None
    ]
    if not inline:
        return files
    known = _known_vectors(pending, now)
    keys: list[Any] = canonical_paths(files.column("path"), pending.store.root).to_pylist()

    def same(one: tuple[int, DeletionVectorDescriptor]) -> DeletionVectorDescriptor | None:
        number, descriptor = one
        found = known.get(keys[number])
        if found is None or found.cardinality != descriptor.cardinality:
            return None
        # Equal to one whose rows are known to be the file's, so nothing else is checked.
        is_same = load_bitmap(pending.store, found, num_rows=None) == parse_inline(descriptor)
        return found if is_same else None

    kept = map_in_pool(same, inline)
    new = [one for one, found in zip(inline, kept, strict=True) if found is None]
    stored = stage_vectors(pending, [parse_inline(descriptor) for _, descriptor in new])
    for (number, _), found in zip(inline, kept, strict=True):
        if found is not None:
            vectors[number] = deletion_vector_to_json(found)
    for (number, _), descriptor in zip(new, stored, strict=True):
        vectors[number] = deletion_vector_to_json(descriptor)
    place = files.schema.get_field_index(_COLUMN)
    return files.set_column(
        place, files.schema.field(place), pa.array(vectors, DELETION_VECTOR_TYPE)
    )


def _known_vectors(
    pending: PendingTransaction, now: pa.Table
) -> dict[str, DeletionVectorDescriptor]:
    """The deletion vectors that the table's files have, by canonical path."""
    masked = now.filter(now.column(_COLUMN).is_valid())
    paths: list[Any] = canonical_paths(masked.column("path"), pending.store.root).to_pylist()
    rows: list[Any] = masked.column(_COLUMN).to_pylist()
    return {
        path: descriptor
        for path, row in zip(paths, rows, strict=True)
        if (descriptor := descriptor_of(row)) is not None
    }
