"""Deletion vectors as Iceberg has them: a Puffin file for each, and the entry that names it.

Both formats store the same bytes: the length, the portable bitmap with its magic number, and a
checksum. They are copied out of the table's own files, because readers find vectors by Puffin's
footer. A Puffin file could hold many vectors, but PyIceberg applies every vector of a file that one
of them is read from, also those that were replaced since.

Protocol: Deletion Vector Format; Iceberg Table Spec: Deletion Vectors; Puffin Spec:
`deletion-vector-v1`
"""

from __future__ import annotations

import uuid
import zlib
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

from deltalog._json import dumps
from deltalog.iceberg.data_files import LAYOUT, FileColumns, ListedFile
from deltalog.scan.deletion_vectors import load_bitmap
from deltalog.scan.plan import descriptor_of
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalog.actions.model import DeletionVectorDescriptor
    from deltalog.iceberg.store_io import StoreIO

VECTOR_COLUMNS: Final = ("path", "partitionValues", "deletionVector")

_MAGIC: Final = b"PFA1"
_NO_FLAGS: Final = bytes(4)
_LENGTH_BYTES: Final = 4
_BLOB_TYPE: Final = "deletion-vector-v1"
_POSITION_FIELD: Final = 2147483645  # `_pos`, of the rows in their file
_PATH_FIELD: Final = 2147483546  # `file_path` of position deletes
_INHERITED: Final = -1
_AT_A_TIME: Final = 1_000
_NUM_RECORDS: Final = "numRecords"


def has_vectors(files: pa.Table) -> bool:
    """Whether a file has a deletion vector, by the column `deletionVector`."""
    vectors = files.column("deletionVector")
    return vectors.null_count < len(vectors)


def write_vectors(
    io: StoreIO, columns: FileColumns, files: pa.Table, num_records: pa.ChunkedArray[Any]
) -> list[ListedFile]:
    """Write the deletion vectors of files for Iceberg, and return their entries.

    Args:
        io: of the table; what is written is stored with its next flush.
        columns: of the table.
        files: with the columns `VECTOR_COLUMNS`; those without a vector are left out.
        num_records: physical rows of each; NULL without statistics.

    Raises:
        DataFileMissingError: the file of a vector is gone.
        DeletionVectorError: a vector is damaged.

    Cost: a request for each vector that is not inline, and one for each written.
    """
    if not has_vectors(files):
        return []
    files = files.append_column(_NUM_RECORDS, num_records)
    files = files.filter(files.column("deletionVector").is_valid())
    found: list[ListedFile] = []
    for start in range(0, len(files), _AT_A_TIME):
        part = files.slice(start, _AT_A_TIME)
        rows = zip(
            columns.locations(part),
            columns.partitions(part),
            _contents(io, part),
            strict=True,
        )
        found += [_written(io, *row) for row in rows]
        io.flush()
    return found


def _contents(io: StoreIO, files: pa.Table) -> list[tuple[bytes, int]]:
    """The bitmap of each vector with its magic number, and how many rows it has."""
    vectors: list[Any] = files.column("deletionVector").to_pylist()
    counts: list[Any] = files.column(_NUM_RECORDS).to_pylist()

    def content(one: tuple[DeletionVectorDescriptor, int | None]) -> tuple[bytes, int]:
        descriptor, num_rows = one
        bitmap = load_bitmap(io.store, descriptor, num_rows=num_rows)
        return bitmap.encode(), bitmap.cardinality

    found = zip(map(descriptor_of, vectors), counts, strict=True)
    return map_in_pool(content, [(one, count) for one, count in found if one is not None])


def _written(io: StoreIO, location: str, partition: Any, content: tuple[bytes, int]) -> ListedFile:
    bitmap, cardinality = content
    blob = b"".join(
        (
            len(bitmap).to_bytes(_LENGTH_BYTES, "big"),
            bitmap,
            zlib.crc32(bitmap).to_bytes(_LENGTH_BYTES, "big"),
        )
    )
    puffin = _puffin(blob, location, cardinality)
    output = io.new_output(io.location(f"{uuid.uuid4()}-dv.puffin"))
    with output.create() as stream:
        stream.write(puffin)
    bound = {_PATH_FIELD: location.encode()}
    return ListedFile(
        DataFile.from_args(
            _table_format_version=LAYOUT,
            content=DataFileContent.POSITION_DELETES,
            file_path=output.location,
            file_format=FileFormat.PUFFIN,
            partition=partition,
            record_count=cardinality,
            file_size_in_bytes=len(puffin),
            # Readers that do not know `referenced_data_file` find the data file by these.
            lower_bounds=bound,
            upper_bounds=bound,
            referenced_data_file=location,
            content_offset=len(_MAGIC),
            content_size_in_bytes=len(blob),
        )
    )


def _puffin(blob: bytes, location: str, cardinality: int) -> bytes:
    """A Puffin file of one vector."""
    footer = dumps(
        {
            "blobs": [
                {
                    "type": _BLOB_TYPE,
                    "fields": [_POSITION_FIELD],
                    "snapshot-id": _INHERITED,
                    "sequence-number": _INHERITED,
                    "offset": len(_MAGIC),
                    "length": len(blob),
                    "properties": {
                        "referenced-data-file": location,
                        "cardinality": str(cardinality),
                    },
                }
            ],
            "properties": {"created-by": "deltalog"},
        }
    )
    length = len(footer).to_bytes(_LENGTH_BYTES, "little")
    return b"".join((_MAGIC, blob, _MAGIC, footer, length, _NO_FLAGS, _MAGIC))
