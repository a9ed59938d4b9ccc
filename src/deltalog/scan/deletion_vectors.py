"""Load and check deletion vectors.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.deletion_vectors import (
    DeletionBitmap,
    byte_range,
    check_file_version,
    location,
    parse_framed,
    parse_inline,
)
from deltalog.errors import DataFileMissingError, ObjectNotFoundError

if TYPE_CHECKING:
    from deltalog.actions.model import DeletionVectorDescriptor
    from deltalog.storage.store import Store


def load_bitmap(store: Store, descriptor: DeletionVectorDescriptor) -> DeletionBitmap:
    """Load the row positions that a deletion vector marks as deleted.

    Raises:
        DataFileMissingError: its file does not exist.
        DeletionVectorError: it is truncated, corrupt, or does not match its descriptor.

    Cost: one request of two ranges for a vector in a file, none for an inline one.
    """
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
