"""Rows of existing files that a transaction marks as deleted with deletion vectors.

This module separates rows that this transaction deletes from rows that were deleted before. Only
rows that this transaction deletes can conflict with other writers (see `rebase`). Files without
remaining rows are removed from the table.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.data.scan.plan import descriptor_of
from deltalog.data.scan.transform import load_bitmap
from deltalog.data.write.deletion_vectors import write_deletion_vectors
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.deletion_vectors import DeletionBitmap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Masks:
    """Files and the rows of each file to mark as deleted.

    Args:
        files: the files with their old deletion vectors (schema `FILE_SCHEMA`); the commit removes
            these entries.
        rows: for each file, the positions of rows that this transaction marks as deleted, without
            rows that were deleted before.
        num_records: the number of physical rows of each file.
        prefix: directory for deletion vector files, in tables with random file prefixes.
        added: the files with their new deletion vectors (schema `FILE_SCHEMA`), except files
            without remaining rows; None until the vectors are written.
        paths: paths of the deletion vector files that were written.
    """

    files: pa.Table
    rows: tuple[DeletionBitmap, ...]
    num_records: tuple[int, ...]
    prefix: str
    added: pa.Table | None
    paths: tuple[str, ...]


def write_masks(
    store: Store,
    files: pa.Table,
    rows: Sequence[DeletionBitmap],
    num_records: Sequence[int],
    *,
    prefix: str = "",
) -> Masks:
    """Write deletion vectors that mark rows as deleted, in addition to already deleted rows.

    Args:
        store: store of the table.
        files: rows of `snapshot.files` with all columns.
        rows: for each file, the positions of the rows to mark as deleted.
        num_records: the number of physical rows of each file.
        prefix: directory for the deletion vector file, in tables with random file prefixes.

    Cost: one request for each old vector that is stored in a file, and one request to write all new
    vectors.
    """
    wanted = [
        old_rows(store, files, number, num_rows=count) | found
        for number, (found, count) in enumerate(zip(rows, num_records, strict=True))
    ]
    left = [
        number
        for number, (bitmap, count) in enumerate(zip(wanted, num_records, strict=True))
        if bitmap.cardinality < count
    ]
    added = FILE_SCHEMA.empty_table()
    paths: tuple[str, ...] = ()
    if left:
        written = write_deletion_vectors(
            store,
            files.take(pa.array(left, pa.int64())),
            [wanted[number] for number in left],
            [num_records[number] for number in left],
            prefix=prefix,
        )
        added, paths = written.files, written.paths
    return Masks(
        files=files.select(FILE_SCHEMA.names),
        rows=tuple(rows),
        num_records=tuple(num_records),
        prefix=prefix,
        added=added,
        paths=paths,
    )


def old_rows(store: Store, files: pa.Table, number: int, *, num_rows: int) -> DeletionBitmap:
    """Load the deleted rows of a file; empty if the file has no deletion vector.

    Args:
        store: store of the table.
        files: files with the column `deletionVector`.
        number: index of the file in `files`.
        num_rows: the number of physical rows of the file.
    """
    vector: Any = files.column("deletionVector")[number].as_py()
    descriptor = descriptor_of(vector)
    if descriptor is None:
        return DeletionBitmap()
    return load_bitmap(store, descriptor, num_rows=num_rows)
