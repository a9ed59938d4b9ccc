"""Load and check deletion vectors.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.deletion_vectors import (
    DeletionBitmap,
    byte_range,
    check_file_version,
    check_rows,
    location,
    parse_framed,
    parse_inline,
)
from deltalog.errors import DataFileMissingError, ObjectNotFoundError

if TYPE_CHECKING:
    from deltalog.actions.model import DeletionVectorDescriptor
    from deltalog.storage.store import Store


def load_bitmap(
    store: Store, descriptor: DeletionVectorDescriptor, *, num_rows: int | None
) -> DeletionBitmap:
    """Load the row positions that a deletion vector marks as deleted.

    Args:
        store: of the table.
        descriptor: of the vector.
        num_rows: physical rows of its data file, from the footer or, where that is not read,
            `numRecords`. None if neither is known: then whoever reads the file checks it.

    Raises:
        DataFileMissingError: its file does not exist.
        DeletionVectorError: it is truncated, corrupt, does not match its descriptor, or marks a row
            that the data file does not have.

    Cost: one request of two ranges for a vector in a file, none for an inline one.
    """
    bitmap = _load(store, descriptor)
    check_rows(bitmap, descriptor, num_rows)
    return bitmap


def _load(store: Store, descriptor: DeletionVectorDescriptor) -> DeletionBitmap:
    path = location(descriptor)
    if path is None:
        return parse_inline(descriptor)
    start, length = byte_range(descriptor)
    try:
        version, framed = store.read_ranges(path, [(0, 1), (start, start + length)])
    except ObjectNotFoundError as error:
        raise DataFileMissingError(
            f"cannot read deletion vector file {path!r} of table {store.root!r}: it is gone; "
            "restore it, or read a version that does not need it"
        ) from error
    check_file_version(version)
    return parse_framed(framed, descriptor, data_offset=start)
