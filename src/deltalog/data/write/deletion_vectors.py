"""Writing deletion vectors of existing files: inline, or in one file for all vectors of a commit.

This module decides where vectors are stored, and updates the add actions of their files.

Protocol: Deletion Vectors, Deletion Vector Descriptor Schema, Per-file Statistics (`tightBounds`)
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import TRUE
from deltalog.protocol.actions.arrow import DELETION_VECTOR_TYPE, FILE_SCHEMA
from deltalog.protocol.actions.codec import deletion_vector_to_json
from deltalog.protocol.deletion_vectors import DeletionBitmap, encode_file, inline_descriptor
from deltalog.protocol.stats.collect import with_wide_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.protocol.actions import DeletionVectorDescriptor
    from deltalog.storage.store import Store

INLINE_BYTES: Final = 256
INLINE_BYTES_PER_COMMIT: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedFiles:
    """Existing files with new deletion vectors.

    Args:
        files: the files to add again, with their new vectors (schema `FILE_SCHEMA`).
        paths: the paths of the vector files, to which no commit refers yet.
        num_bytes: the total size of the vector files.
    """

    files: pa.Table
    paths: tuple[str, ...]
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVectors:
    """Stored deletion vectors, ready for a commit.

    Args:
        descriptors: the descriptors of the vectors, in the order of the vectors.
        paths: the paths of the vector files, to which no commit refers yet.
        num_bytes: the total size of the vector files.
    """

    descriptors: tuple[DeletionVectorDescriptor, ...]
    paths: tuple[str, ...] = ()
    num_bytes: int = 0


def store_vectors(
    store: Store, bitmaps: Sequence[DeletionBitmap], *, prefix: str = ""
) -> StoredVectors:
    """Store deletion vectors in one file, or inline if they are few and small enough.

    Args:
        store: the table's store.
        bitmaps: the deleted rows of each file.
        prefix: the directory for the vector file, in tables with random file prefixes.

    Cost: one request, or none if the vectors are inline.
    """
    if _fit_into_log(bitmaps):
        return StoredVectors(descriptors=tuple(map(inline_descriptor, bitmaps)))
    made = encode_file(bitmaps, uuid.uuid4(), prefix=prefix)
    store.put_if_absent(made.path, made.data)
    return StoredVectors(descriptors=made.descriptors, paths=(made.path,), num_bytes=len(made.data))


def write_deletion_vectors(
    store: Store,
    files: pa.Table,
    bitmaps: Sequence[DeletionBitmap],
    num_records: Sequence[int],
    *,
    prefix: str = "",
) -> MaskedFiles:
    """Write new deletion vectors, and return the files with their new vectors.

    Args:
        store: the table's store.
        files: rows of `snapshot.files` with all columns.
        bitmaps: for each file, all deleted rows, including the rows of its old vector.
        num_records: the number of physical rows of each file, because a file with a vector must
            have `numRecords`.
        prefix: the directory for the vector file, in tables with random file prefixes.

    Cost: one request, or none if the vectors are few and small enough to be inline.
    """
    stored = store_vectors(store, bitmaps, prefix=prefix)
    texts: list[str | None] = files.column("stats").to_pylist()
    changed: dict[str, Any] = {
        "deletionVector": pa.array(
            [deletion_vector_to_json(found) for found in stored.descriptors], DELETION_VECTOR_TYPE
        ),
        "stats": pa.array(
            [
                with_wide_bounds(text, num_records=rows)
                for text, rows in zip(texts, num_records, strict=True)
            ],
            pa.string(),
        ),
        "dataChange": pa.repeat(TRUE, files.num_rows),
    }
    columns = [changed.get(name, files.column(name)) for name in FILE_SCHEMA.names]
    return MaskedFiles(
        files=pa.Table.from_arrays(columns, schema=FILE_SCHEMA),
        paths=stored.paths,
        num_bytes=stored.num_bytes,
    )


def _fit_into_log(bitmaps: Sequence[DeletionBitmap]) -> bool:
    """Whether the vectors are few and small enough to be inline in the log."""
    total = 0
    for bitmap in bitmaps:
        size = len(bitmap.encode()) * 5 // 4  # size in Z85 encoding
        total += size
        if size > INLINE_BYTES or total > INLINE_BYTES_PER_COMMIT:
            return False
    return True
