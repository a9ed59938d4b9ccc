"""The deleted rows of each data file of an Iceberg table, whichever way they were deleted.

Protocol: Iceberg Table Spec: Scan Planning, Row-level Deletes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.iceberg.equalities import find_equal_rows
from deltalog.iceberg.positions import read_positions, read_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.deletion_vectors import DeletionBitmap
    from deltalog.iceberg.deletes import RowDeletes
    from deltalog.iceberg.source import IcebergFile
    from deltalog.storage.store import Store


def read_deleted_rows(
    store: Store, deletes: RowDeletes, files: Sequence[IcebergFile]
) -> dict[str, DeletionBitmap]:
    """Read which rows of data files are deleted.

    Args:
        store: of the table.
        deletes: of the snapshot.
        files: its data files, whose numbers of rows are those of their footers.

    Returns:
        The rows of each file that has some, by its location.

    Raises:
        DataFileMissingError: a file with deletes is gone.
        DataFileUnreadableError, DeletionVectorError: one is damaged.
        InvalidInputError: one does not fit what the metadata says of it, or a row is deleted that
            its data file does not have.

    Cost: each delete file is read once; two requests for each Puffin file; the columns of equality
    deletes of the data files that are older.
    """
    if deletes.is_empty:
        return {}
    vectors = read_vectors(store, deletes.vectors_by_file())
    positions = read_positions(store, deletes, vectors)
    infos = {one.location: one.info for one in files}
    equals = find_equal_rows(store, deletes, infos)
    found: dict[str, DeletionBitmap] = {}
    for one in files:
        parts = [
            kind[one.location] for kind in (vectors, positions, equals) if one.location in kind
        ]
        if not parts:
            continue
        bitmap = parts[0].union(*parts[1:])
        last = bitmap.max_row
        if last is not None and last >= one.num_rows:
            raise deletes.refused(
                f"row {last} of {one.location!r} is deleted, which has {one.num_rows} rows"
            )
        if bitmap:
            found[one.location] = bitmap
    return found
